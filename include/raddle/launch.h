/* Jobs: the launcher's side of a world, for programs that start ranks (`raddle
 * run` is one). A job holds one connected socket for each rank, makes the arena
 * when the first rank asks, and hands it out. Nothing has a name in the system.
 *
 * A launcher gives rank r the descriptor rdl_job_rank_fd(job, r), inherited
 * across exec, and these variables: RADDLE_FD (that descriptor's number in the
 * child), RADDLE_RANK, RADDLE_WORLD_SIZE. It then calls rdl_job_serve whenever
 * rdl_job_poll_fd is readable.
 *
 * Threads: one at a time per job.
 * Ownership: the job owns every descriptor it shows. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RADDLE_LAUNCH_H
#define RADDLE_LAUNCH_H

#include <raddle/status.h>
#include <raddle/world.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rdl_job rdl_job;

#define RDL_FAILURE_TEXT 1024
#define RDL_ANY_RANK (-1)

typedef enum rdl_member_state {
    RDL_MEMBER_ABSENT, /* has not said hello */
    RDL_MEMBER_JOINED, /* a process of this rank has the arena */
    RDL_MEMBER_LEFT,   /* it closed its world */
    RDL_MEMBER_DEAD    /* it ended without closing its world */
} rdl_member_state;

typedef struct rdl_member {
    rdl_member_state state;
    bool closed; /* no process has its socket any more: it can join no world */
    bool echoes; /* it had been told of another's failure before it ended */
    const char *reason; /* why it gave up (rdl_world_abort), NULL if it did not;
                           until the next call on the job */
    int64_t pid; /* of the process that joined; 0 if none did. It need not
                           be the launcher's child: a shell may stand between */
} rdl_member;

/* What one of a rank's groups failed with; of several what tells most. */
typedef struct rdl_failure {
    rdl_status status;               /* RDL_OK: none has */
    char sentence[RDL_FAILURE_TEXT]; /* as the rank's calls gave it; "" if it had
                                        no room for it */
} rdl_failure;

typedef enum rdl_last_state {
    RDL_LAST_NONE,    /* it has made no call */
    RDL_LAST_ISSUED,  /* behind others of its group */
    RDL_LAST_RUNNING, /* under way */
    RDL_LAST_WAITING, /* asleep for another rank */
    RDL_LAST_ENDED
} rdl_last_state;

/* A rank's call that waits, else that is under way, else the last that ended. The
 * texts hold no control characters. */
typedef struct rdl_last {
    rdl_last_state state;
    rdl_status status; /* of one that has ended */
    int peer;          /* world rank that it waits or waited for; -1: none */
    uint64_t number;   /* of the call on its group, from 1; 0: not begun */
    double seconds;    /* since it was issued or, ended, since then */
    char call[96];     /* "all_reduce(4096 float32)" */
    char group[256];   /* "group 'dp' [0,1]" */
    char site[192];    /* where the program makes it; "": not known */
} rdl_last;

/* size: 1..RDL_MAX_RANKS. All descriptors are close-on-exec.
 * RDL_INVALID, RDL_NO_MEMORY, RDL_SYSTEM (with the limit on descriptors, if that
 * is what was met). */
RDL_CALL rdl_status rdl_job_create(int size, rdl_job **out);

/* Frees the job; the arena lives on while ranks have it mapped. NULL is allowed. */
RDL_API void rdl_job_destroy(rdl_job *job);

/* The rank's end of its socket, -1 once rdl_job_started was called for it. */
RDL_API int rdl_job_rank_fd(const rdl_job *job, int rank);

/* The launcher has forked rank: its end is closed here. */
RDL_API void rdl_job_started(rdl_job *job, int rank);

/* One descriptor that is readable when rdl_job_serve has something to do. */
RDL_API int rdl_job_poll_fd(const rdl_job *job);

/* Answers what has come in, and notices the deaths of processes that joined;
 * their peers' waits end with RDL_PEER. Never blocks. Wrong messages are answered
 * with a sentence and are no failure of the job. */
RDL_CALL rdl_status rdl_job_serve(rdl_job *job);

/* Says that rank has ended (its process was reaped) as text tells ("exit status
 * 7", "signal 9, Killed"): its peers' waits end with RDL_PEER and that text. */
RDL_API void rdl_job_rank_ended(rdl_job *job, int rank, const char *text);

/* The newest process of rank. RDL_INVALID if there is no such rank. */
RDL_CALL rdl_status rdl_job_member(const rdl_job *job, int rank,
                                   rdl_member *out);

/* Reads what rank's groups failed with, or why it gave up; with RDL_ANY_RANK, of
 * all ranks what tells most. It needs nothing of the rank, which may be stopped or
 * dead. Bytes of the sentence are the rank's own and may be anything. RDL_INVALID
 * if there is no such rank. */
RDL_CALL rdl_status rdl_job_failure(const rdl_job *job, int rank,
                                    rdl_failure *out);

/* Reads what rank did last from its recorder, likewise. RDL_INVALID if there is no
 * such rank. */
RDL_CALL rdl_status rdl_job_last(const rdl_job *job, int rank, rdl_last *out);

#ifdef __cplusplus
}
#endif
#endif
