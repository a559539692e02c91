/* `raddle bench OPERATION ...`: the driver, and with --rank a rank of raddle's. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "explain.h"
#include "floor.h"
#include "job.h"
#include "measure.h"
#include "speed.h"
#include "table.h"

#include "base/topology.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct bench {
    speed_options o;
    speed_machine machine;
    speed_job jobs[SPEED_PEERS];
    speed_row row; /* the present one; large */
    speed_sum sum;
    int cores;
    double began;   /* seconds */
    int done_ranks; /* numbers of ranks that have had their time */
} bench;

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Each number of ranks has its share of the time. */
static bool is_late(const bench *b)
{
    double share = b->o.seconds * (b->done_ranks + 1) / b->o.n_ranks;

    return b->o.seconds > 0 && now_s() - b->began > share;
}

static void start_jobs(bench *b, int ranks)
{
    for (int i = 0; i < SPEED_PEERS; i++) {
        speed_job *job = &b->jobs[i];

        *job = (speed_job){ .why = "not asked for", .socket = -1, .words = -1 };
        if (i != SPEED_RADDLE && !b->o.peers)
            continue;
        speed_job_start(job, (speed_peer)i, ranks, b->cores, &b->o);
        if (!job->works)
            fprintf(stderr, SPEED_WHO ": %d ranks of %s: %s\n", ranks,
                    speed_peer_name(i), job->why);
    }
}

static void end_jobs(bench *b)
{
    for (int i = 0; i < SPEED_PEERS; i++)
        speed_job_end(&b->jobs[i]);
}

static void measure_point(bench *b, const speed_point *point, bool first)
{
    if (is_late(b)) {
        b->sum.left_out++;
        return;
    }
    memset(&b->row, 0, sizeof b->row);
    b->row.point = *point;
    b->row.floor = speed_floor(&b->machine, point, false);
    b->row.fresh_floor = speed_floor(&b->machine, point, true);
    speed_measure(&b->o, b->jobs, b->cores, &b->row);
    if (!b->o.summary)
        speed_print_row(&b->o, &b->row, first, b->cores);
    speed_add(&b->sum, &b->row);
}

static void measure_sizes(bench *b, speed_point point)
{
    size_t element = rdl_dtype_bytes(point.dtype);
    int n = point.operation == SPEED_BARRIER ? 1 : b->o.n_bytes;

    for (int i = 0; i < n; i++) {
        point.bytes =
            speed_fit(point.operation, point.members, element, b->o.bytes[i]);
        measure_point(b, &point, i == 0);
    }
}

static void measure_ranks(bench *b, int ranks)
{
    speed_point point = { .ranks = ranks,
                          .members = ranks / b->o.groups,
                          .mapped = b->o.mapped };

    start_jobs(b, ranks);
    for (int i = 0; i < SPEED_OPERATIONS; i++) {
        point.operation = i;
        for (int d = 0; d < b->o.n_dtypes; d++) {
            point.dtype = b->o.dtypes[d];
            if (b->o.operations[i] && (d == 0 || i != SPEED_BARRIER))
                measure_sizes(b, point);
        }
    }
    end_jobs(b);
    b->done_ranks++;
}

static int finish(const bench *b)
{
    speed_print_sum(&b->o, &b->sum);
    if (fflush(stdout) != 0)
        return SPEED_FAILED;
    return b->sum.wrong + b->sum.broken == 0 && b->sum.points > 0 ? 0
                                                                  : SPEED_FAILED;
}

static int drive(bench *b)
{
    bool known = rdl_topology_usable_cores(&b->cores) == RDL_OK;

    if (known && b->o.explain)
        return speed_explain(&b->o, b->cores);
    if (!known || !speed_measure_machine(b->cores, &b->machine)) {
        fprintf(stderr, SPEED_WHO ": the machine could not be measured\n");
        return SPEED_FAILED;
    }
    if (!b->o.summary)
        speed_print_machine(&b->o, &b->machine);
    for (int i = 0; i < b->o.n_ranks; i++)
        measure_ranks(b, b->o.ranks[i]);
    return finish(b);
}

int main(int argc, char **argv)
{
    bench *b;
    int status;

    if (argc == 5 && strcmp(argv[1], "--rank") == 0)
        return speed_be_a_rank(argv[2], (int)strtol(argv[3], NULL, 10),
                               strcmp(argv[4], "pinned") == 0);
    b = calloc(1, sizeof *b);
    if (b == NULL) {
        fprintf(stderr, SPEED_WHO ": no memory\n");
        return SPEED_FAILED;
    }
    b->began = now_s();
    status = speed_read_options(argc, argv, &b->o);
    if (status < 0)
        status = drive(b);
    free(b);
    return status;
}
