/* Who keeps whom waiting: the end of the chain is named, not the first in it. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/worlds.h"

#include <raddle/stream.h>
#include <raddle/work.h>
#include <unistd.h>

static void both(int size, rdl_world_body body)
{
    rdl_test_job job = { .size = size, .keeps_failures = true };

    rdl_test_worlds(&job, body, NULL);
    job.processes = true;
    rdl_test_worlds(&job, body, NULL);
}

static rdl_group open_pair(rdl_world *world, int a, int b, const char *name)
{
    int list[] = { a, b };
    rdl_group group;

    CHECK_OK(rdl_group_open(world, list, 2, name, &group));
    return group;
}

static rdl_status wait_on(rdl_world *world, rdl_group group, int64_t ms)
{
    return rdl_barrier(world, group, &(rdl_call){ .timeout_ms = ms });
}

/* Ends when every rank has seen what it wants to see. */
static void stay(rdl_world *world)
{
    int all[] = { 0, 1, 2, 3 };
    rdl_group group;

    CHECK_OK(rdl_group_open(world, all, rdl_world_size(world), "end", &group));
    CHECK_OK(rdl_barrier(world, group, NULL));
}

/* 0 waits for 1, which waits for 2, which waits for 3, which is elsewhere. */
static void wait_for_the_absent(rdl_world *world, void *arg)
{
    int rank = rdl_world_rank(world);

    (void)arg;
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    if (rank == 0) {
        CHECK_STATUS(wait_on(world, open_pair(world, 0, 1, "a"), 800),
                     RDL_TIMEOUT);
        CHECK_HAS(rdl_error_detail(), "waiting for rank 1; ");
        CHECK_HAS(rdl_error_detail(),
                  "rank 1 waits for rank 2 in barrier #1 on "
                  "group 'b' [1,2]");
        CHECK_HAS(rdl_error_detail(), ", rank 2 for rank 3 in barrier #1 on "
                                      "group 'c' [2,3]");
        CHECK_HAS(rdl_error_detail(), "; rank 3 is in no call: its last was "
                                      "barrier #1 on the world [0,1,2,3]");
    } else if (rank == 1) {
        CHECK_STATUS(wait_on(world, open_pair(world, 1, 2, "b"), 1200),
                     RDL_TIMEOUT);
    } else if (rank == 2) {
        CHECK_STATUS(wait_on(world, open_pair(world, 2, 3, "c"), 1200),
                     RDL_TIMEOUT);
        CHECK_HAS(rdl_error_detail(), "; rank 3 is in no call");
    } else {
        usleep(1500 * 1000);
    }
    stay(world);
}

RDL_TEST(the_end_of_a_chain_of_waits_is_named)
{
    both(4, wait_for_the_absent);
}

/* Rank 1 has issued the call, on a stream whose earlier call waits for rank 2. */
static void wait_behind_a_stream(rdl_world *world, void *arg)
{
    int rank = rdl_world_rank(world);
    rdl_stream *stream;

    (void)arg;
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    if (rank == 0) {
        CHECK_STATUS(wait_on(world, open_pair(world, 0, 1, "a"), 800),
                     RDL_TIMEOUT);
        CHECK_HAS(rdl_error_detail(), "; rank 1 waits for rank 2 in barrier #1 "
                                      "on group 'b' [1,2]");
        CHECK_HAS(rdl_error_detail(), "; rank 2 is in no call");
    } else if (rank == 1) {
        rdl_call call = { .timeout_ms = 1200 };

        CHECK_OK(rdl_stream_create(world, "side", &stream));
        call.stream = stream;
        CHECK_OK(rdl_barrier(world, open_pair(world, 1, 2, "b"), &call));
        CHECK_OK(rdl_barrier(world, open_pair(world, 0, 1, "a"), &call));
        CHECK_STATUS(rdl_stream_destroy(stream), RDL_TIMEOUT);
    } else {
        usleep(1500 * 1000);
    }
    stay(world);
}

RDL_TEST(a_chain_goes_through_a_stream)
{
    both(3, wait_behind_a_stream);
}

/* A call that is pending beside the program holds nobody up: the one that computes
 * is the one that is late. */
static void compute_beside_a_call(rdl_world *world, void *arg)
{
    int rank = rdl_world_rank(world);
    rdl_work work;

    (void)arg;
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    if (rank == 0) {
        CHECK_STATUS(wait_on(world, open_pair(world, 0, 1, "a"), 800),
                     RDL_TIMEOUT);
        CHECK_HAS(rdl_error_detail(), "; rank 1 is in no call");
    } else if (rank == 1) {
        rdl_group side = open_pair(world, 1, 2, "b");

        CHECK_OK(rdl_barrier(world, side,
                             &(rdl_call){ .timeout_ms = 3000, .work = &work }));
        usleep(1500 * 1000);
        CHECK_OK(rdl_work_wait(world, work, 0));
    } else {
        rdl_group side = open_pair(world, 1, 2, "b");

        usleep(1300 * 1000);
        CHECK_OK(rdl_barrier(world, side, NULL));
    }
    stay(world);
}

RDL_TEST(a_rank_that_computes_beside_a_pending_call_is_the_end_of_the_chain)
{
    both(3, compute_beside_a_call);
}

/* Rank 1 fails because of rank 2, and leaves; rank 0, which waits for it, hears
 * why. */
static void leave_after_a_failure(rdl_world *world, void *arg)
{
    int rank = rdl_world_rank(world);

    (void)arg;
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    if (rank == 0) {
        CHECK_STATUS(wait_on(world, open_pair(world, 0, 1, "a"), 5000),
                     RDL_PEER);
        CHECK_HAS(rdl_error_detail(), "rank 1 closed its world, after its call "
                                      "had failed: barrier #1 on group 'b' "
                                      "[1,2]");
        CHECK_HAS(rdl_error_detail(), "waiting for rank 2; ");
        CHECK_HAS(rdl_error_detail(), "; rank 2 is in no call");
    } else if (rank == 1) {
        CHECK_STATUS(wait_on(world, open_pair(world, 1, 2, "b"), 500),
                     RDL_TIMEOUT);
    } else {
        usleep(900 * 1000);
    }
}

RDL_TEST(who_waits_for_one_that_left_hears_why_it_left)
{
    both(3, leave_after_a_failure);
}
