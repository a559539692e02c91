/* Opening a BLAS, and its products. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "llama/blas.h"
#include "support/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { M = 23, N = 37, K = 41, STRIDE = 50 };

typedef struct matrices {
    float a[STRIDE * STRIDE], b[STRIDE * STRIDE], c[STRIDE * STRIDE];
} matrices;

static void fill(matrices *m)
{
    for (size_t i = 0; i < STRIDE * STRIDE; i++) {
        m->a[i] = (float)(i * 7 % 15) - 7;
        m->b[i] = (float)(i * 11 % 13) - 6;
        m->c[i] = (float)(i % 5);
    }
}

static void check(const matrices *m, bool a_turned, bool b_turned, float *was)
{
    for (size_t i = 0; i < M; i++)
        for (size_t j = 0; j < N; j++) {
            float sum = 0;

            for (size_t k = 0; k < K; k++)
                sum += m->a[a_turned ? k * STRIDE + i : i * STRIDE + k] *
                       m->b[b_turned ? j * STRIDE + k : k * STRIDE + j];
            CHECK(m->c[i * STRIDE + j] == 2 * sum + was[i * STRIDE + j]);
        }
    for (size_t i = 0; i < STRIDE; i++)
        CHECK(m->c[i * STRIDE + N] == was[i * STRIDE + N]);
}

RDL_TEST(products_of_matrices_and_their_transposes_are_right)
{
    llama_blas *blas = rdl_test_blas();
    matrices m, was;

    fill(&m);
    fill(&was);
    llama_product_nn(blas, M, N, K, 2, (llama_in){ m.a, STRIDE },
                     (llama_in){ m.b, STRIDE }, 1, (llama_out){ m.c, STRIDE });
    check(&m, false, false, was.c);
    fill(&m);
    llama_product_nt(blas, M, N, K, 2, (llama_in){ m.a, STRIDE },
                     (llama_in){ m.b, STRIDE }, 1, (llama_out){ m.c, STRIDE });
    check(&m, false, true, was.c);
    fill(&m);
    llama_product_tn(blas, M, N, K, 2, (llama_in){ m.a, STRIDE },
                     (llama_in){ m.b, STRIDE }, 1, (llama_out){ m.c, STRIDE });
    check(&m, true, false, was.c);
    llama_blas_close(blas);
}

RDL_TEST(what_was_there_is_not_read_if_it_is_not_kept)
{
    llama_blas *blas = rdl_test_blas();
    matrices m;

    fill(&m);
    for (size_t i = 0; i < STRIDE * STRIDE; i++)
        m.c[i] = NAN;
    llama_product_nn(blas, M, N, K, 1, (llama_in){ m.a, STRIDE },
                     (llama_in){ m.b, STRIDE }, 0, (llama_out){ m.c, STRIDE });
    for (size_t i = 0; i < M; i++)
        for (size_t j = 0; j < N; j++)
            CHECK(isfinite(m.c[i * STRIDE + j]));
    llama_blas_close(blas);
}

typedef struct crowd {
    const llama_blas *blas;
} crowd;

static void multiply_often(int rank, int size, void *arg)
{
    const crowd *c = arg;
    matrices m, was;

    (void)size;
    for (int i = 0; i < 300; i++) {
        fill(&m);
        fill(&was);
        m.a[0] = was.a[0] = (float)rank;
        llama_product_nn(c->blas, M, N, K, 2, (llama_in){ m.a, STRIDE },
                         (llama_in){ m.b, STRIDE }, 1,
                         (llama_out){ m.c, STRIDE });
        check(&m, false, false, was.c);
    }
}

RDL_TEST(threads_multiply_at_once)
{
    llama_blas *blas = rdl_test_blas();
    crowd c = { blas };

    rdl_test_threads(4, multiply_often, &c);
    llama_blas_close(blas);
}

RDL_TEST(the_library_says_its_name)
{
    llama_blas *blas = rdl_test_blas();

    CHECK(strlen(llama_blas_name(blas)) > 3);
    llama_blas_close(blas);
}

RDL_TEST(a_library_that_is_not_there_is_named)
{
    llama_error error = { "" };
    llama_blas *blas;

    setenv("RADDLE_BLAS", "/nowhere/libnone.so", 1);
    CHECK_STATUS(llama_blas_open(&blas, &error), RDL_UNSUPPORTED);
    CHECK_HAS(error.text, "RADDLE_BLAS=/nowhere/libnone.so: ");
}

RDL_TEST(a_library_that_is_no_blas_is_refused)
{
    llama_error error = { "" };
    llama_blas *blas;

    setenv("RADDLE_BLAS", "libm.so.6", 1);
    CHECK_STATUS(llama_blas_open(&blas, &error), RDL_UNSUPPORTED);
    CHECK_HAS(error.text, "is no BLAS: it has no sgemm_");
}

RDL_TEST(the_users_choice_of_kernel_stays)
{
    llama_blas *blas;

    setenv("OPENBLAS_CORETYPE", "Prescott", 1);
    blas = rdl_test_blas();
    CHECK_TEXT(getenv("OPENBLAS_CORETYPE"), "Prescott");
    llama_blas_close(blas);
}
