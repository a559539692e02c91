/* The launcher's side of a job: what comes over the sockets of its ranks, what they
 * write in their slices, and their ends, in any order.
 *
 * Input: a byte for the number of ranks; then steps, each a byte for what is done, one
 * for the rank and flags, one for a length, and so many bytes. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/arena.h"
#include "base/message.h"

#include <raddle/launch.h>
#include <raddle/version.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MUST(condition)                                                        \
    ((condition) ? (void)0 : (fprintf(stderr, "%s\n", #condition), abort()))

#define RANKS_MOST 4
#define STEPS_MOST 48 /* each may make an arena */

enum { SAY_HELLO, SAY_BYTES, HANG_UP, WRITE, END, LISTEN, SERVE, KINDS };
enum { RIGHT_VERSION = 4, RIGHT_SIZE = 8, RIGHT_RANK = 16, DEAD = 32 };

typedef struct stage {
    rdl_job *job;
    int size;
    pid_t dead; /* a process that has ended, and whose number is kept */
    rdl_arena arenas[RANKS_MOST]; /* of the last answer; base NULL: none */
} stage;

/* A child of ours that is never reaped. */
static pid_t make_dead(void)
{
    pid_t pid = fork();
    siginfo_t info;

    MUST(pid >= 0);
    if (pid == 0)
        _exit(0);
    MUST(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0);
    return pid;
}

static void say(const stage *s, int rank, const void *message, size_t bytes)
{
    int fd = rdl_job_rank_fd(s->job, rank);

    if (fd >= 0) /* else it has hung up */
        (void)!send(fd, message, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void say_hello(const stage *s, int rank, unsigned flags,
                      const uint8_t *data, size_t bytes)
{
    rdl_hello hello = { 0 };

    memcpy(&hello, data, bytes < sizeof hello ? bytes : sizeof hello);
    hello.magic = RDL_MAGIC;
    if (flags & RIGHT_VERSION) {
        hello.layout = rdl_layout_hash();
        memset(hello.version, 0, sizeof hello.version);
        snprintf(hello.version, sizeof hello.version, "%s", RDL_VERSION);
    }
    if (flags & RIGHT_SIZE)
        hello.size = (uint32_t)s->size;
    if (flags & RIGHT_RANK)
        hello.rank = (uint32_t)rank;
    /* No process that is not ours. */
    hello.pid = (uint32_t)(flags & DEAD ? s->dead : getpid());
    say(s, rank, &hello, sizeof hello);
}

static void forget_arena(stage *s, int rank)
{
    if (s->arenas[rank].base != NULL)
        rdl_arena_unmap(&s->arenas[rank]);
    s->arenas[rank].base = NULL;
}

/* An answer, if there is one, is whole, and has an arena just if it is a welcome. */
static void listen_to_answer(stage *s, int rank)
{
    int socket = rdl_job_rank_fd(s->job, rank), fd = -1;
    rdl_answer answer;

    if (socket < 0 || rdl_message_receive(socket, &answer, sizeof answer, &fd,
                                          rdl_deadline_after_ms(0)) != RDL_OK)
        return;
    MUST(rdl_answer_check(&answer) == RDL_OK);
    MUST((answer.status == RDL_OK) == (fd >= 0));
    MUST((answer.status == RDL_OK) == (answer.text[0] == 0));
    if (fd < 0)
        return;
    forget_arena(s, rank);
    MUST(rdl_arena_map(&s->arenas[rank], fd) == RDL_OK);
    MUST(s->arenas[rank].size == s->size);
}

/* In the first page of the slice, the table, or the slots; with two bytes for where,
 * in units of 4 bytes. */
static void write_slice(stage *s, int rank, unsigned flags, const uint8_t *data,
                        size_t bytes)
{
    static const size_t regions[] = { 0, 0, RDL_TABLE_AT, RDL_SLOTS_AT };
    size_t at;

    if (s->arenas[rank].base == NULL || bytes < 2)
        return;
    at = regions[flags >> 3 & 3] + ((size_t)data[0] | (size_t)data[1] << 8) * 4;
    memcpy((char *)rdl_arena_slice(&s->arenas[rank], rank) + at, data + 2,
           bytes - 2);
}

static void end_rank(stage *s, int rank, const uint8_t *data, size_t bytes)
{
    char text[256];

    memcpy(text, data, bytes);
    text[bytes] = 0;
    rdl_job_rank_ended(s->job, rank, text);
}

static void check_members(const stage *s)
{
    for (int rank = 0; rank < s->size; rank++) {
        rdl_member m;

        MUST(rdl_job_member(s->job, rank, &m) == RDL_OK);
        MUST(m.state <= RDL_MEMBER_DEAD);
        MUST((m.state == RDL_MEMBER_ABSENT) == (m.pid == 0));
        if (m.reason != NULL)
            MUST(strnlen(m.reason, RDL_REASON) < RDL_REASON);
    }
}

static void step(stage *s, unsigned kind, unsigned flags, const uint8_t *data,
                 size_t bytes)
{
    int rank = (int)(flags % (unsigned)s->size);

    switch (kind) {
    case SAY_HELLO:
        say_hello(s, rank, flags, data, bytes);
        return;
    case SAY_BYTES:
        say(s, rank, data, bytes);
        return;
    case HANG_UP:
        rdl_job_started(s->job, rank);
        return;
    case WRITE:
        write_slice(s, rank, flags, data, bytes);
        return;
    case END:
        end_rank(s, rank, data, bytes);
        return;
    case LISTEN:
        listen_to_answer(s, rank);
        return;
    default:
        MUST(rdl_job_serve(s->job) == RDL_OK);
        check_members(s);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static pid_t dead;
    stage s = { .size = 1 };
    size_t at = 1;

    if (bytes < 1)
        return 0;
    if (dead == 0)
        dead = make_dead();
    s.dead = dead;
    s.size = 1 + data[0] % RANKS_MOST;
    MUST(rdl_job_create(s.size, &s.job) == RDL_OK);
    for (int n = 0; n < STEPS_MOST && at + 3 <= bytes; n++) {
        unsigned kind = data[at] % KINDS, flags = data[at + 1];
        size_t length = data[at + 2];

        at += 3;
        length = length < bytes - at ? length : bytes - at;
        step(&s, kind, flags, data + at, length);
        at += length;
    }
    step(&s, SERVE, 0, NULL, 0);
    for (int rank = 0; rank < s.size; rank++)
        forget_arena(&s, rank);
    rdl_job_destroy(s.job);
    return 0;
}
