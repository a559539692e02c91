/* What `raddle run` was asked to do. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_CLI_RUN_H
#define RDL_CLI_RUN_H

#include <stdbool.h>
#include <stdint.h>

typedef struct run_options {
    int ranks;
    int64_t grace_ms; /* from SIGTERM to SIGKILL */
    bool prefix;      /* lines begin with the rank */
    char *path;       /* of the program */
    char **argv;      /* of the program, as typed; ended by NULL */
} run_options;

/* Who says the sentences of all that belongs to this command. */
#define RUN "raddle run"

#endif
