/* The inside of streams. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_COMM_STREAM_H
#define RDL_COMM_STREAM_H

#include "comm/task.h"
#include "device/queue.h"

#include <raddle/stream.h>

struct rdl_stream {
    rdl_world *world; /* NULL: it was closed, and the queue with it */
    rdl_queue *queue;
    char *name;
    uint32_t text;    /* the name, in the slice */
    uint64_t number;  /* unlike any other of the world; from 1 */
    rdl_stream *next; /* of the world; under its lock */
};

/* The world is about to close: its streams' work is waited for and their threads
 * end; streams and events that are left are fit for being destroyed only. Returns
 * the first failure of a stream's work. */
rdl_status rdl_streams_close(rdl_world *world);

/* RDL_OK if stream is one of world. */
rdl_status rdl_stream_check(const rdl_stream *stream, const rdl_world *world);

/* The stream runs the task when it gets there. */
rdl_status rdl_stream_add_task(rdl_stream *stream, rdl_task *task);

/* Limits as the public calls have them: 0 is the world's. Sets the limit's deadline
 * and timeout_ms. */
rdl_status rdl_wait_limit(const rdl_world *world, int64_t timeout_ms,
                          rdl_limit *limit);

#endif
