/* Tickets. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/turns.h"

void rdl_turns_init(rdl_turns *turns, rdl_purse *purse)
{
    *turns = (rdl_turns){ .purse = purse };
    pthread_mutex_init(&turns->lock, NULL);
}

void rdl_turns_fini(rdl_turns *turns)
{
    pthread_mutex_destroy(&turns->lock);
    rdl_free(turns->given_up);
}

bool rdl_turns_try(rdl_turns *turns, uint64_t *ticket)
{
    uint64_t turn = atomic_load_explicit(&turns->turn, memory_order_acquire);

    *ticket = turn;
    return atomic_compare_exchange_strong_explicit(
        &turns->issued, &turn, turn + 1, memory_order_acq_rel,
        memory_order_acquire);
}

/* Takes ticket off the list. Under the lock. */
static bool remove_given_up(rdl_turns *turns, uint64_t ticket)
{
    for (size_t i = 0; i < turns->n_given_up; i++) {
        if (turns->given_up[i] != ticket)
            continue;
        turns->given_up[i] = turns->given_up[--turns->n_given_up];
        atomic_fetch_sub_explicit(&turns->attention, 1, memory_order_relaxed);
        return true;
    }
    return false;
}

/* Passes over the tickets that were given up, if it is their turn. */
static void pass_over(rdl_turns *turns)
{
    uint64_t turn;

    pthread_mutex_lock(&turns->lock);
    turn = atomic_load_explicit(&turns->turn, memory_order_seq_cst);
    while (remove_given_up(turns, turn))
        atomic_store_explicit(&turns->turn, ++turn, memory_order_seq_cst);
    pthread_mutex_unlock(&turns->lock);
}

void rdl_turns_pass(rdl_turns *turns, uint64_t ticket)
{
    /* In one total order with what those who give up do (they raise `attention` and
     * then look at `turn`), and with the sleepers of the bell. */
    atomic_store_explicit(&turns->turn, ticket + 1, memory_order_seq_cst);
    if (atomic_load_explicit(&turns->attention, memory_order_seq_cst) != 0)
        pass_over(turns);
}

/* Under the lock. */
static bool note_given_up(rdl_turns *turns, uint64_t ticket)
{
    if (turns->n_given_up == turns->room) {
        size_t room = turns->room ? 2 * turns->room : 8;
        uint64_t *more = rdl_realloc_for(turns->purse, turns->given_up,
                                         room * sizeof *turns->given_up);

        if (more == NULL)
            return false;
        turns->given_up = more;
        turns->room = room;
    }
    turns->given_up[turns->n_given_up++] = ticket;
    atomic_fetch_add_explicit(&turns->attention, 1, memory_order_seq_cst);
    return true;
}

void rdl_turns_give_up(rdl_turns *turns, uint64_t ticket)
{
    bool noted;

    pthread_mutex_lock(&turns->lock);
    noted = note_given_up(turns, ticket);
    pthread_mutex_unlock(&turns->lock);
    if (noted) {
        pass_over(turns);
        return;
    }
    /* Without memory to note it there is only waiting for it. */
    while (!rdl_turns_is(turns, ticket))
        rdl_sleep(INT64_C(100000));
    rdl_turns_pass(turns, ticket);
}
