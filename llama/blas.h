/* Matrix products in row-major order, by a BLAS opened at run time.
 *
 * Threads: any. Some libraries without threads of their own hand one buffer to
 * two callers at once (Debian's serial OpenBLAS 0.3.21 does, and computes
 * wrongly); with those, one product runs at a time. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LLAMA_BLAS_H
#define LLAMA_BLAS_H

#include "llama/llama.h"

/* A matrix: element (i, j) at values[i * stride + j]. */
typedef struct llama_in {
    const float *values;
    size_t stride;
} llama_in;

typedef struct llama_out {
    float *values;
    size_t stride;
} llama_out;

/* c (m x n) = scale * a' b' + keep * c, where a' is m x k and b' is k x n.
 * In the name, n is a matrix as it lies and t its transpose: llama_product_nt
 * reads a as m x k and b as n x k. With keep 0 nothing is read of c. */
void llama_product_nn(const llama_blas *blas, size_t m, size_t n, size_t k,
                      float scale, llama_in a, llama_in b, float keep,
                      llama_out c);
void llama_product_nt(const llama_blas *blas, size_t m, size_t n, size_t k,
                      float scale, llama_in a, llama_in b, float keep,
                      llama_out c);
void llama_product_tn(const llama_blas *blas, size_t m, size_t n, size_t k,
                      float scale, llama_in a, llama_in b, float keep,
                      llama_out c);

#endif
