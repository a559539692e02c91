/* The program of a rank: streams, delayed by luck, issue on one communicator in an
 * order that is equal on all ranks. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "luck.h"
#include "race.h"

#include "base/status.h"
#include "comm/seam.h"

#include <raddle/collective.h>
#include <raddle/stream.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* One call. */
typedef struct turn {
    int stream;
    bool gathers; /* else it reduces and scatters */
    size_t count;
    struct timespec delay; /* of this rank alone */
    int64_t *input;
    int64_t *output;
} turn;

typedef struct racer {
    const race_setting *setting;
    int rank;
    rdl_world *world;
    rdl_stream *streams[RACE_STREAMS];
    rdl_group lanes[RACE_STREAMS];
    turn turns[RACE_CALLS];
} racer;

/* --- luck ------------------------------------------------------------------ */

/* Different in each call, so that no two can be taken for each other. Some fit the
 * lines of the protocol and some do not. */
static size_t draw_count(uint64_t *state, int call)
{
    uint64_t blocks = race_draw(state, 3) == 0 ? 0 : race_draw(state, 60);

    return (size_t)(blocks * RACE_CALLS) + (size_t)call + 1;
}

static int64_t element(int rank, int call, size_t i)
{
    return (int64_t)rank * 1000003 + (int64_t)call * 10007 + (int64_t)i;
}

static void fill(int64_t *input, size_t n, int rank, int call)
{
    for (size_t i = 0; i < n; i++)
        input[i] = element(rank, call, i);
}

static bool make_turns(racer *r)
{
    const race_setting *s = r->setting;
    uint64_t common = s->seed, own = s->seed * 1000 + (uint64_t)r->rank + 1;
    size_t size = (size_t)s->ranks;

    for (int c = 0; c < RACE_CALLS; c++) {
        turn *t = &r->turns[c];
        size_t in;

        t->stream = (int)race_draw(&common, (uint64_t)s->arm->streams);
        t->gathers = race_draw(&common, 2) == 0;
        t->count = draw_count(&common, c);
        if (s->arm->delays)
            t->delay.tv_nsec = (long)race_draw(&own, RACE_DELAY_US * 1000);
        in = t->gathers ? t->count : size * t->count;
        t->input = calloc(in, sizeof *t->input);
        t->output = calloc(size * t->count, sizeof *t->output);
        if (t->input == NULL || t->output == NULL)
            return false;
        fill(t->input, in, r->rank, c);
    }
    return true;
}

/* --- calls ----------------------------------------------------------------- */

/* The stream's work before its call. */
static rdl_status delay(void *arg)
{
    const struct timespec *length = arg;

    clock_nanosleep(CLOCK_MONOTONIC, 0, length, NULL);
    return RDL_OK;
}

static rdl_status issue(racer *r, turn *t)
{
    rdl_call call = { .stream = r->streams[t->stream] };
    rdl_group group = r->setting->arm->uses ? r->lanes[t->stream] : RDL_WORLD;

    if (r->setting->arm->delays)
        RDL_TRY(rdl_stream_call(call.stream, delay, &t->delay));
    if (t->gathers)
        return rdl_all_gather(r->world, group, t->input, t->output, t->count,
                              RDL_INT64, &call);
    return rdl_reduce_scatter(r->world, group, t->input, t->output, t->count,
                              RDL_INT64, RDL_SUM, &call);
}

static rdl_status issue_all(racer *r)
{
    rdl_status first = RDL_OK;

    for (int c = 0; c < RACE_CALLS && first == RDL_OK; c++)
        first = issue(r, &r->turns[c]);
    /* What each stream has done wrong; the first cause is the group's. */
    for (int s = 0; s < RACE_STREAMS; s++) {
        rdl_status st = rdl_stream_synchronize(r->streams[s], 0);

        if (first == RDL_OK)
            first = st;
    }
    return first;
}

static rdl_status open_all(racer *r)
{
    int all[RACE_RANKS_MOST];

    for (int i = 0; i < r->setting->ranks; i++)
        all[i] = i;
    for (int s = 0; s < RACE_STREAMS; s++) {
        char name[24];

        snprintf(name, sizeof name, "stream %d", s);
        RDL_TRY(rdl_stream_create(r->world, name, &r->streams[s]));
        if (r->setting->arm->opens)
            RDL_TRY(rdl_group_open(r->world, all, r->setting->ranks, name,
                                   &r->lanes[s]));
    }
    rdl_world_unfence(r->world, r->setting->arm->unfenced);
    rdl_world_compare(r->world, r->setting->compare);
    return rdl_barrier(r->world, RDL_WORLD, NULL);
}

/* --- results --------------------------------------------------------------- */

/* What member part has given to call c, or the sum of what all have for us. */
static int64_t expected(const racer *r, int c, int part, size_t i)
{
    const turn *t = &r->turns[c];
    int64_t sum = 0;

    if (t->gathers)
        return element(part, c, i);
    for (int m = 0; m < r->setting->ranks; m++)
        sum += element(m, c, (size_t)r->rank * t->count + i);
    return sum;
}

static bool is_right(const racer *r, int c, race_report *report)
{
    const turn *t = &r->turns[c];
    int parts = t->gathers ? r->setting->ranks : 1;

    for (int part = 0; part < parts; part++)
        for (size_t i = 0; i < t->count; i++) {
            int64_t got = t->output[(size_t)part * t->count + i];
            int64_t wanted = expected(r, c, part, i);

            if (got == wanted)
                continue;
            snprintf(report->sentence, sizeof report->sentence,
                     "rank %d, call %d (%s of %zu elements): element %zu of "
                     "part %d is %lld and not %lld",
                     r->rank, c, t->gathers ? "all_gather" : "reduce_scatter",
                     t->count, i, part, (long long)got, (long long)wanted);
            return false;
        }
    return true;
}

static void judge(const racer *r, rdl_status st, race_report *report)
{
    if (st != RDL_OK)
        snprintf(report->sentence, sizeof report->sentence, "%s",
                 rdl_error_detail());
    if (st == RDL_OK) {
        report->end = RACE_PASSED;
        for (int c = 0; c < RACE_CALLS && report->end == RACE_PASSED; c++)
            if (!is_right(r, c, report))
                report->end = RACE_WRONG;
    } else {
        report->end = race_end_of(st);
    }
}

static void close_all(racer *r)
{
    for (int s = 0; s < RACE_STREAMS; s++)
        (void)rdl_stream_destroy(r->streams[s]);
    (void)rdl_world_close(r->world);
    for (int c = 0; c < RACE_CALLS; c++) {
        free(r->turns[c].input);
        free(r->turns[c].output);
    }
}

static rdl_status open_world(racer *r)
{
    rdl_world_options options = { .rank = r->rank,
                                  .size = r->setting->ranks,
                                  .job = r->setting->job,
                                  .start_timeout_ms = 20000,
                                  .timeout_ms = RACE_LIMIT_MS };

    if (!make_turns(r))
        return rdl_fail(RDL_NO_MEMORY, "no memory for buffers");
    RDL_TRY(rdl_world_open(&options, &r->world));
    return open_all(r);
}

void race_rank(const race_setting *setting, int rank, race_report *report)
{
    racer r = { .setting = setting, .rank = rank };
    rdl_status st = open_world(&r);
    double start = race_now_ms();

    if (st == RDL_OK) {
        st = issue_all(&r);
        report->ms = race_now_ms() - start;
        judge(&r, st, report);
    } else { /* broken, as the report says already */
        snprintf(report->sentence, sizeof report->sentence, "%s",
                 rdl_error_detail());
    }
    close_all(&r);
}
