/* The launcher: the process that the user started. It makes the keeper, passes
 * signals on to it, and cleans up should the keeper be killed. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_CLI_LAUNCHER_H
#define RDL_CLI_LAUNCHER_H

#include "run.h"

/* Runs the job; returns the exit status. */
int launch(const run_options *options);

#endif
