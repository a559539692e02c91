/* Blocks of a heap of 16 pages in a real arena. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/heap.h"

#include "base/fault.h"
#include "support/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNIT RDL_HEAP_UNIT
#define UNITS 16

typedef struct heaps {
    rdl_arena arena;
    size_t heap_bytes; /* as mapped */
    rdl_heap one;
    rdl_heap two;
} heaps;

static heaps *open_heaps(void)
{
    heaps *h = calloc(1, sizeof *h);
    int fd;

    CHECK(h != NULL);
    CHECK_OK(rdl_arena_make(2, &fd));
    CHECK_OK(rdl_arena_map(&h->arena, fd));
    if (h->arena.heaps == NULL && rdl_test_emulated())
        SKIP("the emulator has no room for the heaps");
    CHECK(h->arena.heaps != NULL);
    for (int rank = 0; rank < 2; rank++) /* where what is taken is noted */
        CHECK_OK(rdl_arena_reserve_state(&h->arena, rank));
    h->heap_bytes = h->arena.heap_bytes;
    h->arena.heap_bytes = UNITS * UNIT;
    rdl_heap_init(&h->one, &h->arena, 0, NULL);
    rdl_heap_init(&h->two, &h->arena, 1, NULL);
    return h;
}

static uint64_t file_bytes(heaps *h)
{
    uint64_t bytes;

    CHECK_OK(rdl_os_file_bytes(h->arena.fd, &bytes));
    return bytes;
}

static void close_heaps(heaps *h)
{
    rdl_heap_fini(&h->one);
    rdl_heap_fini(&h->two);
    h->arena.heap_bytes = h->heap_bytes;
    rdl_arena_unmap(&h->arena);
    free(h);
}

static unsigned char *take(rdl_heap *heap, size_t bytes)
{
    void *memory = NULL;

    CHECK_OK(rdl_heap_take(heap, bytes, &memory));
    for (size_t i = 0; i < bytes; i++)
        CHECK_INT(((unsigned char *)memory)[i], 0);
    memset(memory, 0xa5, bytes);
    return memory;
}

static uint64_t reserved(rdl_heap *heap)
{
    uint64_t now, peak;

    rdl_heap_count(heap, &now, &peak);
    CHECK(peak >= now);
    return now;
}

RDL_TEST(what_is_reserved_is_what_the_kernel_counts)
{
    heaps *h = open_heaps();
    uint64_t before = file_bytes(h);
    void *a = take(&h->one, 1), *b = take(&h->two, 3 * UNIT);

    CHECK_INT(reserved(&h->one), UNIT);
    CHECK_INT(reserved(&h->two), 3 * UNIT);
    CHECK_INT(file_bytes(h), before + 4 * UNIT);
    CHECK_OK(rdl_heap_give(&h->one, a));
    CHECK_INT(file_bytes(h), before + 3 * UNIT);
    CHECK_OK(rdl_heap_give(&h->two, b));
    CHECK_INT(file_bytes(h), before);
    CHECK_INT(h->two.peak, 3 * UNIT);
    close_heaps(h);
}

RDL_TEST(what_is_left_goes_back_at_the_end)
{
    heaps *h = open_heaps();
    uint64_t before = file_bytes(h);

    take(&h->one, 2 * UNIT);
    take(&h->one, UNIT);
    rdl_heap_fini(&h->one);
    CHECK_INT(file_bytes(h), before);
    rdl_heap_init(&h->one, &h->arena, 0, NULL);
    close_heaps(h);
}

RDL_TEST(holes_are_filled_and_what_fits_none_is_a_sentence)
{
    heaps *h = open_heaps();
    unsigned char *pieces[UNITS];
    void *more = h;

    for (int i = 0; i < UNITS; i++)
        pieces[i] = take(&h->one, UNIT);
    CHECK_STATUS(rdl_heap_take(&h->one, 1, &more), RDL_NO_MEMORY);
    CHECK_HAS(rdl_error_detail(), "has 0");
    for (int i = 0; i < UNITS; i += 2) /* every other: 8 holes of 1 */
        CHECK_OK(rdl_heap_give(&h->one, pieces[i]));
    CHECK_OK(rdl_heap_give(&h->one, pieces[5])); /* one of 3 */
    CHECK_STATUS(rdl_heap_take(&h->one, 4 * UNIT, &more), RDL_NO_MEMORY);
    CHECK_HAS(rdl_error_detail(), "in one piece");
    CHECK(more == h);
    CHECK(take(&h->one, 2 * UNIT + 1) == pieces[4]);
    CHECK(take(&h->one, UNIT) == pieces[0]);
    CHECK_INT(reserved(&h->one), (UNITS - 5) * UNIT);
    close_heaps(h);
}

RDL_TEST(more_than_any_heap_has_is_a_sentence)
{
    heaps *h = open_heaps();
    void *more = NULL;

    CHECK_STATUS(rdl_heap_take(&h->one, SIZE_MAX, &more), RDL_NO_MEMORY);
    CHECK_HAS(rdl_error_detail(), "are more than");
    CHECK_STATUS(rdl_heap_take(&h->one, UNITS * UNIT + 1, &more), RDL_NO_MEMORY);
    CHECK(more == NULL);
    close_heaps(h);
}

RDL_TEST(a_pinned_block_stays_until_its_last_pin)
{
    heaps *h = open_heaps();
    unsigned char *a = take(&h->one, 2 * UNIT), *b;
    rdl_pins first = { { 0 } }, second = { { 0 } };

    CHECK_OK(rdl_heap_pin(&h->one, &first, 0, a + 7, 2, "x"));
    CHECK_OK(rdl_heap_pin(&h->one, &first, 1, a, 2 * UNIT, "x"));
    CHECK_OK(rdl_heap_pin(&h->one, &second, 0, a + UNIT, UNIT, "x"));
    CHECK_OK(rdl_heap_give(&h->one, a));
    CHECK_STATUS(rdl_heap_give(&h->one, a), RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "was freed before");
    b = take(&h->one, UNIT);
    CHECK(b == a + 2 * UNIT);
    rdl_heap_unpin(&h->one, &first);
    CHECK_INT(a[0], 0xa5);
    CHECK_INT(reserved(&h->one), 3 * UNIT);
    rdl_heap_unpin(&h->one, &second);
    CHECK_INT(reserved(&h->one), UNIT);
    CHECK(take(&h->one, UNIT) == a);
    close_heaps(h);
}

RDL_TEST(a_pin_wants_memory_that_is_held)
{
    heaps *h = open_heaps();
    unsigned char *a = take(&h->one, UNIT);
    rdl_pins pins = { { 0 } };
    char elsewhere, part[64];

    CHECK_STATUS(rdl_heap_pin(&h->one, &pins, 0, a + 1, UNIT, "x"), RDL_INVALID);
    snprintf(part, sizeof part, "from byte 1 on of a block of %zu",
             (size_t)UNIT);
    CHECK_HAS(rdl_error_detail(), part);
    CHECK_OK(rdl_heap_give(&h->one, a));
    CHECK_STATUS(rdl_heap_pin(&h->one, &pins, 0, a, 1, "x"), RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "rdl_mem_free has freed");
    CHECK_OK(rdl_heap_pin(&h->one, &pins, 0, a, 0, "x"));
    CHECK_OK(rdl_heap_pin(&h->one, &pins, 0, &elsewhere, 1, "x"));
    CHECK(pins.memory[0] == NULL);
    close_heaps(h);
}

RDL_TEST(a_heap_without_an_arena_has_a_file_of_its_own)
{
    rdl_heap heap;
    unsigned char *a;

    rdl_heap_init(&heap, NULL, 0, NULL);
    CHECK_INT(rdl_heap_descriptors(&heap), 0);
    CHECK(!rdl_heap_has(&heap, NULL));
    a = take(&heap, 3 * UNIT);
    CHECK_INT(rdl_heap_descriptors(&heap), 1);
    CHECK_INT(reserved(&heap), 3 * UNIT);
    CHECK_OK(rdl_heap_give(&heap, a));
    take(&heap, UNIT);
    rdl_heap_fini(&heap);
}

#ifdef RDL_FAULTS
static void fail_to_give(void)
{
    heaps *h = open_heaps();
    rdl_fault fault = { .os_at = 1, .os_error = EPERM };
    unsigned char *a = take(&h->one, UNIT);
    char part[64];

    rdl_fault_use(&fault);
    CHECK_STATUS(rdl_heap_give(&h->one, a), RDL_SYSTEM);
    snprintf(part, sizeof part, "cannot give %zu bytes", (size_t)UNIT);
    CHECK_HAS(rdl_error_detail(), part);
    rdl_fault_use(NULL);
    CHECK_INT(reserved(&h->one), UNIT);
    CHECK_STATUS(rdl_heap_give(&h->one, a), RDL_INVALID);
    CHECK(take(&h->one, UNIT) == a + UNIT);
    close_heaps(h);
}

static void fail_to_take(void)
{
    heaps *h = open_heaps();
    rdl_fault fault = { .os_error = ENOMEM, .onward = true };
    void *a = h;

    for (fault.os_at = 1; fault.os_at < 100; fault.os_at++) {
        rdl_status st;

        fault.os = 0;
        fault.fired = false;
        rdl_fault_use(&fault);
        st = rdl_heap_take(&h->one, UNIT, &a);
        rdl_fault_use(NULL);
        if (!fault.fired)
            break;
        CHECK(st == RDL_NO_MEMORY || st == RDL_SYSTEM || st == RDL_OK);
        CHECK(st == RDL_OK || rdl_error_detail()[0] != 0);
        CHECK_INT(reserved(&h->one), st == RDL_OK ? UNIT : 0);
        if (st == RDL_OK)
            CHECK_OK(rdl_heap_give(&h->one, a));
    }
    CHECK(fault.os_at > 1);
    close_heaps(h);
}
#else
static void fail_to_give(void)
{
    SKIP("built without RADDLE_FAULTS");
}

static void fail_to_take(void)
{
    SKIP("built without RADDLE_FAULTS");
}
#endif

RDL_TEST(pages_that_the_kernel_keeps_stay_in_the_account)
{
    fail_to_give();
}

RDL_TEST(pages_that_the_kernel_refuses_are_not_in_the_account)
{
    fail_to_take();
}
