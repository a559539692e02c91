/* The owner's side of a slice against models, and readers beside it. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/slice.h"

#include "base/slot.h"
#include "support/left.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct own {
    rdl_arena arena;
    rdl_shelf shelf;
} own;

static void make(own *o, size_t staging, int slots)
{
    int fd;

    CHECK_OK(rdl_arena_make(2, &fd));
    CHECK_OK(rdl_arena_map(&o->arena, fd));
    CHECK_OK(rdl_shelf_init(&o->shelf, &o->arena, 1, staging, slots, 64, NULL));
}

static void drop(own *o)
{
    rdl_shelf_fini(&o->shelf);
    rdl_arena_unmap(&o->arena);
}

/* Keys that fall on few places of the table. */
static rdl_key key_of(int i)
{
    return (rdl_key){ (uint64_t)(i % 5) + RDL_TABLE_PLACES - 3,
                      (uint64_t)i + 2 };
}

static rdl_status take(own *o, int i, rdl_slot_ref *ref)
{
    char list[64];
    int n = snprintf(list, sizeof list, "list %d", i);

    return rdl_shelf_take_slot(&o->shelf, key_of(i), 9, list, (size_t)n, ref);
}

static rdl_slot *find(own *o, int i, uint32_t *tag)
{
    return rdl_table_find(o->shelf.slice, key_of(i), tag);
}

/* --- slots ----------------------------------------------------------------- */

RDL_TEST(a_slot_is_found_by_its_key_until_it_is_given_back)
{
    rdl_test_left before = rdl_test_left_now();
    rdl_slot_ref ref;
    uint32_t tag;
    own o;

    make(&o, 4096, 4);
    CHECK(find(&o, 1, &tag) == NULL);
    CHECK_OK(take(&o, 1, &ref));
    CHECK(find(&o, 1, &tag) == ref.slot);
    CHECK_INT(tag, ref.tag);
    CHECK(tag != 0);
    CHECK(find(&o, 2, &tag) == NULL);
    CHECK(find(&o, 6, &tag) == NULL); /* of the same place */
    rdl_shelf_give_slot(&o.shelf, &ref);
    CHECK(find(&o, 1, &tag) == NULL);
    drop(&o);
    rdl_test_nothing_left(&before);
}

/* Who kept the address of a slot must see at once that it was given back, or it
 * waits for ever. */
RDL_TEST(the_words_of_a_slot_change_as_it_is_given_back)
{
    rdl_slot_ref first, second;
    own o;

    make(&o, 4096, 1);
    CHECK_OK(take(&o, 1, &first));
    for (uint64_t phase = 1; phase <= RDL_LINES; phase++)
        rdl_slot_publish(first.slot, first.tag, phase);
    rdl_shelf_give_slot(&o.shelf, &first);
    for (uint64_t phase = 1; phase <= RDL_LINES; phase++) {
        uint64_t word = atomic_load(&rdl_slot_line(first.slot, phase)->word);

        CHECK(word >> RDL_SEQUENCE_BITS != first.tag);
    }
    CHECK_OK(take(&o, 1, &second));
    CHECK(second.slot == first.slot);
    CHECK(second.tag != first.tag);
    CHECK(!rdl_slot_arrived(second.slot, second.tag, 1));
    CHECK(!rdl_slot_arrived(second.slot, first.tag, 1));
    CHECK_INT(rdl_slot_cause(second.slot), 0);
    drop(&o);
}

RDL_TEST(tags_go_round_and_are_never_0)
{
    rdl_slot_ref ref;
    own o;

    make(&o, 4096, 1);
    CHECK_OK(take(&o, 1, &ref));
    ref.slot->last_tag = RDL_TAG_MOST - 1;
    for (int i = 0; i < 3; i++) {
        static const uint32_t tags[] = { RDL_TAG_MOST, 1, 2 };

        rdl_shelf_give_slot(&o.shelf, &ref);
        CHECK_OK(take(&o, 1, &ref));
        CHECK_INT(ref.tag, tags[i]);
        CHECK(!rdl_slot_arrived(ref.slot, ref.tag, 1));
        rdl_slot_publish(ref.slot, ref.tag, RDL_SEQUENCE_MOST);
        CHECK(rdl_slot_arrived(ref.slot, ref.tag, RDL_SEQUENCE_MOST));
    }
    drop(&o);
}

RDL_TEST(there_are_as_many_slots_as_were_asked_for)
{
    static rdl_slot_ref refs[RDL_GROUPS_MOST];
    rdl_slot_ref more;
    uint32_t tag;
    own o;

    make(&o, 4096, RDL_GROUPS_MOST);
    for (int i = 0; i < RDL_GROUPS_MOST; i++)
        CHECK_OK(take(&o, i, &refs[i]));
    CHECK_STATUS(take(&o, RDL_GROUPS_MOST, &more), RDL_AGAIN);
    for (int i = 0; i < RDL_GROUPS_MOST; i++)
        CHECK(find(&o, i, &tag) == refs[i].slot);
    rdl_shelf_give_slot(&o.shelf, &refs[77]);
    CHECK_OK(take(&o, RDL_GROUPS_MOST, &more));
    CHECK(more.slot == refs[77].slot);
    drop(&o);
}

enum { KEYS = 40, SLOTS = 24 };

RDL_TEST(a_table_does_what_an_array_does)
{
    uint64_t seed = rdl_test_seed();
    rdl_slot_ref refs[KEYS] = { { 0 } };
    int used = 0;
    own o;

    make(&o, 4096, SLOTS);
    for (int step = 0; step < 20000; step++) {
        int i = (int)(rdl_test_random(&seed) % KEYS);

        if (refs[i].slot != NULL) {
            rdl_shelf_give_slot(&o.shelf, &refs[i]);
            refs[i].slot = NULL;
            used--;
        } else {
            CHECK_STATUS(take(&o, i, &refs[i]),
                         used < SLOTS ? RDL_OK : RDL_AGAIN);
            if (used == SLOTS)
                refs[i].slot = NULL;
            else
                used++;
        }
        for (int k = 0; k < KEYS; k++) {
            uint32_t tag;

            CHECK(find(&o, k, &tag) == refs[k].slot);
        }
    }
    drop(&o);
}

/* --- texts ----------------------------------------------------------------- */

RDL_TEST(texts_of_every_length_come_back_whole)
{
    char text[8192], copy[8192];
    own o;

    make(&o, 4096, 1);
    for (size_t n = 0; n <= 8184; n += n < 200 ? 1 : 997) {
        uint32_t at;

        memset(text, 'a' + (int)(n % 26), n);
        at = rdl_shelf_put_text(&o.shelf, text, n);
        CHECK(at != 0);
        memset(copy, 0, sizeof copy);
        CHECK_INT(rdl_slice_read_text(o.shelf.slice, at, copy, sizeof copy), n);
        CHECK(memcmp(text, copy, n) == 0);
        CHECK_INT(rdl_slice_read_text(o.shelf.slice, at, copy, 5),
                  n < 5 ? n : 5);
    }
    CHECK_INT(rdl_shelf_put_text(&o.shelf, text, 8185), 0);
    drop(&o);
}

/* Offsets come out of shared memory. */
RDL_TEST(a_text_that_is_written_over_is_the_new_one)
{
    uint64_t counts[] = { 1, 2, 3 };
    char read[24];
    uint32_t at;
    own o;

    make(&o, 4096, 1);
    at = rdl_shelf_put_text(&o.shelf, "abcdefghijklmnopqrstuvwx", 24);
    rdl_shelf_change_text(&o.shelf, at, counts, sizeof counts);
    CHECK_INT(rdl_slice_read_text(o.shelf.slice, at, read, sizeof read), 24);
    CHECK(memcmp(read, counts, sizeof counts) == 0);
    drop(&o);
}

RDL_TEST(an_offset_that_makes_no_sense_is_an_empty_text)
{
    static const uint32_t wrong[] = { 0,
                                      1,
                                      63,
                                      65,
                                      RDL_TEXTS_BYTES,
                                      RDL_TEXTS_BYTES + 64,
                                      UINT32_MAX,
                                      UINT32_MAX - 63 };
    char text[64];
    uint32_t at;
    own o;

    make(&o, 4096, 1);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK_INT(rdl_slice_read_text(o.shelf.slice, wrong[i], text, 64), 0);
    at = rdl_shelf_put_text(&o.shelf, "x", 1);
    /* Its length is beyond the texts. */
    *(uint64_t *)(void *)((char *)o.shelf.slice + RDL_TEXTS_AT + at) =
        RDL_TEXTS_BYTES;
    CHECK_INT(rdl_slice_read_text(o.shelf.slice, at, text, 64), 0);
    drop(&o);
}

RDL_TEST(texts_of_slots_are_used_again)
{
    char list[4000] = { 1 };
    uint64_t reserved = 0;
    rdl_slot_ref ref;
    own o;

    make(&o, 4096, 2);
    for (int i = 0; i < 20000; i++) { /* 80 MB in all */
        CHECK_OK(rdl_shelf_take_slot(&o.shelf, key_of(i), 0, list,
                                     (size_t)(i % 4000), &ref));
        atomic_store(&ref.slot->counts_text,
                     rdl_shelf_put_text(&o.shelf, list, 128));
        rdl_shelf_give_slot(&o.shelf, &ref);
        if (i == 4000)
            reserved = rdl_shelf_reserved(&o.shelf);
    }
    CHECK_INT(rdl_shelf_reserved(&o.shelf), reserved);
    drop(&o);
}

/* --- leases ---------------------------------------------------------------- */

/* Marks the lease's bytes, which nobody else may hold. */
static void mark(bool *held, const own *o, rdl_lease lease, bool with)
{
    size_t unit = o->shelf.lease_bytes / RDL_STAGING_UNITS;
    size_t first = ((size_t)lease.offset - RDL_STAGING_AT) / unit;

    CHECK_INT((lease.offset - RDL_STAGING_AT) % unit, 0);
    CHECK_INT(lease.bytes % unit, 0);
    CHECK(lease.offset >= RDL_STAGING_AT);
    CHECK(lease.offset + lease.bytes <= RDL_STAGING_AT + o->shelf.lease_bytes);
    for (size_t i = 0; i < lease.bytes / unit; i++) {
        CHECK_INT(held[first + i], !with);
        held[first + i] = with;
    }
}

static size_t count_free(const bool *held)
{
    size_t n = 0;

    for (int i = 0; i < RDL_STAGING_UNITS; i++)
        n += !held[i];
    return n;
}

static void lease_at_random(size_t staging)
{
    enum { MOST = 12 };
    uint64_t seed = rdl_test_seed();
    bool held[RDL_STAGING_UNITS] = { false };
    rdl_lease leases[MOST] = { { 0 } };
    size_t unit;
    own o;

    make(&o, staging, 1);
    unit = o.shelf.lease_bytes / RDL_STAGING_UNITS;
    for (int step = 0; step < 20000; step++) {
        rdl_lease *lease = &leases[rdl_test_random(&seed) % MOST];
        size_t wish = rdl_test_random(&seed) % (staging + staging / 2);
        size_t free_units = count_free(held);

        if (lease->bytes > 0) {
            mark(held, &o, *lease, false);
            rdl_shelf_give_lease(&o.shelf, *lease);
            *lease = (rdl_lease){ 0 };
            continue;
        }
        *lease = rdl_shelf_take_lease(&o.shelf, wish);
        CHECK((lease->bytes > 0) == (free_units > 0 && wish > 0));
        if (lease->bytes == 0)
            continue;
        mark(held, &o, *lease, true);
        CHECK(lease->bytes <= (free_units + 1) / 2 * unit);
        CHECK(lease->bytes < wish + unit);
    }
    drop(&o);
}

RDL_TEST(a_lease_is_nobody_elses_and_at_most_half_of_what_is_free)
{
    lease_at_random(RDL_STAGING_LEAST);
    lease_at_random((size_t)1 << 20);
}

RDL_TEST(a_lease_is_no_larger_than_the_wish_needs)
{
    rdl_lease first, second;
    own o;

    make(&o, 8 * 4096, 1);
    first = rdl_shelf_take_lease(&o.shelf, 1);
    CHECK_INT(first.bytes, 4096);
    second = rdl_shelf_take_lease(&o.shelf, 4097);
    CHECK_INT(second.bytes, 8192);
    rdl_shelf_give_lease(&o.shelf, first);
    rdl_shelf_give_lease(&o.shelf, second);
    first = rdl_shelf_take_lease(&o.shelf, SIZE_MAX);
    CHECK_INT(first.bytes, 4 * 4096);
    second = rdl_shelf_take_lease(&o.shelf, 0);
    CHECK_INT(second.bytes, 0);
    rdl_shelf_give_lease(&o.shelf, second); /* nothing to give back */
    drop(&o);
}

/* --- readers --------------------------------------------------------------- */

typedef struct stage {
    own o;
    atomic_int done;
} stage;

/* Whoever finds a slot whose tag has not changed since has read its own text. */
static void look_up(stage *s, int i)
{
    char expected[64], text[64];
    uint32_t tag;
    rdl_slot *slot = find(&s->o, i, &tag);
    size_t n;

    if (slot == NULL)
        return;
    n = rdl_slice_read_text(
        s->o.shelf.slice,
        atomic_load_explicit(&slot->list_text, memory_order_relaxed), text,
        sizeof text - 1);
    text[n] = 0;
    RDL_FENCE(memory_order_acquire);
    if (atomic_load_explicit(&slot->tag, memory_order_acquire) != tag)
        return;
    snprintf(expected, sizeof expected, "list %d", i);
    CHECK_TEXT(text, expected);
}

/* Thread 0 owns the slice; the others read it. Key 0 is always there. */
static void own_or_look(int thread, int size, void *arg)
{
    stage *s = arg;
    uint64_t seed = (uint64_t)thread + rdl_test_seed();
    rdl_slot_ref refs[KEYS] = { { 0 } };
    int steps = rdl_test_soak() ? 2000000 : 20000;

    (void)size;
    if (thread > 0) {
        while (atomic_load(&s->done) == 0) {
            uint32_t tag;

            CHECK(find(&s->o, 0, &tag) != NULL);
            look_up(s, (int)(rdl_test_random(&seed) % KEYS));
        }
        return;
    }
    for (int step = 0; step < steps; step++) {
        int i = 1 + (int)(rdl_test_random(&seed) % (KEYS - 1));

        if (refs[i].slot != NULL) {
            rdl_shelf_give_slot(&s->o.shelf, &refs[i]);
            refs[i].slot = NULL;
        } else if (take(&s->o, i, &refs[i]) != RDL_OK) {
            refs[i].slot = NULL;
        }
    }
    atomic_store(&s->done, 1);
}

RDL_TEST(readers_beside_the_owner_find_what_is_there_and_its_own_text)
{
    rdl_slot_ref always;
    stage s = { .done = 0 };

    make(&s.o, 4096, 8);
    CHECK_OK(take(&s.o, 0, &always));
    rdl_test_threads(3, own_or_look, &s);
    drop(&s.o);
}

/* Who finds no slot any more comes after all that its owner did with it: what the
 * owner read then may be written. */
typedef struct hand_over {
    own o;
    atomic_int given;
    atomic_int taken;
    int plain; /* read by the owner before, written by the other after */
} hand_over;

static void give_or_wait(int thread, int size, void *arg)
{
    hand_over *h = arg;
    int rounds = rdl_test_soak() ? 1000000 : 2000;

    (void)size;
    for (int i = 1; i <= rounds; i++) {
        rdl_slot_ref ref;
        uint32_t tag;

        if (thread == 0) {
            CHECK_OK(take(&h->o, 2 * i, &ref));
            atomic_store_explicit(&h->given, i, memory_order_release);
            CHECK_INT(h->plain, i - 1);
            for (int pause = i % 64; pause > 0; pause--)
                CHECK(find(&h->o, 2 * i, &tag) != NULL);
            rdl_shelf_give_slot(&h->o.shelf, &ref);
            CHECK_OK(take(&h->o, 2 * i + 1, &ref)); /* the same one */
            while (atomic_load_explicit(&h->taken, memory_order_acquire) < i)
                sched_yield();
            rdl_shelf_give_slot(&h->o.shelf, &ref);
        } else {
            while (atomic_load_explicit(&h->given, memory_order_acquire) < i)
                sched_yield();
            while (find(&h->o, 2 * i, &tag) != NULL)
                continue;
            h->plain = i;
            atomic_store_explicit(&h->taken, i, memory_order_release);
        }
    }
}

RDL_TEST(who_finds_no_slot_comes_after_all_that_was_done_with_it)
{
    hand_over h = { .plain = 0 };

    make(&h.o, 4096, 1);
    rdl_test_threads(2, give_or_wait, &h);
    drop(&h.o);
}
