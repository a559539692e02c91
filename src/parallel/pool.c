/* The pool of large buffers. A buffer lies behind its own description. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/pool.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define LINE 64 /* bytes of a cache line */

typedef struct piece {
    void *memory; /* as the allocator gave it */
    size_t bytes; /* behind this description */
    struct piece *next;
} piece;

_Static_assert(sizeof(piece) <= LINE,
               "a buffer begins one cache line behind its piece");

struct rdl_pool {
    rdl_purse *purse;
    pthread_mutex_t lock; /* protects what follows */
    int users;
    piece *kept;
    size_t taken;
    size_t held;
};

/* --- pieces ---------------------------------------------------------------- */

static float *buffer_of(piece *p)
{
    return (float *)(void *)((unsigned char *)p + LINE);
}

static piece *piece_of(float *buffer)
{
    return (piece *)(void *)((unsigned char *)buffer - LINE);
}

static piece *make_piece(rdl_purse *purse, size_t bytes)
{
    /* Its own line, and what is lost by moving up to the next line. */
    size_t more = 2 * LINE - 1;
    unsigned char *memory;
    piece *p;

    if (bytes > SIZE_MAX - more)
        return NULL;
    memory = rdl_realloc_for(purse, NULL, bytes + more);
    if (memory == NULL)
        return NULL;
    p = (piece *)(void *)(memory + (-(uintptr_t)memory & (LINE - 1)));
    *p = (piece){ .memory = memory, .bytes = bytes };
    return p;
}

static void drop_piece(rdl_pool *pool, piece *p)
{
    pool->held -= p->bytes;
    rdl_free(p->memory);
}

static void drop_kept(rdl_pool *pool)
{
    while (pool->kept != NULL) {
        piece *next = pool->kept->next;

        drop_piece(pool, pool->kept);
        pool->kept = next;
    }
}

/* Whether a suits this many bytes better than b: the smallest that is large
 * enough, else the largest. */
static bool suits_better(const piece *a, const piece *b, size_t bytes)
{
    if (b->bytes < bytes)
        return a->bytes > b->bytes;
    return a->bytes >= bytes && a->bytes < b->bytes;
}

/* A kept piece that is large enough, off the list. If all are too small, the
 * largest of them goes, so that a larger one may take its place and the pool never
 * holds more pieces than were taken at once. */
static piece *reuse(rdl_pool *pool, size_t bytes)
{
    piece **best = &pool->kept;
    piece *found;

    for (piece **at = best; *at != NULL; at = &(*at)->next)
        if (suits_better(*at, *best, bytes))
            best = at;
    found = *best;
    if (found == NULL)
        return NULL;
    *best = found->next;
    if (found->bytes >= bytes)
        return found;
    drop_piece(pool, found);
    return NULL;
}

/* --- the pool -------------------------------------------------------------- */

rdl_pool *rdl_pool_create(rdl_purse *purse)
{
    rdl_pool *pool = rdl_calloc_for(purse, 1, sizeof *pool);

    if (pool != NULL) {
        pthread_mutex_init(&pool->lock, NULL);
        pool->users = 1;
        pool->purse = purse;
    }
    return pool;
}

void rdl_pool_join(rdl_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->users++;
    pthread_mutex_unlock(&pool->lock);
}

void rdl_pool_leave(rdl_pool *pool)
{
    int users;

    if (pool == NULL)
        return;
    pthread_mutex_lock(&pool->lock);
    users = --pool->users;
    if (users <= 1)
        drop_kept(pool);
    pthread_mutex_unlock(&pool->lock);
    if (users > 0)
        return;
    pthread_mutex_destroy(&pool->lock);
    rdl_free(pool);
}

float *rdl_pool_take(rdl_pool *pool, size_t count)
{
    size_t bytes = count * sizeof(float);
    piece *p;

    if (count > SIZE_MAX / sizeof(float))
        return NULL;
    pthread_mutex_lock(&pool->lock);
    p = reuse(pool, bytes);
    if (p == NULL) {
        p = make_piece(pool->purse, bytes);
        if (p != NULL)
            pool->held += bytes;
    }
    if (p != NULL)
        pool->taken += p->bytes;
    pthread_mutex_unlock(&pool->lock);
    return p ? buffer_of(p) : NULL;
}

void rdl_pool_give(rdl_pool *pool, float *buffer)
{
    piece *p;

    if (buffer == NULL)
        return;
    p = piece_of(buffer);
    pthread_mutex_lock(&pool->lock);
    pool->taken -= p->bytes;
    p->next = pool->kept;
    pool->kept = p;
    if (pool->users == 1)
        drop_kept(pool);
    pthread_mutex_unlock(&pool->lock);
}

void rdl_pool_bytes(rdl_pool *pool, size_t *taken, size_t *held)
{
    pthread_mutex_lock(&pool->lock);
    *taken = pool->taken;
    *held = pool->held;
    pthread_mutex_unlock(&pool->lock);
}
