/* A job: the ranks of raddle or of a peer, which wait for orders. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BENCH_SPEED_JOB_H
#define RDL_BENCH_SPEED_JOB_H

#include "speed.h"

typedef struct speed_job {
    speed_peer peer;
    int ranks;
    pid_t pid; /* of what started them, and of its process group; 0: none */
    int socket;
    int words; /* what they print */
    int fds[SPEED_RANKS_MOST];
    bool works;
    char why[256]; /* it does not work */
} speed_job;

/* Starts them at their best setting and waits until all are there. Whether it works
 * stands in the job: a peer that is not installed is no failure. */
void speed_job_start(speed_job *job, speed_peer peer, int ranks, int cores,
                     const speed_options *options);

/* Has all ranks do it. us: of each block the slowest rank's time; NULL: not wanted.
 * SPEED_BROKEN also ends the job. */
speed_outcome speed_job_do(speed_job *job, const speed_order *order, double *us,
                           char why[256]);

/* Ends what is left of it. */
void speed_job_end(speed_job *job);

#endif
