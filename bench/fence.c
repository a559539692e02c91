/* `raddle bench fence`: what streams, the fence and the helper cost those who do not
 * need them, and whether communication goes on beside work. Two ways of doing the
 * same are timed by turns, and what counts is the lower quartile of the ratios: what
 * else the machine does makes either longer and never shorter.
 *
 * A row: name, ranks, bytes, microseconds of one way and of the other (medians), the
 * lower quartile, the most that it may be. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/status.h"
#include "base/time.h"
#include "comm/seam.h"

#include <raddle/collective.h>
#include <raddle/stream.h>
#include <raddle/work.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WHO "raddle bench fence"
#define PAIRS 15
#define BLOCK_TIME INT64_C(20000000) /* of many calls, in nanoseconds */
#define GATHERED ((size_t)1 << 20)   /* elements of each rank */

static const char help[] =
    "Usage: raddle bench fence\n"
    "\n"
    "Times two ways of doing the same by turns, 15 times, and prints a row for "
    "each\n"
    "pair, with tabs: name, ranks, bytes, microseconds of the first and of "
    "the\n"
    "second way (medians), the lower quartile of their ratios, and the most "
    "that\n"
    "it may be. Status 1 if one is more.\n"
    "\n"
    "  fence     calls on one stream, without the fence and with it\n"
    "  helper    blocking calls, before there is a helper thread and after\n"
    "  overlap   the longer of an all_gather and a sleep, and both at once\n"
    "  compute   likewise with work that computes; wants two cores a rank\n";

typedef struct bench {
    int rank;
    int size;
    rdl_world *quiet;  /* no asynchronous call was ever made */
    rdl_world *helped; /* its helper exists, and sleeps */
    rdl_stream *stream;
    int64_t *input;
    int64_t *output;
    rdl_time sleep; /* beside a gather */
    int64_t work;   /* likewise: rounds of compute */
    double sum;     /* of them, so that they are not left out */
    int failures;   /* rows that are more than they may be */
} bench;

/* count calls of one way. */
typedef rdl_status (*way)(bench *b, int count);

/* --- the ways -------------------------------------------------------------- */

static rdl_status reduce(bench *b, rdl_world *world)
{
    return rdl_all_reduce(world, RDL_WORLD, b->input, b->output, 1, RDL_INT64,
                          RDL_SUM, NULL);
}

static rdl_status on_stream(bench *b, int count, bool unfenced)
{
    rdl_call call = { .stream = b->stream };

    rdl_world_unfence(b->helped, unfenced);
    for (int i = 0; i < count; i++)
        RDL_TRY(rdl_all_reduce(b->helped, RDL_WORLD, b->input, b->output, 1,
                               RDL_INT64, RDL_SUM, &call));
    RDL_TRY(rdl_stream_synchronize(b->stream, 0));
    rdl_world_unfence(b->helped, false);
    return RDL_OK;
}

static rdl_status unfenced(bench *b, int count)
{
    return on_stream(b, count, true);
}

static rdl_status fenced(bench *b, int count)
{
    return on_stream(b, count, false);
}

static rdl_status quiet_reduces(bench *b, int count)
{
    while (count-- > 0)
        RDL_TRY(reduce(b, b->quiet));
    return RDL_OK;
}

static rdl_status helped_reduces(bench *b, int count)
{
    while (count-- > 0)
        RDL_TRY(reduce(b, b->helped));
    return RDL_OK;
}

static rdl_status quiet_barriers(bench *b, int count)
{
    while (count-- > 0)
        RDL_TRY(rdl_barrier(b->quiet, RDL_WORLD, NULL));
    return RDL_OK;
}

static rdl_status helped_barriers(bench *b, int count)
{
    while (count-- > 0)
        RDL_TRY(rdl_barrier(b->helped, RDL_WORLD, NULL));
    return RDL_OK;
}

static rdl_status gather(bench *b, rdl_work *work)
{
    return rdl_all_gather(b->helped, RDL_WORLD, b->input, b->output, GATHERED,
                          RDL_INT64, work ? &(rdl_call){ .work = work } : NULL);
}

static rdl_status gathers(bench *b, int count)
{
    while (count-- > 0)
        RDL_TRY(gather(b, NULL));
    return RDL_OK;
}

static rdl_status gathers_beside_sleep(bench *b, int count)
{
    rdl_work work;

    while (count-- > 0) {
        RDL_TRY(gather(b, &work));
        rdl_sleep(b->sleep);
        RDL_TRY(rdl_work_wait(b->helped, work, 0));
    }
    return RDL_OK;
}

/* Work that wants a core and no memory: two cycles of multiplications that depend
 * on each other. */
static void compute(bench *b)
{
    double x = 1.0, y = 1.0;

    for (int64_t i = 0; i < b->work; i++) {
        x = x * 1.0000001 + 1e-9;
        y = y * 0.9999999 + 1e-9;
    }
    b->sum += x + y;
}

static rdl_status computes(bench *b, int count)
{
    while (count-- > 0)
        compute(b);
    return RDL_OK;
}

static rdl_status gathers_beside_compute(bench *b, int count)
{
    rdl_work work;

    while (count-- > 0) {
        RDL_TRY(gather(b, &work));
        compute(b);
        RDL_TRY(rdl_work_wait(b->helped, work, 0));
    }
    return RDL_OK;
}

/* --- pairs ----------------------------------------------------------------- */

static rdl_status measure(bench *b, way go, int count, rdl_time *time)
{
    rdl_time start;

    RDL_TRY(rdl_barrier(b->quiet, RDL_WORLD, NULL));
    start = rdl_now();
    RDL_TRY(go(b, count));
    *time = rdl_now() - start;
    return RDL_OK;
}

/* What rank 0 says. */
static rdl_status share(bench *b, int64_t *value)
{
    return rdl_broadcast(b->quiet, RDL_WORLD, value, 1, RDL_INT64, 0, NULL);
}

/* So many calls that they take long enough to be timed. */
static rdl_status choose_count(bench *b, way go, int64_t *count)
{
    for (*count = 1;;) {
        rdl_time time = 0;

        RDL_TRY(measure(b, go, (int)*count, &time));
        RDL_TRY(share(b, &time));
        if (time >= BLOCK_TIME || *count >= 65536)
            return RDL_OK;
        *count *= 2;
    }
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

typedef struct row {
    const char *name;
    size_t bytes;
    double most;
    double first[PAIRS]; /* microseconds a call */
    double second[PAIRS];
    double ratio[PAIRS];
} row;

static void print(bench *b, row *r)
{
    qsort(r->first, PAIRS, sizeof(double), by_size);
    qsort(r->second, PAIRS, sizeof(double), by_size);
    qsort(r->ratio, PAIRS, sizeof(double), by_size);
    if (r->ratio[PAIRS / 4] > r->most)
        b->failures++;
    if (b->rank != 0)
        return;
    printf("%s\t%d\t%zu\t%.3f\t%.3f\t%.3f\t%.2f\n", r->name, b->size, r->bytes,
           r->first[PAIRS / 2], r->second[PAIRS / 2], r->ratio[PAIRS / 4],
           r->most);
    fflush(stdout);
}

/* least: what the first way takes at least, or 0. */
static rdl_status compare(bench *b, row *r, way first, way second, int count,
                          rdl_time least)
{
    for (int i = 0; i < PAIRS; i++) {
        rdl_time times[2] = { 0, 0 };

        /* Each goes first as often as the other. */
        RDL_TRY(measure(b, i % 2 ? second : first, count, &times[i % 2]));
        RDL_TRY(measure(b, i % 2 ? first : second, count, &times[1 - i % 2]));
        if (times[0] < least)
            times[0] = least;
        r->first[i] = (double)times[0] / 1e3 / count;
        r->second[i] = (double)times[1] / 1e3 / count;
        r->ratio[i] = r->second[i] / r->first[i];
    }
    print(b, r);
    return RDL_OK;
}

static rdl_status compare_small(bench *b, const char *name, size_t bytes,
                                way first, way second)
{
    row r = { .name = name, .bytes = bytes, .most = 1.05 };
    int64_t count;

    RDL_TRY(choose_count(b, first, &count));
    return compare(b, &r, first, second, (int)count, 0);
}

static rdl_status compare_overlap(bench *b)
{
    row r = { .name = "overlap",
              .bytes = GATHERED * sizeof(int64_t),
              .most = 1.3 };
    rdl_time time = 0;

    RDL_TRY(measure(b, gathers, 3, &time)); /* pages are there from now on */
    RDL_TRY(measure(b, gathers, 3, &time));
    b->sleep = time / 3;
    RDL_TRY(share(b, &b->sleep));
    return compare(b, &r, gathers, gathers_beside_sleep, 1, b->sleep);
}

/* Rounds of compute that take as long as a gather. */
static rdl_status choose_work(bench *b)
{
    rdl_time time = 0;

    b->work = 100000;
    RDL_TRY(measure(b, computes, 1, &time));
    RDL_TRY(measure(b, computes, 1, &time));
    b->work = b->sleep * b->work / (time > 0 ? time : 1);
    return share(b, &b->work);
}

static rdl_status compare_compute(bench *b)
{
    row r = { .name = "compute",
              .bytes = GATHERED * sizeof(int64_t),
              .most = 1.3 };
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    if (cores < 2L * b->size) {
        if (b->rank == 0)
            fprintf(stderr,
                    WHO ": compute: not measured: %d ranks and their helpers "
                        "want %d cores, and there are %ld\n",
                    b->size, 2 * b->size, cores);
        return RDL_OK;
    }
    RDL_TRY(choose_work(b));
    return compare(b, &r, computes, gathers_beside_compute, 1, b->sleep);
}

static rdl_status run_all(bench *b)
{
    RDL_TRY(compare_small(b, "fence", 8, unfenced, fenced));
    RDL_TRY(compare_small(b, "helper, all_reduce", 8, quiet_reduces,
                          helped_reduces));
    RDL_TRY(compare_small(b, "helper, barrier", 0, quiet_barriers,
                          helped_barriers));
    RDL_TRY(compare_overlap(b));
    return compare_compute(b);
}

/* --- ranks ----------------------------------------------------------------- */

static rdl_status open_worlds(bench *b)
{
    char job[2][64];
    rdl_world_options options = { .rank = b->rank, .size = b->size };
    rdl_work work;

    snprintf(job[0], sizeof job[0], "fence-%d-%d-q", (int)getppid(), b->size);
    snprintf(job[1], sizeof job[1], "fence-%d-%d-h", (int)getppid(), b->size);
    options.job = job[0];
    RDL_TRY(rdl_world_open(&options, &b->quiet));
    options.job = job[1];
    RDL_TRY(rdl_world_open(&options, &b->helped));
    RDL_TRY(rdl_stream_create(b->helped, NULL, &b->stream));
    RDL_TRY(rdl_barrier(b->helped, RDL_WORLD, &(rdl_call){ .work = &work }));
    RDL_TRY(rdl_work_wait(b->helped, work, 0));
    b->input = calloc(GATHERED, sizeof *b->input);
    b->output = calloc((size_t)b->size * GATHERED, sizeof *b->output);
    return b->input && b->output ? RDL_OK : rdl_fail(RDL_NO_MEMORY, "no memory");
}

static int run_rank(int rank, int size)
{
    bench b = { .rank = rank, .size = size };
    rdl_status st = open_worlds(&b);

    if (st == RDL_OK)
        st = run_all(&b);
    if (st != RDL_OK)
        fprintf(stderr, WHO ": rank %d: %s\n", rank, rdl_error_detail());
    (void)rdl_stream_destroy(b.stream);
    (void)rdl_world_close(b.helped);
    (void)rdl_world_close(b.quiet);
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
