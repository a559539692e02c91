/* Large buffers of floats that are wanted for a while, again and again: whole
 * parameters, whole gradients, what is on its way. A fresh one from the system
 * costs a page fault every 4,096 bytes, so those given back are kept for the next
 * taker, as long as two users share the pool; a single user's are let go.
 *
 * The pool locks itself: any thread may call. Buffers are aligned to 64 bytes. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_PARALLEL_POOL_H
#define RDL_PARALLEL_POOL_H

#include "base/memory.h"

#include <stddef.h>

typedef struct rdl_pool rdl_pool;

/* A pool with one user; NULL if there is no memory. What it takes is the purse's,
 * which may be NULL. */
rdl_pool *rdl_pool_create(rdl_purse *purse);

/* One more user. */
void rdl_pool_join(rdl_pool *pool);

/* One less, who has given everything back; the last takes the pool along. NULL is
 * allowed. */
void rdl_pool_leave(rdl_pool *pool);

/* At least count floats, of any content; NULL if there is no memory. */
float *rdl_pool_take(rdl_pool *pool, size_t count);

/* NULL is allowed. */
void rdl_pool_give(rdl_pool *pool, float *buffer);

/* Bytes of buffers that are taken, and of all, those kept included. */
void rdl_pool_bytes(rdl_pool *pool, size_t *taken, size_t *held);

#endif
