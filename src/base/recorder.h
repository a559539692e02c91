/* The recorder: a ring of a rank's last calls in its slice of the arena, always on.
 * Whoever has the arena can read it, also when the rank is dead: its peers, to say
 * what it waits for; the launcher; `raddle dump`.
 *
 * A record is eight words, plain stores:
 *   0  number, from 1; 0 while it is being written
 *   1  the lane: half of its key (base/slot.h)
 *   2  ticks when it was issued
 *   3  count
 *   4  number of the call on its lane; 0: it has not begun
 *   5  state 8 · status 8 · peer + 1 16 · ticks it took, in units of 4,096, 32
 *   6  site 32 · stream 32: texts of the slice
 *   7  root or peer 32 · operation 8 · dtype 8 · reduction 8 · flags 8
 * Words 4 and 5 are written again as the call goes on. If the ring wraps round a call
 * that is still under way, its end is not recorded.
 *
 * Threads: a rank's may all add; the others' records may be read at any time. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BASE_RECORDER_H
#define RDL_BASE_RECORDER_H

#include "base/layout.h"
#include "base/ticks.h"

#include <stdbool.h>

typedef enum rdl_record_state {
    RDL_RECORD_ISSUED = 1, /* has its place in the lane's order, no more */
    RDL_RECORD_RUNNING,
    RDL_RECORD_WAITING, /* has slept, and waits for peer */
    RDL_RECORD_ENDED    /* with status; peer is whom it waited for last */
} rdl_record_state;

/* Operations of a record that are no collectives (comm/plan.h numbers those): a
 * thread that waits for record count, or for all of stream. */
#define RDL_RECORD_AWAIT 240
#define RDL_RECORD_SYNCHRONIZE 241
/* And one that waits for the group's other members, to shrink it. */
#define RDL_RECORD_SHRINK 242

/* Flags. */
#define RDL_RECORD_BLOCKS 1  /* the program's own thread is in the call */
#define RDL_RECORD_SENDS 2   /* of a transfer: this rank is its sender */
#define RDL_RECORD_BATCHED 4 /* in a batch that has not been ended */

typedef struct rdl_entry {
    uint64_t number;
    uint64_t lane;
    uint64_t ticks;
    uint64_t count;
    uint64_t call;
    uint64_t took; /* ticks, about; 0: it ended without sleeping */
    uint32_t site;
    uint32_t stream;
    int root;
    int peer; /* world rank; -1: nobody */
    uint8_t operation;
    uint8_t dtype;
    uint8_t reduction;
    uint8_t flags;
    uint8_t state;  /* rdl_record_state */
    uint8_t status; /* rdl_status, once ended */
} rdl_entry;

/* The owner's side. All zero: nothing is recorded. */
typedef struct rdl_recorder {
    rdl_slice *slice;
    rdl_record *ring;
    uint64_t mask;
    bool even; /* of the ticks */
} rdl_recorder;

/* records: a power of two, to RDL_RECORDS_MOST; the pages are reserved. */
void rdl_recorder_init(rdl_recorder *recorder, rdl_slice *slice,
                       uint32_t records);

/* A call is issued. number, ticks, state are filled in; returns the number. */
uint64_t rdl_recorder_add(rdl_recorder *recorder, const rdl_entry *entry);

/* It begins, as that call of its lane. number may be 0: nothing is done. */
void rdl_recorder_begin(rdl_recorder *recorder, uint64_t number, uint64_t call);

/* The name of its stream, which is a text of the slice. */
void rdl_recorder_on_stream(rdl_recorder *recorder, uint64_t number,
                            uint32_t text);

/* From now on the program's own thread is in it. */
void rdl_recorder_block(rdl_recorder *recorder, uint64_t number);

/* It is in a batch; false: which has been ended. */
void rdl_recorder_batch(rdl_recorder *recorder, uint64_t number, bool open);

/* It is about to sleep for world rank peer. */
void rdl_recorder_wait(rdl_recorder *recorder, uint64_t number, int peer);

/* It has ended. slept: its duration is worth a look at the counter; that of a failure
 * always is. */
void rdl_recorder_end(rdl_recorder *recorder, uint64_t number, uint32_t status,
                      bool slept);

/* --- reading --------------------------------------------------------------- */

/* The number of the slice's newest record; 0: none. */
uint64_t rdl_records_newest(const rdl_slice *slice);

/* The number of the oldest that may still be there. */
uint64_t rdl_records_oldest(const rdl_slice *slice);

/* Record number; false if it is gone, or just being written. What is in it is
 * outside data: every field may have any value. */
bool rdl_records_read(rdl_slice *slice, uint64_t number, rdl_entry *out);

#endif
