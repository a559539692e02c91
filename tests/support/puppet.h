/* Puppets: one end of a rendezvous played by hand, to say what no raddle says. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_SUPPORT_PUPPET_H
#define RDL_SUPPORT_PUPPET_H

#include "base/arena.h"
#include "base/message.h"
#include "base/place.h"
#include "support/test.h"

/* Where rank of size finds the others of job. */
rdl_place rdl_puppet_place(const char *job, int rank, int size);

/* The hello that rank would say; right in every field. */
rdl_hello rdl_puppet_hello(const char *job, int rank, int size);

/* A socket connected to who keeps job, as soon as somebody does. */
int rdl_puppet_connect(const char *job);

/* Keeps job in place of its first rank: a listening socket. */
int rdl_puppet_listen(const char *job);

/* The next rank that comes; its hello. Returns the socket. */
int rdl_puppet_accept(int listener, rdl_hello *hello);

/* Says hello on a connection of its own; the answer and, unless NULL, what came
 * along (else that is closed). */
rdl_answer rdl_puppet_ask(const char *job, const rdl_hello *hello, int *fd);

/* Says hello as rank, which is welcome, and maps the arena; it has not joined.
 * With it one can also see how far the others are. */
rdl_arena rdl_puppet_join(const char *job, int rank, int size);

/* What a real rank of this process would have in its slice; then its state. */
void rdl_puppet_show(rdl_arena *arena, int rank, rdl_slice_state state,
                     rdl_status failure, const char *reason);

/* Until that rank has come so far. */
void rdl_puppet_await(const rdl_arena *arena, int rank, rdl_slice_state state);

/* Whether any process still holds the job's name. */
bool rdl_puppet_name_is_held(const char *job);

#endif
