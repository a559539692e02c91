/* Tracing: a look at each collective as this rank makes it, to be compared with
 * that of other ranks.
 *
 * The function is called by the thread that makes the collective, when its
 * arguments have been found good and before it waits for anybody; so the last
 * call seen of a rank that hangs is the one it hangs in. It may not make calls on
 * the world. While no trace is set, a collective pays one load for it.
 *
 * Threads: set and reset while no other thread is inside a call on the world. The
 * function may be called by several threads at once. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RADDLE_TRACE_H
#define RADDLE_TRACE_H

#include <raddle/collective.h>
#include <raddle/status.h>
#include <raddle/world.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Texts are valid during the call. */
typedef struct rdl_trace_event {
    const char *group;     /* its ranks: "[0,1,2,3]", "[0-63]" */
    const char *lane;      /* its name; "" is the default lane */
    const char *caller;    /* rdl_call's caller; "" if it named none */
    const char *operation; /* "all_reduce" */
    const char *dtype;     /* "float32" */
    size_t count;          /* as the caller gave it; 0 for a barrier */
    size_t bytes;          /* count elements */
    const char *stream;    /* its name; "null": the caller's own thread */
} rdl_trace_event;

typedef struct rdl_trace {
    void (*see)(void *arg, const rdl_trace_event *event);
    void *arg;
} rdl_trace;

/* From now on trace sees the collectives of this rank; NULL ends it. *trace stays
 * the caller's, and is kept until then, or until the world is closed. */
RDL_CALL rdl_status rdl_world_trace(rdl_world *world, const rdl_trace *trace);

#ifdef __cplusplus
}
#endif
#endif
