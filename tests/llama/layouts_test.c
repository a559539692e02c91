/* The same training over every layout of ranks. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/curve.h"

#define STEPS 6

static const rdl_test_layout alone = { 0 };
static const rdl_test_layout alone_with_six = { .rows = 6 };

static const rdl_test_layout layouts[] = {
    { .microbatches = 2 },
    { .recompute = LLAMA_RECOMPUTE_FULL, .microbatches = 4 },
    { .replicate = 2 },
    { .shard = 2 },
    { .context = 2 },
    { .shard = 2, .microbatches = 2, .recompute = LLAMA_RECOMPUTE_SELECTIVE },
    { .context = 4 },
    { .context = 4, .recompute = LLAMA_RECOMPUTE_FULL, .microbatches = 2 },
    { .context = 4, .whole = true },
    { .shard = 4 },
    { .replicate = 4 },
    { .replicate = 2, .context = 2, .recompute = LLAMA_RECOMPUTE_FULL },
    { .replicate = 2, .context = 2, .whole = true, .microbatches = 2 },
    { .shard = 2, .context = 2, .microbatches = 2 },
    { .replicate = 2, .shard = 2, .recompute = LLAMA_RECOMPUTE_SELECTIVE },
    { .shard = 3, .rows = 6 },
};

#define LAYOUTS (sizeof layouts / sizeof layouts[0])

static void check_layouts(bool processes)
{
    llama_blas *blas = rdl_test_blas();
    rdl_test_curve four = rdl_test_curve_of(blas, &alone, STEPS, false);
    rdl_test_curve six = rdl_test_curve_of(blas, &alone_with_six, STEPS, false);

    for (size_t i = 0; i < LAYOUTS; i++) {
        rdl_test_curve c =
            rdl_test_curve_of(blas, &layouts[i], STEPS, processes);

        rdl_test_curve_check(&layouts[i], &c,
                             layouts[i].rows == 6 ? &six : &four);
    }
    llama_blas_close(blas);
}

RDL_TEST(every_layout_of_threads_trains_alike)
{
    check_layouts(false);
}

RDL_TEST(every_layout_of_processes_trains_alike)
{
    check_layouts(true);
}

RDL_TEST(the_same_layout_gives_the_same_bits)
{
    llama_blas *blas = rdl_test_blas();

    for (size_t i = 0; i < LAYOUTS; i++) {
        rdl_test_curve a = rdl_test_curve_of(blas, &layouts[i], STEPS, false);
        rdl_test_curve b =
            rdl_test_curve_of(blas, &layouts[i], STEPS, i % 2 == 0);

        if (!rdl_test_same_bits(&a, &b, sizeof a))
            RDL_TEST_FAIL("layout %zu: not the same bits", i);
    }
    llama_blas_close(blas);
}
