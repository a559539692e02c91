/* A sink: where lines go, our standard output or error, without ever blocking.
 * Lines wait in a buffer of fixed size for those who read them. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_CLI_SINK_H
#define RDL_CLI_SINK_H

#include <stdbool.h>
#include <stddef.h>

typedef enum sink_kind {
    SINK_PLAIN, /* never blocks for long: a file, or a reopened pipe */
    SINK_SOCKET,
    SINK_WAITING /* would block: asked before each write */
} sink_kind;

typedef struct sink {
    int fd;
    bool owned; /* fd is ours to close */
    sink_kind kind;
    bool gone; /* nobody reads it any more */
    int error; /* the first that lost something, or 0 */
    size_t lost;
    size_t written;
    char *data; /* what waits is data[start..end) */
    size_t start;
    size_t end;
} sink;

/* Writes to what fd is, which stays the caller's. False without memory. */
bool sink_open(sink *s, int fd);
void sink_close(sink *s);

/* The bytes that can still be put, so that a caller may stop in time. */
size_t sink_room(const sink *s);
bool sink_empty(const sink *s);

/* Adds bytes, which must fit; whole lines are the caller's business. */
void sink_put(sink *s, const char *bytes, size_t count);

/* Writes what can be written now. */
void sink_flush(sink *s);

/* Counts bytes that were never put as lost, and those that wait. */
void sink_lose(sink *s, size_t bytes);
void sink_give_up(sink *s);

#endif
