/* A job for the launcher. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_CLI_RUN_H
#define RDL_CLI_RUN_H

#include <stdbool.h>
#include <stdint.h>

/* Which lines begin with their rank. */
typedef enum run_prefix {
    PREFIX_ALL,
    PREFIX_NONE,
    PREFIX_OTHERS /* not those of rank 0, which writes to what is ours itself */
} run_prefix;

typedef struct run_options {
    const char *who; /* says our sentences: "raddle run" */
    int ranks;
    int64_t grace_ms; /* from SIGTERM to SIGKILL */
    run_prefix prefix;
    const char *log_dir; /* for what ranks print; NULL: none */
    const char *dump;    /* for what ranks did last; NULL: none */
    char *path;          /* of the program */
    char **argv;         /* of the program, as typed; ended by NULL */
} run_options;

#endif
