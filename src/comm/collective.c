/* The public calls: arguments are checked here, and nowhere below. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <raddle/collective.h>

#include "comm/reduce.h"
#include "comm/run.h"
#include "comm/trace.h"
#include "comm/verdict.h"
#include "comm/world.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

size_t rdl_dtype_bytes(rdl_dtype dtype)
{
    static const size_t sizes[] = {
#define X(name, text, bytes, type) [RDL_##name] = bytes,
        RDL_DTYPE_MAP(X)
#undef X
    };

    return (unsigned)dtype < sizeof sizes / sizeof *sizes ? sizes[dtype] : 0;
}

/* A call as it came, and how many blocks of count elements each buffer has
 * (0: one block). */
typedef struct call {
    rdl_operation operation;
    const void *input;
    void *output;
    size_t count;
    rdl_dtype dtype;
    rdl_reduction reduction;
    int root;
    bool reduces;
    bool input_has_blocks;
    bool output_has_blocks;
} call;

#define PLUS_ONE(...) +1
#define REDUCTIONS (0 RDL_REDUCTION_MAP(PLUS_ONE))

/* --- arguments ------------------------------------------------------------- */

/* Why some dtype has no such reduction. */
static const char *why_not(rdl_reduction reduction)
{
    switch (reduction) {
    case RDL_AVG:
        return "truths have no average";
    case RDL_PREMUL_SUM:
        return "a factor is for floating point";
    default:
        return "bits are combined in integers and bool";
    }
}

static rdl_status check_types(const call *c, const char *name)
{
    if (rdl_dtype_bytes(c->dtype) == 0)
        return rdl_fail(RDL_INVALID, "%s: %d is no dtype", name, (int)c->dtype);
    if (!c->reduces)
        return RDL_OK;
    if ((unsigned)c->reduction >= REDUCTIONS)
        return rdl_fail(RDL_INVALID, "%s: %d is no reduction", name,
                        (int)c->reduction);
    if (!rdl_can_reduce(c->dtype, c->reduction))
        return rdl_fail(RDL_INVALID, "%s: there is no %s of %s: %s", name,
                        rdl_reduction_name(c->reduction),
                        rdl_dtype_name(c->dtype), why_not(c->reduction));
    return RDL_OK;
}

/* *kept: the factor as the reduction uses it, so that ranks agree who mean the
 * same; 0 where none is wanted. */
static rdl_status check_factor(const call *c, const rdl_call *options,
                               const char *name, double *kept)
{
    double given = options != NULL ? options->factor : 0;
    bool wanted = c->reduces && c->reduction == RDL_PREMUL_SUM;
    bool narrow = c->dtype != RDL_FLOAT64;

    *kept = narrow ? (double)(float)given : given;
    if (!wanted && given != 0)
        return rdl_fail(RDL_INVALID,
                        "%s: a factor of %g, which only premul_sum takes", name,
                        given);
    if (wanted && (*kept == 0 || !isfinite(*kept)))
        return rdl_fail(RDL_INVALID,
                        "%s: premul_sum wants a factor that is finite and not "
                        "0; %g is %g in float%d",
                        name, given, *kept, narrow ? 32 : 64);
    return RDL_OK;
}

/* Bytes of one block and of all; no sum of them may overflow. */
static rdl_status check_size(const call *c, const rdl_comm *comm,
                             const char *name, size_t *block, size_t *all)
{
    size_t element = rdl_dtype_bytes(c->dtype);

    if (c->count > SIZE_MAX / 4 / element / (size_t)comm->size)
        return rdl_fail(RDL_INVALID,
                        "%s: %zu elements of %zu bytes for %d ranks: "
                        "the size overflows",
                        name, c->count, element, comm->size);
    *block = c->count * element;
    *all = *block * (size_t)comm->size;
    return RDL_OK;
}

static bool overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;

    return x < y + b_bytes && y < x + a_bytes;
}

/* Whether the buffers that overlap do so in the one way that is in place. */
static bool in_place(const call *c, const rdl_comm *comm, size_t block)
{
    uintptr_t input = (uintptr_t)c->input, output = (uintptr_t)c->output;
    size_t mine = (size_t)comm->me * block;

    switch (c->operation) {
    case RDL_OP_ALL_REDUCE:
    case RDL_OP_BROADCAST:
        return input == output;
    case RDL_OP_ALL_GATHER:
        return input == output + mine;
    case RDL_OP_REDUCE_SCATTER:
        return output == input + mine;
    default:
        return false;
    }
}

static rdl_status check_buffers(const call *c, const rdl_comm *comm,
                                const char *name, size_t block, size_t all)
{
    size_t in = c->input_has_blocks ? all : block;
    size_t out = c->output_has_blocks ? all : block;

    if (c->operation == RDL_OP_BARRIER || block == 0)
        return RDL_OK;
    if (c->input == NULL || c->output == NULL)
        return rdl_fail(RDL_INVALID, "%s: %s is NULL and %zu bytes are wanted",
                        name, c->input ? "output" : "input",
                        c->input ? out : in);
    if (overlap(c->input, in, c->output, out) && !in_place(c, comm, block))
        return rdl_fail(RDL_INVALID,
                        "%s: input (%zu bytes at %p) and output (%zu bytes at "
                        "%p) overlap, and not in the way that is in place",
                        name, in, c->input, out, c->output);
    return RDL_OK;
}

static rdl_status check_member(const rdl_lane *lane, const call *c,
                               const char *name)
{
    char text[RDL_LANE_TEXT];

    rdl_lane_text(lane, text, sizeof text);
    if (lane->comm->me < 0)
        return rdl_fail(RDL_INVALID, "%s: rank %d is not in %s", name,
                        lane->world->rank, text);
    if (c->root < 0 || c->root >= lane->comm->size)
        return rdl_fail(RDL_INVALID,
                        "%s: root %d is outside the group ranks 0..%d of %s",
                        name, c->root, lane->comm->size - 1, text);
    return RDL_OK;
}

/* --- running --------------------------------------------------------------- */

/* In a group of one each collective is a copy, or nothing, or a reduction of one
 * buffer. */
static rdl_status run_alone(const call *c, double factor, size_t bytes)
{
    if (c->reduces)
        rdl_reduce(c->output, &c->input, 1, c->count, c->dtype, c->reduction,
                   factor);
    else if (c->output != c->input && bytes > 0)
        memcpy(c->output, c->input, bytes);
    return RDL_OK;
}

static rdl_status run_together(rdl_lane *lane, const call *c, double factor,
                               size_t block, int64_t timeout_ms)
{
    rdl_request request = {
        .shape = { .operation = c->operation,
                   .me = lane->comm->me,
                   .size = lane->comm->size,
                   .root = c->root,
                   .bytes = block },
        .count = c->count,
        .dtype = c->dtype,
        .reduction = c->reduction,
        .factor = factor,
        .input = c->input,
        .output = c->output,
    };

    RDL_TRY(rdl_lane_prepare(lane));
    return rdl_run_whole(lane, &request, timeout_ms);
}

static rdl_status run_on(rdl_lane *lane, const call *c, const rdl_call *options)
{
    const char *name = rdl_operation_name(c->operation);
    int64_t timeout_ms = lane->world->timeout_ms;
    size_t block = 0, all = 0;
    double factor = 0;
    rdl_status st;

    RDL_TRY(check_types(c, name));
    RDL_TRY(check_factor(c, options, name, &factor));
    if (lane->comm->me < 0 || c->root != 0)
        RDL_TRY(check_member(lane, c, name));
    RDL_TRY(check_size(c, lane->comm, name, &block, &all));
    RDL_TRY(check_buffers(c, lane->comm, name, block, all));
    if (options != NULL && options->timeout_ms < 0)
        return rdl_fail(RDL_INVALID, "%s: a limit of %" PRId64 " ms is negative",
                        name, options->timeout_ms);
    if (options != NULL && options->timeout_ms > 0)
        timeout_ms = options->timeout_ms;
    RDL_TRY(rdl_lane_state(lane));
    if (__builtin_expect(lane->world->trace != NULL, 0))
        rdl_trace_call(lane->world->trace, lane, name, c->dtype, c->count,
                       options != NULL ? options->caller : NULL);
    st = lane->comm->size == 1
             ? run_alone(c, factor, block)
             : run_together(lane, c, factor, block, timeout_ms);
    if (st == RDL_OK)
        atomic_fetch_add_explicit(&lane->world->n_collectives, 1,
                                  memory_order_relaxed);
    return st;
}

static rdl_status run(rdl_world *world, rdl_group group, const call *c,
                      const rdl_call *options)
{
    rdl_lane *lane;
    rdl_status st;

    RDL_TRY(rdl_registry_enter(world, group, &lane));
    st = run_on(lane, c, options);
    rdl_registry_leave(lane);
    return st;
}

/* --- the calls ------------------------------------------------------------- */

rdl_status rdl_barrier(rdl_world *world, rdl_group group,
                       const rdl_call *options)
{
    call c = { .operation = RDL_OP_BARRIER };

    return run(world, group, &c, options);
}

rdl_status rdl_broadcast(rdl_world *world, rdl_group group, void *buffer,
                         size_t count, rdl_dtype dtype, int root,
                         const rdl_call *options)
{
    call c = { .operation = RDL_OP_BROADCAST,
               .input = buffer,
               .output = buffer,
               .count = count,
               .dtype = dtype,
               .root = root };

    return run(world, group, &c, options);
}

rdl_status rdl_all_reduce(rdl_world *world, rdl_group group, const void *input,
                          void *output, size_t count, rdl_dtype dtype,
                          rdl_reduction reduction, const rdl_call *options)
{
    call c = { .operation = RDL_OP_ALL_REDUCE,
               .input = input,
               .output = output,
               .count = count,
               .dtype = dtype,
               .reduction = reduction,
               .reduces = true };

    return run(world, group, &c, options);
}

rdl_status rdl_all_gather(rdl_world *world, rdl_group group, const void *input,
                          void *output, size_t count, rdl_dtype dtype,
                          const rdl_call *options)
{
    call c = { .operation = RDL_OP_ALL_GATHER,
               .input = input,
               .output = output,
               .count = count,
               .dtype = dtype,
               .output_has_blocks = true };

    return run(world, group, &c, options);
}

rdl_status rdl_reduce_scatter(rdl_world *world, rdl_group group,
                              const void *input, void *output, size_t count,
                              rdl_dtype dtype, rdl_reduction reduction,
                              const rdl_call *options)
{
    call c = { .operation = RDL_OP_REDUCE_SCATTER,
               .input = input,
               .output = output,
               .count = count,
               .dtype = dtype,
               .reduction = reduction,
               .reduces = true,
               .input_has_blocks = true };

    return run(world, group, &c, options);
}

rdl_status rdl_all_to_all(rdl_world *world, rdl_group group, const void *input,
                          void *output, size_t count, rdl_dtype dtype,
                          const rdl_call *options)
{
    call c = { .operation = RDL_OP_ALL_TO_ALL,
               .input = input,
               .output = output,
               .count = count,
               .dtype = dtype,
               .input_has_blocks = true,
               .output_has_blocks = true };

    return run(world, group, &c, options);
}
