/* Executing steps. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/run.h"

#include "base/copy.h"
#include "comm/nook.h"
#include "comm/reduce.h"
#include "comm/verdict.h"
#include "comm/world.h"

#include <string.h>

static rdl_description describe(const rdl_lane *lane, const rdl_request *request)
{
    return (rdl_description){
        .count = request->count,
        .number = lane->number,
        .root = request->shape.root,
        .operation = (uint8_t)request->name,
        .dtype = (uint8_t)request->dtype,
        .reduction = (uint8_t)request->reduction,
        .site = request->site,
        .receives = request->name == RDL_OP_SEND_RECV && lane->comm->me == 1,
        .detail = request->detail,
        .factor = request->factor,
    };
}

/* --- buffers in the heap --------------------------------------------------- */

static bool fits_heap(uint64_t at, size_t bytes, size_t heap_bytes)
{
    return bytes <= heap_bytes && at <= heap_bytes - bytes;
}

/* Whether all can read what this buffer holds; its place in the heap. It is pinned
 * (comm/op.c), and lies in one block. */
static bool place(rdl_heap *heap, const void *memory, size_t bytes, size_t most,
                  uint64_t *at)
{
    *at = 0;
    if (bytes == 0)
        return true;
    if (!rdl_heap_has(heap, memory))
        return false;
    *at = rdl_heap_place(heap, memory);
    return fits_heap(*at, most, rdl_heap_shared(heap));
}

static rdl_offer make_offer(const rdl_run *run)
{
    const rdl_request *request = run->request;
    const rdl_shape *shape = &request->shape;
    rdl_heap *heap = &run->lane->world->heap;
    size_t most = rdl_plan_input_most(shape);
    rdl_offer o = { .offset = run->lease.offset, .bytes = run->lease.bytes };

    if (run->small)
        o.kinds = RDL_OFFER_NOOK;
    if (rdl_heap_shared(heap) == 0 || !rdl_plan_may_map(shape))
        return o;
    o.kinds = RDL_OFFER_READS;
    if (place(heap, request->input, rdl_plan_input(shape), most, &o.input))
        o.kinds |= RDL_OFFER_HAS_INPUT;
    if (place(heap, request->output, most, most, &o.output))
        o.kinds |= RDL_OFFER_HAS_OUTPUT;
    return o;
}

#ifdef RDL_MUTANT_HOPE /* tests must catch this build */
#define HOPES_COUNT false
#else
#define HOPES_COUNT true
#endif

/* Whether the offer of that member is fit for a mapped plan; a member that writes
 * nonsense must not make us read elsewhere. All come to the same answer, also those
 * who cannot read it. */
static bool can_map(const rdl_run *run, const rdl_offer *o, int member)
{
    const rdl_shape *shape = &run->request->shape;
    size_t most = rdl_plan_input_most(shape);
    size_t heap = run->lane->world->mapping->arena.heap_bytes;

    if ((o->kinds & RDL_OFFER_READS) == 0 || !rdl_plan_may_map(shape))
        return false;
    if (rdl_plan_gives(shape, member) &&
        ((o->kinds & RDL_OFFER_HAS_INPUT) == 0 ||
         (o->input != 0 && !fits_heap(o->input, most, heap))))
        return false;
    return !rdl_plan_reads_outputs(shape) ||
           ((o->kinds & RDL_OFFER_HAS_OUTPUT) != 0 &&
            fits_heap(o->output, most, heap));
}

/* --- the beginning --------------------------------------------------------- */

/* One who has all in the heap stages nothing, in the hope that the others have. */
static rdl_plan first_plan(rdl_run *run)
{
    rdl_shape shape = run->request->shape;
    rdl_offer mine;

    if (rdl_plan_fits_line(&shape))
        return rdl_plan_make(&shape, run->window);
    if (run->small)
        return rdl_plan_make(&shape, RDL_PLAN_SMALL);
    mine = make_offer(run);
    if (can_map(run, &mine, shape.me) && rdl_plan_gives(&shape, shape.me))
        return rdl_plan_make(&shape, RDL_PLAN_MAPPED);
    if (run->window == 0)
        shape.operation = RDL_OP_BARRIER; /* it only says so */
    return rdl_plan_make(&shape, run->window);
}

static rdl_lease part_of_nook(uint64_t offset)
{
    return (rdl_lease){ .offset = offset, .bytes = RDL_SMALL };
}

/* Without a nook a small call looks for a lease like any other. */
static rdl_lease find_room(rdl_run *run)
{
    const rdl_shape *shape = &run->request->shape;
    uint64_t part = rdl_plan_is_small(shape) ? rdl_nook_next(run->lane) : 0;

    run->small = part != 0;
    return run->small ? part_of_nook(part)
                      : rdl_shelf_take_lease(&run->lane->world->shelf,
                                             2 * rdl_plan_wish(shape));
}

void rdl_run_begin(rdl_run *run, rdl_lane *lane, const rdl_request *request)
{
    const rdl_shape *shape = &request->shape;

    *run = (rdl_run){ .lane = lane, .request = request };
    run->description = describe(lane, request);
    if (!lane->world->uncompared) /* else all are 0 */
        run->fingerprint = rdl_fingerprint(&run->description);
    if (!rdl_plan_fits_line(shape))
        run->lease = find_room(run);
    run->window = run->lease.bytes / 2;
    run->plan = first_plan(run);
    run->streaming = request->output_bytes >= lane->world->streams_from;
}

void rdl_run_take_over(rdl_run *run, rdl_lane *lane, const rdl_request *request,
                       const rdl_offer *mine)
{
    *run = (rdl_run){ .lane = lane,
                      .request = request,
                      .lease = { .offset = mine->offset,
                                 .bytes = (uint32_t)mine->bytes },
                      .window = mine->bytes / 2,
                      .small = true,
                      .step = RDL_PLAN_SMALL_AWAIT };
    run->description = describe(lane, request);
    if (!lane->world->uncompared)
        run->fingerprint = rdl_fingerprint(&run->description);
    run->plan = rdl_plan_make(&request->shape, RDL_PLAN_SMALL);
}

void rdl_run_end(rdl_run *run)
{
#ifdef RDL_MUTANT_LEASE /* race tests must catch this build */
    run->lease.units = 0;
#endif
    rdl_shelf_give_lease(&run->lane->world->shelf, run->lease);
}

/* --- windows --------------------------------------------------------------- */

static uint64_t half(const rdl_run *run)
{
    if (run->plan.small)
        return 0;
    return (rdl_plan_round(&run->plan, run->step) & 1) * run->window;
}

static unsigned char *own_window(rdl_run *run)
{
    if (run->plan.in_line)
        return rdl_lane_payload(run->lane);
    return rdl_lane_peer_staging(run->lane, run->lane->comm->me,
                                 run->lease.offset + half(run));
}

static const unsigned char *peer_window(rdl_run *run, int peer,
                                        const rdl_step *step)
{
    const rdl_peer *p = &run->lane->peers[peer];

    if (run->plan.mapped)
        return rdl_lane_peer_heap(run->lane, peer,
                                  step->of_output ? p->output : p->input);
    if (run->plan.in_line)
        return rdl_lane_peer_payload(run->lane, peer);
    return rdl_lane_peer_staging(run->lane, peer, p->offered + half(run));
}

/* --- the steps ------------------------------------------------------------- */

static void stage(rdl_run *run, const rdl_step *step)
{
    if (step->bytes > 0)
        memcpy(own_window(run) + step->staged,
               (const unsigned char *)run->request->input + step->user,
               step->bytes);
}

static void publish(rdl_run *run)
{
    if (!run->agreed && !rdl_plan_fits_line(&run->request->shape)) {
        rdl_offer mine = make_offer(run);

        memcpy(rdl_lane_payload(run->lane), &mine, sizeof mine);
    }
    rdl_lane_publish(run->lane, run->fingerprint, &run->description);
}

static void read_counts(const void *arg, int member, rdl_counts *counts)
{
    rdl_lane_peer_counts(arg, member, counts);
}

static void show_site(const void *arg, int member, rdl_text *text)
{
    rdl_lane_show_site(arg, member, text);
}

rdl_status rdl_run_judge(rdl_lane *lane, const uint64_t *table)
{
    rdl_description descriptions[RDL_MAX_RANKS];
    char group[RDL_LANE_TEXT];
    rdl_published published = { .calls = descriptions,
                                .ranks = lane->comm->ranks,
                                .size = lane->comm->size,
                                .group = group,
                                .read_counts = read_counts,
                                .show_site = show_site,
                                .arg = lane };
    rdl_status st;

    for (int i = 0; i < lane->comm->size; i++)
        descriptions[i] =
            *rdl_slot_description(lane->peers[i].slot, lane->sequence);
    rdl_lane_text(lane, group, sizeof group);
    st = table != NULL ? rdl_verdict_on_pairs(table, &published)
                       : rdl_verdict(&published);
    return st == RDL_OK ? RDL_OK : rdl_lane_fail(lane, st);
}

static rdl_status judge(rdl_run *run)
{
    rdl_status st = rdl_run_judge(run->lane, NULL);
    char group[RDL_LANE_TEXT];

    if (st != RDL_OK)
        return st;
    rdl_lane_text(run->lane, group, sizeof group);
    return rdl_lane_fail(run->lane,
                         rdl_fail(RDL_BUG,
                                  "fingerprints differ and calls do not, on "
                                  "%s",
                                  group));
}

static bool all_made_this_call(const rdl_run *run)
{
    const rdl_lane *lane = run->lane;

    for (int i = 0; i < lane->comm->size; i++)
        if (rdl_slot_line(lane->peers[i].slot, lane->sequence)->fingerprint !=
            run->fingerprint)
            return false;
    return true;
}

bool rdl_offer_makes_sense(const rdl_offer *o)
{
    return o->bytes == 0 ||
           (o->bytes <= RDL_STAGING_MOST && o->offset >= RDL_STAGING_AT &&
            o->offset <= RDL_STAGING_AT + RDL_STAGING_MOST - o->bytes);
}

#ifdef RDL_MUTANT_WINDOW /* tests must catch this build */
#define OWN_WINDOW_WILL_DO true
#else
#define OWN_WINDOW_WILL_DO false
#endif

/* What the members' offers come to; the same on all of them. */
typedef struct agreement {
    uint64_t least; /* of the leases */
    uint64_t most;
    bool mapped;    /* all can */
    bool some_hope; /* and have staged nothing */
    bool small;     /* the call is, and all who give have a nook */
    bool some_nook;
} agreement;

static void read_offer(rdl_run *run, int member, agreement *a)
{
    rdl_peer *peer = &run->lane->peers[member];
    bool gives = rdl_plan_gives(&run->request->shape, member);
    rdl_offer o;
    bool maps, nook;

    memcpy(&o, rdl_lane_peer_payload(run->lane, member), sizeof o);
    maps = can_map(run, &o, member);
    a->mapped = a->mapped && maps;
    a->some_hope |= maps && gives;
    if (!rdl_offer_makes_sense(&o))
        o.bytes = 0;
    nook = (o.kinds & RDL_OFFER_NOOK) != 0 && o.bytes == RDL_SMALL;
    a->small = a->small && (nook || !gives);
    a->some_nook |= nook;
    a->least = o.bytes < a->least ? o.bytes : a->least;
    a->most = o.bytes > a->most ? o.bytes : a->most;
    peer->offered = o.offset;
    peer->input = o.input;
    peer->output = o.output;
}

/* For the account: where this process is about to read. */
static void note_pieces(const rdl_run *run, const rdl_peer *peer, size_t bytes)
{
    rdl_arena *arena = &run->lane->world->mapping->arena;

    rdl_pieces_touch(&arena->pieces,
                     (const unsigned char *)peer->slice + peer->offered, bytes);
}

static void note_mapped_pieces(const rdl_run *run, int member)
{
    rdl_arena *arena = &run->lane->world->mapping->arena;
    const rdl_shape *shape = &run->request->shape;
    const rdl_peer *peer = &run->lane->peers[member];
    size_t most = rdl_plan_input_most(shape);

    if (rdl_plan_gives(shape, member))
        rdl_pieces_touch(&arena->heap_pieces,
                         rdl_lane_peer_heap(run->lane, member, peer->input),
                         most);
    if (rdl_plan_reads_outputs(shape))
        rdl_pieces_touch(&arena->heap_pieces,
                         rdl_lane_peer_heap(run->lane, member, peer->output),
                         most);
}

/* All read each other's buffers where they lie. */
static void go_on_mapped(rdl_run *run)
{
    for (int i = 0; i < run->lane->comm->size; i++)
        note_mapped_pieces(run, i);
    atomic_fetch_add_explicit(&run->lane->world->n_mapped, 1,
                              memory_order_relaxed);
    run->plan = rdl_plan_make(&run->request->shape, RDL_PLAN_MAPPED);
    run->step = RDL_PLAN_MAPPED_ON;
}

/* All who give have nooks. Who gives nothing may have none, and then another plan. */
static void go_on_small(rdl_run *run)
{
    run->small = true;
    run->plan = rdl_plan_make(&run->request->shape, RDL_PLAN_SMALL);
    run->step = RDL_PLAN_SMALL_AWAIT + 1;
}

/* Of the windows the smallest counts. What was staged with another in mind, or not
 * at all in the hope for others, is staged again: nobody reads it, as all see the
 * same offers. */
static void agree(rdl_run *run)
{
    agreement a = { .least = run->lease.bytes,
                    .most = run->lease.bytes,
                    .mapped = true,
                    .small = rdl_plan_is_small(&run->request->shape) };

    for (int i = 0; i < run->lane->comm->size; i++)
        read_offer(run, i, &a);
    if (a.mapped) {
        go_on_mapped(run);
        return;
    }
    for (int i = 0; i < run->lane->comm->size && a.least > 0; i++)
        note_pieces(run, &run->lane->peers[i], a.least);
    if (a.small) {
        go_on_small(run);
        return;
    }
    if (!(a.some_hope && HOPES_COUNT) && !a.some_nook &&
        (OWN_WINDOW_WILL_DO || (a.least == a.most && a.least > 0)))
        return;
    run->window = a.least / 2;
    run->plan = rdl_plan_make(&run->request->shape, run->window);
    run->step = 0;
}

/* RDL_OK: on to run->step, which may be the first again. */
static rdl_status await(rdl_run *run)
{
    int size = run->lane->comm->size;

    for (; run->peer < size; run->peer++)
        if (run->peer != run->lane->comm->me &&
            !rdl_lane_arrived(run->lane, run->peer))
            return RDL_AGAIN;
    run->peer = 0;
    run->step++;
    rdl_lane_met(run->lane);
    /* Before the calls are compared: one that was given up is no mismatch. */
    if (!run->agreed)
        RDL_TRY(rdl_lane_check_members(run->lane));
    if (!run->lane->world->uncompared && !all_made_this_call(run))
        return judge(run);
    if (run->agreed)
        return RDL_OK;
    run->agreed = true;
    if (!rdl_plan_fits_line(&run->request->shape))
        agree(run);
    return RDL_OK;
}

static rdl_status take(rdl_run *run, const rdl_step *step)
{
    unsigned char *to = (unsigned char *)run->request->output + step->user;
    const unsigned char *from;

    if (step->bytes == 0)
        return RDL_OK;
    from = peer_window(run, step->peer, step) + step->staged;
    if (from != to) /* mapped, from itself, in place */
        rdl_copy(to, from, step->bytes, run->streaming);
    if (run->streaming)
        rdl_copy_settle(); /* before whatever says that the call is done */
    return run->plan.in_line || run->plan.small
               ? RDL_OK
               : rdl_lane_check_peer(run->lane, step->peer);
}

/* Whether members read soon what this step writes. */
static bool is_read_on(const rdl_run *run, const rdl_step *step)
{
    return step->to_window ||
           (run->plan.mapped && rdl_plan_reads_outputs(&run->plan.shape));
}

static rdl_status reduce(rdl_run *run, const rdl_step *step)
{
    const rdl_request *request = run->request;
    const void *inputs[RDL_MAX_RANKS];
    int size = run->lane->comm->size;
    unsigned char *output;

    if (step->bytes == 0)
        return RDL_OK;
    for (int i = 0; i < size; i++)
        inputs[i] = peer_window(run, i, step) + step->staged;
    output = step->to_window ? own_window(run) + step->result
                             : (unsigned char *)request->output + step->user;
    rdl_combine(
        &(rdl_reducer){ .dtype = request->dtype,
                        .reduction = request->reduction,
                        .factor = request->factor,
                        .isa = run->lane->world->isa,
                        .streaming = run->streaming && !is_read_on(run, step) },
        output, inputs, size, step->bytes / rdl_dtype_bytes(request->dtype));
    for (int i = 0; i < size && !run->plan.in_line && !run->plan.small; i++)
        RDL_TRY(rdl_lane_check_peer(run->lane, i));
    return RDL_OK;
}

rdl_status rdl_run_advance(rdl_run *run)
{
    while (run->step < rdl_plan_steps(&run->plan)) {
        rdl_step step = rdl_plan_step(&run->plan, run->step);

        switch (step.kind) {
        case RDL_STEP_STAGE:
            stage(run, &step);
            break;
        case RDL_STEP_PUBLISH:
            publish(run);
            break;
        case RDL_STEP_AWAIT:
            RDL_TRY(await(run));
            continue; /* it has moved the cursor */
        case RDL_STEP_TAKE:
            RDL_TRY(take(run, &step));
            break;
        case RDL_STEP_REDUCE:
            RDL_TRY(reduce(run, &step));
            break;
        }
        run->step++;
    }
    rdl_lane_pass(run->lane);
    return RDL_OK;
}
