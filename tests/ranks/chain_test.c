/* Who keeps whom waiting: the end of the chain is named, not the first in it. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/worlds.h"

#include <raddle/stream.h>
#include <raddle/work.h>
#include <string.h>
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
        CHECK_HAS(rdl_test_detail(), "waiting for rank 1; ");
        CHECK_HAS(rdl_test_detail(), "rank 1 waits for rank 2 in barrier #1 on "
                                     "group 'b' [1,2]");
        CHECK_HAS(rdl_test_detail(), ", rank 2 for rank 3 in barrier #1 on "
                                     "group 'c' [2,3]");
        CHECK_HAS(rdl_test_detail(), "; rank 3 is in no call: its last was "
                                     "barrier #1 on the world [0,1,2,3]");
    } else if (rank == 1) {
        CHECK_STATUS(wait_on(world, open_pair(world, 1, 2, "b"), 1200),
                     RDL_TIMEOUT);
    } else if (rank == 2) {
        CHECK_STATUS(wait_on(world, open_pair(world, 2, 3, "c"), 1200),
                     RDL_TIMEOUT);
        CHECK_HAS(rdl_test_detail(), "; rank 3 is in no call");
    } else {
        usleep(2500 * 1000);
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
        CHECK_HAS(rdl_test_detail(), "; rank 1 waits for rank 2 in barrier #1 "
                                     "on group 'b' [1,2]");
        CHECK_HAS(rdl_test_detail(), "; rank 2 is in no call");
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

static rdl_status be_slow(void *unused)
{
    (void)unused;
    usleep(1500 * 1000);
    return RDL_OK;
}

/* Rank 1 has issued the call, behind other work of its stream. */
static void wait_behind_other_work(rdl_world *world, void *arg)
{
    int rank = rdl_world_rank(world);
    rdl_call call = { .timeout_ms = 3000 };
    rdl_group group;

    (void)arg;
    group = open_pair(world, 0, 1, "a");
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    if (rank == 0) {
        CHECK_STATUS(wait_on(world, group, 800), RDL_TIMEOUT);
        CHECK_HAS(rdl_test_detail(), "waiting for rank 1; rank 1 has issued "
                                     "barrier on group 'a' [0,1] on stream "
                                     "'compute', which has not begun: the "
                                     "stream is at other work");
    } else {
        CHECK_OK(rdl_stream_create(world, "compute", &call.stream));
        CHECK_OK(rdl_stream_call(call.stream, be_slow, NULL));
        CHECK_OK(rdl_barrier(world, group, &call));
        CHECK_STATUS(rdl_stream_destroy(call.stream), RDL_TIMEOUT);
    }
    stay(world);
}

RDL_TEST(a_call_behind_other_work_of_its_stream_is_named)
{
    both(2, wait_behind_other_work);
}

/* Rank 1 waits for a stream that is at other work, and has issued nothing there. */
static void wait_for_other_work(rdl_world *world, void *arg)
{
    rdl_stream *stream;

    (void)arg;
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    if (rdl_world_rank(world) == 0) {
        CHECK_STATUS(wait_on(world, open_pair(world, 0, 1, "a"), 800),
                     RDL_TIMEOUT);
        CHECK_HAS(rdl_test_detail(), "; rank 1 has made no call on it; rank 1 "
                                     "is in synchronize stream 'io'");
        CHECK(strstr(rdl_test_detail(), "has not begun") == NULL);
    } else {
        CHECK_OK(rdl_stream_create(world, "io", &stream));
        CHECK_OK(rdl_stream_call(stream, be_slow, NULL));
        CHECK_OK(rdl_stream_synchronize(stream, 5000));
        CHECK_OK(rdl_stream_destroy(stream));
    }
    stay(world);
}

RDL_TEST(a_wait_for_a_stream_at_other_work_is_named)
{
    both(2, wait_for_other_work);
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
        CHECK_HAS(rdl_test_detail(), "; rank 1 is in no call");
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

/* What kept rank 1 for the better part of the wait has just ended: rank 2 came at
 * last, or said that it never will. */
static void end_just_now(rdl_world *world, bool revoked)
{
    int rank = rdl_world_rank(world);

    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    if (rank == 0) {
        CHECK_STATUS(wait_on(world, open_pair(world, 0, 1, "a"), 1600),
                     RDL_TIMEOUT);
        CHECK_HAS(rdl_test_detail(), "; rank 1 waits for rank 2 in barrier #1 "
                                     "on group 'b' [1,2]; rank 2 is in no "
                                     "call");
    } else if (rank == 1) {
        CHECK_STATUS(wait_on(world, open_pair(world, 1, 2, "b"), 5000),
                     revoked ? RDL_REVOKED : RDL_OK);
        usleep(600 * 1000);
    } else {
        rdl_group group = open_pair(world, 1, 2, "b");

        usleep(1500 * 1000);
        if (revoked)
            CHECK_OK(rdl_group_revoke(world, group));
        else
            CHECK_OK(wait_on(world, group, 5000));
        usleep(600 * 1000);
    }
    stay(world);
}

static void come_at_last(rdl_world *world, void *arg)
{
    (void)arg;
    end_just_now(world, false);
}

static void revoke_at_last(rdl_world *world, void *arg)
{
    (void)arg;
    end_just_now(world, true);
}

RDL_TEST(a_wait_that_has_just_ended_is_still_a_link)
{
    both(3, come_at_last);
    both(3, revoke_at_last);
}

/* Of such a failure there is no sentence to pass on. */
static void fail_to_synchronize(rdl_world *world, void *arg)
{
    rdl_stream *stream;

    (void)arg;
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    if (rdl_world_rank(world) == 0) {
        CHECK_STATUS(wait_on(world, open_pair(world, 0, 1, "a"), 1400),
                     RDL_TIMEOUT);
        CHECK_HAS(rdl_test_detail(), "; rank 1 is in no call: its last was "
                                     "synchronize stream 'io'");
        CHECK_HAS(rdl_test_detail(), ", which failed (RDL_TIMEOUT) 1.");
    } else {
        CHECK_OK(rdl_stream_create(world, "io", &stream));
        CHECK_OK(rdl_stream_call(stream, be_slow, NULL));
        CHECK_STATUS(rdl_stream_synchronize(stream, 200), RDL_TIMEOUT);
        usleep(1600 * 1000);
        CHECK_OK(rdl_stream_destroy(stream));
    }
    stay(world);
}

RDL_TEST(a_last_call_that_failed_is_said_to_have_failed)
{
    both(2, fail_to_synchronize);
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
        CHECK_HAS(rdl_test_detail(), "rank 1 closed its world, after its call "
                                     "had failed: barrier #1 on group 'b' "
                                     "[1,2]");
        CHECK_HAS(rdl_test_detail(), "waiting for rank 2; ");
        CHECK_HAS(rdl_test_detail(), "; rank 2 is in no call");
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

/* Rank 1 stands in a wait for a call of its own that waits for rank 2; what it is to
 * come to is not issued at all. */
static void expect_the_one_behind(rdl_world *world)
{
    CHECK_STATUS(wait_on(world, open_pair(world, 0, 1, "a"), 800), RDL_TIMEOUT);
    CHECK_HAS(rdl_test_detail(), "; rank 1 waits for rank 2 in barrier #1 on "
                                 "group 'b' [1,2]; rank 2 is in no call");
}

static void wait_for_a_work(rdl_world *world, void *arg)
{
    int rank = rdl_world_rank(world);
    rdl_work work;

    (void)arg;
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    if (rank == 0) {
        expect_the_one_behind(world);
    } else if (rank == 1) {
        CHECK_OK(rdl_barrier(world, open_pair(world, 1, 2, "b"),
                             &(rdl_call){ .timeout_ms = 1200, .work = &work }));
        CHECK_STATUS(rdl_work_wait(world, work, 0), RDL_TIMEOUT);
    } else {
        usleep(1500 * 1000);
    }
    stay(world);
}

RDL_TEST(a_chain_goes_through_a_wait_for_a_work)
{
    both(3, wait_for_a_work);
}

static void wait_for_a_stream(rdl_world *world, void *arg)
{
    int rank = rdl_world_rank(world);
    rdl_call call = { .timeout_ms = 1200 };

    (void)arg;
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    if (rank == 0) {
        expect_the_one_behind(world);
    } else if (rank == 1) {
        CHECK_OK(rdl_stream_create(world, "side", &call.stream));
        CHECK_OK(rdl_barrier(world, open_pair(world, 1, 2, "b"), &call));
        CHECK_STATUS(rdl_stream_synchronize(call.stream, 5000), RDL_TIMEOUT);
        CHECK_STATUS(rdl_stream_destroy(call.stream), RDL_TIMEOUT);
    } else {
        usleep(1500 * 1000);
    }
    stay(world);
}

RDL_TEST(a_chain_goes_through_a_wait_for_a_stream)
{
    both(3, wait_for_a_stream);
}

/* Rank 0's call has its turn after one that waits for rank 1. */
static void wait_for_the_turn(rdl_world *world, void *arg)
{
    int rank = rdl_world_rank(world);
    rdl_work work;

    (void)arg;
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    if (rank == 0) {
        rdl_group group = open_pair(world, 0, 1, "a");

        CHECK_OK(rdl_barrier(world, group,
                             &(rdl_call){ .timeout_ms = 5000, .work = &work }));
        CHECK_STATUS(wait_on(world, group, 600), RDL_TIMEOUT);
        CHECK_HAS(rdl_test_detail(), "waiting for its turn behind operations "
                                     "that were issued before it on this "
                                     "rank; rank 0 waits for rank 1 in "
                                     "barrier #1 on group 'a' [0,1]; rank 1 "
                                     "is in no call");
    } else {
        usleep(1200 * 1000);
    }
    stay(world);
}

RDL_TEST(a_call_that_gets_no_turn_tells_for_whom_the_one_before_it_waits)
{
    both(2, wait_for_the_turn);
}

static void wait_behind_a_batch(rdl_world *world, void *arg)
{
    int rank = rdl_world_rank(world);
    rdl_group group = open_pair(world, 0, 1, "a");
    rdl_batch *batch;

    (void)arg;
    if (rank == 0) {
        CHECK_OK(rdl_batch_begin(world, &batch));
        CHECK_OK(rdl_barrier(world, group, &(rdl_call){ .batch = batch }));
        CHECK_STATUS(wait_on(world, group, 100), RDL_TIMEOUT);
        CHECK_HAS(rdl_error_detail(), "on this rank: barrier at tests/ranks/");
        CHECK_HAS(rdl_test_detail(), " is in a batch that has not been ended");
        CHECK_STATUS(rdl_batch_end(batch, NULL), RDL_TIMEOUT);
    }
    stay(world);
}

RDL_TEST(a_call_behind_a_batch_that_is_not_ended_tells_that)
{
    both(2, wait_behind_a_batch);
}

/* On rank 0's stream a call that fails because of rank 1 is before one with rank 2. */
static void pass_over(rdl_world *world, void *arg)
{
    int rank = rdl_world_rank(world);
    rdl_call call = { .timeout_ms = 400 };

    (void)arg;
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    if (rank == 0) {
        CHECK_OK(rdl_stream_create(world, "side", &call.stream));
        CHECK_OK(rdl_barrier(world, open_pair(world, 0, 1, "a"), &call));
        CHECK_OK(rdl_barrier(world, open_pair(world, 0, 2, "b"), &call));
        CHECK_STATUS(rdl_stream_destroy(call.stream), RDL_TIMEOUT);
    } else if (rank == 2) {
        CHECK_STATUS(wait_on(world, open_pair(world, 0, 2, "b"), 5000),
                     RDL_TIMEOUT);
        CHECK_HAS(rdl_test_detail(), "barrier on group 'b' [0,2]");
        CHECK_HAS(rdl_test_detail(),
                  ": passed over, because its stream on rank 0 had failed: "
                  "barrier #1 on group 'a' [0,1]: timed out after 0.4 s");
        CHECK_HAS(rdl_test_detail(), "; rank 1 is in no call");
    } else {
        usleep(900 * 1000);
    }
    stay(world);
}

RDL_TEST(a_call_that_a_stream_passes_over_tells_why)
{
    both(3, pass_over);
}

/* The call that fails was issued first, and the program heard of it last. */
static void leave_after_a_work(rdl_world *world, void *arg)
{
    int rank = rdl_world_rank(world);
    size_t count = (size_t)rank;
    int64_t input[2] = { 0 }, output[2];
    rdl_work work;

    (void)arg;
    if (rank == 0) {
        CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
        CHECK_STATUS(wait_on(world, open_pair(world, 0, 1, "a"), 5000),
                     RDL_PEER);
        CHECK_HAS(rdl_test_detail(), "rank 1 closed its world, after its call "
                                     "had failed: mismatch in call #1 on "
                                     "group 'b' [1,2]");
        return;
    }
    CHECK_OK(rdl_all_reduce(world, open_pair(world, 1, 2, "b"), input, output,
                            count, RDL_INT64, RDL_SUM,
                            &(rdl_call){ .work = &work }));
    usleep(100 * 1000);
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    CHECK_STATUS(rdl_work_wait(world, work, 0), RDL_MISMATCH);
}

RDL_TEST(why_a_rank_left_is_known_though_its_program_heard_of_it_late)
{
    both(3, leave_after_a_work);
}

#define RING 8

/* Rank 0 comes a little later, so that it finds others that gave up. */
static void go_round(rdl_world *world, void *arg)
{
    int rank = rdl_world_rank(world), right = (rank + 1) % RING;
    rdl_group group =
        open_pair(world, rank < right ? rank : right,
                  rank < right ? right : rank, "a ring with a long name");
    rdl_status st;

    (void)arg;
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    st = wait_on(world, group, rank == 0 ? 900 : 700);
    CHECK(st == RDL_TIMEOUT || st == RDL_PEER);
    CHECK_HAS(rdl_test_detail(),
              ": a cycle, in which ranks 0-7 wait for each other");
}

RDL_TEST(a_long_sentence_keeps_its_end)
{
    both(RING, go_round);
}
