/* Dumps: what the ranks of a job did last, read from outside. Each rank keeps its
 * last calls in memory that it shares (rdl_host_options.records); whoever may look
 * at a process of the job can read those of all its ranks, while they run, are
 * stopped, or are dead. Nothing is asked of them, and nothing of theirs is changed.
 *
 * What is read is outside data: a rank that is wrong may have written anything. Texts
 * hold printable characters only, numbers may be any.
 * Threads: one at a time for each dump.
 * Ownership: who opens a dump closes it. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RADDLE_DUMP_H
#define RADDLE_DUMP_H

#include <raddle/launch.h>
#include <raddle/status.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rdl_dump rdl_dump;

/* The jobs whose memory process pid holds: of a rank, or of who started it. Several
 * ranks that are threads share one; a program that opens a world again, or several,
 * has several. RDL_INVALID: no such process. RDL_SYSTEM: it is another user's, or may
 * not be looked at. RDL_STATE: it holds none. RDL_MISMATCH: another version of raddle
 * made it. RDL_NO_MEMORY. */
RDL_CALL rdl_status rdl_dump_open(int64_t pid, rdl_dump **out);

/* NULL is allowed. */
RDL_API void rdl_dump_close(rdl_dump *dump);

/* How many jobs, and the ranks of one of them; 0 if there is no such job. */
RDL_API int rdl_dump_jobs(const rdl_dump *dump);
RDL_API int rdl_dump_size(const rdl_dump *dump, int job);

/* A number that tells the job from others of this machine, whoever looks. */
RDL_API uint64_t rdl_dump_id(const rdl_dump *dump, int job);

typedef struct rdl_dump_rank {
    rdl_member_state state;
    int64_t pid;     /* 0: no process has joined */
    uint64_t newest; /* the number of its last call; 0: it has made none, or keeps
                        none */
    uint64_t oldest;  /* of the first that can be read: those before are lost */
    char reason[448]; /* why it gave up (rdl_world_abort); "" */
} rdl_dump_rank;

/* RDL_INVALID: there is no such job or rank. */
RDL_CALL rdl_status rdl_dump_look(const rdl_dump *dump, int job, int rank,
                                  rdl_dump_rank *out);

typedef enum rdl_call_state {
    RDL_CALL_ISSUED = 1, /* has its place behind others of its group */
    RDL_CALL_RUNNING,
    RDL_CALL_WAITING, /* has slept */
    RDL_CALL_ENDED
} rdl_call_state;

typedef struct rdl_dump_call {
    uint64_t number; /* of this rank's calls, from 1 */
    double at;       /* seconds from when the rank joined to the call */
    double ago;      /* from the call to now */
    double took; /* until it ended; 0: without sleeping, or it has not ended */
    rdl_call_state state;
    rdl_status status; /* of one that has ended */
    int peer;          /* the world rank that it waits or waited for last; -1 */
    uint64_t call;  /* its number on the group, from 1; 0: it has not begun */
    uint64_t count; /* elements; of await the number of the awaited call */
    int root;       /* group rank; of a transfer the other's world rank */
    bool blocks;    /* the program's own thread is in it */
    const char *operation; /* "all_reduce", "send", "receive", "await" a work or a
                              batch, "synchronize" with a stream or an event; static */
    const char *dtype;     /* "float32"; "": it has none; static */
    const char *reduction; /* "sum"; ""; static */
    char what[128];        /* all that in words: "all_reduce(8 float32, sum)" */
    char group[256];       /* "group 'dp' [0,1]"; "": the rank has let it go */
    char stream[64];       /* its name; "": the caller's own thread */
    char site[192];        /* "train.c:120"; "": not known */
} rdl_dump_call;

/* Reads one call of that rank. RDL_AGAIN: it is lost, or just being written. */
RDL_CALL rdl_status rdl_dump_read(const rdl_dump *dump, int job, int rank,
                                  uint64_t number, rdl_dump_call *out);

#ifdef __cplusplus
}
#endif
#endif
