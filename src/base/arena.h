/* The arena: one nameless file per job and host, mapped once by each process.
 *
 * Threads: any; a mapping is freed when its last holder releases it. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BASE_ARENA_H
#define RDL_BASE_ARENA_H

#include "base/layout.h"
#include "base/os.h"
#include "base/pieces.h"
#include "base/status.h"

typedef struct rdl_arena {
    rdl_header *header;
    unsigned char *base;
    size_t bytes;         /* of header and slices */
    unsigned char *heaps; /* NULL: not mapped, as there is no room */
    size_t heap_bytes;    /* of each rank, behind the slices */
    int size;             /* ranks */
    int fd;               /* for reserving and counting; the arena's */
    uint64_t device, inode;
    rdl_pieces pieces;      /* of header and slices */
    rdl_pieces heap_pieces; /* of the heaps */
} rdl_arena;

/* Makes the file for size ranks, with heaps as large as the limit of files allows,
 * and reserves and fills its header. The caller owns *fd. */
rdl_status rdl_arena_make(int size, int *fd);

/* Checks that the file is an arena of ours, and maps it, the heaps only where they
 * leave this process address space enough; takes fd on success. RDL_FORMAT: it is
 * none. */
rdl_status rdl_arena_map(rdl_arena *arena, int fd);
/* The same for one who only looks: nothing can be written, and heaps are left out. */
rdl_status rdl_arena_map_to_read(rdl_arena *arena, int fd);
void rdl_arena_unmap(rdl_arena *arena);

/* For a forked child, which has no mapping: frees what was noted of it. */
void rdl_arena_forget_pieces(rdl_arena *arena);

/* Reserved of the header. */
size_t rdl_arena_header_bytes(const rdl_arena *arena);

static inline rdl_slice *rdl_arena_slice(const rdl_arena *arena, int rank)
{
    return (rdl_slice *)(void *)(arena->base + RDL_HEADER_BYTES +
                                 (size_t)rank * RDL_SLICE_BYTES);
}

/* The page of rank's slice on which it says how it fares; before it is let in. */
rdl_status rdl_arena_reserve_state(const rdl_arena *arena, int rank);

/* The word of a rank that cannot map the arena: it gives up, with its reason, through
 * the file alone. What is no sealed memory file is left as it is. */
void rdl_arena_write_failure(int fd, int rank, rdl_status status,
                             const char *reason);

/* Writes down why the start failed, once; the first cause stays. */
void rdl_arena_fail_start(rdl_arena *arena, rdl_status status,
                          const char *reason);

/* The launcher's word that rank is gone; text is cut to fit. Rings every bell. */
void rdl_arena_bury(rdl_arena *arena, int rank, const char *text);

#endif
