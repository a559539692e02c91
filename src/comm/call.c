/* Arguments are checked here, and nowhere below. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/call.h"

#include "base/memory.h"
#include "comm/trace.h"

#include <inttypes.h>
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

void rdl_call_count(rdl_world *world)
{
    atomic_fetch_add_explicit(&world->n_collectives, 1, memory_order_relaxed);
}

/* --- what the operations are like ------------------------------------------ */

static bool reduces(rdl_operation operation)
{
    return operation == RDL_OP_ALL_REDUCE || operation == RDL_OP_REDUCE ||
           operation == RDL_OP_REDUCE_SCATTER ||
           operation == RDL_OP_REDUCE_SCATTER_V;
}

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

rdl_status rdl_call_check_types(const rdl_arguments *a)
{
    const char *name = rdl_operation_name(a->operation);

    if (rdl_dtype_bytes(a->dtype) == 0)
        return rdl_fail(RDL_INVALID, "%s: %d is no dtype", name, (int)a->dtype);
    if (reduces(a->operation) && (unsigned)a->reduction > RDL_AVG)
        return rdl_fail(RDL_INVALID, "%s: %d is no reduction", name,
                        (int)a->reduction);
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

/* Bytes of all blocks of one buffer; no sum of sums may overflow. */
static rdl_status add_up(const rdl_arguments *a, const size_t *counts,
                         int blocks, size_t *bytes)
{
    size_t element = rdl_dtype_bytes(a->dtype), most = SIZE_MAX / 4 / element;
    size_t sum = 0;

    for (int i = 0; i < blocks; i++) {
        size_t count = counts ? counts[i] : a->count;

        if (count > most - sum)
            return rdl_fail(
                RDL_INVALID,
                "%s: %zu elements of %zu bytes, block %d of %d: the "
                "size overflows",
                rdl_operation_name(a->operation), count, element, i, blocks);
        sum += count;
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

/* --- running --------------------------------------------------------------- */

static rdl_request make_request(const rdl_lane *lane, const rdl_arguments *a)
{
    return (rdl_request){
        .shape = { .operation = a->operation,
                   .me = lane->comm->me,
                   .size = lane->comm->size,
                   .root = a->root,
                   .bytes = a->count * rdl_dtype_bytes(a->dtype) },
        .name = a->operation,
        .count = a->count,
        .dtype = a->dtype,
        .reduction = a->reduction,
        .input = a->input,
        .output = a->output,
    };
}

/* In a group of one each collective is a copy, or nothing. */
static rdl_status run_alone(const rdl_lane *lane, const rdl_arguments *a,
                            const extent *e)
{
    if (e->in != e->out)
        return rdl_fail(RDL_INVALID,
                        "%s: rank %d sends %zu bytes to itself and expects %zu",
                        rdl_operation_name(a->operation), lane->world->rank,
                        e->in, e->out);
    if (a->output != a->input && e->out > 0)
        memcpy(a->output, a->input, e->out);
    return RDL_OK;
}

/* --- blocks of different sizes --------------------------------------------- */

typedef struct sizes {
    size_t in_at[RDL_MAX_RANKS], in_bytes[RDL_MAX_RANKS];
    size_t their_at[RDL_MAX_RANKS];
    size_t out_at[RDL_MAX_RANKS], out_bytes[RDL_MAX_RANKS];
    rdl_uneven uneven;
} sizes;

static void link_sizes(sizes *s)
{
    s->uneven.in_at = s->in_at;
    s->uneven.in_bytes = s->in_bytes;
    s->uneven.their_at = s->their_at;
    s->uneven.out_at = s->out_at;
    s->uneven.out_bytes = s->out_bytes;
}

static void note_most(size_t *most, size_t value)
{
    if (value > *most)
        *most = value;
}

static void fill_blocks(size_t *at, size_t *bytes, const size_t *counts,
                        int size, size_t element)
{
    size_t sum = 0;

    for (int i = 0; i < size; i++) {
        at[i] = sum;
        bytes[i] = counts[i] * element;
        sum += bytes[i];
    }
}

/* all_gather_v and reduce_scatter_v: one list that all share, by its hash. */
static rdl_status run_listed(rdl_lane *lane, const rdl_arguments *a,
                             int64_t timeout_ms)
{
    rdl_request request = make_request(lane, a);
    int size = lane->comm->size, me = lane->comm->me;
    sizes s = { 0 };

    link_sizes(&s);
    fill_blocks(s.out_at, s.out_bytes, a->input_counts, size,
                rdl_dtype_bytes(a->dtype));
    memcpy(s.in_at, s.out_at, sizeof s.in_at);
    memcpy(s.in_bytes, s.out_bytes, sizeof s.in_bytes);
    for (int i = 0; i < size; i++)
        note_most(&s.uneven.block_most, s.in_bytes[i]);
    s.uneven.total_most = s.uneven.block_most;
    if (a->operation == RDL_OP_REDUCE_SCATTER_V) {
        s.uneven.total_most = s.in_at[size - 1] + s.in_bytes[size - 1];
        s.their_at[0] = s.in_at[me];
        s.out_bytes[0] = s.in_bytes[me];
    }
    request.count =
        (s.out_at[size - 1] + s.in_bytes[size - 1]) / rdl_dtype_bytes(a->dtype);
    request.shape.uneven = &s.uneven;
    request.detail = rdl_hash_bytes(1, a->input_counts,
                                    (size_t)size * sizeof *a->input_counts) |
                     1;
    return rdl_run_whole(lane, &request, timeout_ms);
}

/* all_to_all_v: each knows what it sends and expects; all see all of it before
 * anything moves, so that a difference between two is seen by everyone. Row i of
 * the table: what member i sends to each, then what it expects from each. */

static rdl_status judge_table(rdl_lane *lane, const uint64_t *table)
{
    int n = lane->comm->size;
    char group[RDL_LANE_TEXT];

    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            uint64_t sent = table[(size_t)i * 2 * (size_t)n + (size_t)j];
            uint64_t expected =
                table[(size_t)j * 2 * (size_t)n + (size_t)(n + i)];

            if (sent == expected)
                continue;
            rdl_lane_text(lane, group, sizeof group);
            rdl_say("mismatch in call #%" PRIu64
                    " on %s: all_to_all_v: rank %d "
                    "sends %" PRIu64 " elements to rank %d, which expects "
                    "%" PRIu64,
                    lane->number, group, lane->comm->ranks[i], sent,
                    lane->comm->ranks[j], expected);
            return rdl_lane_fail(lane, RDL_MISMATCH);
        }
    return RDL_OK;
}

static rdl_status share_table(rdl_lane *lane, const rdl_arguments *a,
                              uint64_t *table, int64_t timeout_ms)
{
    size_t n = (size_t)lane->comm->size;
    uint64_t *mine = table + (size_t)lane->comm->me * 2 * n;
    rdl_request request = make_request(lane, a);

    for (size_t i = 0; i < n; i++) {
        mine[i] = a->input_counts[i];
        mine[n + i] = a->output_counts[i];
    }
    request.shape.operation = RDL_OP_ALL_GATHER;
    request.shape.bytes = 2 * n * sizeof *table;
    request.input = mine;
    request.output = table;
    RDL_TRY(rdl_run_whole(lane, &request, timeout_ms));
    return judge_table(lane, table);
}

static void read_table(const rdl_lane *lane, const uint64_t *table,
                       size_t element, sizes *s)
{
    int n = lane->comm->size;

    for (int i = 0; i < n; i++) {
        size_t sum = 0;

        for (int j = 0; j < n; j++) {
            size_t bytes =
                (size_t)table[(size_t)i * 2 * (size_t)n + (size_t)j] * element;

            if (j == lane->comm->me)
                s->their_at[i] = sum;
            note_most(&s->uneven.block_most, bytes);
            sum += bytes;
        }
        note_most(&s->uneven.total_most, sum);
    }
}

static rdl_status run_tabled(rdl_lane *lane, const rdl_arguments *a,
                             int64_t timeout_ms)
{
    size_t n = (size_t)lane->comm->size, element = rdl_dtype_bytes(a->dtype);
    rdl_request request = make_request(lane, a);
    uint64_t *table = rdl_calloc(2 * n * n, sizeof *table);
    sizes s = { 0 };
    rdl_status st;

    if (table == NULL)
        return rdl_fail(RDL_NO_MEMORY,
                        "all_to_all_v: no memory for a table of "
                        "%zu counts",
                        2 * n * n);
    st = share_table(lane, a, table, timeout_ms);
    if (st == RDL_OK) {
        link_sizes(&s);
        fill_blocks(s.in_at, s.in_bytes, a->input_counts, (int)n, element);
        fill_blocks(s.out_at, s.out_bytes, a->output_counts, (int)n, element);
        read_table(lane, table, element, &s);
        request.shape.uneven = &s.uneven;
        st = rdl_run_whole(lane, &request, timeout_ms);
    }
    rdl_free(table);
    return st;
}

static rdl_status run_together(rdl_lane *lane, const rdl_arguments *a,
                               int64_t timeout_ms)
{
    rdl_request request;

    RDL_TRY(rdl_lane_prepare(lane));
    lane->number++;
    if (a->operation == RDL_OP_ALL_TO_ALL_V)
        return run_tabled(lane, a, timeout_ms);
    if (a->input_counts != NULL)
        return run_listed(lane, a, timeout_ms);
    request = make_request(lane, a);
    return rdl_run_whole(lane, &request, timeout_ms);
}

/* What this rank hands over, in elements, of blocks that are not all alike. */
static size_t traced_count(const rdl_arguments *a, const rdl_comm *comm)
{
    size_t sum = 0;

    if (a->input_counts == NULL)
        return a->count;
    if (a->operation == RDL_OP_ALL_GATHER_V)
        return a->input_counts[comm->me];
    for (int i = 0; i < comm->size; i++)
        sum += a->input_counts[i];
    return sum;
}

static rdl_status run_on(rdl_lane *lane, const rdl_arguments *a,
                         const rdl_call *options)
{
    int64_t timeout_ms;
    extent e = { 0, 0 };
    rdl_status st;

    RDL_TRY(rdl_call_check_types(a));
    RDL_TRY(check_counts(a));
    RDL_TRY(check_member(lane, a));
    RDL_TRY(measure(a, lane->comm, &e));
    RDL_TRY(check_buffers(a, lane->comm, &e));
    RDL_TRY(rdl_call_timeout(lane->world, options,
                             rdl_operation_name(a->operation), &timeout_ms));
    RDL_TRY(rdl_lane_state(lane));
    if (__builtin_expect(lane->world->trace != NULL, 0))
        rdl_trace_call(lane->world->trace, lane,
                       rdl_operation_name(a->operation), a->dtype,
                       traced_count(a, lane->comm),
                       options != NULL ? options->caller : NULL);
    st = lane->comm->size == 1 ? run_alone(lane, a, &e)
                               : run_together(lane, a, timeout_ms);
    if (st == RDL_OK)
        rdl_call_count(lane->world);
    return st;
}

rdl_status rdl_call_run(rdl_world *world, rdl_group group,
                        const rdl_arguments *arguments, const rdl_call *options)
{
    rdl_lane *lane;
    rdl_status st;

    RDL_TRY(rdl_registry_enter(world, group, &lane));
    st = run_on(lane, arguments, options);
    rdl_registry_leave(lane);
    return st;
}
