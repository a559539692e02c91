/* Ranks with worlds. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/worlds.h"

#include <stdio.h>
#include <unistd.h>

typedef struct setting {
    const rdl_test_job *job;
    rdl_world_body body;
    void *arg;
    rdl_host *host; /* of all thread ranks */
    char name[64];
} setting;

static void run_rank(int rank, int size, void *arg)
{
    setting *s = arg;
    rdl_host_options host_options = { .staging_bytes = s->job->staging_bytes,
                                      .groups = s->job->groups,
                                      .records = s->job->records };
    rdl_world_options options = {
        .host = s->host,
        .rank = rank,
        .size = size,
        .job = s->name,
        .start_timeout_ms = 30000,
        .timeout_ms = s->job->timeout_ms ? s->job->timeout_ms : 20000,
        .check = s->job->check,
    };
    rdl_world *world;
    rdl_status st;

    if (s->job->last_is_short && rank == size - 1) {
        host_options.staging_bytes = RDL_STAGING_LEAST;
        options.host = NULL;
    }
    if (options.host == NULL)
        CHECK_OK(rdl_host_create(&host_options, &options.host));
    CHECK_OK(rdl_world_open(&options, &world));
    s->body(world, s->arg);
    st = rdl_world_close(world);
    if (!s->job->keeps_failures)
        CHECK_OK(st);
    if (options.host != s->host)
        rdl_host_destroy(options.host);
}

void rdl_test_worlds(const rdl_test_job *job, rdl_world_body body, void *arg)
{
    rdl_host_options host_options = { .staging_bytes = job->staging_bytes,
                                      .groups = job->groups,
                                      .records = job->records };
    setting s = { .job = job, .body = body, .arg = arg };

    snprintf(s.name, sizeof s.name, "test-%d-%p", (int)getpid(), (void *)&s);
    if (job->processes) {
        rdl_test_processes(job->size, run_rank, &s);
        return;
    }
    CHECK_OK(rdl_host_create(&host_options, &s.host));
    rdl_test_threads(job->size, run_rank, &s);
    rdl_host_destroy(s.host);
}

int64_t rdl_digit(int rank)
{
    int64_t digit = 1;

    while (rank-- > 0)
        digit *= 10;
    return digit;
}

void rdl_check_digits(rdl_world *world, rdl_group group, int64_t expected)
{
    int64_t mine = rdl_digit(rdl_world_rank(world)), sum = -1;

    CHECK_OK(
        rdl_all_reduce(world, group, &mine, &sum, 1, RDL_INT64, RDL_SUM, NULL));
    CHECK_INT(sum, expected);
}
