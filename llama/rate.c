/* How fast matrix products are, all else left out. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "llama/blas.h"
#include "llama/error.h"

#include <stdlib.h>
#include <time.h>

/* A block's w1 on a batch of tokens. */
enum { ROWS = 512, COLUMNS = 768, INNER = 256 };

#define LEAST_SECONDS 0.05

/* Of this thread: others may be using its core. */
static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void multiply(const llama_blas *blas, float *a, float *b, float *c)
{
    llama_product_nt(blas, ROWS, COLUMNS, INNER, 1, (llama_in){ a, INNER },
                     (llama_in){ b, INNER }, 0, (llama_out){ c, COLUMNS });
}

rdl_status llama_blas_rate(const llama_blas *blas, double *rate,
                           llama_error *error)
{
    const size_t a_count = ROWS * INNER, b_count = COLUMNS * INNER;
    float *a = calloc(a_count + b_count + ROWS * COLUMNS, sizeof *a);
    float *b, *c;
    double start, taken;
    int times = 0;

    if (a == NULL)
        return llama_fail(error, RDL_NO_MEMORY, "BLAS: out of memory");
    b = a + a_count;
    c = b + b_count;
    multiply(blas, a, b, c); /* which touches all of it */
    start = seconds();
    do {
        multiply(blas, a, b, c);
        times++;
        taken = seconds() - start;
    } while (taken < LEAST_SECONDS);
    free(a);
    *rate = 2.0 * ROWS * COLUMNS * INNER * times / taken;
    return RDL_OK;
}
