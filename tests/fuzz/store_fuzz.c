/* A rank that keeps a job, and those who come to it over connections of their own:
 * several are open at a time and say their words in any order. Who may join is known
 * beforehand, and is compared.
 *
 * Input: a byte for the number of ranks; then steps, each a byte for what is done and
 * the connection, one of flags, one for a length, and so many bytes. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/store.h"

#include <raddle/version.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MUST(condition)                                                        \
    ((condition) ? (void)0 : (fprintf(stderr, "%s\n", #condition), abort()))

#define RANKS_MOST 8
#define GUESTS 4
#define STEPS_MOST 64

enum { COME, SAY_HELLO, SAY_BYTES, LEAVE, SERVE, SHOW, KINDS };
enum { RIGHT_MAGIC = 1, RIGHT_VERSION = 2, RIGHT_SIZE = 4, RIGHT_RANK = 8 };

/* Who has come. */
typedef struct guest {
    int socket;      /* -1: none */
    bool said;       /* something: what counts is the first message */
    bool hello_came; /* it was a whole hello */
    rdl_hello hello;
} guest;

typedef struct stage {
    rdl_place place;
    rdl_store store;
    guest guests[GUESTS];
    int queue[GUESTS]; /* in which order they came */
    int n_queue;
    bool joined[RANKS_MOST]; /* by a hello that was right */
} stage;

static const char *no_environment(const char *name)
{
    (void)name;
    return NULL;
}

static void keep_job(stage *s, int size)
{
    char job[32];
    rdl_world_options options = { .size = size, .job = job };
    int fd;

    snprintf(job, sizeof job, "fuzz-%d", (int)getpid());
    MUST(rdl_place_read(&options, no_environment, &s->place) == RDL_OK);
    MUST(rdl_store_open(&s->store, &s->place, rdl_deadline_after_ms(10000),
                        &fd) == RDL_OK);
    close(fd);
    s->joined[0] = true;
    for (int i = 0; i < GUESTS; i++)
        s->guests[i].socket = -1;
}

static void come(stage *s, int i)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    size_t n = strlen(s->place.name);
    guest *g = &s->guests[i];

    if (g->socket >= 0)
        return;
    *g = (guest){ .socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0) };
    MUST(g->socket >= 0);
    memcpy(address.sun_path + 1, s->place.name, n);
    MUST(connect(g->socket, (struct sockaddr *)&address,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)) ==
         0);
    s->queue[s->n_queue++] = i;
}

static void say(guest *g, const void *message, size_t bytes)
{
    if (g->socket < 0)
        return;
    if (!g->said && bytes == sizeof g->hello) {
        memcpy(&g->hello, message, bytes);
        g->hello_came = true;
    }
    g->said = true;
    MUST(send(g->socket, message, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) ==
         (ssize_t)bytes);
}

static void say_hello(stage *s, guest *g, unsigned flags, const uint8_t *data,
                      size_t bytes)
{
    rdl_hello hello = { 0 };

    memcpy(&hello, data, bytes < sizeof hello ? bytes : sizeof hello);
    if (flags & RIGHT_MAGIC)
        hello.magic = RDL_MAGIC;
    if (flags & RIGHT_VERSION) {
        hello.layout = rdl_layout_hash();
        memset(hello.version, 0, sizeof hello.version);
        snprintf(hello.version, sizeof hello.version, "%s", RDL_VERSION);
    }
    if (flags & RIGHT_SIZE)
        hello.size = (uint32_t)s->place.size;
    if (flags & RIGHT_RANK)
        hello.rank %= (uint32_t)s->place.size;
    if (hello.pid == 0) /* nobody has it */
        hello.pid = 1;
    say(g, &hello, sizeof hello);
}

static bool may_join(const stage *s, const guest *g)
{
    const rdl_hello *h = &g->hello;

    return g->hello_came && h->magic == RDL_MAGIC &&
           strncmp(h->version, RDL_VERSION, sizeof h->version) == 0 &&
           h->layout == rdl_layout_hash() &&
           h->size == (uint32_t)s->place.size && h->rank < h->size &&
           !s->joined[h->rank];
}

/* After it was served: it has its answer, and is gone. */
static void read_answer(stage *s, guest *g)
{
    bool welcome = may_join(s, g);
    rdl_answer answer;
    int fd = -1;

    if (welcome)
        s->joined[g->hello.rank] = true;
    MUST(rdl_message_receive(g->socket, &answer, sizeof answer, &fd,
                             rdl_deadline_after_ms(10000)) == RDL_OK);
    MUST(rdl_answer_check(&answer) == RDL_OK);
    MUST((answer.status == RDL_OK) == welcome && (fd >= 0) == welcome);
    MUST(welcome == (answer.text[0] == 0));
    if (fd >= 0)
        close(fd);
    close(g->socket);
    g->socket = -1;
}

/* Nobody is left silent, which would be waited for. Whoever said two things may lose
 * the answer to the end of the connection. */
static void serve(stage *s)
{
    for (int i = 0; i < s->n_queue; i++)
        if (s->guests[s->queue[i]].socket >= 0 && !s->guests[s->queue[i]].said)
            say(&s->guests[s->queue[i]], "?", 1);
    MUST(rdl_store_serve(&s->store, 0) == RDL_OK);
    for (int i = 0; i < s->n_queue; i++)
        if (s->guests[s->queue[i]].socket >= 0)
            read_answer(s, &s->guests[s->queue[i]]);
    s->n_queue = 0;
}

/* A rank's state in its slice, any word. */
static void show(stage *s, unsigned flags, const uint8_t *data, size_t bytes)
{
    rdl_arena *arena = &s->store.roster.arena;
    rdl_slice *slice =
        rdl_arena_slice(arena, (int)(flags % (unsigned)arena->size));
    char missing[256];

    if (bytes > 0)
        atomic_store(&slice->state, data[0]);
    rdl_arena_missing(arena, missing, sizeof missing);
    MUST(rdl_arena_joined(arena) <= arena->size);
}

static void step(stage *s, unsigned kind, int i, unsigned flags,
                 const uint8_t *data, size_t bytes)
{
    guest *g = &s->guests[i];

    switch (kind) {
    case COME:
        come(s, i);
        return;
    case SAY_HELLO:
        if (!g->said)
            say_hello(s, g, flags, data, bytes);
        return;
    case SAY_BYTES:
        if (!g->said)
            say(g, data, bytes);
        return;
    case LEAVE:
        if (g->socket >= 0 && !g->said) {
            /* It may not come again before it was looked at: it has its place in
             * the queue. */
            close(g->socket);
            g->socket = -1;
            serve(s);
        }
        return;
    case SHOW:
        show(s, flags, data, bytes);
        return;
    default:
        serve(s);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    stage s = { .n_queue = 0 };
    size_t at = 1;

    if (bytes < 1)
        return 0;
    keep_job(&s, 1 + data[0] % RANKS_MOST);
    for (int n = 0; n < STEPS_MOST && at + 3 <= bytes; n++) {
        unsigned kind = data[at] % KINDS, flags = data[at + 1];
        int i = data[at] / KINDS % GUESTS;
        size_t length = data[at + 2];

        at += 3;
        length = length < bytes - at ? length : bytes - at;
        step(&s, kind, i, flags, data + at, length);
        at += length;
    }
    serve(&s);
    rdl_store_close(&s.store);
    return 0;
}
