/* What tests look at behind a unit. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_PARALLEL_FSDP_H
#define RDL_PARALLEL_FSDP_H

#include "parallel/pool.h"

#include <raddle/fsdp.h>

/* Where the unit gets its whole parameters and gradients from. */
rdl_pool *rdl_fsdp_pool(const rdl_fsdp *unit);

#endif
