/* Dumps: what ranks did last, read by somebody else. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/world.h"
#include "support/worlds.h"

#include <raddle/dump.h>
#include <raddle/stream.h>
#include <raddle/work.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static rdl_dump *open_own(void)
{
    rdl_dump *dump = NULL;

    CHECK_OK(rdl_dump_open(getpid(), &dump));
    return dump;
}

/* That call, which must be there. */
static rdl_dump_call read_call(const rdl_dump *dump, int rank, uint64_t number)
{
    rdl_dump_call call;

    CHECK_OK(rdl_dump_read(dump, 0, rank, number, &call));
    CHECK_INT(call.number, number);
    return call;
}

/* The k-th from the end. */
static rdl_dump_call last(const rdl_dump *dump, int job, int rank, uint64_t k)
{
    rdl_dump_rank member;
    rdl_dump_call call;

    CHECK_OK(rdl_dump_look(dump, job, rank, &member));
    CHECK(member.newest > k);
    CHECK_OK(rdl_dump_read(dump, job, rank, member.newest - k, &call));
    CHECK_INT(call.number, member.newest - k);
    return call;
}

/* --- what is shown ----------------------------------------------------------- */

static void make_calls(rdl_world *world)
{
    static const int list[] = { 1, 0 };
    double x[4] = { 0 }, y[8];
    rdl_group group;

    CHECK_OK(rdl_group_open(world, list, 2, "dp", &group));
    CHECK_OK(rdl_all_reduce_at(world, group, x, x, 4, RDL_FLOAT64, RDL_MAX,
                               NULL, "a.c:1"));
    CHECK_OK(rdl_broadcast_at(world, RDL_WORLD, x, 3, RDL_FLOAT64, 1, NULL,
                              "a.c:2"));
    CHECK_OK(
        rdl_all_gather_at(world, group, x, y, 4, RDL_FLOAT64, NULL, "a.c:3"));
    if (rdl_world_rank(world) == 0)
        CHECK_OK(rdl_send_at(world, group, x, 2, RDL_FLOAT64, 0, NULL, "a.c:4"));
    else
        CHECK_OK(
            rdl_receive_at(world, group, x, 2, RDL_FLOAT64, 1, NULL, "a.c:4"));
    CHECK_OK(rdl_barrier_at(world, RDL_WORLD, NULL, "a.c:5"));
}

static void check_call(const rdl_dump_call *c, const char *what,
                       const char *group, uint64_t number, const char *site)
{
    CHECK_TEXT(c->what, what);
    CHECK_TEXT(c->group, group);
    CHECK_INT(c->call, number);
    CHECK_TEXT(c->site, site);
    CHECK_INT(c->state, RDL_CALL_ENDED);
    CHECK_INT(c->status, RDL_OK);
    CHECK(c->blocks && c->stream[0] == 0);
    CHECK(c->at >= 0 && c->at < 600 && c->ago >= 0 && c->ago < 600);
    CHECK(c->took >= 0 && c->took <= c->ago + 1);
}

static void look_at_calls(rdl_world *world, void *arg)
{
    int me = rdl_world_rank(world);
    rdl_dump *dump;

    (void)arg;
    make_calls(world);
    dump = open_own();
    CHECK_INT(rdl_dump_jobs(dump), 1);
    CHECK_INT(rdl_dump_size(dump, 0), 2);
    CHECK(rdl_dump_id(dump, 0) != 0);
    for (int rank = 0; rank < 2; rank++) {
        /* A peer may still be in its fifth, or in the next. */
        rdl_dump_call c = read_call(dump, rank, 1);
        rdl_dump_rank member;

        CHECK_OK(rdl_dump_look(dump, 0, rank, &member));
        CHECK_INT(member.state, RDL_MEMBER_JOINED);
        CHECK(member.newest >= 5);
        CHECK_INT(member.oldest, 1);
        CHECK_TEXT(member.reason, "");
        check_call(&c, "all_reduce(4 float64, max)", "group 'dp' [1,0]", 1,
                   "a.c:1");
        c = read_call(dump, rank, 2);
        check_call(&c, "broadcast(3 float64, root 1)", "the world [0,1]", 1,
                   "a.c:2");
        c = read_call(dump, rank, 3);
        check_call(&c, "all_gather(4 float64)", "group 'dp' [1,0]", 2, "a.c:3");
        c = read_call(dump, rank, 4);
        check_call(&c,
                   rank == 0 ? "send(2 float64 to rank 1)"
                             : "receive(2 float64 from rank 0)",
                   "the way from rank 0 to rank 1", 1, "a.c:4");
    }
    {
        rdl_dump_call c = read_call(dump, me, 5);

        check_call(&c, "barrier", "the world [0,1]", 2, "a.c:5");
    }
    rdl_dump_close(dump);
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
}

RDL_TEST(a_dump_shows_what_each_rank_did_last)
{
    rdl_test_job job = { .size = 2 };

    rdl_test_worlds(&job, look_at_calls, NULL);
    job.processes = true;
    rdl_test_worlds(&job, look_at_calls, NULL);
}

/* Rank 1 looks at rank 0, which sleeps for it. */
static void look_at_waits(rdl_world *world, void *arg)
{
    rdl_dump_call c = { .number = 0 };
    rdl_stream *stream = NULL;
    rdl_dump *dump;

    (void)arg;
    CHECK_OK(rdl_stream_create(world, "side", &stream));
    if (rdl_world_rank(world) == 1) {
        dump = open_own();
        do {
            rdl_dump_rank member;

            usleep(1000);
            CHECK_OK(rdl_dump_look(dump, 0, 0, &member));
            if (member.newest < 2)
                continue;
            c = last(dump, 0, 0, 0);
        } while (c.state != RDL_CALL_WAITING);
        CHECK_TEXT(c.what, "synchronize(stream 'side')");
        CHECK_TEXT(c.site, "s.c:2");
        CHECK_TEXT(c.group, "");
        do
            c = last(dump, 0, 0, 1);
        while (c.state != RDL_CALL_WAITING);
        CHECK_INT(c.peer, 1);
        CHECK_TEXT(c.stream, "side");
        CHECK(!c.blocks);
        CHECK_TEXT(c.what, "barrier");
        CHECK_TEXT(c.site, "s.c:1 (the end)");
        rdl_dump_close(dump);
    }
    CHECK_OK(rdl_barrier_at(world, RDL_WORLD,
                            &(rdl_call){ .stream = stream, .caller = "the end" },
                            "s.c:1"));
    CHECK_OK(rdl_stream_synchronize_at(stream, 0, "s.c:2"));
    CHECK_OK(rdl_stream_destroy(stream));
}

RDL_TEST(a_dump_shows_what_a_rank_waits_for)
{
    rdl_test_job job = { .size = 2 };

    rdl_test_worlds(&job, look_at_waits, NULL);
}

/* --- the ring wraps ---------------------------------------------------------- */

#define ROUNDS 20000

static const char *const round_sites[] = { "r.c:0", "r.c:1", "r.c:2", "r.c:3" };

/* Of calls of 1 to 4 elements, each from a site of its own. */
static bool is_whole(const rdl_dump_call *c)
{
    return c->count >= 1 && c->count <= 4 &&
           strcmp(c->operation, "all_reduce") == 0 &&
           strcmp(c->dtype, "int32") == 0 && c->number % 4 == c->count - 1 &&
           strcmp(c->site, round_sites[c->count - 1]) == 0;
}

static void wrap(rdl_world *world, void *arg)
{
    int32_t x[4] = { 0 };
    rdl_dump_rank member;
    rdl_dump_call c;
    rdl_dump *dump;
    int seen = 0;

    (void)arg;
    if (rdl_world_rank(world) != 0) {
        for (size_t i = 1; i <= ROUNDS; i++)
            CHECK_OK(rdl_all_reduce_at(world, RDL_WORLD, x, x, i % 4 + 1,
                                       RDL_INT32, RDL_SUM, NULL,
                                       round_sites[i % 4]));
        return;
    }
    for (size_t i = 1; i <= ROUNDS; i++) {
        CHECK_OK(rdl_all_reduce_at(world, RDL_WORLD, x, x, i % 4 + 1, RDL_INT32,
                                   RDL_SUM, NULL, round_sites[i % 4]));
        if (i % 512 != 0)
            continue;
        dump = open_own();
        CHECK_OK(rdl_dump_look(dump, 0, 1, &member));
        CHECK(member.newest < 64 || member.newest - member.oldest == 63);
        for (uint64_t n = member.oldest; n <= member.newest; n++)
            if (rdl_dump_read(dump, 0, 1, n, &c) == RDL_OK) {
                CHECK(is_whole(&c));
                seen++;
            }
        rdl_dump_close(dump);
    }
    CHECK(seen > 0);
}

RDL_TEST(a_dump_while_the_ring_wraps_shows_whole_calls)
{
    rdl_test_job job = { .size = 2, .records = 64 };

    rdl_test_worlds(&job, wrap, NULL);
    job.processes = true;
    rdl_test_worlds(&job, wrap, NULL);
}

/* --- lives and deaths -------------------------------------------------------- */

RDL_TEST(a_process_without_a_world_holds_no_job)
{
    rdl_dump *dump;

    CHECK_STATUS(rdl_dump_open(getpid(), &dump), RDL_STATE);
    CHECK_HAS(rdl_error_detail(), "holds no memory of a job");
}

/* The second world of each rank, inside the first. */
static void open_another(rdl_world *world, void *arg)
{
    rdl_world_options options = { .rank = rdl_world_rank(world),
                                  .size = rdl_world_size(world),
                                  .job = arg };
    rdl_world *second = NULL;
    uint64_t calls = 0;
    rdl_dump *dump;

    CHECK_OK(rdl_world_open(&options, &second));
    CHECK_OK(rdl_barrier_at(second, RDL_WORLD, NULL, "second.c:1"));
    CHECK_OK(rdl_barrier(second, RDL_WORLD, NULL));
    dump = open_own();
    CHECK_INT(rdl_dump_jobs(dump), 2);
    CHECK(rdl_dump_id(dump, 0) != rdl_dump_id(dump, 1));
    for (int job = 0; job < 2; job++) {
        rdl_dump_rank member;

        CHECK_OK(rdl_dump_look(dump, job, options.rank, &member));
        calls += member.newest;
    }
    CHECK_INT(calls, 2); /* all in the second world */
    rdl_dump_close(dump);
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    CHECK_OK(rdl_world_close(second));
}

RDL_TEST(several_jobs_of_a_process_are_all_shown)
{
    rdl_test_job job = { .size = 2 };
    char name[64];

    snprintf(name, sizeof name, "second-%d", (int)getpid());
    rdl_test_worlds(&job, open_another, name);
}

static void outlive(int rank, int size, void *arg)
{
    rdl_world_options options = { .rank = rank, .size = size, .job = arg };
    rdl_dump_rank member;
    rdl_dump_call c;
    rdl_world *world;
    rdl_dump *dump;

    CHECK_OK(rdl_world_open(&options, &world));
    CHECK_OK(rdl_barrier_at(world, RDL_WORLD, NULL, "last.c:9"));
    if (rank == 1)
        _exit(86);
    CHECK_STATUS(rdl_barrier(world, RDL_WORLD, NULL), RDL_PEER);
    dump = open_own();
    CHECK_OK(rdl_dump_look(dump, 0, 1, &member));
    CHECK_INT(member.state, RDL_MEMBER_DEAD);
    c = last(dump, 0, 1, 0);
    CHECK_TEXT(c.site, "last.c:9");
    c = last(dump, 0, 0, 0);
    CHECK_INT(c.state, RDL_CALL_ENDED);
    CHECK_INT(c.status, RDL_PEER);
    CHECK(c.took > 0 || c.peer == -1);
    rdl_dump_close(dump);
    (void)rdl_world_close(world);
}

RDL_TEST(the_last_calls_of_a_dead_rank_are_shown)
{
    char name[64];
    pid_t pid[2];

    snprintf(name, sizeof name, "dead-%d", (int)getpid());
    for (int rank = 0; rank < 2; rank++)
        pid[rank] = rdl_test_start(rank, 2, outlive, name);
    CHECK_INT(rdl_test_wait(pid[1]), 86);
    CHECK_INT(rdl_test_wait(pid[0]), 0);
}

/* --- outside data ------------------------------------------------------------ */

static void check_printable(const char *text)
{
    for (; *text != 0; text++)
        CHECK((unsigned char)*text >= ' ' && *text != 0x7f);
}

/* Random words in the ring, in the texts and in the list of a lane. */
static void spoil(rdl_slice *slice, uint64_t *seed)
{
    _Atomic uint64_t *ring =
        (_Atomic uint64_t *)(void *)((unsigned char *)slice + RDL_RECORDS_AT);
    _Atomic uint64_t *texts =
        (_Atomic uint64_t *)(void *)((unsigned char *)slice + RDL_TEXTS_AT);

    for (int i = 0; i < 64 * 8; i++)
        atomic_store(&ring[i], rdl_test_random(seed) >> (i * 7 & 63));
    for (int i = 0; i < 64; i++) /* their numbers stay, so that they are read */
        atomic_store(&ring[8 * i], (uint64_t)i + 1);
    for (int i = 0; i < 512; i++)
        atomic_store(&texts[i], rdl_test_random(seed) >> (i * 11 & 63));
}

static void read_spoilt(rdl_world *world, void *arg)
{
    uint64_t seed = rdl_test_seed();
    rdl_slice *slice = rdl_world_slice(world);
    rdl_dump_call c;
    rdl_dump *dump;
    int read = 0;

    (void)arg;
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    if (rdl_world_rank(world) == 0) {
        dump = open_own();
        for (int round = 0; round < 50; round++) {
            spoil(slice, &seed);
            for (uint64_t n = 1; n <= 64; n++) {
                if (rdl_dump_read(dump, 0, 0, n, &c) != RDL_OK)
                    continue;
                check_printable(c.what);
                check_printable(c.group);
                check_printable(c.stream);
                check_printable(c.site);
                CHECK(c.peer < 2 && c.status <= RDL_BUG);
                read++;
            }
        }
        CHECK(read > 0);
        rdl_dump_close(dump);
    }
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
}

RDL_TEST(a_spoilt_ring_is_shown_without_harm)
{
    rdl_test_job job = { .size = 2, .records = 64 };

    rdl_test_worlds(&job, read_spoilt, NULL);
}

/* --- wrong arguments --------------------------------------------------------- */

static void be_wrong(rdl_world *world, void *arg)
{
    rdl_dump *dump = open_own();
    rdl_dump_rank member;
    rdl_dump_call c;

    (void)world;
    (void)arg;
    CHECK_STATUS(rdl_dump_look(dump, 1, 0, &member), RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "job 1 of 1");
    CHECK_STATUS(rdl_dump_look(dump, 0, 2, &member), RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "rank 2 of 2");
    CHECK_STATUS(rdl_dump_look(dump, 0, -1, &member), RDL_INVALID);
    CHECK_STATUS(rdl_dump_look(dump, 0, 0, NULL), RDL_INVALID);
    CHECK_STATUS(rdl_dump_look(NULL, 0, 0, &member), RDL_INVALID);
    CHECK_STATUS(rdl_dump_read(dump, 0, 0, 1, NULL), RDL_INVALID);
    CHECK_STATUS(rdl_dump_read(dump, 0, 0, 0, &c), RDL_AGAIN);
    CHECK_STATUS(rdl_dump_read(dump, 0, 0, UINT64_MAX, &c), RDL_AGAIN);
    CHECK_INT(rdl_dump_size(dump, -1), 0);
    CHECK_INT(rdl_dump_jobs(NULL), 0);
    CHECK_INT(rdl_dump_id(dump, 7), 0);
    rdl_dump_close(dump);
    rdl_dump_close(NULL);
}

RDL_TEST(wrong_arguments_of_a_dump_are_sentences)
{
    rdl_test_job job = { .size = 2 };
    rdl_dump *dump;

    CHECK_STATUS(rdl_dump_open(getpid(), NULL), RDL_INVALID);
    CHECK_STATUS(rdl_dump_open(0, &dump), RDL_INVALID);
    CHECK_STATUS(rdl_dump_open(INT64_MAX, &dump), RDL_INVALID);
    CHECK_STATUS(rdl_dump_open(INT32_MAX, &dump), RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "there is no process 2147483647");
    rdl_test_worlds(&job, be_wrong, NULL);
}
