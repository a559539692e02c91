/* Streams, events, works and batches (cases H19, H24 beside the caller). Sums are
 * digit codes: rank r gives 10^r. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/worlds.h"

#include <pthread.h>
#include <raddle/account.h>
#include <raddle/stream.h>
#include <raddle/work.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void both(int size, rdl_world_body body, void *arg)
{
    rdl_test_job job = { .size = size };

    rdl_test_worlds(&job, body, arg);
    job.processes = true;
    rdl_test_worlds(&job, body, arg);
}

static int64_t all_digits(int size)
{
    return (rdl_digit(size) - 1) / 9;
}

/* --- streams --------------------------------------------------------------- */

static rdl_status append(void *arg)
{
    int *log = arg;

    usleep(1000);
    log[0] = log[0] % 1000 * 10 + log[1]++; /* the last four */
    return RDL_OK;
}

static rdl_status fail_here(void *arg)
{
    (void)arg;
    return RDL_SYSTEM;
}

static void use_streams(rdl_world *world, void *arg)
{
    int log[] = { 0, 1 }, copy[] = { 0, 0 };
    rdl_stream *stream, *other;
    rdl_event *event;

    (void)arg;
    CHECK_OK(rdl_stream_create(world, "one", &stream));
    CHECK_OK(rdl_stream_create(world, NULL, &other));
    CHECK_OK(rdl_event_create(world, &event));
    CHECK_OK(rdl_event_wait(event, other)); /* it marks nothing */
    CHECK_OK(rdl_event_query(event));
    for (int i = 0; i < 4; i++)
        CHECK_OK(rdl_stream_call(stream, append, log));
    CHECK_OK(rdl_event_record(event, stream));
    CHECK_OK(rdl_event_wait(event, other));
    CHECK_OK(rdl_stream_copy(other, copy, log, sizeof log));
    CHECK_OK(rdl_stream_synchronize(other, 0));
    CHECK_INT(copy[0], 1234);
    CHECK_OK(rdl_event_synchronize(event, 0));
    CHECK_OK(rdl_event_query(event));
    CHECK_OK(rdl_stream_synchronize(stream, 0));
    CHECK_OK(rdl_stream_query(stream));
    CHECK_OK(rdl_event_destroy(event));
    CHECK_OK(rdl_stream_destroy(other));
    CHECK_OK(rdl_stream_destroy(stream));
}

RDL_TEST(an_event_orders_two_streams)
{
    both(1, use_streams, NULL);
}

static void fail_a_stream(rdl_world *world, void *arg)
{
    int log[] = { 0, 1 };
    rdl_stream *stream;

    (void)arg;
    CHECK_OK(rdl_stream_create(world, "weak", &stream));
    CHECK_OK(rdl_stream_call(stream, append, log));
    CHECK_OK(rdl_stream_call(stream, fail_here, NULL));
    CHECK_OK(rdl_stream_call(stream, append, log));
    CHECK_STATUS(rdl_stream_synchronize(stream, 0), RDL_SYSTEM);
    CHECK_HAS(rdl_error_detail(), "stream 'weak' answered RDL_SYSTEM");
    CHECK_INT(log[0], 1);
    CHECK_STATUS(rdl_stream_query(stream), RDL_SYSTEM);
    CHECK_STATUS(rdl_stream_destroy(stream), RDL_SYSTEM);
}

RDL_TEST(a_failure_stays_and_later_work_is_skipped)
{
    both(1, fail_a_stream, NULL);
}

/* A collective on a stream that failed on one rank must not hang the others. */
static void fail_one_of_two(rdl_world *world, void *arg)
{
    int64_t mine = 1, sum = 0;
    rdl_stream *stream;
    rdl_call call = { 0 };

    (void)arg;
    CHECK_OK(rdl_stream_create(world, "s", &stream));
    if (rdl_world_rank(world) == 1)
        CHECK_OK(rdl_stream_call(stream, fail_here, NULL));
    call.stream = stream;
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    CHECK_OK(rdl_all_reduce(world, RDL_WORLD, &mine, &sum, 1, RDL_INT64,
                            RDL_SUM, &call));
    CHECK_STATUS(rdl_stream_synchronize(stream, 0), RDL_SYSTEM);
    if (rdl_world_rank(world) == 0)
        CHECK_HAS(rdl_error_detail(), "its stream on rank 1 had failed");
    CHECK_HAS(rdl_error_detail(), rdl_world_rank(world) == 0
                                      ? "all_reduce on the world [0,1] at "
                                      : "stream 's' answered RDL_SYSTEM");
    CHECK_INT(sum, 0);
    CHECK_STATUS(rdl_stream_destroy(stream), RDL_SYSTEM);
}

RDL_TEST(a_collective_passed_over_on_one_rank_fails_on_all)
{
    rdl_test_job job = { .size = 2, .keeps_failures = true };

    rdl_test_worlds(&job, fail_one_of_two, NULL);
    job.processes = true;
    rdl_test_worlds(&job, fail_one_of_two, NULL);
}

/* --- threads ---------------------------------------------------------------- */

static uint64_t threads_of(rdl_world *world)
{
    rdl_account account;

    CHECK_OK(rdl_account_read(world, &account));
    return account.threads;
}

static void count_streams(rdl_world *world, void *arg)
{
    int64_t mine = 1, sum = 0;
    rdl_stream *streams[2];

    (void)arg;
    CHECK_INT(threads_of(world), 0);
    for (int i = 0; i < 2; i++)
        CHECK_OK(rdl_stream_create(world, NULL, &streams[i]));
    CHECK_INT(threads_of(world), 2);
    CHECK_OK(rdl_all_reduce(world, RDL_WORLD, &mine, &sum, 1, RDL_INT64,
                            RDL_SUM, &(rdl_call){ .stream = streams[0] }));
    for (int i = 0; i < 2; i++)
        CHECK_OK(rdl_stream_destroy(streams[i]));
    CHECK_INT(threads_of(world), 0); /* a stream's work wants no helper */
}

/* Rank 1 comes to the second group after the first, so rank 0's work is left to
 * itself meanwhile. */
static void count_helpers(rdl_world *world, void *arg)
{
    static const int list[] = { 0, 1 };
    rdl_group late;
    rdl_work work;

    (void)arg;
    CHECK_OK(rdl_group_open(world, list, 2, "late", &late));
    if (rdl_world_rank(world) == 0) {
        CHECK_INT(threads_of(world), 0);
        CHECK_OK(rdl_barrier(world, late, &(rdl_call){ .work = &work }));
        CHECK_INT(threads_of(world), 1);
        CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
        CHECK_OK(rdl_work_wait(world, work, 0));
        CHECK_INT(threads_of(world), 1); /* it sleeps */
    } else {
        CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
        CHECK_OK(rdl_barrier(world, late, NULL));
    }
    CHECK_OK(rdl_group_close(world, late));
}

RDL_TEST(the_account_counts_threads_of_streams_and_the_helper)
{
    both(2, count_streams, NULL);
    both(2, count_helpers, NULL);
}

/* --- order ----------------------------------------------------------------- */

static rdl_status nap(void *arg)
{
    unsigned *seed = arg;

    usleep((unsigned)rand_r(seed) % 400);
    return RDL_OK;
}

#define STREAMS 3

/* Three streams issue on one lane, each delayed by its own luck. */
static void race(rdl_world *world, void *arg)
{
    enum { ROUNDS = 60 };
    int rank = rdl_world_rank(world), size = rdl_world_size(world);
    rdl_stream *streams[STREAMS];
    unsigned seeds[STREAMS];
    int64_t *in = calloc(ROUNDS, sizeof *in);
    int64_t *out = calloc((size_t)ROUNDS * (size_t)size, sizeof *out);

    (void)arg;
    CHECK(in != NULL && out != NULL);
    for (int s = 0; s < STREAMS; s++) {
        seeds[s] = (unsigned)(rank * 10 + s);
        CHECK_OK(rdl_stream_create(world, NULL, &streams[s]));
    }
    for (int i = 0; i < ROUNDS; i++) {
        rdl_call call = { .stream = streams[i % STREAMS] };
        int64_t *to = out + (size_t)i * (size_t)size;

        in[i] = 1000 * rank + i;
        CHECK_OK(rdl_stream_call(call.stream, nap, &seeds[i % STREAMS]));
        if (i % 2 == 0)
            CHECK_OK(rdl_all_gather(world, RDL_WORLD, &in[i], to, 1, RDL_INT64,
                                    &call));
        else
            CHECK_OK(rdl_all_reduce(world, RDL_WORLD, &in[i], to, 1, RDL_INT64,
                                    RDL_SUM, &call));
    }
    for (int s = 0; s < STREAMS; s++)
        CHECK_OK(rdl_stream_destroy(streams[s]));
    for (int i = 0; i < ROUNDS; i++)
        if (i % 2 == 0)
            for (int r = 0; r < size; r++)
                CHECK_INT(out[i * size + r], 1000 * r + i);
        else
            CHECK_INT(out[i * size], 500 * size * (size - 1) + i * size);
    free(in);
    free(out);
}

RDL_TEST(issue_order_is_execution_order_whatever_the_stream)
{
    for (int size = 2; size <= 4; size++)
        both(size, race, NULL);
}

/* --- works ----------------------------------------------------------------- */

static void use_works(rdl_world *world, void *arg)
{
    enum { N = 50 };
    int size = rdl_world_size(world);
    int64_t mine = rdl_digit(rdl_world_rank(world)), sums[N];
    rdl_work works[N];
    bool done = false;

    (void)arg;
    for (int i = 0; i < N; i++) {
        rdl_call call = { .work = &works[i] };

        sums[i] = -1;
        CHECK_OK(rdl_all_reduce(world, RDL_WORLD, &mine, &sums[i], 1, RDL_INT64,
                                RDL_SUM, &call));
    }
    for (int i = N - 1; i >= 0; i--) { /* the last first */
        CHECK_OK(rdl_work_wait(world, works[i], 0));
        CHECK_INT(sums[i], all_digits(size));
    }
    CHECK_STATUS(rdl_work_wait(world, works[0], 0), RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "was waited for");
    CHECK_STATUS(rdl_work_test(world, works[0], &done), RDL_INVALID);
    CHECK_STATUS(rdl_work_wait(world, (rdl_work){ 0, 0, 0 }, 0), RDL_INVALID);
    rdl_check_digits(world, RDL_WORLD, all_digits(size));
}

RDL_TEST(works_end_in_any_order_of_waiting_and_only_once)
{
    for (int size = 1; size <= 4; size++)
        both(size, use_works, NULL);
}

/* The memory of an ended work is the next one's. */
static void reuse_a_work(rdl_world *world, void *arg)
{
    int64_t mine = rdl_digit(rdl_world_rank(world)), sum = 0;
    rdl_work first, later;
    bool done = false;

    (void)arg;
    CHECK_OK(rdl_barrier(world, RDL_WORLD, &(rdl_call){ .work = &first }));
    CHECK_OK(rdl_work_wait(world, first, 0));
    CHECK_OK(rdl_all_reduce(world, RDL_WORLD, &mine, &sum, 1, RDL_INT64,
                            RDL_SUM, &(rdl_call){ .work = &later }));
    CHECK_INT(later.index, first.index);
    CHECK_STATUS(rdl_work_test(world, first, &done), RDL_INVALID);
    CHECK_STATUS(rdl_work_wait(world, first, 0), RDL_INVALID);
    CHECK_STATUS(rdl_work_revoke(world, first), RDL_INVALID);
    CHECK_OK(rdl_work_wait(world, later, 0));
    CHECK_INT(sum, all_digits(rdl_world_size(world)));
}

RDL_TEST(a_handle_never_means_a_later_work)
{
    both(2, reuse_a_work, NULL);
}

/* Nobody waits: the helper drives, and dropped handles cost nothing. */
static void drop_works(rdl_world *world, void *arg)
{
    enum { N = 3000 };
    int size = rdl_world_size(world);
    int64_t mine = rdl_digit(rdl_world_rank(world));
    int64_t *sums = calloc(N, sizeof *sums);
    rdl_work last = { 0, 0, 0 };

    (void)arg;
    CHECK(sums != NULL);
    for (int i = 0; i < N; i++) {
        rdl_call call = { .work = &last };

        CHECK_OK(rdl_all_reduce(world, RDL_WORLD, &mine, &sums[i], 1, RDL_INT64,
                                RDL_SUM, &call));
    }
    CHECK_OK(rdl_work_wait(world, last, 0));
    for (int i = 0; i < N; i++)
        CHECK_INT(sums[i], all_digits(size));
    free(sums);
}

RDL_TEST(dropped_works_are_done_all_the_same)
{
    both(3, drop_works, NULL);
}

static void make_progress_alone(rdl_world *world, void *arg)
{
    size_t n = 200000;
    float *x = malloc(n * sizeof *x);
    int rank = rdl_world_rank(world);
    rdl_work work;
    bool done = false;

    (void)arg;
    CHECK(x != NULL);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(rank + 1);
    CHECK_OK(rdl_all_reduce(world, RDL_WORLD, x, x, n, RDL_FLOAT32, RDL_SUM,
                            &(rdl_call){ .work = &work }));
    /* No call on the world from here: somebody else must see to it. */
    for (int i = 0; i < 200; i++)
        usleep(5000);
    CHECK_OK(rdl_work_test(world, work, &done));
    CHECK(done);
    CHECK(x[0] == 6 && x[n - 1] == 6);
    free(x);
}

RDL_TEST(the_helper_goes_on_while_nobody_waits)
{
    both(3, make_progress_alone, NULL);
}

static void fence_a_stream(rdl_world *world, void *arg)
{
    int64_t mine = rdl_digit(rdl_world_rank(world)), sum = 0, copy = 0;
    rdl_stream *stream;
    rdl_work work;

    (void)arg;
    CHECK_OK(rdl_stream_create(world, NULL, &stream));
    CHECK_OK(rdl_all_reduce(world, RDL_WORLD, &mine, &sum, 1, RDL_INT64,
                            RDL_SUM, &(rdl_call){ .work = &work }));
    CHECK_OK(rdl_work_fence(world, work, stream));
    CHECK_OK(rdl_stream_copy(stream, &copy, &sum, sizeof sum));
    CHECK_OK(rdl_stream_synchronize(stream, 0));
    CHECK_INT(copy, 11);
    CHECK_OK(rdl_work_wait(world, work, 0));
    CHECK_OK(rdl_stream_destroy(stream));
}

RDL_TEST(a_fence_holds_the_stream_and_not_the_caller)
{
    both(2, fence_a_stream, NULL);
}

/* Rank 1 comes late, so that rank 0's work is pending when it is revoked; it finds
 * all parts there and may succeed, but not in its next call. */
static void revoke_a_work(rdl_world *world, void *arg)
{
    static const int list[] = { 0, 1 };
    int64_t x = 1, y = 0;
    rdl_group group;
    rdl_work work;
    rdl_status st;

    (void)arg;
    CHECK_OK(rdl_group_open(world, list, 2, "doomed", &group));
    CHECK_OK(rdl_barrier(world, group, NULL));
    if (rdl_world_rank(world) == 0) {
        CHECK_OK(rdl_all_reduce(world, group, &x, &y, 1, RDL_INT64, RDL_SUM,
                                &(rdl_call){ .work = &work }));
        CHECK_STATUS(rdl_work_wait(world, work, 50), RDL_TIMEOUT);
        CHECK_TEXT(rdl_error_detail(), "the work is not done after 0.05 s");
        CHECK_STATUS(rdl_group_close(world, group), RDL_STATE);
        CHECK_HAS(rdl_error_detail(), "in use");
        CHECK_OK(rdl_work_revoke(world, work));
        CHECK_STATUS(rdl_work_wait(world, work, 0), RDL_REVOKED);
        CHECK_HAS(rdl_error_detail(), "was revoked by rank 0");
    } else {
        usleep(300000);
        st = rdl_all_reduce(world, group, &x, &y, 1, RDL_INT64, RDL_SUM, NULL);
        CHECK(st == RDL_OK || st == RDL_REVOKED);
    }
    CHECK_STATUS(rdl_barrier(world, group, NULL), RDL_REVOKED);
    CHECK_HAS(rdl_error_detail(), "was revoked by rank 0");
    CHECK_OK(rdl_group_close(world, group));
    rdl_check_digits(world, RDL_WORLD, 11);
}

RDL_TEST(revoking_a_work_ends_its_group_on_all_members)
{
    both(2, revoke_a_work, NULL);
}

/* --- H19 ------------------------------------------------------------------- */

/* (a): an operation on each of one's groups, in an order of one's own. */
static void shuffle(int *order, int n, unsigned *seed)
{
    for (int i = n - 1; i > 0; i--) {
        int j = rand_r(seed) % (i + 1), t = order[i];

        order[i] = order[j];
        order[j] = t;
    }
}

static void overlap(rdl_world *world, void *arg)
{
    static const int lists[4][4] = {
        { 0, 1 }, { 1, 2 }, { 2, 3 }, { 0, 1, 2, 3 }
    };
    static const int sizes[] = { 2, 2, 2, 4 };
    static const int64_t expected[] = { 11, 110, 1100, 1111 };
    int rank = rdl_world_rank(world), rounds = *(int *)arg;
    int64_t mine = rdl_digit(rank);
    unsigned seed = (unsigned)rank + 7;
    rdl_group groups[4];

    for (int g = 0; g < 4; g++)
        CHECK_OK(rdl_group_open(world, lists[g], sizes[g], "h19", &groups[g]));
    for (int round = 0; round < rounds; round++) {
        int order[4], n = 0;
        int64_t sums[4];
        rdl_work works[4];

        for (int g = 0; g < 4; g++)
            if (g == 3 || rank == g || rank == g + 1)
                order[n++] = g;
        shuffle(order, n, &seed);
        for (int i = 0; i < n; i++)
            CHECK_OK(rdl_all_reduce(world, groups[order[i]], &mine,
                                    &sums[order[i]], 1, RDL_INT64, RDL_SUM,
                                    &(rdl_call){ .work = &works[order[i]] }));
        shuffle(order, n, &seed);
        for (int i = 0; i < n; i++) {
            CHECK_OK(rdl_work_wait(world, works[order[i]], 0));
            CHECK_INT(sums[order[i]], expected[order[i]]);
        }
    }
    for (int g = 0; g < 4; g++)
        CHECK_OK(rdl_group_close(world, groups[g]));
}

RDL_TEST(overlapping_groups_in_any_order_do_not_wait_for_each_other)
{
    int rounds = rdl_test_soak() ? 1000 : 150;

    both(4, overlap, &rounds);
}

/* (c): a true cycle ends at the deadline, and says who waits where. */
static void cycle(rdl_world *world, void *arg)
{
    int rank = rdl_world_rank(world), right = (rank + 1) % 4;
    int list[] = { rank < right ? rank : right, rank < right ? right : rank };
    rdl_group group;
    rdl_status st;

    (void)arg;
    CHECK_OK(rdl_group_open(world, list, 2, "ring", &group));
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    st = rdl_barrier(world, group, &(rdl_call){ .timeout_ms = 700 });
    CHECK(st == RDL_TIMEOUT || st == RDL_PEER);
    CHECK_HAS(rdl_error_detail(), "group 'ring'");
    CHECK_HAS(rdl_error_detail(), "waiting for rank");
    CHECK_HAS(rdl_error_detail(), " in barrier #1 on group 'ring' [");
    CHECK_HAS(rdl_error_detail(),
              ": a cycle, in which ranks 0,1,2,3 wait for each other");
    CHECK_STATUS(rdl_group_close(world, group), RDL_OK);
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
}

RDL_TEST(a_cycle_of_groups_ends_at_the_deadline)
{
    both(4, cycle, NULL);
}

/* (d): two threads with a name each. */
typedef struct partner {
    rdl_world *world;
    rdl_group group;
    int times;
} partner;

static void *use_own_lane(void *arg)
{
    partner *p = arg;
    int64_t mine = p->times * rdl_digit(rdl_world_rank(p->world)), sum;

    for (int i = 0; i < 500; i++) {
        CHECK_OK(rdl_all_reduce(p->world, p->group, &mine, &sum, 1, RDL_INT64,
                                RDL_SUM, NULL));
        CHECK_INT(sum, p->times * 1111);
    }
    return NULL;
}

static void use_two_lanes(rdl_world *world, void *arg)
{
    static const int list[] = { 0, 1, 2, 3 };
    partner partners[] = { { .world = world, .times = 1 },
                           { .world = world, .times = 2 } };
    pthread_t threads[2];

    (void)arg;
    for (int t = 0; t < 2; t++) {
        CHECK_OK(rdl_group_open(world, list, 4, t ? "two" : "one",
                                &partners[t].group));
        CHECK(pthread_create(&threads[t], NULL, use_own_lane, &partners[t]) == 0);
    }
    for (int t = 0; t < 2; t++) {
        CHECK(pthread_join(threads[t], NULL) == 0);
        CHECK_OK(rdl_group_close(world, partners[t].group));
    }
}

RDL_TEST(two_threads_with_a_lane_each_never_pair_with_each_other)
{
    both(4, use_two_lanes, NULL);
}

/* --- batches --------------------------------------------------------------- */

static void use_batches(rdl_world *world, void *arg)
{
    int rank = rdl_world_rank(world), size = rdl_world_size(world);
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    int64_t mine = rdl_digit(rank), from_left = 0, from_right = 0, sum = 0;
    rdl_batch *batch;
    rdl_stream *stream;
    rdl_work work;
    rdl_call call = { 0 };

    (void)arg;
    CHECK_OK(rdl_stream_create(world, NULL, &stream));
    for (int round = 0; round < 3; round++) {
        CHECK_OK(rdl_batch_begin(world, &batch));
        call = (rdl_call){ .batch = batch };
        /* Alone, each of these would wait for ever. */
        CHECK_OK(rdl_send(world, RDL_WORLD, &mine, 1, RDL_INT64, right, &call));
        CHECK_OK(rdl_send(world, RDL_WORLD, &mine, 1, RDL_INT64, left, &call));
        CHECK_OK(rdl_all_reduce(world, RDL_WORLD, &mine, &sum, 1, RDL_INT64,
                                RDL_SUM, &call));
        CHECK_OK(rdl_receive(world, RDL_WORLD, &from_left, 1, RDL_INT64, left,
                             &call));
        CHECK_OK(rdl_receive(world, RDL_WORLD, &from_right, 1, RDL_INT64, right,
                             &call));
        CHECK_INT(from_left + from_right + sum, 0); /* nothing has started */
        if (round == 0) {
            CHECK_OK(rdl_batch_end(batch, NULL));
        } else if (round == 1) {
            CHECK_OK(rdl_batch_end(batch, &(rdl_call){ .work = &work }));
            CHECK_OK(rdl_work_wait(world, work, 0));
        } else {
            CHECK_OK(rdl_batch_end(batch, &(rdl_call){ .stream = stream }));
            CHECK_OK(rdl_stream_synchronize(stream, 0));
        }
        CHECK_INT(from_left, rdl_digit(left));
        CHECK_INT(from_right, rdl_digit(right));
        CHECK_INT(sum, all_digits(size));
        from_left = from_right = sum = 0;
    }
    CHECK_OK(rdl_batch_begin(world, &batch));
    CHECK_STATUS(rdl_barrier(world, RDL_WORLD,
                             &(rdl_call){ .batch = batch, .work = &work }),
                 RDL_INVALID);
    CHECK_OK(rdl_batch_end(batch, NULL));
    CHECK_OK(rdl_stream_destroy(stream));
    rdl_check_digits(world, RDL_WORLD, all_digits(size));
}

RDL_TEST(a_batch_starts_together_whatever_the_order)
{
    both(3, use_batches, NULL);
    both(4, use_batches, NULL);
}

/* --- bad input ------------------------------------------------------------- */

typedef struct strangers {
    rdl_stream *streams[2];
    atomic_int ready;
} strangers;

static void use_a_strange_stream(rdl_world *world, void *arg)
{
    strangers *s = arg;
    int rank = rdl_world_rank(world);
    rdl_event *event;

    CHECK_OK(rdl_stream_create(world, "mine", &s->streams[rank]));
    CHECK_OK(rdl_event_create(world, &event));
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    CHECK_STATUS(rdl_barrier(world, RDL_WORLD,
                             &(rdl_call){ .stream = s->streams[1 - rank] }),
                 RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "belongs to another world");
    CHECK_STATUS(rdl_event_record(event, s->streams[1 - rank]), RDL_INVALID);
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    CHECK_OK(rdl_event_destroy(event));
    CHECK_OK(rdl_stream_destroy(s->streams[rank]));
    rdl_check_digits(world, RDL_WORLD, 11);
}

RDL_TEST(a_stream_of_another_world_is_refused)
{
    strangers s = { .ready = 0 };

    rdl_test_worlds(&(rdl_test_job){ .size = 2 }, use_a_strange_stream, &s);
}

static rdl_status destroy_self(void *arg)
{
    rdl_stream *stream = arg;

    CHECK_STATUS(rdl_stream_synchronize(stream, 0), RDL_STATE);
    CHECK_STATUS(rdl_stream_destroy(stream), RDL_STATE);
    return RDL_OK;
}

static void misuse_streams(rdl_world *world, void *arg)
{
    rdl_stream *stream;
    rdl_event *event;
    int log[] = { 0, 1 };

    (void)arg;
    CHECK_STATUS(rdl_stream_create(NULL, NULL, &stream), RDL_INVALID);
    CHECK_STATUS(rdl_stream_create(world, NULL, NULL), RDL_INVALID);
    CHECK_STATUS(rdl_stream_call(NULL, append, log), RDL_INVALID);
    CHECK_OK(rdl_stream_create(world, NULL, &stream));
    CHECK_OK(rdl_event_create(world, &event));
    CHECK_STATUS(rdl_stream_call(stream, NULL, NULL), RDL_INVALID);
    CHECK_STATUS(rdl_stream_copy(stream, NULL, log, 4), RDL_INVALID);
    CHECK_STATUS(rdl_stream_synchronize(stream, -1), RDL_INVALID);
    CHECK_OK(rdl_stream_call(stream, destroy_self, stream));
    for (int i = 0; i < 50; i++)
        CHECK_OK(rdl_stream_call(stream, append, log));
    CHECK_OK(rdl_event_record(event, stream));
    CHECK_STATUS(rdl_event_destroy(event), RDL_STATE);
    CHECK_HAS(rdl_error_detail(), "1 piece of work of streams has yet to ");
    CHECK_STATUS(rdl_event_synchronize(event, 1), RDL_TIMEOUT);
    CHECK_HAS(rdl_error_detail(), "by its stream after 0.001 s");
    CHECK_STATUS(rdl_stream_synchronize(stream, 1), RDL_TIMEOUT);
    CHECK_HAS(rdl_error_detail(), " pieces of work that have not run yet");
    CHECK_STATUS(rdl_stream_query(stream), RDL_AGAIN);
    CHECK_OK(rdl_stream_destroy(stream)); /* waits */
    CHECK_INT(log[1], 51);
    CHECK_OK(rdl_event_destroy(event));
}

RDL_TEST(misuse_of_streams_is_a_status_and_pending_work_is_waited_for)
{
    both(1, misuse_streams, NULL);
}

static void leave_a_stream(int rank, int size, void *arg)
{
    rdl_world_options options = { .rank = rank, .size = size };
    int log[] = { 0, 1 };
    rdl_stream *stream;
    rdl_event *event;
    rdl_world *world;

    (void)arg;
    CHECK_OK(rdl_world_open(&options, &world));
    CHECK_OK(rdl_stream_create(world, "left", &stream));
    CHECK_OK(rdl_event_create(world, &event));
    for (int i = 0; i < 20; i++)
        CHECK_OK(rdl_stream_call(stream, append, log));
    CHECK_OK(rdl_world_close(world));
    CHECK_INT(log[1], 21); /* it was waited for */
    CHECK_STATUS(rdl_stream_call(stream, append, log), RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "world of stream 'left' was closed");
    CHECK_STATUS(rdl_event_query(event), RDL_INVALID);
    CHECK_OK(rdl_stream_destroy(stream));
    CHECK_OK(rdl_event_destroy(event));
}

RDL_TEST(closing_the_world_waits_for_streams_and_they_can_be_destroyed_after)
{
    rdl_test_threads(1, leave_a_stream, NULL);
}

/* What the stream's answer has told is not told again at the end. */
static void close_after_an_answer(int rank, int size, void *arg)
{
    bool asks = *(bool *)arg;
    rdl_world_options options = { .rank = rank, .size = size };
    rdl_call call = { 0 };
    rdl_world *world;

    CHECK_OK(rdl_world_open(&options, &world));
    CHECK_OK(rdl_stream_create(world, "s", &call.stream));
    if (rank == 1)
        CHECK_OK(rdl_stream_call(call.stream, fail_here, NULL));
    CHECK_OK(rdl_barrier(world, RDL_WORLD, &call));
    if (asks)
        CHECK_STATUS(rdl_stream_synchronize(call.stream, 0), RDL_SYSTEM);
    CHECK_STATUS(rdl_world_close(world), asks ? RDL_OK : RDL_SYSTEM);
    rdl_stream_destroy(call.stream);
}

RDL_TEST(closing_the_world_does_not_repeat_what_a_stream_has_answered)
{
    rdl_test_threads(2, close_after_an_answer, &(bool){ true });
    rdl_test_threads(2, close_after_an_answer, &(bool){ false });
}

/* Transfers to oneself and empty batches have their place and their handle, too. */
static void exchange_with_oneself(rdl_world *world, void *arg)
{
    static const int list[] = { 0, 1 };
    int rank = rdl_world_rank(world);
    int64_t from = 0, to = 7, seven = 7, x = 0;
    rdl_transfer own[] = {
        { .peer = rank, .send = &from, .count = 1, .dtype = RDL_INT64 },
        { .peer = rank, .receive = &to, .count = 1, .dtype = RDL_INT64 },
    };
    rdl_stream *stream;
    rdl_batch *batch;
    rdl_group group;
    rdl_work work;

    (void)arg;
    CHECK_OK(rdl_stream_create(world, NULL, &stream));
    CHECK_OK(rdl_stream_call(stream, nap, &(unsigned){ 1 }));
    CHECK_OK(rdl_stream_copy(stream, &from, &seven, sizeof seven));
    to = 0;
    CHECK_OK(rdl_exchange(world, RDL_WORLD, own, 2,
                          &(rdl_call){ .stream = stream }));
    CHECK_OK(rdl_stream_synchronize(stream, 0));
    CHECK_INT(to, 7); /* after the copy, not when it was called */
    CHECK_OK(
        rdl_exchange(world, RDL_WORLD, own, 2, &(rdl_call){ .work = &work }));
    CHECK_OK(rdl_work_wait(world, work, 0));
    CHECK_OK(
        rdl_exchange(world, RDL_WORLD, NULL, 0, &(rdl_call){ .work = &work }));
    CHECK_OK(rdl_work_wait(world, work, 0));
    CHECK_OK(rdl_batch_begin(world, &batch));
    CHECK_STATUS(rdl_exchange(world, RDL_WORLD, own, 2,
                              &(rdl_call){ .batch = batch, .work = &work }),
                 RDL_INVALID);
    CHECK_OK(rdl_batch_end(batch, &(rdl_call){ .work = &work }));
    CHECK_OK(rdl_work_wait(world, work, 0));
    CHECK_OK(rdl_stream_destroy(stream));

    /* A revoked group has no ways between its members either. */
    CHECK_OK(rdl_group_open(world, list, 2, "gone", &group));
    if (rank == 0)
        CHECK_OK(rdl_send(world, group, &seven, 1, RDL_INT64, 1, NULL));
    else
        CHECK_OK(rdl_receive(world, group, &x, 1, RDL_INT64, 0, NULL));
    CHECK_OK(rdl_group_revoke(world, group));
    CHECK_STATUS(rank == 0
                     ? rdl_send(world, group, &seven, 1, RDL_INT64, 1, NULL)
                     : rdl_receive(world, group, &x, 1, RDL_INT64, 0, NULL),
                 RDL_REVOKED);
    CHECK_OK(rdl_group_close(world, group));
    rdl_check_digits(world, RDL_WORLD, 11);
}

RDL_TEST(transfers_to_oneself_and_empty_batches_have_their_place)
{
    both(2, exchange_with_oneself, NULL);
}
