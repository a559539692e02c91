/* Small blocking collectives: what each call costs. Through the public interface
 * alone, so that it can be built at another commit and compared (bench/compare.sh).
 *
 * A row: name, ranks, bytes, median and 99th percentile in microseconds (of the means
 * of blocks of calls), calls a second. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <raddle/collective.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WHO "bench/small"
#define CALLS 64   /* in a block */
#define BLOCKS 512 /* the most */
#define AT_ONCE 16 /* blocks between two looks at the clock */
#define ENOUGH_US 250000.0

typedef struct bench {
    rdl_world *world;
    int rank;
    int size;
} bench;

typedef rdl_status (*operation)(const bench *b);

static rdl_status reduce(const bench *b)
{
    int64_t mine = 1, sum = 0;

    return rdl_all_reduce(b->world, RDL_WORLD, &mine, &sum, 1, RDL_INT64,
                          RDL_SUM, NULL);
}

static rdl_status barrier(const bench *b)
{
    return rdl_barrier(b->world, RDL_WORLD, NULL);
}

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static bool run_block(const bench *b, operation go, double *us)
{
    double start = now_us();

    for (int i = 0; i < CALLS; i++)
        if (go(b) != RDL_OK)
            return false;
    *us = (now_us() - start) / CALLS;
    return true;
}

/* Whether there is time for more, as rank 0 says. */
static bool go_on(const bench *b, double start, bool *more)
{
    int32_t said = now_us() - start < ENOUGH_US;
    rdl_status st =
        rdl_broadcast(b->world, RDL_WORLD, &said, 1, RDL_INT32, 0, NULL);

    *more = said != 0;
    return st == RDL_OK;
}

static bool run_row(const bench *b, const char *name, int bytes, operation go)
{
    double us[BLOCKS], start = now_us();
    bool more = true;
    int n = 0;

    while (more && n < BLOCKS) {
        for (int i = 0; i < AT_ONCE; i++)
            if (!run_block(b, go, &us[n++]))
                return false;
        if (!go_on(b, start, &more))
            return false;
    }
    qsort(us, (size_t)n, sizeof *us, by_size);
    if (b->rank == 0)
        printf("%s\t%d\t%d\t%.3f\t%.3f\t%.0f\n", name, b->size, bytes,
               us[n / 2], us[n * 99 / 100], 1e6 / us[n / 2]);
    return true;
}

static int run_rank(int rank, int size)
{
    bench b = { .rank = rank, .size = size };
    char job[64];
    bool good;

    snprintf(job, sizeof job, "small-%d-%d", (int)getppid(), size);
    good = rdl_world_open(
               &(rdl_world_options){ .rank = rank, .size = size, .job = job },
               &b.world) == RDL_OK &&
           run_row(&b, "all_reduce", 8, reduce) &&
           run_row(&b, "barrier", 0, barrier);
    if (!good)
        fprintf(stderr, WHO ": rank %d: %s\n", rank, rdl_error_detail());
    (void)rdl_world_close(b.world);
    return good ? 0 : 1;
}

static bool run_ranks(int size)
{
    bool good = true;
    int status;

    for (int rank = 0; rank < size && good; rank++) {
        pid_t pid = fork();

        if (pid == 0)
            exit(run_rank(rank, size));
        good = pid > 0;
    }
    while (wait(&status) > 0)
        good &= status == 0;
    return good;
}

int main(void)
{
    bool good = run_ranks(2);

    good &= run_ranks(4);
    return good ? 0 : 1;
}
