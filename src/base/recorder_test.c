/* The ring, from both sides. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/recorder.h"

#include "base/arena.h"
#include "base/memory.h"
#include "support/test.h"

#include <raddle/status.h>

#define PLACES 64

typedef struct fixture {
    unsigned char *memory;
    rdl_slice *slice;
    rdl_recorder recorder;
} fixture;

/* A slice of its own, as far as the ring goes. */
static fixture make(void)
{
    fixture f;

    f.memory = rdl_calloc_lines(RDL_RECORDS_AT + PLACES * sizeof(rdl_record));
    CHECK(f.memory != NULL);
    f.slice = (rdl_slice *)(void *)f.memory;
    rdl_recorder_init(&f.recorder, f.slice, PLACES);
    return f;
}

static uint64_t add(fixture *f, uint64_t count)
{
    rdl_entry e = { .lane = 77,
                    .count = count,
                    .site = 64,
                    .stream = 128,
                    .root = -3,
                    .operation = 4,
                    .dtype = 5,
                    .reduction = 6,
                    .flags = RDL_RECORD_SENDS };

    return rdl_recorder_add(&f->recorder, &e);
}

RDL_TEST(what_is_added_is_read)
{
    fixture f = make();
    rdl_entry e;

    CHECK_INT(rdl_records_newest(f.slice), 0);
    CHECK(!rdl_records_read(f.slice, 1, &e));
    CHECK_INT(add(&f, UINT64_C(1) << 40), 1);
    CHECK(rdl_records_read(f.slice, 1, &e));
    CHECK_INT(e.number, 1);
    CHECK_INT(e.lane, 77);
    CHECK_INT(e.count, UINT64_C(1) << 40);
    CHECK_INT(e.call, 0);
    CHECK_INT(e.site, 64);
    CHECK_INT(e.stream, 128);
    CHECK_INT(e.root, -3);
    CHECK_INT(e.operation, 4);
    CHECK_INT(e.dtype, 5);
    CHECK_INT(e.reduction, 6);
    CHECK_INT(e.flags, RDL_RECORD_SENDS);
    CHECK_INT(e.state, RDL_RECORD_ISSUED);
    CHECK_INT(e.peer, -1);
    rdl_free(f.memory);
}

RDL_TEST(a_record_goes_through_its_states)
{
    fixture f = make();
    uint64_t n = add(&f, 8);
    rdl_entry e;

    rdl_recorder_on_stream(&f.recorder, n, 256);
    rdl_recorder_begin(&f.recorder, n, 12);
    CHECK(rdl_records_read(f.slice, n, &e));
    CHECK_INT(e.state, RDL_RECORD_RUNNING);
    CHECK_INT(e.call, 12);
    CHECK_INT(e.stream, 256);
    CHECK_INT(e.site, 64);
    rdl_recorder_block(&f.recorder, n);
    rdl_recorder_wait(&f.recorder, n, 1023);
    CHECK(rdl_records_read(f.slice, n, &e));
    CHECK_INT(e.state, RDL_RECORD_WAITING);
    CHECK_INT(e.peer, 1023);
    CHECK_INT(e.flags, RDL_RECORD_SENDS | RDL_RECORD_BLOCKS);
    rdl_recorder_end(&f.recorder, n, RDL_TIMEOUT, true);
    CHECK(rdl_records_read(f.slice, n, &e));
    CHECK_INT(e.state, RDL_RECORD_ENDED);
    CHECK_INT(e.status, RDL_TIMEOUT);
    CHECK_INT(e.peer, 1023);
    CHECK(e.took > 0);
    rdl_free(f.memory);
}

RDL_TEST(the_ring_keeps_the_newest_and_forgets_the_others)
{
    fixture f = make();
    uint64_t first = add(&f, 1);
    rdl_entry e;

    for (uint64_t i = 2; i <= 3 * PLACES + 5; i++)
        CHECK_INT(add(&f, i), i);
    CHECK_INT(rdl_records_newest(f.slice), 3 * PLACES + 5);
    CHECK_INT(rdl_records_oldest(f.slice), 2 * PLACES + 6);
    CHECK(!rdl_records_read(f.slice, 2 * PLACES + 5, &e));
    CHECK(rdl_records_read(f.slice, 2 * PLACES + 6, &e));
    CHECK_INT(e.count, 2 * PLACES + 6);
    /* The end of a call that was wrapped over harms nothing. */
    rdl_recorder_end(&f.recorder, first, RDL_OK, true);
    CHECK(rdl_records_read(f.slice, 2 * PLACES + 1 + PLACES, &e));
    CHECK_INT(e.state, RDL_RECORD_ISSUED);
    rdl_free(f.memory);
}

RDL_TEST(nonsense_in_a_slice_is_no_record)
{
    fixture f = make();
    rdl_entry e;

    add(&f, 1);
    for (uint32_t n = 3; n != 0; n <<= 1) { /* no powers of two, or too large */
        f.slice->records = n;
        CHECK_INT(rdl_records_newest(f.slice), 0);
        CHECK(!rdl_records_read(f.slice, 1, &e));
    }
    f.slice->records = 2 * RDL_RECORDS_MOST;
    CHECK(!rdl_records_read(f.slice, 1, &e));
    rdl_free(f.memory);
}

RDL_TEST(a_recorder_of_nothing_records_nothing)
{
    rdl_recorder none = { 0 };
    rdl_entry e = { .count = 1 };

    CHECK_INT(rdl_recorder_add(&none, &e), 0);
    rdl_recorder_begin(&none, 0, 1);
    rdl_recorder_wait(&none, 0, 1);
    rdl_recorder_end(&none, 0, RDL_OK, true);
}

RDL_TEST(ticks_become_the_time_between_two_looks)
{
    rdl_instant before = { 1000, 5000 }, after = { 3000, 9000 };

    CHECK_INT(rdl_ticks_time(2000, before, after), 7000);
    CHECK_INT(rdl_ticks_time(1000, before, after), 5000);
    CHECK_INT(rdl_ticks_time(3500, before, after), 10000);
    CHECK_INT(rdl_ticks_time(2000, after, before), 5000);
    CHECK_INT(rdl_ticks_time(2000, after, after), 9000);
}
