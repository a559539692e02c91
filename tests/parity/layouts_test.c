/* The debug model over layouts of ranks, ten steps of 8 rows of 256 tokens: the
 * whole kind of what tests/llama/layouts_test.c checks on a tiny one. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/curve.h"

/* config, length and rows are filled in. */
static const rdl_test_layout layouts[] = {
    { .microbatches = 2, .recompute = LLAMA_RECOMPUTE_FULL },
    { .context = 2, .microbatches = 2 },
    { .shard = 2, .recompute = LLAMA_RECOMPUTE_FULL },
    { .replicate = 2 },
    { .context = 4 },
    { .context = 4, .whole = true, .recompute = LLAMA_RECOMPUTE_FULL },
    { .shard = 4, .microbatches = 2 },
    { .replicate = 2, .context = 2 },
};

static rdl_test_curve curve_of(const llama_blas *blas, rdl_test_layout layout)
{
    layout.config = llama_config_named("llama3-debug");
    layout.length = 256;
    layout.rows = 8;
    return rdl_test_curve_of(blas, &layout, RDL_TEST_STEPS, true);
}

RDL_TEST(the_debug_model_trains_alike_on_every_layout)
{
    llama_blas *blas = rdl_test_blas();
    rdl_test_curve one = curve_of(blas, (rdl_test_layout){ 0 });

    CHECK(one.step[0].loss > 7.5 && one.step[0].loss < 8.5);
    CHECK(one.step[RDL_TEST_STEPS - 1].loss < one.step[0].loss);
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        rdl_test_curve c = curve_of(blas, layouts[i]);

        rdl_test_curve_check(&layouts[i], &c, &one);
    }
    llama_blas_close(blas);
}

RDL_TEST(the_debug_model_gives_the_same_bits_again)
{
    llama_blas *blas = rdl_test_blas();
    rdl_test_layout layout = { .context = 4 };
    rdl_test_curve a = curve_of(blas, layout), b = curve_of(blas, layout);

    CHECK(rdl_test_same_bits(&a, &b, sizeof a));
    llama_blas_close(blas);
}
