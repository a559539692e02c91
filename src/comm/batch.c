/* Batches. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/batch.h"

#include "base/memory.h"
#include "comm/call.h"
#include "comm/stream.h"
#include "comm/world.h"

#include <string.h>

void rdl_batch_init(rdl_batch *batch, rdl_world *world)
{
    *batch = (rdl_batch){ .world = world };
}

static void free_lists(rdl_batch *b)
{
    for (int i = 0; i < b->count; i++)
        rdl_free(b->sentences[i]);
    rdl_free(b->ops);
    rdl_free(b->statuses);
    rdl_free(b->sentences);
    rdl_batch_init(b, b->world);
}

void rdl_batch_cut(rdl_batch *b, int count)
{
    while (b->count > count) {
        rdl_op *op = &b->ops[--b->count];

        rdl_op_fini(op);
        rdl_lane_give_up_turn(op->lane, op->ticket);
    }
}

void rdl_batch_fini(rdl_batch *b)
{
    rdl_batch_cut(b, 0);
    free_lists(b);
}

rdl_status rdl_batch_reserve(rdl_batch *b)
{
    int room = b->room ? 2 * b->room : 8;
    rdl_status *statuses;
    char **sentences;
    rdl_op *ops;

    if (b->count < b->room)
        return RDL_OK;
    ops = rdl_realloc_for(&b->world->purse, b->ops, (size_t)room * sizeof *ops);
    b->ops = ops ? ops : b->ops;
    statuses = rdl_realloc_for(&b->world->purse, b->statuses,
                               (size_t)room * sizeof *statuses);
    b->statuses = statuses ? statuses : b->statuses;
    sentences = rdl_realloc_for(&b->world->purse, b->sentences,
                                (size_t)room * sizeof *sentences);
    b->sentences = sentences ? sentences : b->sentences;
    if (ops == NULL || statuses == NULL || sentences == NULL)
        return rdl_fail(RDL_NO_MEMORY, "no memory for a batch of %d operations",
                        room);
    for (int i = b->count; i < room; i++)
        b->sentences[i] = NULL;
    b->room = room;
    return RDL_OK;
}

/* Who waits behind its operations sees in the record that they wait for its end. */
static void note(const rdl_op *op, bool open)
{
    rdl_recorder_batch(&op->lane->world->recorder, op->limit.record, open);
}

void rdl_batch_add(rdl_batch *b)
{
    note(&b->ops[b->count++], true);
}

static rdl_status first_failure(const rdl_batch *b)
{
    for (int i = 0; i < b->count; i++)
        if (b->statuses[i] != RDL_OK)
            return rdl_fail(b->statuses[i], "%s",
                            b->sentences[i]
                                ? b->sentences[i]
                                : "an operation of a batch has failed; "
                                  "there was no memory to note how");
    return RDL_OK;
}

rdl_status rdl_batch_run(rdl_batch *b)
{
    rdl_crowd crowd = { b->world, b->ops, b->count, b->statuses, b->sentences };
    rdl_status st;

    for (int i = 0; i < b->count; i++)
        rdl_recorder_block(&b->world->recorder, b->ops[i].limit.record);
    rdl_crowd_init(&crowd);
    rdl_crowd_run(&crowd);
    st = first_failure(b);
    for (int i = 0; i < b->count; i++) {
        if (b->statuses[i] != RDL_OK)
            rdl_lane_reported(b->ops[i].lane);
        rdl_op_fini(&b->ops[i]);
    }
    free_lists(b);
    return st;
}

rdl_status rdl_batch_check(const rdl_batch *batch, const rdl_world *world)
{
    return batch->world == world
               ? RDL_OK
               : rdl_fail(RDL_INVALID, "the batch belongs to another world");
}

/* --- the public part ------------------------------------------------------- */

rdl_status rdl_batch_begin(rdl_world *world, rdl_batch **out)
{
    rdl_batch *batch;

    RDL_TRY(rdl_world_check(world));
    if (out == NULL)
        return rdl_fail(RDL_INVALID, "rdl_batch_begin: out is NULL");
    batch = rdl_calloc_for(&world->purse, 1, sizeof *batch);
    if (batch == NULL)
        return rdl_fail(RDL_NO_MEMORY, "no memory for a batch");
    rdl_batch_init(batch, world);
    *out = batch;
    return RDL_OK;
}

/* As one task, which takes the lists over. */
static rdl_status issue(rdl_batch *b, const rdl_call *call)
{
    rdl_task *task = NULL;

    if (call->stream != NULL)
        RDL_TRY(rdl_stream_check(call->stream, b->world));
    RDL_TRY(rdl_task_make(b->world, call->work != NULL, &task));
    for (int i = 0; call->stream != NULL && i < b->count; i++)
        rdl_op_on_stream(&b->ops[i], call->stream);
    rdl_task_take_ops(task, b->ops, b->count, b->statuses, b->sentences);
    return rdl_task_issue(task, call);
}

rdl_status rdl_batch_end(rdl_batch *batch, const rdl_call *call)
{
    rdl_status st;

    if (batch == NULL)
        return rdl_fail(RDL_INVALID, "rdl_batch_end: the batch is NULL");
    RDL_TRY(rdl_world_check(batch->world));
    for (int i = 0; i < batch->count; i++)
        note(&batch->ops[i], false);
    if (call != NULL && (call->stream != NULL || call->work != NULL)) {
        st = issue(batch, call);
        if (st == RDL_OK)
            rdl_batch_init(batch, batch->world); /* the task has it all */
        else
            rdl_batch_fini(batch);
    } else {
        st = rdl_batch_run(batch);
    }
    rdl_free(batch);
    return st;
}
