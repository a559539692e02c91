/* What tests and benchmarks look at behind a unit. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_PARALLEL_FSDP_H
#define RDL_PARALLEL_FSDP_H

#include "parallel/pool.h"

#include <raddle/fsdp.h>

/* Where the unit gets its whole parameters and gradients from. */
rdl_pool *rdl_fsdp_pool(const rdl_fsdp *unit);

/* For bench/race: from now on gradients are summed over this lane and not over that
 * on which parameters are gathered. It has the same ranks in the same order. */
void rdl_fsdp_sum_over(rdl_fsdp *unit, rdl_group lane);

#endif
