/* A slice in which its rank has written anything: what peers, the launcher and
 * `raddle dump` read of it.
 *
 * Input: pieces (pieces.h). */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/recorder.h"
#include "base/slice.h"
#include "base/slot.h"
#include "fuzz/pieces.h"

static rdl_arena make_arena(void)
{
    rdl_arena arena;
    int fd;

    MUST(rdl_arena_make(1, &fd) == RDL_OK);
    MUST(rdl_arena_map(&arena, fd) == RDL_OK);
    return arena;
}

static void read_text(rdl_slice *slice, uint32_t offset)
{
    char text[256];

    MUST(rdl_slice_read_text(slice, offset, text, sizeof text) <= sizeof text);
}

static void read_records(rdl_slice *slice)
{
    uint64_t newest = rdl_records_newest(slice), n = 0;

    for (uint64_t i = rdl_records_oldest(slice); i <= newest; i++, n++) {
        rdl_entry entry;

        if (!rdl_records_read(slice, i, &entry))
            continue;
        MUST(entry.number == i);
        MUST(entry.peer >= -1 && entry.peer <= UINT16_MAX);
        read_text(slice, entry.site);
        read_text(slice, entry.stream);
    }
    MUST(n <= RDL_RECORDS_MOST);
}

static void read_slot(rdl_slice *slice, rdl_slot *slot)
{
    MUST((char *)slot >= (char *)slice + RDL_SLOTS_AT &&
         (char *)(slot + 1) <= (char *)slice + RDL_TEXTS_AT);
    rdl_slot_cause(slot);
    read_text(slice, atomic_load(&slot->list_text));
    read_text(slice, atomic_load(&slot->cause_text));
}

/* As a peer does; in a table without a free place each costs a whole round. */
static void look_up(rdl_slice *slice, const rdl_slot *slot)
{
    rdl_key key = { atomic_load(&slot->key[0]), atomic_load(&slot->key[1]) };
    uint32_t tag;
    rdl_slot *found = rdl_table_find(slice, key, &tag);

    if (found != NULL)
        read_slot(slice, found);
}

static void read_table(rdl_slice *slice)
{
    int n = 0;

    for (uint32_t place = 0; place < RDL_TABLE_PLACES; place++) {
        rdl_slot *slot = rdl_table_at(slice, place);

        if (slot == NULL)
            continue;
        if (n < 256)
            read_slot(slice, slot);
        if (n++ < 8)
            look_up(slice, slot);
    }
}

static void read_failure(const rdl_slice *slice)
{
    char reason[RDL_REASON];
    rdl_status st = rdl_slice_read_failure(slice, reason);

    MUST(st > RDL_AGAIN && st <= RDL_BUG);
    MUST(memchr(reason, 0, sizeof reason) != NULL);
    MUST(strchr(reason, '\n') == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static rdl_arena arena;
    rdl_slice *slice;

    if (arena.base == NULL)
        arena = make_arena();
    slice = rdl_arena_slice(&arena, 0);
    write_pieces(slice, data, bytes);
    read_failure(slice);
    read_records(slice);
    read_table(slice);
    wipe_slice(&arena, 0);
    return 0;
}
