/* Entries in blocks that never move, and an index of 32 bits each that grows by a
 * quarter: what is let go when it grows is used by the blocks that come next. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/ghosts.h"

#include "base/layout.h"

#include <inttypes.h>

#define IN_BLOCK 1024
#define GHOSTS_MOST (UINT32_C(1) << 31)
#define SEQUENCE_MOST ((UINT64_C(1) << RDL_SEQUENCE_BITS) - 1)

/* 112 bits of the key tell any number of groups apart that a program can have. */
typedef struct entry {
    uint64_t low;
    uint64_t middle; /* 48 bits of the key · 16 of the sequence */
    uint64_t rest;   /* 24 bits of the sequence · 40 of the number */
} entry;

_Static_assert(sizeof(entry) == 24 && RDL_SEQUENCE_BITS == 40,
               "two numbers of 40 bits and 112 of the key fill an entry");

static entry pack(rdl_key key, rdl_ghost ghost)
{
    return (entry){
        .low = key.low,
        .middle = key.high << 16 | (ghost.sequence >> 24 & 0xffff),
        .rest = ghost.sequence << 40 | (ghost.number & SEQUENCE_MOST),
    };
}

static rdl_ghost unpack(const entry *e)
{
    return (rdl_ghost){ .sequence = (e->middle & 0xffff) << 24 | e->rest >> 40,
                        .number = e->rest & SEQUENCE_MOST };
}

static bool is_same(const entry *a, const entry *b)
{
    return a->low == b->low && a->middle >> 16 == b->middle >> 16;
}

static entry *entry_at(const rdl_ghosts *ghosts, uint32_t i)
{
    entry *block = ghosts->blocks[i / IN_BLOCK];

    return &block[i % IN_BLOCK];
}

/* Where the search for an entry begins; places are as many as it takes. */
static uint32_t first_place(const rdl_ghosts *ghosts, const entry *e)
{
    return (uint32_t)((e->low >> 32) * ghosts->places >> 32);
}

/* The place of the entry, or the empty one where it would be. */
static uint32_t find_place(const rdl_ghosts *ghosts, const entry *e)
{
    uint32_t at = first_place(ghosts, e);

    while (ghosts->index[at] != 0 &&
           !is_same(entry_at(ghosts, ghosts->index[at] - 1), e))
        at = at + 1 < ghosts->places ? at + 1 : 0;
    return at;
}

void rdl_ghosts_fini(rdl_ghosts *ghosts)
{
    for (uint32_t i = 0; i * IN_BLOCK < ghosts->count; i++)
        rdl_free(ghosts->blocks[i]);
    rdl_free(ghosts->blocks);
    rdl_free(ghosts->index);
    *ghosts = (rdl_ghosts){ .purse = ghosts->purse };
}

static rdl_status no_memory(const rdl_ghosts *ghosts)
{
    return rdl_fail(RDL_NO_MEMORY,
                    "no memory to note where %" PRIu32 " groups stopped",
                    ghosts->count + 1);
}

/* At most seven of eight places are used. */
static rdl_status widen(rdl_ghosts *ghosts)
{
    rdl_ghosts wide = *ghosts;

    if (8 * ((uint64_t)ghosts->count + 1) <= 7 * (uint64_t)ghosts->places)
        return RDL_OK;
    if (ghosts->count == GHOSTS_MOST)
        return no_memory(ghosts);
    wide.places += ghosts->places / 4 + 64;
    wide.index = rdl_calloc_for(ghosts->purse, wide.places, sizeof *wide.index);
    if (wide.index == NULL)
        return no_memory(ghosts);
    for (uint32_t i = 0; i < ghosts->count; i++)
        wide.index[find_place(&wide, entry_at(&wide, i))] = i + 1;
    rdl_free(ghosts->index);
    *ghosts = wide;
    return RDL_OK;
}

static rdl_status add_block(rdl_ghosts *ghosts)
{
    size_t n = ghosts->count / IN_BLOCK;
    void **blocks;

    if (ghosts->count % IN_BLOCK != 0)
        return RDL_OK;
    blocks = rdl_realloc_for(ghosts->purse, ghosts->blocks,
                             (n + 1) * sizeof *blocks);
    if (blocks == NULL)
        return no_memory(ghosts);
    ghosts->blocks = blocks;
    blocks[n] = rdl_calloc_for(ghosts->purse, IN_BLOCK, sizeof(entry));
    return blocks[n] ? RDL_OK : no_memory(ghosts);
}

rdl_status rdl_ghosts_put(rdl_ghosts *ghosts, rdl_key key, rdl_ghost ghost)
{
    entry e = pack(key, ghost);
    uint32_t at;

    RDL_TRY(widen(ghosts));
    at = find_place(ghosts, &e);
    if (ghosts->index[at] == 0) {
        RDL_TRY(add_block(ghosts));
        ghosts->index[at] = ++ghosts->count;
    }
    *entry_at(ghosts, ghosts->index[at] - 1) = e;
    return RDL_OK;
}

bool rdl_ghosts_get(const rdl_ghosts *ghosts, rdl_key key, rdl_ghost *out)
{
    entry e = pack(key, (rdl_ghost){ 0 });
    uint32_t at;

    if (ghosts->count == 0)
        return false;
    at = find_place(ghosts, &e);
    if (ghosts->index[at] == 0)
        return false;
    *out = unpack(entry_at(ghosts, ghosts->index[at] - 1));
    return true;
}
