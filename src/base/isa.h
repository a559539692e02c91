/* Which vectors a processor has: code that is compiled once for each kind is chosen
 * by this at run time. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BASE_ISA_H
#define RDL_BASE_ISA_H

#include "base/status.h"

#include <stdbool.h>

/* The widest last. */
typedef enum rdl_isa {
    RDL_ISA_BASE,  /* what every processor of the architecture has */
    RDL_ISA_AVX2,  /* 32 bytes, with conversions of float16 */
    RDL_ISA_AVX512 /* 64 bytes: F, BW, DQ and VL, and all of AVX2's */
} rdl_isa;

#define RDL_ISAS 3

/* "base", "avx2", "avx512"; static. */
const char *rdl_isa_name(rdl_isa isa);

/* Whether this processor, under this system, runs it. */
bool rdl_isa_runs(rdl_isa isa);

/* The widest that runs. */
rdl_isa rdl_isa_best(void);

/* The one of that name. RDL_INVALID: there is none; RDL_UNSUPPORTED: it does not run
 * here. *out is then untouched. */
rdl_status rdl_isa_find(const char *name, rdl_isa *out);

#endif
