/* What tells a program that something is ready: rdl_probe, rdl_work_notify, and the
 * results of works that it may ask for late. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/worlds.h"

#include <poll.h>
#include <raddle/work.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void both(int size, rdl_world_body body)
{
    rdl_test_job job = { .size = size };

    rdl_test_worlds(&job, body, NULL);
    job.processes = true;
    rdl_test_worlds(&job, body, NULL);
}

/* --- who sends ------------------------------------------------------------- */

static int await_sender(rdl_world *world, int after)
{
    int peer = -1;

    while (peer < 0)
        CHECK_OK(rdl_probe(world, RDL_WORLD, after, &peer));
    return peer;
}

/* Rank 0 takes one from each of the others, whoever comes; each sends twice. */
static void take_from_anyone(rdl_world *world, void *arg)
{
    int rank = rdl_world_rank(world), size = rdl_world_size(world);
    int64_t got[8] = { 0 }, mine = 100 + rank, value;
    int last = -1;

    (void)arg;
    for (int i = 0; rank == 0 && i < 2 * (size - 1); i++) {
        last = await_sender(world, last);
        CHECK_OK(rdl_receive(world, RDL_WORLD, &value, 1, RDL_INT64, last, NULL));
        CHECK_INT(value, 100 + last);
        got[last]++;
    }
    for (int i = 1; rank == 0 && i < size; i++)
        CHECK_INT(got[i], 2);
    for (int i = 0; rank != 0 && i < 2; i++)
        CHECK_OK(rdl_send(world, RDL_WORLD, &mine, 1, RDL_INT64, 0, NULL));
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    if (rank == 0) {
        CHECK_OK(rdl_probe(world, RDL_WORLD, -1, &last));
        CHECK_INT(last, -1);
    }
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
}

RDL_TEST(a_probe_finds_whoever_sends)
{
    both(4, take_from_anyone);
}

/* A send that a pending receive is for is nobody else's. */
static void probe_behind_a_receive(rdl_world *world, void *arg)
{
    int rank = rdl_world_rank(world), peer = 0;
    int64_t value = 7;
    rdl_work work;
    rdl_call call = { .work = &work };

    (void)arg;
    if (rank == 0) {
        CHECK_OK(rdl_receive(world, RDL_WORLD, &value, 1, RDL_INT64, 1, &call));
        CHECK_OK(rdl_probe(world, RDL_WORLD, -1, &peer));
        CHECK_INT(peer, -1);
    }
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    if (rank == 0)
        CHECK_OK(rdl_work_wait(world, work, 0));
    else
        CHECK_OK(rdl_send(world, RDL_WORLD, &value, 1, RDL_INT64, 0, NULL));
}

RDL_TEST(a_probe_passes_over_what_a_receive_waits_for)
{
    both(2, probe_behind_a_receive);
}

static void probe_the_dead(rdl_world *world, void *arg)
{
    rdl_status st = RDL_OK;
    int peer = -1;

    (void)arg;
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL)); /* both have joined */
    if (rdl_world_rank(world) == 1) {
        rdl_world_abort(world, "out of cheese");
        return;
    }
    while (st == RDL_OK && peer < 0)
        st = rdl_probe(world, RDL_WORLD, -1, &peer);
    CHECK_STATUS(st, RDL_PEER);
    CHECK_TEXT(rdl_error_detail(),
               "probe: nobody is left who could send: rank 1 "
               "gave up: out of cheese");
}

RDL_TEST(a_probe_says_when_nobody_is_left)
{
    rdl_test_job job = { .size = 2, .keeps_failures = true };

    rdl_test_worlds(&job, probe_the_dead, NULL);
}

static void probe_wrongly(rdl_world *world, void *arg)
{
    int peer;

    (void)arg;
    CHECK_STATUS(rdl_probe(NULL, RDL_WORLD, -1, &peer), RDL_INVALID);
    CHECK_STATUS(rdl_probe(world, RDL_WORLD, -1, NULL), RDL_INVALID);
    CHECK_STATUS(rdl_probe(world, RDL_WORLD, -2, &peer), RDL_INVALID);
    CHECK_STATUS(rdl_probe(world, RDL_WORLD, 2, &peer), RDL_INVALID);
    CHECK_TEXT(rdl_error_detail(), "probe: after is 2, outside -1..1");
}

RDL_TEST(a_wrong_probe_is_refused)
{
    both(2, probe_wrongly);
}

/* --- telling --------------------------------------------------------------- */

static uint64_t told(int descriptor)
{
    uint64_t n = 0;

    return read(descriptor, &n, sizeof n) == sizeof n ? n : 0;
}

static void notify_of_a_sum(rdl_world *world, void *arg)
{
    int descriptor = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    int all[] = { 0, 1, 2 };
    rdl_group go;
    int64_t mine = 1, sum = 0;
    bool done = false;
    rdl_work work;
    rdl_call call = { .work = &work };
    struct pollfd poll_for = { .fd = descriptor, .events = POLLIN };

    (void)arg;
    CHECK(descriptor >= 0);
    CHECK_OK(rdl_group_open(world, all, rdl_world_size(world), "go", &go));
    if (rdl_world_rank(world) != 0) /* the sum waits for them */
        CHECK_OK(rdl_barrier(world, go, NULL));
    CHECK_OK(rdl_all_reduce(world, RDL_WORLD, &mine, &sum, 1, RDL_INT64,
                            RDL_SUM, &call));
    CHECK_OK(rdl_work_notify(world, work, descriptor));
    if (rdl_world_rank(world) == 0) {
        CHECK_INT((int64_t)told(descriptor), 0);
        CHECK_STATUS(rdl_work_notify(world, work, descriptor), RDL_INVALID);
        CHECK_OK(rdl_barrier(world, go, NULL));
    }
    CHECK_INT(poll(&poll_for, 1, 20000), 1);
    CHECK_INT((int64_t)told(descriptor), 1);
    CHECK_OK(rdl_work_test(world, work, &done));
    CHECK(done);
    CHECK_INT(sum, rdl_world_size(world));
    CHECK_STATUS(rdl_work_notify(world, work, descriptor), RDL_INVALID);
    CHECK_STATUS(rdl_work_notify(world, work, -1), RDL_INVALID);
    CHECK_INT((int64_t)told(descriptor), 0);
    CHECK_OK(rdl_group_close(world, go));
    CHECK(close(descriptor) == 0);
}

RDL_TEST(a_descriptor_is_told_once_when_a_work_is_done)
{
    both(3, notify_of_a_sum);
}

/* --- results that are asked for late ---------------------------------------- */

#define MANY 3000

static rdl_status open_keeping(int works, rdl_world **world)
{
    rdl_world_options options = { .size = 1, .works = works };

    return rdl_world_open(&options, world);
}

/* Issues MANY sums, and returns how many results were still there. */
static int ask_late(rdl_world *world)
{
    static rdl_work works[MANY];
    static int64_t sums[MANY];
    int kept = 0;

    for (int i = 0; i < MANY; i++) {
        rdl_call call = { .work = &works[i] };

        CHECK_OK(rdl_all_reduce(world, RDL_WORLD, &sums[i], &sums[i], 1,
                                RDL_INT64, RDL_SUM, &call));
    }
    for (int i = 0; i < MANY; i++)
        kept += rdl_work_wait(world, works[i], 0) == RDL_OK;
    return kept;
}

RDL_TEST(as_many_results_are_kept_as_the_world_was_opened_for)
{
    rdl_world *world = NULL;

    CHECK_OK(open_keeping(0, &world));
    CHECK_INT(ask_late(world), RDL_WORKS_KEPT);
    CHECK_OK(rdl_world_close(world));
    CHECK_OK(open_keeping(MANY, &world));
    CHECK_INT(ask_late(world), MANY);
    CHECK_OK(rdl_world_close(world));
    CHECK_STATUS(open_keeping(-1, &world), RDL_INVALID);
    CHECK_STATUS(open_keeping(65537, &world), RDL_INVALID);
    CHECK_TEXT(rdl_error_detail(), "works 65537 is outside 1..65536 (or 0)");
}
