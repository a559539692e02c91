/* The inside of a world. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_COMM_WORLD_H
#define RDL_COMM_WORLD_H

#include "base/map.h"
#include "base/slice.h"
#include "comm/host.h"
#include "comm/lane.h"

#include <pthread.h>
#include <raddle/group.h>
#include <raddle/trace.h>
#include <raddle/world.h>

#define RDL_LANES_IN_CHUNK 64
#define RDL_LANE_CHUNKS 1024

/* How a wait goes through its steps. */
typedef struct rdl_patience {
    rdl_time spin; /* 0 where ranks share cores */
    int yields;
} rdl_patience;

struct rdl_world {
    rdl_host *host;
    rdl_mapping *mapping; /* NULL in a world of one */
    rdl_shelf shelf;      /* only with a mapping */
    int rank;
    int size;
    uint32_t id; /* never 0; tells worlds and their lives apart */
    rdl_process self;
    int64_t timeout_ms;
    rdl_patience patience;
    const rdl_trace *trace; /* NULL: nobody looks */

    pthread_mutex_t lock; /* protects what follows; taken after a drive lock */
    rdl_map comms;        /* key -> rdl_comm * */
    rdl_map lanes;        /* key -> rdl_lane *, dormant ones too */
    rdl_map ghosts;       /* key -> sequence, number of lanes without a slot */
    rdl_lane *free_lanes;
    rdl_lane *dormant_first; /* closed longest ago */
    rdl_lane *dormant_last;
    uint32_t n_lanes;
    uint32_t n_open;
    uint32_t n_slots;
    uint32_t n_comms; /* of two ranks or more, this one among them */
    uint64_t n_openings;

    _Atomic uint64_t n_collectives;
    _Atomic(rdl_lane *) chunks[RDL_LANE_CHUNKS];
};

/* RDL_OK if world is one and this process may use it. */
rdl_status rdl_world_check(const rdl_world *world);

/* --- the registry (comm/registry.c) ---------------------------------------- */

rdl_status rdl_registry_init(rdl_world *world);
void rdl_registry_fini(rdl_world *world);

/* The lane of an open handle, with its drive lock held. */
rdl_status rdl_registry_enter(rdl_world *world, rdl_group group, rdl_lane **out);
void rdl_registry_leave(rdl_lane *lane);

/* A slot for the lane, whose drive lock the caller holds; the sequence goes on
 * where the key's last slot stopped. */
rdl_status rdl_registry_give_slot(rdl_world *world, rdl_lane *lane);

/* The first failure no call has reported, with its sentence; RDL_OK if none. */
rdl_status rdl_registry_unreported(rdl_world *world);

#endif
