/* Gradients against differences of the loss, and against one another. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/model.h"
#include "support/worlds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void in_a_world_of_one(void (*body)(rdl_test_model *m),
                              const rdl_test_layout *layout)
{
    llama_blas *blas = rdl_test_blas();
    rdl_world_options options = { .size = 1 };
    rdl_world *world;
    rdl_test_model m;

    CHECK_OK(rdl_world_open(&options, &world));
    m = rdl_test_model_open(world, blas, layout);
    rdl_test_model_read(&m, 0);
    body(&m);
    rdl_test_model_close(&m);
    CHECK_OK(rdl_world_close(world));
    llama_blas_close(blas);
}

/* Moves values by much * direction. */
static void move(llama_parameter *p, const float *direction, double much)
{
    for (size_t i = 0; i < p->rows * p->columns; i++)
        p->values[i] += (float)(much * direction[i]);
}

/* How the loss changes along direction, from five losses, exact to the fourth
 * power of the distance. */
static double slope(rdl_test_model *m, llama_parameter *p,
                    const float *direction, double distance)
{
    size_t bytes = p->rows * p->columns * sizeof(float);
    float *kept = malloc(bytes);
    double loss[5] = { 0 };

    CHECK(kept != NULL);
    memcpy(kept, p->values, bytes);
    for (int i = 0; i < 5; i++) {
        move(p, direction, (i - 2) * distance);
        loss[i] = rdl_test_model_loss(m);
        memcpy(p->values, kept, bytes);
    }
    free(kept);
    return (loss[0] - 8 * loss[1] + 8 * loss[3] - loss[4]) / (12 * distance);
}

/* The gradient's own direction, in which it is largest, and one of plus and minus
 * one, in which every element counts alike. */
static void check_parameter(rdl_test_model *m, int index)
{
    llama_parameter p;
    size_t count;
    float *own, *any;
    double norm = 0, along = 0, measured;

    llama_parameter_at(m->llama, index, &p);
    count = p.rows * p.columns;
    own = calloc(2 * count, sizeof *own);
    CHECK(own != NULL);
    any = own + count;
    for (size_t i = 0; i < count; i++)
        norm += (double)p.gradient[i] * (double)p.gradient[i];
    norm = sqrt(norm);
    CHECK(norm > 0);
    for (size_t i = 0; i < count; i++) {
        uint64_t state = i + 7;

        own[i] = (float)(p.gradient[i] / norm);
        any[i] =
            (rdl_test_random(&state) & 1 ? 1 : -1) / (float)sqrt((double)count);
        along += (double)p.gradient[i] * (double)any[i];
    }
    measured = slope(m, &p, own, 2e-2);
    if (fabs(measured - norm) > 2e-3 * norm + 2e-5)
        RDL_TEST_FAIL("%s: gradient %g, measured %g", p.name, norm, measured);
    measured = slope(m, &p, any, 2e-2);
    if (fabs(measured - along) > 4e-3 * norm + 2e-5)
        RDL_TEST_FAIL("%s: along a direction %g, measured %g", p.name, along,
                      measured);
    free(own);
}

/* At the first values attention is all but even, and its gradients are small. */
static void check_every_parameter(rdl_test_model *m)
{
    for (int i = 0; i < llama_parameters(m->llama); i++) {
        llama_parameter p;

        llama_parameter_at(m->llama, i, &p);
        for (size_t at = 0; at < p.rows * p.columns && p.dims == 2; at++)
            p.values[at] *= strstr(p.name, "layers") != NULL ? 12 : 1;
        for (size_t at = 0; at < p.rows * p.columns && p.dims == 1; at++)
            p.values[at] += 0.05F * (float)(at % 7);
    }
    rdl_test_model_gradients(m);
    for (int i = 0; i < llama_parameters(m->llama); i++)
        check_parameter(m, i);
}

RDL_TEST(every_gradient_is_the_slope_of_the_loss)
{
    rdl_test_layout layout = { .length = 24, .rows = 2 };

    in_a_world_of_one(check_every_parameter, &layout);
}

RDL_TEST(a_row_that_no_vector_divides_has_gradients_too)
{
    rdl_test_layout layout = { .length = 37, .rows = 1, .one_document = true };

    in_a_world_of_one(check_every_parameter, &layout);
}
