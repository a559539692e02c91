/* Starting the keeper, and watching over it. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher.h"

#include "children.h"
#include "command.h"
#include "keeper.h"
#include "say.h"
#include "signals.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define SWEEP_TICK_MS 100

typedef struct launcher {
    const char *who;
    ending_signals signals;
    int signal_fd;
    pid_t keeper;
    int keeper_fd;
    int orders;
    /* Children from before: whoever started us by exec had them. */
    pid_list strangers;
} launcher;

/* A standard descriptor that is closed would be given to something of ours. */
static void fill_standard_descriptors(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO)
        close(fd);
}

/* Descriptors that were open in whoever started us are not the ranks' business,
 * nor ours. Old kernels and some sandboxes have no close_range. */
static void close_inherited(void)
{
    struct rlimit limit;

    if (close_range(STDERR_FILENO + 1, ~0U, 0) == 0)
        return;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        limit.rlim_cur = 1024;
    for (int fd = STDERR_FILENO + 1; fd < (int)limit.rlim_cur; fd++)
        close(fd);
}

/* Standard input is rank 0's; holding it too would keep its writer waiting. */
static void leave_stdin(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return;
    dup2(fd, STDIN_FILENO);
    close(fd);
}

static int fail(const launcher *l, const char *what)
{
    say(l->who, "%s: %s (%s)", what, strerror(errno), strerrorname_np(errno));
    return STATUS_FAILED;
}

/* In the child. Never returns to the launcher's code. */
_Noreturn static void be_keeper(const run_options *options, const launcher *l,
                                int launcher_fd, const int orders[2])
{
    keeper_ends ends = { .launcher = launcher_fd,
                         .orders = orders[0],
                         .signals = &l->signals };

    close(orders[1]);
    close(l->signal_fd);
    prctl(PR_SET_NAME, "raddle-keeper");
    exit(keep(options, &ends));
}

static int start_keeper(launcher *l, const run_options *options)
{
    int launcher_fd = pidfd_open(getpid(), 0);
    int orders[2];

    if (launcher_fd < 0)
        return fail(l, "cannot watch over processes (pidfd_open, Linux 5.3)");
    if (pipe2(orders, O_CLOEXEC | O_NONBLOCK) != 0)
        return fail(l, "cannot make a pipe");
    l->keeper = fork();
    if (l->keeper < 0)
        return fail(l, "cannot start the keeper of the job");
    if (l->keeper == 0)
        be_keeper(options, l, launcher_fd, orders);
    close(launcher_fd);
    close(orders[0]);
    l->orders = orders[1];
    /* Not reaped yet, so the number is still the keeper's. */
    l->keeper_fd = pidfd_open(l->keeper, 0);
    leave_stdin();
    return 0;
}

static void pass_signals_on(const launcher *l)
{
    struct signalfd_siginfo signal;

    while (ending_signals_next(&l->signals, l->signal_fd, &signal)) {
        unsigned char number = (unsigned char)signal.ssi_signo;

        /* A keeper that cannot be told has ended, which is seen next. */
        if (number != SIGCHLD && write(l->orders, &number, 1) < 0)
            return;
    }
}

/* Reaps whoever has ended; true once the keeper is among them. */
static bool reap(const launcher *l, int *keeper_status)
{
    bool ended = false;
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        if (pid == l->keeper) {
            *keeper_status = status;
            ended = true;
        }
    return ended;
}

static int wait_for_keeper(const launcher *l)
{
    struct pollfd polled[] = {
        { .fd = l->signal_fd, .events = POLLIN },
        { .fd = l->keeper_fd, .events = POLLIN },
    };
    int status = 0;

    while (!reap(l, &status)) {
        poll(polled, 2, -1);
        pass_signals_on(l);
    }
    return status;
}

/* The keeper was killed: its children are ours now. Each death may bring its
 * orphans, so this goes on until there is nobody. */
static bool sweep(const launcher *l)
{
    struct pollfd polled = { .fd = l->signal_fd, .events = POLLIN };
    struct signalfd_siginfo signal;
    int64_t end = clock_ms() + KILL_WAIT_MS;
    int status;

    for (;;) {
        int left;

        reap(l, &status);
        left = children_kill(&l->strangers);
        if (left == 0)
            return true;
        if (left < 0 || clock_ms() > end)
            return false;
        poll(&polled, 1, SWEEP_TICK_MS);
        while (ending_signals_next(&l->signals, l->signal_fd, &signal))
            ;
    }
}

static int end_without_keeper(const launcher *l, int status)
{
    char how[ENDING_MOST];
    bool clean = sweep(l);

    describe_ending(how, status);
    say(l->who, "the keeper of the job (process %d) was %s; %s", (int)l->keeper,
        how,
        clean ? "all processes of the job have been ended"
              : "some processes of the job could not be ended");
    return code_of_ending(status);
}

static int run_keeper(launcher *l, const run_options *options)
{
    int status;

    l->signal_fd = ending_signals_open(&l->signals, false);
    if (l->signal_fd < 0)
        return fail(l, "cannot wait for signals");
    status = start_keeper(l, options);
    if (status != 0)
        return status;
    status = wait_for_keeper(l);
    return WIFSIGNALED(status) ? end_without_keeper(l, status)
                               : WEXITSTATUS(status);
}

int launch(const run_options *options)
{
    launcher l = { .who = options->who, .keeper = -1 };
    int status;

    fill_standard_descriptors();
    close_inherited();
    ending_signals_init(&l.signals);
    if (!children_list(&l.strangers))
        l.strangers.count = 0;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    status = run_keeper(&l, options);
    pid_list_free(&l.strangers);
    return status;
}
