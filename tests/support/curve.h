/* What a training on a layout of ranks says, step by step. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_SUPPORT_CURVE_H
#define RDL_SUPPORT_CURVE_H

#include "support/model.h"

#define RDL_TEST_STEPS 10

typedef struct rdl_test_curve {
    int steps;
    llama_result step[RDL_TEST_STEPS]; /* of rank 0 */
} rdl_test_curve;

/* Trains steps steps on as many ranks as the layout has. */
rdl_test_curve rdl_test_curve_of(const llama_blas *blas,
                                 const rdl_test_layout *layout, int steps,
                                 bool processes);

/* Losses and norms are those of expected to 1e-4 of them. */
void rdl_test_curve_check(const rdl_test_layout *layout,
                          const rdl_test_curve *actual,
                          const rdl_test_curve *expected);

#endif
