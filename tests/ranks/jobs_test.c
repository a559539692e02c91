/* Several jobs at once, and jobs of a launcher: this process serves them, and the
 * ranks are its children. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/layout.h"
#include "base/message.h"
#include "support/left.h"
#include "support/puppet.h"
#include "support/worlds.h"

#include <errno.h>
#include <raddle/launch.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define RANKS_MOST 4

/* Counts that all processes see. */
typedef struct counts {
    atomic_int opened; /* worlds */
    atomic_int done;
} counts;

/* What launcher and ranks have. */
typedef struct stage {
    rdl_job *job;
    counts *counts;
    char name[64];
} stage;

static stage make_stage(void)
{
    stage s = { .counts = mmap(NULL, sizeof(counts), PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0) };

    CHECK(s.counts != MAP_FAILED);
    snprintf(s.name, sizeof s.name, "jobs-%d", (int)getpid());
    return s;
}

static void wait_for(atomic_int *count, int least)
{
    while (atomic_load(count) < least)
        usleep(1000);
}

/* --- without a launcher ---------------------------------------------------- */

static const int64_t all_digits[] = { 0, 1, 11, 111, 1111 };

static void join_one_of_twenty(int index, int size, void *arg)
{
    char job[80];
    rdl_world_options options = { .rank = index % 4, .size = 4, .job = job };
    rdl_world *world;

    (void)size;
    snprintf(job, sizeof job, "%s-%d", (const char *)arg, index / 4);
    CHECK_OK(rdl_world_open(&options, &world));
    rdl_check_digits(world, RDL_WORLD, 1111);
    CHECK_OK(rdl_world_close(world));
}

/* H06 b */
RDL_TEST(twenty_jobs_at_once_do_not_meet)
{
    char name[64];

    snprintf(name, sizeof name, "twenty-%d", (int)getpid());
    rdl_test_threads(80, join_one_of_twenty, name);
    rdl_test_processes(80, join_one_of_twenty, name);
}

/* H06 c: ranks 2 and 3 of this test are the second job, under the same name. */
static void share_a_name(int index, int size, void *arg)
{
    stage *s = arg;
    rdl_world_options options = { .rank = index % 2, .size = 2, .job = s->name };
    rdl_world *world;

    (void)size;
    if (index >= 2)
        wait_for(&s->counts->opened, 2);
    CHECK_OK(rdl_world_open(&options, &world));
    atomic_fetch_add(&s->counts->opened, 1);
    rdl_check_digits(world, RDL_WORLD, 11);
    if (index < 2) /* the first job outlives the second's start */
        wait_for(&s->counts->opened, 4);
    rdl_check_digits(world, RDL_WORLD, 11);
    CHECK_OK(rdl_world_close(world));
}

RDL_TEST(a_second_job_of_a_running_ones_name_disturbs_nobody)
{
    stage s = make_stage();

    rdl_test_threads(4, share_a_name, &s);
    atomic_store(&s.counts->opened, 0);
    rdl_test_processes(4, share_a_name, &s);
}

/* --- under a launcher ------------------------------------------------------ */

static void set_number(const char *name, int value)
{
    char text[16];

    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

/* What a launcher gives a rank. */
static void be_rank(const stage *s, int rank, int size)
{
    set_number("RADDLE_FD", rdl_job_rank_fd(s->job, rank));
    set_number("RADDLE_RANK", rank);
    set_number("RADDLE_WORLD_SIZE", size);
}

static void open_in_vain(rdl_status status, const char *sentence)
{
    rdl_world *world = NULL;

    CHECK_STATUS(rdl_world_open(NULL, &world), status);
    CHECK_HAS(rdl_error_detail(), sentence);
    CHECK(world == NULL);
}

static void how_it_ended(int state, char *text, size_t bytes)
{
    if (WIFSIGNALED(state))
        snprintf(text, bytes, "signal %d", WTERMSIG(state));
    else
        snprintf(text, bytes, "exit status %d", WEXITSTATUS(state));
}

static pid_t start_rank(stage *s, int rank, int size, rdl_test_body body)
{
    pid_t pid = rdl_test_start(rank, size, body, s);

    rdl_job_started(s->job, rank);
    return pid;
}

/* Serves until all have ended; their exit statuses. */
static void serve(stage *s, pid_t *pid, int size, int *statuses)
{
    for (int running = size; running > 0; usleep(500)) {
        CHECK_OK(rdl_job_serve(s->job));
        for (int rank = 0; rank < size; rank++) {
            char text[64];
            int state;

            if (pid[rank] == 0 || waitpid(pid[rank], &state, WNOHANG) <= 0)
                continue;
            pid[rank] = 0;
            running--;
            statuses[rank] =
                WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state);
            how_it_ended(state, text, sizeof text);
            rdl_job_rank_ended(s->job, rank, text);
        }
    }
}

/* Runs a job of that many ranks, of which those in the mask end badly. */
static void launch(int size, rdl_test_body body, unsigned bad)
{
    stage s = make_stage();
    rdl_test_left before = rdl_test_left_now();
    pid_t pid[RANKS_MOST];
    int statuses[RANKS_MOST];

    CHECK_OK(rdl_job_create(size, &s.job));
    for (int rank = 0; rank < size; rank++)
        pid[rank] = start_rank(&s, rank, size, body);
    serve(&s, pid, size, statuses);
    for (int rank = 0; rank < size; rank++)
        CHECK_INT(statuses[rank] != 0, bad >> rank & 1);
    rdl_job_destroy(s.job);
    rdl_test_nothing_left(&before);
}

static void live_three_times(int rank, int size, void *arg)
{
    be_rank(arg, rank, size);
    for (int life = 0; life < 3; life++) {
        rdl_world *world;

        CHECK_OK(rdl_world_open(NULL, &world));
        CHECK_INT(rdl_world_rank(world), rank);
        rdl_check_digits(world, RDL_WORLD, all_digits[size]);
        CHECK_OK(rdl_world_close(world));
    }
}

RDL_TEST(ranks_of_a_launcher_live_as_often_as_they_like)
{
    launch(1, live_three_times, 0);
    launch(4, live_three_times, 0);
}

/* Rank 0's process forks another that is rank 0 too. */
static void have_a_twin(int rank, int size, void *arg)
{
    stage *s = arg;
    rdl_world *world;
    pid_t twin;

    be_rank(s, rank, size);
    CHECK_OK(rdl_world_open(NULL, &world));
    if (rank == 0) {
        twin = fork();
        if (twin == 0) {
            open_in_vain(RDL_MISMATCH, "rank 0 is taken by process");
            _exit(0);
        }
        CHECK_INT(rdl_test_wait(twin), 0);
    }
    rdl_check_digits(world, RDL_WORLD, 11);
    CHECK_OK(rdl_world_close(world));
}

RDL_TEST(a_launcher_refuses_the_second_process_of_one_rank)
{
    launch(2, have_a_twin, 0);
}

/* Rank 0 has a sibling on its socket, which said hello first and is slow to take its
 * answer. */
static void share_a_socket(int rank, int size, void *arg)
{
    stage *s = arg;
    int socket = rdl_job_rank_fd(s->job, rank), fd;
    rdl_answer answer;
    rdl_hello hello;
    pid_t sibling;

    be_rank(s, rank, size);
    if (rank == 1) {
        open_in_vain(RDL_PEER, "rank 0 is gone while the job starts");
        return;
    }
    sibling = fork();
    if (sibling == 0) {
        hello = rdl_puppet_hello("", rank, size);
        CHECK_OK(rdl_message_send(socket, &hello, sizeof hello, -1));
        atomic_fetch_add(&s->counts->opened, 1);
        usleep(300000);
        CHECK_OK(rdl_message_receive(socket, &answer, sizeof answer, &fd,
                                     rdl_deadline_after_ms(20000)));
        CHECK_INT(answer.pid, getpid());
        CHECK_INT(answer.status, RDL_OK);
        CHECK(fd >= 0);
        while (atomic_load(&s->counts->done) == 0)
            usleep(1000);
        _exit(0);
    }
    wait_for(&s->counts->opened, 1);
    open_in_vain(RDL_MISMATCH, "rank 0 is taken by process");
    atomic_fetch_add(&s->counts->done, 1);
    CHECK_INT(rdl_test_wait(sibling), 0);
}

RDL_TEST(processes_that_share_a_launchers_socket_each_get_their_own_answer)
{
    launch(2, share_a_socket, 0);
}

/* The socket of one rank under another's number: each is told. */
static void exchange_numbers(int rank, int size, void *arg)
{
    be_rank(arg, rank, size);
    set_number("RADDLE_RANK", 1 - rank);
    open_in_vain(RDL_MISMATCH, rank ? "socket of rank 1 is used by rank 0"
                                    : "socket of rank 0 is used by rank 1");
}

RDL_TEST(a_rank_number_that_is_not_the_launchers_is_refused)
{
    launch(2, exchange_numbers, 0);
}

static void change_the_size(int rank, int size, void *arg)
{
    be_rank(arg, rank, rank == 1 ? size + 3 : size);
    open_in_vain(RDL_MISMATCH, "the world has 4 ranks for who keeps the job "
                               "and 7 for rank 1");
}

RDL_TEST(a_launcher_tells_all_ranks_of_a_size_that_differs)
{
    launch(4, change_the_size, 0);
}

static void say_half_first(int rank, int size, void *arg)
{
    stage *s = arg;
    rdl_hello hello = rdl_puppet_hello("", rank, size);
    int socket = rdl_job_rank_fd(s->job, rank), fd;
    rdl_answer answer;

    if (rank == 0) {
        CHECK_OK(rdl_message_send(socket, &hello, sizeof hello / 2, 0));
        CHECK_OK(rdl_message_receive(socket, &answer, sizeof answer, &fd,
                                     rdl_deadline_after_ms(20000)));
        CHECK_INT(answer.status, RDL_FORMAT);
        CHECK_INT(fd, -1);
        hello.layout++;
        CHECK_OK(rdl_message_send(socket, &hello, sizeof hello, 0));
        CHECK_OK(rdl_message_receive(socket, &answer, sizeof answer, &fd,
                                     rdl_deadline_after_ms(20000)));
        CHECK_INT(answer.status, RDL_MISMATCH);
        return;
    }
    be_rank(s, rank, size);
    open_in_vain(RDL_MISMATCH, "rank 0 uses raddle");
}

RDL_TEST(a_launcher_survives_half_a_hello_and_tells_all_of_another_version)
{
    launch(3, say_half_first, 0);
}

static void end_before_hello(int rank, int size, void *arg)
{
    if (rank == 1)
        _exit(7);
    be_rank(arg, rank, size);
    open_in_vain(RDL_PEER,
                 "rank 1 is gone while the job starts: exit status 7");
}

RDL_TEST(all_ranks_hear_of_one_that_ended_before_it_said_hello)
{
    launch(3, end_before_hello, 1 << 1);
}

static void end_after_hello(int rank, int size, void *arg)
{
    stage *s = arg;
    rdl_hello hello = rdl_puppet_hello("", rank, size);

    if (rank == 1) {
        CHECK_OK(rdl_message_send(rdl_job_rank_fd(s->job, rank), &hello,
                                  sizeof hello, -1));
        raise(SIGKILL);
    }
    be_rank(s, rank, size);
    open_in_vain(RDL_PEER, "rank 1 is gone while the job starts: ");
}

RDL_TEST(all_ranks_hear_of_one_that_was_killed_after_its_hello)
{
    launch(3, end_after_hello, 1 << 1);
}

static void never_say_hello(int rank, int size, void *arg)
{
    stage *s = arg;

    if (rank == 0) {
        wait_for(&s->counts->done, 2);
        return;
    }
    be_rank(s, rank, size);
    setenv("RADDLE_START_TIMEOUT", "1.5", 1);
    open_in_vain(RDL_TIMEOUT, "2 of 3 joined, missing rank 0 after 1.5 s");
    atomic_fetch_add(&s->counts->done, 1);
}

RDL_TEST(ranks_of_a_launcher_name_who_never_says_hello)
{
    launch(3, never_say_hello, 0);
}

/* --- the launcher's own calls ---------------------------------------------- */

RDL_TEST(wrong_arguments_of_a_launcher_are_refused)
{
    rdl_test_left before = rdl_test_left_now();
    rdl_job *job = NULL;
    rdl_last last;
    rdl_failure failure;
    rdl_member member;

    CHECK_STATUS(rdl_job_create(0, &job), RDL_INVALID);
    CHECK_STATUS(rdl_job_create(1025, &job), RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "a job of 1025 ranks is outside 1..1024");
    CHECK_STATUS(rdl_job_create(1, NULL), RDL_INVALID);
    CHECK(job == NULL);
    CHECK_STATUS(rdl_job_serve(NULL), RDL_INVALID);
    CHECK_STATUS(rdl_job_member(NULL, 0, &member), RDL_INVALID);
    CHECK_OK(rdl_job_create(2, &job));
    CHECK_STATUS(rdl_job_member(job, 2, &member), RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "rank 2 outside 0..1");
    CHECK_STATUS(rdl_job_member(job, -1, &member), RDL_INVALID);
    CHECK_STATUS(rdl_job_member(job, 0, NULL), RDL_INVALID);
    CHECK_INT(rdl_job_rank_fd(job, 2), -1);
    CHECK_INT(rdl_job_rank_fd(NULL, 0), -1);
    CHECK_INT(rdl_job_poll_fd(NULL), -1);
    rdl_job_started(job, 5);
    rdl_job_rank_ended(job, -1, NULL);
    rdl_job_rank_ended(job, 0, NULL);
    CHECK_OK(rdl_job_member(job, 0, &member));
    CHECK_INT(member.state, RDL_MEMBER_ABSENT);
    CHECK_STATUS(rdl_job_last(NULL, 0, &last), RDL_INVALID);
    CHECK_STATUS(rdl_job_last(job, 2, &last), RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "rank 2 outside 0..1");
    CHECK_STATUS(rdl_job_last(job, -1, &last), RDL_INVALID);
    CHECK_STATUS(rdl_job_last(job, 0, NULL), RDL_INVALID);
    CHECK_OK(rdl_job_last(job, 1, &last));
    CHECK_INT(last.state, RDL_LAST_NONE);
    CHECK_TEXT(last.call, "");
    CHECK_STATUS(rdl_job_failure(NULL, 0, &failure), RDL_INVALID);
    CHECK_STATUS(rdl_job_failure(job, 2, &failure), RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "rank 2 outside 0..1");
    CHECK_STATUS(rdl_job_failure(job, -2, &failure), RDL_INVALID);
    CHECK_STATUS(rdl_job_failure(job, 0, NULL), RDL_INVALID);
    CHECK_OK(rdl_job_failure(job, RDL_ANY_RANK, &failure));
    CHECK_INT(failure.status, RDL_OK);
    CHECK_TEXT(failure.sentence, "");
    rdl_job_destroy(job);
    rdl_job_destroy(NULL);
    rdl_test_nothing_left(&before);
}

/* Rank 1 is the one of another count; who is first to see it ends at once. */
static void differ_and_end(int rank, int size, void *arg)
{
    rdl_world *world;
    float x[4] = { 0 };

    be_rank(arg, rank, size);
    CHECK_OK(rdl_world_open(NULL, &world));
    CHECK_STATUS(rdl_all_reduce(world, RDL_WORLD, x, x, rank == 1 ? 3 : 4,
                                RDL_FLOAT32, RDL_SUM, NULL),
                 RDL_MISMATCH);
    _exit(9);
}

RDL_TEST(a_launcher_reads_why_ranks_failed_after_their_end)
{
    stage s = make_stage();
    pid_t pid[RANKS_MOST];
    int statuses[RANKS_MOST];
    rdl_failure failure;

    CHECK_OK(rdl_job_create(3, &s.job));
    for (int rank = 0; rank < 3; rank++)
        pid[rank] = start_rank(&s, rank, 3, differ_and_end);
    serve(&s, pid, 3, statuses);
    for (int rank = RDL_ANY_RANK; rank < 3; rank++) {
        CHECK_OK(rdl_job_failure(s.job, rank, &failure));
        CHECK_INT(failure.status, RDL_MISMATCH);
        CHECK_HAS(failure.sentence, "rank 1 differs from ranks 0,2");
    }
    rdl_job_destroy(s.job);
}

/* Ranks 0 and 1 idle behind a broadcast, and are killed; rank 2 waits for rank 1. */
static void do_something_last(int rank, int size, void *arg)
{
    stage *s = arg;
    int ranks[] = { 2, 1 };
    rdl_world *world;
    rdl_group group;
    int64_t x = 0;

    be_rank(s, rank, size);
    CHECK_OK(rdl_world_open(NULL, &world));
    if (rank != 0)
        CHECK_OK(rdl_group_open(world, ranks, 2, "pair\n", &group));
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    CHECK_OK(rdl_broadcast(world, RDL_WORLD, &x, 1, RDL_INT64, 0, NULL));
    atomic_fetch_add(&s->counts->done, 1);
    if (rank == 2)
        CHECK_STATUS(
            rdl_all_reduce(world, group, &x, &x, 1, RDL_INT64, RDL_SUM, NULL),
            RDL_PEER);
    else
        pause();
    _exit(9);
}

/* Serves until all are about to do it and rank 2 sleeps in it. */
static void serve_until_rank_2_waits(const stage *s, rdl_last *out)
{
    do {
        usleep(1000);
        CHECK_OK(rdl_job_serve(s->job));
        CHECK_OK(rdl_job_last(s->job, 2, out));
    } while (atomic_load(&s->counts->done) < 3 ||
             out->state != RDL_LAST_WAITING);
}

RDL_TEST(a_launcher_reads_what_ranks_do_and_did_last)
{
    stage s = make_stage();
    pid_t pid[RANKS_MOST];
    int statuses[RANKS_MOST];
    rdl_last last;

    CHECK_OK(rdl_job_create(3, &s.job));
    for (int rank = 0; rank < 3; rank++)
        pid[rank] = start_rank(&s, rank, 3, do_something_last);
    serve_until_rank_2_waits(&s, &last);
    CHECK_INT(last.peer, 1);
    CHECK_INT(last.number, 1);
    CHECK_TEXT(last.call, "all_reduce(1 int64)");
    CHECK_TEXT(last.group, "group 'pair ' [2,1]");
    CHECK(last.seconds >= 0 && last.seconds < 60);
    kill(pid[0], SIGKILL);
    kill(pid[1], SIGKILL);
    serve(&s, pid, 3, statuses);
    CHECK_OK(rdl_job_last(s.job, 0, &last));
    CHECK_INT(last.state, RDL_LAST_ENDED);
    CHECK_INT(last.status, RDL_OK);
    CHECK_INT(last.number, 2);
    CHECK_TEXT(last.call, "broadcast(1 int64, root 0)");
    CHECK_TEXT(last.group, "the world [0,1,2]");
    CHECK_OK(rdl_job_last(s.job, 1, &last));
    CHECK_INT(last.number, 2);
    CHECK_OK(rdl_job_last(s.job, 2, &last));
    CHECK_INT(last.state, RDL_LAST_ENDED);
    CHECK_INT(last.status, RDL_PEER);
    rdl_job_destroy(s.job);
}

static void give_up_or_notice(int rank, int size, void *arg)
{
    rdl_world *world;

    be_rank(arg, rank, size);
    CHECK_OK(rdl_world_open(NULL, &world));
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    if (rank == 1)
        rdl_world_abort(world, "no data left");
    else
        CHECK_STATUS(rdl_barrier(world, RDL_WORLD, NULL), RDL_PEER);
    _exit(9);
}

RDL_TEST(a_launcher_reads_why_a_rank_gave_up)
{
    stage s = make_stage();
    pid_t pid[RANKS_MOST];
    int statuses[RANKS_MOST];
    rdl_failure failure;

    CHECK_OK(rdl_job_create(2, &s.job));
    for (int rank = 0; rank < 2; rank++)
        pid[rank] = start_rank(&s, rank, 2, give_up_or_notice);
    serve(&s, pid, 2, statuses);
    CHECK_OK(rdl_job_failure(s.job, 1, &failure));
    CHECK_TEXT(failure.sentence, "no data left");
    CHECK_OK(rdl_job_failure(s.job, 0, &failure));
    CHECK_INT(failure.status, RDL_PEER);
    CHECK_HAS(failure.sentence, "rank 1 gave up: no data left");
    rdl_job_destroy(s.job);
}

RDL_TEST(a_launcher_without_descriptors_says_which_limit_it_met)
{
    rdl_test_left before = rdl_test_left_now();
    struct rlimit limit = { 32, 32 };
    rdl_job *job = NULL;

    CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
    CHECK_STATUS(rdl_job_create(64, &job), RDL_SYSTEM);
    CHECK_HAS(rdl_error_detail(), "EMFILE");
    CHECK_HAS(rdl_error_detail(), "RLIMIT_NOFILE (ulimit -n) is 32");
    CHECK(job == NULL);
    rdl_test_nothing_left(&before);
    CHECK_OK(rdl_job_create(4, &job));
    rdl_job_destroy(job);
    rdl_test_nothing_left(&before);
}
