/* Groups: what opening one and using it for the first time costs, and what it takes.
 * Through the public interface alone.
 *
 * A row: name, ranks, groups, median and 99th percentile in microseconds of one open and
 * its first 8-byte all_reduce (of the slowest rank), bytes a group on a rank, more
 * descriptors, more threads. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <inttypes.h>
#include <raddle/account.h>
#include <raddle/collective.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WHO "bench/groups"
#define RANKS 4
#define GROUPS 1000

typedef struct bench {
    rdl_world *world;
    int rank;
    double us[GROUPS];
    int64_t bytes;
    int64_t descriptors;
    int64_t threads;
} bench;

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int64_t count_entries(const char *folder)
{
    DIR *dir = opendir(folder);
    int64_t n = 0;

    if (dir == NULL)
        return 0;
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n;
}

/* What this rank has, less what it had before: called twice. */
static bool measure(bench *b)
{
    rdl_account a;

    if (rdl_account_read(b->world, &a) != RDL_OK)
        return false;
    b->bytes = (int64_t)(a.arena_bytes_rank + a.private_bytes + a.host_bytes +
                         a.page_table_bytes) -
               b->bytes;
    b->descriptors = count_entries("/proc/self/fd") - b->descriptors;
    b->threads = count_entries("/proc/self/task") - b->threads;
    return true;
}

static bool use_one(bench *b, int i)
{
    static const int all[RANKS] = { 0, 1, 2, 3 };
    double start = now_us();
    int64_t one = 1, sum = 0;
    rdl_group group;
    char name[16];

    snprintf(name, sizeof name, "%d", i);
    if (rdl_group_open(b->world, all, RANKS, name, &group) != RDL_OK ||
        rdl_all_reduce(b->world, group, &one, &sum, 1, RDL_INT64, RDL_SUM,
                       NULL) != RDL_OK)
        return false;
    b->us[i] = now_us() - start;
    return sum == RANKS;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static bool report(bench *b)
{
    if (rdl_all_reduce(b->world, RDL_WORLD, b->us, b->us, GROUPS, RDL_FLOAT64,
                       RDL_MAX, NULL) != RDL_OK)
        return false;
    qsort(b->us, GROUPS, sizeof *b->us, by_size);
    if (b->rank == 0)
        printf("open_and_use\t%d\t%d\t%.2f\t%.2f\t%" PRId64 "\t%" PRId64
               "\t%" PRId64 "\n",
               RANKS, GROUPS, b->us[GROUPS / 2], b->us[GROUPS * 99 / 100],
               b->bytes / GROUPS, b->descriptors, b->threads);
    return true;
}

static bool run(bench *b)
{
    if (rdl_barrier(b->world, RDL_WORLD, NULL) != RDL_OK || !measure(b))
        return false;
    for (int i = 0; i < GROUPS; i++)
        if (!use_one(b, i))
            return false;
    return measure(b) && report(b);
}

static int run_rank(int rank)
{
    bench b = { .rank = rank };
    char job[64];
    bool good;

    snprintf(job, sizeof job, "groups-%d", (int)getppid());
    good = rdl_world_open(
               &(rdl_world_options){ .rank = rank, .size = RANKS, .job = job },
               &b.world) == RDL_OK &&
           run(&b);
    if (!good)
        fprintf(stderr, WHO ": rank %d: %s\n", rank, rdl_error_detail());
    (void)rdl_world_close(b.world);
    return good ? 0 : 1;
}

int main(void)
{
    bool good = true;
    int status;

    for (int rank = 0; rank < RANKS && good; rank++) {
        pid_t pid = fork();

        if (pid == 0)
            exit(run_rank(rank));
        good = pid > 0;
    }
    while (wait(&status) > 0)
        good &= status == 0;
    return good ? 0 : 1;
}
