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
 * Threads: one at a time per unit. Ownership: the unit owns every buffer it shows;
 * pointers from full() end with free(), from gradient() with reduce(). */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RADDLE_FSDP_H
#define RADDLE_FSDP_H

#include <raddle/group.h>
#include <raddle/status.h>
#include <raddle/world.h>
#include <stdbool.h>
#include <stddef.h>

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

/* shard and replicate: groups this rank is in; groups of one for "not".
 * RDL_INVALID, RDL_NO_MEMORY; what the first use of a group may answer. */
RDL_CALL rdl_status rdl_fsdp_create(rdl_world *world, rdl_group shard,
                                    rdl_group replicate,
                                    const rdl_parameter *parameters, int count,
                                    rdl_fsdp **out);
RDL_API void rdl_fsdp_destroy(rdl_fsdp *unit);

/* This rank's rows of parameter i: [*first_row, + *rows). */
RDL_API void rdl_fsdp_rows(const rdl_fsdp *unit, int i, size_t *first_row,
                           size_t *rows);

/* Its values, and its summed gradient; rows * columns elements, contiguous. Valid
 * while the unit lives. All zero at first. */
RDL_API float *rdl_fsdp_shard(rdl_fsdp *unit, int i);
RDL_API float *rdl_fsdp_shard_gradient(rdl_fsdp *unit, int i);

/* All-gathers the unit, if it is not gathered. Collective over shard. */
RDL_CALL rdl_status rdl_fsdp_gather(rdl_fsdp *unit);

/* The whole of parameter i while gathered, else NULL. */
RDL_API const float *rdl_fsdp_full(const rdl_fsdp *unit, int i);

/* Lets the gathered values go. Local. */
RDL_API void rdl_fsdp_free(rdl_fsdp *unit);

/* The whole gradient of parameter i on this rank, to be added to; zero at first
 * and after reduce. NULL: out of memory. Kept over microbatches until reduce. */
RDL_API float *rdl_fsdp_gradient(rdl_fsdp *unit, int i);

/* Adds the sum of everyone's gradients to shard_gradient, and lets the whole ones
 * go. Collective over shard, then over replicate. */
RDL_CALL rdl_status rdl_fsdp_reduce(rdl_fsdp *unit);

/* shard_gradient of all parameters becomes zero. */
RDL_API void rdl_fsdp_zero(rdl_fsdp *unit);

/* *square becomes the sum over this rank's shards of the squares of shard_gradient,
 * in double, to be summed over shard (and not over replicate) for the norm. */
RDL_API void rdl_fsdp_square(const rdl_fsdp *unit, double *square);

#ifdef __cplusplus
}
#endif
#endif
