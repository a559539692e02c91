/* What the ranks of a training have taken, brought together. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_CLI_TRAIN_ACCOUNT_H
#define RDL_CLI_TRAIN_ACCOUNT_H

#include "train/trouble.h"

#include <raddle/world.h>
#include <stdint.h>

/* Bytes by what they are for: number, name in JSON, and words. */
#define SPENT_MAP(X)                                                           \
    X(HEADER, header, "header")                                                \
    X(STATE, state, "state and tables")                                        \
    X(SLOTS, slots, "slots")                                                   \
    X(TEXTS, texts, "texts")                                                   \
    X(RECORDS, records, "records")                                             \
    X(STAGING, staging, "staging")                                             \
    X(HEAP, heap, "heap")                                                      \
    X(PAGE_TABLES, page_tables, "page tables")                                 \
    X(PRIVATE, private, "private")

typedef enum spending {
#define X(number, name, words) SPENT_##number,
    SPENT_MAP(X)
#undef X
        SPENT_KINDS
} spending;

/* The most that any rank has, but for shm_peak and all, which are of all ranks
 * together. Those from header to heap are the arena: all of them sum up to
 * arena_total. */
typedef struct account {
    int64_t rank[SPENT_KINDS];
    int64_t all[SPENT_KINDS];
    int64_t groups_opened;
    int64_t communicators;
    int64_t arena_rank;
    int64_t arena_total;
    int64_t collectives;
    int64_t shm_peak;
} account;

/* Bytes that this process has mapped of files in /dev/shm. */
int64_t account_shm_bytes(void);

/* shm_peak: the most of these that this rank has seen. Collective. */
bool account_take(account *a, rdl_world *world, int64_t shm_peak, trouble *t);

#endif
