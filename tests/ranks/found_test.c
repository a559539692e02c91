/* What a fresh tester found: failures that did not reach everybody, or nobody. */
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

static rdl_status fail_here(void *arg)
{
    (void)arg;
    return RDL_SYSTEM;
}

/* The failing rank has not used the group before, so it has no slot yet. */
static void fail_before_the_first_use(rdl_world *world, void *arg)
{
    static const int list[] = { 0, 1 };
    int64_t x = 1, y = 0;
    rdl_stream *stream;
    rdl_group group;

    (void)arg;
    CHECK_OK(rdl_group_open(world, list, 2, "fresh", &group));
    if (rdl_world_rank(world) == 0) {
        CHECK_OK(rdl_stream_create(world, NULL, &stream));
        CHECK_OK(rdl_stream_call(stream, fail_here, NULL));
        CHECK_OK(rdl_all_reduce(world, group, &x, &y, 1, RDL_INT64, RDL_SUM,
                                &(rdl_call){ .stream = stream }));
        CHECK_STATUS(rdl_stream_destroy(stream), RDL_SYSTEM);
    } else {
        CHECK_STATUS(
            rdl_all_reduce(world, group, &x, &y, 1, RDL_INT64, RDL_SUM, NULL),
            RDL_SYSTEM);
        CHECK_HAS(rdl_error_detail(), "its stream on rank 0 had failed");
    }
    CHECK_STATUS(rdl_barrier(world, group, NULL), RDL_SYSTEM);
}

RDL_TEST(a_failure_before_the_first_use_of_a_group_reaches_its_members)
{
    both(2, fail_before_the_first_use);
}

static void come_late(rdl_world *world, void *arg)
{
    static const int list[] = { 0, 1, 2 };
    int64_t x = 1, y = 0;
    rdl_group group;

    (void)arg;
    CHECK_OK(rdl_group_open(world, list, 3, "late", &group));
    CHECK_OK(rdl_barrier(world, group, NULL));
    if (rdl_world_rank(world) == 2)
        usleep(900000);
    CHECK_STATUS(rdl_all_reduce(world, group, &x, &y, 1, RDL_INT64, RDL_SUM,
                                &(rdl_call){ .timeout_ms = 300 }),
                 RDL_TIMEOUT);
    CHECK_HAS(rdl_error_detail(), "waiting for rank 2");
    CHECK_INT(y, 0);
    CHECK_OK(rdl_group_close(world, group)); /* a call has reported it */
}

RDL_TEST(a_late_rank_does_not_succeed_where_the_others_gave_up)
{
    both(3, come_late);
}

static void drop_a_failure(rdl_world *world, void *arg)
{
    static const int list[] = { 0, 1 };
    rdl_group group;
    rdl_work work;

    (void)arg;
    CHECK_OK(rdl_group_open(world, list, 2, "dropped", &group));
    CHECK_OK(rdl_barrier(world, group, NULL));
    if (rdl_world_rank(world) == 0)
        CHECK_OK(rdl_barrier(world, group,
                             &(rdl_call){ .timeout_ms = 200, .work = &work }));
    usleep(700000);
    /* Nobody has asked on rank 0, and rank 1 has made no call. */
    CHECK_STATUS(rdl_group_close(world, group), RDL_TIMEOUT);
    CHECK_HAS(rdl_error_detail(), "waiting for rank 1");
    rdl_check_digits(world, RDL_WORLD, 11);
}

RDL_TEST(closing_tells_of_a_failure_that_no_call_has_reported)
{
    both(2, drop_a_failure);
}

static void abort_and_call(rdl_world *world, void *arg)
{
    (void)arg;
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    if (rdl_world_rank(world) == 0) {
        rdl_world_abort(world, "disk\nfull");
        CHECK_STATUS(rdl_barrier(world, RDL_WORLD, NULL), RDL_STATE);
        CHECK_HAS(rdl_error_detail(), "this rank gave up: disk full");
    } else {
        CHECK_STATUS(rdl_barrier(world, RDL_WORLD, NULL), RDL_PEER);
        CHECK_HAS(rdl_error_detail(), "rank 0 gave up: disk full");
    }
}

RDL_TEST(who_gave_up_makes_no_calls_and_its_reason_is_one_line)
{
    both(2, abort_and_call);
}
