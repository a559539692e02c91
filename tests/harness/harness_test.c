/* The harness itself. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void fail_if_last(int rank, int size, void *arg)
{
    (void)arg;
    freopen("/dev/null", "w", stderr);
    CHECK(rank != size - 1);
}

static void die_if_first(int rank, int size, void *arg)
{
    (void)size;
    (void)arg;
    freopen("/dev/null", "w", stderr);
    if (rank == 0)
        raise(SIGKILL);
    pause(); /* as a rank does that waits for it */
}

static void skip_all(int rank, int size, void *arg)
{
    (void)rank;
    (void)size;
    (void)arg;
    freopen("/dev/null", "w", stderr);
    SKIP("for the test");
}

typedef struct inner {
    void (*start)(int size, rdl_test_body body, void *arg);
    rdl_test_body body;
} inner;

/* A test inside a test: its exit status is what ctest would see. */
static void run_inner(int rank, int size, void *arg)
{
    const inner *i = arg;

    (void)rank;
    freopen("/dev/null", "w", stderr);
    i->start(size, i->body, NULL);
}

static int status_of(inner i)
{
    return rdl_test_wait(rdl_test_start(0, 3, run_inner, &i));
}

RDL_TEST(a_failing_rank_fails_the_test)
{
    CHECK_INT(status_of((inner){ rdl_test_threads, fail_if_last }), 1);
    CHECK_INT(status_of((inner){ rdl_test_processes, fail_if_last }), 1);
}

RDL_TEST(a_dying_rank_fails_the_test_though_the_others_wait_for_ever)
{
    CHECK_INT(status_of((inner){ rdl_test_processes, die_if_first }), 1);
    CHECK_TEXT(rdl_test_descendants(getpid()).text, "");
}

RDL_TEST(a_skipping_rank_skips_the_test)
{
    CHECK_INT(status_of((inner){ rdl_test_threads, skip_all }), 77);
    CHECK_INT(status_of((inner){ rdl_test_processes, skip_all }), 77);
}

static void note_rank(int rank, int size, void *arg)
{
    int *seen = arg;

    seen[rank] = size;
}

RDL_TEST(every_rank_runs_the_body_once)
{
    int seen[5] = { 0 };

    rdl_test_threads(5, note_rank, seen);
    for (int r = 0; r < 5; r++)
        CHECK_INT(seen[r], 5);
}

RDL_TEST(what_is_left_behind_shows)
{
    int descriptors = rdl_test_descriptors();
    pid_t child = rdl_test_start(0, 1, die_if_first, NULL);
    char zombie[64];
    FILE *f = tmpfile();

    CHECK(f != NULL);
    CHECK_INT(rdl_test_descriptors(), descriptors + 1);
    fclose(f);
    CHECK_INT(rdl_test_descriptors(), descriptors);
    CHECK_HAS(rdl_test_list("/proc/self", "stat").text, "statm\n");

    snprintf(zombie, sizeof zombie, "%d ", (int)child);
    CHECK_HAS(rdl_test_descendants(getpid()).text, zombie);
    CHECK_INT(rdl_test_wait(child), 128 + SIGKILL);
    CHECK_TEXT(rdl_test_descendants(getpid()).text, "");
}
