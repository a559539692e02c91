/* The pool of large buffers. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/pool.h"
#include "support/test.h"

#include "base/fault.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

static size_t held(rdl_pool *pool)
{
    size_t taken, all;

    rdl_pool_bytes(pool, &taken, &all);
    CHECK(taken <= all);
    return all;
}

static size_t taken(rdl_pool *pool)
{
    size_t out, all;

    rdl_pool_bytes(pool, &out, &all);
    return out;
}

RDL_TEST(a_lone_user_gets_aligned_buffers_and_keeps_none)
{
    rdl_pool *pool = rdl_pool_create(NULL);

    CHECK(pool != NULL);
    for (size_t count = 0; count < 100; count++) {
        float *buffer = rdl_pool_take(pool, count);

        CHECK(buffer != NULL);
        CHECK_INT((uintptr_t)buffer % 64, 0);
        memset(buffer, 1, count * sizeof *buffer);
        CHECK_INT(held(pool), count * sizeof *buffer);
        rdl_pool_give(pool, buffer);
        CHECK_INT(held(pool), 0);
    }
    rdl_pool_give(pool, NULL);
    rdl_pool_leave(pool);
    rdl_pool_leave(NULL);
}

RDL_TEST(what_is_given_back_is_taken_again_the_best_fit_first)
{
    rdl_pool *pool = rdl_pool_create(NULL);
    float *small, *large, *again;

    CHECK(pool != NULL);
    rdl_pool_join(pool);
    small = rdl_pool_take(pool, 100);
    large = rdl_pool_take(pool, 1000);
    CHECK(small != NULL && large != NULL);
    CHECK_INT(taken(pool), 4400);
    rdl_pool_give(pool, small);
    rdl_pool_give(pool, large);
    CHECK_INT(taken(pool), 0);
    CHECK_INT(held(pool), 4400);
    again = rdl_pool_take(pool, 50);
    CHECK(again == small);
    rdl_pool_give(pool, again);
    again = rdl_pool_take(pool, 101);
    CHECK(again == large);
    rdl_pool_give(pool, again);
    CHECK_INT(held(pool), 4400);

    /* One that is too large takes the place of the largest. */
    again = rdl_pool_take(pool, 2000);
    CHECK_INT(held(pool), 8400);
    rdl_pool_give(pool, again);

    /* Down to one user, nothing is kept. */
    again = rdl_pool_take(pool, 2000);
    rdl_pool_leave(pool);
    CHECK_INT(held(pool), 8000);
    rdl_pool_give(pool, again);
    CHECK_INT(held(pool), 0);
    rdl_pool_leave(pool);
}

RDL_TEST(a_size_that_overflows_is_no_memory)
{
    rdl_pool *pool = rdl_pool_create(NULL);

    CHECK(pool != NULL);
    CHECK(rdl_pool_take(pool, SIZE_MAX) == NULL);
    CHECK(rdl_pool_take(pool, SIZE_MAX / 4) == NULL);
    CHECK_INT(held(pool), 0);
    rdl_pool_leave(pool);
}

static void *take_and_give(void *arg)
{
    rdl_pool *pool = arg;

    for (size_t i = 0; i < 500; i++) {
        float *buffer = rdl_pool_take(pool, 100 + i % 7);

        CHECK(buffer != NULL);
        for (size_t k = 0; k < 100; k++)
            buffer[k] = (float)i;
        for (size_t k = 0; k < 100; k++)
            CHECK(buffer[k] == (float)i);
        rdl_pool_give(pool, buffer);
    }
    rdl_pool_leave(pool);
    return NULL;
}

RDL_TEST(threads_never_get_the_same_buffer)
{
    rdl_pool *pool = rdl_pool_create(NULL);
    pthread_t thread;

    CHECK(pool != NULL);
    rdl_pool_join(pool);
    CHECK_INT(pthread_create(&thread, NULL, take_and_give, pool), 0);
    take_and_give(pool);
    CHECK_INT(pthread_join(thread, NULL), 0);
}

#ifdef RDL_FAULTS
RDL_TEST(a_pool_without_memory_says_so_and_goes_on)
{
    rdl_fault plan = { .memory_at = 1 };
    rdl_pool *pool;

    rdl_fault_use(&plan);
    CHECK(rdl_pool_create(NULL) == NULL);
    plan = (rdl_fault){ .memory_at = 2 };
    pool = rdl_pool_create(NULL);
    CHECK(pool != NULL);
    CHECK(rdl_pool_take(pool, 10) == NULL);
    rdl_fault_use(NULL);
    CHECK_INT(held(pool), 0);
    rdl_pool_give(pool, rdl_pool_take(pool, 10));
    rdl_pool_leave(pool);
}
#endif
