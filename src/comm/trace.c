/* From a call to what a trace sees of it. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/trace.h"

#include "base/ranks.h"
#include "comm/world.h"

static const char *dtype_name(rdl_dtype dtype)
{
    static const char *const names[] = {
#define X(name, text, bytes, type) [RDL_##name] = #text,
        RDL_DTYPE_MAP(X)
#undef X
    };

    return names[dtype];
}

void rdl_trace_call(const rdl_trace *trace, const rdl_lane *lane,
                    const char *operation, rdl_dtype dtype, size_t count,
                    const char *caller)
{
    char ranks[RDL_LANE_TEXT];
    rdl_text text = { ranks, sizeof ranks };
    rdl_trace_event event = {
        .group = ranks,
        .lane = lane->name,
        .caller = caller != NULL ? caller : "",
        .operation = operation,
        .dtype = dtype_name(dtype),
        .count = count,
        .bytes = count * rdl_dtype_bytes(dtype),
        .stream = "null",
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
