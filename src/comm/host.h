/* The inside of a host: one mapping of each arena for all ranks of a process, and
 * the mark that tells a forked child from its parent. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_COMM_HOST_H
#define RDL_COMM_HOST_H

#include "base/arena.h"
#include "base/memory.h"
#include "base/os.h"

#include <pthread.h>
#include <raddle/host.h>
#include <raddle/world.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef struct rdl_mapping {
    rdl_arena arena;
    int users; /* under the host's lock */
    struct rdl_mapping *next;
} rdl_mapping;

struct rdl_host {
    rdl_purse purse;      /* this object's own memory */
    pthread_mutex_t lock; /* protects users and mappings */
    int users;            /* the creator and each open world */
    rdl_mapping *mappings;
    size_t staging_bytes;
    int groups;
    int records;
    rdl_fork_mark *mark;

    /* The helper (comm/helper.c). */
    pthread_mutex_t helping; /* held through a round; protects worlds */
    rdl_world *worlds;       /* open ones */
    pthread_t helper;
    _Atomic bool helper_runs;
    _Atomic bool helper_ends;
    _Atomic bool helper_sleeps;
    _Atomic uint32_t helper_word; /* changes when there is something to do */
    _Atomic int helper_waits;     /* ranks that want `helping` */
};

/* Ends the thread, if there is one. */
void rdl_helper_end(rdl_host *host);

void rdl_host_hold(rdl_host *host);
void rdl_host_release(rdl_host *host);

/* The mapping of the arena behind fd, which it takes on success: a rank of this
 * process may have mapped it already. */
rdl_status rdl_host_map(rdl_host *host, int fd, rdl_mapping **out);
void rdl_host_unmap(rdl_host *host, rdl_mapping *mapping);

/* For a forked child, which has one thread and did not inherit the arena: no lock
 * is taken, nothing is unmapped. */
void rdl_host_forget(rdl_host *host, rdl_mapping *mapping);
void rdl_host_free(rdl_host *host);

#endif
