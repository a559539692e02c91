/* From fork to exec. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "start.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Where ranks find their socket: the first number after the standard three. */
#define JOB_FD 3

static int set_number(const char *name, int value)
{
    char text[16];

    snprintf(text, sizeof text, "%d", value);
    return setenv(name, text, 1);
}

/* The names of ours, and those that torchrun sets. */
static int set_environment(const rank_start *s)
{
    const struct {
        const char *name;
        int value;
    } variables[] = {
        { "RADDLE_FD", JOB_FD },
        { "RADDLE_RANK", s->rank },
        { "RADDLE_WORLD_SIZE", s->options->ranks },
        { "RANK", s->rank },
        { "WORLD_SIZE", s->options->ranks },
        { "LOCAL_RANK", s->rank },
        { "LOCAL_WORLD_SIZE", s->options->ranks },
    };

    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (set_number(variables[i].name, variables[i].value) != 0)
            return -1;
    return 0;
}

/* dup2 also clears close-on-exec, but not when both are the same. */
static int move_fd(int from, int to)
{
    if (from == to)
        return fcntl(from, F_SETFD, 0);
    return dup2(from, to) < 0 ? -1 : 0;
}

static int open_nothing_as_stdin(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return -1;
    return dup2(fd, STDIN_FILENO) < 0 ? -1 : 0;
}

/* All else that is open is close-on-exec. *report moves out of the way. */
static int set_descriptors(const rank_start *s, int *report)
{
    *report = fcntl(*report, F_DUPFD_CLOEXEC, JOB_FD + 1);
    if (*report < 0 || (s->rank != 0 && open_nothing_as_stdin() != 0) ||
        move_fd(s->stdout_end, STDOUT_FILENO) != 0 ||
        move_fd(s->stderr_end, STDERR_FILENO) != 0 ||
        move_fd(s->job_fd, JOB_FD) != 0)
        return -1;
    return setrlimit(RLIMIT_NOFILE, &s->descriptors);
}

static void reset_signals(void)
{
    sigset_t none;

    signal(SIGPIPE, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

_Noreturn static void become_rank(const rank_start *s, int report, pid_t keeper)
{
    start_failure failure = { .at_exec = false };

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != keeper) /* it died before that could tell us */
        _exit(1);
    if (set_descriptors(s, &report) == 0 && set_environment(s) == 0) {
        reset_signals();
        failure.at_exec = true;
        execve(s->options->path, s->options->argv, environ);
    }
    failure.error = errno;
    if (report >= 0 && write(report, &failure, sizeof failure) < 0)
        _exit(1);
    _exit(1);
}

pid_t start_rank(const rank_start *s, int *report)
{
    pid_t keeper = getpid();
    int fd[2], error;
    pid_t pid;

    if (pipe2(fd, O_CLOEXEC | O_NONBLOCK) != 0)
        return -1;
    pid = fork();
    if (pid == 0)
        become_rank(s, fd[1], keeper);
    error = errno;
    close(fd[1]);
    if (pid < 0) {
        close(fd[0]);
        errno = error;
        return -1;
    }
    *report = fd[0];
    return pid;
}
