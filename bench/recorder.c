/* `raddle bench recorder`: what comparing calls (fingerprints) and recording them with
 * their sites costs. All_reduces without either and with both are timed by turns.
 * What else the machine does makes either longer and never shorter, so what counts
 * is the lower quartile of the ratios; the others are printed too.
 *
 * A row: name, ranks, bytes, microseconds of a call without and with (medians), three
 * quartiles of the ratios, the most that the first may be. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/status.h"
#include "base/time.h"
#include "comm/seam.h"
#include "comm/verdict.h"
#include "comm/world.h"

#include <raddle/collective.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WHO "raddle bench recorder"
#define PAIRS 401 /* the most */
#define PAIRS_LEAST 7
#define ENOUGH INT64_C(8000000000)  /* nanoseconds of a row */
#define BLOCK_TIME INT64_C(1000000) /* of many calls, in nanoseconds */
#define LARGE ((size_t)65536)
#define ALONE 10000 /* calls of a block without ranks */
#define ALONE_MOST 30.0
#define RATIO_MOST 1.03

static const char help[] =
    "Usage: raddle bench recorder\n"
    "\n"
    "Times all_reduces without fingerprints and records and with both, by "
    "turns,\n"
    "7 to 401 times, and prints a row for each size, with tabs: name, ranks,\n"
    "bytes, microseconds without and with (medians), lower quartile, median "
    "and\n"
    "upper quartile of the ratios, and the most that the lower quartile may "
    "be\n"
    "(-: it is only shown). The first row is what both take alone, without "
    "ranks:\n"
    "nanoseconds a call, lower quartile, and the most that it may be. Status 1 "
    "if\n"
    "one is more.\n";

typedef struct bench {
    int rank;
    int size;
    rdl_world *world;
    float *input;
    float *output;
    int failures; /* rows that are more than they may be */
} bench;

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* --- alone ------------------------------------------------------------------- */

/* What one call does beside what it would do anyway; 0 for the compiler's eyes. */
static uint64_t look_once(rdl_world *world, uint64_t count)
{
    rdl_call_site site = { RDL_HERE, NULL };
    rdl_description d = { .count = count,
                          .operation = RDL_OP_ALL_REDUCE,
                          .dtype = RDL_FLOAT32 };
    rdl_entry entry = { .count = count,
                        .operation = RDL_OP_ALL_REDUCE,
                        .dtype = RDL_FLOAT32,
                        .flags = RDL_RECORD_BLOCKS };
    uint64_t number, fingerprint = rdl_fingerprint(&d);

    entry.site = rdl_texts_site(&world->texts, site);
    number = rdl_recorder_add(&world->recorder, &entry);
    rdl_recorder_begin(&world->recorder, number, count);
    rdl_recorder_end(&world->recorder, number, RDL_OK, false);
    return fingerprint == 0;
}

static void measure_alone(bench *b)
{
    double ns[PAIRS];
    uint64_t zero = 0;

    for (int i = 0; i < PAIRS; i++) {
        rdl_time start = rdl_now();

        for (uint64_t n = 1; n <= ALONE; n++)
            zero += look_once(b->world, n);
        ns[i] = (double)(rdl_now() - start) / ALONE;
    }
    qsort(ns, PAIRS, sizeof *ns, by_size);
    if (ns[PAIRS / 4] > ALONE_MOST || zero != 0)
        b->failures++;
    printf("alone\t1\t0\t%.1f\t%.0f\n", ns[PAIRS / 4], ALONE_MOST);
    fflush(stdout);
}

/* --- pairs ------------------------------------------------------------------- */

static rdl_status measure(bench *b, bool with, size_t elements, int64_t count,
                          rdl_time *time)
{
    rdl_time start;

    RDL_TRY(rdl_barrier(b->world, RDL_WORLD, NULL));
    rdl_world_record(b->world, with);
    rdl_world_compare(b->world, with);
    RDL_TRY(rdl_barrier(b->world, RDL_WORLD, NULL));
    start = rdl_now();
    for (int64_t i = 0; i < count; i++)
        RDL_TRY(rdl_all_reduce(b->world, RDL_WORLD, b->input, b->output,
                               elements, RDL_FLOAT32, RDL_SUM, NULL));
    *time = rdl_now() - start;
    return RDL_OK;
}

/* So many calls, as rank 0 says, that they take long enough to be timed. */
static rdl_status choose_count(bench *b, size_t elements, int64_t *count)
{
    for (*count = 1;; *count *= 2) {
        rdl_time time = 0;

        RDL_TRY(measure(b, true, elements, *count, &time));
        RDL_TRY(rdl_broadcast(b->world, RDL_WORLD, &time, 1, RDL_INT64, 0, NULL));
        if (time >= BLOCK_TIME || *count >= 65536)
            return RDL_OK;
    }
}

/* Whether a row goes on, as rank 0 says. */
static rdl_status go_on(bench *b, int pairs, rdl_time start, bool *more)
{
    int32_t said =
        pairs < PAIRS_LEAST || (pairs < PAIRS && rdl_now() - start < ENOUGH);
    rdl_status st =
        rdl_broadcast(b->world, RDL_WORLD, &said, 1, RDL_INT32, 0, NULL);

    *more = said != 0;
    return st;
}

typedef struct row {
    int pairs;
    size_t bytes;
    bool judged;
    double without[PAIRS]; /* microseconds a call */
    double with[PAIRS];
    double ratio[PAIRS];
} row;

static void print(bench *b, row *r)
{
    int n = r->pairs;

    qsort(r->without, (size_t)n, sizeof(double), by_size);
    qsort(r->with, (size_t)n, sizeof(double), by_size);
    qsort(r->ratio, (size_t)n, sizeof(double), by_size);
    if (r->judged && r->ratio[n / 4] > RATIO_MOST)
        b->failures++;
    if (b->rank != 0)
        return;
    printf("all_reduce\t%d\t%zu\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t", b->size,
           r->bytes, r->without[n / 2], r->with[n / 2], r->ratio[n / 4],
           r->ratio[n / 2], r->ratio[n * 3 / 4]);
    printf(r->judged ? "%.2f\n" : "-\n", RATIO_MOST);
    fflush(stdout);
}

static rdl_status compare(bench *b, size_t bytes, bool judged)
{
    row r = { .bytes = bytes, .judged = judged };
    size_t elements = bytes / sizeof(float);
    rdl_time start;
    int64_t count;
    bool more = true;

    RDL_TRY(choose_count(b, elements, &count));
    start = rdl_now();
    while (more) {
        int i = r.pairs++;
        rdl_time times[2] = { 0, 0 };

        /* Each goes first as often as the other. */
        for (int j = 0; j < 2; j++)
            RDL_TRY(
                measure(b, (i + j) % 2, elements, count, &times[(i + j) % 2]));
        r.without[i] = (double)times[0] / 1e3 / (double)count;
        r.with[i] = (double)times[1] / 1e3 / (double)count;
        r.ratio[i] = r.with[i] / r.without[i];
        RDL_TRY(go_on(b, r.pairs, start, &more));
    }
    rdl_world_record(b->world, true);
    print(b, &r);
    return RDL_OK;
}

static rdl_status run_all(bench *b)
{
    if (b->rank == 0 && b->size == 2)
        measure_alone(b);
    RDL_TRY(compare(b, 8, b->size >= 4));
    return compare(b, LARGE, true);
}

/* --- ranks ------------------------------------------------------------------- */

static rdl_status open_world(bench *b)
{
    char job[64];
    rdl_world_options options = { .rank = b->rank, .size = b->size, .job = job };

    snprintf(job, sizeof job, "recorder-%d-%d", (int)getppid(), b->size);
    RDL_TRY(rdl_world_open(&options, &b->world));
    b->input = calloc(1, LARGE);
    b->output = calloc(1, LARGE);
    return b->input && b->output ? RDL_OK : rdl_fail(RDL_NO_MEMORY, "no memory");
}

static int run_rank(int rank, int size)
{
    bench b = { .rank = rank, .size = size };
    rdl_status st = open_world(&b);

    if (st == RDL_OK)
        st = run_all(&b);
    if (st != RDL_OK)
        fprintf(stderr, WHO ": rank %d: %s\n", rank, rdl_error_detail());
    (void)rdl_world_close(b.world);
    free(b.input);
    free(b.output);
    /* The ranks' times differ; rank 0's are those that are printed. */
    return st != RDL_OK || (rank == 0 && b.failures > 0);
}

static bool run_ranks(int size)
{
    bool good = true;
    int status;

    for (int rank = 0; rank < size && good; rank++) {
        pid_t pid = fork();

        if (pid == 0)
            exit(run_rank(rank, size));
        if (pid < 0)
            fprintf(stderr, WHO ": no process for rank %d\n", rank);
        good = pid > 0;
    }
    while (wait(&status) > 0)
        good &= status == 0;
    return good;
}

int main(int argc, char **argv)
{
    bool good;

    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        fputs(help, stdout);
        return fflush(stdout) == 0 ? 0 : 1;
    }
    if (argc > 1) {
        fprintf(stderr, WHO ": takes no arguments, and got '%s'\n", argv[1]);
        return 2;
    }
    good = run_ranks(2);
    good &= run_ranks(4);
    return good ? 0 : 1;
}
