/* The keeper's loop: one poll for everything, then what each source has brought,
 * then the phase. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "keeper.h"

#include "command.h"
#include "port.h"
#include "start.h"
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

/* The fixed entries of what is polled; those of the output follow. */
enum {
    POLL_SIGNALS,
    POLL_LAUNCHER,
    POLL_ORDERS,
    POLL_JOB,
    POLL_REPORT,
    POLL_FIXED
};

int64_t clock_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* What reaches us was sent to the process group, the launcher included, which
 * will tell of it too. */
static void take_signals(keeper *k)
{
    struct signalfd_siginfo signal;

    while (ending_signals_next(k->ends->signals, k->signal_fd, &signal)) {
        int number = (int)signal.ssi_signo;

        if (number == SIGCHLD) {
            if (k->first_dead == 0)
                k->first_dead = (pid_t)signal.ssi_pid;
            continue;
        }
        sigaddset(&k->echo_due, number);
        phases_order(k, number, true);
    }
}

static void take_orders(keeper *k)
{
    unsigned char number;

    while (read(k->ends->orders, &number, 1) == 1) {
        if (sigismember(&k->echo_due, number))
            sigdelset(&k->echo_due, number);
        else
            phases_order(k, number, false);
    }
}

static void say_start_failure(keeper *k, const start_failure *f)
{
    const char *hint = "";

    if (f->error == ENOEXEC)
        hint =
            "; it is no program for this machine, or a script without a first "
            "line like '#!/bin/sh'";
    else if (f->error == ENOENT)
        hint = "; the interpreter that it names in its first line, or its "
               "loader, is missing";
    if (f->at_exec)
        output_say(k->out, k->options->who, "'%s' cannot be run: %s (%s)%s",
                   k->options->path, strerror(f->error),
                   strerrorname_np(f->error), hint);
    else
        output_say(k->out, k->options->who, "cannot prepare rank %d: %s (%s)",
                   k->started - 1, strerror(f->error),
                   strerrorname_np(f->error));
}

void keeper_take_report(keeper *k)
{
    start_failure failure;
    ssize_t n = read(k->report, &failure, sizeof failure);

    if (n < 0)
        return;
    close(k->report);
    k->report = -1;
    if (n == (ssize_t)sizeof failure) {
        say_start_failure(k, &failure);
        keeper_fail(k, failure.at_exec ? STATUS_USAGE : STATUS_FAILED);
    }
}

static void fail_start(keeper *k, int error)
{
    output_say(k->out, k->options->who, "cannot start rank %d: %s (%s)",
               k->started, strerror(error), strerrorname_np(error));
    keeper_fail(k, STATUS_FAILED);
}

/* Ranks start one after the other, each once the one before has become its
 * program: what is wrong with the program shows before more are started. */
void keeper_start_next(keeper *k)
{
    rank_start s = { .options = k->options,
                     .rank = k->started,
                     .job_fd = rdl_job_rank_fd(k->job, k->started),
                     .descriptors = k->descriptors };
    int error = output_add(k->out, s.rank, &s.stdout_end, &s.stderr_end);
    pid_t pid;

    if (error != 0) {
        fail_start(k, error);
        return;
    }
    pid = start_rank(&s, &k->report);
    error = errno;
    close(s.stdout_end);
    close(s.stderr_end);
    if (pid < 0) {
        fail_start(k, error);
        return;
    }
    k->ranks[s.rank].pid = pid;
    k->started++;
    k->running++;
    k->childless = false;
    rdl_job_started(k->job, s.rank);
}

void keeper_say_log_trouble(keeper *k, bool finished)
{
    char text[SAY_MOST];

    if (logs_trouble(k->logs, finished, text, sizeof text))
        output_say(k->out, k->options->who, "%s", text);
}

static size_t fill_polled(const keeper *k)
{
    const int fd[POLL_FIXED] = {
        [POLL_SIGNALS] = k->signal_fd,
        [POLL_LAUNCHER] = k->launcher_gone ? -1 : k->ends->launcher,
        [POLL_ORDERS] = k->launcher_gone ? -1 : k->ends->orders,
        [POLL_JOB] = k->job_failed ? -1 : rdl_job_poll_fd(k->job),
        [POLL_REPORT] = k->report,
    };

    for (size_t i = 0; i < POLL_FIXED; i++)
        k->polled[i] = (struct pollfd){ .fd = fd[i], .events = POLLIN };
    return POLL_FIXED + output_poll(k->out, k->polled + POLL_FIXED);
}

/* Who has ended is found out before the job is served: serving tells the peers,
 * and they may end of it at once. */
static void take_all(keeper *k, size_t count)
{
    const struct pollfd *p = k->polled;

    if (p[POLL_SIGNALS].revents != 0)
        take_signals(k);
    if (p[POLL_LAUNCHER].revents != 0)
        keeper_orphaned(k);
    if (p[POLL_ORDERS].revents != 0)
        take_orders(k);
    if (p[POLL_REPORT].revents != 0 && k->report >= 0)
        keeper_take_report(k);
    if (p[POLL_SIGNALS].revents != 0 || p[POLL_JOB].revents != 0 ||
        k->phase == KILLING)
        deaths_take(k);
    if (p[POLL_JOB].revents != 0)
        members_take(k);
    output_move(k->out, p + POLL_FIXED, count - POLL_FIXED);
    keeper_say_log_trouble(k, false);
}

/* Each rank takes two pipes, a socket, and a descriptor that shows its death; and
 * two logs, if they are wanted. */
static int raise_descriptor_limit(keeper *k)
{
    rlim_t need = (rlim_t)k->options->ranks * (k->options->log_dir ? 6 : 4) + 24;
    struct rlimit raised;

    if (getrlimit(RLIMIT_NOFILE, &k->descriptors) != 0)
        return 0;
    raised = k->descriptors;
    raised.rlim_cur = raised.rlim_max;
    if (raised.rlim_max >= need) {
        setrlimit(RLIMIT_NOFILE, &raised);
        return 0;
    }
    say(k->options->who,
        "%d ranks take %llu open files, and the limit is %llu (RLIMIT_NOFILE); "
        "start fewer ranks, or raise it (ulimit -Hn)",
        k->options->ranks, (unsigned long long)need,
        (unsigned long long)raised.rlim_max);
    return STATUS_FAILED;
}

/* Last, so that nothing else can fail once the files are there. */
static int open_logs(keeper *k)
{
    char why[SAY_MOST];

    if (k->options->log_dir == NULL)
        return 0;
    k->logs = logs_open(k->options->log_dir, k->options->ranks, why, sizeof why);
    if (k->logs == NULL) {
        say(k->options->who, "%s", why);
        return STATUS_USAGE;
    }
    output_log(k->out, k->logs);
    return 0;
}

static int open_recording(keeper *k)
{
    char why[SAY_MOST];

    if (k->options->dump == NULL)
        return 0;
    k->recording = recording_open(k->options->dump, why, sizeof why);
    if (k->recording != NULL)
        return 0;
    say(k->options->who, "%s", why);
    return STATUS_USAGE;
}

static int open_files(keeper *k)
{
    int code = open_recording(k);

    return code ? code : open_logs(k);
}

static int prepare(keeper *k)
{
    size_t ranks = (size_t)k->options->ranks;

    if (raise_descriptor_limit(k) != 0)
        return STATUS_FAILED;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigemptyset(&k->echo_due);
    k->signal_fd = ending_signals_open(k->ends->signals, true);
    k->out = output_open(k->options->ranks, k->options->prefix);
    k->ranks = calloc(ranks, sizeof *k->ranks);
    k->batch = calloc(ranks, sizeof *k->batch);
    if (k->out != NULL)
        k->polled =
            calloc(POLL_FIXED + output_poll_most(k->out), sizeof *k->polled);
    if (k->signal_fd < 0 || k->ranks == NULL || k->batch == NULL ||
        k->polled == NULL) {
        say(k->options->who, "cannot prepare the job: %s (%s)", strerror(errno),
            strerrorname_np(errno));
        return STATUS_FAILED;
    }
    k->port_fd = port_offer();
    if (rdl_job_create(k->options->ranks, &k->job) == RDL_OK)
        return open_files(k);
    say(k->options->who, "cannot make the job: %s", rdl_error_detail());
    return STATUS_FAILED;
}

static void fini(keeper *k)
{
    rdl_job_destroy(k->job);
    output_close(k->out);
    /* Nothing ran, so the next try may have the folder. */
    if (k->own_code == STATUS_USAGE)
        logs_discard(k->logs);
    logs_close(k->logs);
    recording_close(k->recording);
    if (k->port_fd >= 0)
        close(k->port_fd);
    free(k->ranks);
    free(k->batch);
    free(k->polled);
}

int keep(const run_options *options, const keeper_ends *ends)
{
    keeper k = { .options = options,
                 .ends = ends,
                 .port_fd = -1,
                 .report = -1,
                 .first = { .rank = -1 } };
    int status = prepare(&k);

    if (status == 0) {
        for (phases_advance(&k); k.phase != GONE; phases_advance(&k)) {
            size_t count = fill_polled(&k);

            if (poll(k.polled, count, phases_wait_ms(&k)) < 0)
                continue;
            take_all(&k, count);
        }
        status = phases_exit_code(&k);
    }
    fini(&k);
    return status;
}
