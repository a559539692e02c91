/* Reduction: combining the same element of several buffers into one.
 *
 * Bits: element i of output is inputs[0][i], then inputs[1][i] combined into it,
 * then inputs[2][i], whatever the alignment, the count and the place of i.
 * SUM of integers wraps. A NaN that SUM or AVG of two or more buffers gives has
 * all bits set, whichever NaNs went in.
 * MIN and MAX take the earliest of equal values (of -0.0 and +0.0), and the
 * earliest NaN where there is one, in all its bits.
 * AVG of floating point is the sum divided by n, in the type; of integers the
 * exact sum divided by n, truncated toward zero. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_COMM_REDUCE_H
#define RDL_COMM_REDUCE_H

#include <raddle/collective.h>

/* inputs: n buffers, 1..RDL_MAX_RANKS, of count elements. output is one of them,
 * or overlaps none. All of any alignment; NULL where count is 0.
 * Each input is read once and output written once, in blocks that stay in the
 * cache. */
void rdl_combine(void *output, const void *const *inputs, int n, size_t count,
                 rdl_dtype dtype, rdl_reduction reduction);

#endif
