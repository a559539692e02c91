/* What the ranks of a training have taken, brought together. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_CLI_TRAIN_ACCOUNT_H
#define RDL_CLI_TRAIN_ACCOUNT_H

#include "train/trouble.h"

#include <raddle/world.h>
#include <stdint.h>

/* The most that any rank has, but for shm_peak, which is of all together. */
typedef struct account {
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
