/* The inside of a world. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_COMM_WORLD_H
#define RDL_COMM_WORLD_H

#include "base/heap.h"
#include "base/isa.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/patience.h"
#include "base/recorder.h"
#include "base/slice.h"
#include "comm/choice.h"
#include "comm/ghosts.h"
#include "comm/host.h"
#include "comm/lane.h"
#include "comm/seam.h"
#include "comm/task.h"
#include "comm/texts.h"

#include <pthread.h>
#include <raddle/group.h>
#include <raddle/trace.h>
#include <raddle/world.h>

#define RDL_LANES_IN_CHUNK 64
#define RDL_LANE_CHUNKS 1024

struct rdl_world {
    rdl_purse purse; /* its memory, and that of all that hangs on it */
    rdl_host *host;
    rdl_mapping *mapping; /* NULL in a world of one */
    rdl_shelf shelf;      /* only with a mapping */
    rdl_slice *slice;     /* the shelf's; in a world of one `alone` */
    rdl_slice *alone;     /* private: for the bell */
    rdl_heap heap;        /* what rdl_mem_alloc gives */
    int rank;
    int size;
    uint32_t id; /* never 0; tells worlds and their lives apart */
    rdl_process self;
    int64_t timeout_ms;
    rdl_patience patience;
    int cores;           /* that all ranks have together; 0: not known yet */
    rdl_isa isa;         /* of the arithmetic */
    size_t streams_from; /* outputs of so many bytes are stored past the caches */
    rdl_choices choices;    /* of algorithms */
    rdl_recorder recorder;  /* of nothing in a world of one */
    rdl_texts texts;        /* likewise */
    const rdl_trace *trace; /* NULL: nobody looks */
    const rdl_delay *delay; /* the seam of bench/race, NULL: none; comm/seam.h */

    pthread_mutex_t lock; /* protects what follows; taken after a lane's `failing` */
    rdl_map comms;        /* key -> rdl_comm * */
    rdl_map lanes;        /* key -> rdl_lane *, dormant ones too */
    rdl_ghosts ghosts; /* of lanes without a slot */
    rdl_lane *free_lanes;
    rdl_lane *dormant_first; /* closed longest ago */
    rdl_lane *dormant_last;
    rdl_lane *nook_owners[RDL_NOOKS_MOST];
    uint32_t nook_hand; /* whose nook is looked at next */
    uint32_t n_lanes;
    uint32_t n_open;
    uint32_t n_slots;
    uint32_t n_comms; /* of two ranks or more, this one among them */
    uint64_t n_openings;
    rdl_stream *streams;
    uint64_t last_stream; /* the number of the newest; under the lock */
    rdl_event *events;

    rdl_tasks tasks;
    rdl_world *next_in_host; /* under the host's `helping` */
    bool unfenced;           /* the seam of bench/race: see comm/seam.h */
    bool strict;             /* RDL_CHECK_STRICT: nobody runs ahead */
    bool uncompared;         /* RDL_CHECK_OFF, or the seam */

    _Atomic uint32_t n_streams; /* each with a thread */
    _Atomic uint64_t n_collectives;
    _Atomic uint64_t n_mapped;
    _Atomic(rdl_lane *) chunks[RDL_LANE_CHUNKS];
};

static inline rdl_slice *rdl_world_slice(const rdl_world *world)
{
    return world->slice;
}

/* RDL_OK if world is one and this process may use it. */
rdl_status rdl_world_check(const rdl_world *world);

/* RDL_STATE if this rank has given up (rdl_world_abort). */
static inline rdl_status rdl_world_check_active(const rdl_world *world)
{
    /* Pairs with the store of who gave up: the reason is written. */
    if (__builtin_expect(
            atomic_load_explicit(&world->slice->state, memory_order_acquire) ==
                RDL_SLICE_FAILED,
            0))
        return rdl_fail(RDL_STATE, "this rank gave up: %s",
                        world->slice->reason);
    return RDL_OK;
}

/* --- the registry (comm/registry.c) ---------------------------------------- */

rdl_status rdl_registry_init(rdl_world *world);
void rdl_registry_fini(rdl_world *world);

/* The lane of an open handle, and the next ticket on it: until the ticket is
 * passed or given up, the lane stays open and what it is does not change. */
rdl_status rdl_registry_enter(rdl_world *world, rdl_group group,
                              rdl_lane **lane, uint64_t *ticket);

/* The lane on which this rank sends to member peer of the group, or receives from
 * it, and the next ticket on it; if peer is this rank, a lane of one. */
rdl_status rdl_registry_pair(rdl_world *world, rdl_group group, int peer,
                             bool sends, rdl_lane **out, uint64_t *ticket);

/* Calls revoke for each way of the lane that has been used. */
void rdl_registry_revoke_pairs(rdl_lane *lane,
                               void (*revoke)(rdl_lane *way, uint32_t site),
                               uint32_t site);

/* Opens the group of these ranks, which are left of the lane's: the same on all of
 * them, by the lane's key and how often it has shrunk. */
rdl_status rdl_registry_open_shrunk(rdl_lane *from, const int *ranks, int count,
                                    rdl_group *out);

/* A slot for the lane, whose turn the caller has; the sequence goes on where the
 * key's last slot stopped. RDL_AGAIN: none is free, and one will be when others have
 * passed what was closed. RDL_NO_MEMORY: too many are open. */
rdl_status rdl_registry_give_slot(rdl_world *world, rdl_lane *lane);

/* Whether no other member needs what the lane's lines and nook say; the caller has its
 * turn. */
bool rdl_registry_all_passed(const rdl_lane *lane);

/* RDL_NO_MEMORY, with the sentence: it has been waited for in vain. */
rdl_status rdl_registry_no_slot(rdl_world *world);

/* The first failure no call has reported, with its sentence; RDL_OK if none. */
rdl_status rdl_registry_unreported(rdl_world *world);

/* Somebody has been told of the stream's failure, and so of the groups that it ended. */
void rdl_registry_stream_reported(rdl_world *world, uint64_t stream);

#endif
