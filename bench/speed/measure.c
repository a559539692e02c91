/* Taking turns at one point. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALLS_MOST 4096
#define BLOCK_CALLS_MOST 8192
/* A peer that is this many times slower than raddle decides nothing, and is asked
 * for a few turns only. */
#define HOPELESS 30
#define HOPELESS_TURNS 3

typedef struct course {
    const speed_options *o;
    speed_job *jobs;
    int cores;
    speed_row *row;
    int calls[SPEED_PEERS]; /* of a turn */
    double us[SPEED_PEERS]; /* a call, first guess */
    bool holds; /* all keep their buffers between turns; else there is no room */
} course;

static bool takes_part(const course *c, int peer)
{
    return c->jobs[peer].works && c->row->results[peer].outcome == SPEED_DONE;
}

static speed_order order_for(const course *c, int peer, speed_kind kind)
{
    const speed_point *p = &c->row->point;

    return (speed_order){ .kind = (int32_t)kind,
                          .operation = p->operation,
                          .dtype = (int32_t)p->dtype,
                          .mapped = p->mapped && peer == SPEED_RADDLE,
                          .fresh = c->o->fresh,
                          .bytes = p->bytes };
}

static void do_it(const course *c, int peer, const speed_order *order,
                  double *us)
{
    speed_result *r = &c->row->results[peer];

    r->outcome = speed_job_do(&c->jobs[peer], order, us, r->why);
}

/* What failed stays failed. */
static void simply(const course *c, int peer, speed_kind kind)
{
    speed_order order = order_for(c, peer, kind);
    speed_result *r = &c->row->results[peer];
    speed_outcome before = r->outcome;
    char why[sizeof r->why];

    if (!c->jobs[peer].works)
        return;
    memcpy(why, r->why, sizeof why);
    do_it(c, peer, &order, NULL);
    if (before == SPEED_DONE)
        return;
    r->outcome = before;
    memcpy(r->why, why, sizeof why);
}

/* Microseconds a call, in n calls at once. */
static double try_calls(const course *c, int peer, int n)
{
    speed_order order = order_for(c, peer, SPEED_TIME);
    double us[SPEED_BLOCKS];

    order.blocks = 1;
    order.calls = n;
    do_it(c, peer, &order, us);
    return us[0];
}

/* How many calls make a turn, which is also the warming up. */
static void calibrate(course *c, int peer)
{
    double want = c->o->turn_ms * 1000, us = 0;
    int n = 1;

    if (c->row->point.members > c->cores)
        want *= 2;
    while (takes_part(c, peer)) {
        us = try_calls(c, peer, n);
        if (us * n > want / 3 || n >= CALLS_MOST)
            break;
        n *= 4;
    }
    n = us > 0 && want / us < BLOCK_CALLS_MOST ? (int)(want / us)
                                               : BLOCK_CALLS_MOST;
    c->us[peer] = us;
    c->calls[peer] = n < 1 ? 1 : n;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Sorts them. */
static double quantile(double *of, int n, double part)
{
    double at = part * (n - 1);
    int i = (int)at;

    if (n == 0)
        return 0;
    qsort(of, (size_t)n, sizeof *of, by_size);
    return i + 1 < n ? of[i] + (at - i) * (of[i + 1] - of[i]) : of[n - 1];
}

/* The median of its blocks: what else the machine does is not the call's. */
static void note_turn(speed_result *r, double *us, int blocks)
{
    memcpy(r->blocks + r->n_blocks, us, (size_t)blocks * sizeof *us);
    r->n_blocks += blocks;
    r->turns[r->n_turns++] = quantile(us, blocks, 0.5);
}

static void take_turn(const course *c, int peer)
{
    speed_order order = order_for(c, peer, SPEED_TIME);
    double us[SPEED_BLOCKS];
    int n = c->calls[peer];

    if (!c->holds)
        simply(c, peer, SPEED_PREPARE);
    order.blocks = n < SPEED_BLOCKS ? n : SPEED_BLOCKS;
    order.calls = c->o->fresh ? 1 : n / order.blocks;
    if (takes_part(c, peer))
        do_it(c, peer, &order, us);
    if (takes_part(c, peer))
        note_turn(&c->row->results[peer], us, order.blocks);
    if (!c->holds)
        simply(c, peer, SPEED_DROP);
}

static bool is_hopeless(const course *c, int peer)
{
    return c->us[peer] > HOPELESS * c->us[SPEED_RADDLE];
}

/* Each goes first as often as last. */
static void take_turns(const course *c, int turn)
{
    for (int i = 0; i < SPEED_PEERS; i++) {
        int peer = turn % 2 ? SPEED_PEERS - 1 - i : i;

        if (takes_part(c, peer) &&
            (turn < HOPELESS_TURNS || !is_hopeless(c, peer)))
            take_turn(c, peer);
    }
}

/* --- what came of it ------------------------------------------------------- */

static double median_of(const double *of, int n)
{
    double sorted[SPEED_TURNS_MOST];

    memcpy(sorted, of, (size_t)n * sizeof *of);
    return quantile(sorted, n, 0.5);
}

static speed_ratio compare(const speed_result *mine, const speed_result *theirs)
{
    double ratios[SPEED_TURNS_MOST];
    int n = mine->n_turns < theirs->n_turns ? mine->n_turns : theirs->n_turns;

    for (int i = 0; i < n; i++)
        ratios[i] = mine->turns[i] / theirs->turns[i];
    return (speed_ratio){ quantile(ratios, n, 0.25), quantile(ratios, n, 0.5),
                          quantile(ratios, n, 0.75) };
}

static void conclude(speed_row *row)
{
    for (int i = 0; i < SPEED_PEERS; i++) {
        speed_result *r = &row->results[i];

        r->median = median_of(r->turns, r->n_turns);
        qsort(r->blocks, (size_t)r->n_blocks, sizeof *r->blocks, by_size);
        if (i == SPEED_RADDLE || r->n_turns == 0 || r->outcome != SPEED_DONE)
            continue;
        row->ratios[i] = compare(&row->results[SPEED_RADDLE], r);
        if (row->best == 0 || r->median < row->results[row->best].median)
            row->best = i;
    }
}

/* --- room ------------------------------------------------------------------ */

static double free_bytes(void)
{
    FILE *file = fopen("/proc/meminfo", "r");
    char text[256];
    double kib = 0;

    while (file != NULL && fgets(text, sizeof text, file) != NULL)
        if (strncmp(text, "MemAvailable:", 13) == 0)
            kib = strtod(text + 13, NULL);
    if (file != NULL)
        (void)fclose(file);
    return kib * 1024;
}

/* Bytes that the ranks of one job need. */
static double need_of(const speed_point *p)
{
    uint64_t output = speed_output_bytes(p->operation, p->members, p->bytes);

    return (double)p->ranks * (double)(p->bytes + output);
}

static bool refuse(speed_row *row, double need, double have)
{
    for (int i = 0; i < SPEED_PEERS; i++) {
        row->results[i].outcome = SPEED_UNSUPPORTED;
        snprintf(row->results[i].why, sizeof row->results[i].why,
                 "needs %.0f MiB, and half of what is free is %.0f MiB",
                 need / 1048576, have / 1048576);
    }
    return false;
}

static bool find_room(course *c)
{
    double need = need_of(&c->row->point), have = free_bytes() / 2, jobs = 0;

    for (int i = 0; i < SPEED_PEERS; i++)
        jobs += c->jobs[i].works;
    c->holds = jobs * need <= have;
    return need <= have || refuse(c->row, need, have);
}

/* --- all of it ------------------------------------------------------------- */

static void begin(course *c, int peer)
{
    speed_result *r = &c->row->results[peer];

    if (!c->jobs[peer].works) {
        r->outcome = SPEED_UNSUPPORTED;
        memcpy(r->why, c->jobs[peer].why, sizeof r->why);
        return;
    }
    simply(c, peer, SPEED_PREPARE);
    if (takes_part(c, peer))
        calibrate(c, peer);
    if (!c->holds)
        simply(c, peer, SPEED_DROP);
}

static void end(const course *c, int peer)
{
    if (!c->holds)
        return;
    if (takes_part(c, peer))
        simply(c, peer, SPEED_CHECK);
    simply(c, peer, SPEED_DROP);
}

void speed_measure(const speed_options *options, speed_job *jobs, int cores,
                   speed_row *row)
{
    course c = { .o = options, .jobs = jobs, .cores = cores, .row = row };

    if (!find_room(&c))
        return;
    for (int i = 0; i < SPEED_PEERS; i++)
        begin(&c, i);
    for (int turn = 0; turn < options->turns; turn++)
        take_turns(&c, turn);
    for (int i = 0; i < SPEED_PEERS; i++)
        end(&c, i);
    conclude(row);
}
