/* The keeper: the launcher's child that owns the job. It starts the ranks, serves
 * the job's socket, carries their output, and ends what is to be ended. When the
 * launcher dies, the keeper ends everything and itself, silently. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_CLI_KEEPER_H
#define RDL_CLI_KEEPER_H

#include "run.h"
#include "signals.h"

typedef struct keeper_ends {
    int launcher; /* its pidfd */
    int orders; /* from it: one byte for each signal that it got, its number */
    const ending_signals *signals;
} keeper_ends;

/* Runs the job; returns the exit status. */
int keep(const run_options *options, const keeper_ends *ends);

/* How long processes that got SIGKILL are waited for; the kernel ends them
 * within milliseconds unless it is stuck with them. */
#define KILL_WAIT_MS 30000

/* Milliseconds of a clock that only goes forward. */
int64_t clock_ms(void);

#endif
