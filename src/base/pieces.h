/* Which pieces of a shared mapping this process has touched, and so what it has of
 * page tables for it. The kernel says how much of those a process has, not what for.
 *
 * A piece is what one page of the lowest tables covers. A table stays until the
 * mapping goes, also when its pages have gone before.
 *
 * Threads: any. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BASE_PIECES_H
#define RDL_BASE_PIECES_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define RDL_PIECE_SHIFT 21 /* 512 pages of 4 KiB */

/* All zero is the pieces of nothing. */
typedef struct rdl_pieces {
    uintptr_t first;           /* piece of the address space */
    size_t count;              /* 0: there was no memory to note them */
    _Atomic uint64_t *touched; /* a bit each */
} rdl_pieces;

/* Of the mapping; none is touched. Without memory the account says less. */
void rdl_pieces_init(rdl_pieces *pieces, const void *mapping, size_t bytes);
void rdl_pieces_fini(rdl_pieces *pieces);

void rdl_pieces_note(rdl_pieces *pieces, size_t piece);

/* These bytes are touched, or will be in a moment. What lies outside of the mapping is
 * passed over. */
static inline void rdl_pieces_touch(rdl_pieces *pieces, const void *at,
                                    size_t bytes)
{
    uintptr_t from = (uintptr_t)at;
    size_t piece = (from >> RDL_PIECE_SHIFT) - pieces->first;
    size_t last = ((from + bytes - 1) >> RDL_PIECE_SHIFT) - pieces->first;

    for (; bytes > 0 && piece <= last && piece < pieces->count; piece++)
        if ((atomic_load_explicit(&pieces->touched[piece / 64],
                                  memory_order_relaxed) >>
                 piece % 64 &
             1) == 0)
            rdl_pieces_note(pieces, piece);
}

/* Bytes of the two lowest levels of page tables. */
uint64_t rdl_pieces_tables(const rdl_pieces *pieces);

#endif
