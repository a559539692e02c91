/* Call sites: sentences and records say where the program makes a call, on this rank
 * and on its peers. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/peek.h"
#include "comm/world.h"
#include "support/worlds.h"

#include <raddle/stream.h>
#include <raddle/work.h>
#include <string.h>
#include <unistd.h>

static void run(int size, rdl_world_body body)
{
    rdl_test_job job = { .size = size, .keeps_failures = true };

    rdl_test_worlds(&job, body, NULL);
}

/* The newest record of that operation; it must be there. */
static rdl_entry newest(rdl_world *world, uint8_t operation)
{
    rdl_slice *slice = rdl_world_slice(world);
    rdl_entry e = { 0 };
    uint64_t n = rdl_records_newest(slice);

    while (n > 0 && !(rdl_records_read(slice, n, &e) && e.operation == operation))
        n--;
    CHECK(n > 0);
    return e;
}

static void check_site(rdl_world *world, uint8_t operation, const char *site)
{
    rdl_entry e = newest(world, operation);
    char buffer[256];

    rdl_peek_text(rdl_world_slice(world), e.site, buffer, sizeof buffer);
    CHECK_HAS(buffer, site);
}

/* --- both forms ------------------------------------------------------------ */

static void call_in_each_way(rdl_world *world, void *arg)
{
    rdl_status (*barrier)(rdl_world *, rdl_group, const rdl_call *) =
        rdl_barrier;

    (void)arg;
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    check_site(world, RDL_OP_BARRIER, "tests/ranks/sites_test.c:");
    CHECK_OK(rdl_barrier_at(world, RDL_WORLD, NULL, "binding.py:7"));
    check_site(world, RDL_OP_BARRIER, "binding.py:7");
    CHECK_OK(barrier(world, RDL_WORLD, NULL));
    check_site(world, RDL_OP_BARRIER, "+0x");
    CHECK_OK((rdl_barrier)(world, RDL_WORLD, NULL));
    check_site(world, RDL_OP_BARRIER, "sites");
    CHECK_OK(rdl_barrier_at(world, RDL_WORLD, NULL, NULL));
    check_site(world, RDL_OP_BARRIER, "+0x");
    CHECK_OK(rdl_barrier_at(world, RDL_WORLD,
                            &(rdl_call){ .caller = "the end of a step" },
                            "loop.c:3"));
    check_site(world, RDL_OP_BARRIER, "loop.c:3 (the end of a step)");
}

RDL_TEST(each_form_of_a_call_has_its_site)
{
    run(2, call_in_each_way);
}

static void fill_up(rdl_world *world, void *arg)
{
    char caller[32];

    (void)arg;
    for (int i = 0; i < RDL_TEXTS_MOST; i++) {
        snprintf(caller, sizeof caller, "step %d", i);
        CHECK_OK(rdl_barrier_at(world, RDL_WORLD,
                                &(rdl_call){ .caller = caller }, "a.c:1"));
    }
    /* No more are kept: the site alone is. */
    check_site(world, RDL_OP_BARRIER, "a.c:1");
}

RDL_TEST(callers_without_end_leave_the_site)
{
    run(2, fill_up);
}

/* --- verdicts -------------------------------------------------------------- */

static void disagree(rdl_world *world, void *arg)
{
    int rank = rdl_world_rank(world);
    float x[2] = { 0 };

    (void)arg;
    if (rank == 2)
        CHECK_STATUS(rdl_all_reduce_at(world, RDL_WORLD, x, x, 2, RDL_FLOAT32,
                                       RDL_SUM, NULL, "eval.c:40"),
                     RDL_MISMATCH);
    else
        CHECK_STATUS(rdl_all_reduce_at(world, RDL_WORLD, x, x, 1, RDL_FLOAT32,
                                       RDL_SUM, NULL, "train.c:120"),
                     RDL_MISMATCH);
    CHECK_HAS(rdl_error_detail(),
              "rank 2 differs from ranks 0,1; ranks 0,1: all_reduce(1 float32, "
              "sum) at train.c:120; rank 2: all_reduce(2 float32, sum) at "
              "eval.c:40");
}

RDL_TEST(a_verdict_shows_the_sites_of_both_sides)
{
    run(3, disagree);
}

static void disagree_in_pairs(rdl_world *world, void *arg)
{
    int rank = rdl_world_rank(world);
    size_t sends[2] = { 1, 1 }, expects[2] = { 1, 1 };
    int32_t in[3] = { 0 }, out[3];

    (void)arg;
    if (rank == 0)
        sends[1] = 2;
    CHECK_STATUS(rdl_all_to_all_v_at(world, RDL_WORLD, in, sends, out, expects,
                                     RDL_INT32, NULL,
                                     rank == 0 ? "moe.c:10" : "moe.c:20"),
                 RDL_MISMATCH);
    CHECK_HAS(rdl_error_detail(), "rank 0");
    CHECK_HAS(rdl_error_detail(), "moe.c:10");
    CHECK_HAS(rdl_error_detail(), "moe.c:20");
}

RDL_TEST(a_verdict_on_a_pair_shows_both_sites)
{
    run(2, disagree_in_pairs);
}

static void disagree_in_transfer(rdl_world *world, void *arg)
{
    int32_t x[3] = { 0 };

    (void)arg;
    if (rdl_world_rank(world) == 0)
        CHECK_STATUS(
            rdl_send_at(world, RDL_WORLD, x, 3, RDL_INT32, 1, NULL, "pipe.c:1"),
            RDL_MISMATCH);
    else
        CHECK_STATUS(rdl_receive_at(world, RDL_WORLD, x, 2, RDL_INT32, 0, NULL,
                                    "pipe.c:2"),
                     RDL_MISMATCH);
    CHECK_HAS(rdl_error_detail(), " at pipe.c:1");
    CHECK_HAS(rdl_error_detail(), " at pipe.c:2");
}

RDL_TEST(a_verdict_on_a_transfer_shows_both_sites)
{
    run(2, disagree_in_transfer);
}

/* Words that a peer may write into its texts in place of its site. */
static void spoil_site(rdl_world *world, const char *site, uint64_t length)
{
    rdl_slice *slice = rdl_world_slice(world);
    uint32_t at = rdl_texts_put(&world->texts, site);
    _Atomic uint64_t *words =
        (_Atomic uint64_t *)(void *)((unsigned char *)slice + RDL_TEXTS_AT + at);

    CHECK(at != 0);
    atomic_store(&words[0], length);
    atomic_store(&words[1], UINT64_C(0xff0a1b5b7f9b80c2));
}

static void spoil_and_disagree(rdl_world *world, void *arg)
{
    static const char *const sites[] = { "s.c:0", "s.c:1", "s.c:2",
                                         "s.c:3", "s.c:4", "s.c:5" };
    static const uint64_t lengths[] = { 0,         5, 8, 200, RDL_TEXTS_BYTES,
                                        UINT64_MAX };
    static const int all[] = { 0, 1 };
    int rank = rdl_world_rank(world);
    int64_t x = 0;

    (void)arg;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        char name[2] = { (char)('a' + i), 0 };
        rdl_group group;
        const char *detail;

        CHECK_OK(rdl_group_open(world, all, 2, name, &group));
        if (rank == 1)
            spoil_site(world, sites[i], lengths[i]);
        CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
        CHECK_STATUS(rdl_broadcast_at(world, group, &x, 1, RDL_INT64, rank,
                                      NULL, rank == 1 ? sites[i] : "good.c:1"),
                     RDL_MISMATCH);
        detail = rdl_error_detail();
        CHECK_HAS(detail,
                  "root 0) at good.c:1; rank 1: broadcast(1 int64, root 1)");
        for (; *detail != 0; detail++)
            CHECK(*detail >= ' ' && *detail < 0x7f);
        CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    }
}

RDL_TEST(a_spoilt_site_of_a_peer_is_shown_clean)
{
    run(2, spoil_and_disagree);
}

/* --- revoking, and waits --------------------------------------------------- */

static void revoke_one(rdl_world *world, void *arg)
{
    static const int all[] = { 0, 1 };
    rdl_group group;

    (void)arg;
    CHECK_OK(rdl_group_open(world, all, 2, "ended", &group));
    CHECK_OK(rdl_barrier(world, group, NULL));
    if (rdl_world_rank(world) == 1)
        CHECK_OK(rdl_group_revoke_at(world, group, "stop.c:2"));
    CHECK_STATUS(rdl_barrier(world, group, NULL), RDL_REVOKED);
    CHECK_HAS(rdl_error_detail(),
              "group 'ended' [0,1] was revoked by rank 1 at stop.c:2");
}

RDL_TEST(a_revoked_group_says_where_it_was_revoked)
{
    run(2, revoke_one);
}

/* Rank 1 comes when rank 0 stands in its wait. */
static void come_after(rdl_world *world, uint8_t operation, const char *site)
{
    rdl_slice *slice = rdl_arena_slice(&world->mapping->arena, 0);
    char where[16] = "";
    rdl_entry e;

    if (rdl_world_rank(world) == 0)
        return;
    while (strcmp(where, site) != 0) {
        usleep(1000);
        if (rdl_records_read(slice, rdl_records_newest(slice), &e) &&
            e.operation == operation && e.state == RDL_RECORD_WAITING)
            rdl_peek_text(slice, e.site, where, sizeof where);
    }
}

static void wait_for_a_work(rdl_world *world)
{
    rdl_work work = { 0 };
    rdl_entry e;

    come_after(world, RDL_RECORD_AWAIT, "wait.c:1");
    CHECK_OK(rdl_barrier(world, RDL_WORLD, &(rdl_call){ .work = &work }));
    CHECK_OK(rdl_work_wait_at(world, work, 0, "wait.c:1"));
    if (rdl_world_rank(world) == 1)
        return;
    check_site(world, RDL_RECORD_AWAIT, "wait.c:1");
    e = newest(world, RDL_RECORD_AWAIT);
    CHECK_INT(e.state, RDL_RECORD_ENDED);
    CHECK_INT(e.count, newest(world, RDL_OP_BARRIER).number);
    CHECK(e.took > 0 && e.flags == RDL_RECORD_BLOCKS);
}

static void check_stream(rdl_world *world, const char *site)
{
    char name[16];
    rdl_entry e;

    if (rdl_world_rank(world) == 1)
        return;
    check_site(world, RDL_RECORD_SYNCHRONIZE, site);
    e = newest(world, RDL_RECORD_SYNCHRONIZE);
    rdl_peek_text(rdl_world_slice(world), e.stream, name, sizeof name);
    CHECK_TEXT(name, "side");
}

static void wait_for_the_late(rdl_world *world, void *arg)
{
    rdl_stream *stream = NULL;
    rdl_event *event = NULL;

    (void)arg;
    wait_for_a_work(world);
    CHECK_OK(rdl_stream_create(world, "side", &stream));
    CHECK_OK(rdl_event_create(world, &event));
    come_after(world, RDL_RECORD_SYNCHRONIZE, "wait.c:2");
    CHECK_OK(rdl_barrier(world, RDL_WORLD, &(rdl_call){ .stream = stream }));
    CHECK_OK(rdl_event_record(event, stream));
    CHECK_OK(rdl_event_synchronize_at(event, 0, "wait.c:2"));
    check_stream(world, "wait.c:2");
    come_after(world, RDL_RECORD_SYNCHRONIZE, "wait.c:3");
    CHECK_OK(rdl_barrier(world, RDL_WORLD, &(rdl_call){ .stream = stream }));
    CHECK_OK(rdl_stream_synchronize_at(stream, 0, "wait.c:3"));
    check_stream(world, "wait.c:3");
    CHECK_OK(rdl_stream_destroy(stream));
    CHECK_OK(rdl_event_destroy(event));
}

RDL_TEST(a_wait_that_sleeps_stands_in_the_record)
{
    run(2, wait_for_the_late);
}

static void wait_for_what_is_done(rdl_world *world, void *arg)
{
    rdl_work work = { 0 };
    rdl_stream *stream = NULL;
    rdl_group alone;
    int me = rdl_world_rank(world);
    uint64_t before;

    (void)arg;
    CHECK_OK(rdl_group_open(world, &me, 1, "alone", &alone));
    CHECK_OK(rdl_stream_create(world, "idle", &stream));
    CHECK_OK(rdl_barrier(world, alone, &(rdl_call){ .work = &work }));
    before = rdl_records_newest(rdl_world_slice(world));
    CHECK_OK(rdl_work_wait(world, work, 0));
    CHECK_OK(rdl_stream_synchronize(stream, 0));
    CHECK_INT(rdl_records_newest(rdl_world_slice(world)), before);
    CHECK_OK(rdl_stream_destroy(stream));
}

RDL_TEST(a_wait_that_does_not_sleep_is_not_recorded)
{
    run(2, wait_for_what_is_done);
}

/* --- wrong arguments ------------------------------------------------------- */

static void be_wrong(rdl_world *world, void *arg)
{
    int x = 0;

    (void)arg;
    CHECK_STATUS(rdl_barrier_at(NULL, RDL_WORLD, NULL, "x.c:1"), RDL_INVALID);
    CHECK_STATUS(
        rdl_broadcast_at(world, RDL_WORLD, &x, 1, RDL_INT32, 9, NULL, "x.c:1"),
        RDL_INVALID);
    CHECK_STATUS(rdl_exchange_at(world, RDL_WORLD, NULL, 1, NULL, "x.c:1"),
                 RDL_INVALID);
    CHECK_STATUS(rdl_work_wait_at(world, (rdl_work){ 9, 9, 9 }, 0, "x.c:1"),
                 RDL_INVALID);
    CHECK_STATUS(rdl_stream_synchronize_at(NULL, 0, "x.c:1"), RDL_INVALID);
    CHECK_STATUS(rdl_event_synchronize_at(NULL, 0, "x.c:1"), RDL_INVALID);
    CHECK_STATUS(rdl_group_revoke_at(world, (rdl_group){ 9, 9, 9 }, "x.c:1"),
                 RDL_INVALID);
    /* A site that is no text worth showing. */
    CHECK_OK(rdl_barrier_at(world, RDL_WORLD, NULL, ""));
    CHECK_OK(rdl_barrier_at(world, RDL_WORLD, NULL, NULL));
}

RDL_TEST(a_site_changes_nothing_about_wrong_arguments)
{
    run(2, be_wrong);
}
