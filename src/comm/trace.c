/* From a call to what a trace sees of it. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/trace.h"

#include "base/ranks.h"
#include "comm/verdict.h"
#include "comm/world.h"

void rdl_trace_call(const rdl_trace *trace, const rdl_lane *lane,
                    const char *operation, rdl_dtype dtype, size_t count,
                    const char *caller, const char *stream)
{
    char ranks[RDL_LANE_TEXT];
    rdl_text text = { ranks, sizeof ranks };
    rdl_trace_event event = {
        .group = ranks,
        /* A way between two members has a name that is not for people. */
        .lane = lane->title != NULL ? "" : lane->name,
        .caller = caller != NULL ? caller : "",
        .operation = operation,
        .dtype = rdl_dtype_name(dtype),
        .count = count,
        .bytes = count * rdl_dtype_bytes(dtype),
        .stream = stream,
    };

    rdl_text_add(&text, "[");
    rdl_text_add_ranks(&text, lane->comm->ranks, lane->comm->size);
    rdl_text_add(&text, "]");
    trace->see(trace->arg, &event);
}

rdl_status rdl_world_trace(rdl_world *world, const rdl_trace *trace)
{
    RDL_TRY(rdl_world_check(world));
    if (trace != NULL && trace->see == NULL)
        return rdl_fail(RDL_INVALID, "trace: its function is NULL");
    world->trace = trace;
    return RDL_OK;
}
