/* Streams and events of the host device: ordered work beside the caller's own.
 *
 * A stream is a queue with a thread of its own; what is enqueued runs in order,
 * and enqueuing returns at once. The null stream (NULL wherever a stream is asked
 * for) is the calling thread: its work is done when the call returns.
 * An event marks a point of a stream, for other streams and for threads to wait
 * for.
 *
 * Failures of work stay with the stream: the first one is kept with its sentence,
 * later work is passed over (a collective that is passed over ends its group, so
 * that no other rank waits for it), and query, synchronize and destroy report it.
 * Threads: any may enqueue; the order is that in which they enter.
 * Ownership: who creates a stream or an event destroys it. Closing the world waits
 * for the streams' work and ends their threads; what is left of them answers
 * RDL_INVALID, and is to be destroyed all the same. Arguments and buffers of enqueued work are borrowed until it has run. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RADDLE_STREAM_H
#define RADDLE_STREAM_H

#include <raddle/site.h>
#include <raddle/status.h>
#include <raddle/world.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rdl_event rdl_event;

/* Runs on the stream's thread. May block, and may make calls on the world, but may
 * not wait for its own stream. What it answers other than RDL_OK is the stream's
 * failure. */
typedef rdl_status (*rdl_stream_function)(void *arg);

/* name (NULL: "stream") is for messages and traces; at most RDL_NAME_MOST bytes,
 * copied. RDL_INVALID, RDL_NO_MEMORY, RDL_SYSTEM: no thread. */
RDL_CALL rdl_status rdl_stream_create(rdl_world *world, const char *name,
                                      rdl_stream **out);

/* Waits until all its work has run (collectives end by their limits), then frees
 * it, always. Returns its first failure, or RDL_OK. NULL is allowed. Not from the
 * stream's own thread: RDL_STATE. */
RDL_API rdl_status rdl_stream_destroy(rdl_stream *stream);

RDL_CALL rdl_status rdl_stream_call(rdl_stream *stream,
                                    rdl_stream_function function, void *arg);

/* bytes from source to target, which do not overlap. */
RDL_CALL rdl_status rdl_stream_copy(rdl_stream *stream, void *target,
                                    const void *source, size_t bytes);

/* Waits until what has been enqueued up to now has run. timeout_ms 0: the world's.
 * RDL_TIMEOUT; else the stream's first failure, or RDL_OK. */
RDL_CALL rdl_status rdl_stream_synchronize(rdl_stream *stream,
                                           int64_t timeout_ms);

/* RDL_AGAIN: something has not run yet; else as above. */
RDL_CALL rdl_status rdl_stream_query(rdl_stream *stream);

RDL_CALL rdl_status rdl_event_create(rdl_world *world, rdl_event **out);

/* NULL is allowed. Not while a stream has yet to record it or to wait for it:
 * RDL_STATE, and it stays. */
RDL_API rdl_status rdl_event_destroy(rdl_event *event);

/* The event now marks this point of the stream; it forgets the one before. */
RDL_CALL rdl_status rdl_event_record(rdl_event *event, rdl_stream *stream);

/* What the stream does next starts after the point that the event marks now; at
 * once if it marks none. The null stream waits here, for the world's timeout_ms at
 * most; so does any other when it gets there, and fails then. */
RDL_CALL rdl_status rdl_event_wait(rdl_event *event, rdl_stream *stream);

/* Waits for the point. timeout_ms 0: the world's. */
RDL_CALL rdl_status rdl_event_synchronize(rdl_event *event, int64_t timeout_ms);

/* RDL_OK: the point was passed; RDL_AGAIN: not yet. */
RDL_CALL rdl_status rdl_event_query(rdl_event *event);

/* The same with a call site (raddle/site.h). */
RDL_CALL rdl_status rdl_stream_synchronize_at(rdl_stream *stream,
                                              int64_t timeout_ms,
                                              const char *site);
RDL_CALL rdl_status rdl_event_synchronize_at(rdl_event *event,
                                             int64_t timeout_ms,
                                             const char *site);

#ifdef __cplusplus
}
#endif

#ifndef RDL_NO_SITES
#define rdl_stream_synchronize(...)                                            \
    rdl_stream_synchronize_at(__VA_ARGS__, RDL_HERE)
#define rdl_event_synchronize(...)                                             \
    rdl_event_synchronize_at(__VA_ARGS__, RDL_HERE)
#endif
#endif
