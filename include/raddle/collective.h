/* Collectives: calls that all ranks of a group make together.
 *
 * Counts are elements, never bytes. Roots are group ranks (raddle/group.h). Calls
 * block until this rank's part is done, unless rdl_call names a stream, a work or a
 * batch: see raddle/work.h.
 *
 * Order: calls on one group take place in the order in which they are made, and
 * the n-th call of each member belongs together. Calls from several threads on
 * one group are taken one after another as they enter.
 * Buffers: borrowed, and the caller's again when the call returns, also when it
 * fails. Of any alignment that the element type allows in C, and any other. NULL
 * is allowed where no bytes are read or written. Input and output either are in
 * place as each call says, or do not overlap; anything else is RDL_INVALID. After
 * a failure the output is undefined, but for RDL_INVALID, RDL_STATE and
 * RDL_MISMATCH, which leave it untouched.
 * Failures: RDL_INVALID, nothing was sent and the group is as before.
 * RDL_MISMATCH, RDL_TIMEOUT, RDL_PEER and RDL_REVOKED end the group, and so does a
 * call that a failed stream passes over, with the stream's own status
 * (raddle/stream.h): this call and every later one on it return the first cause, on
 * every member, with its sentence. Other groups go on.
 * Bits: every rank gets the same bits, whatever the timing: each element is
 * combined in the order of the group's list, ((x0 + x1) + x2) + ... */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RADDLE_COLLECTIVE_H
#define RADDLE_COLLECTIVE_H

#include <raddle/group.h>
#include <raddle/site.h>
#include <raddle/status.h>
#include <raddle/world.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* name, its text, size in bytes, a C type of that size: for 16-bit floats and
 * truths, of the bits. FLOAT16 is IEEE 754's binary16, BFLOAT16 the upper half of
 * a float32. BOOL is a byte: 0 is false, all else true. */
#define RDL_DTYPE_MAP(X)                                                       \
    X(UINT8, uint8, 1, uint8_t)                                                \
    X(INT8, int8, 1, int8_t)                                                   \
    X(UINT16, uint16, 2, uint16_t)                                             \
    X(INT16, int16, 2, int16_t)                                                \
    X(UINT32, uint32, 4, uint32_t)                                             \
    X(INT32, int32, 4, int32_t)                                                \
    X(UINT64, uint64, 8, uint64_t)                                             \
    X(INT64, int64, 8, int64_t)                                                \
    X(BOOL, bool, 1, uint8_t)                                                  \
    X(FLOAT16, float16, 2, uint16_t)                                           \
    X(BFLOAT16, bfloat16, 2, uint16_t)                                         \
    X(FLOAT32, float32, 4, float)                                              \
    X(FLOAT64, float64, 8, double)

typedef enum rdl_dtype {
#define X(name, text, bytes, type) RDL_##name,
    RDL_DTYPE_MAP(X)
#undef X
} rdl_dtype;

/* Integers: SUM and PRODUCT wrap. AVG is the exact sum divided by the number of
 * ranks, truncated toward zero; the sum itself cannot overflow.
 * Floating point: FLOAT32 and FLOAT64 are computed in their type. FLOAT16 and
 * BFLOAT16 are computed in float32 and rounded once, at the end, to nearest, ties
 * to even: in FLOAT16 60000 + 60000 - 60000 - 60000 is 0. AVG is the sum divided
 * by the number of ranks. MIN and MAX give NaN where any input is NaN (the first in
 * the group's order), and of -0.0 and +0.0 the first.
 * PREMUL_SUM is the sum of factor * x, with the factor of rdl_call, of floating
 * point only. The factor is rounded to float32, for FLOAT64 not at all, and each
 * product is rounded before it is added: 0.1 * 1 + 0.1 * 2 is 0.30078125 in
 * BFLOAT16 and 0.30004883 in FLOAT16.
 * BOOL: SUM, MAX and BIT_OR are or, PRODUCT, MIN and BIT_AND are and, BIT_XOR is
 * exclusive or; each byte of the result is 0 or 1.
 * RDL_INVALID: AVG and PREMUL_SUM of BOOL, PREMUL_SUM of integers, BIT_AND, BIT_OR
 * and BIT_XOR of floating point. */
#define RDL_REDUCTION_MAP(X)                                                   \
    X(SUM, sum)                                                                \
    X(MIN, min)                                                                \
    X(MAX, max)                                                                \
    X(AVG, avg)                                                                \
    X(PRODUCT, product)                                                        \
    X(BIT_AND, bit_and)                                                        \
    X(BIT_OR, bit_or)                                                          \
    X(BIT_XOR, bit_xor)                                                        \
    X(PREMUL_SUM, premul_sum)

typedef enum rdl_reduction {
#define X(name, text) RDL_##name,
    RDL_REDUCTION_MAP(X)
#undef X
} rdl_reduction;

/* Bytes of one element; 0 for a number that is no dtype. */
RDL_API size_t rdl_dtype_bytes(rdl_dtype dtype);

/* A handle of an operation that goes on beside the caller (raddle/work.h). */
typedef struct rdl_work {
    uint32_t index;
    uint32_t generation;
    uint32_t world;
} rdl_work;

typedef struct rdl_batch rdl_batch;

/* What one call may want differently. Zero is the default of every field; a NULL
 * pointer is all defaults. */
typedef struct rdl_call {
    int64_t timeout_ms; /* 0: the world's timeout_ms; from when it starts to wait */
    const char *caller; /* for raddle/trace.h: who makes the call, and for what; a
                           text that stays until the work is done */
    rdl_stream *stream; /* raddle/stream.h; NULL: this thread */
    rdl_work *work;     /* where its handle goes: the call returns when it is
                           issued */
    rdl_batch *batch; /* raddle/work.h: it starts with the others of the batch */
    double factor; /* of PREMUL_SUM: finite and not 0, equal on all ranks; else 0 */
} rdl_call;

/* Returns when every member has entered. */
RDL_CALL rdl_status rdl_barrier(rdl_world *world, rdl_group group,
                                const rdl_call *call);

/* buffer: count elements; read on root, written on all others. */
RDL_CALL rdl_status rdl_broadcast(rdl_world *world, rdl_group group,
                                  void *buffer, size_t count, rdl_dtype dtype,
                                  int root, const rdl_call *call);

/* input: count elements; output: count, on root alone (elsewhere ignored, and may
 * be NULL). In place on root: output == input. */
RDL_CALL rdl_status rdl_reduce(rdl_world *world, rdl_group group,
                               const void *input, void *output, size_t count,
                               rdl_dtype dtype, rdl_reduction reduction,
                               int root, const rdl_call *call);

/* input and output: count elements each. In place: output == input. */
RDL_CALL rdl_status rdl_all_reduce(rdl_world *world, rdl_group group,
                                   const void *input, void *output, size_t count,
                                   rdl_dtype dtype, rdl_reduction reduction,
                                   const rdl_call *call);

/* input: count elements; output, on root alone: size * count, member r's at
 * r * count. In place on root: input is its own part of output. */
RDL_CALL rdl_status rdl_gather(rdl_world *world, rdl_group group,
                               const void *input, void *output, size_t count,
                               rdl_dtype dtype, int root, const rdl_call *call);

/* input, on root alone: size * count elements, part r for member r; output: count.
 * In place on root: output is its own part of input. */
RDL_CALL rdl_status rdl_scatter(rdl_world *world, rdl_group group,
                                const void *input, void *output, size_t count,
                                rdl_dtype dtype, int root, const rdl_call *call);

/* input: count elements; output: size * count, member r's at r * count. In
 * place: input is this rank's part of output. */
RDL_CALL rdl_status rdl_all_gather(rdl_world *world, rdl_group group,
                                   const void *input, void *output, size_t count,
                                   rdl_dtype dtype, const rdl_call *call);

/* input: size * count elements; output: count, the combination of everyone's
 * part at (this group rank) * count. In place: output is that part of input. */
RDL_CALL rdl_status rdl_reduce_scatter(rdl_world *world, rdl_group group,
                                       const void *input, void *output,
                                       size_t count, rdl_dtype dtype,
                                       rdl_reduction reduction,
                                       const rdl_call *call);

/* input and output: size * count elements; part r of input goes to member r,
 * part r of output comes from member r. Not in place. */
RDL_CALL rdl_status rdl_all_to_all(rdl_world *world, rdl_group group,
                                   const void *input, void *output, size_t count,
                                   rdl_dtype dtype, const rdl_call *call);

/* The uneven forms: counts has an entry for each member, in the group's order; 0 is
 * allowed. Blocks follow each other without gaps. */

/* counts: equal on all members. input: counts[this group rank] elements; output:
 * all of them. In place: input is this rank's block of output. */
RDL_CALL rdl_status rdl_all_gather_v(rdl_world *world, rdl_group group,
                                     const void *input, void *output,
                                     const size_t *counts, rdl_dtype dtype,
                                     const rdl_call *call);

/* counts: equal on all members. input: all blocks; output: counts[this group rank]
 * elements, the combination of everyone's block for this rank. In place: output is
 * this rank's block of input. */
RDL_CALL rdl_status rdl_reduce_scatter_v(rdl_world *world, rdl_group group,
                                         const void *input, void *output,
                                         const size_t *counts, rdl_dtype dtype,
                                         rdl_reduction reduction,
                                         const rdl_call *call);

/* input: a block of input_counts[r] elements for each member r; output: a block of
 * output_counts[r] from each. What one sends and the other expects is compared for
 * every pair before anything moves; a difference is RDL_MISMATCH on all members.
 * Not in place. */
RDL_CALL rdl_status rdl_all_to_all_v(rdl_world *world, rdl_group group,
                                     const void *input,
                                     const size_t *input_counts, void *output,
                                     const size_t *output_counts,
                                     rdl_dtype dtype, const rdl_call *call);

/* Between two members. Transfers from one member to another meet in the order in
 * which each side makes them, apart from the group's collectives and from the way
 * back. Counts and dtypes that differ are RDL_MISMATCH on both sides, nothing is
 * written, and that way is ended; the group is not. Both calls return when the
 * transfer is done: two ranks that send to each other first and receive after wait
 * until the deadline. Use rdl_exchange for that. */

/* peer: group rank, not this one. */
RDL_CALL rdl_status rdl_send(rdl_world *world, rdl_group group,
                             const void *buffer, size_t count, rdl_dtype dtype,
                             int peer, const rdl_call *call);
RDL_CALL rdl_status rdl_receive(rdl_world *world, rdl_group group, void *buffer,
                                size_t count, rdl_dtype dtype, int peer,
                                const rdl_call *call);

/* One transfer of a batch: send is set, or receive; of 0 elements both may be NULL,
 * then receives says which it is. */
typedef struct rdl_transfer {
    int peer; /* group rank; this rank itself if the batch has both halves */
    const void *send;
    void *receive;
    bool receives; /* only read where both are NULL */
    size_t count;
    rdl_dtype dtype;
} rdl_transfer;

/* Starts all of them together and returns when all have ended. The first failure
 * is returned; the others go on to their ends. */
RDL_CALL rdl_status rdl_exchange(rdl_world *world, rdl_group group,
                                 const rdl_transfer *transfers, int count,
                                 const rdl_call *call);

/* *peer becomes the group rank of a member that has begun a send to this rank for which
 * no receive was made yet, or -1. Of several it is the next behind `after` in the
 * group's order (-1: the first), so that nobody is passed over for ever. Never waits,
 * and takes nothing: rdl_receive from that peer does. Between the two no other thread
 * may receive from it. A member from which a receive is pending is passed over.
 * RDL_PEER: all other members are gone. */
RDL_CALL rdl_status rdl_probe(rdl_world *world, rdl_group group, int after,
                              int *peer);

/* The same with a call site (raddle/site.h). */
RDL_CALL rdl_status rdl_barrier_at(rdl_world *world, rdl_group group,
                                   const rdl_call *call, const char *site);
RDL_CALL rdl_status rdl_broadcast_at(rdl_world *world, rdl_group group,
                                     void *buffer, size_t count,
                                     rdl_dtype dtype, int root,
                                     const rdl_call *call, const char *site);
RDL_CALL rdl_status rdl_reduce_at(rdl_world *world, rdl_group group,
                                  const void *input, void *output, size_t count,
                                  rdl_dtype dtype, rdl_reduction reduction,
                                  int root, const rdl_call *call,
                                  const char *site);
RDL_CALL rdl_status rdl_all_reduce_at(rdl_world *world, rdl_group group,
                                      const void *input, void *output,
                                      size_t count, rdl_dtype dtype,
                                      rdl_reduction reduction,
                                      const rdl_call *call, const char *site);
RDL_CALL rdl_status rdl_gather_at(rdl_world *world, rdl_group group,
                                  const void *input, void *output, size_t count,
                                  rdl_dtype dtype, int root,
                                  const rdl_call *call, const char *site);
RDL_CALL rdl_status rdl_scatter_at(rdl_world *world, rdl_group group,
                                   const void *input, void *output,
                                   size_t count, rdl_dtype dtype, int root,
                                   const rdl_call *call, const char *site);
RDL_CALL rdl_status rdl_all_gather_at(rdl_world *world, rdl_group group,
                                      const void *input, void *output,
                                      size_t count, rdl_dtype dtype,
                                      const rdl_call *call, const char *site);
RDL_CALL rdl_status rdl_reduce_scatter_at(rdl_world *world, rdl_group group,
                                          const void *input, void *output,
                                          size_t count, rdl_dtype dtype,
                                          rdl_reduction reduction,
                                          const rdl_call *call,
                                          const char *site);
RDL_CALL rdl_status rdl_all_to_all_at(rdl_world *world, rdl_group group,
                                      const void *input, void *output,
                                      size_t count, rdl_dtype dtype,
                                      const rdl_call *call, const char *site);
RDL_CALL rdl_status rdl_all_gather_v_at(rdl_world *world, rdl_group group,
                                        const void *input, void *output,
                                        const size_t *counts, rdl_dtype dtype,
                                        const rdl_call *call, const char *site);
RDL_CALL rdl_status rdl_reduce_scatter_v_at(
    rdl_world *world, rdl_group group, const void *input, void *output,
    const size_t *counts, rdl_dtype dtype, rdl_reduction reduction,
    const rdl_call *call, const char *site);
RDL_CALL rdl_status rdl_all_to_all_v_at(rdl_world *world, rdl_group group,
                                        const void *input,
                                        const size_t *input_counts, void *output,
                                        const size_t *output_counts,
                                        rdl_dtype dtype, const rdl_call *call,
                                        const char *site);
RDL_CALL rdl_status rdl_send_at(rdl_world *world, rdl_group group,
                                const void *buffer, size_t count,
                                rdl_dtype dtype, int peer, const rdl_call *call,
                                const char *site);
RDL_CALL rdl_status rdl_receive_at(rdl_world *world, rdl_group group,
                                   void *buffer, size_t count, rdl_dtype dtype,
                                   int peer, const rdl_call *call,
                                   const char *site);
RDL_CALL rdl_status rdl_exchange_at(rdl_world *world, rdl_group group,
                                    const rdl_transfer *transfers, int count,
                                    const rdl_call *call, const char *site);

#ifdef __cplusplus
}
#endif

#ifndef RDL_NO_SITES
#define rdl_barrier(...) rdl_barrier_at(__VA_ARGS__, RDL_HERE)
#define rdl_broadcast(...) rdl_broadcast_at(__VA_ARGS__, RDL_HERE)
#define rdl_reduce(...) rdl_reduce_at(__VA_ARGS__, RDL_HERE)
#define rdl_all_reduce(...) rdl_all_reduce_at(__VA_ARGS__, RDL_HERE)
#define rdl_gather(...) rdl_gather_at(__VA_ARGS__, RDL_HERE)
#define rdl_scatter(...) rdl_scatter_at(__VA_ARGS__, RDL_HERE)
#define rdl_all_gather(...) rdl_all_gather_at(__VA_ARGS__, RDL_HERE)
#define rdl_reduce_scatter(...) rdl_reduce_scatter_at(__VA_ARGS__, RDL_HERE)
#define rdl_all_to_all(...) rdl_all_to_all_at(__VA_ARGS__, RDL_HERE)
#define rdl_all_gather_v(...) rdl_all_gather_v_at(__VA_ARGS__, RDL_HERE)
#define rdl_reduce_scatter_v(...) rdl_reduce_scatter_v_at(__VA_ARGS__, RDL_HERE)
#define rdl_all_to_all_v(...) rdl_all_to_all_v_at(__VA_ARGS__, RDL_HERE)
#define rdl_send(...) rdl_send_at(__VA_ARGS__, RDL_HERE)
#define rdl_receive(...) rdl_receive_at(__VA_ARGS__, RDL_HERE)
#define rdl_exchange(...) rdl_exchange_at(__VA_ARGS__, RDL_HERE)
#endif
#endif
