/* The pool of tasks, and driving them. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/task.h"

#include "base/bell.h"
#include "base/memory.h"
#include "comm/stream.h"
#include "comm/world.h"

#include <inttypes.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

void rdl_tasks_init(rdl_tasks *tasks, int works)
{
    *tasks =
        (rdl_tasks){ .kept_most = works ? (uint32_t)works : RDL_WORKS_KEPT };
    pthread_mutex_init(&tasks->lock, NULL);
}

void rdl_tasks_fini(rdl_tasks *tasks)
{
    for (uint32_t c = 0; c < tasks->n_chunks; c++) {
        for (int i = 0; i < RDL_TASKS_IN_CHUNK; i++)
            rdl_free(tasks->chunks[c][i].sentence);
        rdl_free(tasks->chunks[c]);
    }
    rdl_free(tasks->chunks);
    pthread_mutex_destroy(&tasks->lock);
}

/* --- the pool -------------------------------------------------------------- */

static rdl_status add_chunk(rdl_world *world)
{
    rdl_tasks *t = &world->tasks;
    rdl_task **chunks, *chunk;

    if (t->n_chunks * RDL_TASKS_IN_CHUNK >= RDL_TASKS_MOST)
        return rdl_fail(RDL_NO_MEMORY, "%d operations are pending: no more",
                        RDL_TASKS_MOST);
    chunk = rdl_calloc_for(&world->purse, RDL_TASKS_IN_CHUNK, sizeof *chunk);
    chunks = chunk ? rdl_realloc_for(&world->purse, t->chunks,
                                     (t->n_chunks + 1) * sizeof *chunks)
                   : NULL;
    if (chunks == NULL) {
        rdl_free(chunk);
        return rdl_fail(RDL_NO_MEMORY, "no memory for pending operations");
    }
    for (uint32_t i = RDL_TASKS_IN_CHUNK; i-- > 0;) {
        chunk[i].world = world;
        chunk[i].index = t->n_chunks * RDL_TASKS_IN_CHUNK + i;
        atomic_init(&chunk[i].generation, 1);
        chunk[i].next = t->free;
        t->free = &chunk[i];
    }
    t->chunks = chunks;
    t->chunks[t->n_chunks++] = chunk;
    return RDL_OK;
}

/* Free again: its handles are stale. Under the lock. */
static void recycle(rdl_tasks *t, rdl_task *task)
{
    rdl_free(task->sentence);
    task->sentence = NULL;
#ifndef RDL_MUTANT_GENERATION /* race tests must catch that build */
    atomic_fetch_add_explicit(&task->generation, 1, memory_order_relaxed);
#endif
    atomic_store_explicit(&task->state, RDL_TASK_FREE, memory_order_relaxed);
    task->next = t->free;
    t->free = task;
}

rdl_status rdl_task_make(rdl_world *world, bool kept, rdl_task **out)
{
    rdl_tasks *t = &world->tasks;
    rdl_task *task = NULL;
    rdl_status st = RDL_OK;

    pthread_mutex_lock(&t->lock);
    if (t->free == NULL)
        st = add_chunk(world);
    if (st == RDL_OK) {
        task = t->free;
        t->free = task->next;
        task->next = NULL;
        task->kept = kept;
        task->notify = -1;
        task->status = RDL_OK;
        task->failed = NULL;
        task->own_sentence = NULL;
        task->crowd = (rdl_crowd){ .world = world,
                                   .ops = &task->own,
                                   .count = 1,
                                   .statuses = &task->own_status,
                                   .sentences = &task->own_sentence };
        atomic_store_explicit(&task->state, RDL_TASK_MADE, memory_order_relaxed);
        atomic_fetch_add_explicit(&t->n_out, 1, memory_order_relaxed);
        *out = task;
    }
    pthread_mutex_unlock(&t->lock);
    return st;
}

void rdl_task_take_ops(rdl_task *task, rdl_op *ops, int count,
                       rdl_status *statuses, char **sentences)
{
    task->crowd.ops = ops;
    task->crowd.count = count;
    task->crowd.statuses = statuses;
    task->crowd.sentences = sentences;
}

static void free_ops(rdl_task *task)
{
    rdl_crowd *c = &task->crowd;

    for (int i = 0; i < c->count; i++)
        rdl_free(c->sentences[i]);
    if (c->ops == &task->own)
        return;
    rdl_free(c->ops);
    rdl_free(c->statuses);
    rdl_free(c->sentences);
}

void rdl_task_drop(rdl_task *task)
{
    rdl_tasks *t = &task->world->tasks;

    task->crowd.count = 0; /* the ops are the caller's */
    pthread_mutex_lock(&t->lock);
    atomic_fetch_sub_explicit(&t->n_out, 1, memory_order_relaxed);
    recycle(t, task);
    pthread_mutex_unlock(&t->lock);
}

rdl_work rdl_task_handle(const rdl_task *task)
{
    return (rdl_work){ .index = task->index,
                       .generation = atomic_load_explicit(&task->generation,
                                                          memory_order_relaxed),
                       .world = task->world->id };
}

rdl_status rdl_task_find(rdl_world *world, rdl_work work, rdl_task **out)
{
    rdl_tasks *t = &world->tasks;
    rdl_task *task = NULL;

    RDL_TRY(rdl_world_check(world));
    if (work.world != world->id)
        return rdl_fail(RDL_INVALID, "the work belongs to another world, or to "
                                     "one that was closed");
    pthread_mutex_lock(&t->lock);
    if (work.index / RDL_TASKS_IN_CHUNK < t->n_chunks)
        task = &t->chunks[work.index / RDL_TASKS_IN_CHUNK]
                         [work.index % RDL_TASKS_IN_CHUNK];
    if (task != NULL &&
        atomic_load_explicit(&task->generation, memory_order_relaxed) !=
            work.generation)
        task = NULL;
    pthread_mutex_unlock(&t->lock);
    if (task == NULL)
        return rdl_fail(RDL_INVALID,
                        "the work (%" PRIu32 ".%" PRIu32 ") has ended: it was "
                        "waited for, or %d others have been done since",
                        work.index, work.generation, (int)t->kept_most);
    *out = task;
    return RDL_OK;
}

/* --- the end --------------------------------------------------------------- */

/* Takes the oldest result nobody asked for off the list. Under the lock. */
static void forget_oldest(rdl_tasks *t)
{
    rdl_task *task = t->kept_first;

    t->kept_first = task->next;
    if (t->kept_first == NULL)
        t->kept_last = NULL;
    t->n_kept--;
    recycle(t, task);
}

static void keep_result(rdl_tasks *t, rdl_task *task)
{
    task->next = NULL;
    if (t->kept_last != NULL)
        t->kept_last->next = task;
    else
        t->kept_first = task;
    t->kept_last = task;
    if (++t->n_kept > t->kept_most)
        forget_oldest(t);
}

static void remove_from(rdl_task **list, const rdl_task *task)
{
    while (*list != NULL && *list != task)
        list = &(*list)->next;
    if (*list != NULL)
        *list = (*list)->next;
}

static void remove_active(rdl_tasks *t, const rdl_task *task)
{
    rdl_task *before = NULL;

    for (rdl_task *a = t->active; a != task; a = a->next)
        before = a;
    if (before != NULL)
        before->next = task->next;
    else
        t->active = task->next;
    if (t->active_last == task)
        t->active_last = before;
}

void rdl_task_forget(rdl_task *task)
{
    rdl_tasks *t = &task->world->tasks;

    remove_from(&t->kept_first, task);
    t->kept_last = t->kept_first;
    while (t->kept_last != NULL && t->kept_last->next != NULL)
        t->kept_last = t->kept_last->next;
    t->n_kept--;
    recycle(t, task);
}

/* Off the list of what is to be driven: nobody else looks at its ops after that. */
static void deactivate(rdl_task *task)
{
    rdl_tasks *t = &task->world->tasks;

    pthread_mutex_lock(&t->lock);
    if (atomic_load_explicit(&task->state, memory_order_relaxed) ==
        RDL_TASK_READY) {
        remove_active(t, task);
        atomic_fetch_sub_explicit(&t->n_active, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&t->lock);
}

/* The first failure of its ops is its result. */
static void gather_result(rdl_task *task)
{
    rdl_crowd *c = &task->crowd;

    for (int i = 0; i < c->count; i++) {
        rdl_op_fini(&c->ops[i]);
        if (c->statuses[i] == RDL_OK || task->status != RDL_OK)
            continue;
        task->status = c->statuses[i];
        task->sentence = c->sentences[i];
        c->sentences[i] = NULL;
        task->failed = c->ops[i].lane;
        task->failed_generation = atomic_load_explicit(
            &c->ops[i].lane->generation, memory_order_relaxed);
    }
    free_ops(task);
}

/* One that is full, or gone, has been told or does not want to know. */
static void tell(int descriptor)
{
    uint64_t one = 1;

    if (descriptor >= 0 && write(descriptor, &one, sizeof one) < 0)
        return;
}

/* All ops have ended. The driver's. */
static void finish(rdl_task *task)
{
    rdl_tasks *t = &task->world->tasks;
    int notify;

    deactivate(task);
    gather_result(task);
    pthread_mutex_lock(&t->lock);
    /* Pairs with the load in rdl_task_is_done, and is in order with the bell. */
    atomic_store_explicit(&task->state, RDL_TASK_DONE, memory_order_seq_cst);
    notify = task->notify;
    if (task->kept)
        keep_result(t, task);
    else
        recycle(t, task);
    atomic_fetch_sub_explicit(&t->n_out, 1, memory_order_seq_cst);
    pthread_mutex_unlock(&t->lock);
    rdl_bell_ring(rdl_world_slice(task->world));
    tell(notify);
}

rdl_status rdl_task_notify(rdl_task *task, uint32_t generation, int descriptor)
{
    rdl_tasks *t = &task->world->tasks;
    rdl_status st = RDL_OK;
    bool done = false;

    pthread_mutex_lock(&t->lock);
    if (atomic_load_explicit(&task->generation, memory_order_relaxed) !=
        generation)
        st = rdl_fail(RDL_INVALID, "the work's result has been asked for");
    else if (task->notify >= 0)
        st = rdl_fail(RDL_INVALID,
                      "descriptor %d is told already when the work "
                      "is done",
                      task->notify);
    else {
        done = rdl_task_is_done(task, generation);
        task->notify = descriptor;
    }
    pthread_mutex_unlock(&t->lock);
    if (done)
        tell(descriptor);
    return st;
}

/* --- driving --------------------------------------------------------------- */

static bool take_drive(rdl_task *task)
{
    return !atomic_exchange_explicit(&task->driven, true, memory_order_acquire);
}

static void give_drive(rdl_task *task)
{
    atomic_store_explicit(&task->driven, false, memory_order_release);
}

/* Ends each op with status, whose sentence is set, and its group with it. */
static void pass_over(rdl_task *task, rdl_status status)
{
    rdl_crowd *c = &task->crowd;
    char why[RDL_SENTENCE];

    snprintf(why, sizeof why, "%s", rdl_error_detail());

    for (int i = 0; i < c->count; i++) {
        rdl_op *op = &c->ops[i];

        rdl_lane_say(op->lane, &op->limit, why);
        c->statuses[i] =
            op->lane->comm->size > 1 ? rdl_lane_fail(op->lane, status) : status;
        c->sentences[i] =
            rdl_copy_text_for(&task->world->purse, rdl_error_detail(),
                              strlen(rdl_error_detail()));
        rdl_op_note_end(op, c->statuses[i]);
        rdl_lane_give_up_turn(op->lane, op->ticket);
    }
}

rdl_status rdl_task_run(rdl_task *task, rdl_status stopped)
{
    rdl_status st = RDL_OK;
    char *sentence = NULL;

    rdl_crowd_init(&task->crowd);
    if (stopped == RDL_OK)
        rdl_crowd_run(&task->crowd);
    else
        pass_over(task, stopped);
    /* After finish the task may be another's. */
    for (int i = 0; i < task->crowd.count && st == RDL_OK; i++)
        if (task->crowd.statuses[i] != RDL_OK) {
            st = task->crowd.statuses[i];
            sentence = task->crowd.sentences[i];
            rdl_say("%s", sentence ? sentence : "no memory for the sentence");
        }
    finish(task);
    return st;
}

void rdl_task_start(rdl_task *task)
{
    rdl_tasks *t = &task->world->tasks;
    bool moved;
    int left;

    rdl_crowd_init(&task->crowd);
    left = rdl_crowd_advance(&task->crowd, &moved);
    if (left == 0) {
        finish(task);
        return;
    }
    pthread_mutex_lock(&t->lock);
    /* Pairs with the acquire of who got it from the list a while ago. */
    atomic_store_explicit(&task->state, RDL_TASK_READY, memory_order_release);
    task->next = NULL;
    if (t->active_last != NULL)
        t->active_last->next = task;
    else
        t->active = task;
    t->active_last = task;
    atomic_fetch_add_explicit(&t->n_active, 1, memory_order_seq_cst);
    pthread_mutex_unlock(&t->lock);
    rdl_helper_wake(task->world);
}

rdl_status rdl_task_issue(rdl_task *task, const rdl_call *call)
{
    rdl_work handle = rdl_task_handle(task);

    /* Read by who waits; it may be a stale handle's. */
    atomic_store_explicit(
        &task->record,
        task->crowd.count > 0 ? task->crowd.ops[0].limit.record : 0,
        memory_order_relaxed);
    if (call->work != NULL)
        *call->work = handle;
    if (call->stream == NULL) {
        rdl_task_start(task);
        return RDL_OK;
    }
    if (rdl_stream_add_task(call->stream, task) == RDL_OK)
        return RDL_OK;
    rdl_task_drop(task);
    return RDL_NO_MEMORY;
}

/* So many are looked at between two holdings of the lock. */
#define SOME 64

/* Whether one of its ops has its turn. Under the lock, while it is active. */
static bool has_turn(const rdl_task *task)
{
    for (int i = 0; i < task->crowd.count; i++)
        if (rdl_turns_is(&task->crowd.ops[i].lane->turns,
                         task->crowd.ops[i].ticket))
            return true;
    return false;
}

/* Of the active ones that can do something, oldest first, those from the skip-th
 * on. look: all, as a limit may end also those that wait for their turn. */
static int list_active(rdl_world *world, bool look, int skip,
                       rdl_task *some[SOME])
{
    int n = 0;

    pthread_mutex_lock(&world->tasks.lock);
    for (rdl_task *task = world->tasks.active; task != NULL && n < SOME;
         task = task->next)
        if ((look || has_turn(task)) && skip-- <= 0)
            some[n++] = task;
    pthread_mutex_unlock(&world->tasks.lock);
    return n;
}

/* One that was active a moment ago; whether something ended. */
static bool advance_one(rdl_task *task, bool look, rdl_time *sleep)
{
    bool moved = false;
    int left = 1;

    if (!take_drive(task))
        return false;
    /* Under the flag: it may have ended, and be another's by now. */
    if (atomic_load_explicit(&task->state, memory_order_acquire) ==
        RDL_TASK_READY) {
        left = rdl_crowd_advance(&task->crowd, &moved);
        if (left > 0 && look && rdl_crowd_look(&task->crowd, sleep)) {
            moved = true;
            left = rdl_crowd_advance(&task->crowd, &moved);
        }
        if (left == 0)
            finish(task);
    }
    give_drive(task);
    return moved || left == 0;
}

bool rdl_tasks_advance(rdl_world *world, bool look, rdl_time *sleep)
{
    rdl_task *some[SOME];
    bool moved = false;
    int n, skip = 0;

    do {
        n = list_active(world, look, skip, some);
        for (int i = 0; i < n; i++)
            moved |= advance_one(some[i], look, sleep);
        skip += n;
    } while (n == SOME && !moved);
    return moved;
}

bool rdl_tasks_are_ready(rdl_world *world)
{
    rdl_task *some[SOME];
    bool ready = false;
    int n, skip = 0;

    do {
        n = list_active(world, false, skip, some);
        for (int i = 0; i < n && !ready; i++) {
            if (!take_drive(some[i]))
                continue; /* somebody sees to it */
            ready =
                atomic_load_explicit(&some[i]->state, memory_order_acquire) ==
                    RDL_TASK_READY &&
                rdl_crowd_is_ready(&some[i]->crowd);
            give_drive(some[i]);
        }
        skip += n;
    } while (n == SOME && !ready);
    return ready;
}

/* --- waiting --------------------------------------------------------------- */

/* One sleep, unless something can go on or the task is done (NULL: none is out). */
static void doze(rdl_world *world, const rdl_task *task, uint32_t generation,
                 rdl_deadline deadline)
{
    rdl_slice *mine = rdl_world_slice(world);
    rdl_time sleep = rdl_deadline_left(deadline, RDL_SLEEP_MOST);
    uint32_t bell = rdl_bell_announce(mine);
    bool over = task != NULL ? rdl_task_is_done(task, generation)
                             : atomic_load_explicit(&world->tasks.n_out,
                                                    memory_order_seq_cst) == 0;

    if (!over && !rdl_tasks_are_ready(world) &&
        !rdl_tasks_advance(world, true, &sleep))
        rdl_bell_sleep(mine, bell, sleep);
    rdl_bell_withdraw(mine);
}

rdl_status rdl_task_await(rdl_task *task, uint32_t generation,
                          const rdl_limit *limit, rdl_pause *pause)
{
    rdl_deadline deadline = limit != NULL ? limit->deadline : RDL_NEVER;
    rdl_world *world = task->world;
    rdl_time sleep = RDL_SLEEP_MOST;
    int idle = 0;

    while (!rdl_task_is_done(task, generation)) {
        if (rdl_tasks_advance(world, false, &sleep)) {
            idle = 0;
            continue;
        }
        if (limit != NULL && rdl_deadline_passed(deadline))
            return rdl_fail(RDL_TIMEOUT, "the work is not done after %.3g s",
                            (double)limit->timeout_ms / 1000);
        /* Every loop that waits for a drive flag yields. */
        if (idle++ < 32) {
            sched_yield();
            continue;
        }
        rdl_pause_sleep(pause);
        doze(world, task, generation, deadline);
    }
    return RDL_OK;
}

void rdl_tasks_finish(rdl_world *world)
{
    rdl_time sleep = RDL_SLEEP_MOST;

    while (atomic_load_explicit(&world->tasks.n_out, memory_order_acquire) > 0)
        if (!rdl_tasks_advance(world, false, &sleep))
            doze(world, NULL, 0, RDL_NEVER);
}
