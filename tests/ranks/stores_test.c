/* How results are computed and stored on each rank, which nobody may see. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/topology.h"
#include "comm/world.h"
#include "support/worlds.h"

#include <stdlib.h>
#include <string.h>

#define COUNT                                                                  \
    50003 /* of each block: several windows, no whole lines at the end */

typedef struct results {
    float reduced[COUNT];
    float scattered[COUNT];
    float gathered[4 * COUNT];
    float broadcast[COUNT];
    uint16_t half[COUNT];
} results;

/* Numbers whose sums are rounded, and differ by their order. */
static void fill(float *x, size_t count, int rank)
{
    uint64_t state = (uint64_t)rank + 1;

    for (size_t i = 0; i < count; i++)
        x[i] = (float)(int64_t)(rdl_test_random(&state) >> 20) * 1e-9f;
}

static void run_all(rdl_world *world, const float *in, results *out)
{
    memset(out, 0, sizeof *out);
    memcpy(out->broadcast, in, sizeof out->broadcast);
    CHECK_OK(rdl_all_reduce(world, RDL_WORLD, in, out->reduced, COUNT,
                            RDL_FLOAT32, RDL_SUM, NULL));
    CHECK_OK(rdl_reduce_scatter(world, RDL_WORLD, in, out->scattered, COUNT,
                                RDL_FLOAT32, RDL_AVG, NULL));
    CHECK_OK(rdl_all_gather(world, RDL_WORLD, in, out->gathered, COUNT,
                            RDL_FLOAT32, NULL));
    CHECK_OK(rdl_broadcast(world, RDL_WORLD, out->broadcast, COUNT, RDL_FLOAT32,
                           1, NULL));
    CHECK_OK(rdl_all_reduce(world, RDL_WORLD, in, out->half, COUNT,
                            RDL_BFLOAT16, RDL_SUM, NULL));
}

/* NaNs and zeros as well: by their bits. */
static void check_bits(const void *x, const void *y, size_t bytes)
{
    CHECK(memcmp(x, y, bytes) == 0);
}

static void check_same(rdl_world *world, void (*change)(rdl_world *world))
{
    size_t all = (size_t)rdl_world_size(world) * COUNT;
    float *in = malloc(all * sizeof *in);
    results *before = malloc(sizeof *before);
    results *after = malloc(sizeof *after);

    CHECK(in != NULL && before != NULL && after != NULL);
    fill(in, all, rdl_world_rank(world));
    run_all(world, in, before);
    change(world);
    run_all(world, in, after);
    check_bits(before, after, sizeof *before);
    free(in);
    free(before);
    free(after);
}

static void run_ranks(rdl_world_body body)
{
    for (int processes = 0; processes < 2; processes++)
        for (int size = 2; size <= 4; size++) {
            rdl_test_job job = { .size = size, .processes = processes != 0 };

            rdl_test_worlds(&job, body, NULL);
        }
}

static void stream_all(rdl_world *world)
{
    CHECK(world->streams_from > rdl_topology_l2_bytes() / 4);
    world->streams_from = 1;
}

static void check_streaming(rdl_world *world, void *arg)
{
    (void)arg;
    check_same(world, stream_all);
}

RDL_TEST(results_stored_past_the_caches_are_the_same)
{
    run_ranks(check_streaming);
}

static void narrow_vectors(rdl_world *world)
{
    CHECK_INT(world->isa, rdl_isa_best());
    if (rdl_world_rank(world) != 1)
        world->isa = RDL_ISA_BASE;
}

static void check_vectors(rdl_world *world, void *arg)
{
    (void)arg;
    check_same(world, narrow_vectors);
}

RDL_TEST(ranks_with_different_vectors_get_the_same_bits)
{
    run_ranks(check_vectors);
}
