/* Starts that fail, as values: a status and a sentence on every rank concerned,
 * and nothing left behind. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/left.h"
#include "support/puppet.h"
#include "support/worlds.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LONG_MS 60000 /* longer than a test that passes takes */

static void name_job(char job[64])
{
    snprintf(job, 64, "start-%d", (int)getpid());
}

/* Opens a world that must not come to be. */
static void open_in_vain(const rdl_world_options *options, rdl_status status,
                         const char *sentence)
{
    rdl_world *world = NULL;

    CHECK_STATUS(rdl_world_open(options, &world), status);
    CHECK_HAS(rdl_error_detail(), sentence);
    CHECK(world == NULL);
}

/* --- wrong places ---------------------------------------------------------- */

RDL_TEST(wrong_options_start_nothing)
{
    rdl_test_left before = rdl_test_left_now();
    rdl_world_options options = { .rank = 4, .size = 4 };

    open_in_vain(&options, RDL_INVALID, "rank 4 is outside 0..3 (size is 4)");
    options = (rdl_world_options){ .rank = -1, .size = 4 };
    open_in_vain(&options, RDL_INVALID, "rank -1 is outside 0..3");
    options = (rdl_world_options){ .size = 5000 };
    open_in_vain(&options, RDL_INVALID, "size 5000 is outside 1..1024");
    options = (rdl_world_options){ .size = -2 };
    open_in_vain(&options, RDL_INVALID, "size -2 is outside 1..1024");
    options = (rdl_world_options){ .size = 2, .start_timeout_ms = -1 };
    open_in_vain(&options, RDL_INVALID, "-1 ms is negative");
    options = (rdl_world_options){ .size = 1, .timeout_ms = -30 };
    open_in_vain(&options, RDL_INVALID, "-30 ms is negative");
    CHECK_STATUS(rdl_world_open(&options, NULL), RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "out is NULL");
    rdl_test_nothing_left(&before);
}

RDL_TEST(wrong_variables_start_nothing)
{
    rdl_test_left before = rdl_test_left_now();

    setenv("RANK", "1", 1);
    open_in_vain(NULL, RDL_INVALID, "RANK is set and WORLD_SIZE is not");
    setenv("WORLD_SIZE", "two", 1);
    open_in_vain(NULL, RDL_INVALID, "WORLD_SIZE='two' is not a whole number");
    setenv("WORLD_SIZE", "1", 1);
    open_in_vain(NULL, RDL_INVALID, "RANK 1 is outside 0..0");
    setenv("WORLD_SIZE", "4", 1);
    setenv("LOCAL_WORLD_SIZE", "2", 1);
    open_in_vain(NULL, RDL_UNSUPPORTED, "ranks of one host only");
    unsetenv("LOCAL_WORLD_SIZE");
    setenv("RADDLE_CHECK", "maybe", 1);
    open_in_vain(NULL, RDL_INVALID, "RADDLE_CHECK='maybe' is none of 0, 1, s");
    unsetenv("RADDLE_CHECK");
    setenv("RADDLE_WAIT", "for ever", 1);
    open_in_vain(NULL, RDL_INVALID, "RADDLE_WAIT='for ever' is none of spin");
    unsetenv("RADDLE_WAIT");
    setenv("RADDLE_STAGING", "100", 1);
    open_in_vain(NULL, RDL_INVALID,
                 "RADDLE_STAGING='100' is too little: a rank needs 4096");
    unsetenv("RADDLE_STAGING");
    unsetenv("RANK");
    unsetenv("WORLD_SIZE");
    setenv("RADDLE_ALGORITHM", "all_reduce=fast", 1);
    open_in_vain(NULL, RDL_INVALID,
                 "RADDLE_ALGORITHM: 'all_reduce=fast' has no ALGORITHM");
    unsetenv("RADDLE_ALGORITHM");
    setenv("WORLD_SIZE", "4", 1);
    open_in_vain(NULL, RDL_INVALID, "WORLD_SIZE is set and RANK is not");
    rdl_test_nothing_left(&before);
}

RDL_TEST(wrong_limits_of_a_host_are_refused)
{
    static const rdl_host_options wrong[] = { { .staging_bytes = 4095 },
                                              { .staging_bytes = 1 },
                                              { .staging_bytes =
                                                    RDL_STAGING_MOST + 1 },
                                              { .staging_bytes = (size_t)-1 },
                                              { .groups = -1 },
                                              { .groups = 4097 },
                                              { .records = -64 },
                                              { .records = 32 },
                                              { .records = 96 },
                                              { .records = 131072 } };
    rdl_test_left before = rdl_test_left_now();
    rdl_host *host = NULL;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK_STATUS(rdl_host_create(&wrong[i], &host), RDL_INVALID);
        CHECK_HAS(rdl_error_detail(),
                  i < 2   ? "is too little: a rank needs 4096"
                  : i < 4 ? "is too much: a rank has at most 67108864"
                  : i < 6 ? "is outside 1..4096"
                          : "is no power of two in 64..65536");
        CHECK(host == NULL);
    }
    CHECK_STATUS(rdl_host_create(NULL, NULL), RDL_INVALID);
    rdl_host_destroy(NULL);
    rdl_test_nothing_left(&before);
}

/* --- ranks that do not come ------------------------------------------------ */

typedef struct start {
    char job[64];
    unsigned absent; /* a bit for each rank that never comes */
    const char *sentence;
} start;

static void wait_for_the_absent(int rank, int size, void *arg)
{
    const start *s = arg;
    rdl_world_options options = {
        .rank = rank, .size = size, .job = s->job, .start_timeout_ms = 1500
    };

    if ((s->absent >> rank & 1) == 0)
        open_in_vain(&options, RDL_TIMEOUT, s->sentence);
}

/* As processes and, at the same time, as threads. */
static void check_absence(unsigned absent, const char *sentence)
{
    start threads = { .absent = absent, .sentence = sentence };
    start processes = threads;
    rdl_test_left before = rdl_test_left_now();
    pid_t pid[4];

    snprintf(threads.job, sizeof threads.job, "threads-%d", (int)getpid());
    snprintf(processes.job, sizeof processes.job, "ranks-%d", (int)getpid());
    for (int rank = 0; rank < 4; rank++)
        pid[rank] = rdl_test_start(rank, 4, wait_for_the_absent, &processes);
    rdl_test_threads(4, wait_for_the_absent, &threads);
    rdl_test_nothing_left(&before);
    for (int rank = 0; rank < 4; rank++)
        CHECK_INT(rdl_test_wait(pid[rank]), 0);
    CHECK(!rdl_puppet_name_is_held(threads.job));
    CHECK(!rdl_puppet_name_is_held(processes.job));
}

RDL_TEST(the_last_rank_that_never_comes_is_named_on_all_others)
{
    check_absence(1 << 3, "3 of 4 joined, missing rank 3 after 1.5 s");
}

RDL_TEST(the_first_rank_that_never_comes_is_named_on_all_others)
{
    check_absence(1 << 0, "3 of 4 joined, missing rank 0 after 1.5 s");
}

RDL_TEST(two_ranks_that_never_come_are_named_on_all_others)
{
    check_absence(1 << 1 | 1 << 2, "2 of 4 joined, missing ranks 1,2 after");
}

RDL_TEST(a_rank_alone_names_all_others)
{
    check_absence(~1u, "1 of 4 joined, missing ranks 1,2,3 after");
}

/* Three jobs at once; in each another rank gives up first and tells the others,
 * whose own limit is far. */
static void give_up_first(int index, int size, void *arg)
{
    int rank = index % 3, job_number = index / 3;
    char job[64];
    rdl_world_options options = { .rank = rank,
                                  .size = 4,
                                  .job = job,
                                  .start_timeout_ms =
                                      rank == job_number ? 1500 : LONG_MS };

    (void)arg;
    (void)size;
    snprintf(job, sizeof job, "start-%d-%d", (int)getpid(), job_number);
    open_in_vain(&options, RDL_TIMEOUT, "3 of 4 joined, missing rank 3");
}

RDL_TEST(who_gives_up_the_start_tells_the_others)
{
    rdl_test_threads(9, give_up_first, NULL);
}

/* --- sizes that differ ----------------------------------------------------- */

static void differ_in_size(int rank, int size, void *arg)
{
    rdl_world_options options = { .rank = rank,
                                  .size = size + 1 + rank,
                                  .job = arg,
                                  .start_timeout_ms = LONG_MS };

    open_in_vain(&options, RDL_MISMATCH, "the world has");
    CHECK_HAS(rdl_error_detail(), "4 ");
    CHECK_HAS(rdl_error_detail(), "3 ");
}

RDL_TEST(two_ranks_of_different_sizes_hear_it_at_once)
{
    char job[64];

    name_job(job);
    rdl_test_threads(2, differ_in_size, job);
    rdl_test_processes(2, differ_in_size, job);
}

static void hear_of_a_size(int rank, int size, void *arg)
{
    rdl_world_options options = {
        .rank = rank, .size = 4, .job = arg, .start_timeout_ms = LONG_MS
    };

    if (rank < size - 1) {
        open_in_vain(&options, RDL_MISMATCH,
                     "the world has 4 ranks for who keeps the job and 7 for "
                     "rank 3");
    } else { /* when the others wait, one of another size comes */
        rdl_arena arena = rdl_puppet_join(arg, 2, 4);

        rdl_puppet_await(&arena, 0, RDL_SLICE_JOINED);
        rdl_puppet_await(&arena, 1, RDL_SLICE_JOINED);
        options.rank = 3;
        options.size = 7;
        open_in_vain(&options, RDL_MISMATCH, "7 for rank 3");
        rdl_arena_unmap(&arena);
    }
}

RDL_TEST(all_who_have_joined_hear_of_a_rank_with_another_size)
{
    rdl_test_left before = rdl_test_left_now();
    char job[64];

    name_job(job);
    rdl_test_threads(3, hear_of_a_size, job);
    rdl_test_nothing_left(&before);
    rdl_test_processes(3, hear_of_a_size, job);
}

static void check_otherwise(int rank, int size, void *arg)
{
    rdl_world_options options = { .rank = rank,
                                  .size = size,
                                  .job = arg,
                                  .start_timeout_ms = LONG_MS,
                                  .check = rank < 2 ? RDL_CHECK_STRICT
                                                    : RDL_CHECK_OFF };

    open_in_vain(
        &options, RDL_MISMATCH,
        "rank 0 checks calls by 'strict' and rank 2 by '0': "
        "RADDLE_CHECK, or rdl_world_options.check, must be the same on "
        "all ranks");
}

RDL_TEST(ranks_that_check_calls_differently_do_not_start)
{
    rdl_test_left before = rdl_test_left_now();
    char job[64];

    name_job(job);
    rdl_test_threads(4, check_otherwise, job);
    rdl_test_nothing_left(&before);
    rdl_test_processes(4, check_otherwise, job);
}

static void choose_otherwise(int rank, int size, void *arg)
{
    rdl_world_options options = {
        .rank = rank, .size = size, .job = arg, .start_timeout_ms = LONG_MS
    };

    if (rank == 2)
        setenv("RADDLE_ALGORITHM", "all_reduce=two_phase", 1);
    open_in_vain(&options, RDL_MISMATCH,
                 "ranks 0 and 2 have other rules for algorithms: "
                 "RADDLE_ALGORITHM must be the same on all ranks");
}

RDL_TEST(ranks_that_choose_algorithms_differently_do_not_start)
{
    rdl_test_left before = rdl_test_left_now();
    char job[64];

    name_job(job);
    rdl_test_processes(4, choose_otherwise, job);
    rdl_test_nothing_left(&before);
}

/* --- ranks that end while starting ----------------------------------------- */

/* Rank 2 of 4 says hello, and goes on when 0 and 1 wait. */
static rdl_arena come_third(const char *job)
{
    rdl_arena arena = rdl_puppet_join(job, 2, 4);

    rdl_puppet_await(&arena, 0, RDL_SLICE_JOINED);
    rdl_puppet_await(&arena, 1, RDL_SLICE_JOINED);
    return arena;
}

static void join_and_end(int rank, int size, void *arg)
{
    rdl_arena arena = come_third(arg);

    (void)size;
    rdl_puppet_show(&arena, rank, RDL_SLICE_JOINED, RDL_OK, "");
    _exit(0);
}

static void say_hello_and_end(int rank, int size, void *arg)
{
    come_third(arg);
    (void)rank;
    (void)size;
    _exit(0);
}

/* Ranks 0 and 1 of 4 wait; 2 comes and ends; 3 never comes. */
static void wait_for_the_dead(int rank, int size, void *arg)
{
    rdl_world_options options = {
        .rank = rank, .size = size + 2, .job = arg, .start_timeout_ms = LONG_MS
    };

    open_in_vain(&options, RDL_PEER, "rank 2 (process ");
    CHECK_HAS(rdl_error_detail(), "is gone while the job starts");
}

static void check_end(rdl_test_body end)
{
    char job[64];
    pid_t third;

    name_job(job);
    third = rdl_test_start(2, 2, end, job);
    rdl_test_threads(2, wait_for_the_dead, job);
    CHECK_INT(rdl_test_wait(third), 0);
    CHECK(!rdl_puppet_name_is_held(job));
}

RDL_TEST(all_hear_of_a_rank_that_joined_and_ended_before_the_start)
{
    check_end(join_and_end);
}

RDL_TEST(all_hear_of_a_rank_that_ended_before_it_joined)
{
    check_end(say_hello_and_end);
}

static void lose_the_keeper(int rank, int size, void *arg)
{
    rdl_world_options options = {
        .rank = rank, .size = size, .job = arg, .start_timeout_ms = LONG_MS
    };

    open_in_vain(&options, RDL_PEER, "is gone while");
}

RDL_TEST(all_hear_of_the_end_of_who_keeps_the_job)
{
    rdl_arena arena;
    char job[64];
    pid_t first, second;

    name_job(job);
    first = rdl_test_start(0, 3, lose_the_keeper, job);
    arena = rdl_puppet_join(job, 2, 3);
    second = rdl_test_start(1, 3, lose_the_keeper, job);
    rdl_puppet_await(&arena, 1, RDL_SLICE_JOINED);
    kill(first, SIGKILL);
    CHECK_INT(rdl_test_wait(first), 128 + SIGKILL);
    CHECK_INT(rdl_test_wait(second), 0);
    rdl_arena_unmap(&arena);
}

static void wait_in_vain(int rank, int size, void *arg)
{
    rdl_world_options options = {
        .rank = rank, .size = size, .job = arg, .start_timeout_ms = LONG_MS
    };

    open_in_vain(&options, RDL_TIMEOUT, "as told");
}

/* The last rank joins in the moment in which another gives up. */
RDL_TEST(a_start_that_one_rank_gave_up_fails_for_all)
{
    rdl_arena arena, last;
    char job[64];
    pid_t first;

    name_job(job);
    first = rdl_test_start(0, 3, wait_in_vain, job);
    arena = rdl_puppet_join(job, 1, 3);
    last = rdl_puppet_join(job, 2, 3);
    rdl_puppet_await(&arena, 0, RDL_SLICE_JOINED);
    kill(first, SIGSTOP);
    usleep(50000);
    rdl_puppet_show(&arena, 1, RDL_SLICE_FAILED, RDL_TIMEOUT, "as told");
    rdl_puppet_show(&last, 2, RDL_SLICE_JOINED, RDL_OK, "");
    kill(first, SIGCONT);
    CHECK_INT(rdl_test_wait(first), 0);
    rdl_arena_unmap(&arena);
    rdl_arena_unmap(&last);
}
