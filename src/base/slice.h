/* The owner's side of a slice: taking slots, texts and staging of one's own part
 * of the arena, and giving them back. All bookkeeping is private; peers only read
 * what is published.
 *
 * Threads: any; one lock, never held while waiting. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BASE_SLICE_H
#define RDL_BASE_SLICE_H

#include "base/arena.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/status.h"

#include <pthread.h>
#include <stdbool.h>

#define RDL_STAGING_UNITS 8
#define RDL_TEXT_CLASSES 8 /* 64 bytes to 8 KiB */

typedef struct rdl_shelf {
    rdl_arena *arena;
    rdl_slice *slice;
    int rank;
    uint32_t records;     /* of the recorder's ring */
    pthread_mutex_t lock; /* protects all below */
    uint32_t slots_most;  /* the option */
    uint32_t slots_ready; /* reserved so far */
    uint32_t slots_used;  /* handed out at least once */
    uint32_t *slots_free;
    uint32_t n_free;
    size_t texts_ready;
    size_t texts_used;
    uint32_t texts_free[RDL_TEXT_CLASSES]; /* heads of lists in the texts */
    size_t lease_bytes;    /* of the staging: what is leased; then come nooks */
    uint32_t staging_busy; /* a bit for each unit */
    uint32_t n_nooks;
    uint64_t nooks_busy; /* a bit for each */
} rdl_shelf;

/* Reserves what rank needs at once of its slice, after a look at the limits of
 * memory, and fills it; records: places for the recorder's ring. Private memory is the
 * purse's. On failure nothing is held. */
rdl_status rdl_shelf_init(rdl_shelf *shelf, rdl_arena *arena, int rank,
                          size_t staging_bytes, int slots, int records,
                          rdl_purse *purse);
void rdl_shelf_fini(rdl_shelf *shelf);

/* --- slots ----------------------------------------------------------------- */

typedef struct rdl_slot_ref {
    rdl_slot *slot;
    uint32_t index;
    uint32_t tag;
} rdl_slot_ref;

/* A free slot, filled with key, name and the text of the list, and named in the
 * table. RDL_AGAIN: none is free, or no room for the list. RDL_NO_MEMORY: the arena
 * cannot grow. */
rdl_status rdl_shelf_take_slot(rdl_shelf *shelf, rdl_key key, uint64_t name,
                               const void *list, size_t list_bytes,
                               rdl_slot_ref *out);
void rdl_shelf_give_slot(rdl_shelf *shelf, const rdl_slot_ref *ref);

/* --- texts ----------------------------------------------------------------- */

/* Copies bytes (to 8 KiB less 8) into the slice; returns the offset that peers
 * read, 0 if there is no room. */
uint32_t rdl_shelf_put_text(rdl_shelf *shelf, const void *data, size_t bytes);

/* Writes bytes over a text of as many; no peer that goes by it reads it now. */
void rdl_shelf_change_text(rdl_shelf *shelf, uint32_t offset, const void *data,
                           size_t bytes);

/* A peer's text, or one's own: at most most bytes into data. Returns its length,
 * 0 if it makes no sense. The owner may be changing it meanwhile: check the
 * slot's tag after. */
size_t rdl_slice_read_text(rdl_slice *slice, uint32_t offset, void *data,
                           size_t most);

/* Why the slice's rank gave up: its status, never RDL_OK, and its sentence, one line
 * that ends, whatever is written there. */
rdl_status rdl_slice_read_failure(const rdl_slice *slice,
                                  char reason[RDL_REASON]);

/* --- staging --------------------------------------------------------------- */

/* Bytes of all of it: what is leased, and the nooks. */
static inline size_t rdl_shelf_staging(const rdl_shelf *shelf)
{
    return shelf->lease_bytes + shelf->n_nooks * RDL_NOOK_BYTES;
}

/* A part of this rank's staging, for one operation. bytes is 0 if all is taken:
 * the operation then goes through the lines alone. */
typedef struct rdl_lease {
    uint64_t offset; /* in the slice */
    uint32_t bytes;
    uint32_t units; /* which */
} rdl_lease;

/* Never waits. Takes at most half of what is free, and at least a unit. */
rdl_lease rdl_shelf_take_lease(rdl_shelf *shelf, size_t wish);
void rdl_shelf_give_lease(rdl_shelf *shelf, rdl_lease lease);

/* A nook's offset in the slice; 0: none is free. Never waits. */
uint64_t rdl_shelf_take_nook(rdl_shelf *shelf);
void rdl_shelf_give_nook(rdl_shelf *shelf, uint64_t offset);

/* Bytes of the slice, all but the heap. */
uint64_t rdl_shelf_reserved(const rdl_shelf *shelf);

#endif
