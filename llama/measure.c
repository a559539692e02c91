/* Loss and norm over all ranks, and whether they are finite.
 *
 * Where something is not, every rank finds the same culprit: each names the worst
 * that it knows of as a number, and the least number of all ranks wins. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "llama/model.h"

#include <math.h>
#include <raddle/collective.h>

/* What is not finite, the cause before the effect. */
enum { VALUE, LOSS, GRADIENT, SUM, NOTHING };

static double culprit(const llama *m, int kind, int slot)
{
    double slots = m->slot_count + 1; /* the last is for "none" */
    double place = slot < 0 ? m->slot_count : slot;
    double rank = rdl_world_rank(m->o.world);

    return (kind * (double)RDL_MAX_RANKS + rank) * slots + place;
}

/* The first parameter whose values, or whose summed gradient, are not finite in
 * this rank's rows; -1: none. */
static int first_unfit(llama *m, int kind)
{
    for (int i = 0; i < m->slot_count; i++) {
        llama_parameter p;

        llama_parameter_at(m, i, &p);
        if (!m->kernel->finite(p.rows * p.columns,
                               kind == VALUE ? p.values : p.gradient))
            return i;
    }
    return -1;
}

/* Of what happened on this rank before gradients were summed. */
static double own_culprit(llama *m)
{
    int value;

    if (isfinite(m->loss_sum) && m->unfit < 0)
        return culprit(m, NOTHING, -1);
    value = first_unfit(m, VALUE);
    if (value >= 0)
        return culprit(m, VALUE, value);
    return culprit(m, isfinite(m->loss_sum) ? GRADIENT : LOSS, m->unfit);
}

static rdl_status accuse(const llama *m, int step, double number,
                         llama_error *error)
{
    int64_t slots = m->slot_count + 1, n = (int64_t)number;
    int slot = (int)(n % slots), rank = (int)(n / slots % RDL_MAX_RANKS);
    int kind = (int)(n / slots / RDL_MAX_RANKS);
    const char *name = slot < m->slot_count ? m->slots[slot].name : NULL;

    if (kind == VALUE)
        return llama_fail(
            error, RDL_FORMAT,
            "step %d: %s holds a value that is not finite, in the "
            "rows of rank %d; nothing was updated",
            step, name, rank);
    if (kind == LOSS)
        return llama_fail(error, RDL_FORMAT,
                          "step %d: the loss is not finite on rank %d%s%s; "
                          "nothing was updated",
                          step, rank,
                          name != NULL ? ", and first of all gradients that of "
                                       : "",
                          name != NULL ? name : "");
    if (kind == GRADIENT)
        return llama_fail(error, RDL_FORMAT,
                          "step %d: the gradient of %s is not finite on rank "
                          "%d; nothing was updated",
                          step, name, rank);
    return llama_fail(error, RDL_FORMAT,
                      "step %d: the gradient%s%s, summed over ranks, is not "
                      "finite (in the rows of rank %d); nothing was updated",
                      step, name != NULL ? " of " : "",
                      name != NULL ? name : "", rank);
}

/* numbers[] of all ranks: the greatest of each. */
static rdl_status greatest(llama *m, double *numbers, size_t count,
                           llama_error *error)
{
    return llama_pass_on(
        error, rdl_all_reduce(m->o.world, m->o.tokens, numbers, numbers, count,
                              RDL_FLOAT64, RDL_MAX,
                              &(rdl_call){ .caller = "llama.finite" }));
}

static rdl_status measure_loss(llama *m, int step, uint64_t valid,
                               llama_result *result, llama_error *error)
{
    double sum = m->loss_sum;
    double most[2] = { 0, -own_culprit(m) };

    /* NaN would win and hide the culprit's number. */
    if (isfinite(sum) && m->counted != 0)
        most[0] = sum / (double)m->counted;
    LLAMA_RADDLE(rdl_all_reduce(m->o.world, m->o.tokens, &sum, &sum, 1,
                                RDL_FLOAT64, RDL_SUM,
                                &(rdl_call){ .caller = "llama.loss" }));
    LLAMA_TRY(greatest(m, most, 2, error));
    if (-most[1] < NOTHING * (double)RDL_MAX_RANKS * (m->slot_count + 1))
        return accuse(m, step, -most[1], error);
    result->loss = sum / (double)valid;
    result->loss_most = most[0];
    result->valid_tokens = valid;
    return RDL_OK;
}

/* The ranks of a shard group have different rows; those of a replicate group the
 * same ones, so these are not added. */
static rdl_status measure_norm(llama *m, int step, llama_result *result,
                               llama_error *error)
{
    double sum = 0, number;

    for (int i = 0; i <= llama_last_unit(m); i++) {
        double square;

        rdl_fsdp_square(m->units[i], &square);
        sum += square;
    }
    LLAMA_RADDLE(rdl_all_reduce(m->o.world, m->o.shard, &sum, &sum, 1,
                                RDL_FLOAT64, RDL_SUM,
                                &(rdl_call){ .caller = "llama.norm" }));
    result->norm = sqrt(sum);
    if (isfinite(sum))
        return RDL_OK;
    /* Every rank comes here, as replicas have the same bits. */
    int slot = first_unfit(m, SUM);
    number = -culprit(m, slot < 0 ? NOTHING : SUM, slot);
    LLAMA_TRY(greatest(m, &number, 1, error));
    return accuse(m, step, -number, error);
}

rdl_status llama_measure(llama *m, int step, uint64_t valid,
                         llama_result *result, llama_error *error)
{
    LLAMA_TRY(measure_loss(m, step, valid, result, error));
    return measure_norm(m, step, result, error);
}
