/* One phase, without a plan. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/quick.h"

#include "comm/nook.h"
#include "comm/reduce.h"
#include "comm/run.h"
#include "comm/verdict.h"
#include "comm/world.h"

#include <string.h>

static size_t bytes_of(const rdl_arguments *a)
{
    return a->count * rdl_dtype_bytes(a->dtype);
}

/* How many blocks a member gives: one, or one for each member; 0: the runner's. */
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

/* What a member gives, in bytes; more than RDL_SMALL: it is not for us. */
static size_t given(const rdl_lane *lane, const rdl_arguments *a)
{
    size_t blocks = blocks_of(lane, a->operation);

    return blocks > 0 && a->count <= RDL_SMALL ? blocks * bytes_of(a) : SIZE_MAX;
}

static bool gives(const rdl_arguments *a, int member)
{
    return (a->operation != RDL_OP_BROADCAST && a->operation != RDL_OP_SCATTER) ||
           a->root == member;
}

/* Rules of the user's may want another way. */
static bool find_part(rdl_quick *q)
{
    if (q->lane->world->choices.count > 0)
        return false;
    q->small = true;
    if (!gives(q->arguments, q->lane->comm->me))
        return true;
    q->needs = rdl_nook_needs(q->lane);
    q->part = rdl_nook_next(q->lane);
    return q->part != 0;
}

bool rdl_quick_takes(rdl_quick *q)
{
    const rdl_arguments *a = q->arguments;
    rdl_world *world = q->lane->world;
    size_t bytes = given(q->lane, a);

    return bytes <= RDL_SMALL && q->lane->comm->size > 1 &&
           rdl_turns_is(&q->lane->turns, q->ticket) &&
           /* Pairs with the release in comm/lane.c. */
           atomic_load_explicit(&q->lane->prepared, memory_order_acquire) &&
           world->trace == NULL && world->delay == NULL &&
           !wants_pins(&world->heap, a) && (bytes <= RDL_INLINE || find_part(q));
}

/* --- whom a call waits for -------------------------------------------------- */

/* A one-way call's givers need nobody, and its takers not each other. Only in the
 * world: a slot of a group may be given back when all have passed what it says, and
 * who runs ahead does not know who has come at all (adr/0020). */
static bool is_one_way(const rdl_quick *q)
{
    const rdl_lane *lane = q->lane;

    if (lane->index != 0 || lane->world->strict)
        return false;
    switch (q->arguments->operation) {
    case RDL_OP_BROADCAST:
    case RDL_OP_SCATTER:
        return true;
    case RDL_OP_REDUCE:
    case RDL_OP_GATHER:
        return !q->small; /* all givers must hear of one without a nook */
    default:
        return false;
    }
}

/* Whether this rank waits for that member. */
static bool wants(const rdl_quick *q, int member)
{
    const rdl_arguments *a = q->arguments;
    int me = q->lane->comm->me;

    if (member == me)
        return false;
    if (!is_one_way(q))
        return true;
    if (a->operation == RDL_OP_BROADCAST || a->operation == RDL_OP_SCATTER)
        return member == a->root;
    return me == a->root;
}

/* So far ahead of the slowest a rank may be: a line less than there are is kept for
 * who does not run ahead and does not look. */
#define AHEAD (RDL_LINES - 2)

#ifdef RDL_MUTANT_AHEAD /* tests must catch this build */
#define NEEDS(phase) ((phase)*0)
#else
#define NEEDS(phase) (phase)
#endif

/* Before a call that runs ahead: all have passed what is about to be written over. */
static rdl_status make_way(const rdl_quick *q, rdl_limit *limit)
{
    rdl_lane *lane = q->lane;
    uint64_t next = lane->sequence + 1;
    uint64_t needs = next > AHEAD ? next - AHEAD : 0;

    needs = NEEDS(q->needs > needs ? q->needs : needs);
    return needs > lane->settled ? rdl_lane_settle(lane, needs, limit) : RDL_OK;
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

/* Of who gives nothing: it minds nothing. */
static rdl_offer offer_of(uint64_t part)
{
    return (rdl_offer){ .offset = part,
                        .bytes = part != 0 ? RDL_SMALL : 0,
                        .kinds = RDL_OFFER_NOOK };
}

/* This rank's line: what it gives or where that lies, and the call. Returns the
 * fingerprint. */
static uint64_t publish(const rdl_quick *q)
{
    const rdl_arguments *a = q->arguments;
    rdl_lane *lane = q->lane;
    rdl_description call = describe(lane, a);
    uint64_t fingerprint = lane->world->uncompared ? 0 : rdl_fingerprint(&call);
    size_t bytes = given(lane, a);
    unsigned char *to = rdl_lane_payload(lane);

    if (q->small) {
        rdl_offer mine = offer_of(q->part);

        memcpy(to, &mine, sizeof mine);
        to = rdl_lane_peer_staging(lane, lane->comm->me, q->part);
    }
    if (bytes > 0 && a->operation != RDL_OP_BARRIER && gives(a, lane->comm->me))
        memcpy(to, a->input, bytes);
    rdl_lane_publish(lane, fingerprint, &call);
    return fingerprint;
}

/* Until the lines of those are there that this rank wants, or everybody's. */
static rdl_status await(const rdl_quick *q, bool all, rdl_limit *limit)
{
    rdl_lane *lane = q->lane;

    for (int i = 0; i < lane->comm->size; i++)
        if ((all ? i != lane->comm->me : wants(q, i)) &&
            !rdl_lane_arrived(lane, i))
            RDL_TRY(rdl_lane_await(lane, i, limit));
    return RDL_OK;
}

static bool say_the_same(const rdl_quick *q, uint64_t fingerprint)
{
    const rdl_lane *lane = q->lane;
    bool same = true;

    for (int i = 0; i < lane->comm->size; i++)
        if (wants(q, i))
            same &=
                rdl_slot_line(lane->peers[i].slot, lane->sequence)->fingerprint ==
                fingerprint;
    return same;
}

/* Until the others' lines are there, and they say the same. */
static rdl_status meet(const rdl_quick *q, uint64_t fingerprint,
                       rdl_limit *limit)
{
    rdl_lane *lane = q->lane;

    RDL_TRY(await(q, false, limit));
    if (!is_one_way(q))
        rdl_lane_met(lane);
    /* Before the calls are compared: one that was given up is no mismatch. */
    RDL_TRY(rdl_lane_check_members(lane));
    if (say_the_same(q, fingerprint) || lane->world->uncompared)
        return RDL_OK;
    RDL_TRY(await(q, true, limit)); /* a verdict is on all calls */
    return rdl_run_judge(lane, NULL);
}

/* Whether all who give have put their data into nooks; where they are. */
static bool all_have_nooks(rdl_lane *lane, const rdl_arguments *a)
{
    bool all = true;

    for (int i = 0; i < lane->comm->size; i++) {
        rdl_peer *peer = &lane->peers[i];
        rdl_offer o;

        if (!gives(a, i))
            continue;
        memcpy(&o, rdl_lane_peer_payload(lane, i), sizeof o);
        all = all && (o.kinds & RDL_OFFER_NOOK) != 0 && o.bytes == RDL_SMALL &&
              rdl_offer_makes_sense(&o);
        peer->offered = o.offset;
        if (all) /* for the account */
            rdl_pieces_touch(&lane->world->mapping->arena.pieces,
                             (const unsigned char *)peer->slice + o.offset,
                             RDL_SMALL);
    }
    return all;
}

/* What that member gives. */
static const unsigned char *data_of(const rdl_lane *lane, int member,
                                    bool in_nook)
{
    return in_nook
               ? rdl_lane_peer_staging(lane, member, lane->peers[member].offered)
               : rdl_lane_peer_payload(lane, member);
}

/* at: in each member's data. */
static void combine(rdl_lane *lane, const rdl_arguments *a, bool in_nook,
                    size_t at)
{
    const void *inputs[RDL_MAX_RANKS];

    for (int i = 0; i < lane->comm->size; i++)
        inputs[i] = data_of(lane, i, in_nook) + at;
    rdl_combine(&(rdl_reducer){ .dtype = a->dtype,
                                .reduction = a->reduction,
                                .factor = a->factor,
                                .isa = lane->world->isa },
                a->output, inputs, lane->comm->size, a->count);
}

static void take_all(rdl_lane *lane, const rdl_arguments *a, bool in_nook,
                     size_t at)
{
    unsigned char *to = a->output;
    size_t bytes = bytes_of(a);

    for (int i = 0; i < lane->comm->size; i++, to += bytes)
        memcpy(to, data_of(lane, i, in_nook) + at, bytes);
}

static void take(rdl_lane *lane, const rdl_arguments *a, bool in_nook)
{
    size_t mine = (size_t)lane->comm->me * bytes_of(a);
    bool root = a->root == lane->comm->me;

    if (a->count == 0)
        return;
    switch (a->operation) {
    case RDL_OP_ALL_REDUCE:
        combine(lane, a, in_nook, 0);
        break;
    case RDL_OP_REDUCE:
        if (root)
            combine(lane, a, in_nook, 0);
        break;
    case RDL_OP_REDUCE_SCATTER:
        combine(lane, a, in_nook, mine);
        break;
    case RDL_OP_ALL_TO_ALL:
        take_all(lane, a, in_nook, mine);
        break;
    case RDL_OP_SCATTER:
        memcpy(a->output, data_of(lane, a->root, in_nook) + mine, bytes_of(a));
        break;
    case RDL_OP_BROADCAST:
        if (!root)
            memcpy(a->output, data_of(lane, a->root, in_nook), bytes_of(a));
        break;
    case RDL_OP_ALL_GATHER:
        take_all(lane, a, in_nook, 0);
        break;
    case RDL_OP_GATHER:
        if (root)
            take_all(lane, a, in_nook, 0);
        break;
    default: /* a barrier */
        break;
    }
}

/* Some member has no nook: on with the runner, as all do. */
static rdl_status go_on_slowly(const rdl_quick *q, rdl_limit *limit)
{
    const rdl_arguments *a = q->arguments;
    rdl_lane *lane = q->lane;
    rdl_request request = rdl_op_request(lane, a);
    rdl_offer mine = offer_of(q->part);
    rdl_status st;
    rdl_run run;

    rdl_run_take_over(&run, lane, &request, &mine);
    while ((st = rdl_run_advance(&run)) == RDL_AGAIN) {
        st = rdl_lane_await(lane, run.peer, limit);
        if (st != RDL_OK)
            break;
    }
    rdl_run_end(&run);
    return st;
}

static rdl_status go(const rdl_quick *q, rdl_limit *limit)
{
    const rdl_arguments *a = q->arguments;
    rdl_lane *lane = q->lane;
    bool one_way = is_one_way(q);
    uint64_t fingerprint;

    RDL_TRY(rdl_lane_state(lane));
    lane->number++;
    rdl_recorder_begin(&lane->world->recorder, limit->record, lane->number);
    if (one_way)
        RDL_TRY(make_way(q, limit));
    fingerprint = publish(q);
    if (q->part != 0) /* meanwhile */
        rdl_nook_prepare(lane, given(lane, a));
    RDL_TRY(meet(q, fingerprint, limit));
    if (q->small && !all_have_nooks(lane, a))
        return go_on_slowly(q, limit);
    take(lane, a, q->small);
    if (one_way)
        rdl_lane_pass_aloud(lane);
    else
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
    rdl_status st = go(q, &limit);

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
