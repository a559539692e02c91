/* Joining, and leaving with one sentence. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/job.h"

#include "command.h"
#include "say.h"
#include "train/tensors.h"
#include "train/train.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

bool job_ok(train_job *j, rdl_status status, const llama_error *error)
{
    if (status == RDL_OK)
        return true;
    if (j->trouble.status == 0)
        j->is_echo = status == RDL_PEER;
    return trouble_note(&j->trouble, STATUS_FAILED, "%s",
                        error != NULL && error->text[0] != '\0'
                            ? error->text
                            : rdl_error_detail());
}

/* The worst status, of the lowest rank that has it: its sentence is everyone's. */
bool job_agree(train_job *j)
{
    int64_t mine = j->trouble.status == 0 ? INT64_MAX : j->rank, first = mine;

    if (!job_ok(j,
                rdl_all_reduce(j->world, RDL_WORLD, &mine, &first, 1, RDL_INT64,
                               RDL_MIN, &(rdl_call){ .caller = "agree" }),
                NULL))
        return false;
    if (first == INT64_MAX)
        return true;
    /* Whoever had a trouble of its own keeps its sentence no longer. */
    if (!job_ok(j,
                rdl_broadcast(j->world, RDL_WORLD, &j->trouble,
                              sizeof j->trouble, RDL_UINT8, (int)first,
                              &(rdl_call){ .caller = "agree" }),
                NULL))
        return false;
    j->is_shared = true;
    return false;
}

static bool open_world(train_job *j)
{
    rdl_world_options options = {
        .start_timeout_ms =
            j->o->start_timeout_s > 0 ? j->o->start_timeout_s * 1000 : 0,
        .timeout_ms = j->o->timeout_s > 0 ? j->o->timeout_s * 1000 : 0,
    };

    if (!job_ok(j, rdl_world_open(&options, &j->world), NULL))
        return false;
    j->rank = rdl_world_rank(j->world);
    return true;
}

/* One seed for all: without --seed, a random one of rank 0. */
static bool find_seed(train_job *j)
{
    uint32_t random = 0;

    j->seed = j->o->seed;
    if (j->seed >= 0)
        return true;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        random = 1;
    j->seed = random;
    return job_ok(j,
                  rdl_broadcast(j->world, RDL_WORLD, &j->seed, 1, RDL_INT64, 0,
                                &(rdl_call){ .caller = "seed" }),
                  NULL);
}

/* CP's exchanges stay on this thread, FSDP's go beside it; all are on the default
 * group. */
static bool make_streams(train_job *j)
{
    if (!j->o->overlap)
        return true;
    return job_ok(j, rdl_stream_create(j->world, "gather", &j->gathers), NULL) &&
           job_ok(j, rdl_stream_create(j->world, "reduce", &j->reductions),
                  NULL);
}

static bool make_model(train_job *j)
{
    const train_plan *p = &j->plan;
    llama_options options = {
        .config = *p->config,
        .world = j->world,
        .blas = j->blas,
        .context = j->context,
        .shard = j->shard,
        .replicate = j->replicate,
        .tokens = RDL_WORLD,
        .gathers = j->gathers,
        .reductions = j->reductions,
        .length = (size_t)p->length,
        .rows = (size_t)p->microbatch,
        .recompute = p->recompute,
        .adamw = p->adamw,
        .max_norm = j->o->max_norm,
        .seed = (uint64_t)j->seed,
    };
    llama_error error = { { 0 } };

    return job_ok(j, llama_create(&options, &j->model, &error), &error);
}

/* The same number on all ranks, though rank 0 alone shows it. */
static bool measure_peak(train_job *j)
{
    const rdl_call call = { .caller = "peak" };
    llama_error error = { { 0 } };

    return job_ok(j, llama_blas_rate(j->blas, &j->peak, &error), &error) &&
           job_ok(j,
                  rdl_all_reduce(j->world, RDL_WORLD, &j->peak, &j->peak, 1,
                                 RDL_FLOAT64, RDL_AVG, &call),
                  NULL);
}

static bool open_blas(train_job *j)
{
    llama_error error = { { 0 } };

    return job_ok(j, llama_blas_open(&j->blas, &error), &error);
}

/* What may fail for one rank alone; where they agree, all learn of it. */
static void check_own(train_job *j)
{
    if (open_blas(j) && j->rank == 0 && j->o->export_to != NULL)
        tensor_folder_check(j->o->export_to, &j->trouble);
}

static bool prepare(train_job *j)
{
    check_own(j);
    return job_agree(j) && job_open_groups(j) && job_open_data(j) &&
           find_seed(j) && make_streams(j) && make_model(j) && measure_peak(j);
}

static bool run(train_job *j)
{
    if (!open_world(j))
        return false;
    if (j->o->log_collectives && !job_trace(j))
        return false;
    report_open(&j->report, j->o->json, j->rank == 0);
    return prepare(j) && job_train(j);
}

/* Several ranks may have the same to say, and then rank 0 does. What is only the
 * end of another rank is said by rank 0 too, or by the launcher. */
static void say_trouble(const train_job *j)
{
    if (j->trouble.status == 0)
        return;
    if (j->rank == 0 || (!j->is_shared && !j->is_echo))
        say(TRAIN, "%s", j->trouble.text);
}

/* A rank whose trouble is its own tells the others; where all have it, they end
 * when rank 0 does, which has spoken then. */
static void leave(train_job *j)
{
    if (j->world == NULL)
        return;
    if (j->is_shared && j->rank != 0)
        (void)(rdl_barrier(j->world, RDL_WORLD, NULL) == RDL_OK);
    else if (j->trouble.status != 0 && !j->is_shared && !j->is_echo)
        rdl_world_abort(j->world, j->trouble.text);
}

static void close_all(train_job *j)
{
    llama_destroy(j->model);
    (void)rdl_stream_destroy(j->gathers);
    (void)rdl_stream_destroy(j->reductions);
    rdl_mesh_destroy(j->mesh);
    corpus_free(&j->data);
    free(j->room);
    free(j->rows);
    if (j->world != NULL)
        (void)(rdl_world_close(j->world) == RDL_OK);
    llama_blas_close(j->blas);
}

int job_run(const train_options *o, const train_plan *p)
{
    train_job j = { .o = o, .plan = *p, .data = { .fd = -1 } };

    if (!run(&j) && j.trouble.status == 0)
        trouble_note(&j.trouble, STATUS_FAILED, "training ended without a word");
    report_close(&j.report);
    say_trouble(&j);
    leave(&j);
    close_all(&j);
    return j.trouble.status;
}
