/* The inside of an FSDP unit, for fsdp.c and ahead.c. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_PARALLEL_UNIT_H
#define RDL_PARALLEL_UNIT_H

#include "parallel/blocks.h"
#include "parallel/fsdp.h"

#include <raddle/stream.h>
#include <raddle/work.h>
#include <stdatomic.h>

/* "fsdp.gather layers.0.attention.wq.weight": what, of which unit, for traces. */
typedef struct rdl_fsdp_label {
    char text[160];
} rdl_fsdp_label;

/* What goes on beside the caller. A stream's thread writes only what its functions
 * are given, and the clock; the caller takes the rest when the event has come. */
typedef struct rdl_ahead {
    bool coming; /* a gather is on its way */
    float *coming_full;
    float *coming_blocks;
    rdl_work coming_work;
    rdl_event *arrived;
    rdl_fsdp_label coming_label;

    bool leaving; /* a gradient is */
    float *leaving_whole;
    float *leaving_blocks;
    rdl_work leaving_works[2]; /* over shard, over replicate */
    int n_leaving_works;
    rdl_event *settled;
    rdl_fsdp_label leaving_label;

    int64_t began; /* of the streams' threads: when the present one began */
    _Atomic int64_t took;
    int64_t waited;
} rdl_ahead;

struct rdl_fsdp {
    rdl_world *world;
    rdl_group shard;
    rdl_group sums_over; /* a lane of the same ranks, for gradients */
    rdl_group replicate;
    int size; /* of shard */
    int rank; /* in shard */
    int replicas;
    rdl_blocks blocks;
    bool gathered;

    void *memory;  /* of the two blocks below */
    float *values; /* this rank's block */
    float *sums;   /* of gradients; zero wherever there is no row, too */
    rdl_pool *pool;
    float *full;     /* from the pool while gathered, if size > 1 */
    float *gradient; /* from the pool, from first use to reduce */
    rdl_ahead ahead;
};

/* --- fsdp.c ---------------------------------------------------------------- */

/* st with its sentence, and what was going on before it. */
rdl_status rdl_fsdp_explain(const rdl_fsdp *unit, const char *what,
                            rdl_status st);
rdl_status rdl_fsdp_no_memory(const rdl_fsdp *unit, const char *what,
                              size_t floats);
float *rdl_fsdp_take_blocks(const rdl_fsdp *unit, float *buffer);
void rdl_fsdp_give_blocks(const rdl_fsdp *unit, float *blocks);
rdl_fsdp_label rdl_fsdp_label_of(const rdl_fsdp *unit, const char *what);
rdl_status rdl_fsdp_want_gradient(rdl_fsdp *unit);
void rdl_fsdp_add(float *to, const float *from, size_t count);

/* --- ahead.c --------------------------------------------------------------- */

/* Waits for the gather that is on its way: the unit is gathered then. */
rdl_status rdl_fsdp_take_in(rdl_fsdp *unit);

/* Waits for all that is on its way, whatever comes of it, and frees its events. */
void rdl_fsdp_abandon(rdl_fsdp *unit);

#endif
