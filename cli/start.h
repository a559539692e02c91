/* Starting one rank: fork, and in the child everything up to exec. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_CLI_START_H
#define RDL_CLI_START_H

#include "run.h"

#include <sys/resource.h>
#include <sys/types.h>

typedef struct rank_start {
    const run_options *options;
    int rank;
    int job_fd;     /* its end of the job's socket */
    int stdout_end; /* its ends of the pipes it prints to */
    int stderr_end;
    struct rlimit descriptors; /* as they were when the command was started */
} rank_start;

/* What a child that cannot become its program leaves in the pipe. */
typedef struct start_failure {
    int error;
    bool at_exec; /* else while preparing for it */
} start_failure;

/* Forks. The child is killed when the calling process dies. *report becomes a
 * descriptor from which either a start_failure can be read, or the end of the
 * file once the program runs. -1 with errno set on failure. */
pid_t start_rank(const rank_start *s, int *report);

#endif
