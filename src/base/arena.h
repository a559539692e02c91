/* The arena: one nameless file per job and host, mapped once by each process.
 *
 * Threads: any; a mapping is freed when its last holder releases it. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BASE_ARENA_H
#define RDL_BASE_ARENA_H

#include "base/layout.h"
#include "base/os.h"
#include "base/status.h"

typedef struct rdl_arena {
    rdl_header *header;
    unsigned char *base;
    size_t bytes;
    int size; /* ranks */
    int fd;   /* for reserving and counting; the arena's */
    uint64_t device, inode;
} rdl_arena;

/* Makes the file for size ranks and reserves and fills its header. The caller
 * owns *fd. */
rdl_status rdl_arena_make(int size, int *fd);

/* Maps the file and checks that it is an arena of ours; takes fd on success.
 * RDL_FORMAT: it is not. */
rdl_status rdl_arena_map(rdl_arena *arena, int fd);
/* The same for one who only looks: nothing can be written. */
rdl_status rdl_arena_map_to_read(rdl_arena *arena, int fd);
void rdl_arena_unmap(rdl_arena *arena);

static inline rdl_slice *rdl_arena_slice(const rdl_arena *arena, int rank)
{
    return (rdl_slice *)(void *)(arena->base + RDL_HEADER_BYTES +
                                 (size_t)rank * RDL_SLICE_BYTES);
}

/* The page of rank's slice on which it says how it fares. */
rdl_status rdl_arena_reserve_state(const rdl_arena *arena, int rank);

/* Writes down why the start failed, once; the first cause stays. */
void rdl_arena_fail_start(rdl_arena *arena, rdl_status status,
                          const char *reason);

/* The launcher's word that rank is gone; text is cut to fit. Rings every bell. */
void rdl_arena_bury(rdl_arena *arena, int rank, const char *text);

#endif
