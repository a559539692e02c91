/* Models to test with. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/model.h"

#include <stdlib.h>
#include <string.h>

/* CHECK_OK, with the sentence that the model gave. */
#define MUST(call)                                                             \
    do {                                                                       \
        rdl_status must_ = (call);                                             \
        if (must_ != RDL_OK)                                                   \
            RDL_TEST_FAIL("%s: %s: %s", #call, rdl_status_name(must_),         \
                          error.text);                                         \
    } while (0)

llama_blas *rdl_test_blas(void)
{
    llama_blas *blas;
    llama_error error = { "" };
    rdl_status st = llama_blas_open(&blas, &error);

    if (st != RDL_OK)
        SKIP("%s", error.text);
    return blas;
}

static rdl_test_layout filled(const rdl_test_layout *layout)
{
    rdl_test_layout l = *layout;

    l.config = l.config ? l.config : llama_config_named("llama3-tiny");
    l.replicate = l.replicate ? l.replicate : 1;
    l.shard = l.shard ? l.shard : 1;
    l.context = l.context ? l.context : 1;
    l.length = l.length ? l.length : 32;
    l.rows = l.rows ? l.rows : 4;
    l.microbatches = l.microbatches ? l.microbatches : 1;
    return l;
}

static rdl_group group_of(rdl_mesh *mesh, const char *axes)
{
    rdl_group group;

    CHECK_OK(rdl_mesh_group(mesh, axes, &group));
    return group;
}

static const char everyone[] = "replicate,shard,context";

static llama_options options_of(const rdl_test_model *m, const llama_blas *blas)
{
    return (llama_options){
        .config = *m->layout.config,
        .world = m->world,
        .blas = blas,
        .context = group_of(m->mesh, "context"),
        .shard = group_of(m->mesh, m->layout.whole ? "one" : "shard,context"),
        .replicate = group_of(m->mesh, m->layout.whole ? everyone : "replicate"),
        .tokens = group_of(m->mesh, everyone),
        .length = m->layout.length,
        .rows = m->mine / (size_t)m->layout.microbatches,
        .recompute = m->layout.recompute,
        .adamw = llama_adamw_defaults(),
        .max_norm = 1,
        .seed = 42,
    };
}

rdl_test_model rdl_test_model_open(rdl_world *world, const llama_blas *blas,
                                   const rdl_test_layout *layout)
{
    static const char *const names[] = { "replicate", "shard", "context",
                                         "one" };
    rdl_test_model m = { .layout = filled(layout), .world = world };
    const int sizes[] = { m.layout.replicate, m.layout.shard, m.layout.context,
                          1 };
    llama_options options;
    llama_error error = { "" };

    CHECK_OK(rdl_mesh_create(world, names, sizes, 4, &m.mesh));
    m.mine = m.layout.rows / (size_t)(m.layout.replicate * m.layout.shard);
    options = options_of(&m, blas);
    MUST(llama_create(&options, &m.llama, &error));
    m.data = calloc(3 * m.mine * m.layout.length, sizeof *m.data);
    m.rows = calloc((size_t)m.layout.microbatches, sizeof *m.rows);
    CHECK(m.data != NULL && m.rows != NULL);
    return m;
}

void rdl_test_model_close(rdl_test_model *m)
{
    free(m->rows);
    free(m->data);
    llama_destroy(m->llama);
    rdl_mesh_destroy(m->mesh);
}

/* Text that can be learned: what follows depends on what was, mostly. */
static void make_row(const rdl_test_model *m, uint64_t row, int32_t *tokens,
                     int32_t *labels, int32_t *positions)
{
    uint64_t state = 1000 + row, vocab = (uint64_t)m->layout.config->vocab;
    uint64_t token = rdl_test_random(&state) % vocab;
    int32_t position = 0;

    for (size_t i = 0; i < m->layout.length; i++) {
        uint64_t luck = rdl_test_random(&state);

        tokens[i] = (int32_t)token;
        positions[i] = position++;
        token = luck % 4 == 0 ? luck / 4 % vocab : (token * 5 + 1) % vocab;
        labels[i] = luck % 29 == 0 ? LLAMA_IGNORE : (int32_t)token;
        if (!m->layout.one_document && luck / 64 % 13 == 0)
            position = 0;
    }
}

void rdl_test_model_read(rdl_test_model *m, int step)
{
    size_t length = m->layout.length, all = m->mine * length;
    size_t each = m->mine / (size_t)m->layout.microbatches;
    int replicate, shard;
    uint64_t first;

    CHECK_OK(rdl_mesh_coordinate(m->mesh, "replicate", &replicate));
    CHECK_OK(rdl_mesh_coordinate(m->mesh, "shard", &shard));
    first = (uint64_t)step * m->layout.rows +
            (uint64_t)(replicate * m->layout.shard + shard) * m->mine;
    for (size_t i = 0; i < m->mine; i++)
        make_row(m, first + i, m->data + i * length, m->data + all + i * length,
                 m->data + 2 * all + i * length);
    for (int i = 0; i < m->layout.microbatches; i++) {
        const int32_t *at = m->data + (size_t)i * each * length;

        m->rows[i] = (llama_rows){ each, at, at + all, at + 2 * all };
    }
}

bool rdl_test_same_bits(const void *a, const void *b, size_t bytes)
{
    return memcmp(a, b, bytes) == 0;
}

llama_result rdl_test_model_step(rdl_test_model *m, int step)
{
    llama_schedule schedule = llama_schedule_defaults(10);
    llama_result result = { 0 };
    llama_error error = { "" };

    rdl_test_model_read(m, step);
    MUST(llama_train_step(m->llama, step + 1, m->rows, m->layout.microbatches,
                          llama_learning_rate(&schedule, step), &result, &error));
    return result;
}

double rdl_test_model_loss(rdl_test_model *m)
{
    llama_error error = { "" };
    double loss = -1;

    MUST(llama_evaluate(m->llama, m->rows, m->layout.microbatches, &loss,
                        &error));
    return loss;
}

void rdl_test_model_gradients(rdl_test_model *m)
{
    int last = m->layout.microbatches - 1;
    llama_error error = { "" };
    uint64_t valid;

    llama_zero(m->llama);
    MUST(llama_count_valid(m->llama, m->rows, last + 1, &valid, &error));
    for (int i = 0; i <= last; i++)
        MUST(llama_microbatch(m->llama, &m->rows[i], valid, i == last, &error));
}
