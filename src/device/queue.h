/* Queues: ordered work on a thread of its own, which is what a stream of the host
 * device is.
 *
 * Items run one after another, in the order in which they were added. The first
 * failure stays, with its sentence; items that are not told to run all the same
 * are passed over after it.
 *
 * Threads: any may add, wait and ask; the queue's thread runs the items. Nothing
 * here waits for ever. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_DEVICE_QUEUE_H
#define RDL_DEVICE_QUEUE_H

#include "base/memory.h"
#include "base/status.h"
#include "base/time.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct rdl_queue rdl_queue;

/* An item's work. failed: RDL_OK, or the queue's first failure, which only items
 * that always run see; its sentence is the thread's then. */
typedef rdl_status (*rdl_queue_function)(void *arg, rdl_status failed);

/* Starts the thread; what it takes is the purse's, which may be NULL. */
rdl_status rdl_queue_create(rdl_purse *purse, rdl_queue **out);

/* Runs what has been added, then ends the thread and frees the queue. Returns the
 * first failure, with its sentence. */
rdl_status rdl_queue_destroy(rdl_queue *queue);

/* arg stays the caller's until function has run or was passed over. always: it
 * runs also after a failure. RDL_NO_MEMORY: it will not run. */
rdl_status rdl_queue_add(rdl_queue *queue, rdl_queue_function function,
                         void *arg, bool always);

/* Waits until all that was added up to now has run. RDL_TIMEOUT; else the first
 * failure with its sentence, or RDL_OK. */
rdl_status rdl_queue_wait(rdl_queue *queue, rdl_deadline deadline);

/* RDL_AGAIN: something has not run yet; else as wait. */
rdl_status rdl_queue_query(rdl_queue *queue);

/* Whether wait or query has answered the first failure. */
bool rdl_queue_has_told(rdl_queue *queue);

/* Whether the calling thread is the queue's own. */
bool rdl_queue_is_mine(const rdl_queue *queue);

#endif
