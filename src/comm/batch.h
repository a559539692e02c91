/* The inside of batches: operations that have their tickets and wait for the end of
 * the batch to start. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_COMM_BATCH_H
#define RDL_COMM_BATCH_H

#include "comm/op.h"

#include <raddle/work.h>

/* Threads: one at a time. */
struct rdl_batch {
    rdl_world *world;
    rdl_op *ops;
    int count;
    int room;
    rdl_status *statuses;
    char **sentences;
};

void rdl_batch_init(rdl_batch *batch, rdl_world *world);

/* Frees what it holds; tickets that are still out are given up. */
void rdl_batch_fini(rdl_batch *batch);

/* Room for one more; RDL_NO_MEMORY. */
rdl_status rdl_batch_reserve(rdl_batch *batch);

/* Where the next operation goes; counted by rdl_batch_add. */
static inline rdl_op *rdl_batch_next(rdl_batch *batch)
{
    return &batch->ops[batch->count];
}

void rdl_batch_add(rdl_batch *batch);

/* Only the first count stay; the tickets of the others are given up. */
void rdl_batch_cut(rdl_batch *batch, int count);

/* Runs all to their ends on this thread; the first failure, with its sentence. */
rdl_status rdl_batch_run(rdl_batch *batch);

/* RDL_OK if batch is one of world. */
rdl_status rdl_batch_check(const rdl_batch *batch, const rdl_world *world);

#endif
