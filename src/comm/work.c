/* Work handles, revoking, and batches. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <raddle/work.h>

#include "base/memory.h"
#include "base/ranks.h"
#include "comm/batch.h"
#include "comm/call.h"
#include "comm/peek.h"
#include "comm/stream.h"
#include "comm/world.h"

#include <string.h>

/* --- results --------------------------------------------------------------- */

/* The program hears only now that the lane has failed: its peers may look for why it
 * stops. */
static void note_told(rdl_lane *lane, rdl_status st)
{
    rdl_recorder *recorder = &lane->world->recorder;
    rdl_entry told = { .lane = lane->key.low,
                       .operation = RDL_RECORD_AWAIT,
                       .flags = RDL_RECORD_BLOCKS };

    rdl_lane_reported(lane);
    rdl_recorder_end(recorder, rdl_recorder_add(recorder, &told), st, false);
}

/* A done task's result; its handle is ended. */
static rdl_status take_result(rdl_task *task, uint32_t generation)
{
    rdl_tasks *t = &task->world->tasks;
    rdl_status st;

    pthread_mutex_lock(&t->lock);
    if (atomic_load_explicit(&task->generation, memory_order_relaxed) ==
        generation) {
        st = task->status;
        if (st != RDL_OK)
            rdl_say("%s", task->sentence ? task->sentence
                                         : "the work has failed; there was no "
                                           "memory to note how");
        if (task->failed != NULL &&
            atomic_load_explicit(&task->failed->generation,
                                 memory_order_relaxed) == task->failed_generation)
            note_told(task->failed, st);
        rdl_task_forget(task);
    } else {
        st =
            rdl_fail(RDL_INVALID, "the work's result is no longer kept: it was "
                                  "waited for twice, or too late");
    }
    pthread_mutex_unlock(&t->lock);
    return st;
}

typedef rdl_status (*result_of)(rdl_task *task, uint32_t generation);

/* Waits on the program's own thread. */
static rdl_status await(rdl_task *task, uint32_t generation,
                        const rdl_limit *limit, rdl_call_site site,
                        result_of result)
{
    rdl_pause pause = {
        .world = task->world,
        .site = site,
        .operation = RDL_RECORD_AWAIT,
        .count = atomic_load_explicit(&task->record, memory_order_relaxed),
    };
    rdl_status st = rdl_task_await(task, generation, limit, &pause);

    if (st == RDL_OK)
        st = result(task, generation);
    return rdl_pause_end(&pause, st);
}

static rdl_status wait_for(rdl_world *world, rdl_work work, int64_t timeout_ms,
                           rdl_call_site site)
{
    rdl_limit limit = { .deadline = RDL_NEVER };
    rdl_task *task = NULL;

    RDL_TRY(rdl_task_find(world, work, &task));
    if (timeout_ms != 0)
        RDL_TRY(rdl_wait_limit(world, timeout_ms, &limit));
    return await(task, work.generation, &limit, site, take_result);
}

RDL_PUBLIC_CALL(rdl_work_wait, wait_for(world, work, timeout_ms, site),
                rdl_world *world, rdl_work work, int64_t timeout_ms)

rdl_status rdl_work_test(rdl_world *world, rdl_work work, bool *done)
{
    rdl_time sleep = RDL_SLEEP_MOST;
    rdl_task *task = NULL;

    if (done == NULL)
        return rdl_fail(RDL_INVALID, "rdl_work_test: done is NULL");
    RDL_TRY(rdl_task_find(world, work, &task));
    if (!rdl_task_is_done(task, work.generation))
        rdl_tasks_advance(world, true, &sleep);
    *done = rdl_task_is_done(task, work.generation);
    return *done ? take_result(task, work.generation) : RDL_OK;
}

rdl_status rdl_work_notify(rdl_world *world, rdl_work work, int descriptor)
{
    rdl_task *task = NULL;

    if (descriptor < 0)
        return rdl_fail(RDL_INVALID, "rdl_work_notify: %d is no descriptor",
                        descriptor);
    RDL_TRY(rdl_task_find(world, work, &task));
    return rdl_task_notify(task, work.generation, descriptor);
}

/* --- fences ---------------------------------------------------------------- */

typedef struct fence {
    rdl_task *task;
    uint32_t generation;
} fence;

static rdl_status look_at_result(rdl_task *task, uint32_t generation)
{
    rdl_tasks *t = &task->world->tasks;
    rdl_status st = RDL_OK;

    pthread_mutex_lock(&t->lock);
    if (atomic_load_explicit(&task->generation, memory_order_relaxed) ==
            generation &&
        task->status != RDL_OK)
        st = rdl_fail(task->status, "%s",
                      task->sentence ? task->sentence : "the work has failed");
    pthread_mutex_unlock(&t->lock);
    return st;
}

static rdl_status run_fence(void *arg, rdl_status failed)
{
    fence f = *(fence *)arg;

    rdl_free(arg);
    if (failed != RDL_OK)
        return RDL_OK;
    RDL_TRY(rdl_task_await(f.task, f.generation, NULL, NULL));
    return look_at_result(f.task, f.generation);
}

static rdl_status fence_off(rdl_world *world, rdl_work work, rdl_stream *stream,
                            rdl_call_site site)
{
    rdl_task *task = NULL;
    rdl_status st;
    fence *f;

    RDL_TRY(rdl_task_find(world, work, &task));
    if (stream == NULL)
        return await(task, work.generation, NULL, site, look_at_result);
    RDL_TRY(rdl_stream_check(stream, world));
    f = rdl_calloc_for(&world->purse, 1, sizeof *f);
    if (f == NULL)
        return rdl_fail(RDL_NO_MEMORY, "no memory for a fence");
    *f = (fence){ task, work.generation };
    st = rdl_queue_add(stream->queue, run_fence, f, true);
    if (st != RDL_OK)
        rdl_free(f);
    return st;
}

RDL_PUBLIC_CALL(rdl_work_fence, fence_off(world, work, stream, site),
                rdl_world *world, rdl_work work, rdl_stream *stream)

/* --- revoking -------------------------------------------------------------- */

static void revoke_lane(rdl_lane *lane, uint32_t site)
{
    char buffer[RDL_SENTENCE], group[RDL_LANE_TEXT];
    rdl_text text = { buffer, sizeof buffer };

    rdl_lane_text(lane, group, sizeof group);
    rdl_text_add(&text, "%s was revoked by rank %d", group, lane->world->rank);
    rdl_peek_site(&text, rdl_world_slice(lane->world), site);
    rdl_say("%s", buffer);
    if (rdl_lane_fail(lane, RDL_REVOKED) == RDL_REVOKED)
        rdl_lane_reported(lane); /* who revokes knows */
}

rdl_status rdl_call_revoke(rdl_world *world, rdl_group group, rdl_call_site site)
{
    uint64_t ticket = 0;
    rdl_lane *lane = NULL;
    uint32_t text;

    RDL_TRY(rdl_registry_enter(world, group, &lane, &ticket));
    text = rdl_texts_site(&world->texts, site);
    revoke_lane(lane, text);
    rdl_registry_revoke_pairs(lane, revoke_lane, text);
    rdl_lane_give_up_turn(lane, ticket);
    return RDL_OK;
}

RDL_PUBLIC_CALL(rdl_group_revoke, rdl_call_revoke(world, group, site),
                rdl_world *world, rdl_group group)

static rdl_status revoke_work(rdl_world *world, rdl_work work,
                              rdl_call_site site)
{
    uint32_t text;
    rdl_task *task = NULL;
    rdl_tasks *t;

    RDL_TRY(rdl_task_find(world, work, &task));
    text = rdl_texts_site(&world->texts, site);
    t = &world->tasks;
    pthread_mutex_lock(&t->lock);
    /* Its lanes are open as long as it is not done. */
    if (!rdl_task_is_done(task, work.generation))
        for (int i = 0; i < task->crowd.count; i++)
            revoke_lane(task->crowd.ops[i].lane, text);
    pthread_mutex_unlock(&t->lock);
    return RDL_OK;
}

RDL_PUBLIC_CALL(rdl_work_revoke, revoke_work(world, work, site),
                rdl_world *world, rdl_work work)
