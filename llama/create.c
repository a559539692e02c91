/* Making and unmaking a model. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "llama/model.h"

#include <raddle/context.h>
#include <stdlib.h>

static rdl_status check_limits(const llama_options *o, llama_error *error)
{
    uint64_t widest = (uint64_t)o->config.dim;

    if (o->world == NULL || o->blas == NULL)
        return llama_fail(error, RDL_INVALID, "model: %s is NULL",
                          o->world == NULL ? "world" : "blas");
    LLAMA_TRY(llama_config_check(&o->config, error));
    if (o->length < 1 || o->length > 1 << 20 || o->rows < 1 ||
        o->rows > (1 << 30) / o->length)
        return llama_fail(
            error, RDL_INVALID,
            "model: %zu rows of %zu tokens; both must be at least "
            "1, a row at most %d, and all of them %d",
            o->rows, o->length, 1 << 20, 1 << 30);
    if (widest < (uint64_t)o->config.hidden)
        widest = (uint64_t)o->config.hidden;
    if (o->rows * o->length > SIZE_MAX / 1024 / widest)
        return llama_fail(error, RDL_INVALID,
                          "model: %zu rows of %zu tokens are too many", o->rows,
                          o->length);
    if (!(o->max_norm > 0))
        return llama_fail(error, RDL_INVALID,
                          "model: max_norm %g is not above 0", o->max_norm);
    return RDL_OK;
}

static rdl_status look_at_groups(llama *m, llama_error *error)
{
    llama_options *o = &m->o;
    int shard, replicate;

    LLAMA_RADDLE(rdl_group_size(o->world, o->context, &m->context_size));
    LLAMA_RADDLE(rdl_group_rank(o->world, o->context, &m->context_rank));
    LLAMA_RADDLE(rdl_group_size(o->world, o->tokens, &m->tokens_size));
    LLAMA_RADDLE(rdl_group_rank(o->world, o->tokens, &m->tokens_rank));
    LLAMA_RADDLE(rdl_group_size(o->world, o->shard, &shard));
    LLAMA_RADDLE(rdl_group_size(o->world, o->replicate, &replicate));
    if (m->context_rank < 0 || m->tokens_rank < 0)
        return llama_fail(error, RDL_INVALID,
                          "model: rank %d is not in its %s group",
                          rdl_world_rank(o->world),
                          m->context_rank < 0 ? "context" : "tokens");
    if (shard * replicate != m->tokens_size)
        return llama_fail(error, RDL_INVALID,
                          "model: %d ranks that share parameters x %d that "
                          "repeat them = %d, and %d ranks have tokens",
                          shard, replicate, shard * replicate, m->tokens_size);
    if (m->tokens_size % m->context_size != 0)
        return llama_fail(error, RDL_INVALID,
                          "model: %d ranks that share a row do not divide the "
                          "%d that have tokens",
                          m->context_size, m->tokens_size);
    m->local = o->length / (size_t)m->context_size;
    return RDL_OK;
}

/* The unit's parameters, in the order of their indices. */
static int list_unit(const llama *m, int unit, rdl_parameter *out)
{
    int count = 0;

    for (int i = 0; i < m->slot_count; i++) {
        const llama_slot *slot = &m->slots[i];

        if (slot->unit != unit)
            continue;
        out[slot->index] = (rdl_parameter){ .name = slot->name,
                                            .rows = slot->shape[0],
                                            .columns = slot->shape[1] };
        count++;
    }
    return count;
}

static rdl_status make_units(llama *m, llama_error *error)
{
    rdl_parameter parameters[LLAMA_BLOCK_PARAMETERS];

    m->units = calloc((size_t)m->o.config.layers + 2, sizeof(void *));
    if (m->units == NULL)
        return llama_fail(error, RDL_NO_MEMORY, "model: no memory for units");
    for (int i = 0; i <= llama_last_unit(m); i++) {
        int count = list_unit(m, i, parameters);

        LLAMA_RADDLE(rdl_fsdp_create(m->o.world, m->o.shard, m->o.replicate,
                                     parameters, count, &m->units[i]));
        LLAMA_RADDLE(rdl_fsdp_share(m->units[i], m->units[0]));
    }
    return RDL_OK;
}

static rdl_status make_moments(llama *m, llama_error *error)
{
    size_t count = 0;
    float *at;

    for (int i = 0; i < m->slot_count; i++) {
        llama_parameter p;

        llama_parameter_at(m, i, &p);
        count += 2 * p.rows * p.columns;
    }
    /* One more, as a rank may have no rows at all. */
    m->moments = calloc(count + 1, sizeof *m->moments);
    if (m->moments == NULL)
        return llama_fail(error, RDL_NO_MEMORY,
                          "model: no memory for %zu bytes of moments",
                          count * sizeof *m->moments);
    at = m->moments;
    for (int i = 0; i < m->slot_count; i++) {
        llama_parameter p;

        llama_parameter_at(m, i, &p);
        m->slots[i].moment1 = at;
        m->slots[i].moment2 = at + p.rows * p.columns;
        at += 2 * p.rows * p.columns;
    }
    return RDL_OK;
}

static rdl_status build(llama *m, llama_error *error)
{
    LLAMA_TRY(look_at_groups(m, error));
    LLAMA_TRY(llama_lay_memory(m, error));
    LLAMA_RADDLE(rdl_context_indices(m->context_rank, m->context_size,
                                     m->o.length, m->place));
    for (int i = 0; i < m->o.config.head_dim / 2; i++)
        m->frequency[i] = llama_rope_frequency(&m->o.config, i);
    LLAMA_TRY(llama_lay_slots(m, error));
    LLAMA_TRY(make_units(m, error));
    LLAMA_TRY(make_moments(m, error));
    llama_fill(m);
    llama_zero(m);
    return RDL_OK;
}

rdl_status llama_create(const llama_options *options, llama **out,
                        llama_error *error)
{
    llama *m;
    rdl_status st;

    LLAMA_TRY(check_limits(options, error));
    m = calloc(1, sizeof *m);
    if (m == NULL)
        return llama_fail(error, RDL_NO_MEMORY, "model: out of memory");
    m->o = *options;
    m->kernel = llama_kernels_at(0);
    st = build(m, error);
    if (st != RDL_OK) {
        llama_destroy(m);
        return st;
    }
    *out = m;
    return RDL_OK;
}

void llama_destroy(llama *m)
{
    if (m == NULL)
        return;
    for (int i = 0; m->units != NULL && i <= llama_last_unit(m); i++)
        rdl_fsdp_destroy(m->units[i]);
    free(m->units);
    free(m->moments);
    free(m->slots);
    free(m->saved);
    free(m->memory);
    free(m);
}
