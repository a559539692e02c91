/* The quick way of small blocking calls equals the runner's, and meets it: each rank
 * takes one or the other by chance, in every call anew. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/values.h"
#include "support/worlds.h"

#include <raddle/trace.h>
#include <raddle/work.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALLS 400
#define LINE 48    /* bytes that fit a line */
#define BYTES 4200 /* a little more than what is small */

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
    size_t most;

    most = rdl_test_random(seed) % 2 == 0 ? LINE : BYTES;
    c.count = rdl_test_random(seed) % (most / rdl_dtype_bytes(c.dtype) + 1);
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
    unsigned char *first = malloc(8 * BYTES), *second = malloc(8 * BYTES);

    for (int i = 0; i < CALLS; i++) {
        one c = draw(world, &seed);
        bool quick = rdl_test_random(&mine) % 2 == 0;

        run(world, &c, first, quick);
        run(world, &c, second, !quick);
        CHECK(memcmp(first, second, 8 * BYTES) == 0);
    }
    free(first);
    free(second);
}

static void both(int size, bool last_is_short)
{
    rdl_test_job job = { .size = size, .last_is_short = last_is_short };
    uint64_t seed = rdl_test_seed() + (uint64_t)size;

    rdl_test_worlds(&job, take_either_way, &seed);
    job.processes = true;
    rdl_test_worlds(&job, take_either_way, &seed);
}

RDL_TEST(the_quick_way_equals_the_plans_and_meets_them)
{
    static const int sizes[] = { 2, 3, 4, 5, 8 };

    for (int i = 0; i < 5; i++)
        both(sizes[i], false);
}

/* All go on another way then, those too that had room. */
RDL_TEST(a_member_without_room_for_small_calls_is_met_by_all)
{
    both(2, true);
    both(3, true);
}

/* More groups than a rank has nooks, each of which keeps one for a while. */
static void use_many_groups(rdl_world *world, void *arg)
{
    enum { GROUPS = 100, ROUNDS = 20 };
    rdl_group groups[GROUPS];
    int64_t in[64], out[64];
    int rank = rdl_world_rank(world);
    char name[16];

    (void)arg;
    for (int g = 0; g < GROUPS; g++) {
        snprintf(name, sizeof name, "g%d", g);
        CHECK_OK(rdl_group_open(world, (int[]){ 0, 1 }, 2, name, &groups[g]));
    }
    for (int i = 0; i < GROUPS * ROUNDS; i++) {
        for (int k = 0; k < 64; k++)
            in[k] = (i + k) << rank;
        CHECK_OK(rdl_all_reduce(world, groups[i % GROUPS], in, out, 64,
                                RDL_INT64, RDL_SUM, NULL));
        for (int k = 0; k < 64; k++)
            CHECK_INT(out[k], 3 * (i + k));
    }
    for (int g = 0; g < GROUPS; g++)
        CHECK_OK(rdl_group_close(world, groups[g]));
}

RDL_TEST(groups_without_number_share_the_room_for_small_calls)
{
    rdl_test_job job = { .size = 2 };

    rdl_test_worlds(&job, use_many_groups, NULL);
    job.processes = true;
    rdl_test_worlds(&job, use_many_groups, NULL);
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
