/* Reduction: combining the same element of several buffers into one, as
 * raddle/collective.h says for each dtype and reduction.
 *
 * Bits: element i of output is inputs[0][i], then inputs[1][i] combined into it,
 * then inputs[2][i], whatever the alignment, the count, the place of i and the
 * processor's vectors; it is rounded to the dtype at the end, after AVG's division.
 * A NaN that SUM, PRODUCT, AVG or PREMUL_SUM computes has all bits set, whichever
 * NaNs went in. One buffer alone is copied, but for PREMUL_SUM, and for BOOL,
 * whose bytes become 0 and 1.
 * MIN and MAX take the earliest of equal values (of -0.0 and +0.0), and the
 * earliest NaN where there is one, in all its bits. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_COMM_REDUCE_H
#define RDL_COMM_REDUCE_H

#include "base/isa.h"

#include <raddle/collective.h>

/* How. */
typedef struct rdl_reducer {
    rdl_dtype dtype;
    rdl_reduction reduction;
    double factor;  /* of PREMUL_SUM; rounded to float32 but for FLOAT64 */
    rdl_isa isa;    /* one that runs; the bits are the same with all */
    bool streaming; /* the result is stored past the caches (base/copy.h) */
} rdl_reducer;

/* Whether dtype has the reduction; false for a number that is none. */
bool rdl_can_reduce(rdl_dtype dtype, rdl_reduction reduction);

/* inputs: n buffers, 1..RDL_MAX_RANKS, of count elements. output is one of them,
 * or overlaps none. All of any alignment; NULL where count is 0.
 * Each input is read once and output written once, in blocks that stay in the
 * cache. */
void rdl_combine(const rdl_reducer *r, void *output, const void *const *inputs,
                 int n, size_t count);

#endif
