/* The two messages of the rendezvous, and sending them with a descriptor over a
 * Unix socket of whole messages (SOCK_SEQPACKET).
 *
 * A rank says hello; whoever keeps the roster (the launcher, else the first rank)
 * answers with a status, a sentence, and on success the arena. Both ends look at
 * the other's user first. What comes in is outside data: every field is checked
 * before it is used. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BASE_MESSAGE_H
#define RDL_BASE_MESSAGE_H

#include "base/os.h"
#include "base/status.h"
#include "base/time.h"

#include <stdint.h>

typedef struct rdl_hello {
    uint64_t magic;
    uint64_t layout;
    char version[16];
    uint64_t job; /* hash of the job's name */
    uint32_t size;
    uint32_t rank;
    uint64_t started;
    uint64_t pid_namespace;
    uint32_t pid;
    uint32_t reserved;
} rdl_hello;

/* To the process that said hello: several may share a launcher's socket. */
typedef struct rdl_answer {
    uint64_t magic;
    uint32_t status;
    uint32_t pid; /* 0: nobody's in particular */
    uint64_t started;
    uint64_t pid_namespace;
    char text[464];
} rdl_answer;

/* hello: NULL if none could be read. Unless RDL_OK, the text is the calling thread's
 * sentence. */
rdl_answer rdl_answer_make(const rdl_hello *hello, rdl_status status);

/* One whole message; fd is passed along if it is not -1. */
rdl_status rdl_message_send(int socket, const void *message, size_t bytes,
                            int fd);

/* One whole message of just these bytes, before the deadline. On success *fd is
 * the descriptor that came along, or -1. RDL_PEER: the other end is closed.
 * RDL_FORMAT: another length, or more than one descriptor. RDL_TIMEOUT. */
rdl_status rdl_message_receive(int socket, void *message, size_t bytes, int *fd,
                               rdl_deadline deadline);

/* Leaves an answer to another process where it is, and returns when there is one to
 * self, or one to nobody that still runs, or what is no answer. RDL_TIMEOUT. */
rdl_status rdl_message_await_answer(int socket, const rdl_process *self,
                                    rdl_deadline deadline);

/* RDL_INVALID unless the other end belongs to our user. */
rdl_status rdl_message_check_user(int socket);

/* Whether the text ends, the magic is right. */
rdl_status rdl_hello_check(const rdl_hello *hello);
rdl_status rdl_answer_check(const rdl_answer *answer);

#endif
