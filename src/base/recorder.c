/* Writing and reading records. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/recorder.h"

#include "base/slot.h"

enum { NUMBER, LANE, TICKS, COUNT, CALL, STATE, TEXTS, KIND };

#define TOOK_SHIFT 12

static rdl_record *ring_of(rdl_slice *slice)
{
    return (rdl_record *)(void *)((unsigned char *)slice + RDL_RECORDS_AT);
}

void rdl_recorder_init(rdl_recorder *recorder, rdl_slice *slice,
                       uint32_t records)
{
    rdl_instant now;

    *recorder = (rdl_recorder){ .slice = slice,
                                .ring = ring_of(slice),
                                .mask = records - 1,
                                .even = rdl_ticks_are_even() };
    now = rdl_instant_now(recorder->even);
    slice->records = records;
    slice->ticks_then = now.ticks;
    slice->time_then = now.time;
}

static inline void put(rdl_record *record, int word, uint64_t value)
{
    atomic_store_explicit(&record->words[word], value, memory_order_relaxed);
}

static inline uint64_t get(const rdl_record *record, int word)
{
    return atomic_load_explicit(&record->words[word], memory_order_relaxed);
}

static inline uint64_t pack_state(unsigned state, unsigned status, int peer)
{
    return (uint64_t)state | (uint64_t)(status & 0xff) << 8 |
           (uint64_t)(uint16_t)(peer + 1) << 16;
}

uint64_t rdl_recorder_add(rdl_recorder *recorder, const rdl_entry *e)
{
    uint64_t number;
    rdl_record *record;

    if (recorder->ring == NULL)
        return 0;
    number = 1 + atomic_fetch_add_explicit(&recorder->slice->recorded, 1,
                                           memory_order_relaxed);
    record = &recorder->ring[(number - 1) & recorder->mask];
    put(record, NUMBER, 0);
    RDL_FENCE(memory_order_release);
    put(record, LANE, e->lane);
    put(record, TICKS, rdl_ticks(recorder->even));
    put(record, COUNT, e->count);
    put(record, CALL, 0);
    put(record, STATE, pack_state(RDL_RECORD_ISSUED, 0, -1));
    put(record, TEXTS, (uint64_t)e->site | (uint64_t)e->stream << 32);
    put(record, KIND,
        (uint64_t)(uint32_t)e->root | (uint64_t)e->operation << 32 |
            (uint64_t)e->dtype << 40 | (uint64_t)e->reduction << 48 |
            (uint64_t)e->flags << 56);
    /* Pairs with the acquire in rdl_records_read. */
    atomic_store_explicit(&record->words[NUMBER], number, memory_order_release);
    return number;
}

/* NULL: there is none, or the ring has gone round since. */
static inline rdl_record *find(const rdl_recorder *recorder, uint64_t number)
{
    rdl_record *record;

    if (number == 0)
        return NULL;
    record = &recorder->ring[(number - 1) & recorder->mask];
    return get(record, NUMBER) == number ? record : NULL;
}

void rdl_recorder_begin(rdl_recorder *recorder, uint64_t number, uint64_t call)
{
    rdl_record *record = find(recorder, number);

    if (record == NULL)
        return;
    put(record, CALL, call);
    put(record, STATE, pack_state(RDL_RECORD_RUNNING, 0, -1));
}

void rdl_recorder_on_stream(rdl_recorder *recorder, uint64_t number,
                            uint32_t text)
{
    rdl_record *record = find(recorder, number);

    if (record != NULL)
        put(record, TEXTS, (uint32_t)get(record, TEXTS) | (uint64_t)text << 32);
}

void rdl_recorder_block(rdl_recorder *recorder, uint64_t number)
{
    rdl_record *record = find(recorder, number);

    if (record != NULL)
        put(record, KIND, get(record, KIND) | (uint64_t)RDL_RECORD_BLOCKS << 56);
}

void rdl_recorder_batch(rdl_recorder *recorder, uint64_t number, bool open)
{
    const uint64_t flag = (uint64_t)RDL_RECORD_BATCHED << 56;
    rdl_record *record = find(recorder, number);

    if (record != NULL)
        put(record, KIND,
            open ? get(record, KIND) | flag : get(record, KIND) & ~flag);
}

void rdl_recorder_wait(rdl_recorder *recorder, uint64_t number, int peer)
{
    rdl_record *record = find(recorder, number);

    if (record != NULL)
        put(record, STATE, pack_state(RDL_RECORD_WAITING, 0, peer));
}

void rdl_recorder_end(rdl_recorder *recorder, uint64_t number, uint32_t status,
                      bool slept)
{
    rdl_record *record = find(recorder, number);
    uint64_t took = 0;
    int peer = -1;

    if (record == NULL)
        return;
    /* When a call failed tells whether its program has gone on since. */
    if (slept || status != 0) {
        peer = (int)(uint16_t)(get(record, STATE) >> 16) - 1;
        took =
            (rdl_ticks(recorder->even) - get(record, TICKS)) >> TOOK_SHIFT | 1;
        took = took > UINT32_MAX ? UINT32_MAX : took;
    }
    put(record, STATE, pack_state(RDL_RECORD_ENDED, status, peer) | took << 32);
}

/* --- reading --------------------------------------------------------------- */

static uint32_t places(const rdl_slice *slice)
{
    uint32_t n = slice->records;

    return n <= RDL_RECORDS_MOST && (n & (n - 1)) == 0 ? n : 0;
}

uint64_t rdl_records_newest(const rdl_slice *slice)
{
    uint64_t newest =
        places(slice) == 0
            ? 0
            : atomic_load_explicit(&slice->recorded, memory_order_acquire);

    /* Nobody makes so many; and who counts to it comes to an end. */
    return newest > UINT64_MAX / 2 ? 0 : newest;
}

uint64_t rdl_records_oldest(const rdl_slice *slice)
{
    uint64_t newest = rdl_records_newest(slice), n = places(slice);

    return newest > n ? newest - n + 1 : 1;
}

static void unpack(const uint64_t *words, rdl_entry *out)
{
    uint64_t state = words[STATE], kind = words[KIND];

    *out = (rdl_entry){
        .number = words[NUMBER],
        .lane = words[LANE],
        .ticks = words[TICKS],
        .count = words[COUNT],
        .call = words[CALL],
        .took = state >> 32 << TOOK_SHIFT,
        .site = (uint32_t)words[TEXTS],
        .stream = (uint32_t)(words[TEXTS] >> 32),
        .root = (int)(uint32_t)kind,
        .peer = (int)(uint16_t)(state >> 16) - 1,
        .operation = (uint8_t)(kind >> 32),
        .dtype = (uint8_t)(kind >> 40),
        .reduction = (uint8_t)(kind >> 48),
        .flags = (uint8_t)(kind >> 56),
        .state = (uint8_t)state,
        .status = (uint8_t)(state >> 8),
    };
}

bool rdl_records_read(rdl_slice *slice, uint64_t number, rdl_entry *out)
{
    uint64_t words[8], n = places(slice);
    rdl_record *record;

    if (n == 0 || number == 0)
        return false;
    record = &ring_of(slice)[(number - 1) & (n - 1)];
    words[NUMBER] =
        atomic_load_explicit(&record->words[NUMBER], memory_order_acquire);
    for (int i = NUMBER + 1; i <= KIND; i++)
        words[i] = get(record, i);
    RDL_FENCE(memory_order_acquire);
    unpack(words, out);
    return words[NUMBER] == number && get(record, NUMBER) == number;
}
