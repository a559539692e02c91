/* What a launcher reads of ranks in the arena, which needs nothing of theirs: they
 * may be stopped, or dead. All of it is outside data. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/slice.h"
#include "base/slot.h"
#include "comm/launch.h"

#include <string.h>

static rdl_slice *slice_of(const rdl_seat *seat, int rank)
{
    return rdl_arena_slice(&seat->present->roster.arena, rank);
}

/* Of several failures: what ranks did wrong comes before what they noticed, and
 * a peer's death is the least news. */
static int weight_of(uint32_t status)
{
    switch (status) {
    case RDL_OK:
        return 0;
    case RDL_PEER:
        return 1;
    case RDL_TIMEOUT:
        return 2;
    case RDL_MISMATCH:
        return 4;
    default:
        return 3;
    }
}

static rdl_slot *weightiest_slot(rdl_slice *slice)
{
    rdl_slot *best = NULL;

    for (uint32_t place = 0; place < RDL_TABLE_PLACES; place++) {
        rdl_slot *slot = rdl_table_at(slice, place);

        if (slot != NULL &&
            weight_of(rdl_slot_cause(slot)) >
                (best != NULL ? weight_of(rdl_slot_cause(best)) : 0))
            best = slot;
    }
    return best;
}

static void read_slot(rdl_slice *slice, rdl_slot *slot, rdl_failure *out)
{
    uint32_t cause = rdl_slot_cause(slot);
    size_t n = rdl_slice_read_text(
        slice, atomic_load_explicit(&slot->cause_text, memory_order_relaxed),
        out->sentence, sizeof out->sentence - 1);

    out->status = cause <= RDL_BUG ? (rdl_status)cause : RDL_BUG;
    out->sentence[n] = 0;
}

static void read_reason(const rdl_slice *slice, rdl_failure *out)
{
    out->status =
        slice->failure <= RDL_BUG ? (rdl_status)slice->failure : RDL_BUG;
    snprintf(out->sentence, sizeof out->sentence, "%.*s",
             (int)sizeof slice->reason, slice->reason);
}

static void read_failure(rdl_slice *slice, rdl_failure *out)
{
    uint32_t state = atomic_load_explicit(&slice->state, memory_order_acquire);
    rdl_slot *slot = NULL;

    /* Who has not joined may have nothing but its state. */
    if (state == RDL_SLICE_JOINED || state == RDL_SLICE_LEFT)
        slot = weightiest_slot(slice);
    if (slot != NULL)
        read_slot(slice, slot, out);
    else if (state == RDL_SLICE_FAILED)
        read_reason(slice, out);
}

static void read_seat(const rdl_seat *seat, int rank, rdl_failure *out)
{
    *out = (rdl_failure){ .status = RDL_OK };
    if (seat->present != NULL)
        read_failure(slice_of(seat, rank), out);
}

static void read_any(const rdl_job *job, rdl_failure *out)
{
    rdl_failure one;

    *out = (rdl_failure){ .status = RDL_OK };
    for (int rank = 0; rank < job->size; rank++) {
        read_seat(&job->seats[rank], rank, &one);
        if (weight_of(one.status) > weight_of(out->status))
            *out = one;
    }
}

rdl_status rdl_job_failure(const rdl_job *job, int rank, rdl_failure *out)
{
    if (job == NULL || out == NULL || rank < RDL_ANY_RANK || rank >= job->size)
        return rdl_fail(RDL_INVALID,
                        "rdl_job_failure: no job, no place for the answer, or "
                        "rank %d outside 0..%d",
                        rank, job ? job->size - 1 : -1);
    if (rank == RDL_ANY_RANK)
        read_any(job, out);
    else
        read_seat(&job->seats[rank], rank, out);
    return RDL_OK;
}
