/* Gathering and reducing beside the caller, on streams. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/status.h"
#include "base/time.h"
#include "parallel/unit.h"

/* --- the clock, on a stream's thread --------------------------------------- */

static rdl_status begin_clock(void *arg)
{
    ((rdl_fsdp *)arg)->ahead.began = rdl_now();
    return RDL_OK;
}

static void stop_clock(rdl_fsdp *unit)
{
    atomic_fetch_add_explicit(&unit->ahead.took, rdl_now() - unit->ahead.began,
                              memory_order_relaxed);
}

void rdl_fsdp_times(const rdl_fsdp *unit, int64_t *took, int64_t *waited)
{
    *took = unit ? atomic_load_explicit(&unit->ahead.took, memory_order_relaxed)
                 : 0;
    *waited = unit ? unit->ahead.waited : 0;
}

static rdl_status want_event(rdl_fsdp *unit, rdl_event **event)
{
    return *event != NULL ? RDL_OK : rdl_event_create(unit->world, event);
}

/* Waits for the works' results and then for the event behind them. A stream passes
 * the event also after a failure. */
static rdl_status await(rdl_fsdp *unit, const rdl_work *works, int count,
                        rdl_event *event)
{
    rdl_time since = rdl_now();
    rdl_status first = RDL_OK;

    for (int i = 0; i < count; i++) {
        rdl_status st = rdl_work_wait(unit->world, works[i], 0);

        if (first == RDL_OK)
            first = st;
    }
    if (first == RDL_OK)
        first = rdl_event_synchronize(event, 0);
    else
        while (rdl_event_query(event) == RDL_AGAIN) /* the sentence stays */
            rdl_sleep(INT64_C(100000));
    unit->ahead.waited += rdl_now() - since;
    return first;
}

/* --- gathering ------------------------------------------------------------- */

static rdl_status unpack(void *arg)
{
    rdl_fsdp *unit = arg;

    if (!unit->blocks.direct)
        rdl_blocks_unpack(&unit->blocks, unit->ahead.coming_blocks,
                          unit->ahead.coming_full);
    stop_clock(unit);
    return RDL_OK;
}

static rdl_status issue_gather(rdl_fsdp *unit, rdl_stream *stream)
{
    rdl_ahead *a = &unit->ahead;
    rdl_call call = { .caller = a->coming_label.text,
                      .stream = stream,
                      .work = &a->coming_work };

    RDL_TRY(want_event(unit, &a->arrived));
    RDL_TRY(rdl_stream_call(stream, begin_clock, unit));
    RDL_TRY(rdl_all_gather(unit->world, unit->shard, unit->values,
                           a->coming_blocks, unit->blocks.block, RDL_FLOAT32,
                           &call));
    a->coming = true; /* from here on it must be taken in */
    RDL_TRY(rdl_stream_call(stream, unpack, unit));
    return rdl_event_record(a->arrived, stream);
}

static void give_coming(rdl_fsdp *unit)
{
    rdl_ahead *a = &unit->ahead;

    if (a->coming_blocks != NULL)
        rdl_fsdp_give_blocks(unit, a->coming_blocks);
    rdl_pool_give(unit->pool, a->coming_full);
    a->coming_full = a->coming_blocks = NULL;
}

rdl_status rdl_fsdp_prefetch(rdl_fsdp *unit, rdl_stream *stream)
{
    rdl_ahead *a;
    rdl_status st;

    if (unit == NULL)
        return rdl_fail(RDL_INVALID, "rdl_fsdp_prefetch: the unit is NULL");
    a = &unit->ahead;
    if (stream == NULL || unit->size == 1 || unit->gathered || a->coming)
        return RDL_OK;
    /* What is sent may still be written to by a reduction that is on its way: not
     * so, as that writes sums. Values change in the optimizer alone. */
    a->coming_label = rdl_fsdp_label_of(unit, "gather");
    a->coming_full = rdl_pool_take(unit->pool, unit->blocks.whole);
    a->coming_blocks =
        a->coming_full ? rdl_fsdp_take_blocks(unit, a->coming_full) : NULL;
    st = a->coming_blocks
             ? issue_gather(unit, stream)
             : rdl_fsdp_no_memory(unit, "the whole", unit->blocks.whole);
    if (st != RDL_OK && !a->coming)
        give_coming(unit);
    return rdl_fsdp_explain(unit, "gathering", st);
}

rdl_status rdl_fsdp_take_in(rdl_fsdp *unit)
{
    rdl_ahead *a = &unit->ahead;
    rdl_status st = await(unit, &a->coming_work, 1, a->arrived);

    a->coming = false;
    if (st == RDL_OK) {
        unit->full = a->coming_full;
        a->coming_full = NULL;
        unit->gathered = true;
        if (!unit->blocks.direct)
            rdl_fsdp_give_blocks(unit, a->coming_blocks);
        a->coming_blocks = NULL;
        return RDL_OK;
    }
    give_coming(unit);
    return rdl_fsdp_explain(unit, "gathering", st);
}

/* --- reducing -------------------------------------------------------------- */

static float *leaving_block(const rdl_fsdp *unit)
{
    return unit->ahead.leaving_blocks + (size_t)unit->rank * unit->blocks.block;
}

static rdl_status pack(void *arg)
{
    rdl_fsdp *unit = arg;

    begin_clock(unit);
    if (!unit->blocks.direct)
        rdl_blocks_pack(&unit->blocks, unit->ahead.leaving_whole,
                        unit->ahead.leaving_blocks);
    return RDL_OK;
}

static rdl_status add_up(void *arg)
{
    rdl_fsdp *unit = arg;

    rdl_fsdp_add(unit->sums, leaving_block(unit), unit->blocks.block);
    stop_clock(unit);
    return RDL_OK;
}

static rdl_status issue_reduce(rdl_fsdp *unit, rdl_stream *stream)
{
    rdl_ahead *a = &unit->ahead;
    float *mine = leaving_block(unit);
    rdl_call call = { .caller = a->leaving_label.text, .stream = stream };

    RDL_TRY(want_event(unit, &a->settled));
    RDL_TRY(rdl_stream_call(stream, pack, unit));
    if (unit->size > 1) {
        call.work = &a->leaving_works[a->n_leaving_works];
        RDL_TRY(rdl_reduce_scatter(unit->world, unit->sums_over,
                                   a->leaving_blocks, mine, unit->blocks.block,
                                   RDL_FLOAT32, RDL_SUM, &call));
        a->n_leaving_works++;
    }
    if (unit->replicas > 1) {
        call.work = &a->leaving_works[a->n_leaving_works];
        RDL_TRY(rdl_all_reduce(unit->world, unit->replicate, mine, mine,
                               unit->blocks.block, RDL_FLOAT32, RDL_SUM, &call));
        a->n_leaving_works++;
    }
    RDL_TRY(rdl_stream_call(stream, add_up, unit));
    return rdl_event_record(a->settled, stream);
}

rdl_status rdl_fsdp_reduce_on(rdl_fsdp *unit, rdl_stream *stream)
{
    rdl_ahead *a;

    if (unit == NULL || stream == NULL)
        return rdl_fsdp_reduce(unit);
    a = &unit->ahead;
    RDL_TRY(rdl_fsdp_settle(unit));
    RDL_TRY(rdl_fsdp_want_gradient(unit));
    a->leaving_label = rdl_fsdp_label_of(unit, "reduce");
    a->leaving_blocks = rdl_fsdp_take_blocks(unit, unit->gradient);
    if (a->leaving_blocks == NULL)
        return rdl_fsdp_no_memory(unit, "the gradient on its way",
                                  rdl_blocks_floats(&unit->blocks));
    a->leaving_whole = unit->gradient;
    unit->gradient = NULL;
    a->n_leaving_works = 0;
    a->leaving = true;
    return rdl_fsdp_explain(unit, "reducing the gradient of",
                            issue_reduce(unit, stream));
}

rdl_status rdl_fsdp_settle(rdl_fsdp *unit)
{
    rdl_ahead *a;
    rdl_status st;

    if (unit == NULL)
        return rdl_fail(RDL_INVALID, "rdl_fsdp_settle: the unit is NULL");
    a = &unit->ahead;
    if (!a->leaving)
        return RDL_OK;
    st = await(unit, a->leaving_works, a->n_leaving_works, a->settled);
    a->leaving = false;
    rdl_fsdp_give_blocks(unit, a->leaving_blocks);
    rdl_pool_give(unit->pool, a->leaving_whole);
    a->leaving_blocks = a->leaving_whole = NULL;
    return rdl_fsdp_explain(unit, "reducing the gradient of", st);
}

void rdl_fsdp_abandon(rdl_fsdp *unit)
{
    rdl_status st;

    if (unit->ahead.coming)
        (void)rdl_fsdp_take_in(unit);
    st = rdl_fsdp_settle(unit);
    (void)st; /* nobody asks any more */
    (void)rdl_event_destroy(unit->ahead.arrived);
    (void)rdl_event_destroy(unit->ahead.settled);
}
