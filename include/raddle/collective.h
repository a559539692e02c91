/* Collectives: calls that all ranks of a group make together.
 *
 * Counts are elements, never bytes. Roots are group ranks (raddle/group.h). All
 * calls here block until this rank's part is done.
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
 * RDL_MISMATCH, RDL_TIMEOUT, RDL_PEER and RDL_REVOKED end the group: this call
 * and every later one on it return the first cause, on every member, with its
 * sentence. Other groups go on.
 * Bits: every rank gets the same bits, whatever the timing: each element is
 * combined in the order of the group's list, ((x0 + x1) + x2) + ... */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RADDLE_COLLECTIVE_H
#define RADDLE_COLLECTIVE_H

#include <raddle/group.h>
#include <raddle/status.h>
#include <raddle/world.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* name, size in bytes, C type */
#define RDL_DTYPE_MAP(X)                                                       \
    X(UINT8, uint8, 1, uint8_t)                                                \
    X(INT32, int32, 4, int32_t)                                                \
    X(INT64, int64, 8, int64_t)                                                \
    X(FLOAT32, float32, 4, float)                                              \
    X(FLOAT64, float64, 8, double)

typedef enum rdl_dtype {
#define X(name, text, bytes, type) RDL_##name,
    RDL_DTYPE_MAP(X)
#undef X
} rdl_dtype;

/* SUM of integers wraps. MIN and MAX give NaN where any input is NaN (the first in
 * the group's order), and of -0.0 and +0.0 the first. AVG is the sum divided by the
 * number of ranks; of integers the exact sum divided, truncated toward zero. */
#define RDL_REDUCTION_MAP(X) X(SUM, sum) X(MIN, min) X(MAX, max) X(AVG, avg)

typedef enum rdl_reduction {
#define X(name, text) RDL_##name,
    RDL_REDUCTION_MAP(X)
#undef X
} rdl_reduction;

/* Bytes of one element; 0 for a number that is no dtype. */
RDL_API size_t rdl_dtype_bytes(rdl_dtype dtype);

/* What one call may want differently. Zero is the default of every field; a NULL
 * pointer is all defaults. */
typedef struct rdl_call {
    int64_t timeout_ms; /* 0: the world's timeout_ms */
    const char *caller; /* for raddle/trace.h: who makes the call, and for what */
} rdl_call;

/* Returns when every member has entered. */
RDL_CALL rdl_status rdl_barrier(rdl_world *world, rdl_group group,
                                const rdl_call *call);

/* buffer: count elements; read on root, written on all others. */
RDL_CALL rdl_status rdl_broadcast(rdl_world *world, rdl_group group,
                                  void *buffer, size_t count, rdl_dtype dtype,
                                  int root, const rdl_call *call);

/* input and output: count elements each. In place: output == input. */
RDL_CALL rdl_status rdl_all_reduce(rdl_world *world, rdl_group group,
                                   const void *input, void *output, size_t count,
                                   rdl_dtype dtype, rdl_reduction reduction,
                                   const rdl_call *call);

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

#ifdef __cplusplus
}
#endif
#endif
