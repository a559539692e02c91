/* Pieces of mappings. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/pieces.h"

#include "base/layout.h"
#include "base/memory.h"

#define IN_TABLE 512 /* entries of a page of tables */

void rdl_pieces_init(rdl_pieces *pieces, const void *mapping, size_t bytes)
{
    uintptr_t from = (uintptr_t)mapping >> RDL_PIECE_SHIFT;
    uintptr_t to = ((uintptr_t)mapping + bytes - 1) >> RDL_PIECE_SHIFT;

    *pieces = (rdl_pieces){ .first = from };
    if (bytes == 0)
        return;
    pieces->touched = rdl_calloc((to - from + 64) / 64, sizeof *pieces->touched);
    if (pieces->touched != NULL)
        pieces->count = to - from + 1;
}

void rdl_pieces_fini(rdl_pieces *pieces)
{
    rdl_free(pieces->touched);
    *pieces = (rdl_pieces){ 0 };
}

void rdl_pieces_note(rdl_pieces *pieces, size_t piece)
{
    atomic_fetch_or_explicit(&pieces->touched[piece / 64],
                             UINT64_C(1) << piece % 64, memory_order_relaxed);
}

/* A table of the second level is there if one of those below it is. */
uint64_t rdl_pieces_tables(const rdl_pieces *pieces)
{
    uintptr_t above = UINTPTR_MAX;
    uint64_t tables = 0;

    for (size_t i = 0; i < pieces->count; i++) {
        uint64_t word = atomic_load_explicit(&pieces->touched[i / 64],
                                             memory_order_relaxed);

        if (word == 0)
            i |= 63;
        if ((word >> i % 64 & 1) == 0)
            continue;
        if ((pieces->first + i) / IN_TABLE != above)
            tables++;
        above = (pieces->first + i) / IN_TABLE;
        tables++;
    }
    return tables * RDL_PAGE;
}
