/* Ranks as threads and as processes. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/run.h"
#include "support/test.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RANKS_MOST 1024
#define TICK_MS 2
#define GRACE_MS 2000 /* for the other ranks, once one has failed */

typedef struct rank_thread {
    pthread_t thread;
    int rank;
    int size;
    rdl_test_body body;
    void *arg;
} rank_thread;

static void *run_thread(void *arg)
{
    rank_thread *r = arg;

    rdl_test_set_rank(r->rank);
    r->body(r->rank, r->size, r->arg);
    return NULL;
}

void rdl_test_threads(int size, rdl_test_body body, void *arg)
{
    rank_thread *ranks = calloc((size_t)size, sizeof *ranks);

    CHECK(ranks != NULL);
    for (int r = 0; r < size; r++) {
        ranks[r] =
            (rank_thread){ .rank = r, .size = size, .body = body, .arg = arg };
        CHECK_INT(pthread_create(&ranks[r].thread, NULL, run_thread, &ranks[r]),
                  0);
    }
    for (int r = 0; r < size; r++)
        CHECK_INT(pthread_join(ranks[r].thread, NULL), 0);
    free(ranks);
}

pid_t rdl_test_start(int rank, int size, rdl_test_body body, void *arg)
{
    pid_t parent = getpid();
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid < 0)
        RDL_TEST_FAIL("fork of rank %d: %s", rank, strerror(errno));
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(RDL_TEST_FAILED);
    rdl_test_set_rank(rank);
    body(rank, size, arg);
    exit(0); /* not _exit: sanitizers report leaks and races at exit */
}

static int status_of(int state)
{
    return WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state);
}

int rdl_test_wait(pid_t pid)
{
    int state;

    while (waitpid(pid, &state, 0) < 0)
        if (errno != EINTR)
            RDL_TEST_FAIL("waiting for %d: %s", (int)pid, strerror(errno));
    return status_of(state);
}

/* What the ranks of one rdl_test_processes have come to. */
typedef struct job {
    int size;
    int running;
    int worst;    /* 0, RDL_TEST_SKIPPED, or RDL_TEST_FAILED */
    int grace_ms; /* left for the others; counts once worst is a failure */
    pid_t pid[RANKS_MOST]; /* 0: ended */
} job;

static void note_end(job *j, int rank, int state)
{
    int status = status_of(state);

    j->pid[rank] = 0;
    j->running--;
    if (status == 0)
        return;
    if (status == RDL_TEST_SKIPPED) {
        j->worst = j->worst == 0 ? RDL_TEST_SKIPPED : j->worst;
        return;
    }
    if (j->worst != RDL_TEST_FAILED)
        fprintf(stderr, "the first rank to fail was:\n");
    j->worst = RDL_TEST_FAILED;
    if (WIFSIGNALED(state))
        fprintf(stderr, "rank %d of %d died by signal %d, %s\n", rank, j->size,
                WTERMSIG(state), strsignal(WTERMSIG(state)));
    else
        fprintf(stderr, "rank %d of %d ended with exit status %d\n", rank,
                j->size, status);
}

static void reap_ended(job *j)
{
    int state;

    for (int r = 0; r < j->size; r++)
        if (j->pid[r] != 0 && waitpid(j->pid[r], &state, WNOHANG) > 0)
            note_end(j, r, state);
}

static void kill_rest(job *j)
{
    for (int r = 0; r < j->size; r++) {
        if (j->pid[r] == 0)
            continue;
        fprintf(stderr, "rank %d of %d still ran %d ms later and was killed\n",
                r, j->size, GRACE_MS);
        kill(j->pid[r], SIGKILL);
        rdl_test_wait(j->pid[r]);
    }
    j->running = 0;
}

/* Not one waitpid after the other: while rank 0 waits for ever, the death of
 * rank 3 must show. */
static void wait_for_all(job *j)
{
    struct timespec tick = { .tv_nsec = TICK_MS * 1000000 };

    for (reap_ended(j); j->running > 0; reap_ended(j)) {
        nanosleep(&tick, NULL);
        if (j->worst == RDL_TEST_FAILED && (j->grace_ms -= TICK_MS) <= 0)
            kill_rest(j);
    }
}

void rdl_test_processes(int size, rdl_test_body body, void *arg)
{
    job j = { .size = size, .running = size, .grace_ms = GRACE_MS };

    CHECK(size <= RANKS_MOST);
    for (int r = 0; r < size; r++)
        j.pid[r] = rdl_test_start(r, size, body, arg);
    wait_for_all(&j);
    if (j.worst != 0)
        _exit(j.worst);
}

void rdl_test_ranks(int size, rdl_test_body body, void *arg)
{
    const char *kind = getenv("RADDLE_TEST_RANKS");

    if (kind != NULL && strcmp(kind, "processes") == 0)
        rdl_test_processes(size, body, arg);
    else
        rdl_test_threads(size, body, arg);
}
