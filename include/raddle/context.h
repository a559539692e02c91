/* Context parallelism: one sequence over several ranks, by all-gathering keys and
 * values.
 *
 * Balance: the sequence is cut into 2n chunks; rank r has chunks r and 2n-1-r
 * ("head and tail"), so that causal attention costs every rank the same. For n = 1
 * it is the whole sequence in order. A length that 2n does not divide is
 * RDL_INVALID, with the numbers. Masks and positions go by original indices.
 *
 * Threads: one at a time per group. All buffers are the caller's. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RADDLE_CONTEXT_H
#define RADDLE_CONTEXT_H

#include <raddle/group.h>
#include <raddle/status.h>
#include <raddle/world.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The tokens of rank's part of length tokens over size ranks, as original
 * indices: length / size of them, ascending. */
RDL_CALL rdl_status rdl_context_indices(int rank, int size, size_t length,
                                        size_t *indices);

/* local: this rank's length / n rows of columns floats, in the order of its
 * indices; whole: length rows in the ORIGINAL order of tokens. Collective: one
 * rdl_all_gather, which answers for both; no memory is taken. */
RDL_CALL rdl_status rdl_context_gather(rdl_world *world, rdl_group group,
                                       const float *local, float *whole,
                                       size_t length, size_t columns);

/* The adjoint: whole is this rank's gradient of every row, in original order;
 * local becomes the sum over ranks of this rank's rows. Collective: one
 * rdl_reduce_scatter, of a copy of whole; RDL_NO_MEMORY. */
RDL_CALL rdl_status rdl_context_scatter(rdl_world *world, rdl_group group,
                                        const float *whole, float *local,
                                        size_t length, size_t columns);

#ifdef __cplusplus
}
#endif
#endif
