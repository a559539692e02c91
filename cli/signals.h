/* The signals that end a job: SIGINT, SIGTERM, SIGHUP and SIGQUIT.
 *
 * What was ignored when the command was started stays so: SIGHUP altogether (as
 * nohup wants it), the others when the terminal sends them (as shells want it for
 * what runs in the background); one that somebody sends on purpose counts. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_CLI_SIGNALS_H
#define RDL_CLI_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <sys/signalfd.h>

typedef struct ending_signals {
    sigset_t ending;
    sigset_t ignored;
} ending_signals;

/* Learns what was ignored; makes this process one that can wait for children and
 * write to closed pipes. */
void ending_signals_init(ending_signals *s);

/* Blocks them and SIGCHLD (with all: every signal), and returns a descriptor
 * from which they are read without blocking; -1 with errno set. */
int ending_signals_open(const ending_signals *s, bool all);

/* The next that came in, leaving aside those to be ignored; false: none. */
bool ending_signals_next(const ending_signals *s, int fd,
                         struct signalfd_siginfo *out);

/* What to send to ranks for number: they ignore what we were told to ignore. */
int ending_signals_for_ranks(const ending_signals *s, int number);

#endif
