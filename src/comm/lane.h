/* Lanes: one ordered queue of operations over one list of ranks, and what this
 * rank knows of the others on it.
 *
 * A lane's memory stays a lane as long as its world lives, so that a stale handle
 * can be looked at; its generation says whether the handle still means it. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_COMM_LANE_H
#define RDL_COMM_LANE_H

#include "base/hash.h"
#include "base/ranks.h"
#include "base/slice.h"
#include "base/slot.h"
#include "base/status.h"
#include "base/time.h"
#include "comm/turns.h"

#include <pthread.h>
#include <raddle/world.h>
#include <stdbool.h>

/* One ordered list of ranks, shared by its lanes. Does not change. */
typedef struct rdl_comm {
    rdl_key key;
    uint32_t lanes; /* that refer to it; under the world's lock */
    int size;
    int me; /* group rank, -1: not a member */
    int ranks[];
} rdl_comm;

/* Another member (or this one), as far as known. */
typedef struct rdl_peer {
    rdl_slice *slice;
    rdl_slot *slot; /* NULL: not found yet */
    uint32_t tag;
    int rank;         /* in the world */
    uint64_t offered; /* where its staging for the present call lies */
    uint64_t input;   /* in its heap, if the call is mapped */
    uint64_t output;
} rdl_peer;

/* An operation's limit, and its name for sentences: "all_reduce". The clock is
 * asked only by who has to sleep. */
typedef struct rdl_limit {
    rdl_deadline deadline; /* 0: not set yet */
    int64_t timeout_ms;
    const char *operation;
    uint64_t record; /* of the operation (base/recorder.h); 0: none */
    uint32_t site;   /* where the program makes it; 0: not known */
} rdl_limit;

typedef struct rdl_lane rdl_lane;
struct rdl_lane {
    rdl_world *world;
    rdl_turns turns;             /* who has the turn drives the lane */
    _Atomic uint32_t generation; /* changes by who has the turn, under the world's
                                    lock */

    /* The registry's (comm/registry.c), under the world's lock. */
    uint32_t index;
    uint32_t openings; /* 0: free or dormant */
    rdl_key key;
    rdl_comm *comm;   /* does not change while open */
    char *name;       /* likewise; "" is the default lane */
    char *title;      /* what messages call it; NULL: by name and list */
    rdl_lane **pairs; /* lanes to and from each member, for send and receive */
    rdl_lane *next;   /* free or dormant ones */
    rdl_lane *previous;

    /* Of who has the turn; mine and peers come once, under `failing`. */
    _Atomic bool prepared;
    rdl_slot_ref mine; /* slot NULL: not used yet */
    uint64_t sequence; /* the last phase published */
    uint64_t settled;  /* a phase that all are known to have passed */
    uint64_t settling; /* this rank waits until all have passed it; 0: it does not */
    uint64_t number;    /* of calls */
    uint64_t nook;      /* offset in the slice; 0: none (comm/nook.h) */
    uint32_t nook_uses; /* so many parts of it were used, or looked for */
    uint64_t nook_phases[RDL_NOOK_PARTS]; /* in which each was used last */
    uint32_t looked_up; /* members, in the system, while waiting */
    uint32_t waits;     /* that were long; comm/seats.h */
    rdl_peer *peers;

    /* The first failure. Written once, under its lock, by who has the turn or by
     * who gave up waiting for it: cause, then failure. */
    pthread_mutex_t failing;
    _Atomic uint32_t failure; /* rdl_status */
    _Atomic bool reported;
    _Atomic uint64_t stream; /* whose operation failed on it last; 0: none */
    char *cause;             /* its sentence; NULL: no memory for it */

    /* Of who has `shrinking`. */
    _Atomic bool shrinking;
    uint32_t shrunk; /* how often, at this rank */
};

/* The holder of the turn has done with the lane: the next may go on. */
void rdl_lane_pass_turn(rdl_lane *lane, uint64_t ticket);
void rdl_lane_give_up_turn(rdl_lane *lane, uint64_t ticket);

/* Waits for the ticket's turn. RDL_TIMEOUT, or the lane's failure: the ticket is
 * given up. */
rdl_status rdl_lane_await_turn(rdl_lane *lane, uint64_t ticket,
                               rdl_limit *limit);

/* One look at what may end the wait for a turn: a failure, the deadline. */
rdl_status rdl_lane_look_for_turn(rdl_lane *lane, rdl_limit *limit);

/* Makes sure that this rank's slot and peers are there. RDL_AGAIN: there will be a slot
 * when other members have passed what was closed. This and what follows is for who has
 * the turn, if nothing else is said. */
rdl_status rdl_lane_prepare(rdl_lane *lane);

/* So long to the next try: nobody rings for a slot. */
#define RDL_SLOT_NAP INT64_C(1000000)

/* One look at what may end the wait for a slot: a failure, the deadline. */
rdl_status rdl_lane_look_for_slot(rdl_lane *lane, rdl_limit *limit);

/* The same as rdl_lane_prepare, and waits. */
rdl_status rdl_lane_prepare_until(rdl_lane *lane, rdl_deadline deadline);

/* The payload of the next phase's line, to be filled. */
unsigned char *rdl_lane_payload(rdl_lane *lane);

/* The peer's payload of the present phase, which has arrived. */
const unsigned char *rdl_lane_peer_payload(const rdl_lane *lane, int peer);

/* At that offset of the peer's slice (or one's own). */
unsigned char *rdl_lane_peer_staging(const rdl_lane *lane, int peer,
                                     uint64_t offset);

/* Adds where that member makes the call of the present phase, which has arrived:
 * " at train.c:120"; nothing if it is not known. */
void rdl_lane_show_site(const rdl_lane *lane, int member, rdl_text *text);
/* In the heap of peer, which this process has mapped. */
const unsigned char *rdl_lane_peer_heap(const rdl_lane *lane, int peer,
                                        uint64_t offset);

/* Of a list of counts, what a verdict shows. */
#define RDL_COUNTS_SHOWN 16

typedef struct rdl_counts {
    uint64_t counts[RDL_COUNTS_SHOWN];
    int shown;
    int size; /* of the whole list; 0: there is none */
} rdl_counts;

/* Shows peers the list of the call whose first line comes next, one entry for each
 * member. Without room for it a verdict shows less. */
void rdl_lane_show_counts(rdl_lane *lane, const size_t *counts);
void rdl_lane_peer_counts(const rdl_lane *lane, int peer, rdl_counts *counts);

/* Publishes the next phase and wakes who sleeps for it. */
void rdl_lane_publish(rdl_lane *lane, uint64_t fingerprint,
                      const rdl_description *description);

/* Whether peer's line of the present phase is there; never waits. */
bool rdl_lane_arrived(rdl_lane *lane, int peer);

/* Whether peer has begun the next phase, which this rank has not; never waits. */
bool rdl_lane_is_ahead(rdl_lane *lane, int peer);

/* A wait sleeps at most that long before it looks around again. */
#define RDL_SLEEP_MOST INT64_C(20000000)

/* Waits for it. RDL_TIMEOUT, RDL_PEER and what a peer reports are failures of the
 * lane, already noted. */
rdl_status rdl_lane_await(rdl_lane *lane, int peer, rdl_limit *limit);

/* One look at what may end the wait for peer: a failure, a death, the deadline.
 * For who waits on several lanes at once. */
rdl_status rdl_lane_look(rdl_lane *lane, int peer, rdl_limit *limit);

/* Whether that member is gone for good, and how. Of a prepared lane, by any thread
 * inside it. */
bool rdl_lane_is_gone(const rdl_lane *lane, int member, rdl_text *text);

/* Wakes the other members that sleep, after a store that they may wait for. Of a
 * prepared lane, by any thread inside it. */
void rdl_lane_ring(rdl_lane *lane);

/* Notes the lane's first failure, with the thread's sentence; peers see it.
 * Returns the first failure and sets its sentence. Any thread inside the lane. */
rdl_status rdl_lane_fail(rdl_lane *lane, rdl_status status);

/* The thread's sentence becomes that of a call that has not begun: "all_reduce on the
 * world [0,1] at train.c:88: what". */
void rdl_lane_say(const rdl_lane *lane, const rdl_limit *limit,
                  const char *what);

/* RDL_OK, or the first failure with its sentence. Any thread. */
rdl_status rdl_lane_state(rdl_lane *lane);

/* RDL_OK: no member that has yet to finish the present phase has failed. Else its
 * failure, which is now the lane's: who arrives late must not succeed where the
 * others have given up. */
rdl_status rdl_lane_check_members(rdl_lane *lane);

/* What another member reports becomes the lane's failure. Never waits. */
void rdl_lane_hear(rdl_lane *lane);

/* Somebody has been told of the lane's failure. */
static inline void rdl_lane_reported(rdl_lane *lane)
{
    atomic_store_explicit(&lane->reported, true, memory_order_relaxed);
}

/* RDL_OK: what was read from the peer's staging up to now is good. Else its
 * failure, which is now the lane's. */
rdl_status rdl_lane_check_peer(rdl_lane *lane, int peer);

/* The readings of every phase up to the present one are done. */
void rdl_lane_pass(rdl_lane *lane);

/* The same, for an operation from which others may have run ahead: who sleeps for it
 * is woken. */
void rdl_lane_pass_aloud(rdl_lane *lane);

/* Every member is here in the present phase, so all have passed the one before. */
static inline void rdl_lane_met(rdl_lane *lane)
{
    lane->settled = lane->sequence - 1;
}

/* Waits until all members have passed that phase. Fails as rdl_lane_await does. */
rdl_status rdl_lane_settle(rdl_lane *lane, uint64_t phase, rdl_limit *limit);

#define RDL_LANE_TEXT 256

/* "group 'dp' [0,1,2,3]", "the world [0-63]" */
void rdl_lane_text(const rdl_lane *lane, char *text, size_t bytes);

#endif
