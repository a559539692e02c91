/* The account: what a rank has taken, in bytes and pieces.
 *
 * Threads: any; the numbers are read one after another, not at one instant. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RADDLE_ACCOUNT_H
#define RADDLE_ACCOUNT_H

#include <raddle/status.h>
#include <raddle/world.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of the arena, by what they are for. */
typedef struct rdl_account_arena {
    uint64_t header; /* of the whole: who we are, and who is dead; 0 of a rank */
    uint64_t state;  /* how each rank fares, and its table of groups */
    uint64_t slots;  /* of groups in use */
    uint64_t texts;  /* rank lists, names, call sites, sentences */
    uint64_t records; /* what each rank did last */
    uint64_t staging; /* data on its way */
    uint64_t heap;    /* what rdl_mem_alloc gave */
} rdl_account_arena;

typedef struct rdl_account {
    uint64_t groups_opened; /* successful rdl_group_open calls of this rank */
    uint64_t groups_open;   /* of these, lanes open now (RDL_WORLD included) */
    uint64_t communicators; /* distinct lists of more than one rank, this rank in
                                them, that are open or still hold a slot */
    uint64_t lanes;         /* list and name: slots of this rank in use */
    uint64_t arena_bytes_rank;  /* reserved in this rank's slice of the arena,
                                   without its heap */
    uint64_t arena_bytes_total; /* of the whole arena, as the kernel counts them:
                                   st_blocks * 512 */
    uint64_t dev_shm_bytes;     /* in /dev/shm: always 0 */
    uint64_t descriptors;       /* held by this world */
    uint64_t threads;           /* of its streams, and its host's helper */
    uint64_t collectives;       /* operations that ended with RDL_OK */
    uint64_t heap_bytes; /* reserved for rdl_mem_alloc of this rank, what was freed
                            under a pending operation included */
    uint64_t heap_bytes_peak; /* the most of these there ever were */
    uint64_t collectives_mapped; /* operations that read their members' memory where
                                    it lies, in one copy (raddle/memory.h) */
    rdl_account_arena arena_rank; /* without the heap arena_bytes_rank in sum */
    rdl_account_arena arena_total; /* of all ranks: arena_bytes_total in sum */
    uint64_t page_table_bytes; /* of this process for the arena, and for a heap of the
                                  world's own; ranks of one process share them, and
                                  each counts them */
    uint64_t private_bytes; /* allocated by this world: groups, works, streams,
                                  units of FSDP, with what the library adds to each */
    uint64_t host_bytes; /* by its host; worlds that share it each count it */
} rdl_account;

RDL_CALL rdl_status rdl_account_read(rdl_world *world, rdl_account *out);

#ifdef __cplusplus
}
#endif
#endif
