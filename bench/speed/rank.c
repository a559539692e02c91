/* Doing what the driver orders. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "rank.h"

#include "values.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096

typedef struct server {
    speed_rank *self;
    int fd;
    speed_order order; /* of the last PREPARE, whose buffers these are */
    void *input;
    void *output;
    size_t input_bytes;
    size_t output_bytes;
    uint64_t n_calls; /* roots take turns */
} server;

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* --- buffers --------------------------------------------------------------- */

static void *take(server *s, size_t bytes)
{
    void *memory;

    if (s->self->take != NULL)
        return s->self->take(s->self, bytes, s->order.mapped);
    if (s->order.mapped)
        return NULL;
    memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void give(server *s, void *memory, size_t bytes)
{
    if (memory == NULL)
        return;
    if (s->self->give != NULL)
        s->self->give(s->self, memory, bytes, s->order.mapped);
    else
        (void)munmap(memory, bytes);
}

static void drop(server *s)
{
    give(s, s->input, s->input_bytes);
    give(s, s->output, s->output_bytes);
    s->input = s->output = NULL;
}

static size_t whole_pages(uint64_t bytes)
{
    return bytes == 0 ? PAGE : (bytes + PAGE - 1) / PAGE * PAGE;
}

static bool make_buffers(server *s)
{
    const speed_order *o = &s->order;

    s->input_bytes = whole_pages(o->bytes);
    s->output_bytes = whole_pages(
        speed_output_bytes(o->operation, s->self->members, o->bytes));
    s->input = take(s, s->input_bytes);
    s->output = take(s, s->output_bytes);
    return s->input != NULL && s->output != NULL;
}

/* --- calls ----------------------------------------------------------------- */

static speed_look look_at(const server *s, int root)
{
    return (speed_look){ .operation = s->order.operation,
                         .rank = s->self->place,
                         .size = s->self->members,
                         .root = root,
                         .dtype = (rdl_dtype)s->order.dtype,
                         .bytes = s->order.bytes };
}

static speed_outcome run_once(server *s, int root, char *text)
{
    speed_call call = { .operation = s->order.operation,
                        .dtype = s->order.dtype,
                        .bytes = s->order.bytes,
                        .root = root,
                        .input = s->input,
                        .output = s->output };

    return s->self->run(s->self, &call, text);
}

static int next_root(server *s)
{
    return (int)(s->n_calls++ % (uint64_t)s->self->members);
}

/* One call whose result is looked at, with nothing of the right values left from an
 * earlier one. */
static speed_outcome check(server *s, char *text)
{
    int root = s->self->members - 1;
    speed_look look = look_at(s, root);
    bool in_place = s->order.operation == SPEED_BROADCAST;
    speed_outcome outcome;

    if (s->input == NULL || s->output == NULL)
        return SPEED_BROKEN;
    if (s->order.operation != SPEED_BARRIER)
        speed_fill(&look, s->input);
    if (in_place && s->self->place != root)
        memset(s->input, 0xff, s->order.bytes);
    memset(s->output, 0xff, s->output_bytes);
    outcome = run_once(s, root, text);
    if (outcome != SPEED_DONE || s->order.operation == SPEED_BARRIER ||
        speed_right(&look, in_place ? s->input : s->output))
        return outcome;
    snprintf(text, 256, "rank %d: the result is wrong", s->self->rank);
    return SPEED_WRONG;
}

static speed_outcome prepare(server *s, const speed_order *order, char *text)
{
    drop(s);
    s->order = *order;
    s->n_calls = 0;
    if (make_buffers(s))
        return check(s, text);
    snprintf(text, 256, "rank %d: no memory for %zu and %zu bytes",
             s->self->rank, s->input_bytes, s->output_bytes);
    return SPEED_BROKEN;
}

static void write_input(server *s)
{
    speed_look look = look_at(s, 0);

    if (s->order.operation != SPEED_BARRIER)
        speed_fill(&look, s->input);
}

static speed_outcome time_block(server *s, int calls, double *us, char *text)
{
    speed_outcome outcome = SPEED_DONE;
    double start = now_us();

    for (int i = 0; i < calls && outcome == SPEED_DONE; i++)
        outcome = run_once(s, next_root(s), text);
    *us = (now_us() - start) / calls;
    return outcome;
}

/* Ranks wake up one after another, so they meet twice before the clock starts. */
static bool meet_twice(speed_rank *self)
{
    for (int i = 0; i < 2; i++)
        if (!self->meet(self))
            return false;
    return true;
}

static speed_outcome time_blocks(server *s, const speed_order *order,
                                 speed_answer *answer)
{
    speed_outcome outcome = SPEED_DONE;
    speed_rank *self = s->self;
    bool met = meet_twice(self);

    for (int i = 0; i < order->blocks && met && outcome == SPEED_DONE; i++) {
        if (order->fresh) {
            write_input(s);
            met = self->meet(self);
        }
        outcome = time_block(s, order->calls, &answer->us[i], answer->text);
    }
    return met ? outcome : SPEED_BROKEN;
}

/* --- the driver ------------------------------------------------------------ */

static speed_outcome obey(server *s, const speed_order *order,
                          speed_answer *answer)
{
    switch (order->kind) {
    case SPEED_PREPARE:
        return prepare(s, order, answer->text);
    case SPEED_TIME:
        return time_blocks(s, order, answer);
    case SPEED_CHECK:
        return check(s, answer->text);
    default:
        drop(s);
        return SPEED_DONE;
    }
}

static bool answer_one(server *s, const speed_order *order)
{
    speed_answer answer = { .rank = s->self->rank };

    answer.outcome = (int32_t)obey(s, order, &answer);
    return send(s->fd, &answer, sizeof answer, MSG_NOSIGNAL) ==
           (ssize_t)sizeof answer;
}

/* The name begins with a zero byte: it is in no folder. */
static int reach(const char *socket_name)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    size_t n = strlen(socket_name);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    if (n > sizeof address.sun_path - 1)
        n = sizeof address.sun_path - 1;
    memcpy(address.sun_path + 1, socket_name, n);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address,
                           (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
                                       1 + n)) == 0)
        return fd;
    fprintf(stderr, "no connection to '%s': %s\n", socket_name, strerror(errno));
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

int speed_serve(speed_rank *self, const char *socket_name)
{
    server s = { .self = self, .fd = reach(socket_name) };
    speed_answer hello = { .rank = self->rank };
    speed_order order;
    bool good = s.fd >= 0 && send(s.fd, &hello, sizeof hello, MSG_NOSIGNAL) ==
                                 (ssize_t)sizeof hello;
    bool ended = false;

    while (good && !ended) {
        /* A driver that is gone is an order to end. */
        ended = recv(s.fd, &order, sizeof order, 0) != (ssize_t)sizeof order ||
                order.kind == SPEED_END;
        good = ended || answer_one(&s, &order);
    }
    drop(&s);
    if (s.fd >= 0)
        (void)close(s.fd);
    return good ? 0 : 1;
}
