/* What follows from the options: the layout of ranks, and how the rows of a step
 * are dealt to them. Decided alike on every rank, and before there is one.
 *
 * Ranks stand as dp_replicate x dp_shard x cp, the last fastest. A step has `rows`
 * rows of `length` tokens; row b of step s (from 0) is row s * rows + b of the
 * data, whatever the layout. Data-parallel rank d (of dp = dp_replicate *
 * dp_shard) takes the d-th contiguous rows / dp of them, in `accumulate`
 * microbatches, and so do all cp ranks of it. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_CLI_TRAIN_PLAN_H
#define RDL_CLI_TRAIN_PLAN_H

#include "train/options.h"
#include "train/trouble.h"

#include "llama/llama.h"

typedef struct train_plan {
    const llama_config *config;
    int ranks;
    int replicate;
    int shard;
    int context;
    int dp;
    bool fsdp;
    int64_t length;
    int64_t rows;       /* of a step, over all ranks */
    int64_t accumulate; /* microbatches of a rank in a step */
    int64_t microbatch; /* rows in each */
    llama_recompute recompute;
    llama_schedule schedule;
    llama_adamw adamw;
} train_plan;

/* world_size: of the job that this process is a rank of; 0: none yet. */
bool plan_make(train_plan *p, const train_options *o, int world_size,
               trouble *t);

/* The number, in the data, of the first row of microbatch m (from 0) of step s
 * (from 0) for this rank; plan->microbatch of them follow. */
int64_t plan_first_row(const train_plan *p, int rank, int64_t step,
                       int64_t microbatch);

#endif
