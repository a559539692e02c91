/* Arguments are checked here, and nowhere below. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/call.h"

#include "comm/batch.h"
#include "comm/quick.h"
#include "comm/reduce.h"
#include "comm/stream.h"
#include "comm/verdict.h"

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

#define PLUS_ONE(...) +1
#define REDUCTIONS (0 RDL_REDUCTION_MAP(PLUS_ONE))

/* --- what the operations are like ------------------------------------------ */

static bool has_root(rdl_operation operation)
{
    return operation == RDL_OP_BROADCAST || operation == RDL_OP_REDUCE ||
           operation == RDL_OP_GATHER || operation == RDL_OP_SCATTER;
}

/* How many blocks each buffer of this rank has: 0, 1 or one for each member. */
static void count_blocks(const rdl_arguments *a, const rdl_comm *comm, int *in,
                         int *out)
{
    bool root = comm->me == a->root;

    *in = *out = 1;
    switch (a->operation) {
    case RDL_OP_BARRIER:
        *in = *out = 0;
        break;
    case RDL_OP_ALL_GATHER:
    case RDL_OP_ALL_GATHER_V:
        *out = comm->size;
        break;
    case RDL_OP_REDUCE_SCATTER:
    case RDL_OP_REDUCE_SCATTER_V:
        *in = comm->size;
        break;
    case RDL_OP_ALL_TO_ALL:
    case RDL_OP_ALL_TO_ALL_V:
        *in = *out = comm->size;
        break;
    case RDL_OP_REDUCE:
        *out = root;
        break;
    case RDL_OP_GATHER:
        *out = root ? comm->size : 0;
        break;
    case RDL_OP_SCATTER:
        *in = root ? comm->size : 0;
        break;
    default:
        break;
    }
}

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

rdl_status rdl_call_check_types(const rdl_arguments *a)
{
    const char *name = rdl_operation_name(a->operation);

    if (rdl_dtype_bytes(a->dtype) == 0)
        return rdl_fail(RDL_INVALID, "%s: %d is no dtype", name, (int)a->dtype);
    if (!rdl_operation_reduces(a->operation))
        return RDL_OK;
    if ((unsigned)a->reduction >= REDUCTIONS)
        return rdl_fail(RDL_INVALID, "%s: %d is no reduction", name,
                        (int)a->reduction);
    if (!rdl_can_reduce(a->dtype, a->reduction))
        return rdl_fail(RDL_INVALID, "%s: there is no %s of %s: %s", name,
                        rdl_reduction_name(a->reduction),
                        rdl_dtype_name(a->dtype), why_not(a->reduction));
    return RDL_OK;
}

/* *kept: the factor as the reduction uses it, so that ranks agree who mean the
 * same; 0 where none is wanted. */
static rdl_status check_factor(const rdl_arguments *a, const rdl_call *options,
                               double *kept)
{
    const char *name = rdl_operation_name(a->operation);
    double given = options != NULL ? options->factor : 0;
    bool wanted =
        rdl_operation_reduces(a->operation) && a->reduction == RDL_PREMUL_SUM;
    bool narrow = a->dtype != RDL_FLOAT64;

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

rdl_status rdl_call_timeout(const rdl_world *world, const rdl_call *options,
                            const char *name, int64_t *timeout_ms)
{
    *timeout_ms = world->timeout_ms;
    if (options == NULL || options->timeout_ms == 0)
        return RDL_OK;
    if (options->timeout_ms < 0)
        return rdl_fail(RDL_INVALID, "%s: a limit of %" PRId64 " ms is negative",
                        name, options->timeout_ms);
    *timeout_ms = options->timeout_ms;
    return RDL_OK;
}

/* block: which of a list; -1: they are all alike. */
static rdl_status size_overflows(const rdl_arguments *a, size_t count, int block)
{
    char where[32] = "";

    if (block >= 0)
        snprintf(where, sizeof where, ", block %d", block);
    return rdl_fail(RDL_INVALID,
                    "%s: %zu elements of %zu bytes%s: the size overflows",
                    rdl_operation_name(a->operation), count,
                    rdl_dtype_bytes(a->dtype), where);
}

/* Of equal blocks. */
static rdl_status multiply(const rdl_arguments *a, int blocks, size_t *bytes)
{
    size_t block = rdl_dtype_bytes(a->dtype) * (size_t)blocks;

    return __builtin_mul_overflow(a->count, block, bytes) ||
                   *bytes > SIZE_MAX / 4
               ? size_overflows(a, a->count, -1)
               : RDL_OK;
}

/* Bytes of all blocks of one buffer; no sum of sums may overflow. */
static rdl_status add_up(const rdl_arguments *a, const size_t *counts,
                         int blocks, size_t *bytes)
{
    size_t element = rdl_dtype_bytes(a->dtype), most = SIZE_MAX / 4 / element;
    size_t sum = 0;

    if (counts == NULL)
        return multiply(a, blocks, bytes);
    for (int i = 0; i < blocks; i++) {
        if (counts[i] > most - sum)
            return size_overflows(a, counts[i], i);
        sum += counts[i];
    }
    *bytes = sum * element;
    return RDL_OK;
}

/* Bytes before member i's block, and of it. */
static size_t block_at(const rdl_arguments *a, const size_t *counts, int i)
{
    size_t sum = 0;

    if (counts == NULL)
        return (size_t)i * a->count * rdl_dtype_bytes(a->dtype);
    while (i-- > 0)
        sum += counts[i];
    return sum * rdl_dtype_bytes(a->dtype);
}

/* What one call's buffers are on this rank, in bytes. */
typedef struct extent {
    size_t in;
    size_t out;
} extent;

static rdl_status measure(const rdl_arguments *a, const rdl_comm *comm,
                          extent *e)
{
    const size_t *in_counts = a->input_counts, *out_counts = a->output_counts;
    int in, out;

    count_blocks(a, comm, &in, &out);
    /* Of a list that says both, this rank's one block is its own entry. */
    if (in_counts != NULL && in == 1)
        in_counts += comm->me;
    if (out_counts != NULL && out == 1)
        out_counts += comm->me;
    RDL_TRY(add_up(a, in_counts, in, &e->in));
    RDL_TRY(add_up(a, out_counts, out, &e->out));
    /* A rank that is given nothing still must not agree to what others cannot. */
    return a->input_counts == NULL ? add_up(a, NULL, comm->size, &(size_t){ 0 })
                                   : RDL_OK;
}

static bool overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;

    return a_bytes > 0 && b_bytes > 0 && x < y + b_bytes && y < x + a_bytes;
}

/* Whether the buffers that overlap do so in the one way that is in place. */
static bool in_place(const rdl_arguments *a, const rdl_comm *comm)
{
    uintptr_t input = (uintptr_t)a->input, output = (uintptr_t)a->output;

    switch (a->operation) {
    case RDL_OP_ALL_REDUCE:
    case RDL_OP_BROADCAST:
    case RDL_OP_REDUCE:
        return input == output;
    case RDL_OP_ALL_GATHER:
    case RDL_OP_ALL_GATHER_V:
    case RDL_OP_GATHER:
        return input == output + block_at(a, a->output_counts, comm->me);
    case RDL_OP_REDUCE_SCATTER:
    case RDL_OP_REDUCE_SCATTER_V:
    case RDL_OP_SCATTER:
        return output == input + block_at(a, a->input_counts, comm->me);
    default:
        return false;
    }
}

static rdl_status check_buffers(const rdl_arguments *a, const rdl_comm *comm,
                                const extent *e)
{
    const char *name = rdl_operation_name(a->operation);

    if (a->input == NULL && e->in > 0)
        return rdl_fail(RDL_INVALID,
                        "%s: input is NULL and %zu bytes are wanted", name,
                        e->in);
    if (a->output == NULL && e->out > 0)
        return rdl_fail(RDL_INVALID,
                        "%s: output is NULL and %zu bytes are wanted", name,
                        e->out);
    if (overlap(a->input, e->in, a->output, e->out) && !in_place(a, comm))
        return rdl_fail(RDL_INVALID,
                        "%s: input (%zu bytes at %p) and output (%zu bytes at "
                        "%p) overlap, and not in the way that is in place",
                        name, e->in, a->input, e->out, a->output);
    return RDL_OK;
}

static rdl_status check_member(const rdl_lane *lane, const rdl_arguments *a)
{
    const char *name = rdl_operation_name(a->operation);
    char text[RDL_LANE_TEXT];

    if (lane->comm->me >= 0 && (!has_root(a->operation) ||
                                (a->root >= 0 && a->root < lane->comm->size)))
        return RDL_OK;
    rdl_lane_text(lane, text, sizeof text);
    if (lane->comm->me < 0)
        return rdl_fail(RDL_INVALID, "%s: rank %d is not in %s", name,
                        lane->world->rank, text);
    return rdl_fail(RDL_INVALID,
                    "%s: root %d is outside the group ranks 0..%d of %s", name,
                    a->root, lane->comm->size - 1, text);
}

static rdl_status check_counts(const rdl_arguments *a)
{
    bool both = a->operation == RDL_OP_ALL_TO_ALL_V;
    bool wants = both || a->operation == RDL_OP_ALL_GATHER_V ||
                 a->operation == RDL_OP_REDUCE_SCATTER_V;

    if (wants && (a->input_counts == NULL || a->output_counts == NULL))
        return rdl_fail(RDL_INVALID, "%s: a list of counts is NULL",
                        rdl_operation_name(a->operation));
    return RDL_OK;
}

static rdl_status check_alone(const rdl_lane *lane, const rdl_arguments *a,
                              const extent *e)
{
    if (lane->comm->size == 1 && e->in != e->out &&
        a->operation == RDL_OP_ALL_TO_ALL_V)
        return rdl_fail(RDL_INVALID,
                        "%s: rank %d sends %zu bytes to itself and expects %zu",
                        rdl_operation_name(a->operation), lane->world->rank,
                        e->in, e->out);
    return RDL_OK;
}

static rdl_status check_all(const rdl_lane *lane, const rdl_arguments *a,
                            const rdl_call *options, extent *e,
                            int64_t *timeout_ms, double *factor)
{
    RDL_TRY(rdl_call_check_types(a));
    RDL_TRY(check_factor(a, options, factor));
    RDL_TRY(check_counts(a));
    RDL_TRY(check_member(lane, a));
    RDL_TRY(measure(a, lane->comm, e));
    RDL_TRY(check_alone(lane, a, e));
    RDL_TRY(check_buffers(a, lane->comm, e));
    return rdl_call_timeout(lane->world, options,
                            rdl_operation_name(a->operation), timeout_ms);
}

/* The operation that the arguments, found good, make; into op. */
typedef struct plan_of_call {
    rdl_lane *lane;
    uint64_t ticket;
    const rdl_arguments *arguments;
    int64_t timeout_ms;
    const char *caller;
} plan_of_call;

static rdl_status make(const plan_of_call *p, rdl_op *op)
{
    return rdl_op_init(op, p->lane, p->ticket, p->arguments, p->timeout_ms,
                       p->caller);
}

static rdl_status run_here(const plan_of_call *p)
{
    rdl_quick quick = { .lane = p->lane,
                        .ticket = p->ticket,
                        .arguments = p->arguments,
                        .timeout_ms = p->timeout_ms };
    rdl_status st;
    rdl_op op;

    if (rdl_quick_takes(&quick))
        return rdl_quick_run(&quick);
    st = make(p, &op);
    if (st != RDL_OK) {
        rdl_lane_give_up_turn(p->lane, p->ticket);
        return st;
    }
    st = rdl_op_run(&op);
    rdl_op_fini(&op);
    return st;
}

static rdl_status add_to_batch(const plan_of_call *p, rdl_batch *batch)
{
    RDL_TRY(rdl_batch_check(batch, p->lane->world));
    RDL_TRY(rdl_batch_reserve(batch));
    RDL_TRY(make(p, rdl_batch_next(batch)));
    rdl_batch_add(batch);
    return RDL_OK;
}

static rdl_status issue(const plan_of_call *p, const rdl_call *options)
{
    rdl_world *world = p->lane->world;
    rdl_task *task = NULL;
    rdl_status st;

    if (options->stream != NULL)
        RDL_TRY(rdl_stream_check(options->stream, world));
    RDL_TRY(rdl_task_make(world, options->work != NULL, &task));
    st = make(p, &task->own);
    if (st != RDL_OK) {
        rdl_task_drop(task);
        return st;
    }
    if (options->stream != NULL)
        rdl_op_on_stream(&task->own, options->stream);
#ifdef RDL_MUTANT_FENCE /* race tests must catch this build */
    if (options->stream != NULL)
#else
    if (world->unfenced && options->stream != NULL)
#endif
        rdl_op_unfence(&task->own);
    st = rdl_task_issue(task, options);
    if (st != RDL_OK)
        rdl_op_fini(&task->own);
    return st;
}

/* Anything but running it here and now. */
static rdl_status set_aside(const plan_of_call *p, const rdl_call *options)
{
    rdl_status st;

    if (options->batch != NULL && (options->stream || options->work))
        st = rdl_fail(RDL_INVALID,
                      "%s: a call in a batch has no stream or work of its own: "
                      "rdl_batch_end has",
                      rdl_operation_name(p->arguments->operation));
    else
        st = options->batch != NULL ? add_to_batch(p, options->batch)
                                    : issue(p, options);
    if (st != RDL_OK)
        rdl_lane_give_up_turn(p->lane, p->ticket);
    return st;
}

rdl_status rdl_call_run(rdl_world *world, rdl_group group,
                        const rdl_arguments *arguments, const rdl_call *options,
                        rdl_call_site site)
{
    rdl_arguments checked = *arguments;
    plan_of_call p = { .arguments = &checked,
                       .caller = options ? options->caller : NULL };
    extent e = { 0, 0 };
    rdl_status st;

    RDL_TRY(rdl_registry_enter(world, group, &p.lane, &p.ticket));
    st = check_all(p.lane, arguments, options, &e, &p.timeout_ms,
                   &checked.factor);
    if (st != RDL_OK) {
        rdl_lane_give_up_turn(p.lane, p.ticket);
        return st;
    }
    checked.input_bytes = e.in;
    checked.output_bytes = e.out;
    checked.site = rdl_texts_site_of(&world->texts, site, p.caller);
    checked.blocks =
        options == NULL || (options->stream == NULL && options->work == NULL &&
                            options->batch == NULL);
    if (!checked.blocks)
        return set_aside(&p, options);
    return run_here(&p);
}
