/* One phase, without a plan. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/quick.h"

#include "comm/reduce.h"
#include "comm/verdict.h"
#include "comm/world.h"

#include <string.h>

static size_t bytes_of(const rdl_arguments *a)
{
    return a->count * rdl_dtype_bytes(a->dtype);
}

/* How many blocks a line holds: one, or one for each member; 0: the runner's. */
static size_t blocks_of(const rdl_lane *lane, rdl_operation operation)
{
    switch (operation) {
    case RDL_OP_BARRIER:
    case RDL_OP_ALL_REDUCE:
    case RDL_OP_REDUCE:
    case RDL_OP_BROADCAST:
    case RDL_OP_ALL_GATHER:
    case RDL_OP_GATHER:
        return 1;
    case RDL_OP_REDUCE_SCATTER:
    case RDL_OP_ALL_TO_ALL:
    case RDL_OP_SCATTER:
        return (size_t)lane->comm->size;
    default:
        return 0;
    }
}

/* Memory of the heap may be freed by another thread: the runner pins it. */
static bool wants_pins(rdl_heap *heap, const rdl_arguments *a)
{
    return rdl_heap_has(heap, a->input) || rdl_heap_has(heap, a->output);
}

bool rdl_quick_takes(const rdl_quick *q)
{
    const rdl_arguments *a = q->arguments;
    rdl_world *world = q->lane->world;

    size_t blocks = blocks_of(q->lane, a->operation);

    return blocks > 0 && a->count <= RDL_INLINE &&
           blocks * bytes_of(a) <= RDL_INLINE && q->lane->comm->size > 1 &&
           rdl_turns_is(&q->lane->turns, q->ticket) &&
           /* Pairs with the release in comm/lane.c. */
           atomic_load_explicit(&q->lane->prepared, memory_order_acquire) &&
           world->trace == NULL && world->delay == NULL &&
           !wants_pins(&world->heap, a);
}

/* --- the call --------------------------------------------------------------- */

static rdl_description describe(const rdl_lane *lane, const rdl_arguments *a)
{
    return (rdl_description){
        .count = a->count,
        .number = lane->number,
        .root = a->root,
        .operation = (uint8_t)a->operation,
        .dtype = (uint8_t)a->dtype,
        .reduction = (uint8_t)a->reduction,
        .site = a->site,
        .factor = a->factor,
    };
}

static uint64_t record(const rdl_lane *lane, const rdl_arguments *a)
{
    return rdl_recorder_add(&lane->world->recorder,
                            &(rdl_entry){
                                .lane = lane->key.low,
                                .count = a->count,
                                .site = a->site,
                                .root = a->root,
                                .operation = (uint8_t)a->operation,
                                .dtype = (uint8_t)a->dtype,
                                .reduction = (uint8_t)a->reduction,
                                .flags = RDL_RECORD_BLOCKS,
                            });
}

static bool gives(const rdl_lane *lane, const rdl_arguments *a)
{
    return (a->operation != RDL_OP_BROADCAST && a->operation != RDL_OP_SCATTER) ||
           a->root == lane->comm->me;
}

/* This rank's line: what it gives, and the call. Returns the fingerprint. */
static uint64_t publish(rdl_lane *lane, const rdl_arguments *a)
{
    rdl_description call = describe(lane, a);
    uint64_t fingerprint = lane->world->uncompared ? 0 : rdl_fingerprint(&call);
    size_t bytes = blocks_of(lane, a->operation) * bytes_of(a);

    if (bytes > 0 && a->operation != RDL_OP_BARRIER && gives(lane, a))
        memcpy(rdl_lane_payload(lane), a->input, bytes);
    rdl_lane_publish(lane, fingerprint, &call);
    return fingerprint;
}

/* Until everybody's line is there, and all say the same. */
static rdl_status meet(rdl_lane *lane, uint64_t fingerprint, rdl_limit *limit)
{
    int size = lane->comm->size, me = lane->comm->me;
    bool same = true;

    for (int i = 0; i < size; i++) {
        if (i == me)
            continue;
        if (!rdl_lane_arrived(lane, i))
            RDL_TRY(rdl_lane_await(lane, i, limit));
        same &=
            rdl_slot_line(lane->peers[i].slot, lane->sequence)->fingerprint ==
            fingerprint;
    }
    /* Before the calls are compared: one that was given up is no mismatch. */
    RDL_TRY(rdl_lane_check_members(lane));
    return same || lane->world->uncompared ? RDL_OK : rdl_run_judge(lane, NULL);
}

/* at: in each line. */
static void combine(rdl_lane *lane, const rdl_arguments *a, size_t at)
{
    const void *inputs[RDL_MAX_RANKS];

    for (int i = 0; i < lane->comm->size; i++)
        inputs[i] = rdl_lane_peer_payload(lane, i) + at;
    rdl_combine(&(rdl_reducer){ .dtype = a->dtype,
                                .reduction = a->reduction,
                                .factor = a->factor,
                                .isa = lane->world->isa },
                a->output, inputs, lane->comm->size, a->count);
}

static void take_all(rdl_lane *lane, const rdl_arguments *a, size_t at)
{
    unsigned char *to = a->output;
    size_t bytes = bytes_of(a);

    for (int i = 0; i < lane->comm->size; i++, to += bytes)
        memcpy(to, rdl_lane_peer_payload(lane, i) + at, bytes);
}

static void take(rdl_lane *lane, const rdl_arguments *a)
{
    size_t mine = (size_t)lane->comm->me * bytes_of(a);
    bool root = a->root == lane->comm->me;

    if (a->count == 0)
        return;
    switch (a->operation) {
    case RDL_OP_ALL_REDUCE:
        combine(lane, a, 0);
        break;
    case RDL_OP_REDUCE:
        if (root)
            combine(lane, a, 0);
        break;
    case RDL_OP_REDUCE_SCATTER:
        combine(lane, a, mine);
        break;
    case RDL_OP_ALL_TO_ALL:
        take_all(lane, a, mine);
        break;
    case RDL_OP_SCATTER:
        memcpy(a->output, rdl_lane_peer_payload(lane, a->root) + mine,
               bytes_of(a));
        break;
    case RDL_OP_BROADCAST:
        if (!root)
            memcpy(a->output, rdl_lane_peer_payload(lane, a->root), bytes_of(a));
        break;
    case RDL_OP_ALL_GATHER:
        take_all(lane, a, 0);
        break;
    case RDL_OP_GATHER:
        if (root)
            take_all(lane, a, 0);
        break;
    default: /* a barrier */
        break;
    }
}

static rdl_status go(rdl_lane *lane, const rdl_arguments *a, rdl_limit *limit)
{
    uint64_t fingerprint;

    RDL_TRY(rdl_lane_state(lane));
    lane->number++;
    rdl_recorder_begin(&lane->world->recorder, limit->record, lane->number);
    fingerprint = publish(lane, a);
    RDL_TRY(meet(lane, fingerprint, limit));
    take(lane, a);
    rdl_lane_pass(lane);
    return RDL_OK;
}

rdl_status rdl_quick_run(const rdl_quick *q)
{
    const rdl_arguments *a = q->arguments;
    rdl_lane *lane = q->lane;
    rdl_limit limit = { .timeout_ms = q->timeout_ms,
                        .operation = rdl_operation_name(a->operation),
                        .record = record(lane, a),
                        .site = a->site };
    rdl_status st = go(lane, a, &limit);

    if (st == RDL_OK)
        atomic_fetch_add_explicit(&lane->world->n_collectives, 1,
                                  memory_order_relaxed);
    else /* to the caller, by whom this was called */
        rdl_lane_reported(lane);
    rdl_recorder_end(&lane->world->recorder, limit.record, st,
                     limit.deadline != 0);
    rdl_lane_pass_turn(lane, q->ticket);
    return st;
}
