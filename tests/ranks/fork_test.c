/* Forked children of ranks (case H13): they are no ranks, say so, and harm nobody,
 * whatever they do and however they end. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/left.h"
#include "support/worlds.h"

#include <raddle/account.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void name_job(char job[64])
{
    snprintf(job, 64, "fork-%d", (int)getpid());
}

static rdl_world *open_world(int rank, int size, const char *job)
{
    rdl_world_options options = { .rank = rank, .size = size, .job = job };
    rdl_world *world;

    CHECK_OK(rdl_world_open(&options, &world));
    return world;
}

static void sum_a_hundred(rdl_world *world)
{
    for (int i = 0; i < 100; i++)
        rdl_check_digits(world, RDL_WORLD, 1111);
}

static void check_refused(rdl_status st)
{
    CHECK_STATUS(st, RDL_STATE);
    CHECK_HAS(rdl_error_detail(), "used after fork: this world belongs to "
                                  "process ");
    CHECK_HAS(rdl_error_detail(), "is no rank of it");
}

/* --- children that only end ------------------------------------------------ */

/* H13 b: they run their exit handlers while the parents sum. */
static void fork_two_that_exit(int rank, int size, void *arg)
{
    rdl_world *world = open_world(rank, size, arg);
    pid_t pid[2];

    rdl_check_digits(world, RDL_WORLD, 1111);
    for (int i = 0; i < 2; i++) {
        pid[i] = fork();
        if (pid[i] == 0) {
            usleep(1000 * (unsigned)(rank + i));
            exit(0);
        }
    }
    sum_a_hundred(world);
    for (int i = 0; i < 2; i++)
        CHECK_INT(rdl_test_wait(pid[i]), 0);
    sum_a_hundred(world);
    CHECK_OK(rdl_world_close(world));
}

RDL_TEST(children_that_exit_do_not_disturb_the_sums_of_their_parents)
{
    char job[64];

    name_job(job);
    rdl_test_processes(4, fork_two_that_exit, job);
}

static void fork_one_that_is_killed(int rank, int size, void *arg)
{
    rdl_world *world = open_world(rank, size, arg);
    pid_t pid = fork();

    if (pid == 0)
        raise(SIGKILL);
    sum_a_hundred(world);
    CHECK_INT(rdl_test_wait(pid), 128 + SIGKILL);
    sum_a_hundred(world);
    CHECK_OK(rdl_world_close(world));
}

RDL_TEST(a_child_that_is_killed_is_not_the_death_of_its_rank)
{
    char job[64];

    name_job(job);
    rdl_test_processes(4, fork_one_that_is_killed, job);
}

/* --- children that call ---------------------------------------------------- */

static void call_everything(rdl_world *world, rdl_group group)
{
    static const int all[] = { 0, 1, 2, 3 };
    rdl_group other = { 7, 7, 7 };
    rdl_account account;
    int64_t x[4] = { 1, 2, 3, 4 }, y[16];
    int answer = 7;

    check_refused(rdl_barrier(world, RDL_WORLD, NULL));
    check_refused(rdl_barrier(world, group, NULL));
    check_refused(
        rdl_all_reduce(world, group, x, y, 1, RDL_INT64, RDL_SUM, NULL));
    check_refused(rdl_broadcast(world, group, x, 1, RDL_INT64, 0, NULL));
    check_refused(rdl_all_gather(world, group, x, y, 1, RDL_INT64, NULL));
    check_refused(
        rdl_reduce_scatter(world, group, x, y, 1, RDL_INT64, RDL_SUM, NULL));
    check_refused(rdl_all_to_all(world, group, x, y, 1, RDL_INT64, NULL));
    check_refused(rdl_group_open(world, all, 4, "child", &other));
    CHECK_INT(other.index, 7);
    check_refused(rdl_group_close(world, group));
    check_refused(rdl_group_size(world, group, &answer));
    check_refused(rdl_group_rank(world, group, &answer));
    check_refused(rdl_group_rank_of(world, group, 0, &answer));
    check_refused(rdl_group_world_rank(world, group, 0, &answer));
    CHECK_INT(answer, 7);
    check_refused(rdl_group_shrink(world, group, 0, &other));
    CHECK_INT(other.index, 7);
    check_refused(rdl_account_read(world, &account));
    rdl_world_abort(world, "a child may not say so");
}

/* H13 c: each kind of call, while the parents go on. */
static void fork_one_that_calls(int rank, int size, void *arg)
{
    static const int all[] = { 0, 1, 2, 3 };
    rdl_world *world = open_world(rank, size, arg);
    rdl_group group;
    pid_t pid;

    CHECK_OK(rdl_group_open(world, all, 4, "g", &group));
    rdl_check_digits(world, group, 1111);
    pid = fork();
    if (pid == 0) {
        call_everything(world, group);
        _exit(0);
    }
    sum_a_hundred(world);
    CHECK_INT(rdl_test_wait(pid), 0);
    rdl_check_digits(world, group, 1111);
    CHECK_OK(rdl_world_close(world));
}

RDL_TEST(every_call_of_a_child_is_refused_as_used_after_fork)
{
    char job[64];

    name_job(job);
    rdl_test_processes(4, fork_one_that_calls, job);
}

/* --- children that close --------------------------------------------------- */

static void fork_one_that_closes(int rank, int size, void *arg)
{
    rdl_test_left before = rdl_test_left_now();
    rdl_host *host;
    rdl_world_options options = { .rank = rank, .size = size, .job = arg };
    rdl_world *world;
    pid_t pid;

    CHECK_OK(rdl_host_create(NULL, &host));
    options.host = host;
    CHECK_OK(rdl_world_open(&options, &world));
    rdl_check_digits(world, RDL_WORLD, 1111);
    pid = fork();
    if (pid == 0) {
        CHECK_STATUS(rdl_world_open(&options, &world), RDL_STATE);
        CHECK_HAS(rdl_error_detail(), "used after fork: the host object");
        CHECK_OK(rdl_world_close(world));
        rdl_host_destroy(host);
        rdl_test_nothing_left(&before);
        exit(0); /* leaks are looked for */
    }
    sum_a_hundred(world);
    CHECK_INT(rdl_test_wait(pid), 0);
    sum_a_hundred(world);
    CHECK_OK(rdl_world_close(world));
    rdl_host_destroy(host);
    rdl_test_nothing_left(&before);
}

RDL_TEST(a_child_that_closes_its_copy_frees_it_and_tells_nobody)
{
    char job[64];

    name_job(job);
    rdl_test_processes(4, fork_one_that_closes, job);
}

/* A thread of the parent is inside a call, with its locks held, as the other
 * thread forks: the child closes its copy without waiting for them. */
typedef struct pair {
    rdl_world *world;
    rdl_group group[2];
} pair;

static void sum_on_a_lane_or_fork(int thread, int size, void *arg)
{
    pair *p = arg;

    (void)size;
    if (thread == 0) {
        for (int i = 0; i < 2000; i++)
            rdl_check_digits(p->world, p->group[0], 11);
        return;
    }
    for (int i = 0; i < 20; i++) {
        pid_t pid = fork();

        if (pid == 0) {
            check_refused(rdl_barrier(p->world, p->group[1], NULL));
            CHECK_OK(rdl_world_close(p->world));
            _exit(0);
        }
        rdl_check_digits(p->world, p->group[1], 11);
        CHECK_INT(rdl_test_wait(pid), 0);
    }
}

static void fork_while_a_thread_sums(int rank, int size, void *arg)
{
    static const int all[] = { 0, 1 };
    pair p = { .world = open_world(rank, size, arg) };

    CHECK_OK(rdl_group_open(p.world, all, 2, "sum", &p.group[0]));
    CHECK_OK(rdl_group_open(p.world, all, 2, "fork", &p.group[1]));
    rdl_test_threads(2, sum_on_a_lane_or_fork, &p);
    CHECK_OK(rdl_world_close(p.world));
}

RDL_TEST(a_child_forked_while_another_thread_calls_can_close)
{
    char job[64];

    name_job(job);
    rdl_test_processes(2, fork_while_a_thread_sums, job);
}

/* --- children that stay ---------------------------------------------------- */

/* They hold whatever they inherited; the job ends all the same, and another of
 * the name starts. */
static void fork_one_that_stays(int rank, int size, void *arg)
{
    rdl_world *world = open_world(rank, size, arg);
    pid_t pid = fork();

    if (pid == 0) {
        pause();
        _exit(1);
    }
    sum_a_hundred(world);
    CHECK_OK(rdl_world_close(world));
    world = open_world(rank, size, arg);
    sum_a_hundred(world);
    CHECK_OK(rdl_world_close(world));
    kill(pid, SIGKILL);
    CHECK_INT(rdl_test_wait(pid), 128 + SIGKILL);
}

RDL_TEST(children_that_live_on_do_not_keep_the_job_up)
{
    char job[64];

    name_job(job);
    rdl_test_processes(4, fork_one_that_stays, job);
}

/* A child that outlives its rank's death does not hide it. */
static void die_and_leave_a_child(int rank, int size, void *arg)
{
    rdl_world *world = open_world(rank, size, arg);
    int64_t x = 1;

    rdl_check_digits(world, RDL_WORLD, 11);
    if (rank == 0) {
        if (fork() == 0) {
            sleep(2);
            _exit(0);
        }
        _exit(0);
    }
    CHECK_STATUS(
        rdl_all_reduce(world, RDL_WORLD, &x, &x, 1, RDL_INT64, RDL_SUM, NULL),
        RDL_PEER);
    CHECK_HAS(rdl_error_detail(), "rank 0 is gone");
    CHECK_OK(rdl_world_close(world));
}

RDL_TEST(a_child_that_lives_on_does_not_hide_the_death_of_its_rank)
{
    char job[64];

    name_job(job);
    rdl_test_processes(2, die_and_leave_a_child, job);
}

/* A rank's child may be a rank of another job. */
static void fork_one_with_a_world_of_its_own(int rank, int size, void *arg)
{
    rdl_world *world = open_world(rank, size, arg);
    pid_t pid = fork();

    if (pid == 0) {
        char job[80];
        rdl_world *own;

        CHECK_OK(rdl_world_close(world));
        snprintf(job, sizeof job, "%s-children", (const char *)arg);
        own = open_world(rank, size, job);
        sum_a_hundred(own);
        CHECK_OK(rdl_world_close(own));
        exit(0);
    }
    sum_a_hundred(world);
    CHECK_INT(rdl_test_wait(pid), 0);
    CHECK_OK(rdl_world_close(world));
}

RDL_TEST(children_may_be_ranks_of_another_job)
{
    char job[64];

    name_job(job);
    rdl_test_processes(4, fork_one_with_a_world_of_its_own, job);
}
