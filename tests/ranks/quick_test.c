/* The quick way of small blocking calls equals the runner's, and meets it: each rank
 * takes one or the other by chance, in every call anew. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/values.h"
#include "support/worlds.h"

#include <raddle/trace.h>
#include <raddle/work.h>
#include <string.h>

#define CALLS 400
#define BYTES 48

static const rdl_dtype dtypes[] = { RDL_INT8, RDL_INT64, RDL_FLOAT32,
                                    RDL_BFLOAT16 };

typedef struct one {
    int operation;
    rdl_dtype dtype;
    size_t count;
    int root;
    unsigned char input[BYTES];
} one;

static one draw(rdl_world *world, uint64_t *seed)
{
    int rank = rdl_world_rank(world), size = rdl_world_size(world);
    one c = { .operation = (int)(rdl_test_random(seed) % 9),
              .dtype = dtypes[rdl_test_random(seed) % 4] };

    c.count = rdl_test_random(seed) % (BYTES / rdl_dtype_bytes(c.dtype) + 1);
    if (c.operation >= 6) /* a block for each member */
        c.count /= (size_t)size;
    c.root = (int)(rdl_test_random(seed) % (uint64_t)size);
    for (int i = 0; i < BYTES; i++) {
        uint64_t any = rdl_test_random(seed);

        c.input[i] = (unsigned char)((any >> (rank % 8)) & 0x3f);
    }
    return c;
}

static rdl_status call(rdl_world *world, const one *c, unsigned char *output,
                       const rdl_call *options)
{
    switch (c->operation) {
    case 0:
        return rdl_all_reduce(world, RDL_WORLD, c->input, output, c->count,
                              c->dtype, RDL_SUM, options);
    case 1:
        return rdl_reduce(world, RDL_WORLD, c->input, output, c->count,
                          c->dtype, RDL_MAX, c->root, options);
    case 2:
        memcpy(output, c->input, BYTES);
        return rdl_broadcast(world, RDL_WORLD, output, c->count, c->dtype,
                             c->root, options);
    case 3:
        return rdl_all_gather(world, RDL_WORLD, c->input, output, c->count,
                              c->dtype, options);
    case 4:
        return rdl_gather(world, RDL_WORLD, c->input, output, c->count,
                          c->dtype, c->root, options);
    case 6:
        return rdl_reduce_scatter(world, RDL_WORLD, c->input, output, c->count,
                                  c->dtype, RDL_MIN, options);
    case 7:
        return rdl_all_to_all(world, RDL_WORLD, c->input, output, c->count,
                              c->dtype, options);
    case 8:
        return rdl_scatter(world, RDL_WORLD, c->input, output, c->count,
                           c->dtype, c->root, options);
    default:
        return rdl_barrier(world, RDL_WORLD, options);
    }
}

/* A call with a work is the runner's. */
static void run(rdl_world *world, const one *c, unsigned char *output,
                bool quick)
{
    rdl_work work;

    memset(output, 0x77, 8 * BYTES);
    if (quick) {
        CHECK_OK(call(world, c, output, NULL));
        return;
    }
    CHECK_OK(call(world, c, output, &(rdl_call){ .work = &work }));
    CHECK_OK(rdl_work_wait(world, work, 0));
}

static void take_either_way(rdl_world *world, void *arg)
{
    uint64_t seed = *(const uint64_t *)arg;
    uint64_t mine = seed + 1000 * (uint64_t)rdl_world_rank(world);
    unsigned char first[8 * BYTES], second[8 * BYTES];

    for (int i = 0; i < CALLS; i++) {
        one c = draw(world, &seed);
        bool quick = rdl_test_random(&mine) % 2 == 0;

        run(world, &c, first, quick);
        run(world, &c, second, !quick);
        CHECK(memcmp(first, second, sizeof first) == 0);
    }
}

static void both(int size)
{
    rdl_test_job job = { .size = size };
    uint64_t seed = rdl_test_seed() + (uint64_t)size;

    rdl_test_worlds(&job, take_either_way, &seed);
    job.processes = true;
    rdl_test_worlds(&job, take_either_way, &seed);
}

RDL_TEST(the_quick_way_equals_the_plans_and_meets_them)
{
    static const int sizes[] = { 2, 3, 4, 5, 8 };

    for (int i = 0; i < 5; i++)
        both(sizes[i]);
}

/* Who differs is found whichever way each took. */
static void differ(rdl_world *world, void *arg)
{
    int rank = rdl_world_rank(world);
    int64_t x = 1, y = 777;
    rdl_work work;

    (void)arg;
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    if (rank == 2) {
        CHECK_OK(rdl_all_reduce(world, RDL_WORLD, &x, &y, 1, RDL_INT64, RDL_MAX,
                                &(rdl_call){ .work = &work }));
        CHECK_STATUS(rdl_work_wait(world, work, 0), RDL_MISMATCH);
    } else {
        CHECK_STATUS(rdl_all_reduce(world, RDL_WORLD, &x, &y, 1, RDL_INT64,
                                    RDL_SUM, NULL),
                     RDL_MISMATCH);
    }
    CHECK_HAS(rdl_error_detail(), "rank 2 differs from ranks 0,1");
    CHECK_INT(y, 777);
}

RDL_TEST(a_call_that_differs_is_found_on_either_way)
{
    rdl_test_job job = { .size = 3, .keeps_failures = true };

    rdl_test_worlds(&job, differ, NULL);
    job.processes = true;
    rdl_test_worlds(&job, differ, NULL);
}
