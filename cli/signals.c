/* Blocking, reading and sorting out the signals that end a job. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "signals.h"

#include <stddef.h>
#include <unistd.h>

static const int all_ending[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };

void ending_signals_init(ending_signals *s)
{
    sigemptyset(&s->ending);
    sigemptyset(&s->ignored);
    for (size_t i = 0; i < sizeof all_ending / sizeof *all_ending; i++) {
        struct sigaction now;

        sigaddset(&s->ending, all_ending[i]);
        if (sigaction(all_ending[i], NULL, &now) == 0 &&
            now.sa_handler == SIG_IGN)
            sigaddset(&s->ignored, all_ending[i]);
    }
    if (sigismember(&s->ignored, SIGHUP))
        sigdelset(&s->ending, SIGHUP);
    /* Whoever started us with SIGCHLD ignored would take our children's ends. */
    signal(SIGCHLD, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
}

int ending_signals_open(const ending_signals *s, bool all)
{
    sigset_t wanted = s->ending, blocked;

    sigaddset(&wanted, SIGCHLD);
    sigfillset(&blocked);
    sigprocmask(SIG_SETMASK, all ? &blocked : &wanted, NULL);
    return signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
}

bool ending_signals_next(const ending_signals *s, int fd,
                         struct signalfd_siginfo *out)
{
    while (read(fd, out, sizeof *out) == (ssize_t)sizeof *out)
        if (!sigismember(&s->ignored, (int)out->ssi_signo) ||
            out->ssi_code != SI_KERNEL)
            return true;
    return false;
}

int ending_signals_for_ranks(const ending_signals *s, int number)
{
    return sigismember(&s->ignored, number) ? SIGTERM : number;
}
