/* The program of a rank that trains, as in the field: FSDP gathers the next layer on
 * one stream and sums gradients on another, context parallelism redistributes on the
 * compute stream, and all of it goes over the world. The compute stream is the null
 * stream, which is the caller's thread. Each is delayed by luck before each of its
 * collectives. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "luck.h"
#include "race.h"

#include "base/status.h"
#include "comm/seam.h"
#include "llama/model.h"
#include "parallel/fsdp.h"

#include <raddle/collective.h>
#include <raddle/stream.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* So many that no two kinds of calls move blocks of one size: what is paired wrongly
 * is seen then. */
#define TOKENS 18 /* of a row, on each rank */
#define LENGTH_MOST (TOKENS * RACE_RANKS_MOST)
#define ROWS 2

enum { COMPUTE, GATHERS, REDUCTIONS };

static const char *const names[RACE_STREAMS] = { "null", "gathers",
                                                 "reductions" };

typedef struct trainer {
    const race_setting *setting;
    int rank;
    rdl_world *world;
    rdl_stream *streams[RACE_STREAMS]; /* NULL: the caller's thread */
    rdl_group lanes[RACE_STREAMS];
    rdl_group alone;
    uint64_t luck[RACE_STREAMS]; /* each its stream's thread's alone */
    rdl_delay delay;
    llama *model;
    llama_error error;
    int32_t tokens[ROWS * LENGTH_MOST];
    int32_t labels[ROWS * LENGTH_MOST];
    int32_t positions[ROWS * LENGTH_MOST];
} trainer;

/* --- delays ---------------------------------------------------------------- */

static void wait_by_luck(void *arg, const char *stream)
{
    trainer *t = arg;
    struct timespec length = { 0 };

    for (int s = 0; s < RACE_STREAMS; s++)
        if (strcmp(stream, names[s]) == 0)
            length.tv_nsec = (long)race_draw(&t->luck[s], RACE_DELAY_US * 1000);
    clock_nanosleep(CLOCK_MONOTONIC, 0, &length, NULL);
}

static void set_delays(trainer *t)
{
    uint64_t own = t->setting->seed * 1000 + (uint64_t)t->rank + 1;

    for (int s = 0; s < RACE_STREAMS; s++)
        t->luck[s] = race_draw(&own, UINT64_MAX);
    t->delay = (rdl_delay){ wait_by_luck, t };
    if (t->setting->arm->delays)
        rdl_world_delay(t->world, &t->delay);
}

/* --- the model ------------------------------------------------------------- */

static rdl_status open_lanes(trainer *t)
{
    int all[RACE_RANKS_MOST];

    for (int i = 0; i < t->setting->ranks; i++)
        all[i] = i;
    for (int s = 0; s < RACE_STREAMS; s++) {
        t->lanes[s] = RDL_WORLD;
        if (t->setting->arm->opens)
            RDL_TRY(rdl_group_open(t->world, all, t->setting->ranks, names[s],
                                   &t->lanes[s]));
        if (!t->setting->arm->uses)
            t->lanes[s] = RDL_WORLD;
    }
    return rdl_group_open(t->world, &t->rank, 1, NULL, &t->alone);
}

static rdl_status open_streams(trainer *t)
{
    for (int s = GATHERS; s < RACE_STREAMS && t->setting->arm->streams > 1; s++)
        RDL_TRY(rdl_stream_create(t->world, names[s], &t->streams[s]));
    return RDL_OK;
}

static llama_options options_of(const trainer *t)
{
    return (llama_options){
        .config = *llama_config_named("llama3-tiny"),
        .world = t->world,
        .blas = t->setting->blas,
        .context = t->lanes[COMPUTE],
        .shard = t->lanes[GATHERS],
        .replicate = t->alone,
        .tokens = RDL_WORLD,
        .gathers = t->streams[GATHERS],
        .reductions = t->streams[REDUCTIONS],
        .length = TOKENS * (size_t)t->setting->ranks,
        .rows = ROWS,
        .adamw = llama_adamw_defaults(),
        .max_norm = 1,
        .seed = 42,
    };
}

static rdl_status make_model(trainer *t)
{
    llama_options options = options_of(t);

    LLAMA_TRY(llama_create(&options, &t->model, &t->error));
    for (int i = 0; i <= llama_last_unit(t->model); i++)
        rdl_fsdp_sum_over(t->model->units[i], t->lanes[REDUCTIONS]);
    return RDL_OK;
}

static rdl_status open_all(trainer *t)
{
    rdl_world_options options = { .rank = t->rank,
                                  .size = t->setting->ranks,
                                  .job = t->setting->job,
                                  .start_timeout_ms = 20000,
                                  .timeout_ms = RACE_LIMIT_MS };
    llama_error *error = &t->error;

    LLAMA_RADDLE(rdl_world_open(&options, &t->world));
    LLAMA_RADDLE(open_lanes(t));
    LLAMA_RADDLE(open_streams(t));
    LLAMA_TRY(make_model(t));
    LLAMA_RADDLE(rdl_barrier(t->world, RDL_WORLD, NULL));
    rdl_world_unfence(t->world, t->setting->arm->unfenced);
    rdl_world_compare(t->world, t->setting->compare);
    set_delays(t);
    return RDL_OK;
}

static void close_all(trainer *t)
{
    llama_destroy(t->model);
    for (int s = 0; s < RACE_STREAMS; s++)
        (void)rdl_stream_destroy(t->streams[s]);
    (void)rdl_world_close(t->world);
}

/* --- training -------------------------------------------------------------- */

/* The same for all ranks and all runs, and every second step: what follows a token
 * depends on it, mostly. */
static llama_rows make_rows(trainer *t, int step)
{
    uint64_t luck = (uint64_t)step % 2, token = race_draw(&luck, 67);
    size_t length = TOKENS * (size_t)t->setting->ranks;

    for (size_t i = 0; i < ROWS * length; i++) {
        t->tokens[i] = (int32_t)token;
        token = race_draw(&luck, 4) == 0 ? race_draw(&luck, 67)
                                         : (token * 5 + 1) % 67;
        t->labels[i] = (int32_t)token;
        t->positions[i] = (int32_t)(i % length);
    }
    return (llama_rows){ ROWS, t->tokens, t->labels, t->positions };
}

static rdl_status train(trainer *t, race_course *course)
{
    llama_schedule schedule = llama_schedule_defaults(RACE_STEPS);

    for (int step = 0; step < RACE_STEPS; step++) {
        llama_rows rows = make_rows(t, step);
        llama_result result;

        LLAMA_TRY(llama_train_step(t->model, step + 1, &rows, 1,
                                   llama_learning_rate(&schedule, step),
                                   &result, &t->error));
        course->losses[step] = result.loss;
        course->norms[step] = result.norm;
        course->steps++;
    }
    return RDL_OK;
}

bool race_same_course(const race_course *a, const race_course *b)
{
    size_t bytes = (size_t)a->steps * sizeof *a->losses;

    return a->steps == b->steps && memcmp(a->losses, b->losses, bytes) == 0 &&
           memcmp(a->norms, b->norms, bytes) == 0;
}

/* Says in which step a course first differs from what it must be. */
static void say_difference(const race_course *got, const race_course *wanted,
                           race_report *report)
{
    int step = 0;

    while (step + 1 < RACE_STEPS && got->losses[step] == wanted->losses[step] &&
           got->norms[step] == wanted->norms[step])
        step++;
    snprintf(report->sentence, sizeof report->sentence,
             "step %d: loss %.9g and norm %.9g, and not %.9g and %.9g",
             step + 1, got->losses[step], got->norms[step],
             wanted->losses[step], wanted->norms[step]);
}

static void judge(const trainer *t, rdl_status st, race_report *report)
{
    const race_course *wanted = t->setting->wanted;

    report->end = RACE_PASSED;
    if (st != RDL_OK) {
        /* Numbers that are not finite are a wrong result. */
        report->end = st == RDL_FORMAT ? RACE_WRONG : race_end_of(st);
        snprintf(report->sentence, sizeof report->sentence, "%.*s",
                 (int)sizeof report->sentence - 1, t->error.text);
    } else if (wanted != NULL && !race_same_course(&report->course, wanted)) {
        report->end = RACE_WRONG;
        say_difference(&report->course, wanted, report);
    }
}

void race_train(const race_setting *setting, int rank, race_report *report)
{
    trainer t = { .setting = setting, .rank = rank };
    rdl_status st = open_all(&t);
    double start = race_now_ms();

    if (st == RDL_OK) {
        st = train(&t, &report->course);
        report->ms = race_now_ms() - start;
        judge(&t, st, report);
    } else { /* broken, as the report says already */
        snprintf(report->sentence, sizeof report->sentence, "%.*s",
                 (int)sizeof report->sentence - 1, t.error.text);
    }
    close_all(&t);
}
