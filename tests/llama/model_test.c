/* What the model promises on any layout. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/model.h"
#include "support/worlds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct job {
    rdl_test_layout layout;
    const llama_blas *blas;
    void (*body)(rdl_test_model *m, void *arg);
    void *arg;
} job;

static void run_job(rdl_world *world, void *arg)
{
    job *j = arg;
    rdl_test_model m = rdl_test_model_open(world, j->blas, &j->layout);

    rdl_test_model_read(&m, 0);
    j->body(&m, j->arg);
    rdl_test_model_close(&m);
}

/* Ranks as threads. */
static void with_model(rdl_test_layout layout,
                       void (*body)(rdl_test_model *m, void *arg), void *arg)
{
    llama_blas *blas = rdl_test_blas();
    job j = { layout, blas, body, arg };
    rdl_test_job ranks = { .size = 1 };

    ranks.size *= layout.replicate ? layout.replicate : 1;
    ranks.size *= layout.shard ? layout.shard : 1;
    ranks.size *= layout.context ? layout.context : 1;
    rdl_test_worlds(&ranks, run_job, &j);
    llama_blas_close(blas);
}

static llama_parameter parameter(rdl_test_model *m, const char *name)
{
    llama_parameter p;

    for (int i = 0; i < llama_parameters(m->llama); i++) {
        llama_parameter_at(m->llama, i, &p);
        if (strcmp(p.name, name) == 0)
            return p;
    }
    RDL_TEST_FAIL("no parameter %s", name);
}

/* ---- First values ---- */

static void check_even_logits(rdl_test_model *m, void *arg)
{
    llama_parameter head = parameter(m, "lm_head.weight");

    (void)arg;
    memset(head.values, 0, head.rows * head.columns * sizeof(float));
    CHECK_NEAR(rdl_test_model_loss(m), log(2048), 1e-6);
}

RDL_TEST(logits_that_are_all_alike_lose_the_logarithm_of_the_vocabulary)
{
    with_model((rdl_test_layout){ .config = llama_config_named("llama3-debug"),
                                  .rows = 1 },
               check_even_logits, NULL);
}

static void check_deviation(rdl_test_model *m, const char *name,
                            double deviation, double most)
{
    llama_parameter p = parameter(m, name);
    size_t count = p.rows * p.columns;
    double sum = 0, square = 0, largest = 0;

    for (size_t i = 0; i < count; i++) {
        double x = p.values[i];

        sum += x;
        square += x * x;
        largest = fmax(largest, fabs(x));
    }
    CHECK_NEAR(sum / (double)count, 0, 4 * deviation / sqrt((double)count));
    CHECK_NEAR(sqrt(square / (double)count), deviation, 0.02 * deviation);
    CHECK(largest <= most);
    CHECK(largest > 2.9 * deviation);
}

static void check_first_values(rdl_test_model *m, void *arg)
{
    double loss = rdl_test_model_loss(m);
    llama_parameter norm = parameter(m, "layers.3.ffn_norm.weight");

    (void)arg;
    CHECK(loss > 7.9 && loss < 8.4);
    check_deviation(m, "tok_embeddings.weight", 1, 6);
    check_deviation(m, "layers.5.attention.qkv_linear.wk.weight", 0.02, 2);
    check_deviation(m, "layers.5.feed_forward.w1.weight", 0.02, 2);
    check_deviation(m, "layers.0.feed_forward.w3.weight", 0.02 / sqrt(2), 2);
    check_deviation(m, "layers.5.feed_forward.w3.weight", 0.02 / sqrt(12), 2);
    check_deviation(m, "layers.5.feed_forward.w2.weight", 0.02 / sqrt(12), 2);
    check_deviation(m, "layers.5.attention.wo.weight", 0.02 / sqrt(12), 2);
    /* Cut at three deviations, which takes a little of its own away. */
    check_deviation(m, "lm_head.weight", 0.0625 * 0.9866, 3 * 0.0625);
    for (size_t i = 0; i < norm.rows; i++)
        CHECK(norm.values[i] == 1);
}

RDL_TEST(first_values_are_spread_as_the_debug_models)
{
    with_model((rdl_test_layout){ .config = llama_config_named("llama3-debug"),
                                  .length = 256,
                                  .rows = 1 },
               check_first_values, NULL);
}

static rdl_status add_up(void *arg, const llama_parameter *p, const float *whole)
{
    uint64_t *hash = arg;

    for (const char *c = p->name; *c != 0; c++)
        *hash = *hash * 31 + (unsigned char)*c;
    for (size_t i = 0; i < p->shape[0] * p->shape[1]; i++) {
        uint32_t bits;

        memcpy(&bits, &whole[i], sizeof bits);
        *hash = *hash * 1099511628211U + bits;
    }
    return RDL_OK;
}

static void hash_all(rdl_test_model *m, void *arg)
{
    llama_error error = { "" };
    uint64_t hash = 0;

    CHECK_OK(llama_whole(m->llama, add_up, &hash, &error));
    if (rdl_world_rank(m->world) == m->layout.shard - 1)
        *(uint64_t *)arg = hash;
}

RDL_TEST(first_values_do_not_depend_on_the_layout)
{
    uint64_t alone = 0, shards = 1, copies = 2;

    with_model((rdl_test_layout){ 0 }, hash_all, &alone);
    with_model((rdl_test_layout){ .shard = 3, .rows = 3 }, hash_all, &shards);
    with_model((rdl_test_layout){ .replicate = 2 }, hash_all, &copies);
    CHECK(alone == shards);
    CHECK(alone == copies);
}

/* ---- Documents ---- */

/* Two documents in a row; only labels of the second count. */
static void two_documents(rdl_test_model *m, int32_t first_tokens)
{
    size_t length = m->layout.length, half = length / 2 + 3;
    int32_t *tokens = m->data, *labels = tokens + length;
    int32_t *positions = labels + length;

    for (size_t i = 0; i < length; i++) {
        bool second = i >= half;

        tokens[i] = second ? 20 + (int32_t)i % 9
                           : (int32_t)(i + (size_t)first_tokens) % 19;
        labels[i] = second ? (int32_t)i % 11 : LLAMA_IGNORE;
        positions[i] = (int32_t)(second ? i - half : i);
    }
}

static void check_documents(rdl_test_model *m, void *arg)
{
    double loss;
    llama_parameter table;

    (void)arg;
    two_documents(m, 0);
    loss = rdl_test_model_loss(m);
    two_documents(m, 7);
    CHECK(rdl_test_model_loss(m) == loss);
    rdl_test_model_gradients(m);
    table = parameter(m, "tok_embeddings.weight");
    for (size_t i = 0; i < 19 * table.columns; i++)
        CHECK(table.gradient[i] == 0);
    CHECK(table.gradient[22 * table.columns] != 0);
    /* Were it one document, the first would matter. */
    m->data[2 * m->layout.length + m->layout.length / 2 + 3] = 1;
    CHECK(rdl_test_model_loss(m) != loss);
}

RDL_TEST(a_document_does_not_see_the_one_before)
{
    with_model((rdl_test_layout){ .rows = 1, .length = 50 }, check_documents,
               NULL);
}

static void check_causes(rdl_test_model *m, void *arg)
{
    size_t length = m->layout.length;
    int32_t *tokens = m->data, *labels = tokens + length;
    double loss;

    (void)arg;
    for (size_t i = length / 2; i < length; i++)
        labels[i] = LLAMA_IGNORE;
    loss = rdl_test_model_loss(m);
    for (size_t i = length / 2; i < length; i++)
        tokens[i] = (tokens[i] + 1) % m->layout.config->vocab;
    CHECK(rdl_test_model_loss(m) == loss);
    tokens[length / 2 - 1] = (tokens[length / 2 - 1] + 1) % 60;
    CHECK(rdl_test_model_loss(m) != loss);
}

RDL_TEST(a_token_does_not_see_those_after_it)
{
    with_model((rdl_test_layout){ .rows = 1, .length = 50, .one_document = true },
               check_causes, NULL);
}

/* ---- Recomputation ---- */

typedef struct outcome {
    double loss;
    float *gradients;
    size_t count, bytes;
} outcome;

static void keep_gradients(rdl_test_model *m, void *arg)
{
    outcome *o = arg;
    llama_result result;
    llama_error error = { "" };
    llama_parameter p;
    size_t at = 0;

    rdl_test_model_gradients(m);
    CHECK_OK(llama_measure(m->llama, 1, 100, &result, &error));
    o->loss = result.loss;
    o->bytes = llama_activation_bytes(m->llama);
    o->count = llama_parameter_count(m->layout.config);
    o->gradients = calloc(o->count, sizeof *o->gradients);
    CHECK(o->gradients != NULL);
    for (int i = 0; i < llama_parameters(m->llama); i++) {
        llama_parameter_at(m->llama, i, &p);
        memcpy(o->gradients + at, p.gradient,
               p.rows * p.columns * sizeof(float));
        at += p.rows * p.columns;
    }
}

RDL_TEST(what_is_computed_again_has_the_same_bits)
{
    outcome of[3];

    for (int i = 0; i < 3; i++)
        with_model((rdl_test_layout){ .recompute = (llama_recompute)i,
                                      .microbatches = 2,
                                      .length = 512 },
                   keep_gradients, &of[i]);
    for (int i = 1; i < 3; i++) {
        CHECK(of[i].loss == of[0].loss);
        CHECK(rdl_test_same_bits(of[i].gradients, of[0].gradients,
                                 of[0].count * sizeof(float)));
        CHECK(of[i].bytes <= of[i - 1].bytes);
    }
    for (int i = 0; i < 3; i++)
        free(of[i].gradients);
}

/* ---- Learning ---- */

static void check_learning(rdl_test_model *m, void *arg)
{
    llama_error error = { "" };
    llama_result first, last = { 0 };

    (void)arg;
    for (int i = 0; i < 25; i++) {
        CHECK_OK(
            llama_train_step(m->llama, i + 1, m->rows, 1, 4e-3, &last, &error));
        if (i == 0)
            first = last;
    }
    CHECK(last.loss < 0.6 * first.loss);
    CHECK(last.valid_tokens > 0);
}

RDL_TEST(what_is_shown_again_and_again_is_learned)
{
    with_model((rdl_test_layout){ 0 }, check_learning, NULL);
}

static void check_loss_of_step(rdl_test_model *m, void *arg)
{
    double loss = rdl_test_model_loss(m);
    llama_result result = rdl_test_model_step(m, 0);

    (void)arg;
    CHECK(result.loss == loss);
}

RDL_TEST(evaluating_gives_the_loss_of_a_step_and_changes_nothing)
{
    with_model((rdl_test_layout){ .microbatches = 2 }, check_loss_of_step, NULL);
}

static void check_clip(rdl_test_model *m, void *arg)
{
    llama_error error = { "" };
    llama_result before, after;

    (void)arg;
    rdl_test_model_gradients(m);
    CHECK_OK(llama_measure(m->llama, 1, 100, &before, &error));
    llama_clip(m->llama, 10 * before.norm);
    CHECK_OK(llama_measure(m->llama, 1, 100, &after, &error));
    CHECK_NEAR(after.norm, 1 / (10 + 1e-6 / before.norm), 1e-5);
    llama_clip(m->llama, after.norm);
    CHECK_OK(llama_measure(m->llama, 1, 100, &before, &error));
    CHECK_NEAR(before.norm, after.norm, 0);
}

RDL_TEST(gradients_are_clipped_by_their_norm)
{
    with_model((rdl_test_layout){ .replicate = 2, .shard = 2 }, check_clip,
               NULL);
}

/* ---- Bad input ---- */

static void train_refuses(rdl_test_model *m, rdl_status status, const char *why)
{
    llama_error error = { "" };
    llama_result result;

    CHECK_STATUS(llama_train_step(m->llama, 3, m->rows, m->layout.microbatches,
                                  1e-3, &result, &error),
                 status);
    CHECK_HAS(error.text, why);
}

static void check_bad_rows(rdl_test_model *m, void *arg)
{
    size_t length = m->layout.length;
    int32_t *tokens = m->data, *labels = tokens + length;
    int32_t *positions = labels + length;

    (void)arg;
    tokens[9] = 67;
    train_refuses(m, RDL_INVALID,
                  "token 9 of row 0 is 67, outside the vocabulary 0..66");
    rdl_test_model_read(m, 0);
    labels[4] = -1;
    train_refuses(m, RDL_INVALID, "label 4 of row 0 is -1");
    rdl_test_model_read(m, 0);
    positions[5] = -7;
    train_refuses(m, RDL_INVALID, "position 5 of row 0 is -7");
    rdl_test_model_read(m, 0);
    for (size_t i = 0; i < length; i++)
        labels[i] = LLAMA_IGNORE;
    train_refuses(m, RDL_INVALID, "no label counts");
    rdl_test_model_read(m, 0);
    m->rows[0].count = 2;
    train_refuses(m, RDL_INVALID, "a microbatch of 2 rows");
    rdl_test_model_read(m, 0);
    CHECK(isfinite(rdl_test_model_step(m, 0).loss));
}

RDL_TEST(bad_rows_are_refused_with_their_numbers)
{
    with_model((rdl_test_layout){ .rows = 1 }, check_bad_rows, NULL);
}

typedef struct poison {
    const char *name; /* of the parameter */
    int rank;
    float value;
    const char *why;
} poison;

static void check_poison(rdl_test_model *m, void *arg)
{
    const poison *bad = arg;
    llama_parameter p = parameter(m, bad->name);
    llama_parameter table = parameter(m, "tok_embeddings.weight");
    float kept = table.values[5];

    if (rdl_world_rank(m->world) == bad->rank)
        p.values[p.rows * p.columns - 1] = bad->value;
    train_refuses(m, RDL_FORMAT, bad->why);
    CHECK(table.values[5] == kept);
}

RDL_TEST(a_value_that_is_not_finite_is_named_on_every_rank)
{
    poison bad = {
        "layers.1.feed_forward.w2.weight", 2, NAN,
        "step 3: layers.1.feed_forward.w2.weight holds a value that "
        "is not finite, in the rows of rank 2; nothing was updated"
    };

    with_model((rdl_test_layout){ .shard = 4 }, check_poison, &bad);
}

static void check_overflow(rdl_test_model *m, void *arg)
{
    llama_parameter norm = parameter(m, "norm.weight");
    llama_parameter head = parameter(m, "lm_head.weight");

    (void)arg;
    for (size_t i = 0; i < norm.rows; i++)
        norm.values[i] = 3e38F;
    for (size_t i = 0; i < head.rows * head.columns; i++)
        head.values[i] = 1e3F * (float)(i % 3);
    train_refuses(m, RDL_FORMAT, "step 3: the loss is not finite on rank 0");
}

RDL_TEST(a_loss_that_overflows_stops_the_step)
{
    with_model((rdl_test_layout){ .replicate = 2 }, check_overflow, NULL);
}

/* ---- Gradients that overflow ---- */

/* One label counts on each of these ranks, token 0's. Its row of the head is far
 * below and all others far above, so the gradient of what the head reads is twice
 * size / (labels that count), while logits and loss stay small. */
static void set_extremes(rdl_test_model *m, float size, int first_rank)
{
    llama_parameter norm = parameter(m, "norm.weight");
    llama_parameter head = parameter(m, "lm_head.weight");
    size_t length = m->layout.length;
    int32_t *labels = m->data + m->mine * length;

    for (size_t i = 0; i < norm.rows; i++)
        norm.values[i] = 1e-39F;
    for (size_t i = 0; i < head.rows * head.columns; i++)
        head.values[i] = i < head.columns ? -size : size;
    for (size_t i = 0; i < m->mine * length; i++)
        labels[i] = LLAMA_IGNORE;
    if (rdl_world_rank(m->world) >= first_rank)
        labels[length / 2] = 0;
}

static void check_own_overflow(rdl_test_model *m, void *arg)
{
    (void)arg;
    set_extremes(m, 3e38F, 1);
    train_refuses(
        m, RDL_FORMAT,
        "step 3: the gradient of norm.weight is not finite on rank 1; "
        "nothing was updated");
}

RDL_TEST(a_gradient_that_overflows_is_named_with_its_rank)
{
    with_model((rdl_test_layout){ .replicate = 2 }, check_own_overflow, NULL);
}

/* The first size at which the sum overflows is below that at which a part does. */
static void check_sum_overflow(rdl_test_model *m, void *arg)
{
    llama_error error = { "" };
    llama_result result;
    rdl_status st = RDL_OK;

    (void)arg;
    for (float size = 1e37F; st == RDL_OK && size < 3e38F; size *= 1.2F) {
        set_extremes(m, size, 0);
        rdl_test_model_gradients(m);
        st = llama_measure(m->llama, 7, 2, &result, &error);
    }
    CHECK_INT(st, RDL_FORMAT);
    CHECK_HAS(error.text, "step 7: the gradient of norm.weight, summed over "
                          "ranks, is not finite (in the rows of rank ");
}

/* Both ranks read the same rows: other gradients might cancel. */
static void check_sum_of_copies(rdl_test_model *m, void *arg)
{
    size_t length = m->layout.length;

    for (size_t i = 0; i < m->mine * length; i++) {
        m->data[i] = (int32_t)(i % 60);
        m->data[2 * m->mine * length + i] = (int32_t)(i % length);
    }
    check_sum_overflow(m, arg);
}

RDL_TEST(a_sum_of_gradients_that_overflows_is_named)
{
    with_model((rdl_test_layout){ .replicate = 2 }, check_sum_of_copies, NULL);
    with_model((rdl_test_layout){ .shard = 2 }, check_sum_of_copies, NULL);
}

/* ---- Layouts that do not fit ---- */

typedef struct misfit {
    const char *context, *shard, *replicate, *tokens; /* axes of 2 x 2 */
    size_t length;
    const char *why;
} misfit;

static void check_misfit(rdl_world *world, void *arg)
{
    const misfit *bad = arg;
    static const char *const names[] = { "a", "b", "one" };
    const int sizes[] = { 2, 2, 1 };
    llama_error error = { "" };
    llama_blas *blas = rdl_test_blas();
    rdl_mesh *mesh;
    llama *made;
    llama_options o = {
        .config = *llama_config_named("llama3-tiny"),
        .world = world,
        .blas = blas,
        .length = bad->length,
        .rows = 1,
        .adamw = llama_adamw_defaults(),
        .max_norm = 1,
    };

    CHECK_OK(rdl_mesh_create(world, names, sizes, 3, &mesh));
    CHECK_OK(rdl_mesh_group(mesh, bad->context, &o.context));
    CHECK_OK(rdl_mesh_group(mesh, bad->shard, &o.shard));
    CHECK_OK(rdl_mesh_group(mesh, bad->replicate, &o.replicate));
    CHECK_OK(rdl_mesh_group(mesh, bad->tokens, &o.tokens));
    CHECK_STATUS(llama_create(&o, &made, &error), RDL_INVALID);
    CHECK_HAS(error.text, bad->why);
    rdl_mesh_destroy(mesh);
    llama_blas_close(blas);
}

RDL_TEST(a_layout_that_does_not_fit_is_refused_with_its_numbers)
{
    misfit bad[] = {
        { "one", "a", "one", "a,b", 32, "2 ranks that share parameters x 1" },
        { "a,b", "a", "one", "a", 32, "4 ranks that share a row" },
        { "b", "a,b", "one", "a,b", 30, "30 tokens" },
        { "one", "a", "b", "a,b", 0, "rows of 0 tokens" },
    };
    rdl_test_job ranks = { .size = 4, .processes = true };

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        rdl_test_worlds(&ranks, check_misfit, &bad[i]);
}
