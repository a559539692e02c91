/* The helper: at most one thread per host, which drives what nobody waits for. It
 * does not exist before the first such operation, and sleeps on a word of its own
 * while nothing is active; on the bells of its worlds' ranks it would be woken by
 * every message of theirs. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/bell.h"
#include "base/fault.h"
#include "comm/task.h"
#include "comm/world.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define WORLDS_MOST 64 /* slept on at once; more are looked at by turns */

static bool is_wanted(rdl_host *host)
{
    return atomic_load_explicit(&host->helper_waits, memory_order_relaxed) > 0;
}

/* Between two rounds. A mutex is not fair: on a core of its own the helper would
 * have it again before who waits for it is awake, round after round. */
static void make_way(rdl_host *host)
{
    do
        sched_yield();
    while (is_wanted(host));
}

/* A rank's, to change the list of worlds. */
static void stop_rounds(rdl_host *host)
{
    atomic_fetch_add_explicit(&host->helper_waits, 1, memory_order_relaxed);
    pthread_mutex_lock(&host->helping);
    atomic_fetch_sub_explicit(&host->helper_waits, 1, memory_order_relaxed);
}

/* With `helping` held. */
static int list_active(rdl_host *host, rdl_world *some[WORLDS_MOST])
{
    int n = 0;

    for (rdl_world *w = host->worlds; w != NULL && n < WORLDS_MOST;
         w = w->next_in_host)
        if (atomic_load_explicit(&w->tasks.n_active, memory_order_seq_cst) > 0)
            some[n++] = w;
    return n;
}

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

/* As struct futex_waitv of linux/futex.h, which older headers lack. */
typedef struct waiter {
    uint64_t value;
    uint64_t word;
    uint32_t flags;
    uint32_t reserved;
} waiter;

#define FUTEX_OF_32_BITS 2

/* Sleeps until one of the bells has rung. */
static void sleep_on_bells(rdl_world *const *worlds, const uint32_t *bells,
                           int n, rdl_time most)
{
    struct timespec until;
    waiter waiters[WORLDS_MOST] = { { 0 } };
    rdl_time at = rdl_now() + most;

    if (n == 1) {
        rdl_bell_sleep(rdl_world_slice(worlds[0]), bells[0], most);
        return;
    }
    for (int i = 0; i < n; i++)
        waiters[i] = (waiter){
            .value = bells[i],
            .word = (uint64_t)(uintptr_t)&rdl_world_slice(worlds[i])->bell,
            .flags = FUTEX_OF_32_BITS,
        };
    until = (struct timespec){ .tv_sec = at / 1000000000,
                               .tv_nsec = at % 1000000000 };
    if (syscall(SYS_futex_waitv, waiters, n, 0, &until, CLOCK_MONOTONIC) < 0 &&
        errno == ENOSYS) /* before Linux 5.16 */
        rdl_sleep(INT64_C(200000));
}

/* With the lock held, which keeps the worlds; a world that wants to leave waits for
 * this round. */
static void doze(rdl_world *const *worlds, int n)
{
    rdl_time sleep = RDL_SLEEP_MOST;
    uint32_t bells[WORLDS_MOST];
    bool ready = false;

    for (int i = 0; i < n; i++)
        bells[i] = rdl_bell_announce(rdl_world_slice(worlds[i]));
    for (int i = 0; i < n && !ready; i++)
        ready = rdl_tasks_are_ready(worlds[i]) ||
                rdl_tasks_advance(worlds[i], true, &sleep);
    if (!ready)
        sleep_on_bells(worlds, bells, n, sleep);
    for (int i = 0; i < n; i++)
        rdl_bell_withdraw(rdl_world_slice(worlds[i]));
}

/* One round over all worlds; whether there is anything active. */
static bool help(rdl_host *host, int *idle)
{
    rdl_world *some[WORLDS_MOST];
    rdl_time sleep = RDL_SLEEP_MOST;
    bool moved = false;
    int n;

    pthread_mutex_lock(&host->helping);
    n = list_active(host, some);
    for (int i = 0; i < n; i++)
        moved |= rdl_tasks_advance(some[i], false, &sleep);
    *idle = moved ? 0 : *idle + 1;
    if (n > 0 && !moved && *idle > 8 && !is_wanted(host))
        doze(some, n);
    pthread_mutex_unlock(&host->helping);
    return n > 0;
}

static void *run(void *arg)
{
    rdl_host *host = arg;
    int idle = 0;

    for (;;) {
        uint32_t word =
            atomic_load_explicit(&host->helper_word, memory_order_seq_cst);

        if (help(host, &idle)) {
            make_way(host);
            continue;
        }
        if (atomic_load_explicit(&host->helper_ends, memory_order_acquire))
            return NULL;
        atomic_store_explicit(&host->helper_sleeps, true, memory_order_seq_cst);
        /* Looked at again after saying so: who made something active since then
         * has changed the word or sees that we sleep. */
        if (atomic_load_explicit(&host->helper_word, memory_order_seq_cst) ==
            word)
            rdl_futex_wait(&host->helper_word, word, INT64_C(3600000000000));
        atomic_store_explicit(&host->helper_sleeps, false, memory_order_seq_cst);
    }
}

/* Without a thread, waiting callers drive. */
static void start(rdl_host *host)
{
    pthread_mutex_lock(&host->lock);
    if (!atomic_load_explicit(&host->helper_runs, memory_order_relaxed) &&
        !rdl_fault_os() && pthread_create(&host->helper, NULL, run, host) == 0)
        atomic_store_explicit(&host->helper_runs, true, memory_order_release);
    pthread_mutex_unlock(&host->lock);
}

void rdl_helper_end(rdl_host *host)
{
    if (!atomic_load_explicit(&host->helper_runs, memory_order_acquire))
        return;
    atomic_store_explicit(&host->helper_ends, true, memory_order_release);
    atomic_fetch_add_explicit(&host->helper_word, 1, memory_order_seq_cst);
    rdl_futex_wake_all(&host->helper_word);
    pthread_join(host->helper, NULL);
}

void rdl_helper_wake(rdl_world *world)
{
    rdl_host *host = world->host;

    if (!atomic_load_explicit(&host->helper_runs, memory_order_acquire))
        start(host);
    atomic_fetch_add_explicit(&host->helper_word, 1, memory_order_seq_cst);
    if (atomic_load_explicit(&host->helper_sleeps, memory_order_seq_cst))
        rdl_futex_wake_all(&host->helper_word);
}

void rdl_helper_join(rdl_world *world)
{
    rdl_host *host = world->host;

    stop_rounds(host);
    world->next_in_host = host->worlds;
    host->worlds = world;
    pthread_mutex_unlock(&host->helping);
}

void rdl_helper_leave(rdl_world *world)
{
    rdl_world **link = &world->host->worlds;

    stop_rounds(world->host);
    while (*link != NULL && *link != world)
        link = &(*link)->next_in_host;
    if (*link != NULL)
        *link = world->next_in_host;
    pthread_mutex_unlock(&world->host->helping);
}
