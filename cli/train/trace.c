/* A line on standard error for each collective.
 *
 * The number and the rank stand in front, and what must be the same on all ranks
 * of the group behind the colon, so that two ranks can be compared by cutting
 * their lines there. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/job.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

static void print_event(void *arg, const rdl_trace_event *e)
{
    train_job *j = arg;
    char line[1024];
    int n = snprintf(line, sizeof line,
                     "collective %" PRIu64 " of rank %d: group=%s lane=%s "
                     "caller=%s operation=%s dtype=%s bytes=%zu stream=%s\n",
                     ++j->seen, j->rank, e->group,
                     e->lane[0] != '\0' ? e->lane : "default",
                     e->caller[0] != '\0' ? e->caller : "-", e->operation,
                     e->dtype, e->bytes, e->stream);

    /* One write, so that lines of threads and ranks do not mix. */
    if (n > 0 && write(STDERR_FILENO, line,
                       (size_t)n < sizeof line ? (size_t)n : sizeof line) < 0)
        return;
}

bool job_trace(train_job *j)
{
    j->trace = (rdl_trace){ .see = print_event, .arg = j };
    return job_ok(j, rdl_world_trace(j->world, &j->trace), NULL);
}
