/* Tasks: operations that go on beside the caller, one or a batch of them, behind a
 * work handle. A task's memory stays a task as long as its world lives; its
 * generation says whether a handle still means it.
 *
 * Life: free -> made -> done -> free where a stream drives it; else free -> made ->
 * ready -> done -> free, and whoever holds the drive flag of a ready task drives it:
 * the helper, or a waiting caller. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_COMM_TASK_H
#define RDL_COMM_TASK_H

#include "comm/op.h"
#include "comm/pause.h"

#include <raddle/work.h>

typedef enum rdl_task_state {
    RDL_TASK_FREE,
    RDL_TASK_MADE,
    RDL_TASK_READY,
    RDL_TASK_DONE
} rdl_task_state;

typedef struct rdl_task rdl_task;
struct rdl_task {
    rdl_world *world;
    uint32_t index;
    _Atomic uint32_t generation;
    _Atomic uint32_t state;
    _Atomic bool driven; /* the drive flag */
    rdl_crowd crowd;     /* of whoever drives */
    rdl_op own;          /* where the crowd is one */
    rdl_status own_status;
    char *own_sentence;
    _Atomic uint64_t record; /* of its first operation */
    bool kept;  /* somebody has the handle; under the world's task lock */
    int notify; /* told when it is done; -1: nothing; under that lock */
    rdl_status status; /* the result: before state is DONE */
    char *sentence;
    rdl_lane *failed; /* the lane of the failure, while it has this generation */
    uint32_t failed_generation;
    rdl_task *next; /* free, active or kept ones; under the task lock */
};

typedef struct rdl_tasks {
    pthread_mutex_t lock;
    rdl_task **chunks; /* of RDL_TASKS_IN_CHUNK */
    uint32_t n_chunks;
    rdl_task *free;
    rdl_task *kept_first; /* done, with a handle out; oldest first */
    rdl_task *kept_last;
    uint32_t n_kept;
    uint32_t kept_most;
    rdl_task *active; /* ready ones, oldest first */
    rdl_task *active_last;
    _Atomic uint32_t n_active;
    _Atomic uint32_t n_out; /* made or ready, of any kind */
} rdl_tasks;

#define RDL_TASKS_IN_CHUNK 32
#define RDL_TASKS_MOST 65536

/* works: so many results that nobody has asked for are kept; 0: RDL_WORKS_KEPT. */
void rdl_tasks_init(rdl_tasks *tasks, int works);
void rdl_tasks_fini(rdl_tasks *tasks);

/* A task for one operation, to be filled, or for count of them, which it then
 * owns with their lists. kept: a handle will be given out. */
rdl_status rdl_task_make(rdl_world *world, bool kept, rdl_task **out);
void rdl_task_take_ops(rdl_task *task, rdl_op *ops, int count,
                       rdl_status *statuses, char **sentences);

/* Never begun: everything goes back but the tickets. */
void rdl_task_drop(rdl_task *task);

rdl_work rdl_task_handle(const rdl_task *task);

/* The task of a handle, or RDL_INVALID. */
rdl_status rdl_task_find(rdl_world *world, rdl_work work, rdl_task **out);

/* Its stream has reached it; drives it to the end on the calling thread. stopped:
 * RDL_OK, or why it is passed over. Returns its result. */
rdl_status rdl_task_run(rdl_task *task, rdl_status stopped);

/* Ready, and for whoever comes: the first steps here, the rest by the helper. */
void rdl_task_start(rdl_task *task);

/* As call says: on its stream, or beside the caller; call->work gets the handle.
 * On failure the task is dropped, and its operations are the caller's. */
rdl_status rdl_task_issue(rdl_task *task, const rdl_call *call);

/* When it is done, or at once, the descriptor is told. */
rdl_status rdl_task_notify(rdl_task *task, uint32_t generation, int descriptor);

/* A done task that was kept is free again. Under the lock. */
void rdl_task_forget(rdl_task *task);

/* Drives all that is active in the world one round; whether anything ended. look:
 * also at what may end a wait, and *sleep becomes less if a deadline is near. */
bool rdl_tasks_advance(rdl_world *world, bool look, rdl_time *sleep);

/* Whether something active could go on. */
bool rdl_tasks_are_ready(rdl_world *world);

/* Waits until the task is done, helping everything active on; RDL_TIMEOUT. limit NULL:
 * there is none. pause: that wait, for the program's own thread; NULL: for another. */
rdl_status rdl_task_await(rdl_task *task, uint32_t generation,
                          const rdl_limit *limit, rdl_pause *pause);

/* Waits until nothing is out. */
void rdl_tasks_finish(rdl_world *world);

static inline bool rdl_task_is_done(const rdl_task *task, uint32_t generation)
{
    /* Pairs with the store of who finished it: the result is written. */
    return atomic_load_explicit(&task->state, memory_order_seq_cst) ==
               RDL_TASK_DONE ||
           atomic_load_explicit(&task->generation, memory_order_relaxed) !=
               generation;
}

/* The helper of a host (comm/helper.c): drives what is active in its worlds. */
void rdl_helper_wake(rdl_world *world);
void rdl_helper_join(rdl_world *world);
void rdl_helper_leave(rdl_world *world);

#endif
