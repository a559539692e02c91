/* The table of a slice: open addressing over slot indices. Its owner changes it
 * under a lock of its own; peers read it at any time. A place is one 32-bit word,
 * so a reader sees either the old or the new; the slot's key and tag decide. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/slot.h"

#define FREE UINT32_C(0)
#define REMOVED UINT32_MAX

static _Atomic uint32_t *places(rdl_slice *slice)
{
    return (_Atomic uint32_t *)(void *)((unsigned char *)slice + RDL_TABLE_AT);
}

static _Atomic uint32_t *place_at(rdl_slice *slice, uint64_t at)
{
    return &places(slice)[at % RDL_TABLE_PLACES];
}

/* The tag if slot has this key, else 0. Read twice, as the owner may be changing
 * the slot meanwhile.
 *
 * All pair with the release stores in base/slice.c, the key's too: who sees that
 * the slot has another key now comes after all that its owner did while it had
 * this one (comm/registry.c writes what the owner had read). */
static uint32_t tag_if(rdl_slot *slot, rdl_key key)
{
    uint32_t tag = atomic_load_explicit(&slot->tag, memory_order_acquire);
    bool same =
        atomic_load_explicit(&slot->key[0], memory_order_acquire) == key.low &&
        atomic_load_explicit(&slot->key[1], memory_order_acquire) == key.high;

    return same && atomic_load_explicit(&slot->tag, memory_order_acquire) == tag
               ? tag
               : 0;
}

rdl_slot *rdl_table_find(rdl_slice *slice, rdl_key key, uint32_t *tag)
{
    for (uint64_t n = 0; n < RDL_TABLE_PLACES; n++) {
        /* Pairs with the release in rdl_table_add. */
        uint32_t place = atomic_load_explicit(place_at(slice, key.low + n),
                                              memory_order_acquire);
        rdl_slot *slot;

        if (place == FREE)
            return NULL;
        if (place == REMOVED || place > RDL_GROUPS_MOST)
            continue;
        slot = rdl_slice_slot(slice, place - 1);
        *tag = tag_if(slot, key);
        if (*tag != 0)
            return slot;
    }
    return NULL;
}

rdl_slot *rdl_table_at(rdl_slice *slice, uint32_t place)
{
    uint32_t index =
        atomic_load_explicit(place_at(slice, place), memory_order_acquire);

    return index == FREE || index > RDL_GROUPS_MOST
               ? NULL
               : rdl_slice_slot(slice, index - 1);
}

static uint64_t key_of(rdl_slice *mine, uint32_t index)
{
    return atomic_load_explicit(&rdl_slice_slot(mine, index)->key[0],
                                memory_order_relaxed);
}

bool rdl_table_add(rdl_slice *mine, uint32_t index)
{
    for (uint64_t n = 0; n < RDL_TABLE_PLACES; n++) {
        _Atomic uint32_t *place = place_at(mine, key_of(mine, index) + n);
        uint32_t is = atomic_load_explicit(place, memory_order_relaxed);

        if (is != FREE && is != REMOVED)
            continue;
        /* Pairs with the acquire in rdl_table_find: the slot is filled. */
        atomic_store_explicit(place, index + 1, memory_order_release);
        return true;
    }
    return false;
}

/* The places from at on that end in a free one need no marks of removal. */
static void tidy(rdl_slice *mine, uint64_t at)
{
    if (atomic_load_explicit(place_at(mine, at + 1), memory_order_relaxed) !=
        FREE)
        return;
    for (; atomic_load_explicit(place_at(mine, at), memory_order_relaxed) ==
           REMOVED;
         at += RDL_TABLE_PLACES - 1)
        atomic_store_explicit(place_at(mine, at), FREE, memory_order_release);
}

void rdl_table_remove(rdl_slice *mine, uint32_t index)
{
    for (uint64_t n = 0; n < RDL_TABLE_PLACES; n++) {
        uint64_t at = key_of(mine, index) + n;

        if (atomic_load_explicit(place_at(mine, at), memory_order_relaxed) !=
            index + 1)
            continue;
        atomic_store_explicit(place_at(mine, at), REMOVED, memory_order_release);
        tidy(mine, at % RDL_TABLE_PLACES);
        return;
    }
}
