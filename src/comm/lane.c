/* Publishing on a lane, and seeing that the others have. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/lane.h"

#include "base/bell.h"
#include "base/here.h"
#include "base/memory.h"
#include "base/ranks.h"
#include "comm/chain.h"
#include "comm/peek.h"
#include "comm/seats.h"
#include "comm/world.h"

#include <sched.h>
#include <string.h>

static rdl_status make_peers(rdl_lane *lane)
{
    const rdl_comm *comm = lane->comm;
    rdl_peer *peers =
        rdl_calloc_for(&lane->world->purse, (size_t)comm->size, sizeof *peers);

    if (peers == NULL)
        return rdl_fail(RDL_NO_MEMORY, "no memory for %d peers", comm->size);
    for (int i = 0; i < comm->size; i++) {
        peers[i].rank = comm->ranks[i];
        peers[i].slice =
            rdl_arena_slice(&lane->world->mapping->arena, comm->ranks[i]);
    }
    lane->peers = peers;
    return RDL_OK;
}

/* Under `failing`. */
static rdl_status prepare(rdl_lane *lane)
{
    rdl_peer *me;

    if (lane->peers == NULL)
        RDL_TRY(make_peers(lane));
    if (lane->mine.slot == NULL)
        RDL_TRY(rdl_registry_give_slot(lane->world, lane));
    me = &lane->peers[lane->comm->me];
    me->slot = lane->mine.slot;
    me->tag = lane->mine.tag;
    /* Pairs with the acquire in rdl_lane_prepare. */
    atomic_store_explicit(&lane->prepared, true, memory_order_release);
    return RDL_OK;
}

rdl_status rdl_lane_prepare(rdl_lane *lane)
{
    rdl_status st = RDL_OK;

    if (atomic_load_explicit(&lane->prepared, memory_order_acquire))
        return RDL_OK;
    pthread_mutex_lock(&lane->failing);
    if (!atomic_load_explicit(&lane->prepared, memory_order_relaxed))
        st = prepare(lane);
    pthread_mutex_unlock(&lane->failing);
    return st;
}

rdl_status rdl_lane_look_for_slot(rdl_lane *lane, rdl_limit *limit)
{
    if (limit->deadline == 0)
        limit->deadline = rdl_deadline_after_ms(limit->timeout_ms);
    RDL_TRY(rdl_lane_state(lane));
    return rdl_deadline_passed(limit->deadline)
               ? rdl_registry_no_slot(lane->world)
               : RDL_OK;
}

rdl_status rdl_lane_prepare_until(rdl_lane *lane, rdl_deadline deadline)
{
    rdl_status st;

    while ((st = rdl_lane_prepare(lane)) == RDL_AGAIN) {
        if (rdl_deadline_passed(deadline))
            return rdl_registry_no_slot(lane->world);
        rdl_sleep(RDL_SLOT_NAP);
    }
    return st;
}

unsigned char *rdl_lane_payload(rdl_lane *lane)
{
    return rdl_slot_line(lane->mine.slot, lane->sequence + 1)->payload;
}

const unsigned char *rdl_lane_peer_payload(const rdl_lane *lane, int peer)
{
    return rdl_slot_line(lane->peers[peer].slot, lane->sequence)->payload;
}

unsigned char *rdl_lane_peer_staging(const rdl_lane *lane, int peer,
                                     uint64_t offset)
{
    return (unsigned char *)lane->peers[peer].slice + offset;
}

void rdl_lane_show_site(const rdl_lane *lane, int member, rdl_text *text)
{
    const rdl_peer *p = &lane->peers[member];

    rdl_peek_site(text, p->slice,
                  rdl_slot_description(p->slot, lane->sequence)->site);
}

const unsigned char *rdl_lane_peer_heap(const rdl_lane *lane, int peer,
                                        uint64_t offset)
{
    const rdl_arena *arena = &lane->world->mapping->arena;

    return arena->heaps + (size_t)lane->peers[peer].rank * arena->heap_bytes +
           offset;
}

void rdl_lane_show_counts(rdl_lane *lane, const size_t *counts)
{
    rdl_shelf *shelf = &lane->world->shelf;
    _Atomic uint32_t *place = &lane->mine.slot->counts_text;
    uint32_t at = atomic_load_explicit(place, memory_order_relaxed);
    uint64_t shown[RDL_COUNTS_SHOWN] = { 0 };
    size_t n = (size_t)lane->comm->size;

    n = n < RDL_COUNTS_SHOWN ? n : RDL_COUNTS_SHOWN;
    for (size_t i = 0; i < n; i++)
        shown[i] = counts[i];
    if (at != 0)
        rdl_shelf_change_text(shelf, at, shown, n * sizeof *shown);
    else /* seen with the line that follows */
        atomic_store_explicit(
            place, rdl_shelf_put_text(shelf, shown, n * sizeof *shown),
            memory_order_relaxed);
}

void rdl_lane_peer_counts(const rdl_lane *lane, int peer, rdl_counts *counts)
{
    const rdl_peer *p = &lane->peers[peer];
    uint32_t at =
        atomic_load_explicit(&p->slot->counts_text, memory_order_relaxed);
    size_t n = rdl_slice_read_text(p->slice, at, counts->counts,
                                   sizeof counts->counts);

    counts->shown = (int)(n / sizeof counts->counts[0]);
    counts->size = lane->comm->size;
}

void rdl_lane_ring(rdl_lane *lane)
{
    for (int i = 0; i < lane->comm->size; i++)
        if (i != lane->comm->me)
            rdl_bell_ring(lane->peers[i].slice);
}

void rdl_lane_publish(rdl_lane *lane, uint64_t fingerprint,
                      const rdl_description *description)
{
    rdl_slot *slot = lane->mine.slot;
    uint64_t sequence = ++lane->sequence;

    rdl_slot_line(slot, sequence)->fingerprint = fingerprint;
    *rdl_slot_description(slot, sequence) = *description;
    rdl_seats_note(rdl_world_slice(lane->world));
    rdl_slot_publish(slot, lane->mine.tag, sequence);
    rdl_lane_ring(lane);
}

#ifdef RDL_MUTANT_PASSED /* tests must catch this build */
#define PASSED(sequence) ((sequence)*0)
#else
#define PASSED(sequence) (sequence)
#endif

void rdl_lane_pass(rdl_lane *lane)
{
    /* Pairs with the acquire in comm/registry.c. */
    atomic_store_explicit(&lane->mine.slot->passed, PASSED(lane->sequence),
                          memory_order_release);
}

void rdl_lane_pass_aloud(rdl_lane *lane)
{
    /* Sequentially consistent for the bells. */
    atomic_store_explicit(&lane->mine.slot->passed, PASSED(lane->sequence),
                          memory_order_seq_cst);
    rdl_lane_ring(lane);
}

static uint64_t passed_by(rdl_lane *lane, int peer)
{
    rdl_peer *p = &lane->peers[peer];

    if (p->slot == NULL)
        p->slot = rdl_table_find(p->slice, lane->key, &p->tag);
    return p->slot != NULL
               ? atomic_load_explicit(&p->slot->passed, memory_order_seq_cst)
               : 0;
}

static bool is_there(rdl_lane *lane, int peer, uint64_t sequence)
{
    rdl_peer *p = &lane->peers[peer];

    if (p->slot != NULL) {
        uint64_t word = atomic_load_explicit(
            &rdl_slot_line(p->slot, sequence)->word, RDL_ARRIVED_ORDER);

        if (word == rdl_slot_word(p->tag, sequence))
            return true;
        if (word >> RDL_SEQUENCE_BITS == p->tag)
            return false;
    }
    /* Not known, or no longer this lane's: its table knows. */
    p->slot = rdl_table_find(p->slice, lane->key, &p->tag);
    if (p->slot != NULL) /* for the account */
        rdl_pieces_touch(&lane->world->mapping->arena.pieces, p->slot,
                         sizeof *p->slot);
    return p->slot != NULL && rdl_slot_arrived(p->slot, p->tag, sequence);
}

bool rdl_lane_arrived(rdl_lane *lane, int peer)
{
    if (__builtin_expect(lane->settling != 0, 0))
        return passed_by(lane, peer) >= lane->settling;
    return is_there(lane, peer, lane->sequence);
}

bool rdl_lane_is_ahead(rdl_lane *lane, int peer)
{
    return is_there(lane, peer, lane->sequence + 1);
}

/* --- failing --------------------------------------------------------------- */

void rdl_lane_text(const rdl_lane *lane, char *buffer, size_t bytes)
{
    rdl_text text = { buffer, bytes };

    if (lane->title != NULL) {
        rdl_text_add(&text, "%s", lane->title);
        return;
    }
    if (lane->index == 0)
        rdl_text_add(&text, "the world [");
    else if (lane->name[0] == 0)
        rdl_text_add(&text, "group [");
    else
        rdl_text_add(&text, "group '%s' [", lane->name);
    rdl_text_add_ranks(&text, lane->comm->ranks, lane->comm->size);
    rdl_text_add(&text, "]");
}

rdl_status rdl_lane_state(rdl_lane *lane)
{
    /* Pairs with the release in rdl_lane_fail: the cause is written. */
    uint32_t failure =
        atomic_load_explicit(&lane->failure, memory_order_acquire);

    if (failure == RDL_OK)
        return RDL_OK;
    /* Who gave up may hear of it from the others. */
    RDL_TRY(rdl_world_check_active(lane->world));
    return rdl_fail((rdl_status)failure, "%s",
                    lane->cause ? lane->cause
                                : "the group has failed before; there was no "
                                  "memory to note how");
}

/* Under the lock. Before the first use there is no slot to publish it in; others may
 * wait for us all the same, so there is one now. */
static void publish_failure(rdl_lane *lane, rdl_status status,
                            const char *sentence)
{
    rdl_slot *slot;

    if (lane->comm->size == 1 || lane->comm->me < 0 ||
        (!atomic_load_explicit(&lane->prepared, memory_order_relaxed) &&
         prepare(lane) != RDL_OK))
        return;
    slot = lane->mine.slot;
    atomic_store_explicit(
        &slot->cause_text,
        rdl_shelf_put_text(&lane->world->shelf, sentence, strlen(sentence)),
        memory_order_relaxed);
    /* Pairs with the acquire in rdl_slot_cause; sequentially consistent for the
     * bells. */
    atomic_store_explicit(&slot->cause, (uint32_t)status, memory_order_seq_cst);
    RDL_FENCE(memory_order_release);
    rdl_lane_ring(lane);
}

rdl_status rdl_lane_fail(rdl_lane *lane, rdl_status status)
{
    char sentence[RDL_SENTENCE];
    bool first;

    snprintf(sentence, sizeof sentence, "%s", rdl_error_detail());
    pthread_mutex_lock(&lane->failing);
    first = atomic_load_explicit(&lane->failure, memory_order_relaxed) == RDL_OK;
    if (first) {
        lane->cause =
            rdl_copy_text_for(&lane->world->purse, sentence, strlen(sentence));
        /* Before the peers see it: our own next call must not succeed. */
        atomic_store_explicit(&lane->failure, (uint32_t)status,
                              memory_order_seq_cst);
        publish_failure(lane, status, sentence);
        rdl_bell_ring(rdl_world_slice(lane->world));
    }
    pthread_mutex_unlock(&lane->failing);
    if (!first || lane->cause != NULL)
        return rdl_lane_state(lane);
    /* There was no memory to note it: it is told this once. */
    return rdl_fail(status, "%s", sentence);
}

/* Makes what peer reports this lane's failure. */
static rdl_status adopt(rdl_lane *lane, int peer, uint32_t cause)
{
    const rdl_peer *p = &lane->peers[peer];
    char text[RDL_SENTENCE];
    size_t n = rdl_slice_read_text(
        p->slice,
        atomic_load_explicit(&p->slot->cause_text, memory_order_relaxed), text,
        sizeof text - 1);
    rdl_status status = cause <= RDL_BUG ? (rdl_status)cause : RDL_BUG;

    text[n] = 0;
    if (n > 0)
        rdl_say("%s", text);
    else
        rdl_say("rank %d reports %s", p->rank, rdl_status_name(status));
    return rdl_lane_fail(lane, status);
}

rdl_status rdl_lane_check_peer(rdl_lane *lane, int peer)
{
    uint32_t cause = rdl_slot_cause(lane->peers[peer].slot);

    return cause == 0 ? RDL_OK : adopt(lane, peer, cause);
}

/* Whether the member, whose slot is known, has failed before it was done with the
 * present phase. One that has passed it failed in a later call: all lines of this
 * one are there. */
static bool has_failed_here(const rdl_lane *lane, int member)
{
    rdl_slot *slot = lane->peers[member].slot;

    return rdl_slot_cause(slot) != 0 &&
           atomic_load_explicit(&slot->passed, memory_order_acquire) <
               lane->sequence;
}

rdl_status rdl_lane_check_members(rdl_lane *lane)
{
    for (int i = 0; i < lane->comm->size; i++)
        if (i != lane->comm->me && has_failed_here(lane, i))
            RDL_TRY(rdl_lane_check_peer(lane, i));
    return RDL_OK;
}

void rdl_lane_hear(rdl_lane *lane)
{
    if (!atomic_load_explicit(&lane->prepared, memory_order_acquire))
        return;
    for (int i = 0; i < lane->comm->size; i++) {
        rdl_peer *p = &lane->peers[i];
        uint32_t tag;
        rdl_slot *slot = rdl_table_find(p->slice, lane->key, &tag);

        if (i == lane->comm->me || slot == NULL)
            continue;
        p->slot = slot;
        p->tag = tag;
        if (rdl_lane_check_peer(lane, i) != RDL_OK)
            return;
    }
}

/* --- looking around while waiting ------------------------------------------ */

/* "the world [0,1] at train.c:88": the lane, and where this rank's call is made. */
static void text_with_site(const rdl_lane *lane, const rdl_limit *limit,
                           char *buffer, size_t bytes)
{
    rdl_text text = { buffer, bytes };
    char group[RDL_LANE_TEXT];

    rdl_lane_text(lane, group, sizeof group);
    rdl_text_add(&text, "%s", group);
    rdl_peek_site(&text, rdl_world_slice(lane->world), limit->site);
}

void rdl_lane_say(const rdl_lane *lane, const rdl_limit *limit, const char *what)
{
    char group[RDL_LANE_TEXT + RDL_SITE_SHOWN];

    text_with_site(lane, limit, group, sizeof group);
    rdl_say("%s on %s: %s", limit->operation, group, what);
}

/* "all_reduce #3 on the world [0,1] at train.c:88: " and the rest; the lane has
 * failed. */
static rdl_status fail_call(rdl_lane *lane, const rdl_limit *limit,
                            rdl_status status, const char *what)
{
    char group[RDL_LANE_TEXT + RDL_SITE_SHOWN];

    text_with_site(lane, limit, group, sizeof group);
    rdl_say("%s #%llu on %s: %s", limit->operation,
            (unsigned long long)lane->number, group, what);
    return rdl_lane_fail(lane, status);
}

/* By what it, or its launcher, has said. */
static bool is_known_gone(const rdl_lane *lane, int member, rdl_text *text)
{
    const rdl_world *world = lane->world;
    const rdl_peer *p = &lane->peers[member];
    const rdl_obituary *o = &world->mapping->arena.header->obituaries[p->rank];
    const rdl_slice *slice = p->slice;
    char reason[RDL_REASON];

    /* Each pairs with the store of who wrote the text. */
    switch (atomic_load_explicit(&slice->state, memory_order_seq_cst)) {
    case RDL_SLICE_LEFT:
        rdl_text_add(text, "rank %d closed its world", p->rank);
        return true;
    case RDL_SLICE_FAILED:
        rdl_slice_read_failure(slice, reason);
        rdl_text_add(text, "rank %d gave up: %s", p->rank, reason);
        return true;
    default:
        break;
    }
    if (atomic_load_explicit(&o->gone, memory_order_seq_cst) != 0) {
        rdl_text_add(text, "rank %d is gone: %s", p->rank, o->text);
        return true;
    }
    return false;
}

/* By what the system says, which takes some reading of files. */
static bool is_found_gone(const rdl_lane *lane, int member, rdl_text *text)
{
    const rdl_world *world = lane->world;
    const rdl_peer *p = &lane->peers[member];
    rdl_process process = { p->slice->pid, p->slice->started,
                            p->slice->pid_namespace };

    /* It ends when its core is written, which may take minutes. */
    if (rdl_process_is_dumping(&world->self, &process)) {
        rdl_text_add(text, "rank %d has crashed and is writing its core",
                     p->rank);
        return true;
    }
    if (rdl_process_liveness(&world->self, &process) != RDL_DEAD)
        return false;
    rdl_text_add(text,
                 "rank %d is gone: its process %u ended without closing its "
                 "world",
                 p->rank, p->slice->pid);
    return true;
}

bool rdl_lane_is_gone(const rdl_lane *lane, int member, rdl_text *text)
{
    return is_known_gone(lane, member, text) ||
           is_found_gone(lane, member, text);
}

/* Who has gone after a failure of its own is not the cause: that is. */
static void add_why(const rdl_peer *p, rdl_text *text)
{
    char failure[RDL_SENTENCE / 2];

    if (rdl_peek_failure(p->slice, failure, sizeof failure))
        rdl_text_add(text, RDL_AFTER_FAILURE "%s", failure);
}

typedef bool (*gone_test)(const rdl_lane *lane, int member, rdl_text *text);

/* Whether that member is gone and has not come to this phase. It is looked for again
 * after its death: it may have come before it. */
static bool is_lost(rdl_lane *lane, int member, gone_test test, rdl_text *text)
{
    rdl_text start = *text;

    if (member == lane->comm->me || rdl_lane_arrived(lane, member))
        return false;
    if (test(lane, member, text) && !rdl_lane_arrived(lane, member))
        return true;
    *text = start;
    *text->at = 0;
    return false;
}

/* So many are looked up in the system at a time, beside the one that is waited for. */
#define LOOKED_UP 4

/* The member without which this phase cannot end, or -1: any one will do, also where
 * others that live are waited for. */
static int find_lost(rdl_lane *lane, int peer, bool ask, rdl_text *text)
{
    int size = lane->comm->size;

    for (int i = 0; i < size; i++)
        if (is_lost(lane, i, is_known_gone, text))
            return i;
    if (!ask)
        return -1;
    if (is_lost(lane, peer, is_found_gone, text))
        return peer;
    for (int n = 0; n < LOOKED_UP && n < size; n++) {
        int i = (int)(lane->looked_up++ % (uint32_t)size);

        if (i != peer && is_lost(lane, i, is_found_gone, text))
            return i;
    }
    return -1;
}

/* What a member reports of this phase becomes the lane's failure. */
static rdl_status hear_members(rdl_lane *lane)
{
    for (int i = 0; i < lane->comm->size; i++) {
        rdl_peer *p = &lane->peers[i];

        if (i == lane->comm->me)
            continue;
        if (p->slot == NULL)
            p->slot = rdl_table_find(p->slice, lane->key, &p->tag);
        if (p->slot != NULL &&
            atomic_load_explicit(&p->slot->tag, memory_order_acquire) == p->tag &&
            has_failed_here(lane, i))
            RDL_TRY(rdl_lane_check_peer(lane, i));
    }
    return RDL_OK;
}

/* Whether waiting for peer still makes sense; ask: the system, too. A failure is looked for in all members, a
 * death in all that have not come to this phase: what a dead rank had published still
 * counts, so that all survivors fail at the same operation. */
static rdl_status look_around(rdl_lane *lane, int peer, bool ask,
                              const rdl_limit *limit)
{
    char what[RDL_SENTENCE * 3 / 4];
    rdl_text text = { what, sizeof what };
    int lost;

    RDL_TRY(rdl_lane_state(lane)); /* another thread may have revoked it */
    RDL_TRY(hear_members(lane));
    lost = find_lost(lane, peer, ask, &text);
    if (lost < 0)
        return RDL_OK;
    RDL_TRY(hear_members(lane)); /* it may have failed, and then ended */
    add_why(&lane->peers[lost], &text);
    return fail_call(lane, limit, RDL_PEER, what);
}

/* What else the peer has open under this lane's name: a list that differs is the
 * usual reason for never meeting. */
static void add_namesakes(const rdl_lane *lane, const rdl_peer *p,
                          rdl_text *text)
{
    /* Of groups without a name there are many, and a way has none of its own. */
    bool named = lane->name[0] != 0 && lane->title == NULL;
    uint64_t name =
        atomic_load_explicit(&lane->mine.slot->name, memory_order_relaxed);
    int shown = 0;

    for (uint32_t place = 0; named && place < RDL_TABLE_PLACES && shown < 2;
         place++) {
        rdl_slot *slot = rdl_table_at(p->slice, place);
        rdl_listing l;

        if (slot == NULL ||
            atomic_load_explicit(&slot->name, memory_order_relaxed) != name ||
            !rdl_peek_list(p->slice, slot, &l))
            continue;
        rdl_text_add(text, shown++ ? " and [" : ", but it has opened '%s' as [",
                     lane->name);
        rdl_text_add_ranks(text, l.ranks, l.size);
        rdl_text_add(text, "]");
    }
}

/* When the operation was issued, as the recorder's counter has it. */
static uint64_t waiting_since(const rdl_lane *lane, const rdl_limit *limit)
{
    rdl_entry e;

    return rdl_records_read(lane->world->slice, limit->record, &e) ? e.ticks : 0;
}

static rdl_status time_out(rdl_lane *lane, int peer, const rdl_limit *limit)
{
    char what[RDL_SENTENCE * 3 / 4];
    rdl_text text = { what, sizeof what };
    int missing[RDL_MAX_RANKS], n = 0;

    for (int i = 0; i < lane->comm->size; i++)
        if (i != lane->comm->me && !rdl_lane_arrived(lane, i))
            missing[n++] = lane->comm->ranks[i];
    if (n == 0) /* it came in this very moment */
        missing[n++] = lane->comm->ranks[peer];
    rdl_text_add(&text, "timed out after %.3g s, waiting for ",
                 (double)limit->timeout_ms / 1000);
    rdl_text_add_these_ranks(&text, missing, n);
    for (int i = 0; i < n; i++)
        rdl_chain_add_condition(&text, lane->world, missing[i]);
    if (lane->peers[peer].slot == NULL &&
        !rdl_chain_has_issued(lane->world, lane->peers[peer].rank,
                              lane->key.low)) {
        rdl_text_add(&text, "; rank %d has made no call on it",
                     lane->comm->ranks[peer]);
        add_namesakes(lane, &lane->peers[peer], &text);
    }
    rdl_chain_add(&text, lane->world, missing[0], lane->key.low,
                  waiting_since(lane, limit));
    return fail_call(lane, limit, RDL_TIMEOUT, what);
}

/* --- waiting --------------------------------------------------------------- */

static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

/* Without a system call, as long as that can pay. */
static bool spin(rdl_lane *lane, int peer)
{
    rdl_time end;

    if (lane->world->patience.spin == 0)
        return false;
    end = rdl_now() + lane->world->patience.spin;
    do
        for (int i = 0; i < 64; i++) {
            if (rdl_lane_arrived(lane, peer))
                return true;
            relax();
        }
    while (!rdl_seats_share(lane->peers[peer].slice) && rdl_now() < end);
    return false;
}

static bool yield(rdl_lane *lane, int peer)
{
    for (int i = 0; i < lane->world->patience.yields; i++) {
        sched_yield();
        if (rdl_lane_arrived(lane, peer))
            return true;
    }
    return false;
}

static rdl_status look(rdl_lane *lane, int peer, bool ask, rdl_limit *limit)
{
    if (limit->deadline == 0)
        limit->deadline = rdl_deadline_after_ms(limit->timeout_ms);
    rdl_recorder_wait(&lane->world->recorder, limit->record,
                      lane->comm->ranks[peer]);
    RDL_TRY(look_around(lane, peer, ask, limit));
    if (rdl_deadline_passed(limit->deadline) && !rdl_lane_arrived(lane, peer))
        return time_out(lane, peer, limit);
    return RDL_OK;
}

rdl_status rdl_lane_look(rdl_lane *lane, int peer, rdl_limit *limit)
{
    return look(lane, peer, true, limit);
}

/* The first sleep of a wait, before which the system is not asked: reading its files
 * takes as long as many a wait. */
#define NAP INT64_C(2000000)

/* One announced look, and one sleep if there was nothing to see. */
static rdl_status doze(rdl_lane *lane, int peer, rdl_limit *limit, bool first,
                       bool *arrived)
{
    rdl_slice *mine = rdl_world_slice(lane->world);
    uint32_t bell = rdl_bell_announce(mine);
    rdl_status st = RDL_OK;

    *arrived = rdl_lane_arrived(lane, peer);
    if (!*arrived)
        st = look(lane, peer, !first, limit);
    if (!*arrived && st == RDL_OK)
        rdl_bell_sleep(
            mine, bell,
            rdl_deadline_left(limit->deadline, first ? NAP : RDL_SLEEP_MOST));
    rdl_bell_withdraw(mine);
    return st;
}

rdl_status rdl_lane_await(rdl_lane *lane, int peer, rdl_limit *limit)
{
    bool arrived = rdl_lane_arrived(lane, peer) || spin(lane, peer);

    if (!arrived) {
        rdl_seats_look(lane);
        arrived = yield(lane, peer);
    }
    for (bool first = true; !arrived; first = false)
        RDL_TRY(doze(lane, peer, limit, first, &arrived));
    return RDL_OK;
}

/* Where even the slowest member is. */
static void note_settled(rdl_lane *lane)
{
    uint64_t least = UINT64_MAX;

    for (int i = 0; i < lane->comm->size; i++) {
        uint64_t passed =
            i == lane->comm->me ? lane->sequence : passed_by(lane, i);

        least = passed < least ? passed : least;
    }
    lane->settled = least;
}

rdl_status rdl_lane_settle(rdl_lane *lane, uint64_t phase, rdl_limit *limit)
{
    rdl_status st = RDL_OK;

    lane->settling = phase;
    for (int i = 0; i < lane->comm->size && st == RDL_OK; i++)
        if (i != lane->comm->me)
            st = rdl_lane_await(lane, i, limit);
    lane->settling = 0;
    if (st == RDL_OK)
        note_settled(lane);
    return st;
}

/* --- turns ----------------------------------------------------------------- */

void rdl_lane_pass_turn(rdl_lane *lane, uint64_t ticket)
{
    rdl_turns_pass(&lane->turns, ticket);
    rdl_bell_ring(rdl_world_slice(lane->world));
}

void rdl_lane_give_up_turn(rdl_lane *lane, uint64_t ticket)
{
    rdl_turns_give_up(&lane->turns, ticket);
    rdl_bell_ring(rdl_world_slice(lane->world));
}

static rdl_status miss_turn(rdl_lane *lane, const rdl_limit *limit)
{
    char group[RDL_LANE_TEXT + RDL_SITE_SHOWN], why[RDL_SENTENCE / 2] = "";
    rdl_text text = { why, sizeof why };

    text_with_site(lane, limit, group, sizeof group);
    if (!rdl_chain_add_batch(&text, lane->world, limit->record))
        rdl_chain_add(&text, lane->world, lane->world->rank, lane->key.low,
                      waiting_since(lane, limit));
    rdl_say("%s on %s: timed out after %.3g s, waiting for its turn behind "
            "operations that were issued before it on this rank%s",
            limit->operation, group, (double)limit->timeout_ms / 1000, why);
    return rdl_lane_fail(lane, RDL_TIMEOUT);
}

rdl_status rdl_lane_look_for_turn(rdl_lane *lane, rdl_limit *limit)
{
    if (limit->deadline == 0)
        limit->deadline = rdl_deadline_after_ms(limit->timeout_ms);
    RDL_TRY(rdl_lane_state(lane));
    return rdl_deadline_passed(limit->deadline) ? miss_turn(lane, limit)
                                                : RDL_OK;
}

rdl_status rdl_lane_await_turn(rdl_lane *lane, uint64_t ticket, rdl_limit *limit)
{
    rdl_slice *mine = rdl_world_slice(lane->world);

    for (int i = 0; i < 32 && !rdl_turns_is(&lane->turns, ticket); i++)
        sched_yield();
    while (!rdl_turns_is(&lane->turns, ticket)) {
        uint32_t bell = rdl_bell_announce(mine);
        rdl_time sleep = RDL_SLEEP_MOST;
        rdl_status st = rdl_lane_look_for_turn(lane, limit);

        /* What is ahead may be pending with nobody to drive it. */
        if (st == RDL_OK && rdl_tasks_advance(lane->world, true, &sleep)) {
            rdl_bell_withdraw(mine);
            continue;
        }
        if (st == RDL_OK && !rdl_turns_is(&lane->turns, ticket))
            rdl_bell_sleep(mine, bell,
                           rdl_deadline_left(limit->deadline, sleep));
        rdl_bell_withdraw(mine);
        if (st != RDL_OK) {
            rdl_lane_give_up_turn(lane, ticket);
            return st;
        }
    }
    return RDL_OK;
}
