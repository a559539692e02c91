/* The steps. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/job.h"

#include <inttypes.h>

/* --- one step -------------------------------------------------------------- */

/* Passes on how a step went; of what is not finite every rank has the sentence. */
static bool step_ok(train_job *j, rdl_status status, const llama_error *error)
{
    if (status == RDL_FORMAT)
        j->is_shared = true;
    return job_ok(j, status, error);
}

/* The first step part by part, so that its gradients can be written before they
 * are clipped. */
static bool take_first_step(train_job *j, double rate, llama_result *result)
{
    int count = (int)j->plan.accumulate;
    llama_error error = { { 0 } };

    llama_zero(j->model);
    if (!job_ok(j,
                llama_count_valid(j->model, j->rows, count,
                                  &result->valid_tokens, &error),
                &error))
        return false;
    for (int m = 0; m < count; m++)
        if (!job_ok(j,
                    llama_microbatch(j->model, &j->rows[m], result->valid_tokens,
                                     m == count - 1, &error),
                    &error))
            return false;
    if (!step_ok(
            j, llama_measure(j->model, 1, result->valid_tokens, result, &error),
            &error) ||
        !job_export_gradients(j))
        return false;
    llama_clip(j->model, result->norm);
    llama_update(j->model, rate);
    return true;
}

static bool take_step(train_job *j, int64_t step, double rate,
                      llama_result *result)
{
    llama_error error = { { 0 } };

    if (!job_read_step(j, step))
        return false;
    if (step == 0 && j->o->export_to != NULL)
        return take_first_step(j, rate, result);
    return step_ok(j,
                   llama_train_step(j->model, (int)step + 1, j->rows,
                                    (int)j->plan.accumulate, rate, result,
                                    &error),
                   &error);
}

/* --- all of them ----------------------------------------------------------- */

static void say_beginning(train_job *j)
{
    const train_plan *p = &j->plan;
    const corpus *c = &j->data;
    int64_t rows = c->tokens / p->length;

    if (rows < p->rows)
        report_say(&j->report,
                   "warning: the data has %" PRId64 " row%s of %" PRId64
                   " tokens and a step takes %" PRId64 ": rows are repeated",
                   rows, rows == 1 ? "" : "s", p->length, p->rows);
    if (j->o->json)
        return;
    report_say(&j->report,
               "%s, %s parameters, seed %" PRId64
               "; dp_replicate(%d) * dp_shard(%d) * cp(%d) = %d rank%s%s",
               p->config->name,
               digits_of((int64_t)llama_parameter_count(p->config)).text,
               j->seed, p->replicate, p->shard, p->context, p->ranks,
               p->ranks == 1 ? "" : "s", p->fsdp ? "" : ", no FSDP");
    report_say(&j->report,
               "%" PRId64 " document%s, %s tokens, %s rows of %" PRId64
               "; left out %" PRId64 " binary, %" PRId64 " empty, %" PRId64
               " other files",
               c->n_documents, c->n_documents == 1 ? "" : "s",
               digits_of(c->tokens).text, digits_of(rows).text, p->length,
               c->binary, c->empty, c->odd);
    report_say(&j->report, "%s; %.1f GFLOP/s of a core in matrix products",
               llama_blas_name(j->blas), j->peak / 1e9);
}

static bool train_steps(train_job *j, step_report *s)
{
    const train_plan *p = &j->plan;

    for (int64_t step = 0; step < s->steps; step++) {
        double rate = llama_learning_rate(&p->schedule, (int)step);
        llama_result result = { .loss = 0 };
        bool show = step == 0 || (step + 1) % j->o->log_every == 0;

        report_progress(&j->report, step + 1, s->steps);
        if (!take_step(j, step, rate, &result))
            return false;
        s->step = step + 1;
        s->loss = result.loss;
        s->loss_most = result.loss_most;
        s->norm = result.norm;
        s->learning_rate = rate;
        s->valid_tokens = result.valid_tokens;
        if (!report_step(&j->report, s, show, &j->trouble))
            return false;
    }
    return true;
}

bool job_train(train_job *j)
{
    const train_plan *p = &j->plan;
    step_report s = {
        .steps = j->o->steps,
        .tokens = p->rows * p->length,
        .ranks = p->ranks,
        .flops_per_token =
            (double)llama_flops_per_token(p->config, (size_t)p->length),
        .peak = j->peak,
    };
    int64_t took = 0, waited = 0;

    say_beginning(j);
    if (j->o->export_to != NULL &&
        (!job_export_tokens(j) || !job_export_model(j, "initial.safetensors")))
        return false;
    report_start(&j->report);
    if (!train_steps(j, &s))
        return false;
    if (j->o->export_to != NULL && !job_export_model(j, "model.safetensors"))
        return false;
    llama_communication(j->model, &took, &waited);
    report_hidden(&j->report, took, waited);
    return report_account(&j->report, j->world, &s, &j->trouble);
}
