/* Writing without blocking, whole lines at a time. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "sink.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define SINK_BYTES (512 * 1024)

/* O_NONBLOCK belongs to the open file, which we share with whoever started us;
 * so it is not set there but on one of our own for the same pipe or terminal. */
static void open_unshared(sink *s, int fd)
{
    char path[32];
    int own;

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    own = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (own < 0) {
        s->kind = SINK_WAITING;
        return;
    }
    s->fd = own;
    s->owned = true;
}

bool sink_open(sink *s, int fd)
{
    struct stat is;

    *s = (sink){ .fd = fd, .kind = SINK_PLAIN, .data = malloc(SINK_BYTES) };
    if (s->data == NULL)
        return false;
    if (fstat(fd, &is) != 0)
        return true;
    if (S_ISSOCK(is.st_mode))
        s->kind = SINK_SOCKET;
    else if (S_ISFIFO(is.st_mode) || isatty(fd))
        open_unshared(s, fd);
    return true;
}

void sink_close(sink *s)
{
    if (s->owned)
        close(s->fd);
    free(s->data);
    s->data = NULL;
}

size_t sink_room(const sink *s)
{
    return SINK_BYTES - (s->end - s->start);
}

bool sink_empty(const sink *s)
{
    return s->start == s->end;
}

void sink_put(sink *s, const char *bytes, size_t count)
{
    if (s->gone)
        return;
    if (SINK_BYTES - s->end < count) {
        memmove(s->data, s->data + s->start, s->end - s->start);
        s->end -= s->start;
        s->start = 0;
    }
    memcpy(s->data + s->end, bytes, count);
    s->end += count;
}

/* What the next write takes: as many whole lines as a pipe takes at once, so
 * that other writers of the same pipe do not come between; else one line. */
static size_t next_piece(const sink *s)
{
    const char *from = s->data + s->start;
    size_t waiting = s->end - s->start;
    const char *newline;

    if (waiting <= PIPE_BUF)
        return waiting;
    newline = memrchr(from, '\n', PIPE_BUF);
    if (newline == NULL)
        newline = memchr(from, '\n', waiting);
    return newline != NULL ? (size_t)(newline + 1 - from) : waiting;
}

static ssize_t write_some(const sink *s, size_t bytes)
{
    const char *from = s->data + s->start;
    struct pollfd ready = { .fd = s->fd, .events = POLLOUT };

    switch (s->kind) {
    case SINK_SOCKET:
        return send(s->fd, from, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    case SINK_WAITING:
        if (poll(&ready, 1, 0) == 0) {
            errno = EAGAIN;
            return -1;
        }
        return write(s->fd, from, bytes < PIPE_BUF ? bytes : PIPE_BUF);
    case SINK_PLAIN:
        break;
    }
    return write(s->fd, from, bytes);
}

/* One piece could not be written; the next may be, say when the disk has room
 * again. */
static void note_failure(sink *s, int error, size_t bytes)
{
    if (error == EPIPE) {
        s->gone = true;
        s->start = s->end = 0;
        return;
    }
    if (s->error == 0)
        s->error = error;
    s->lost += bytes;
    s->start += bytes;
}

void sink_flush(sink *s)
{
    while (!sink_empty(s)) {
        size_t bytes = next_piece(s);
        ssize_t n = write_some(s, bytes);

        if (n >= 0) {
            s->start += (size_t)n;
            s->written += (size_t)n;
        } else if (errno == EAGAIN) {
            return;
        } else if (errno != EINTR) {
            note_failure(s, errno, bytes);
        }
    }
}

void sink_lose(sink *s, size_t bytes)
{
    if (s->gone || bytes == 0)
        return;
    if (s->error == 0)
        s->error = EAGAIN;
    s->lost += bytes;
}

void sink_give_up(sink *s)
{
    sink_lose(s, s->end - s->start);
    s->start = s->end;
}
