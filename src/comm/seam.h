/* The seam of bench/race and bench/recorder: how the field orders collectives, and
 * does without looking, for comparison. Never in the public interface; programs of
 * bench/ are linked with the inside. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_COMM_SEAM_H
#define RDL_COMM_SEAM_H

#include <raddle/world.h>
#include <stdbool.h>

/* From now on a collective on an explicit stream takes its place in its lane when
 * it starts on its stream, as a device library does, and not when it is issued: the
 * fence is gone. */
void rdl_world_unfence(rdl_world *world, bool unfenced);

/* Work of a stream before one of its collectives. stream: its name; "null" is the
 * caller's own thread. Each stream calls from a thread of its own. */
typedef struct rdl_delay {
    void (*function)(void *arg, const char *stream);
    void *arg;
} rdl_delay;

/* From now on each stream does this before each collective, and so does a thread
 * that makes a blocking one: after the call was issued, and before it starts.
 * Without the fence blocking calls too take their place when they start. NULL ends
 * it. *delay stays the caller's until then. Not while calls are under way. */
void rdl_world_delay(rdl_world *world, const rdl_delay *delay);

/* Whether calls are compared at all; off, a wrong pairing shows as wrong data or as
 * a hang. */
void rdl_world_compare(rdl_world *world, bool compare);

/* Whether calls and their sites are recorded. On again before the world is closed. */
void rdl_world_record(rdl_world *world, bool record);

#endif
