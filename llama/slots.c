/* The parameters: their names, in which unit each is, and its shape. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "llama/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define ONES ((llama_spread){ 0 })

static void put(llama *m, int unit, int index, int dims, size_t rows,
                size_t columns, llama_spread spread)
{
    m->slots[m->slot_count++] = (llama_slot){
        .unit = unit,
        .index = index,
        .dims = dims,
        .shape = { rows, columns },
        .spread = spread,
    };
}

static void name_last(llama *m, const char *name)
{
    llama_slot *slot = &m->slots[m->slot_count - 1];

    snprintf(slot->name, sizeof slot->name, "%s", name);
}

static void name_in_layer(llama *m, int layer, const char *name)
{
    llama_slot *slot = &m->slots[m->slot_count - 1];

    snprintf(slot->name, sizeof slot->name, "layers.%d.%s.weight", layer, name);
}

/* Deeper layers begin smaller; w3 among them, and w1 not. */
static void put_layer(llama *m, int layer)
{
    const llama_config *c = &m->o.config;
    size_t dim = (size_t)c->dim, hidden = (size_t)c->hidden;
    size_t query = llama_query_width(m), kv = llama_kv_width(m);
    llama_spread even = { .deviation = 0.02, .cut = 2 };
    llama_spread deep = { .deviation = 0.02 / sqrt(2.0 * (layer + 1)),
                          .cut = 2 };
    const struct {
        const char *name;
        int index, dims;
        size_t rows, columns;
        llama_spread spread;
    } parameters[LLAMA_BLOCK_PARAMETERS] = {
        { "attention.qkv_linear.wq", LLAMA_WQ, 2, query, dim, even },
        { "attention.qkv_linear.wk", LLAMA_WK, 2, kv, dim, even },
        { "attention.qkv_linear.wv", LLAMA_WV, 2, kv, dim, even },
        { "attention.wo", LLAMA_WO, 2, dim, query, deep },
        { "feed_forward.w1", LLAMA_W1, 2, hidden, dim, even },
        { "feed_forward.w2", LLAMA_W2, 2, dim, hidden, deep },
        { "feed_forward.w3", LLAMA_W3, 2, hidden, dim, deep },
        { "attention_norm", LLAMA_ATTENTION_NORM, 1, dim, 1, ONES },
        { "ffn_norm", LLAMA_FFN_NORM, 1, dim, 1, ONES },
    };

    for (int i = 0; i < LLAMA_BLOCK_PARAMETERS; i++) {
        put(m, 1 + layer, parameters[i].index, parameters[i].dims,
            parameters[i].rows, parameters[i].columns, parameters[i].spread);
        name_in_layer(m, layer, parameters[i].name);
    }
}

rdl_status llama_lay_slots(llama *m, llama_error *error)
{
    const llama_config *c = &m->o.config;
    size_t dim = (size_t)c->dim, vocab = (size_t)c->vocab;
    size_t count = (size_t)c->layers * LLAMA_BLOCK_PARAMETERS + 3;
    double head = 1 / sqrt((double)c->dim);

    m->slots = calloc(count, sizeof *m->slots);
    if (m->slots == NULL)
        return llama_fail(error, RDL_NO_MEMORY,
                          "model: no memory for %zu parameters' names", count);
    put(m, 0, 0, 2, vocab, dim, (llama_spread){ .deviation = 1 });
    name_last(m, "tok_embeddings.weight");
    for (int layer = 0; layer < c->layers; layer++)
        put_layer(m, layer);
    put(m, llama_last_unit(m), LLAMA_NORM, 1, dim, 1, ONES);
    name_last(m, "norm.weight");
    put(m, llama_last_unit(m), LLAMA_HEAD, 2, vocab, dim,
        (llama_spread){ .deviation = head, .cut = 3 * head });
    name_last(m, "lm_head.weight");
    return RDL_OK;
}

int llama_parameters(const llama *m)
{
    return m->slot_count;
}

void llama_parameter_at(llama *m, int i, llama_parameter *out)
{
    const llama_slot *slot = &m->slots[i];
    rdl_fsdp *unit = m->units[slot->unit];

    *out = (llama_parameter){
        .name = slot->name,
        .dims = slot->dims,
        .shape = { slot->shape[0], slot->shape[1] },
        .columns = slot->shape[1],
        .values = rdl_fsdp_shard(unit, slot->index),
        .gradient = rdl_fsdp_shard_gradient(unit, slot->index),
    };
    rdl_fsdp_rows(unit, slot->index, &out->first_row, &out->rows);
}

/* A unit's parameters stand together among the slots, so each unit is gathered
 * once. */
rdl_status llama_whole(llama *m, llama_visit visit, void *arg,
                       llama_error *error)
{
    for (int i = 0; i < m->slot_count; i++) {
        rdl_fsdp *unit = m->units[m->slots[i].unit];
        llama_parameter parameter;
        rdl_status st;

        LLAMA_RADDLE(rdl_fsdp_gather(unit));
        llama_parameter_at(m, i, &parameter);
        st = visit(arg, &parameter, rdl_fsdp_full(unit, m->slots[i].index));
        if (i + 1 == m->slot_count ||
            m->slots[i + 1].unit != m->slots[i].unit || st != RDL_OK)
            rdl_fsdp_free(unit);
        LLAMA_TRY(st);
    }
    return RDL_OK;
}
