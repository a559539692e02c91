/* Driving operations. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/op.h"

#include "base/bell.h"
#include "base/memory.h"
#include "comm/reduce.h"
#include "comm/stream.h"
#include "comm/trace.h"
#include "comm/world.h"

#include <inttypes.h>
#include <sched.h>
#include <string.h>

/* --- making ---------------------------------------------------------------- */

static bool is_tabled(const rdl_op *op)
{
    return op->arguments.operation == RDL_OP_ALL_TO_ALL_V;
}

/* Room for two lists of counts and five of sizes, and for the table. */
static rdl_status make_room(rdl_op *op, const rdl_arguments *a)
{
    size_t n = (size_t)op->lane->comm->size;
    rdl_uneven *u = &op->uneven;
    rdl_purse *purse = &op->lane->world->purse;
    size_t *at = rdl_calloc_for(purse, 7 * n, sizeof *at);

    if (at != NULL && is_tabled(op))
        op->table = rdl_calloc_for(purse, 2 * n * n, sizeof *op->table);
    if (at == NULL || (is_tabled(op) && op->table == NULL)) {
        rdl_free(at);
        return rdl_fail(RDL_NO_MEMORY,
                        "%s: no memory for the sizes of %zu blocks",
                        rdl_operation_name(a->operation), n);
    }
    op->room = at;
    memcpy(at, a->input_counts, n * sizeof *at);
    memcpy(at + n, a->output_counts, n * sizeof *at);
    op->arguments.input_counts = at;
    op->arguments.output_counts = at + n;
    u->in_at = at + 2 * n;
    u->in_bytes = at + 3 * n;
    u->their_at = at + 4 * n;
    u->out_at = at + 5 * n;
    u->out_bytes = at + 6 * n;
    return RDL_OK;
}

/* What this rank hands over, in elements. */
static size_t own_count(const rdl_arguments *a, const rdl_comm *comm)
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

static uint64_t record(const rdl_lane *lane, const rdl_arguments *a)
{
    const rdl_comm *comm = lane->comm;
    bool transfer = a->operation == RDL_OP_SEND_RECV && comm->size == 2;
    rdl_entry entry = {
        .lane = lane->key.low,
        .count = own_count(a, comm),
        .site = a->site,
        .root = transfer ? comm->ranks[1 - comm->me] : a->root,
        .operation = (uint8_t)a->operation,
        .dtype = (uint8_t)a->dtype,
        .reduction = (uint8_t)a->reduction,
    };

    if (a->blocks)
        entry.flags |= RDL_RECORD_BLOCKS;
    if (transfer && comm->me == 0)
        entry.flags |= RDL_RECORD_SENDS;
    return rdl_recorder_add(&lane->world->recorder, &entry);
}

/* As the caller knows it. */
static const char *name_of(const rdl_lane *lane, rdl_operation operation)
{
    if (operation == RDL_OP_SEND_RECV)
        return lane->comm->me == 0 ? "send" : "receive";
    return rdl_operation_name(operation);
}

static void end_run(rdl_op *op)
{
    if (op->running)
        rdl_run_end(&op->run);
    op->running = false;
}

void rdl_op_fini(rdl_op *op)
{
    end_run(op);
    rdl_heap_unpin(&op->lane->world->heap, &op->pins);
    rdl_free(op->room);
    rdl_free(op->table);
    op->room = NULL;
    op->table = NULL;
    rdl_op_note_end(op, RDL_STATE); /* if it never began */
}

void rdl_op_on_stream(rdl_op *op, const rdl_stream *stream)
{
    op->stream = stream->name;
    op->on_stream = stream->number;
    rdl_recorder_on_stream(&op->lane->world->recorder, op->limit.record,
                           stream->text);
}

void rdl_op_note_end(rdl_op *op, rdl_status status)
{
    rdl_world *world = op->lane->world;

    if (status == RDL_OK)
        atomic_fetch_add_explicit(&world->n_collectives, 1,
                                  memory_order_relaxed);
    else if (op->on_stream != 0) /* who hears of the stream hears of it */
        atomic_store_explicit(&op->lane->stream, op->on_stream,
                              memory_order_relaxed);
    op->on_stream = 0;
    rdl_recorder_end(&world->recorder, op->limit.record, status,
                     op->limit.deadline != 0);
    op->limit.record = 0;
}

/* A buffer from elsewhere costs a comparison. */
static rdl_status pin(rdl_op *op, const rdl_arguments *a)
{
    rdl_heap *heap = &op->lane->world->heap;
    const char *name = rdl_operation_name(a->operation);
    rdl_status st;

    st = rdl_heap_pin(heap, &op->pins, 0, a->input, a->input_bytes, name);
    if (st == RDL_OK)
        st = rdl_heap_pin(heap, &op->pins, 1, a->output, a->output_bytes, name);
    if (st != RDL_OK)
        rdl_heap_unpin(heap, &op->pins);
    return st;
}

rdl_status rdl_op_init(rdl_op *op, rdl_lane *lane, uint64_t ticket,
                       const rdl_arguments *arguments, int64_t timeout_ms,
                       const char *caller)
{
    rdl_status st;

    op->lane = lane;
    op->ticket = ticket;
    op->arguments = *arguments;
    op->pins = (rdl_pins){ { NULL, NULL } };
    op->limit = (rdl_limit){
        .timeout_ms = timeout_ms,
        .operation = name_of(lane, arguments->operation),
        .site = arguments->site,
    };
    op->caller = caller;
    op->stream = "null";
    op->on_stream = 0;
    op->unfenced = op->begun = op->starved = op->running = op->tabled = false;
    op->room = NULL;
    op->table = NULL;
    st = pin(op, arguments);
    if (st == RDL_OK && arguments->input_counts != NULL && lane->comm->size > 1)
        st = make_room(op, arguments);
    if (st == RDL_OK)
        op->limit.record = record(lane, arguments);
    else
        rdl_op_fini(op);
    return st;
}

/* --- blocks of different sizes --------------------------------------------- */

static void note_most(size_t *most, size_t value)
{
    if (value > *most)
        *most = value;
}

/* at and bytes are our own room, const only for the plan. */
static size_t fill_blocks(const size_t *at, const size_t *bytes,
                          const size_t *counts, int size, size_t element)
{
    size_t *to_at = (size_t *)(uintptr_t)at;
    size_t *to_bytes = (size_t *)(uintptr_t)bytes;
    size_t sum = 0;

    for (int i = 0; i < size; i++) {
        to_at[i] = sum;
        to_bytes[i] = counts[i] * element;
        sum += to_bytes[i];
    }
    return sum;
}

static void set(const size_t *list, int i, size_t value)
{
    ((size_t *)(uintptr_t)list)[i] = value;
}

/* all_gather_v and reduce_scatter_v: one list that all share, by its hash. */
static void use_list(rdl_op *op)
{
    const rdl_arguments *a = &op->arguments;
    int size = op->lane->comm->size, me = op->lane->comm->me;
    size_t element = rdl_dtype_bytes(a->dtype);
    rdl_uneven *u = &op->uneven;
    size_t all;

    all = fill_blocks(u->in_at, u->in_bytes, a->input_counts, size, element);
    fill_blocks(u->out_at, u->out_bytes, a->input_counts, size, element);
    u->block_most = 0;
    for (int i = 0; i < size; i++)
        note_most(&u->block_most, u->in_bytes[i]);
    u->total_most = u->block_most;
    if (a->operation == RDL_OP_REDUCE_SCATTER_V) {
        u->total_most = all;
        set(u->their_at, 0, u->in_at[me]);
        set(u->out_bytes, 0, u->in_bytes[me]);
    }
    op->request.shape.uneven = u;
    op->request.count = all / element;
    rdl_lane_show_counts(op->lane, a->input_counts);
    op->request.detail =
        rdl_hash_bytes(1, a->input_counts, (size_t)size * sizeof(size_t)) | 1;
}

/* all_to_all_v: each knows what it sends and expects; all see all of it before
 * anything moves, so that a difference between two is seen by everyone. Row i of
 * the table: what member i sends to each, then what it expects from each. */

static void share_table(rdl_op *op)
{
    size_t n = (size_t)op->lane->comm->size;
    uint64_t *mine = op->table + (size_t)op->lane->comm->me * 2 * n;

    for (size_t i = 0; i < n; i++) {
        mine[i] = op->arguments.input_counts[i];
        mine[n + i] = op->arguments.output_counts[i];
    }
    op->request.shape.operation = RDL_OP_ALL_GATHER;
    op->request.shape.bytes = 2 * n * sizeof *mine;
    op->request.input = mine;
    op->request.output = op->table;
}

static uint64_t entry(const rdl_op *op, int row, int column)
{
    return op
        ->table[(size_t)row * 2 * (size_t)op->lane->comm->size + (size_t)column];
}

static void use_table(rdl_op *op)
{
    const rdl_arguments *a = &op->arguments;
    int n = op->lane->comm->size;
    size_t element = rdl_dtype_bytes(a->dtype);
    rdl_uneven *u = &op->uneven;

    fill_blocks(u->in_at, u->in_bytes, a->input_counts, n, element);
    fill_blocks(u->out_at, u->out_bytes, a->output_counts, n, element);
    u->block_most = u->total_most = 0;
    for (int i = 0; i < n; i++) {
        size_t sum = 0;

        for (int j = 0; j < n; j++) {
            size_t bytes = (size_t)entry(op, i, j) * element;

            if (j == op->lane->comm->me)
                set(u->their_at, i, sum);
            note_most(&u->block_most, bytes);
            sum += bytes;
        }
        note_most(&u->total_most, sum);
    }
    op->request.shape.uneven = u;
}

/* --- advancing ------------------------------------------------------------- */

rdl_request rdl_op_request(const rdl_lane *lane, const rdl_arguments *a)
{
    return (rdl_request){
        .shape = { .operation = a->operation,
                   .me = lane->comm->me,
                   .size = lane->comm->size,
                   .root = a->root,
                   .bytes = a->count * rdl_dtype_bytes(a->dtype),
                   .choices = &lane->world->choices },
        .name = a->operation,
        .site = a->site,
        .count = a->count,
        .dtype = a->dtype,
        .reduction = a->reduction,
        .factor = a->factor,
        .input = a->input,
        .output = a->output,
        .output_bytes = a->output_bytes,
    };
}

static void start_run(rdl_op *op)
{
    rdl_run_begin(&op->run, op->lane, &op->request);
    op->running = true;
}

static void trace(const rdl_op *op)
{
    const rdl_arguments *a = &op->arguments;

    rdl_trace_call(op->lane->world->trace, op->lane, op->limit.operation,
                   a->dtype, own_count(a, op->lane->comm), op->caller,
                   op->stream);
}

/* What a group of more than one needs. */
static rdl_status prepare(rdl_op *op)
{
    rdl_status st =
        op->lane->comm->size > 1 ? rdl_lane_prepare(op->lane) : RDL_OK;

    op->starved = st == RDL_AGAIN;
    return st;
}

static rdl_status begin(rdl_op *op)
{
    RDL_TRY(rdl_lane_state(op->lane));
    RDL_TRY(prepare(op));
    if (__builtin_expect(op->lane->world->trace != NULL, 0))
        trace(op);
    op->begun = true;
    if (op->lane->comm->size == 1)
        return RDL_OK;
    op->lane->number++;
    rdl_recorder_begin(&op->lane->world->recorder, op->limit.record,
                       op->lane->number);
    op->request = rdl_op_request(op->lane, &op->arguments);
    if (is_tabled(op))
        share_table(op);
    else if (op->room != NULL)
        use_list(op);
    start_run(op);
    return RDL_OK;
}

/* In a group of one each collective is a copy, or nothing, or a reduction of one
 * buffer. */
static rdl_status copy_alone(const rdl_op *op)
{
    const rdl_arguments *a = &op->arguments;

    if (rdl_operation_reduces(a->operation))
        rdl_combine(&(rdl_reducer){ .dtype = a->dtype,
                                    .reduction = a->reduction,
                                    .factor = a->factor,
                                    .isa = op->lane->world->isa },
                    a->output, &a->input, 1,
                    a->output_bytes / rdl_dtype_bytes(a->dtype));
    else if (a->output != a->input && a->output_bytes > 0)
        memcpy(a->output, a->input, a->output_bytes);
    return RDL_OK;
}

rdl_status rdl_op_advance(rdl_op *op)
{
    rdl_status st;

    if (!op->begun)
        RDL_TRY(begin(op));
    if (op->lane->comm->size == 1)
        return copy_alone(op);
    st = rdl_run_advance(&op->run);
    if (st == RDL_AGAIN)
        return st;
    end_run(op);
    if (st != RDL_OK || !is_tabled(op) || op->tabled)
        return st;
    /* Also where calls are not compared: what follows goes by the table. */
    RDL_TRY(rdl_run_judge(op->lane, op->table));
    op->tabled = true;
    op->request = rdl_op_request(op->lane, &op->arguments);
    use_table(op);
    start_run(op);
    return rdl_op_advance(op);
}

void rdl_op_unfence(rdl_op *op)
{
    rdl_lane_give_up_turn(op->lane, op->ticket);
    op->unfenced = true;
}

/* The seam: the work before it is done, and only now an unfenced one takes its
 * place. */
static void start(rdl_op *op)
{
    const rdl_delay *delay = op->lane->world->delay;

    if (delay != NULL)
        delay->function(delay->arg, op->stream);
    if (op->unfenced)
        op->ticket = rdl_turns_take(&op->lane->turns);
}

/* The same for the caller's own thread. */
static void start_here(rdl_op *op)
{
    if (op->lane->world->unfenced)
        rdl_op_unfence(op);
    start(op);
}

/* What rdl_op_advance would wait for. */
static rdl_status await(rdl_op *op)
{
    if (!op->starved)
        return rdl_lane_await(op->lane, op->run.peer, &op->limit);
    RDL_TRY(rdl_lane_look_for_slot(op->lane, &op->limit));
    rdl_sleep(RDL_SLOT_NAP);
    return RDL_OK;
}

rdl_status rdl_op_run(rdl_op *op)
{
    rdl_lane *lane = op->lane;
    rdl_status st;

    if (__builtin_expect(lane->world->delay != NULL, 0))
        start_here(op);
    if (!rdl_turns_is(&lane->turns, op->ticket)) {
        st = rdl_lane_await_turn(lane, op->ticket, &op->limit);
        if (st != RDL_OK) {
            rdl_op_note_end(op, st);
            rdl_lane_reported(lane);
            return st;
        }
    }
    while ((st = rdl_op_advance(op)) == RDL_AGAIN) {
        st = await(op);
        if (st != RDL_OK)
            break;
    }
    end_run(op);
    rdl_op_note_end(op, st);
    if (st != RDL_OK) /* to the caller, by whom this was called */
        rdl_lane_reported(lane);
    rdl_lane_pass_turn(lane, op->ticket);
    return st;
}

/* --- several together ------------------------------------------------------ */

static void end_op(rdl_crowd *c, int i, rdl_status st)
{
    rdl_op *op = &c->ops[i];

    end_run(op);
    rdl_op_note_end(op, st);
    c->statuses[i] = st;
    c->sentences[i] =
        st == RDL_OK ? NULL
                     : rdl_copy_text_for(&c->world->purse, rdl_error_detail(),
                                         strlen(rdl_error_detail()));
    if (rdl_turns_is(&op->lane->turns, op->ticket))
        rdl_lane_pass_turn(op->lane, op->ticket);
    else
        rdl_lane_give_up_turn(op->lane, op->ticket);
}

void rdl_crowd_init(rdl_crowd *c)
{
    for (int i = 0; i < c->count; i++) {
        c->statuses[i] = RDL_AGAIN;
        c->sentences[i] = NULL;
    }
}

int rdl_crowd_advance(rdl_crowd *c, bool *moved)
{
    int left = 0;

    *moved = false;
    for (int i = 0; i < c->count; i++) {
        rdl_op *op = &c->ops[i];
        rdl_status st = RDL_AGAIN;

        if (c->statuses[i] != RDL_AGAIN)
            continue;
        if (rdl_turns_is(&op->lane->turns, op->ticket))
            st = rdl_op_advance(op);
        if (st == RDL_AGAIN) {
            left++;
            continue;
        }
        end_op(c, i, st);
        *moved = true;
    }
    return left;
}

bool rdl_crowd_is_ready(const rdl_crowd *c)
{
    for (int i = 0; i < c->count; i++) {
        rdl_op *op = &c->ops[i];

        if (c->statuses[i] == RDL_AGAIN &&
            rdl_turns_is(&op->lane->turns, op->ticket) &&
            (op->running ? rdl_lane_arrived(op->lane, op->run.peer)
                         : !op->starved))
            return true;
    }
    return false;
}

static rdl_status look(rdl_op *op)
{
    if (op->running)
        return rdl_lane_look(op->lane, op->run.peer, &op->limit);
    return op->starved ? rdl_lane_look_for_slot(op->lane, &op->limit)
                       : rdl_lane_look_for_turn(op->lane, &op->limit);
}

bool rdl_crowd_look(rdl_crowd *c, rdl_time *sleep)
{
    bool ended = false;

    for (int i = 0; i < c->count; i++) {
        rdl_op *op = &c->ops[i];
        rdl_status st;

        if (c->statuses[i] != RDL_AGAIN)
            continue;
        st = look(op);
        if (op->starved && *sleep > RDL_SLOT_NAP)
            *sleep = RDL_SLOT_NAP;
        *sleep = rdl_deadline_left(op->limit.deadline, *sleep);
        if (st != RDL_OK) {
            end_op(c, i, st);
            ended = true;
        }
    }
    return ended;
}

static void wait_for_any(rdl_crowd *c)
{
    rdl_slice *mine = rdl_world_slice(c->world);
    rdl_time sleep = RDL_SLEEP_MOST;
    uint32_t bell;

    for (int i = 0; i < 32; i++) {
        if (rdl_crowd_is_ready(c))
            return;
        sched_yield();
    }
    bell = rdl_bell_announce(mine);
    if (!rdl_crowd_is_ready(c) && !rdl_crowd_look(c, &sleep))
        rdl_bell_sleep(mine, bell, sleep);
    rdl_bell_withdraw(mine);
}

void rdl_crowd_run(rdl_crowd *c)
{
    bool moved;

    for (int i = 0; i < c->count; i++)
        start(&c->ops[i]);
    while (rdl_crowd_advance(c, &moved) > 0)
        if (!moved)
            wait_for_any(c);
}
