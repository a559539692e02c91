/* Fully sharded data parallel: parameters that live in shards, are gathered while
 * they are used, and whose gradients are summed back into shards.
 *
 * A *unit* is the parameters that are gathered together (a block of a model).
 * Each is a float32 tensor of rows; rank r of the shard group's n keeps the rows
 * of chunk r of dim 0, chunks of ceil(rows / n) rows, so the last ranks may have
 * fewer or none (and still take part in every call). With a shard group of one
 * every rank keeps all rows, and the replicate group alone sums gradients: plain
 * data parallelism. With both it is hybrid sharding.
 *
 * Gradients are SUMMED over both groups, never averaged: divide the loss by the
 * global number of tokens.
 *
 * One unit's life in a step, the same on all ranks and in the same order:
 *     gather; forward with full(); free; ... gather; backward into gradient();
 *     free; reduce; ... optimizer on shard() and shard_gradient(); zero
 *
 * Memory: a unit keeps its shard and the shard's gradient. What it gathers, and
 * whole gradients, it takes when wanted and gives back. Units of a model should
 * share (rdl_fsdp_share) what is given back, so that it is used again without a
 * page fault; then the largest two units, gathered, are about what a model needs.
 *
 * Threads: one at a time per unit. Ownership: the unit owns every buffer it shows;
 * pointers from full() end with free(), from gradient() with reduce(). Buffers
 * begin on cache lines. Destroy units before the world is closed. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RADDLE_FSDP_H
#define RADDLE_FSDP_H

#include <raddle/group.h>
#include <raddle/status.h>
#include <raddle/stream.h>
#include <raddle/world.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* rows x columns elements; a vector has columns 1. */
typedef struct rdl_parameter {
    const char *name; /* copied */
    size_t rows;      /* at least 1 */
    size_t columns;   /* at least 1 */
} rdl_parameter;

typedef struct rdl_fsdp rdl_fsdp;

/* shard and replicate: groups this rank is in, with no other rank in common;
 * groups of one for "not". Collective over shard, then over replicate, where they
 * have more ranks than one: RDL_MISMATCH if names or sizes are not the same on all
 * ranks ("ranks 0 and 3 give parameters of other names or sizes").
 * RDL_INVALID, with the numbers; RDL_NO_MEMORY; what a collective may answer. */
RDL_CALL rdl_status rdl_fsdp_create(rdl_world *world, rdl_group shard,
                                    rdl_group replicate,
                                    const rdl_parameter *parameters, int count,
                                    rdl_fsdp **out);
RDL_API void rdl_fsdp_destroy(rdl_fsdp *unit);

/* From now on unit takes and gives back its large buffers where with does, which
 * keeps them for the next of all that share it. A unit that shares with none gives
 * them back to the system. They are freed with the last unit; any order will do.
 * RDL_STATE: unit is gathered or has a whole gradient. Local. */
RDL_CALL rdl_status rdl_fsdp_share(rdl_fsdp *unit, rdl_fsdp *with);

/* This rank's rows of parameter i: [*first_row, + *rows). A rank without rows has
 * *first_row at the end. For an i that there is not both become 0, and functions
 * that return a pointer return NULL, with a sentence in rdl_error_detail(). */
RDL_API void rdl_fsdp_rows(const rdl_fsdp *unit, int i, size_t *first_row,
                           size_t *rows);

/* Its values, and its summed gradient; rows * columns elements, contiguous. Valid
 * while the unit lives. All zero at first. */
RDL_API float *rdl_fsdp_shard(rdl_fsdp *unit, int i);
RDL_API float *rdl_fsdp_shard_gradient(rdl_fsdp *unit, int i);

/* All-gathers the unit, if it is not gathered, by one rdl_all_gather over shard;
 * with a shard group of one, local and without a copy. What is gathered does not
 * follow later changes of shards: free and gather again after the optimizer. */
RDL_CALL rdl_status rdl_fsdp_gather(rdl_fsdp *unit);

/* The whole of parameter i, rows * columns, while gathered, else NULL. */
RDL_API const float *rdl_fsdp_full(const rdl_fsdp *unit, int i);

/* Lets the gathered values go. Local. */
RDL_API void rdl_fsdp_free(rdl_fsdp *unit);

/* The whole gradient of parameter i on this rank, to be added to; zero at first
 * and after reduce. NULL: out of memory. Kept over microbatches until reduce. */
RDL_API float *rdl_fsdp_gradient(rdl_fsdp *unit, int i);

/* Adds the sum of everyone's gradients to shard_gradient, and lets the whole ones
 * go: one rdl_reduce_scatter over shard, then one rdl_all_reduce over replicate. A
 * rank that asked for no gradient gives zeros. Whether the unit is gathered does
 * not matter; freed, it needs less memory. On failure shard_gradient is unchanged,
 * and the whole gradients are undefined but after RDL_NO_MEMORY. */
RDL_CALL rdl_status rdl_fsdp_reduce(rdl_fsdp *unit);

/* The same beside the caller, on streams of the world; the calls return when all is
 * issued. Order: on one group, what is issued first runs first (raddle/work.h), so
 * all ranks issue alike. */

/* Begins to gather the unit on the stream, if it is not gathered; rdl_fsdp_gather
 * then waits for it. NULL: does nothing. */
RDL_CALL rdl_status rdl_fsdp_prefetch(rdl_fsdp *unit, rdl_stream *stream);

/* As rdl_fsdp_reduce, on the stream (NULL: here). The gradient is the unit's from
 * now on; rdl_fsdp_gradient gives a fresh one. Settle before shard_gradient is
 * read, and before the stream is destroyed. */
RDL_CALL rdl_status rdl_fsdp_reduce_on(rdl_fsdp *unit, rdl_stream *stream);

/* Waits for what reduce_on began. */
RDL_CALL rdl_status rdl_fsdp_settle(rdl_fsdp *unit);

/* Nanoseconds, since the unit was created: that its gathers and reductions on
 * streams took from their turn to their end, and that gather, reduce_on and settle
 * waited for them. What was not waited for was hidden. */
RDL_API void rdl_fsdp_times(const rdl_fsdp *unit, int64_t *took,
                            int64_t *waited);

/* shard_gradient of all parameters becomes zero. */
RDL_API void rdl_fsdp_zero(rdl_fsdp *unit);

/* *square becomes the sum over this rank's shards of the squares of shard_gradient,
 * in double, to be summed over shard (and not over replicate) for the norm. */
RDL_API void rdl_fsdp_square(const rdl_fsdp *unit, double *square);

#ifdef __cplusplus
}
#endif
#endif
