/* Outside data to words. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/show.h"

#include "base/slice.h"
#include "base/slot.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* --- bytes ----------------------------------------------------------------- */

/* Bytes of the printable character that begins at s, by RFC 3629; 0: there is
 * none. */
static size_t character(const unsigned char *s, size_t left)
{
    size_t n = s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    uint32_t least[] = { 0, ' ', 0xa0, 0x800, 0x10000 }, code = s[0];

    if (n == 1)
        return code >= ' ' && code != 0x7f;
    if (s[0] < 0xc2 || s[0] > 0xf4 || n > left)
        return 0;
    code &= 0x7fu >> n;
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (s[i] & 0x3f);
    }
    return code >= least[n] && code <= 0x10ffff && code >> 11 != 0x1b ? n : 0;
}

void rdl_show_bytes(rdl_text *text, const void *bytes, size_t count)
{
    const unsigned char *at = bytes, *end = at + count;

    while (at < end && *at != 0) {
        size_t n = character(at, (size_t)(end - at));

        if (n > 0 && n < text->left)
            rdl_text_add(text, "%.*s", (int)n, (const char *)at);
        else if (n == 0)
            rdl_text_add(text, "?");
        at += n > 0 ? n : 1;
    }
}

#define TEXT_MOST 1024

void rdl_show_text(rdl_text *text, rdl_slice *slice, uint32_t offset)
{
    char bytes[TEXT_MOST];

    rdl_show_bytes(text, bytes,
                   rdl_slice_read_text(slice, offset, bytes, sizeof bytes));
}

void rdl_show_site(rdl_text *text, rdl_slice *slice, uint64_t site)
{
    char bytes[TEXT_MOST];
    size_t n = site > UINT32_MAX ? 0
                                 : rdl_slice_read_text(slice, (uint32_t)site,
                                                       bytes, sizeof bytes);
    size_t cut = n > RDL_SITE_SHOWN ? n - RDL_SITE_SHOWN : 0;

    if (n == 0)
        return;
    rdl_text_add(text, cut > 0 ? " at ..." : " at ");
    rdl_show_bytes(text, bytes + cut, n - cut);
}

/* --- lanes ----------------------------------------------------------------- */

bool rdl_roll_read(rdl_slice *slice, const rdl_slot *slot, rdl_roll *out)
{
    unsigned char list[8 + 2 * RDL_MAX_RANKS + RDL_NAME_MOST];
    uint32_t counts[2];
    size_t n = rdl_slice_read_text(
        slice, atomic_load_explicit(&slot->list_text, memory_order_relaxed),
        list, sizeof list);

    if (n < sizeof counts)
        return false;
    memcpy(counts, list, sizeof counts);
    if (counts[0] > RDL_MAX_RANKS || counts[1] > RDL_NAME_MOST ||
        n < sizeof counts + 2 * counts[0] + counts[1])
        return false;
    out->count = (int)counts[0];
    for (int i = 0; i < out->count; i++) {
        uint16_t rank;

        memcpy(&rank, list + sizeof counts + 2 * i, sizeof rank);
        out->ranks[i] = rank;
    }
    memcpy(out->name, list + sizeof counts + 2 * counts[0], counts[1]);
    out->name[counts[1]] = 0;
    return true;
}

/* The table is not asked: of a key it wants both halves. */
static bool find(rdl_slice *slice, uint64_t lane, rdl_roll *out)
{
    for (uint32_t place = 0; place < RDL_TABLE_PLACES; place++) {
        rdl_slot *slot = rdl_table_at(slice, place);

        if (slot != NULL &&
            atomic_load_explicit(&slot->key[0], memory_order_acquire) == lane)
            return rdl_roll_read(slice, slot, out);
    }
    return false;
}

static bool is_world(const rdl_roll *r, int size)
{
    for (int i = 0; i < r->count; i++)
        if (r->ranks[i] != i)
            return false;
    return r->count == size && r->name[0] == 0;
}

static void show_roll(rdl_text *text, const rdl_roll *r, int size)
{
    if (is_world(r, size)) {
        rdl_text_add(text, "the world [");
    } else if (r->name[0] == 0) {
        rdl_text_add(text, "group [");
    } else {
        rdl_text_add(text, "group '");
        rdl_show_bytes(text, r->name, sizeof r->name);
        rdl_text_add(text, "' [");
    }
    rdl_text_add_ranks(text, r->ranks, r->count);
    rdl_text_add(text, "]");
}

void rdl_show_lane(rdl_text *text, rdl_slice *slice, uint64_t lane, int size)
{
    uint64_t group;
    rdl_roll r, of;

    if (!find(slice, lane, &r))
        return;
    /* A way's name begins with the key of its group (comm/registry.c). */
    if (r.name[0] != 1 || r.count == 0)
        show_roll(text, &r, size);
    else if (sscanf(r.name + 1, "%16" SCNx64, &group) == 1 &&
             find(slice, group, &of))
        show_roll(text, &of, size);
    else
        rdl_text_add(text, "the way from rank %d to rank %d", r.ranks[0],
                     r.ranks[r.count - 1]);
}
