/* What becomes of calls on a group that has failed: all of them return the first
 * cause, and their buffers are the caller's at once. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/worlds.h"

#include <pthread.h>
#include <raddle/stream.h>
#include <raddle/work.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SENTENCE 1024
#define UNTOUCHED 777

/* --- the first cause --------------------------------------------------------- */

/* What one rank has pending on a group, and how each ends. */
typedef struct pending {
    rdl_world *world;
    rdl_group group;
    rdl_stream *stream;
    rdl_work works[2];
    rdl_work batch;
    int64_t in, out[8];
    pthread_t thread;
    rdl_status thread_status;
    char thread_sentence[SENTENCE];
    char first[SENTENCE];
} pending;

static rdl_status sum(pending *p, int64_t *out, const rdl_call *call)
{
    return rdl_all_reduce(p->world, p->group, &p->in, out, 1, RDL_INT64,
                          RDL_SUM, call);
}

static void *sum_on_a_thread(void *arg)
{
    pending *p = arg;

    p->thread_status = sum(p, &p->out[4], NULL);
    snprintf(p->thread_sentence, SENTENCE, "%s", rdl_error_detail());
    return NULL;
}

/* All that can stand in a group's queue; nothing of it can go on before the first,
 * in which one rank differs. */
static void issue_all(pending *p, bool differs)
{
    rdl_call first = { .work = &p->works[0] }, second = { .work = &p->works[1] };
    rdl_call on_stream = { .stream = p->stream }, end = { .work = &p->batch };
    rdl_call in_batch = { 0 };

    CHECK_OK(rdl_all_reduce(p->world, p->group, &p->in, &p->out[0], !differs,
                            RDL_INT64, RDL_SUM, &first));
    CHECK_OK(sum(p, &p->out[1], &second));
    CHECK_OK(sum(p, &p->out[2], &on_stream));
    CHECK_OK(rdl_batch_begin(p->world, &in_batch.batch));
    CHECK_OK(sum(p, &p->out[3], &in_batch));
    CHECK_OK(rdl_batch_end(in_batch.batch, &end));
    CHECK_INT(pthread_create(&p->thread, NULL, sum_on_a_thread, p), 0);
}

static void check_first(const pending *p, rdl_status st)
{
    CHECK_STATUS(st, RDL_MISMATCH);
    CHECK_TEXT(rdl_error_detail(), p->first);
}

static void check_pending(pending *p)
{
    CHECK_STATUS(rdl_work_wait(p->world, p->works[0], 0), RDL_MISMATCH);
    snprintf(p->first, SENTENCE, "%s", rdl_error_detail());
    CHECK_HAS(rdl_test_detail(),
              "mismatch in call #2 on group 'g' [0,1,2]: rank 1 differs "
              "from ranks 0,2; ranks 0,2: all_reduce(1 int64, sum); "
              "rank 1: all_reduce(0 int64, sum)");
    check_first(p, rdl_work_wait(p->world, p->works[1], 0));
    check_first(p, rdl_stream_synchronize(p->stream, 0));
    check_first(p, rdl_work_wait(p->world, p->batch, 0));
    CHECK_INT(pthread_join(p->thread, NULL), 0);
    CHECK_INT(p->thread_status, RDL_MISMATCH);
    CHECK_TEXT(p->thread_sentence, p->first);
}

static void check_later(pending *p)
{
    rdl_call with_work = { .work = &p->works[0] }, in_batch = { 0 };
    rdl_call on_stream = { 0 };

    check_first(p, sum(p, &p->out[5], NULL));
    check_first(p, rdl_barrier(p->world, p->group, NULL));
    CHECK_OK(sum(p, &p->out[5], &with_work));
    check_first(p, rdl_work_wait(p->world, p->works[0], 0));
    CHECK_OK(rdl_batch_begin(p->world, &in_batch.batch));
    CHECK_OK(sum(p, &p->out[6], &in_batch));
    check_first(p, rdl_batch_end(in_batch.batch, NULL));
    CHECK_OK(rdl_stream_create(p->world, "later", &on_stream.stream));
    CHECK_OK(sum(p, &p->out[7], &on_stream));
    check_first(p, rdl_stream_synchronize(on_stream.stream, 0));
    check_first(p, rdl_stream_destroy(on_stream.stream));
    CHECK_OK(rdl_group_revoke(p->world, p->group)); /* too late to be the cause */
    check_first(p, sum(p, &p->out[5], NULL));
}

static void fail_with_all_pending(rdl_world *world, void *arg)
{
    static const int list[] = { 0, 1, 2 };
    pending p = { .world = world, .in = 1 };

    (void)arg;
    for (int i = 0; i < 8; i++)
        p.out[i] = UNTOUCHED;
    CHECK_OK(rdl_group_open(world, list, 3, "g", &p.group));
    CHECK_OK(rdl_stream_create(world, "s", &p.stream));
    CHECK_OK(rdl_barrier(world, p.group, NULL));
    issue_all(&p, rdl_world_rank(world) == 1);
    check_pending(&p);
    check_later(&p);
    for (int i = 0; i < 8; i++)
        CHECK_INT(p.out[i], UNTOUCHED);
    check_first(&p, rdl_stream_destroy(p.stream));
    CHECK_OK(rdl_group_close(world, p.group));
    rdl_check_digits(world, RDL_WORLD, 111);
}

RDL_TEST(all_that_is_pending_and_all_that_comes_later_returns_the_first_cause)
{
    rdl_test_job job = { .size = 3 };

    rdl_test_worlds(&job, fail_with_all_pending, NULL);
    job.processes = true;
    rdl_test_worlds(&job, fail_with_all_pending, NULL);
}

/* --- buffers ----------------------------------------------------------------- */

#define COUNT ((size_t)1 << 20)
#define LIMIT_MS 2000

/* Shared with the children of this test. */
typedef struct stop {
    atomic_int begun;  /* calls that rank 2 has ended */
    atomic_int failed; /* ranks that have their buffers back */
    atomic_bool woken; /* rank 2 has gone on, and has ended */
    char job[64];
} stop;

static void fill(float *values, float value)
{
    for (size_t i = 0; i < COUNT; i++)
        values[i] = value;
}

static void check_all(const float *values, float value)
{
    for (size_t i = 0; i < COUNT; i++)
        if (values[i] != value)
            RDL_TEST_FAIL("element %zu is %g, not %g", i, (double)values[i],
                          (double)value);
}

/* Until the call that fails. */
static void sum_large(rdl_world *world, stop *s, float *in, float *out)
{
    rdl_status st;

    do {
        st = rdl_all_reduce(world, RDL_WORLD, in, out, COUNT, RDL_FLOAT32,
                            RDL_SUM, NULL);
        if (rdl_world_rank(world) == 2 && st == RDL_OK)
            atomic_fetch_add(&s->begun, 1);
    } while (st == RDL_OK);
    CHECK_STATUS(st, RDL_TIMEOUT);
    CHECK_HAS(rdl_error_detail(), "waiting for rank 2");
}

static void use_buffers_again(int rank, int size, void *arg)
{
    stop *s = arg;
    rdl_world_options options = {
        .rank = rank, .size = size, .job = s->job, .timeout_ms = LIMIT_MS
    };
    float *in = malloc(COUNT * sizeof *in), *out = malloc(COUNT * sizeof *out);
    rdl_world *world;

    CHECK(in != NULL && out != NULL);
    fill(in, 1);
    CHECK_OK(rdl_world_open(&options, &world));
    sum_large(world, s, in, out);
    if (rank != 2) {
        fill(in, UNTOUCHED);
        fill(out, UNTOUCHED);
        atomic_fetch_add(&s->failed, 1);
        while (!atomic_load(&s->woken))
            usleep(1000);
        check_all(in, UNTOUCHED);
        check_all(out, UNTOUCHED);
    } else {
        check_all(in, 1);
    }
    CHECK_OK(rdl_world_close(world));
    free(in);
    free(out);
}

static void stop_and_wake(stop *s, unsigned delay_us)
{
    pid_t pid[3];

    for (int rank = 0; rank < 3; rank++)
        pid[rank] = rdl_test_start(rank, 3, use_buffers_again, s);
    while (atomic_load(&s->begun) < 2)
        usleep(500);
    usleep(delay_us);
    kill(pid[2], SIGSTOP);
    while (atomic_load(&s->failed) < 2)
        usleep(1000);
    kill(pid[2], SIGCONT);
    CHECK_INT(rdl_test_wait(pid[2]), 0);
    atomic_store(&s->woken, true);
    CHECK_INT(rdl_test_wait(pid[0]), 0);
    CHECK_INT(rdl_test_wait(pid[1]), 0);
}

RDL_TEST(buffers_of_a_failed_call_stay_the_callers_when_a_stopped_peer_wakes)
{
    uint64_t seed = rdl_test_seed();
    int rounds = rdl_test_soak() ? 100 : 2;
    stop *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    CHECK(s != MAP_FAILED);
    for (int round = 0; round < rounds; round++) {
        *s = (stop){ 0 };
        snprintf(s->job, sizeof s->job, "stop-%d-%d", (int)getpid(), round);
        stop_and_wake(s, (unsigned)(rdl_test_random(&seed) % 8000));
    }
    munmap(s, sizeof *s);
}
