/* The roster: who has joined one life of a job. Kept by the launcher, else by the
 * first rank that comes. It owns the arena's descriptor and decides who may have
 * it.
 *
 * Threads: one. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BASE_ROSTER_H
#define RDL_BASE_ROSTER_H

#include "base/arena.h"
#include "base/message.h"

typedef struct rdl_roster {
    rdl_arena arena;
    int size;
    rdl_process self;
    rdl_process *members; /* pid 0: not yet admitted */
} rdl_roster;

/* Makes the arena. */
rdl_status rdl_roster_init(rdl_roster *roster, int size);
void rdl_roster_fini(rdl_roster *roster);

/* Whether who says hello may join. On RDL_OK it is on the roster and gets the
 * arena; else the sentence says why not, and if the job cannot succeed any more
 * (sizes or versions that differ) all who have joined are told. */
rdl_status rdl_roster_admit(rdl_roster *roster, const rdl_hello *hello);

/* Admits or not, and answers on socket. Only a failure to answer is a failure. */
rdl_status rdl_roster_answer(rdl_roster *roster, const rdl_hello *hello,
                             int socket);

/* Sends a refusal: status and the calling thread's sentence. hello: NULL if none could
 * be read. */
rdl_status rdl_roster_refuse(int socket, const rdl_hello *hello,
                             rdl_status status);

/* Whether all who were admitted and have not joined still run. RDL_PEER. */
rdl_status rdl_roster_check(const rdl_roster *roster);

bool rdl_arena_has_joined(const rdl_arena *arena, int rank);

/* How many slices are joined (or were). */
int rdl_arena_joined(const rdl_arena *arena);

/* "3 of 4 joined, missing rank 3" */
void rdl_arena_missing(const rdl_arena *arena, char *text, size_t bytes);

#endif
