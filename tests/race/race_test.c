/* Stress with stated invariants, for ThreadSanitizer: ranks are threads that share
 * one mapping, and have threads of their own.
 *
 *     Every byte of every result is right, whatever else goes on: other lanes of
 *     the same ranks from other threads, lists that overlap, groups that come and
 *     go, fewer slots than lists, less staging than the calls want.
 *     A question asked from another thread gets a true answer or "not open".
 *     Whatever a call that fails leaves behind, no call that succeeds reads it. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/worlds.h"

#include <raddle/account.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS 3
#define SIZE 4
#define MOST 1500 /* int64 of a block */

/* --- calls whose results are known ------------------------------------------ */

/* What member `from` gives to member `to` (or to all) at place i. */
static int64_t value(uint64_t salt, int from, int to, size_t i)
{
    return (int64_t)((salt >> 20) + i * 31) + from * 1000003 + to * 10007;
}

typedef struct room {
    int64_t input[SIZE * MOST];
    int64_t output[SIZE * MOST];
} room;

static void fill(room *r, uint64_t salt, int me, int blocks, size_t count)
{
    for (int to = 0; to < blocks; to++)
        for (size_t i = 0; i < count; i++)
            r->input[(size_t)to * count + i] = value(salt, me, to, i);
    memset(r->output, 0xee, sizeof r->output);
}

static void check(const int64_t *output, size_t count, uint64_t salt, int from,
                  int to, int n_summed)
{
    for (size_t i = 0; i < count; i++) {
        int64_t expected = value(salt, from, to, i);

        for (int m = 1; m < n_summed; m++)
            expected += value(salt, m, to, i);
        if (output[i] != expected)
            RDL_TEST_FAIL("element %zu of %zu is %lld, not %lld", i, count,
                          (long long)output[i], (long long)expected);
    }
}

/* Drawn by all members alike. */
typedef struct draw {
    uint64_t salt;
    int kind;
    size_t count;
    int root;
} draw;

static draw draw_call(uint64_t *state, int size)
{
    static const size_t counts[] = { 0, 1, 2, 6, 7, 40, 300, MOST };
    draw d = { .salt = rdl_test_random(state) };

    d.kind = (int)(d.salt % 6);
    d.count = counts[d.salt / 6 % 8];
    d.root = (int)(d.salt / 48 % (uint64_t)size);
    return d;
}

static void call(rdl_world *w, rdl_group g, const draw *d, room *r, int me,
                 int size)
{
    size_t n = d->count;

    fill(r, d->salt, me, size, n);
    switch (d->kind) {
    case 0:
        CHECK_OK(rdl_barrier(w, g, NULL));
        break;
    case 1:
        CHECK_OK(rdl_broadcast(w, g, r->input, n, RDL_INT64, d->root, NULL));
        check(r->input, n, d->salt, d->root, 0, 1);
        break;
    case 2:
        CHECK_OK(rdl_all_reduce(w, g, r->input, r->output, n, RDL_INT64,
                                RDL_SUM, NULL));
        check(r->output, n, d->salt, 0, 0, size);
        break;
    case 3:
        CHECK_OK(rdl_all_gather(w, g, r->input, r->output, n, RDL_INT64, NULL));
        for (int from = 0; from < size; from++)
            check(r->output + (size_t)from * n, n, d->salt, from, 0, 1);
        break;
    case 4:
        CHECK_OK(rdl_reduce_scatter(w, g, r->input, r->output, n, RDL_INT64,
                                    RDL_SUM, NULL));
        check(r->output, n, d->salt, 0, me, size);
        break;
    default:
        CHECK_OK(rdl_all_to_all(w, g, r->input, r->output, n, RDL_INT64, NULL));
        for (int from = 0; from < size; from++)
            check(r->output + (size_t)from * n, n, d->salt, from, me, 1);
    }
}

/* --- mixes ------------------------------------------------------------------ */

typedef struct mix {
    rdl_world *world;
    int rounds;
    atomic_int running; /* threads that make calls */
} mix;

/* A list that all ranks draw alike, in any order; this rank's place in it. */
static int draw_list(uint64_t *state, int rank, int *list, int *size)
{
    uint64_t mask = 1 + rdl_test_random(state) % ((1u << SIZE) - 1);
    uint64_t first = rdl_test_random(state) % SIZE;
    int n = 0, me = -1;

    for (uint64_t i = 0; i < SIZE; i++) {
        int r = (int)((first + i) % SIZE);

        if ((mask >> r & 1) == 0)
            continue;
        me = r == rank ? n : me;
        list[n++] = r;
    }
    *size = n;
    return me;
}

/* Opens a list under this thread's name, makes some calls, closes. */
static void make_a_round(mix *m, int thread, uint64_t *state, room *r)
{
    int list[SIZE], size, me, calls;
    char name[16];
    rdl_group group;

    me = draw_list(state, rdl_world_rank(m->world), list, &size);
    calls = 1 + (int)(rdl_test_random(state) % 3);
    snprintf(name, sizeof name, "thread %d", thread);
    if (me >= 0)
        CHECK_OK(rdl_group_open(m->world, list, size, name, &group));
    for (int i = 0; i < calls; i++) {
        draw d = draw_call(state, size);

        if (me >= 0)
            call(m->world, group, &d, r, me, size);
    }
    if (me >= 0)
        CHECK_OK(rdl_group_close(m->world, group));
}

/* The world itself and handles of any number, at any time. */
static void ask_questions(mix *m, uint64_t *state)
{
    rdl_group group = { .index = (uint32_t)(rdl_test_random(state) % 20),
                        .generation = (uint32_t)(rdl_test_random(state) % 20),
                        .world = 1 };
    rdl_account account;
    int answer = -7;

    CHECK_OK(rdl_account_read(m->world, &account));
    CHECK(account.groups_open >= 1 && account.groups_open <= 1 + THREADS);
    CHECK_INT(account.threads, 0);
    CHECK_OK(rdl_group_size(m->world, RDL_WORLD, &answer));
    CHECK_INT(answer, SIZE);
    CHECK_STATUS(rdl_group_rank(m->world, group, &answer), RDL_INVALID);
    CHECK_STATUS(rdl_group_close(m->world, group), RDL_INVALID);
    CHECK_STATUS(rdl_barrier(m->world, group, NULL), RDL_INVALID);
}

static void mix_calls(int thread, int n_threads, void *arg)
{
    mix *m = arg;
    uint64_t state = rdl_test_seed() + (uint64_t)thread;
    room *r = malloc(sizeof *r);

    CHECK(r != NULL);
    if (thread == n_threads - 1) {
        state += (uint64_t)rdl_world_rank(m->world);
        while (atomic_load(&m->running) > 0) {
            ask_questions(m, &state);
            usleep(200);
        }
    } else {
        for (int round = 0; round < m->rounds; round++)
            make_a_round(m, thread, &state, r);
        atomic_fetch_sub(&m->running, 1);
    }
    free(r);
}

static void mix_on_threads(rdl_world *world, void *arg)
{
    mix m = { .world = world, .rounds = *(int *)arg, .running = THREADS };

    rdl_test_threads(THREADS + 1, mix_calls, &m);
    rdl_check_digits(world, RDL_WORLD, 1111);
}

static void run_mixes(size_t staging, int slots, int rounds)
{
    rdl_test_job job = { .size = SIZE,
                         .staging_bytes = staging,
                         .groups = slots };

    rounds *= rdl_test_soak() ? 100 : 1;
    rdl_test_worlds(&job, mix_on_threads, &rounds);
    job.processes = true;
    rdl_test_worlds(&job, mix_on_threads, &rounds);
}

RDL_TEST(calls_of_many_threads_on_many_lists_are_right)
{
    run_mixes(0, 0, 500);
}

RDL_TEST(calls_are_right_where_staging_is_short)
{
    run_mixes(RDL_STAGING_LEAST, 0, 500);
}

/* Each thread has at most one group open and one that a slow peer has not passed;
 * the world has one more. */
RDL_TEST(calls_are_right_where_slots_are_taken_back_all_the_time)
{
    run_mixes(16384, 2 * THREADS + 2, 800);
}

/* --- one slot for all groups ------------------------------------------------- */

/* Each group takes the slot of the one before, as soon as all have passed that; a
 * rank that is refused till then asks again. */
static void use_one_slot(rdl_world *world, void *arg)
{
    static const int all[] = { 0, 1, 2, 3 };
    int rounds = *(int *)arg, me = rdl_world_rank(world);

    for (int i = 0; i < rounds; i++) {
        int64_t mine = value((uint64_t)i << 20, me, 0, 0), sum = 0;
        char name[32];
        rdl_group group;
        rdl_status st;

        snprintf(name, sizeof name, "%d", i % 5);
        CHECK_OK(rdl_group_open(world, all, SIZE, name, &group));
        while ((st = rdl_all_reduce(world, group, &mine, &sum, 1, RDL_INT64,
                                    RDL_SUM, NULL)) == RDL_NO_MEMORY)
            sched_yield();
        CHECK_OK(st);
        check(&sum, 1, (uint64_t)i << 20, 0, 0, SIZE);
        CHECK_OK(rdl_group_close(world, group));
    }
}

RDL_TEST(a_slot_is_taken_back_only_when_all_have_passed)
{
    int rounds = rdl_test_soak() ? 100000 : 1000;
    rdl_test_job job = { .size = SIZE, .groups = 1, .timeout_ms = 10000 };

    rdl_test_worlds(&job, use_one_slot, &rounds);
    job.processes = true;
    rdl_test_worlds(&job, use_one_slot, &rounds);
}

/* --- one lane from several threads ------------------------------------------- */

/* Calls are taken one after another as they enter. All are the same, so whichever
 * pair up, the sums are right. */
static void share_a_lane(int thread, int n_threads, void *arg)
{
    mix *m = arg;

    (void)thread;
    (void)n_threads;
    for (int i = 0; i < m->rounds; i++)
        rdl_check_digits(m->world, RDL_WORLD, 1111);
}

static void share_the_world(rdl_world *world, void *arg)
{
    mix m = { .world = world, .rounds = *(int *)arg };
    rdl_account account;

    rdl_test_threads(THREADS, share_a_lane, &m);
    CHECK_OK(rdl_account_read(world, &account));
    CHECK_INT(account.collectives, THREADS * m.rounds);
}

RDL_TEST(calls_of_several_threads_on_one_lane_take_turns)
{
    int rounds = rdl_test_soak() ? 100000 : 500;
    rdl_test_job job = { .size = SIZE };

    rdl_test_worlds(&job, share_the_world, &rounds);
}

/* --- giving up in the middle -------------------------------------------------- */

static void abort_or_call(int thread, int n_threads, void *arg)
{
    mix *m = arg;
    uint64_t state = rdl_test_seed() + (uint64_t)m->rounds;

    (void)n_threads;
    if (thread == 0) {
        if (rdl_world_rank(m->world) == m->rounds % SIZE) {
            usleep((unsigned)(rdl_test_random(&state) % 3000));
            rdl_world_abort(m->world, "as planned");
        }
        return;
    }
    for (;;) {
        int64_t in[200], out[200];
        rdl_status st;

        memset(in, 1, sizeof in);
        st = rdl_all_reduce(m->world, RDL_WORLD, in, out, 200, RDL_INT64,
                            RDL_SUM, NULL);
        if (st != RDL_OK) {
            bool own = rdl_world_rank(m->world) == m->rounds % SIZE;

            CHECK_STATUS(st, own ? RDL_STATE : RDL_PEER);
            CHECK_HAS(rdl_error_detail(), "gave up: as planned");
            return;
        }
        CHECK_INT(out[199], 4 * in[199]);
        if (rdl_world_rank(m->world) == m->rounds % SIZE)
            return; /* it may be the last that the others answer */
    }
}

static void give_up_in_the_middle(rdl_world *world, void *arg)
{
    mix m = { .world = world, .rounds = *(int *)arg };

    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL)); /* all have started */
    rdl_test_threads(2, abort_or_call, &m);
}

RDL_TEST(an_abort_from_another_thread_ends_the_calls_of_the_peers)
{
    int rounds = rdl_test_soak() ? 1000 : 20;

    for (int i = 0; i < rounds; i++) {
        rdl_test_job job = { .size = SIZE, .keeps_failures = true };

        rdl_test_worlds(&job, give_up_in_the_middle, &i);
    }
}

/* --- timeouts in the middle --------------------------------------------------- */

/* A call that gives up gives its staging to the next one at once, while a late peer
 * may still read what stood there. It then looks whether the owner has failed, and
 * throws away what it read; to a race detector the reading is a race all the same. */
#if defined(__SANITIZE_THREAD__)
#define SEES_RACES true
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SEES_RACES true
#endif
#endif
#ifndef SEES_RACES
#define SEES_RACES false
#endif

static void be_late_or_busy(int thread, int n_threads, void *arg)
{
    static const int all[] = { 0, 1, 2, 3 };
    mix *m = arg;
    int me = rdl_world_rank(m->world);
    uint64_t common = rdl_test_seed(), own = common + (uint64_t)me;
    room *r = malloc(sizeof *r);
    rdl_group group;
    char name[32];

    (void)n_threads;
    CHECK(r != NULL);
    if (thread == 1) { /* takes whatever staging is free */
        CHECK_OK(rdl_group_open(m->world, all, SIZE, "busy", &group));
        for (int i = 0; i < 20 * m->rounds; i++) {
            draw d = draw_call(&common, SIZE);

            call(m->world, group, &d, r, me, SIZE);
        }
    }
    for (int i = 0; thread == 0 && i < m->rounds; i++) {
        rdl_call brief = { .timeout_ms = 1 };
        uint64_t salt = (uint64_t)i << 40;
        rdl_status st;

        snprintf(name, sizeof name, "late %d", i);
        CHECK_OK(rdl_group_open(m->world, all, SIZE, name, &group));
        fill(r, salt, me, 1, MOST);
        usleep((unsigned)(rdl_test_random(&own) % 3000));
        st = rdl_all_reduce(m->world, group, r->input, r->output, MOST,
                            RDL_INT64, RDL_SUM, &brief);
        if (st == RDL_OK)
            check(r->output, MOST, salt, 0, 0, SIZE);
        else
            CHECK_STATUS(st, RDL_TIMEOUT);
        atomic_fetch_add(&m->running, st == RDL_OK);
    }
    free(r);
}

static void time_out_and_go_on(rdl_world *world, void *arg)
{
    mix m = { .world = world, .rounds = *(int *)arg };

    rdl_test_threads(2, be_late_or_busy, &m);
    printf("rank %d: %d of %d calls in time\n", rdl_world_rank(world),
           atomic_load(&m.running), m.rounds);
    rdl_check_digits(world, RDL_WORLD, 1111);
}

RDL_TEST(what_a_late_rank_reads_of_a_call_that_gave_up_is_no_result)
{
    int rounds = rdl_test_soak() ? 2000 : 100;
    rdl_test_job job = { .size = SIZE,
                         .staging_bytes = 32768,
                         .keeps_failures = true };

    if (SEES_RACES)
        SKIP("what is read and thrown away is a race to ThreadSanitizer");
    rdl_test_worlds(&job, time_out_and_go_on, &rounds);
}
