/* Turns: the order of a lane's operations on this rank. An operation takes a
 * ticket when it is issued and runs when its turn comes; whoever has the turn
 * drives the lane alone.
 *
 * Threads: any. The holder of the turn passes it on; a ticket whose turn has not
 * come may be given up. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_COMM_TURNS_H
#define RDL_COMM_TURNS_H

#include "base/memory.h"
#include "base/time.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rdl_turns {
    _Atomic uint64_t issued;    /* tickets given out */
    _Atomic uint64_t turn;      /* the ticket whose turn it is */
    _Atomic uint32_t attention; /* tickets given up and not yet passed over */
    pthread_mutex_t lock;       /* protects what follows; never held for long */
    rdl_purse *purse;
    uint64_t *given_up;
    size_t n_given_up;
    size_t room;
} rdl_turns;

void rdl_turns_init(rdl_turns *turns, rdl_purse *purse);
void rdl_turns_fini(rdl_turns *turns);

static inline uint64_t rdl_turns_take(rdl_turns *turns)
{
    return atomic_fetch_add_explicit(&turns->issued, 1, memory_order_acq_rel);
}

/* A ticket whose turn it is at once, or none. */
bool rdl_turns_try(rdl_turns *turns, uint64_t *ticket);

static inline bool rdl_turns_is(const rdl_turns *turns, uint64_t ticket)
{
    /* Pairs with the store in rdl_turns_pass: what the one before did is seen. */
    return atomic_load_explicit(&turns->turn, memory_order_seq_cst) == ticket;
}

/* Whether no ticket is out. */
static inline bool rdl_turns_idle(const rdl_turns *turns)
{
    return atomic_load_explicit(&turns->turn, memory_order_acquire) ==
           atomic_load_explicit(&turns->issued, memory_order_acquire);
}

/* The holder of the turn has done with it. Who waits for a turn sleeps on the
 * rank's bell, which the caller rings after this and the next. */
void rdl_turns_pass(rdl_turns *turns, uint64_t ticket);

/* The ticket will not be used, whether or not its turn has come. */
void rdl_turns_give_up(rdl_turns *turns, uint64_t ticket);

#endif
