/* Trainings on layouts of ranks. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/curve.h"

#include "support/worlds.h"

#include <math.h>
#include <stdio.h>
#include <sys/mman.h>

typedef struct training {
    rdl_test_layout layout;
    const llama_blas *blas;
    rdl_test_curve *curve; /* shared with forked ranks */
} training;

static void train(rdl_world *world, void *arg)
{
    training *t = arg;
    rdl_test_model m = rdl_test_model_open(world, t->blas, &t->layout);

    for (int i = 0; i < t->curve->steps; i++) {
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

rdl_test_curve rdl_test_curve_of(const llama_blas *blas,
                                 const rdl_test_layout *layout, int steps,
                                 bool processes)
{
    rdl_test_job job = { .size = ranks_of(layout), .processes = processes };
    training t = { .layout = *layout, .blas = blas };
    rdl_test_curve result;

    CHECK(steps <= RDL_TEST_STEPS);
    t.curve = mmap(NULL, sizeof *t.curve, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(t.curve != MAP_FAILED);
    t.curve->steps = steps;
    rdl_test_worlds(&job, train, &t);
    result = *t.curve;
    munmap(t.curve, sizeof *t.curve);
    return result;
}

static void check_near(const rdl_test_layout *l, const char *what, int step,
                       double actual, double expected)
{
    if (fabs(actual - expected) <= 1e-4 * fabs(expected))
        return;
    RDL_TEST_FAIL("replicate %d, shard %d, context %d%s, %d microbatches: step "
                  "%d has %s %.9g instead of %.9g",
                  l->replicate, l->shard, l->context,
                  l->whole ? ", not in shards" : "", l->microbatches, step + 1,
                  what, actual, expected);
}

void rdl_test_curve_check(const rdl_test_layout *l, const rdl_test_curve *actual,
                          const rdl_test_curve *expected)
{
    CHECK_INT(actual->steps, expected->steps);
    for (int i = 0; i < actual->steps; i++) {
        const llama_result *a = &actual->step[i], *e = &expected->step[i];

        check_near(l, "loss", i, a->loss, e->loss);
        check_near(l, "norm", i, a->norm, e->norm);
        CHECK_INT(a->valid_tokens, e->valid_tokens);
        CHECK(a->loss_most >= a->loss * (1 - 1e-9));
    }
}
