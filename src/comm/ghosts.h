/* Ghosts: the sequences of groups that have no slot any more. A program may use any
 * number of groups once, so each costs 24 bytes, and 6 at most to find it.
 *
 * The caller holds the lock that protects them. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_COMM_GHOSTS_H
#define RDL_COMM_GHOSTS_H

#include "base/hash.h"
#include "base/memory.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* All zero has none. */
typedef struct rdl_ghosts {
    rdl_purse *purse;
    void **blocks; /* of entries */
    uint32_t count;
    uint32_t *index; /* entry + 1; 0: none */
    uint32_t places; /* of the index */
} rdl_ghosts;

void rdl_ghosts_fini(rdl_ghosts *ghosts);

/* Where the lane of that key has stopped: its last phase and call, both of
 * RDL_SEQUENCE_BITS at most. */
typedef struct rdl_ghost {
    uint64_t sequence;
    uint64_t number;
} rdl_ghost;

/* Adds or replaces. RDL_NO_MEMORY leaves them as they were. */
rdl_status rdl_ghosts_put(rdl_ghosts *ghosts, rdl_key key, rdl_ghost ghost);

bool rdl_ghosts_get(const rdl_ghosts *ghosts, rdl_key key, rdl_ghost *out);

#endif
