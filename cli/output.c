/* From pipes to lines to sinks. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "output.h"

#include "sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_MOST 16384
#define PREFIX_MOST 16

/* What one read can add to a sink: a line that waited for its end, and, if all
 * that comes is newlines, a prefix for each byte. Beside it a screen and a few
 * sentences of our own must find room. */
#define ROOM_FOR_SAYING (16 * SAY_MOST)
#define ROOM_WANTED (OUTPUT_LINE_MOST + READ_MOST * 8 + ROOM_FOR_SAYING)

/* One pipe of one rank. */
typedef struct stream {
    int fd; /* -1: closed, or not made yet */
    int rank;
    sink *to;
    char *line; /* OUTPUT_LINE_MOST bytes: what came since the last line's end */
    size_t used;
    bool cut; /* the last line passed on was a piece without its end */
} stream;

struct output {
    run_prefix prefix;
    int width; /* of the largest rank */
    sink out;
    sink err;
    logs *logs;   /* NULL: none */
    sink *say_to; /* &err, or &out if both are the same file */
    stream *streams;
    size_t count;
    char *lines;
};

static bool same_file(int a, int b)
{
    struct stat sa, sb;

    return fstat(a, &sa) == 0 && fstat(b, &sb) == 0 && sa.st_dev == sb.st_dev &&
           sa.st_ino == sb.st_ino;
}

static void init_streams(output *o)
{
    for (size_t i = 0; i < o->count; i++)
        o->streams[i] = (stream){
            .fd = -1,
            .rank = (int)(i / 2),
            .to = i % 2 == 0 ? &o->out : o->say_to,
            .line = o->lines + i * OUTPUT_LINE_MOST,
        };
}

output *output_open(int ranks, run_prefix prefix)
{
    output *o = calloc(1, sizeof *o);
    char largest[PREFIX_MOST];

    if (o == NULL)
        return NULL;
    o->prefix = prefix;
    o->width = snprintf(largest, sizeof largest, "%d", ranks - 1);
    o->count = (size_t)ranks * 2;
    o->streams = calloc(o->count, sizeof *o->streams);
    /* Not touched before it is used, so it costs what is used. */
    o->lines = malloc(o->count * OUTPUT_LINE_MOST);
    /* One sink for one file keeps the order of lines between the two. */
    o->say_to = same_file(STDOUT_FILENO, STDERR_FILENO) ? &o->out : &o->err;
    if (o->streams == NULL || o->lines == NULL ||
        !sink_open(&o->out, STDOUT_FILENO) ||
        !sink_open(&o->err, STDERR_FILENO)) {
        output_close(o);
        return NULL;
    }
    init_streams(o);
    return o;
}

void output_log(output *o, logs *l)
{
    o->logs = l;
}

static void close_stream(stream *s)
{
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}

void output_close(output *o)
{
    if (o == NULL)
        return;
    if (o->streams != NULL)
        for (size_t i = 0; i < o->count; i++)
            close_stream(&o->streams[i]);
    sink_close(&o->out);
    sink_close(&o->err);
    free(o->streams);
    free(o->lines);
    free(o);
}

static int add_pipe(stream *s, int *end)
{
    int fd[2];

    if (pipe2(fd, O_CLOEXEC) != 0)
        return errno;
    /* Ours only: the rank's end is another open file. */
    if (fcntl(fd[0], F_SETFL, O_NONBLOCK) != 0) {
        int error = errno;

        close(fd[0]);
        close(fd[1]);
        return error;
    }
    s->fd = fd[0];
    *end = fd[1];
    return 0;
}

static int copy_own(int *stdout_end, int *stderr_end)
{
    int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    int err = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

    if (out >= 0 && err >= 0) {
        *stdout_end = out;
        *stderr_end = err;
        return 0;
    }

    int error = errno;

    close(out);
    close(err);
    return error;
}

int output_add(output *o, int rank, int *stdout_end, int *stderr_end)
{
    stream *s = &o->streams[rank * 2];
    int error;

    if (rank == 0 && o->prefix == PREFIX_OTHERS)
        return copy_own(stdout_end, stderr_end);
    error = add_pipe(&s[0], stdout_end);
    if (error != 0)
        return error;
    error = add_pipe(&s[1], stderr_end);
    if (error != 0) {
        close(*stdout_end);
        close_stream(&s[0]);
    }
    return error;
}

static void put_line(output *o, stream *s, const char *line, size_t bytes)
{
    char prefix[PREFIX_MOST];

    if (o->prefix != PREFIX_NONE)
        sink_put(s->to, prefix,
                 (size_t)snprintf(prefix, sizeof prefix, "[%*d] ", o->width,
                                  s->rank));
    sink_put(s->to, line, bytes);
    if (bytes == 0 || line[bytes - 1] != '\n')
        sink_put(s->to, "\n", 1);
}

/* fresh bytes have come behind the used ones: passes on what is whole. */
static void take_lines(output *o, stream *s, size_t fresh)
{
    size_t from = 0, seen = s->used;

    s->used += fresh;
    if (s->cut && fresh > 0) {
        /* The end of a line whose last piece has been given one. */
        from = seen = s->line[0] == '\n';
        s->cut = false;
    }
    while (seen < s->used) {
        const char *newline = memchr(s->line + seen, '\n', s->used - seen);

        if (newline == NULL)
            break;
        seen = (size_t)(newline + 1 - s->line);
        put_line(o, s, s->line + from, seen - from);
        from = seen;
    }
    s->used -= from;
    memmove(s->line, s->line + from, s->used);
    if (s->used == OUTPUT_LINE_MOST) {
        put_line(o, s, s->line, s->used);
        s->used = 0;
        s->cut = true;
    }
}

static void end_stream(output *o, stream *s)
{
    if (s->used > 0)
        put_line(o, s, s->line, s->used);
    s->used = 0;
    close_stream(s);
}

/* True if something was read, or the pipe has ended and was closed. */
static bool read_stream(output *o, stream *s)
{
    size_t room = OUTPUT_LINE_MOST - s->used;
    ssize_t n =
        read(s->fd, s->line + s->used, room < READ_MOST ? room : READ_MOST);

    if (n > 0 && o->logs != NULL)
        logs_write(o->logs, s->rank, (s - o->streams) % 2 != 0,
                   s->line + s->used, (size_t)n);
    if (n > 0)
        take_lines(o, s, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        end_stream(o, s);
    else
        return false;
    return true;
}

static void flush(output *o)
{
    sink_flush(&o->out);
    sink_flush(&o->err);
    for (size_t i = 0; i < o->count; i++)
        if (o->streams[i].to->gone)
            close_stream(&o->streams[i]);
}

size_t output_poll_most(const output *o)
{
    return o->count + 2;
}

/* The streams first, one entry each, so that output_move knows which is which;
 * then the sinks. A negative fd is an entry that poll leaves alone. */
size_t output_poll(output *o, struct pollfd *polled)
{
    for (size_t i = 0; i < o->count; i++)
        polled[i] = (struct pollfd){
            .fd = sink_room(o->streams[i].to) < ROOM_WANTED ? -1
                                                            : o->streams[i].fd,
            .events = POLLIN,
        };
    polled[o->count] =
        (struct pollfd){ .fd = sink_empty(&o->out) ? -1 : o->out.fd,
                         .events = POLLOUT };
    polled[o->count + 1] =
        (struct pollfd){ .fd = sink_empty(&o->err) ? -1 : o->err.fd,
                         .events = POLLOUT };
    return o->count + 2;
}

void output_move(output *o, const struct pollfd *polled, size_t count)
{
    bool moved = false;

    for (size_t i = 0; i < count; i++) {
        if (polled[i].revents == 0)
            continue;
        moved = true;
        /* Others may have filled the sink in this round. */
        if (i < o->count && o->streams[i].fd >= 0 &&
            sink_room(o->streams[i].to) >= ROOM_WANTED)
            read_stream(o, &o->streams[i]);
    }
    if (moved)
        flush(o);
}

void output_finish(output *o)
{
    for (size_t i = 0; i < o->count; i++) {
        stream *s = &o->streams[i];

        while (s->fd >= 0 && sink_room(s->to) >= ROOM_WANTED)
            /* Nobody of the job is left to write: an end that is still held is
             * held by a stranger. */
            if (!read_stream(o, s))
                end_stream(o, s);
        flush(o);
    }
}

bool output_done(const output *o)
{
    for (size_t i = 0; i < o->count; i++)
        if (o->streams[i].fd >= 0)
            return false;
    return sink_empty(&o->out) && sink_empty(&o->err);
}

bool output_all_heard(const output *o)
{
    for (size_t i = 0; i < o->count; i++)
        if (o->streams[i].fd >= 0 && o->streams[i].to == o->say_to)
            return false;
    return true;
}

size_t output_written(const output *o)
{
    return o->out.written + o->err.written;
}

void output_lines(output *o, const char *lines, size_t bytes)
{
    if (sink_room(o->say_to) < bytes)
        return;
    sink_put(o->say_to, lines, bytes);
    flush(o);
}

void output_say(output *o, const char *who, const char *format, ...)
{
    char text[SAY_MOST];
    va_list args;
    size_t bytes;

    va_start(args, format);
    bytes = say_into(text, who, format, args);
    va_end(args);
    output_lines(o, text, bytes);
}

/* What a rank printed and nobody has read. */
static void give_up_stream(stream *s)
{
    int unread = 0;

    if (s->fd < 0)
        return;
    ioctl(s->fd, FIONREAD, &unread);
    sink_lose(s->to, s->used + (size_t)unread);
    close_stream(s);
}

static bool report_sink(output *o, const sink *s, const char *who,
                        const char *name)
{
    if (s->lost == 0)
        return false;
    output_say(o, who, "%zu bytes for standard %s could not be written: %s",
               s->lost, name,
               s->error == EAGAIN ? "nobody took them" : strerror(s->error));
    return true;
}

bool output_report(output *o, const char *who)
{
    bool lost_out, lost_err;

    for (size_t i = 0; i < o->count; i++)
        give_up_stream(&o->streams[i]);
    sink_give_up(&o->out);
    sink_give_up(&o->err);
    lost_out = report_sink(o, &o->out, who, "output");
    lost_err = report_sink(o, &o->err, who, "error");
    return lost_out || lost_err;
}
