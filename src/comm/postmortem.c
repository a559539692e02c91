/* What a launcher reads of ranks in the arena, which needs nothing of theirs: they
 * may be stopped, or dead. All of it is outside data. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/ranks.h"
#include "base/slice.h"
#include "base/slot.h"
#include "comm/launch.h"
#include "comm/peek.h"
#include "comm/plan.h"
#include "comm/verdict.h"

#include <inttypes.h>
#include <string.h>

static rdl_slice *slice_of(const rdl_seat *seat, int rank)
{
    return rdl_arena_slice(&seat->present->roster.arena, rank);
}

static uint32_t state_of(const rdl_slice *slice)
{
    return atomic_load_explicit(&slice->state, memory_order_acquire);
}

/* --- what failed ----------------------------------------------------------- */

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
    char reason[RDL_REASON];

    out->status = rdl_slice_read_failure(slice, reason);
    snprintf(out->sentence, sizeof out->sentence, "%s", reason);
}

static void read_failure(rdl_slice *slice, rdl_failure *out)
{
    uint32_t state = state_of(slice);
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

static rdl_status check(const rdl_job *job, int rank, int least,
                        const void *out, const char *caller)
{
    if (job != NULL && out != NULL && rank >= least && rank < job->size)
        return RDL_OK;
    return rdl_fail(RDL_INVALID,
                    "%s: no job, no place for the answer, or rank %d outside "
                    "0..%d",
                    caller, rank, job ? job->size - 1 : -1);
}

rdl_status rdl_job_failure(const rdl_job *job, int rank, rdl_failure *out)
{
    RDL_TRY(check(job, rank, RDL_ANY_RANK, out, "rdl_job_failure"));
    if (rank == RDL_ANY_RANK)
        read_any(job, out);
    else
        read_seat(&job->seats[rank], rank, out);
    return RDL_OK;
}

/* --- what a rank did last -------------------------------------------------- */

/* How far the search goes back: further than calls that are under way at once. */
#define RECORDS_SEARCHED 1024

_Static_assert((int)RDL_LAST_ISSUED == (int)RDL_RECORD_ISSUED &&
                   (int)RDL_LAST_RUNNING == (int)RDL_RECORD_RUNNING &&
                   (int)RDL_LAST_WAITING == (int)RDL_RECORD_WAITING &&
                   (int)RDL_LAST_ENDED == (int)RDL_RECORD_ENDED,
               "states are handed on as they are");

/* How much a call in that state tells of what its rank is doing; 0: no state. */
static int weight_of_state(uint8_t state)
{
    static const int weights[] = { [RDL_RECORD_ENDED] = 1,
                                   [RDL_RECORD_ISSUED] = 2,
                                   [RDL_RECORD_RUNNING] = 3,
                                   [RDL_RECORD_WAITING] = 4 };

    return state < sizeof weights / sizeof *weights ? weights[state] : 0;
}

static bool find_last(rdl_slice *slice, rdl_entry *best)
{
    uint64_t newest = rdl_records_newest(slice);
    uint64_t oldest = rdl_records_oldest(slice);
    rdl_entry e;

    best->state = 0;
    if (newest > RECORDS_SEARCHED && oldest < newest - RECORDS_SEARCHED)
        oldest = newest - RECORDS_SEARCHED;
    for (uint64_t n = newest; n >= oldest && n > 0; n--)
        /* Threads that wait for a call are told by the call. */
        if (rdl_records_read(slice, n, &e) && e.operation < RDL_RECORD_AWAIT &&
            weight_of_state(e.state) > weight_of_state(best->state))
            *best = e;
    return best->state != 0;
}

static void add_call(const rdl_entry *e, rdl_text *text)
{
    const char *dtype = rdl_dtype_name(e->dtype);
    bool sends = (e->flags & RDL_RECORD_SENDS) != 0;

    switch ((rdl_operation)e->operation) {
    case RDL_OP_SEND_RECV:
        rdl_text_add(text, "%s(%" PRIu64 " %s %s rank %d)",
                     sends ? "send" : "receive", e->count, dtype,
                     sends ? "to" : "from", e->root);
        return;
    case RDL_OP_BARRIER:
        rdl_text_add(text, "barrier");
        return;
    case RDL_OP_BROADCAST:
    case RDL_OP_REDUCE:
    case RDL_OP_GATHER:
    case RDL_OP_SCATTER:
        rdl_text_add(text, "%s(%" PRIu64 " %s, root %d)",
                     rdl_operation_name((rdl_operation)e->operation), e->count,
                     dtype, e->root);
        return;
    default:
        rdl_text_add(text, "%s(%" PRIu64 " %s)",
                     rdl_operation_name((rdl_operation)e->operation), e->count,
                     dtype);
    }
}

/* From ticks to now; 0 if the counter tells nothing. */
static double seconds_since(const rdl_slice *slice, uint64_t ticks)
{
    rdl_instant now = rdl_instant_now(rdl_ticks_are_even());
    double all = (double)(now.time - slice->time_then);
    double part = (double)(now.ticks - ticks);
    double seconds;

    if (now.ticks <= slice->ticks_then || ticks > now.ticks)
        return 0;
    seconds = all / (double)(now.ticks - slice->ticks_then) * part / 1e9;
    return seconds > 0 ? seconds : 0;
}

static void read_last(rdl_slice *slice, int size, rdl_last *out)
{
    rdl_text call = { out->call, sizeof out->call };
    rdl_entry e;

    if (!find_last(slice, &e))
        return;
    out->state = (rdl_last_state)e.state;
    out->status = e.status <= RDL_BUG ? (rdl_status)e.status : RDL_BUG;
    out->peer = e.peer < size ? e.peer : -1;
    out->number = e.call;
    out->seconds = seconds_since(
        slice, e.ticks + (e.state == RDL_RECORD_ENDED ? e.took : 0));
    add_call(&e, &call);
    rdl_peek_group(slice, e.lane, size, out->group, sizeof out->group);
    rdl_peek_text(slice, e.site, out->site, sizeof out->site);
}

rdl_status rdl_job_last(const rdl_job *job, int rank, rdl_last *out)
{
    const rdl_seat *seat;
    rdl_slice *slice;

    RDL_TRY(check(job, rank, 0, out, "rdl_job_last"));
    *out = (rdl_last){ .state = RDL_LAST_NONE, .peer = -1 };
    seat = &job->seats[rank];
    if (seat->present == NULL)
        return RDL_OK;
    slice = slice_of(seat, rank);
    if (state_of(slice) != RDL_SLICE_EMPTY)
        read_last(slice, job->size, out);
    return RDL_OK;
}
