/* Elements of any dtype, one at a time, and what they combine to: a reference
 * that shares nothing with the library, for tests that compare. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_SUPPORT_VALUES_H
#define RDL_SUPPORT_VALUES_H

#include <raddle/collective.h>
#include <stdbool.h>

/* Counts of the lists in raddle/collective.h. */
#define RDL_TEST_PLUS_ONE(...) +1
#define RDL_TEST_DTYPES (0 RDL_DTYPE_MAP(RDL_TEST_PLUS_ONE))
#define RDL_TEST_REDUCTIONS (0 RDL_REDUCTION_MAP(RDL_TEST_PLUS_ONE))

/* "bfloat16", "premul_sum" */
const char *rdl_test_dtype_name(rdl_dtype dtype);
const char *rdl_test_reduction_name(rdl_reduction reduction);

/* Whether the header defines the pair. */
bool rdl_test_reduces(rdl_dtype dtype, rdl_reduction reduction);

/* The element at `at`, of any alignment, becomes x: of floating point rounded, of
 * integers (and bool, whose bytes are no better than others here) the low bits. A
 * NaN has all bits set. */
void rdl_test_put(void *at, rdl_dtype dtype, double x);

/* What is at `at`, as near as a double comes. */
double rdl_test_get(const void *at, rdl_dtype dtype);

/* The element at `at` becomes what n elements combine to, to the bit. factor: of
 * PREMUL_SUM. */
void rdl_test_combine(void *at, const void *const *elements, int n,
                      rdl_dtype dtype, rdl_reduction reduction, double factor);

#endif
