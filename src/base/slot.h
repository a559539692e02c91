/* The slot protocol, in one place (docs/adr/0006).
 *
 * A lane is a sequence of phases. In phase q each member publishes one line, line
 * q % RDL_LINES of its slot, and reads the others'. Who writes what, and what
 * each order pairs with:
 *
 *   payload, fingerprint, description   owner, plain stores
 *   line word (tag, q)                  owner, sequentially consistent store,
 *                                       after them; pairs with the acquire in
 *                                       rdl_slot_arrived, and with the sleeper's
 *                                       load in base/bell.h
 *   staging a line speaks of            owner, plain stores before the word
 *   passed                              owner, release, when the readings of
 *                                       phases up to it are done; pairs with the
 *                                       acquire of a peer that wants to reuse its
 *                                       slot or run ahead
 *   cause                               owner, once, after cause_text; pairs with
 *                                       the acquire in rdl_slot_cause
 *   counts_text                         owner, before the line of a call with a
 *                                       list; read only by who sees calls that
 *                                       differ, and then nobody writes it again
 *   vote_text                           owner, sequentially consistent store of a
 *                                       new text; pairs with the acquire in
 *                                       comm/shrink.c
 *   tag, key, list_text, name           owner, before the table names the slot
 *
 * A line is written again RDL_LINES phases later. An operation in which every
 * member waits for every member in each phase needs no further care: who
 * publishes q + 1 has seen everyone's q, so everyone has done with q - 1. An
 * operation that lets a member run ahead must first see `passed` of the others
 * at q - RDL_LINES. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BASE_SLOT_H
#define RDL_BASE_SLOT_H

#include "base/hash.h"
#include "base/layout.h"

#include <stdbool.h>

/* TSan does not know fences; it sees the plain accesses ordered by the words. */
#if defined(__SANITIZE_THREAD__)
#define RDL_FENCE(order) ((void)0)
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RDL_FENCE(order) ((void)0)
#endif
#endif
#ifndef RDL_FENCE
#define RDL_FENCE(order) atomic_thread_fence(order)
#endif

#ifdef RDL_MUTANT_PUBLISH /* race tests must catch this build */
#define RDL_PUBLISH_ORDER memory_order_relaxed
#else
#define RDL_PUBLISH_ORDER memory_order_seq_cst
#endif
#ifdef RDL_MUTANT_ARRIVED
#define RDL_ARRIVED_ORDER memory_order_relaxed
#else
#define RDL_ARRIVED_ORDER memory_order_seq_cst
#endif

#define RDL_TAG_MOST ((UINT32_C(1) << (64 - RDL_SEQUENCE_BITS)) - 1)
#define RDL_SEQUENCE_MOST ((UINT64_C(1) << RDL_SEQUENCE_BITS) - 1)

static inline uint64_t rdl_slot_word(uint32_t tag, uint64_t sequence)
{
    return (uint64_t)tag << RDL_SEQUENCE_BITS | (sequence & RDL_SEQUENCE_MOST);
}

static inline rdl_line *rdl_slot_line(rdl_slot *slot, uint64_t sequence)
{
    return &slot->lines[sequence & (RDL_LINES - 1)];
}

static inline rdl_description *rdl_slot_description(rdl_slot *slot,
                                                    uint64_t sequence)
{
    return &slot->descriptions[sequence & (RDL_LINES - 1)];
}

/* Owner: payload, fingerprint and description are written; let peers see them.
 * Ring their bells after it. */
static inline void rdl_slot_publish(rdl_slot *mine, uint32_t tag,
                                    uint64_t sequence)
{
    atomic_store_explicit(&rdl_slot_line(mine, sequence)->word,
                          rdl_slot_word(tag, sequence), RDL_PUBLISH_ORDER);
}

/* Whether the peer's line of this phase is there. An acquire would do while
 * spinning; before sleeping the total order is needed, and on the processors we
 * know both loads are the same instruction or nearly. */
static inline bool rdl_slot_arrived(rdl_slot *peer, uint32_t tag,
                                    uint64_t sequence)
{
    return atomic_load_explicit(&rdl_slot_line(peer, sequence)->word,
                                RDL_ARRIVED_ORDER) ==
           rdl_slot_word(tag, sequence);
}

/* The peer's revoke word, 0 if it has not failed. What was read from the peer's
 * staging before this call is good if it answers 0. */
static inline uint32_t rdl_slot_cause(rdl_slot *peer)
{
    RDL_FENCE(memory_order_acquire);
    return atomic_load_explicit(&peer->cause, memory_order_acquire);
}

/* --- the table: from key to slot ------------------------------------------- */

/* Of any rank's slice, also while its owner changes it: a miss may be one of
 * "not there", "not there yet", "being laid out anew"; look again later. On a hit
 * *tag is the slot's generation. */
rdl_slot *rdl_table_find(rdl_slice *slice, rdl_key key, uint32_t *tag);

/* The slot that place 0..RDL_TABLE_PLACES-1 names, or NULL; to look through all. */
rdl_slot *rdl_table_at(rdl_slice *slice, uint32_t place);

/* Owner. The slot is filled. false: the table is full. */
bool rdl_table_add(rdl_slice *mine, uint32_t slot_index);
void rdl_table_remove(rdl_slice *mine, uint32_t slot_index);

static inline rdl_slot *rdl_slice_slot(rdl_slice *slice, uint32_t index)
{
    return (rdl_slot *)(void *)((unsigned char *)slice + RDL_SLOTS_AT) + index;
}

#endif
