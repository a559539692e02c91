/* A step of training, and its parts. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "llama/model.h"

#include <math.h>
#include <raddle/collective.h>

void llama_zero(llama *m)
{
    for (int i = 0; i <= llama_last_unit(m); i++)
        rdl_fsdp_zero(m->units[i]);
    m->loss_sum = 0;
    m->counted = 0;
    m->unfit = -1;
}

/* All ranks of a context group have the same rows, so its first one counts. */
rdl_status llama_count_valid(llama *m, const llama_rows *rows, int count,
                             uint64_t *valid, llama_error *error)
{
    int64_t mine = 0;

    for (int i = 0; i < count && m->context_rank == 0; i++)
        for (size_t at = 0; at < rows[i].count * m->o.length; at++)
            mine += rows[i].labels[at] != LLAMA_IGNORE;
    LLAMA_RADDLE(rdl_all_reduce(m->o.world, m->o.tokens, &mine, &mine, 1,
                                RDL_INT64, RDL_SUM,
                                &(rdl_call){ .caller = "llama.valid" }));
    *valid = (uint64_t)mine;
    return RDL_OK;
}

/* ---- Forward and backward ---- */

/* The unit's parameters, and those of the one after it on their way; next -1:
 * none. */
static rdl_status gather(llama *m, int unit, int next, llama_error *error)
{
    LLAMA_RADDLE(rdl_fsdp_gather(m->units[unit]));
    if (next >= 0)
        LLAMA_RADDLE(rdl_fsdp_prefetch(m->units[next], m->o.gathers));
    return RDL_OK;
}

static rdl_status forward(llama *m, float factor, llama_error *error)
{
    int layers = m->o.config.layers;
    rdl_fsdp *last = m->units[llama_last_unit(m)];

    LLAMA_TRY(gather(m, 0, 1, error));
    llama_embed(m);
    rdl_fsdp_free(m->units[0]);
    for (int i = 0; i < layers; i++) {
        float *output = i + 1 < layers ? m->saved[i + 1].input : m->output;

        LLAMA_TRY(gather(m, 1 + i, 2 + i, error));
        LLAMA_TRY(llama_block_forward(m, i, output, error));
        /* The last block's backward pass comes next. */
        if (factor == 0 || i + 1 < layers)
            rdl_fsdp_free(m->units[1 + i]);
    }
    LLAMA_TRY(gather(m, llama_last_unit(m), -1, error));
    LLAMA_TRY(llama_head(m, factor, error));
    rdl_fsdp_free(last);
    return RDL_OK;
}

/* Sums the unit's gradient over ranks, and remembers if it was not finite here,
 * while it can still be told whose fault that is. */
static rdl_status reduce(llama *m, int unit, llama_error *error)
{
    for (int i = 0; i < m->slot_count && m->unfit < 0; i++) {
        const llama_slot *slot = &m->slots[i];
        const float *gradient;

        if (slot->unit != unit)
            continue;
        gradient = rdl_fsdp_gradient(m->units[unit], slot->index);
        if (gradient != NULL &&
            !m->kernel->finite(slot->shape[0] * slot->shape[1], gradient))
            m->unfit = i;
    }
    return llama_pass_on(error,
                         rdl_fsdp_reduce_on(m->units[unit], m->o.reductions));
}

static rdl_status settle(llama *m, llama_error *error)
{
    for (int i = 0; i <= llama_last_unit(m); i++)
        LLAMA_RADDLE(rdl_fsdp_settle(m->units[i]));
    return RDL_OK;
}

static rdl_status backward(llama *m, bool last, llama_error *error)
{
    if (last)
        LLAMA_TRY(reduce(m, llama_last_unit(m), error));
    for (int i = m->o.config.layers - 1; i >= 0; i--) {
        LLAMA_TRY(gather(m, 1 + i, i > 0 ? i : -1, error));
        LLAMA_TRY(llama_block_backward(m, i, error));
        rdl_fsdp_free(m->units[1 + i]);
        if (last)
            LLAMA_TRY(reduce(m, 1 + i, error));
    }
    LLAMA_TRY(llama_embed_backward(m, error));
    if (!last)
        return RDL_OK;
    LLAMA_TRY(reduce(m, 0, error));
    return settle(m, error);
}

rdl_status llama_microbatch(llama *m, const llama_rows *rows, uint64_t valid,
                            bool last, llama_error *error)
{
    if (valid == 0)
        return llama_fail(error, RDL_INVALID, "no label counts: all are %d",
                          LLAMA_IGNORE);
    LLAMA_TRY(llama_check_rows(m, rows, error));
    llama_take_rows(m, rows);
    LLAMA_TRY(forward(m, (float)(1 / (double)valid), error));
    return backward(m, last, error);
}

rdl_status llama_evaluate(llama *m, const llama_rows *rows, int count,
                          double *loss, llama_error *error)
{
    double before = m->loss_sum, sum;
    uint64_t counted = m->counted, valid;

    for (int i = 0; i < count; i++)
        LLAMA_TRY(llama_check_rows(m, &rows[i], error));
    LLAMA_TRY(llama_count_valid(m, rows, count, &valid, error));
    m->loss_sum = 0;
    for (int i = 0; i < count; i++) {
        llama_take_rows(m, &rows[i]);
        LLAMA_TRY(forward(m, 0, error));
    }
    sum = m->loss_sum;
    m->loss_sum = before;
    m->counted = counted;
    LLAMA_RADDLE(rdl_all_reduce(m->o.world, m->o.tokens, &sum, &sum, 1,
                                RDL_FLOAT64, RDL_SUM,
                                &(rdl_call){ .caller = "llama.evaluate" }));
    *loss = valid != 0 ? sum / (double)valid : 0;
    return RDL_OK;
}

/* ---- The update ---- */

void llama_clip(llama *m, double norm)
{
    float factor = (float)fmin(1, m->o.max_norm / (norm + 1e-6));

    for (int i = 0; i < m->slot_count; i++) {
        llama_parameter p;

        llama_parameter_at(m, i, &p);
        m->kernel->scale(p.rows * p.columns, factor, p.gradient);
    }
}

void llama_update(llama *m, double learning_rate)
{
    const llama_adamw *a = &m->o.adamw;
    double steps = (double)++m->updates;
    llama_adamw_step step = {
        .keep = (float)(1 - learning_rate * a->weight_decay),
        .beta1 = (float)a->beta1,
        .beta2 = (float)a->beta2,
        .rate = (float)(learning_rate / (1 - pow(a->beta1, steps))),
        .correct = (float)(1 / sqrt(1 - pow(a->beta2, steps))),
        .epsilon = (float)a->epsilon,
    };

    for (int i = 0; i < m->slot_count; i++) {
        const llama_slot *slot = &m->slots[i];
        llama_parameter p;

        llama_parameter_at(m, i, &p);
        m->kernel->adamw(p.rows * p.columns, &step, p.gradient, slot->moment1,
                         slot->moment2, p.values);
    }
}

/* ---- All of it ---- */

rdl_status llama_train_step(llama *m, int step, const llama_rows *rows,
                            int count, double learning_rate,
                            llama_result *result, llama_error *error)
{
    uint64_t valid;

    for (int i = 0; i < count; i++)
        LLAMA_TRY(llama_check_rows(m, &rows[i], error));
    if (count < 1)
        return llama_fail(error, RDL_INVALID, "step %d: no microbatch", step);
    llama_zero(m);
    LLAMA_TRY(llama_count_valid(m, rows, count, &valid, error));
    for (int i = 0; i < count; i++)
        LLAMA_TRY(llama_microbatch(m, &rows[i], valid, i + 1 == count, error));
    LLAMA_TRY(llama_measure(m, step, valid, result, error));
    llama_clip(m, result->norm);
    llama_update(m, learning_rate);
    return RDL_OK;
}

void llama_communication(const llama *m, int64_t *took, int64_t *waited)
{
    *took = *waited = 0;
    for (int i = 0; i <= llama_last_unit(m); i++) {
        int64_t unit_took, unit_waited;

        rdl_fsdp_times(m->units[i], &unit_took, &unit_waited);
        *took += unit_took;
        *waited += unit_waited;
    }
}
