/* One run: a process for each rank, and a watch over them. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "race.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* All limits inside have passed by then, the start's among them. */
#define WATCH_MS (20000 + 5 * RACE_LIMIT_MS)

race_end race_end_of(rdl_status st)
{
    if (st == RDL_MISMATCH)
        return RACE_MISMATCH;
    if (st == RDL_TIMEOUT)
        return RACE_TIMEOUT;
    return st == RDL_PEER ? RACE_SECOND : RACE_BROKEN;
}

static bool start_rank(const race_setting *setting, int rank,
                       race_report *report, pid_t *pid)
{
    *pid = fork();
    if (*pid != 0)
        return *pid > 0;
    (setting->blas != NULL ? race_train : race_rank)(setting, rank, report);
    _exit(0);
}

static void kill_all(const pid_t *pids, int n)
{
    for (int i = 0; i < n; i++)
        if (pids[i] > 0)
            kill(pids[i], SIGKILL);
}

/* A rank that a signal has ended has used what was wrong. */
static void note_ending(race_report *report, int rank, int status, bool killed)
{
    if (!WIFSIGNALED(status))
        return;
    report->end = killed ? RACE_TIMEOUT : RACE_WRONG;
    snprintf(report->sentence, sizeof report->sentence,
             "rank %d: signal %d (%s)", rank, WTERMSIG(status),
             killed ? "it hung" : "it crashed");
}

/* Reaps the ranks; those that hang are killed. */
static void watch(pid_t *pids, int n, race_report *reports)
{
    const struct timespec nap = { .tv_nsec = 500000 };
    int left = n, naps = 0;
    bool killed = false;

    while (left > 0) {
        for (int i = 0; i < n; i++) {
            int status;

            if (pids[i] <= 0 || waitpid(pids[i], &status, WNOHANG) == 0)
                continue;
            note_ending(&reports[i], i, status, killed);
            pids[i] = 0;
            left--;
        }
        if (naps++ == WATCH_MS * 2) {
            kill_all(pids, n);
            killed = true;
        }
        if (left > 0)
            nanosleep(&nap, NULL);
    }
}

/* RACE_SECOND alone has no cause: nobody else has failed. */
static bool sum_up(const race_report *reports, int n, race_report *sum)
{
    *sum = reports[0]; /* if all pass, they have the same to say */
    sum->end = RACE_PASSED;
    for (int i = 0; i < n; i++) {
        double ms = reports[i].ms > sum->ms ? reports[i].ms : sum->ms;
        bool worse =
            reports[i].end == RACE_BROKEN || sum->end == RACE_PASSED ||
            sum->end == RACE_SECOND ||
            (reports[i].end != RACE_SECOND && reports[i].end > sum->end);

        if (reports[i].end != RACE_PASSED && worse && sum->end != RACE_BROKEN)
            *sum = reports[i];
        sum->ms = ms;
    }
    return sum->end < RACE_SECOND;
}

bool race_run(const race_setting *setting, race_report *report)
{
    pid_t pids[RACE_RANKS_MOST];
    size_t bytes = (size_t)setting->ranks * sizeof(race_report);
    race_report *reports = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int started = 0;
    bool good = true;

    if (reports == MAP_FAILED) {
        snprintf(report->sentence, sizeof report->sentence, "no memory");
        return false;
    }
    for (int i = 0; i < setting->ranks; i++)
        reports[i].end = RACE_BROKEN;
    while (good && started < setting->ranks) {
        good = start_rank(setting, started, &reports[started], &pids[started]);
        started += good;
    }
    if (good) {
        watch(pids, started, reports);
        good = sum_up(reports, started, report);
    } else {
        snprintf(report->sentence, sizeof report->sentence, "no process: %s",
                 strerror(errno));
        kill_all(pids, started);
        watch(pids, started, reports);
    }
    munmap(reports, bytes);
    return good;
}
