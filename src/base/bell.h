/* Bells: how a thread of one rank sleeps until another rank has published
 * something, without losing a ring.
 *
 *     sleeper:   v = bell; sleepers += 1;  look again;  sleep while bell == v
 *     publisher: store the news;           sleepers? -> bell += 1, wake
 *
 * Both the news and `sleepers` are stored and loaded in the one total order of
 * sequentially consistent operations, so either the sleeper sees the news or the
 * publisher sees the sleeper. Sleepers are counted: a flag that one clears would
 * hide another.
 *
 * The bell is the one word of a slice that others write. It carries nothing:
 * whatever value it has, a sleeper looks at the news itself. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BASE_BELL_H
#define RDL_BASE_BELL_H

#include "base/layout.h"
#include "base/os.h"

/* After a sequentially consistent store of what slice's owner may wait for. */
static inline void rdl_bell_ring(rdl_slice *slice)
{
    if (atomic_load_explicit(&slice->sleepers, memory_order_seq_cst) == 0)
        return;
    atomic_fetch_add_explicit(&slice->bell, 1, memory_order_seq_cst);
    rdl_futex_wake_all(&slice->bell);
}

/* Announces a sleeper; what is awaited must be looked at (with a sequentially
 * consistent load) between this and rdl_bell_sleep. */
static inline uint32_t rdl_bell_announce(rdl_slice *mine)
{
    uint32_t value = atomic_load_explicit(&mine->bell, memory_order_seq_cst);

    atomic_fetch_add_explicit(&mine->sleepers, 1, memory_order_seq_cst);
    return value;
}

static inline void rdl_bell_sleep(rdl_slice *mine, uint32_t value, rdl_time most)
{
    rdl_futex_wait(&mine->bell, value, most);
}

static inline void rdl_bell_withdraw(rdl_slice *mine)
{
    atomic_fetch_sub_explicit(&mine->sleepers, 1, memory_order_relaxed);
}

#endif
