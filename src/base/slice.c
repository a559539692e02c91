/* Slots, texts and staging of one's own slice. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/slice.h"

#include "base/limits.h"
#include "base/memory.h"
#include "base/slot.h"

#include <string.h>

#define SLOTS_STEP 128u /* slots reserved at a time: 64 KiB */
#define TEXTS_STEP ((size_t)65536)
#define TEXT_LEAST 64u

#ifdef RDL_MUTANT_GIVE /* tests must catch this build */
#define LINES_EMPTIED 0
#else
#define LINES_EMPTIED RDL_LINES
#endif

static void touch(rdl_shelf *shelf, size_t at, size_t bytes)
{
    rdl_pieces_touch(&shelf->arena->pieces,
                     (const unsigned char *)shelf->slice + at, bytes);
}

/* The first is that of the page in which it is noted. */
static rdl_status reserve(rdl_shelf *shelf, rdl_purpose purpose, size_t at,
                          size_t bytes)
{
    size_t slice = (size_t)((unsigned char *)shelf->slice - shelf->arena->base);

    RDL_TRY(rdl_os_reserve(shelf->arena->fd, slice + at, bytes));
    atomic_fetch_add_explicit(&shelf->slice->taken[purpose], bytes,
                              memory_order_relaxed);
    return RDL_OK;
}

/* What is going to be touched as soon as it is used. */
static rdl_status reserve_for_use(rdl_shelf *shelf, rdl_purpose purpose,
                                  size_t at, size_t bytes)
{
    touch(shelf, at, bytes);
    return reserve(shelf, purpose, at, bytes);
}

static rdl_status more_slots(rdl_shelf *shelf)
{
    RDL_TRY(reserve(shelf, RDL_FOR_SLOTS,
                    RDL_SLOTS_AT + shelf->slots_ready * sizeof(rdl_slot),
                    SLOTS_STEP * sizeof(rdl_slot)));
    shelf->slots_ready += SLOTS_STEP;
    return RDL_OK;
}

static rdl_status more_texts(rdl_shelf *shelf)
{
    RDL_TRY(reserve_for_use(shelf, RDL_FOR_TEXTS,
                            RDL_TEXTS_AT + shelf->texts_ready, TEXTS_STEP));
    shelf->texts_ready += TEXTS_STEP;
    return RDL_OK;
}

static rdl_status reserve_first(rdl_shelf *shelf)
{
    size_t need = RDL_SLOTS_AT + SLOTS_STEP * sizeof(rdl_slot) + TEXTS_STEP +
                  shelf->records * sizeof(rdl_record) + rdl_shelf_staging(shelf);

    RDL_TRY(rdl_limits_check_memory(need, "a rank's part of the arena"));
    RDL_TRY(reserve(shelf, RDL_FOR_STATE, 0, RDL_SLOTS_AT));
    RDL_TRY(more_slots(shelf));
    RDL_TRY(more_texts(shelf));
    RDL_TRY(reserve_for_use(shelf, RDL_FOR_RECORDS, RDL_RECORDS_AT,
                            shelf->records * sizeof(rdl_record)));
    return reserve(shelf, RDL_FOR_STAGING, RDL_STAGING_AT,
                   rdl_shelf_staging(shelf));
}

/* Nooks have a fifth of the staging at most. */
static uint32_t count_nooks(size_t staging_bytes)
{
    size_t n = staging_bytes / 5 / RDL_NOOK_BYTES;

    return n < RDL_NOOKS_MOST ? (uint32_t)n : RDL_NOOKS_MOST;
}

rdl_status rdl_shelf_init(rdl_shelf *shelf, rdl_arena *arena, int rank,
                          size_t staging_bytes, int slots, int records,
                          rdl_purse *purse)
{
    rdl_status st;

    *shelf = (rdl_shelf){
        .arena = arena,
        .slice = rdl_arena_slice(arena, rank),
        .rank = rank,
        .records = (uint32_t)records,
        .slots_most = (uint32_t)slots,
        .texts_used = TEXT_LEAST, /* offset 0 means none */
        .n_nooks = count_nooks(staging_bytes),
    };
    shelf->lease_bytes = staging_bytes - shelf->n_nooks * RDL_NOOK_BYTES;
    shelf->slots_free =
        rdl_calloc_for(purse, (size_t)slots, sizeof *shelf->slots_free);
    if (shelf->slots_free == NULL)
        return rdl_fail(RDL_NO_MEMORY, "no memory for a list of %d slots",
                        slots);
    st = reserve_first(shelf);
    if (st != RDL_OK) {
        rdl_free(shelf->slots_free);
        return st;
    }
    pthread_mutex_init(&shelf->lock, NULL);
    return RDL_OK;
}

void rdl_shelf_fini(rdl_shelf *shelf)
{
    pthread_mutex_destroy(&shelf->lock);
    rdl_free(shelf->slots_free);
}

uint64_t rdl_shelf_reserved(const rdl_shelf *shelf)
{
    uint64_t bytes = 0;

    for (int purpose = 0; purpose < RDL_FOR_HEAP; purpose++)
        bytes += atomic_load_explicit(&shelf->slice->taken[purpose],
                                      memory_order_relaxed);
    return bytes;
}

/* --- texts: words, so that a peer that reads too late reads no half of one ---- */

static _Atomic uint64_t *text_words(rdl_slice *slice, uint32_t offset)
{
    return (_Atomic uint64_t *)(void *)((unsigned char *)slice + RDL_TEXTS_AT +
                                        offset);
}

static unsigned tier_of(size_t bytes)
{
    unsigned tier = 0;

    while (((size_t)TEXT_LEAST << tier) < bytes)
        tier++;
    return tier;
}

/* Room for bytes; 0 if there is none. The caller holds the lock. */
static uint32_t take_text(rdl_shelf *shelf, size_t bytes)
{
    unsigned tier = tier_of(bytes);
    uint32_t at;

    if (tier >= RDL_TEXT_CLASSES)
        return 0;
    at = shelf->texts_free[tier];
    if (at != 0) {
        shelf->texts_free[tier] = (uint32_t)atomic_load_explicit(
            text_words(shelf->slice, at), memory_order_relaxed);
        return at;
    }
    bytes = (size_t)TEXT_LEAST << tier;
    if (shelf->texts_used + bytes > RDL_TEXTS_BYTES ||
        (shelf->texts_used + bytes > shelf->texts_ready &&
         more_texts(shelf) != RDL_OK))
        return 0;
    at = (uint32_t)shelf->texts_used;
    shelf->texts_used += bytes;
    return at;
}

static void give_text(rdl_shelf *shelf, uint32_t at, size_t bytes)
{
    unsigned tier = tier_of(bytes);

    if (at == 0)
        return;
    atomic_store_explicit(text_words(shelf->slice, at), shelf->texts_free[tier],
                          memory_order_relaxed);
    shelf->texts_free[tier] = at;
}

/* The first word is the length. */
void rdl_shelf_change_text(rdl_shelf *shelf, uint32_t at, const void *data,
                           size_t bytes)
{
    _Atomic uint64_t *words = text_words(shelf->slice, at);

    atomic_store_explicit(&words[0], bytes, memory_order_relaxed);
    for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
        uint64_t word = 0;
        size_t n = bytes - i < sizeof word ? bytes - i : sizeof word;

        memcpy(&word, (const char *)data + i, n);
        atomic_store_explicit(&words[1 + i / sizeof word], word,
                              memory_order_relaxed);
    }
}

static uint32_t put_text(rdl_shelf *shelf, const void *data, size_t bytes)
{
    uint32_t at = take_text(shelf, bytes + sizeof(uint64_t));

    if (at != 0)
        rdl_shelf_change_text(shelf, at, data, bytes);
    return at;
}

uint32_t rdl_shelf_put_text(rdl_shelf *shelf, const void *data, size_t bytes)
{
    uint32_t at;

    pthread_mutex_lock(&shelf->lock);
    at = put_text(shelf, data, bytes);
    pthread_mutex_unlock(&shelf->lock);
    return at;
}

size_t rdl_slice_read_text(rdl_slice *slice, uint32_t offset, void *data,
                           size_t most)
{
    _Atomic uint64_t *words = text_words(slice, offset);
    uint64_t bytes;

    if (offset < TEXT_LEAST || offset % TEXT_LEAST != 0 ||
        offset >= RDL_TEXTS_BYTES)
        return 0;
    bytes = atomic_load_explicit(&words[0], memory_order_relaxed);
    if (bytes > RDL_TEXTS_BYTES - offset - sizeof(uint64_t))
        return 0;
    if (bytes > most)
        bytes = most;
    for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
        uint64_t word = atomic_load_explicit(&words[1 + i / sizeof word],
                                             memory_order_relaxed);
        size_t n = bytes - i < sizeof word ? bytes - i : sizeof word;

        memcpy((char *)data + i, &word, n);
    }
    return bytes;
}

rdl_status rdl_slice_read_failure(const rdl_slice *slice,
                                  char reason[RDL_REASON])
{
    uint32_t failure = slice->failure;

    memcpy(reason, slice->reason, RDL_REASON);
    reason[RDL_REASON - 1] = 0;
    for (char *c = reason; *c != 0; c++)
        if ((unsigned char)*c < ' ')
            *c = ' ';
    return failure == RDL_OK || failure == RDL_AGAIN || failure > RDL_BUG
               ? RDL_BUG
               : (rdl_status)failure;
}

/* --- slots ----------------------------------------------------------------- */

static rdl_status take_index(rdl_shelf *shelf, uint32_t *index)
{
    if (shelf->n_free > 0) {
        *index = shelf->slots_free[--shelf->n_free];
        return RDL_OK;
    }
    if (shelf->slots_used == shelf->slots_most)
        return RDL_AGAIN;
    if (shelf->slots_used == shelf->slots_ready)
        RDL_TRY(more_slots(shelf));
    *index = shelf->slots_used++;
    return RDL_OK;
}

static uint32_t next_tag(uint32_t tag)
{
    return tag == RDL_TAG_MOST ? 1 : tag + 1;
}

/* All but the tag. Every line says "phase 0 of this generation", so a peer that
 * kept the address from an earlier one sees another tag. */
static void fill_slot(rdl_slot *slot, uint32_t tag, rdl_key key, uint64_t name,
                      uint32_t list)
{
    /* Pair with the acquires in base/table.c. */
    atomic_store_explicit(&slot->key[0], key.low, memory_order_release);
    atomic_store_explicit(&slot->key[1], key.high, memory_order_release);
    atomic_store_explicit(&slot->name, name, memory_order_relaxed);
    atomic_store_explicit(&slot->list_text, list, memory_order_relaxed);
    atomic_store_explicit(&slot->cause_text, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->counts_text, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->vote_text, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->cause, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->passed, 0, memory_order_relaxed);
    for (int i = 0; i < RDL_LINES; i++)
        atomic_store_explicit(&slot->lines[i].word, rdl_slot_word(tag, 0),
                              memory_order_relaxed);
}

static rdl_status take_slot(rdl_shelf *shelf, rdl_key key, uint64_t name,
                            const void *list, size_t list_bytes,
                            rdl_slot_ref *out)
{
    uint32_t at = put_text(shelf, list, list_bytes);
    rdl_status st;

    if (at == 0) /* a sweep gives texts back as it gives slots */
        return rdl_fail(RDL_AGAIN,
                        "no room for a rank list of %zu bytes in the arena",
                        list_bytes);
    st = take_index(shelf, &out->index);
    if (st != RDL_OK) {
        give_text(shelf, at, list_bytes + sizeof(uint64_t));
        return st;
    }
    out->slot = rdl_slice_slot(shelf->slice, out->index);
    touch(shelf, RDL_SLOTS_AT + out->index * sizeof *out->slot,
          sizeof *out->slot);
    out->tag = next_tag((uint32_t)out->slot->last_tag);
    out->slot->last_tag = out->tag;
    fill_slot(out->slot, out->tag, key, name, at);
    /* Pairs with the acquire in base/table.c. */
    atomic_store_explicit(&out->slot->tag, out->tag, memory_order_release);
    rdl_assert(rdl_table_add(shelf->slice, out->index));
    return RDL_OK;
}

rdl_status rdl_shelf_take_slot(rdl_shelf *shelf, rdl_key key, uint64_t name,
                               const void *list, size_t list_bytes,
                               rdl_slot_ref *out)
{
    rdl_status st;

    pthread_mutex_lock(&shelf->lock);
    st = take_slot(shelf, key, name, list, list_bytes, out);
    pthread_mutex_unlock(&shelf->lock);
    return st;
}

static void free_text_of(rdl_shelf *shelf, uint32_t at)
{
    if (at != 0)
        give_text(shelf, at,
                  (size_t)atomic_load_explicit(text_words(shelf->slice, at),
                                               memory_order_relaxed) +
                      sizeof(uint64_t));
}

void rdl_shelf_give_slot(rdl_shelf *shelf, const rdl_slot_ref *ref)
{
    rdl_slot *slot = ref->slot;

    pthread_mutex_lock(&shelf->lock);
    rdl_table_remove(shelf->slice, ref->index);
    atomic_store_explicit(&slot->tag, 0, memory_order_release);
    /* At once, not at the next use: a peer that kept the address must see that
     * the slot is no longer this lane's, or it would wait for ever. */
    for (int i = 0; i < LINES_EMPTIED; i++)
        atomic_store_explicit(&slot->lines[i].word, 0, memory_order_release);
    free_text_of(shelf,
                 atomic_load_explicit(&slot->list_text, memory_order_relaxed));
    free_text_of(shelf,
                 atomic_load_explicit(&slot->cause_text, memory_order_relaxed));
    free_text_of(
        shelf, atomic_load_explicit(&slot->counts_text, memory_order_relaxed));
    shelf->slots_free[shelf->n_free++] = ref->index;
    pthread_mutex_unlock(&shelf->lock);
}

/* --- staging --------------------------------------------------------------- */

static int count_free(uint32_t busy)
{
    return RDL_STAGING_UNITS - __builtin_popcount(busy);
}

/* The first run of n free units, or 0. */
static uint32_t find_run(uint32_t busy, int n)
{
    uint32_t run = (UINT32_C(1) << n) - 1;

    for (int at = 0; at + n <= RDL_STAGING_UNITS; at++)
        if ((busy & run << at) == 0)
            return run << at;
    return 0;
}

rdl_lease rdl_shelf_take_lease(rdl_shelf *shelf, size_t wish)
{
    size_t unit = shelf->lease_bytes / RDL_STAGING_UNITS;
    rdl_lease lease = { 0 };
    int n;

    pthread_mutex_lock(&shelf->lock);
    n = (count_free(shelf->staging_busy) + 1) / 2;
    if (wish < (size_t)n * unit)
        n = (int)((wish + unit - 1) / unit);
    while (n > 0 && (lease.units = find_run(shelf->staging_busy, n)) == 0)
        n--;
    if (n > 0) {
        shelf->staging_busy |= lease.units;
        lease.offset =
            RDL_STAGING_AT + (size_t)__builtin_ctz(lease.units) * unit;
        lease.bytes = (uint32_t)((size_t)n * unit);
    }
    pthread_mutex_unlock(&shelf->lock);
    touch(shelf, lease.offset, lease.bytes);
    return lease;
}

void rdl_shelf_give_lease(rdl_shelf *shelf, rdl_lease lease)
{
    if (lease.units == 0)
        return;
    pthread_mutex_lock(&shelf->lock);
    shelf->staging_busy &= ~lease.units;
    pthread_mutex_unlock(&shelf->lock);
}

/* --- nooks ----------------------------------------------------------------- */

static uint64_t nooks_at(const rdl_shelf *shelf)
{
    return RDL_STAGING_AT + shelf->lease_bytes;
}

uint64_t rdl_shelf_take_nook(rdl_shelf *shelf)
{
    uint64_t offset = 0;

    pthread_mutex_lock(&shelf->lock);
    for (uint32_t i = 0; i < shelf->n_nooks && offset == 0; i++)
        if ((shelf->nooks_busy >> i & 1) == 0) {
            shelf->nooks_busy |= UINT64_C(1) << i;
            offset = nooks_at(shelf) + i * RDL_NOOK_BYTES;
        }
    pthread_mutex_unlock(&shelf->lock);
    if (offset != 0)
        touch(shelf, offset, RDL_NOOK_BYTES);
    return offset;
}

void rdl_shelf_give_nook(rdl_shelf *shelf, uint64_t offset)
{
    uint64_t i = (offset - nooks_at(shelf)) / RDL_NOOK_BYTES;

    pthread_mutex_lock(&shelf->lock);
    shelf->nooks_busy &= ~(UINT64_C(1) << i);
    pthread_mutex_unlock(&shelf->lock);
}
