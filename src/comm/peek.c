/* From keys to lists, and to words. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/peek.h"

#include "base/ranks.h"
#include "base/slice.h"
#include "comm/plan.h"

#include <inttypes.h>
#include <string.h>

/* First bytes of names that are not for people (comm/registry.c). */
#define WAY 1
#define SHRUNK 2

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

/* Control characters become spaces, and what is no UTF-8 becomes '?'. */
static void clean(char *text)
{
    size_t left = strlen(text);

    while (left > 0) {
        size_t n = character((const unsigned char *)text, left);

        if (n == 0)
            *text = (unsigned char)*text < ' ' || *text == 0x7f ? ' ' : '?';
        text += n > 0 ? n : 1;
        left -= n > 0 ? n : 1;
    }
}

static bool read_list(const unsigned char *list, size_t bytes, rdl_listing *out)
{
    const unsigned char *at = list + 2 * sizeof(uint32_t);
    uint32_t counts[2];

    if (bytes < sizeof counts)
        return false;
    memcpy(counts, list, sizeof counts);
    if (counts[0] > RDL_MAX_RANKS || counts[1] > RDL_NAME_MOST ||
        bytes < sizeof counts + sizeof(uint16_t) * counts[0] + counts[1])
        return false;
    out->size = (int)counts[0];
    for (int i = 0; i < out->size; i++, at += sizeof(uint16_t)) {
        uint16_t rank;

        memcpy(&rank, at, sizeof rank);
        out->ranks[i] = rank;
    }
    memcpy(out->name, at, counts[1]);
    out->name[counts[1]] = 0;
    out->way = out->name[0] == WAY && out->size == 2;
    out->shrunk = out->name[0] == SHRUNK;
    clean(out->name);
    return true;
}

bool rdl_peek_list(rdl_slice *slice, rdl_slot *slot, rdl_listing *out)
{
    unsigned char list[8 + 2 * RDL_MAX_RANKS + RDL_NAME_MOST];
    uint32_t at = atomic_load_explicit(&slot->list_text, memory_order_relaxed);

    return read_list(list, rdl_slice_read_text(slice, at, list, sizeof list),
                     out);
}

static rdl_slot *find_slot(rdl_slice *slice, uint64_t lane)
{
    for (uint32_t place = 0; place < RDL_TABLE_PLACES; place++) {
        rdl_slot *slot = rdl_table_at(slice, place);

        if (slot != NULL &&
            atomic_load_explicit(&slot->key[0], memory_order_acquire) == lane)
            return slot;
    }
    return NULL;
}

bool rdl_peek_lane(rdl_slice *slice, uint64_t lane, rdl_listing *out)
{
    rdl_slot *slot = find_slot(slice, lane);

    return slot != NULL && rdl_peek_list(slice, slot, out);
}

static void add_group(rdl_text *text, const rdl_listing *l, int size)
{
    if (l->way) {
        rdl_text_add(text, "the way from rank %d to rank %d", l->ranks[0],
                     l->ranks[1]);
        return;
    }
    if (l->shrunk)
        rdl_text_add(text, "a group shrunk to [");
    else if (l->name[0] != 0)
        rdl_text_add(text, "group '%s' [", l->name);
    else
        rdl_text_add(text, l->size == size ? "the world [" : "group [");
    rdl_text_add_ranks(text, l->ranks, l->size);
    rdl_text_add(text, "]");
}

static void name_group(const rdl_listing *l, bool known, int size, char *buffer,
                       size_t bytes)
{
    rdl_text text = { buffer, bytes };

    if (known)
        add_group(&text, l, size);
    else
        rdl_text_add(&text, "a group of its own, or that it has closed");
}

void rdl_peek_group(rdl_slice *slice, uint64_t lane, int size, char *buffer,
                    size_t bytes)
{
    rdl_listing l;

    name_group(&l, rdl_peek_lane(slice, lane, &l), size, buffer, bytes);
}

void rdl_peek_text(rdl_slice *slice, uint32_t offset, char *text, size_t bytes)
{
    size_t n = rdl_slice_read_text(slice, offset, text, bytes - 1);

    text[n] = 0;
    clean(text);
}

void rdl_peek_reason(const rdl_slice *slice, char *text, size_t bytes)
{
    snprintf(text, bytes, "%.*s", (int)sizeof slice->reason, slice->reason);
    clean(text);
}

void rdl_peek_site(rdl_text *text, rdl_slice *slice, uint64_t site)
{
    char where[RDL_SENTENCE];
    size_t n;

    rdl_peek_text(slice, site <= UINT32_MAX ? (uint32_t)site : 0, where,
                  sizeof where);
    n = strlen(where);
    if (n > RDL_SITE_SHOWN)
        rdl_text_add(text, " at ...%s", where + n - RDL_SITE_SHOWN);
    else if (n > 0)
        rdl_text_add(text, " at %s", where);
}

/* The first call that failed on the stream. */
static bool find_on_stream(rdl_slice *slice, uint32_t stream, rdl_entry *out)
{
    uint64_t newest = rdl_records_newest(slice);

    for (uint64_t n = rdl_records_oldest(slice); n <= newest; n++)
        if (rdl_records_read(slice, n, out) && out->stream == stream &&
            out->state == RDL_RECORD_ENDED && out->status != RDL_OK &&
            out->operation < RDL_RECORD_AWAIT)
            return true;
    return false;
}

/* The newest call that failed, unless the program has gone on since: it made another
 * call after that one's end, and stood in it until it was done. */
static bool find_failed(rdl_slice *slice, rdl_entry *out)
{
    uint64_t oldest = rdl_records_oldest(slice), went_on = 0;

    for (uint64_t n = rdl_records_newest(slice); n >= oldest && n > 0; n--) {
        if (!rdl_records_read(slice, n, out) || out->state != RDL_RECORD_ENDED)
            continue;
        /* A wait alone has no group. */
        if (out->operation == RDL_RECORD_AWAIT && out->lane == 0)
            continue;
        if (out->status != RDL_OK && out->ticks + out->took >= went_on)
            return out->operation != RDL_RECORD_SYNCHRONIZE ||
                   find_on_stream(slice, out->stream, out);
        if (out->status == RDL_OK && (out->flags & RDL_RECORD_BLOCKS) != 0 &&
            out->operation < RDL_RECORD_AWAIT && out->ticks > went_on)
            went_on = out->ticks;
    }
    return false;
}

/* What ranks that only heard of it have put before the cause is left out, and of a
 * long one the middle: what it is about stands first, and the cause last. */
static void shorten(const char *sentence, char *text, size_t bytes)
{
    static const char gap[] = " ... ";
    size_t head = bytes / 3, n;

    for (const char *at; (at = strstr(sentence, RDL_AFTER_FAILURE)) != NULL;)
        sentence = at + strlen(RDL_AFTER_FAILURE);
    n = strlen(sentence);
    if (n < bytes)
        snprintf(text, bytes, "%s", sentence);
    else
        snprintf(text, bytes, "%.*s%s%s", (int)head, sentence, gap,
                 sentence + n - (bytes - head - sizeof gap));
}

bool rdl_peek_failure(rdl_slice *slice, char *text, size_t bytes)
{
    char sentence[RDL_SENTENCE];
    rdl_slot *slot;
    rdl_entry e;

    text[0] = 0;
    if (!find_failed(slice, &e))
        return false;
    slot = find_slot(slice, e.lane);
    if (slot == NULL || rdl_slot_cause(slot) == 0)
        return false;
    rdl_peek_text(slice,
                  atomic_load_explicit(&slot->cause_text, memory_order_relaxed),
                  sentence, sizeof sentence);
    shorten(sentence, text, bytes);
    return text[0] != 0;
}

static void add_transfer(rdl_text *text, const rdl_entry *e,
                         const rdl_listing *l)
{
    rdl_text_add(text,
                 e->flags & RDL_RECORD_SENDS ? "send #%" PRIu64
                                             : "receive #%" PRIu64,
                 e->call);
    if (l != NULL && l->way)
        rdl_text_add(text, " from rank %d to rank %d", l->ranks[0], l->ranks[1]);
    else
        rdl_text_add(text, " with rank %d", e->root);
}

void rdl_peek_call(rdl_slice *slice, rdl_slice *asker, const rdl_entry *e,
                   int size, char *buffer, size_t bytes)
{
    rdl_text text = { buffer, bytes };
    char what[RDL_PEEK_TEXT];
    rdl_listing l;
    bool known;

    if (e->operation == RDL_RECORD_AWAIT) {
        rdl_text_add(&text, "rdl_work_wait");
        return;
    }
    if (e->operation == RDL_RECORD_SHRINK) {
        rdl_peek_group(slice, e->lane, size, what, sizeof what);
        rdl_text_add(&text, "shrink of %s", what);
        return;
    }
    if (e->operation == RDL_RECORD_SYNCHRONIZE) {
        rdl_peek_text(slice, e->stream, what, sizeof what);
        rdl_text_add(&text, "synchronize stream '%s'", what);
        return;
    }
    known =
        rdl_peek_lane(slice, e->lane, &l) || rdl_peek_lane(asker, e->lane, &l);
    if (e->operation == RDL_OP_SEND_RECV) {
        add_transfer(&text, e, known ? &l : NULL);
        return;
    }
    name_group(&l, known, size, what, sizeof what);
    rdl_text_add(&text, "%s", rdl_operation_name((rdl_operation)e->operation));
    if (e->call != 0)
        rdl_text_add(&text, " #%" PRIu64, e->call);
    rdl_text_add(&text, " on %s", what);
}
