/* The store: how the ranks of one host meet, without a port, a name in the file
 * system, or DNS.
 *
 * Under `raddle run` each rank has a connected socket to the launcher. Else the
 * first rank that comes binds a Unix socket (base/meeting.h), keeps the roster and
 * hands the arena to the others until all have joined; then the name is free again.
 *
 * Threads: one. Every wait ends at the deadline. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BASE_STORE_H
#define RDL_BASE_STORE_H

#include "base/place.h"
#include "base/roster.h"

typedef struct rdl_store {
    const rdl_place *place; /* the opener's, which lives as long */
    int listener;           /* -1 unless we keep the roster */
    rdl_roster roster;
} rdl_store;

/* Gets the arena: *fd is the caller's. Close the store on success only. */
rdl_status rdl_store_open(rdl_store *store, const rdl_place *place,
                          rdl_deadline deadline, int *fd);

/* For about that long: answers those who come, or sleeps. A failure is one of this
 * rank, which then can take nobody in. */
rdl_status rdl_store_serve(rdl_store *store, rdl_time most);

/* Whether those who got the arena from us and have not joined are still there.
 * RDL_PEER. */
rdl_status rdl_store_check(const rdl_store *store);

void rdl_store_close(rdl_store *store);

#endif
