/* One-way calls in the world: who has handed over its part goes on, so far as nothing
 * is written over that another has yet to read; and it hears later what it would have
 * heard by waiting. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/values.h"
#include "support/worlds.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SIZE 3
#define MOST 1024 /* int32: what is small */
#define ROUNDS 300

/* Shared by ranks, as threads and as processes. */
static void *shared(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    CHECK(memory != MAP_FAILED);
    return memory;
}

static void on_both(const rdl_test_job *job, rdl_world_body body, void *arg)
{
    rdl_test_job copy = *job;

    rdl_test_worlds(&copy, body, arg);
    copy.processes = true;
    rdl_test_worlds(&copy, body, arg);
}

/* --- the values ------------------------------------------------------------- */

static int32_t value(int round, size_t i)
{
    return (int32_t)((size_t)round * 7919 + i * 31);
}

static void send_round(rdl_world *world, int round, size_t n, int root,
                       int32_t *buffer)
{
    bool mine = rdl_world_rank(world) == root;

    for (size_t i = 0; i < n; i++)
        buffer[i] = mine ? value(round, i) : -1;
    CHECK_OK(rdl_broadcast(world, RDL_WORLD, buffer, n, RDL_INT32, root, NULL));
    for (size_t i = 0; i < n; i++)
        CHECK_INT(buffer[i], value(round, i));
    for (size_t i = 0; i < n; i++)
        buffer[i] = -2; /* the buffer is the program's again */
}

static void gather_round(rdl_world *world, int round, int root)
{
    int32_t in = value(round, (size_t)rdl_world_rank(world)), out[SIZE];

    CHECK_OK(rdl_gather(world, RDL_WORLD, &in, out, 1, RDL_INT32, root, NULL));
    for (int i = 0; i < SIZE && rdl_world_rank(world) == root; i++)
        CHECK_INT(out[i], value(round, (size_t)i));
}

/* Of all sizes, from one root or from all in turn, with ranks that dawdle. */
static void send_many(rdl_world *world, void *arg)
{
    uint64_t seed = *(const uint64_t *)arg;
    uint64_t mine = seed + 77 * (uint64_t)rdl_world_rank(world);
    int32_t *buffer = malloc(MOST * sizeof *buffer);
    int32_t one = 1, sum = 0;

    for (int round = 0; round < ROUNDS; round++) {
        size_t n = rdl_test_random(&seed) % 2 == 0
                       ? rdl_test_random(&seed) % 12
                       : rdl_test_random(&seed) % MOST;
        int kind = (int)(rdl_test_random(&seed) % 8);
        int root = kind < 4 ? 1 : (int)(rdl_test_random(&seed) % SIZE);

        if (rdl_test_random(&mine) % 50 == 0)
            usleep(2000);
        if (kind == 6)
            gather_round(world, round, root);
        else
            send_round(world, round, n, root, buffer);
        if (kind != 7)
            continue;
        CHECK_OK(rdl_all_reduce(world, RDL_WORLD, &one, &sum, 1, RDL_INT32,
                                RDL_SUM, NULL));
        CHECK_INT(sum, SIZE);
    }
    free(buffer);
}

RDL_TEST(who_runs_ahead_writes_over_nothing_that_is_still_read)
{
    rdl_test_job job = { .size = SIZE };
    uint64_t seed = rdl_test_seed();

    on_both(&job, send_many, &seed);
}

RDL_TEST(a_rank_without_room_for_small_calls_is_told_as_well)
{
    rdl_test_job job = { .size = SIZE, .last_is_short = true };
    uint64_t seed = rdl_test_seed();

    on_both(&job, send_many, &seed);
}

/* --- who goes ahead, and how far ------------------------------------------- */

static void root_does_not_wait(rdl_world *world, void *arg)
{
    atomic_int *done = arg;
    int64_t x = rdl_world_rank(world) == 0 ? 5 : 0;

    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    if (rdl_world_rank(world) == 0) {
        CHECK_OK(rdl_broadcast(world, RDL_WORLD, &x, 1, RDL_INT64, 0, NULL));
        atomic_fetch_add(done, 1);
    } else {
        while (atomic_load(done) % 2 == 0) /* the others have not entered */
            usleep(100);
        CHECK_OK(rdl_broadcast(world, RDL_WORLD, &x, 1, RDL_INT64, 0, NULL));
    }
    CHECK_INT(x, 5);
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    if (rdl_world_rank(world) == 0)
        atomic_fetch_add(done, 1);
}

RDL_TEST(the_root_of_a_small_broadcast_does_not_wait_for_the_others)
{
    rdl_test_job job = { .size = SIZE };

    on_both(&job, root_does_not_wait, shared(sizeof(atomic_int)));
}

/* The root closes the group, and takes slots for others, before anybody has come. */
static void root_closes_the_world(rdl_world *world, void *arg)
{
    atomic_int *done = arg;
    int64_t x[64];
    rdl_group other;

    for (int i = 0; i < 64; i++)
        x[i] = rdl_world_rank(world) == 0 ? i : -1;
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    if (rdl_world_rank(world) == 0) {
        CHECK_OK(rdl_broadcast(world, RDL_WORLD, x, 64, RDL_INT64, 0, NULL));
        CHECK_OK(rdl_broadcast(world, RDL_WORLD, x, 1, RDL_INT64, 0, NULL));
        CHECK_OK(rdl_group_close(world, RDL_WORLD));
        for (int i = 0; i < 8; i++) {
            CHECK_OK(rdl_group_open(world, (int[]){ 0 }, 1, "alone", &other));
            CHECK_OK(rdl_group_close(world, other));
        }
        atomic_fetch_add(done, 1);
    } else {
        while (atomic_load(done) == 0)
            usleep(100);
        CHECK_OK(rdl_broadcast(world, RDL_WORLD, x, 64, RDL_INT64, 0, NULL));
        CHECK_OK(rdl_broadcast(world, RDL_WORLD, x, 1, RDL_INT64, 0, NULL));
    }
    for (int i = 0; i < 64; i++)
        CHECK_INT(x[i], i);
}

RDL_TEST(what_a_root_has_sent_stays_when_it_closes_the_group)
{
    rdl_test_job job = { .size = SIZE, .groups = 2 };

    rdl_test_worlds(&job, root_closes_the_world, shared(sizeof(atomic_int)));
    job.processes = true;
    rdl_test_worlds(&job, root_closes_the_world, shared(sizeof(atomic_int)));
}

/* The root gets only so far while the others are elsewhere. */
static void root_waits_in_the_end(rdl_world *world, void *arg)
{
    rdl_call brief = { .timeout_ms = 300 };
    int64_t x = 1;
    rdl_status st = RDL_OK;

    (void)arg;
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    if (rdl_world_rank(world) != 0) {
        usleep(1500000);
        for (int i = 0; i < 20 && st == RDL_OK; i++) /* some had been sent */
            st = rdl_broadcast(world, RDL_WORLD, &x, 1, RDL_INT64, 0, NULL);
        CHECK_STATUS(st, RDL_TIMEOUT);
        return;
    }
    for (int i = 0; i < 20 && st == RDL_OK; i++)
        st = rdl_broadcast(world, RDL_WORLD, &x, 1, RDL_INT64, 0, &brief);
    CHECK_STATUS(st, RDL_TIMEOUT);
    CHECK_HAS(rdl_error_detail(), "waiting for rank");
}

RDL_TEST(a_root_whose_members_do_not_come_times_out)
{
    rdl_test_job job = { .size = SIZE, .keeps_failures = true };

    on_both(&job, root_waits_in_the_end, NULL);
}

/* --- verdicts --------------------------------------------------------------- */

static void differ(rdl_world *world, void *arg)
{
    const rdl_check *check = arg;
    int64_t x[2] = { 1, 2 };
    int rank = rdl_world_rank(world);
    rdl_status st;

    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    st = rdl_broadcast(world, RDL_WORLD, x, rank == 2 ? 2 : 1, RDL_INT64, 0,
                       NULL);
    if (*check == RDL_CHECK_STRICT || rank == 2)
        CHECK_STATUS(st, RDL_MISMATCH);
    if (st == RDL_OK) /* its part was handed over: it hears next time */
        st = rdl_barrier(world, RDL_WORLD, NULL);
    CHECK_STATUS(st, RDL_MISMATCH);
    CHECK_HAS(rdl_error_detail(), "rank 2 differs from ranks 0,1");
    CHECK_HAS(rdl_error_detail(), "broadcast(2 int64");
    CHECK_STATUS(rdl_barrier(world, RDL_WORLD, NULL), RDL_MISMATCH);
}

RDL_TEST(who_went_ahead_gets_the_verdict_from_its_next_call)
{
    rdl_check check = RDL_CHECK_ON;
    rdl_test_job job = { .size = SIZE, .check = check, .keeps_failures = true };

    on_both(&job, differ, &check);
}

RDL_TEST(in_strict_mode_all_get_the_verdict_from_the_call_that_differs)
{
    rdl_check check = RDL_CHECK_STRICT;
    rdl_test_job job = { .size = SIZE, .check = check, .keeps_failures = true };

    on_both(&job, differ, &check);
}

/* The root makes another call that waits for nobody. */
static void differ_last(rdl_world *world, void *arg)
{
    atomic_int *late = arg;
    int64_t x = 1;
    rdl_status st;

    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    if (rdl_world_rank(world) != 0) {
        st = rdl_all_reduce(world, RDL_WORLD, &x, &x, 1, RDL_INT64, RDL_SUM,
                            NULL);
        CHECK_STATUS(st, RDL_MISMATCH);
        atomic_fetch_add(late, 1);
        return;
    }
    CHECK_OK(rdl_broadcast(world, RDL_WORLD, &x, 1, RDL_INT64, 0, NULL));
    while (atomic_load(late) % (SIZE - 1) != 0 || atomic_load(late) == 0)
        usleep(100);
    st = rdl_broadcast(world, RDL_WORLD, &x, 1, RDL_INT64, 0, NULL);
    CHECK_STATUS(st, RDL_MISMATCH);
    CHECK_HAS(rdl_error_detail(), "broadcast(1 int64");
    CHECK_HAS(rdl_error_detail(), "all_reduce(1 int64");
}

RDL_TEST(a_root_that_need_not_wait_again_hears_all_the_same)
{
    rdl_test_job job = { .size = SIZE, .keeps_failures = true };

    rdl_test_worlds(&job, differ_last, shared(sizeof(atomic_int)));
    job.processes = true;
    rdl_test_worlds(&job, differ_last, shared(sizeof(atomic_int)));
}
