/* The same training over every layout of ranks. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/model.h"
#include "support/worlds.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define STEPS 6

typedef struct curve {
    llama_result step[STEPS];
} curve;

typedef struct training {
    rdl_test_layout layout;
    const llama_blas *blas;
    curve *curve; /* shared with forked ranks; rank 0 writes */
} training;

static void train(rdl_world *world, void *arg)
{
    training *t = arg;
    rdl_test_model m = rdl_test_model_open(world, t->blas, &t->layout);

    for (int i = 0; i < STEPS; i++) {
        llama_result result = rdl_test_model_step(&m, i);

        if (rdl_world_rank(world) == 0)
            t->curve->step[i] = result;
    }
    rdl_test_model_close(&m);
}

static int ranks_of(const rdl_test_layout *l)
{
    int n = l->replicate ? l->replicate : 1;

    n *= l->shard ? l->shard : 1;
    return n * (l->context ? l->context : 1);
}

static curve curve_of(const llama_blas *blas, rdl_test_layout layout,
                      bool processes)
{
    rdl_test_job job = { .size = ranks_of(&layout), .processes = processes };
    training t = { .layout = layout, .blas = blas };
    curve result;

    t.curve = mmap(NULL, sizeof *t.curve, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(t.curve != MAP_FAILED);
    rdl_test_worlds(&job, train, &t);
    result = *t.curve;
    munmap(t.curve, sizeof *t.curve);
    return result;
}

static void check_near(const char *what, int step, double actual,
                       double expected)
{
    if (!(fabs(actual - expected) <= 1e-4 * fabs(expected)))
        RDL_TEST_FAIL("step %d: %s %.9g, on one rank %.9g", step + 1, what,
                      actual, expected);
}

static void check_curve(const rdl_test_layout *l, const curve *actual,
                        const curve *expected)
{
    for (int i = 0; i < STEPS; i++) {
        const llama_result *a = &actual->step[i], *e = &expected->step[i];
        char what[128];

        snprintf(what, sizeof what,
                 "(replicate %d, shard %d, context %d, %d microbatches) loss",
                 l->replicate, l->shard, l->context, l->microbatches);
        check_near(what, i, a->loss, e->loss);
        check_near("gradient's norm", i, a->norm, e->norm);
        CHECK_INT(a->valid_tokens, e->valid_tokens);
        CHECK(a->loss_most >= a->loss * (1 - 1e-9));
    }
}

static const rdl_test_layout layouts[] = {
    { .microbatches = 2 },
    { .recompute = LLAMA_RECOMPUTE_FULL, .microbatches = 4 },
    { .replicate = 2 },
    { .shard = 2 },
    { .context = 2 },
    { .shard = 2, .microbatches = 2, .recompute = LLAMA_RECOMPUTE_SELECTIVE },
    { .context = 4 },
    { .context = 4, .recompute = LLAMA_RECOMPUTE_FULL, .microbatches = 2 },
    { .shard = 4 },
    { .replicate = 4 },
    { .replicate = 2, .context = 2, .recompute = LLAMA_RECOMPUTE_FULL },
    { .shard = 2, .context = 2, .microbatches = 2 },
    { .replicate = 2, .shard = 2, .recompute = LLAMA_RECOMPUTE_SELECTIVE },
    { .shard = 3, .rows = 6 },
};

#define LAYOUTS (sizeof layouts / sizeof layouts[0])

static void check_layouts(bool processes)
{
    llama_blas *blas = rdl_test_blas();
    curve four = curve_of(blas, (rdl_test_layout){ 0 }, false);
    curve six = curve_of(blas, (rdl_test_layout){ .rows = 6 }, false);

    for (size_t i = 0; i < LAYOUTS; i++) {
        curve c = curve_of(blas, layouts[i], processes);

        check_curve(&layouts[i], &c, layouts[i].rows == 6 ? &six : &four);
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
        curve a = curve_of(blas, layouts[i], false);
        curve b = curve_of(blas, layouts[i], i % 2 == 0);

        if (!rdl_test_same_bits(&a, &b, sizeof a))
            RDL_TEST_FAIL("layout %zu: not the same bits", i);
    }
    llama_blas_close(blas);
}
