/* Peers that are late, leave, give up, stop or die (cases H12, H14): every wait for
 * them ends, with a sentence that names them. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/worlds.h"

#include <pthread.h>
#include <raddle/work.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_MS 1000
#define LONG_MS 100000 /* longer than a test that passes takes */

static void both(rdl_test_job job, rdl_world_body body)
{
    rdl_test_worlds(&job, body, NULL);
    job.processes = true;
    rdl_test_worlds(&job, body, NULL);
}

static rdl_group open_all(rdl_world *world, const char *name)
{
    static const int all[] = { 0, 1, 2, 3, 4 };
    rdl_group group;

    CHECK_OK(rdl_group_open(world, all, rdl_world_size(world), name, &group));
    return group;
}

/* --- late ranks ------------------------------------------------------------ */

static void leave_out_two(rdl_world *world, void *arg)
{
    rdl_group group = open_all(world, "late");
    rdl_call brief = { .timeout_ms = LIMIT_MS };

    (void)arg;
    CHECK_OK(rdl_barrier(world, group, NULL));
    if (rdl_world_rank(world) < 2) {
        CHECK_STATUS(rdl_barrier_at(world, group, &brief, "late.c:5"),
                     RDL_TIMEOUT);
        CHECK_HAS(rdl_error_detail(),
                  "barrier #2 on group 'late' [0,1,2,3] at "
                  "late.c:5: timed out after 1 s, waiting for ranks "
                  "2,3");
        CHECK_STATUS(rdl_barrier(world, group, NULL), RDL_TIMEOUT);
        CHECK_HAS(rdl_error_detail(), "barrier #2");
    }
    rdl_check_digits(world, RDL_WORLD, 1111); /* other groups go on */
    if (rdl_world_rank(world) >= 2) {
        /* Who comes late may find that all have come; it hears of the failure at
         * the next call at the latest. */
        rdl_status st = rdl_barrier(world, group, NULL);

        CHECK(st == RDL_OK || st == RDL_TIMEOUT);
        CHECK_STATUS(rdl_barrier(world, group, NULL), RDL_TIMEOUT);
        CHECK_HAS(rdl_error_detail(), "waiting for ranks 2,3");
    }
    rdl_check_digits(world, RDL_WORLD, 1111);
}

RDL_TEST(a_timeout_names_the_missing_ranks_and_reaches_them)
{
    rdl_test_job job = { .size = 4, .timeout_ms = LONG_MS };

    rdl_test_worlds(&job, leave_out_two, NULL);
}

/* H14 c: a call's own limit goes before the world's. */
static void wait_longer_than_the_world(rdl_world *world, void *arg)
{
    rdl_call patient = { .timeout_ms = LONG_MS };
    int64_t x = rdl_digit(rdl_world_rank(world));

    (void)arg;
    CHECK_OK(rdl_barrier(world, RDL_WORLD, &patient));
    if (rdl_world_rank(world) == 3)
        usleep(1500000);
    CHECK_OK(rdl_all_reduce(world, RDL_WORLD, &x, &x, 1, RDL_INT64, RDL_SUM,
                            &patient));
    CHECK_INT(x, 1111);
}

RDL_TEST(a_calls_own_limit_goes_before_the_worlds)
{
    rdl_test_job job = { .size = 4, .timeout_ms = LIMIT_MS, .processes = true };

    rdl_test_worlds(&job, wait_longer_than_the_world, NULL);
}

/* Two lists under one name never meet, and each sees the other's. */
static void open_another_list(rdl_world *world, void *arg)
{
    static const int theirs[] = { 0, 1, 2 }, mine[] = { 0, 2, 3 };
    int rank = rdl_world_rank(world);
    rdl_group group;

    (void)arg;
    CHECK_OK(rdl_group_open(world, rank < 2 ? theirs : mine, 3, "x", &group));
    CHECK_STATUS(rdl_barrier(world, group, NULL), RDL_TIMEOUT);
    if (rank == 0 || rank == 1)
        CHECK_HAS(rdl_error_detail(),
                  "waiting for rank 2; rank 2 has made no call "
                  "on it, but it has opened 'x' as "
                  "[0,2,3]");
    else
        CHECK_HAS(rdl_error_detail(),
                  "waiting for rank 0; rank 0 has made no call "
                  "on it, but it has opened 'x' as "
                  "[0,1,2]");
    rdl_check_digits(world, RDL_WORLD, 1111);
}

RDL_TEST(a_timeout_shows_the_list_that_a_peer_opened_under_the_name)
{
    rdl_test_job job = { .size = 4, .timeout_ms = 1500 };

    rdl_test_worlds(&job, open_another_list, NULL);
}

/* --- ranks that leave or give up ------------------------------------------- */

static void leave_early(int rank, int size, void *arg)
{
    rdl_world_options options = {
        .rank = rank, .size = size, .job = arg, .timeout_ms = LONG_MS
    };
    rdl_world *world;
    rdl_group group;

    CHECK_OK(rdl_world_open(&options, &world));
    group = open_all(world, "left");
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    if (rank != 1) {
        CHECK_STATUS(rdl_barrier(world, group, NULL), RDL_PEER);
        CHECK_HAS(rdl_error_detail(), "rank 1 closed its world");
        CHECK_STATUS(rdl_barrier_at(world, RDL_WORLD, NULL, "left.c:6"),
                     RDL_PEER);
        CHECK_HAS(rdl_error_detail(), "barrier #2 on the world [0,1,2] at "
                                      "left.c:6: rank 1 closed its world");
    }
    CHECK_OK(rdl_world_close(world));
}

RDL_TEST(who_waits_for_a_rank_that_left_hears_so_at_once)
{
    char job[64];

    snprintf(job, sizeof job, "leave-%d", (int)getpid());
    rdl_test_threads(3, leave_early, job);
    rdl_test_processes(3, leave_early, job);
}

static void *wait_for_all(void *world)
{
    CHECK_STATUS(rdl_barrier(world, RDL_WORLD, NULL), RDL_TIMEOUT);
    return NULL;
}

/* A thread of rank 1 is inside a call while its process leaves. */
static void leave_inside_a_call(int rank, int size, void *arg)
{
    rdl_world_options options = {
        .rank = rank, .size = size, .job = arg, .timeout_ms = LIMIT_MS
    };
    rdl_world *world;
    rdl_group group;
    pthread_t thread;

    CHECK_OK(rdl_world_open(&options, &world));
    group = open_all(world, "left");
    CHECK_OK(rdl_barrier(world, group, NULL));
    if (rank == 1) {
        CHECK_INT(pthread_create(&thread, NULL, wait_for_all, world), 0);
        usleep(100000);
        rdl_world_leave(world);
        CHECK_INT(pthread_join(thread, NULL), 0);
    } else {
        CHECK_STATUS(rdl_barrier(world, group, NULL), RDL_PEER);
        CHECK_HAS(rdl_error_detail(), "rank 1 closed its world");
        usleep(1500000); /* here until rank 1 has waited for us in vain */
    }
    /* Rank 1 may hear by now why the other has given up. */
    CHECK(rdl_world_close(world) == RDL_OK || rank == 1);
}

RDL_TEST(a_rank_may_leave_while_a_thread_of_it_is_inside_a_call)
{
    char job[64];

    rdl_world_leave(NULL);
    snprintf(job, sizeof job, "inside-%d", (int)getpid());
    rdl_test_threads(2, leave_inside_a_call, job);
    rdl_test_processes(2, leave_inside_a_call, job);
}

static void abort_early(int rank, int size, void *arg)
{
    rdl_world_options options = {
        .rank = rank, .size = size, .job = arg, .timeout_ms = LONG_MS
    };
    rdl_world *world;

    CHECK_OK(rdl_world_open(&options, &world));
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    if (rank == 1) {
        rdl_world_abort(world, "no more paper");
        rdl_world_abort(world, "the first reason stays");
    } else {
        usleep(300000); /* it has closed its world long ago */
        CHECK_STATUS(rdl_barrier(world, RDL_WORLD, NULL), RDL_PEER);
        CHECK_HAS(rdl_error_detail(), "rank 1 gave up: no more paper");
    }
    CHECK_OK(rdl_world_close(world));
}

RDL_TEST(who_waits_for_a_rank_that_gave_up_hears_its_reason_after_it_closed)
{
    char job[64];

    snprintf(job, sizeof job, "abort-%d", (int)getpid());
    rdl_test_threads(3, abort_early, job);
    rdl_test_processes(3, abort_early, job);
}

static void abort_in_the_middle(rdl_world *world, void *arg)
{
    (void)arg;
    if (rdl_world_rank(world) == 0) {
        usleep(100000); /* the others sleep */
        rdl_world_abort(world, NULL);
        return;
    }
    CHECK_STATUS(rdl_barrier(world, RDL_WORLD, NULL), RDL_PEER);
    CHECK_HAS(rdl_error_detail(), "rank 0 gave up: no reason given");
}

RDL_TEST(giving_up_wakes_those_who_wait)
{
    both((rdl_test_job){ .size = 4, .timeout_ms = LONG_MS },
         abort_in_the_middle);
}

/* --- ranks that die -------------------------------------------------------- */

/* Calls that each rank has finished; shared with the children of this test. */
typedef struct tally {
    atomic_int done[4];
    int killed; /* the rank that dies */
    int signal; /* 0: it exits */
    char job[64];
} tally;

static tally *make_tally(void)
{
    tally *t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    CHECK(t != MAP_FAILED);
    snprintf(t->job, sizeof t->job, "die-%d", (int)getpid());
    return t;
}

static void sum_until_one_dies(int rank, int size, void *arg)
{
    tally *t = arg;
    rdl_world_options options = {
        .rank = rank, .size = size, .job = t->job, .timeout_ms = LONG_MS
    };
    static int64_t in[5000], out[5000];
    rdl_world *world;
    rdl_status st;

    CHECK_OK(rdl_world_open(&options, &world));
    do {
        st = rdl_all_reduce(world, RDL_WORLD, in, out, 5000, RDL_INT64, RDL_SUM,
                            NULL);
        atomic_fetch_add(&t->done[rank], st == RDL_OK);
    } while (st == RDL_OK);
    CHECK_STATUS(st, RDL_PEER);
    CHECK_HAS(rdl_error_detail(), "rank 2 is gone: its process ");
    CHECK_OK(rdl_world_close(world));
}

RDL_TEST(all_survivors_of_a_kill_fail_at_the_same_operation)
{
    uint64_t seed = rdl_test_seed();
    int rounds = rdl_test_soak() ? 300 : 15;

    for (int round = 0; round < rounds; round++) {
        tally *t = make_tally();
        pid_t pid[4];

        for (int rank = 0; rank < 4; rank++)
            pid[rank] = rdl_test_start(rank, 4, sum_until_one_dies, t);
        while (atomic_load(&t->done[2]) < 2)
            usleep(1000);
        usleep((unsigned)(rdl_test_random(&seed) % 5000));
        kill(pid[2], SIGKILL);
        for (int rank = 0; rank < 4; rank++)
            CHECK_INT(rdl_test_wait(pid[rank]), rank == 2 ? 128 + SIGKILL : 0);
        CHECK_INT(atomic_load(&t->done[1]), atomic_load(&t->done[0]));
        CHECK_INT(atomic_load(&t->done[3]), atomic_load(&t->done[0]));
        munmap(t, sizeof *t);
    }
}

/* H12: the death comes before the first use of the group. */
static void die_before_first_use(int rank, int size, void *arg)
{
    tally *t = arg;
    rdl_world_options options = {
        .rank = rank, .size = size, .job = t->job, .timeout_ms = LONG_MS
    };
    rdl_world *world;
    rdl_group group;
    int64_t x = 1;

    CHECK_OK(rdl_world_open(&options, &world));
    group = open_all(world, "g");
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    if (rank == 0 && t->signal == 0)
        _exit(86);
    if (rank == 0) {
        signal(t->signal, SIG_DFL); /* a sanitizer may have taken it */
        raise(t->signal);
    }
    CHECK_STATUS(rdl_all_reduce_at(world, group, &x, &x, 1, RDL_INT64, RDL_SUM,
                                   NULL, "gone.c:9"),
                 RDL_PEER);
    CHECK_HAS(rdl_error_detail(),
              "all_reduce #1 on group 'g' [0,1] at gone.c:9: rank 0 ");
    /* Without a limit of its own a core may go to a program of the system's. */
    if (t->signal != SIGSEGV ||
        strstr(rdl_error_detail(), "is writing its core") == NULL)
        CHECK_HAS(rdl_error_detail(), "ended without closing its world");
    CHECK_OK(rdl_world_close(world));
}

RDL_TEST(a_death_before_the_first_use_of_a_group_is_told)
{
    static const int signals[] = { 0, SIGSEGV, SIGKILL };
    struct rlimit no_core = { 0, 0 };
    tally *t = make_tally();

    CHECK_INT(setrlimit(RLIMIT_CORE, &no_core), 0);
    for (int i = 0; i < 3; i++) {
        pid_t pid[2];

        t->signal = signals[i];
        for (int rank = 0; rank < 2; rank++)
            pid[rank] = rdl_test_start(rank, 2, die_before_first_use, t);
        CHECK_INT(rdl_test_wait(pid[0]), i == 0 ? 86 : 128 + signals[i]);
        CHECK_INT(rdl_test_wait(pid[1]), 0);
    }
    munmap(t, sizeof *t);
}

/* --- ranks that stop ------------------------------------------------------- */

static void sum_a_thousand(int rank, int size, void *arg)
{
    tally *t = arg;
    rdl_world_options options = { .rank = rank,
                                  .size = size,
                                  .job = t->job,
                                  .timeout_ms = t->killed ? 1500 : LONG_MS };
    int64_t sum, mine = rdl_digit(rank);
    rdl_world *world;
    rdl_status st = RDL_OK;

    CHECK_OK(rdl_world_open(&options, &world));
    for (int i = 0; st == RDL_OK && i < 1000; i++) {
        st = rdl_all_reduce(world, RDL_WORLD, &mine, &sum, 1, RDL_INT64,
                            RDL_SUM, NULL);
        if (st == RDL_OK)
            CHECK_INT(sum, 1111);
        atomic_fetch_add(&t->done[rank], st == RDL_OK);
        usleep(200); /* so that the stop comes in between */
    }
    if (t->killed) {
        CHECK_STATUS(st, RDL_TIMEOUT);
        CHECK_HAS(rdl_error_detail(), "waiting for rank 2; rank 2 is stopped "
                                      "(SIGSTOP or a debugger)");
    } else {
        CHECK_OK(st);
    }
    CHECK_OK(rdl_world_close(world));
}

static void stop_rank_two(tally *t, pid_t pid[4])
{
    for (int rank = 0; rank < 4; rank++)
        pid[rank] = rdl_test_start(rank, 4, sum_a_thousand, t);
    while (atomic_load(&t->done[2]) < 20)
        usleep(1000);
    kill(pid[2], SIGSTOP);
}

/* H14 e */
RDL_TEST(a_rank_that_stops_for_a_second_raises_no_alarm)
{
    tally *t = make_tally();
    pid_t pid[4];

    stop_rank_two(t, pid);
    sleep(1);
    kill(pid[2], SIGCONT);
    for (int rank = 0; rank < 4; rank++)
        CHECK_INT(rdl_test_wait(pid[rank]), 0);
}

/* H14 f */
RDL_TEST(a_rank_that_stops_for_good_is_named_at_the_limit)
{
    tally *t = make_tally();
    pid_t pid[4];

    t->killed = 1;
    stop_rank_two(t, pid);
    for (int rank = 0; rank < 4; rank++)
        if (rank != 2)
            CHECK_INT(rdl_test_wait(pid[rank]), 0);
    kill(pid[2], SIGKILL);
    CHECK_INT(rdl_test_wait(pid[2]), 128 + SIGKILL);
}

/* --- what is no death ------------------------------------------------------ */

/* A rank that can open no file any more does not see whether a peer lives; it
 * must not take that for its death. */
static void wait_without_descriptors(rdl_world *world, void *arg)
{
    struct rlimit before, none;

    (void)arg;
    CHECK_INT(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){ 0, before.rlim_max };
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    if (rdl_world_rank(world) == 0)
        CHECK_INT(setrlimit(RLIMIT_NOFILE, &none), 0);
    else
        usleep(500000);
    rdl_check_digits(world, RDL_WORLD, 111);
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &before), 0);
}

RDL_TEST(who_cannot_look_whether_a_peer_lives_takes_it_for_alive)
{
    rdl_test_job job = { .size = 3, .processes = true };

    rdl_test_worlds(&job, wait_without_descriptors, NULL);
}

/* A rank that lives and comes late hides no other's death: whoever waits for both
 * hears of it, at once. */
static void die_beside_a_late_one(rdl_world *world, void *arg)
{
    int rank = rdl_world_rank(world);
    struct timespec start, end;

    (void)arg;
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    clock_gettime(CLOCK_MONOTONIC, &start);
    if (rank == 3) {
        rdl_world_abort(world, "enough");
        return;
    }
    if (rank == 1)
        usleep(4000 * 1000);
    CHECK_STATUS(rdl_barrier(world, RDL_WORLD, NULL), RDL_PEER);
    CHECK_HAS(rdl_error_detail(), "rank 3 gave up: enough");
    clock_gettime(CLOCK_MONOTONIC, &end);
    CHECK(rank == 1 || end.tv_sec - start.tv_sec < 3);
}

RDL_TEST(a_death_is_heard_of_while_another_rank_is_late)
{
    rdl_test_job job = { .size = 4, .keeps_failures = true };

    rdl_test_worlds(&job, die_beside_a_late_one, NULL);
    job.processes = true;
    rdl_test_worlds(&job, die_beside_a_late_one, NULL);
}

/* One rank has revoked its call; the other makes a call that differs, and must hear of
 * the revocation. */
static void differ_from_a_revoked_call(rdl_world *world, void *arg)
{
    int64_t x = 1, y = 0;
    rdl_work work;

    (void)arg;
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    if (rdl_world_rank(world) == 1) {
        CHECK_OK(rdl_all_reduce(world, RDL_WORLD, &x, &y, 1, RDL_INT64, RDL_SUM,
                                &(rdl_call){ .work = &work }));
        CHECK_OK(rdl_group_revoke(world, RDL_WORLD));
        CHECK_STATUS(rdl_work_wait(world, work, 0), RDL_REVOKED);
    } else {
        usleep(300 * 1000);
        CHECK_STATUS(rdl_barrier(world, RDL_WORLD, NULL), RDL_REVOKED);
    }
    CHECK_STATUS(rdl_barrier(world, RDL_WORLD, NULL), RDL_REVOKED);
}

RDL_TEST(a_call_that_differs_from_a_revoked_one_is_revoked)
{
    rdl_test_job job = { .size = 2, .keeps_failures = true };

    rdl_test_worlds(&job, differ_from_a_revoked_call, NULL);
    job.processes = true;
    rdl_test_worlds(&job, differ_from_a_revoked_call, NULL);
}
