/* Context parallelism: who has which token, and that gather and scatter are each
 * other's adjoint (case H31 a). */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/fault.h"
#include "support/worlds.h"

#include <raddle/account.h>
#include <raddle/context.h>
#include <raddle/mesh.h>
#include <stdlib.h>
#include <string.h>

static void both(int size, rdl_world_body body, void *arg)
{
    rdl_test_job job = { .size = size };

    rdl_test_worlds(&job, body, arg);
    job.processes = true;
    rdl_test_worlds(&job, body, arg);
}

/* --- indices --------------------------------------------------------------- */

RDL_TEST(thirty_two_tokens_on_four_ranks_are_cut_head_and_tail)
{
    static const size_t first[4][2] = {
        { 0, 28 }, { 4, 24 }, { 8, 20 }, { 12, 16 }
    };
    size_t indices[8];

    for (int rank = 0; rank < 4; rank++) {
        CHECK_OK(rdl_context_indices(rank, 4, 32, indices));
        for (size_t i = 0; i < 8; i++)
            CHECK_INT(indices[i], first[rank][i / 4] + i % 4);
    }
}

RDL_TEST(every_token_has_one_rank_and_causal_work_is_equal)
{
    for (int size = 1; size <= 9; size++) {
        size_t length = 6 * (size_t)size, work = 0;
        int owners[54] = { 0 };

        for (int rank = 0; rank < size; rank++) {
            size_t indices[54], sum = 0;

            CHECK_OK(rdl_context_indices(rank, size, length, indices));
            for (size_t i = 0; i < length / (size_t)size; i++) {
                CHECK(i == 0 || indices[i] > indices[i - 1]);
                CHECK(indices[i] < length);
                owners[indices[i]]++;
                sum += indices[i] + 1; /* the keys that this query sees */
            }
            CHECK(rank == 0 || sum == work);
            work = sum;
        }
        for (size_t i = 0; i < length; i++)
            CHECK_INT(owners[i], 1);
    }
}

/* H31 a: no token is lost in silence. Padded to 8 it is as the case says. */
RDL_TEST(seven_tokens_on_two_ranks_are_refused_and_eight_are_not)
{
    static const size_t expected[2][4] = { { 0, 1, 6, 7 }, { 2, 3, 4, 5 } };
    size_t indices[8];

    CHECK_STATUS(rdl_context_indices(0, 2, 7, indices), RDL_INVALID);
    CHECK_HAS(rdl_error_detail(),
              "a sequence of 7 tokens does not divide into 2 "
              "chunks for each of 2 ranks: 8 would");
    CHECK_STATUS(rdl_context_indices(0, 2, 6, indices), RDL_INVALID);
    for (int rank = 0; rank < 2; rank++) {
        CHECK_OK(rdl_context_indices(rank, 2, 8, indices));
        CHECK(memcmp(indices, expected[rank], sizeof expected[rank]) == 0);
    }
    CHECK_OK(rdl_context_indices(0, 1, 7, indices)); /* alone, nothing is cut */
    for (size_t i = 0; i < 7; i++)
        CHECK_INT(indices[i], i);
}

RDL_TEST(a_rank_that_is_none_is_refused)
{
    size_t indices[8];

    CHECK_STATUS(rdl_context_indices(-1, 2, 8, indices), RDL_INVALID);
    CHECK_STATUS(rdl_context_indices(2, 2, 8, indices), RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "rank 2 is outside 0..1");
    CHECK_STATUS(rdl_context_indices(0, 0, 8, indices), RDL_INVALID);
    CHECK_STATUS(rdl_context_indices(0, 2, 8, NULL), RDL_INVALID);
    CHECK_OK(rdl_context_indices(0, 2, 0, NULL));
}

/* --- moving ---------------------------------------------------------------- */

typedef struct shape {
    size_t chunk; /* tokens */
    size_t columns;
} shape;

static float *floats(size_t count)
{
    float *memory = malloc((count + 1) * sizeof *memory);

    CHECK(memory != NULL);
    for (size_t i = 0; i < count; i++)
        memory[i] = -77;
    return memory;
}

/* What this column of this token holds; small, so that sums are exact. */
static float value(size_t token, size_t column, size_t columns)
{
    return (float)((token * columns + column) % 4093);
}

/* The gradient that rank has of it. */
static float gradient(int rank, size_t i)
{
    return (float)((i * 5 + (size_t)rank * 3) % 11) - 5;
}

static void gather(rdl_world *world, const shape *s, size_t length)
{
    int size = rdl_world_size(world);
    size_t part = length / (size_t)size, columns = s->columns;
    size_t *indices = malloc((part + 1) * sizeof *indices);
    float *local = floats(part * columns), *whole = floats(length * columns);

    CHECK(indices != NULL);
    CHECK_OK(rdl_context_indices(rdl_world_rank(world), size, length, indices));
    for (size_t i = 0; i < part; i++)
        for (size_t c = 0; c < columns; c++)
            local[i * columns + c] = value(indices[i], c, columns);
    CHECK_OK(rdl_context_gather(world, RDL_WORLD, local, whole, length, columns));
    for (size_t t = 0; t < length; t++)
        for (size_t c = 0; c < columns; c++)
            CHECK(whole[t * columns + c] == value(t, c, columns));
    free(indices);
    free(local);
    free(whole);
}

static void scatter(rdl_world *world, const shape *s, size_t length)
{
    int size = rdl_world_size(world), rank = rdl_world_rank(world);
    size_t part = length / (size_t)size, columns = s->columns;
    size_t *indices = malloc((part + 1) * sizeof *indices);
    float *local = floats(part * columns), *whole = floats(length * columns);

    CHECK(indices != NULL);
    CHECK_OK(rdl_context_indices(rank, size, length, indices));
    for (size_t i = 0; i < length * columns; i++)
        whole[i] = gradient(rank, i);
    CHECK_OK(
        rdl_context_scatter(world, RDL_WORLD, whole, local, length, columns));
    for (size_t i = 0; i < part * columns; i++) {
        size_t at = indices[i / columns] * columns + i % columns;
        float sum = 0;

        for (int r = 0; r < size; r++)
            sum += gradient(r, at);
        CHECK(local[i] == sum);
    }
    for (size_t i = 0; i < length * columns; i++)
        CHECK(whole[i] == gradient(rank, i));
    free(indices);
    free(local);
    free(whole);
}

static double dot(const float *a, const float *b, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += (double)a[i] * b[i];
    return sum;
}

static double add_up(rdl_world *world, double mine)
{
    double sum = 0;

    CHECK_OK(rdl_all_reduce(world, RDL_WORLD, &mine, &sum, 1, RDL_FLOAT64,
                            RDL_SUM, NULL));
    return sum;
}

/* <gather x, g> = <x, scatter g>, both summed over ranks. */
static void check_adjoint(rdl_world *world, const shape *s, size_t length)
{
    int rank = rdl_world_rank(world);
    size_t all = length * s->columns;
    size_t part = all / (size_t)rdl_world_size(world);
    float *x = floats(part), *gathered = floats(all);
    float *g = floats(all), *scattered = floats(part);
    double left, right;

    for (size_t i = 0; i < part; i++)
        x[i] = gradient(rank + 7, i * 3);
    for (size_t i = 0; i < all; i++)
        g[i] = gradient(rank, i);
    CHECK_OK(
        rdl_context_gather(world, RDL_WORLD, x, gathered, length, s->columns));
    CHECK_OK(rdl_context_scatter(world, RDL_WORLD, g, scattered, length,
                                 s->columns));
    left = add_up(world, dot(gathered, g, all));
    right = add_up(world, dot(x, scattered, part));
    CHECK(left == right);
    free(x);
    free(gathered);
    free(g);
    free(scattered);
}

static void move(rdl_world *world, void *arg)
{
    int size = rdl_world_size(world);
    const shape *s = arg;
    size_t length = s->chunk * (size == 1 ? 1 : 2 * (size_t)size);

    gather(world, s, length);
    scatter(world, s, length);
    check_adjoint(world, s, length);
}

/* The last two have chunks of more floats than are moved at a time. */
RDL_TEST(gather_and_scatter_are_exact_and_adjoint)
{
    static const int sizes[] = { 1, 2, 3, 4, 5, 8 };
    static const shape shapes[] = { { 0, 3 }, { 1, 1 },    { 1, 3 },
                                    { 3, 5 }, { 1025, 1 }, { 33, 100 } };

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
            shape s = shapes[k];

            both(sizes[i], move, &s);
        }
}

/* A CP axis that covers the world uses the world's communicator and no other. */
static void use_mesh(rdl_world *world, void *arg)
{
    static const char *const names[] = { "dp", "cp" };
    float local[2] = { (float)rdl_world_rank(world), -1 }, whole[8];
    rdl_account before, after;
    rdl_mesh *mesh;
    rdl_group cp;

    (void)arg;
    CHECK_OK(rdl_mesh_create(world, names, (int[]){ 1, 4 }, 2, &mesh));
    CHECK_OK(rdl_mesh_group(mesh, "cp", &cp));
    CHECK_OK(rdl_account_read(world, &before));
    CHECK_OK(rdl_context_gather(world, cp, local, whole, 8, 1));
    for (int i = 0; i < 8; i++)
        CHECK(whole[i] == (i < 4 ? (float)i : -1));
    CHECK_OK(rdl_context_scatter(world, cp, whole, local, 8, 1));
    CHECK(local[0] == 4 * (float)rdl_world_rank(world) && local[1] == -4);
    CHECK_OK(rdl_account_read(world, &after));
    CHECK_INT(after.communicators, 1);
    CHECK_INT(after.collectives - before.collectives, 2);
    rdl_mesh_destroy(mesh);
}

RDL_TEST(a_context_axis_over_the_world_needs_no_communicator_of_its_own)
{
    both(4, use_mesh, NULL);
}

/* --- what goes wrong ------------------------------------------------------- */

static void refuse(rdl_world *world, void *arg)
{
    float local[8] = { 1 }, whole[16] = { 2 };
    rdl_group stale = { 3, 3, 3 };

    (void)arg;
    CHECK_STATUS(rdl_context_gather(world, RDL_WORLD, local, whole, 7, 1),
                 RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "7 tokens does not divide into 2 chunks for "
                                  "each of 2 ranks");
    CHECK_STATUS(rdl_context_scatter(world, RDL_WORLD, whole, local, 6, 1),
                 RDL_INVALID);
    CHECK_STATUS(
        rdl_context_gather(world, RDL_WORLD, local, whole, SIZE_MAX / 4 * 4, 2),
        RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "overflows");
    CHECK_STATUS(rdl_context_gather(world, RDL_WORLD, NULL, whole, 8, 1),
                 RDL_INVALID);
    CHECK_STATUS(rdl_context_gather(world, RDL_WORLD, local, NULL, 8, 1),
                 RDL_INVALID);
    CHECK_STATUS(rdl_context_scatter(world, RDL_WORLD, NULL, local, 8, 1),
                 RDL_INVALID);
    CHECK_STATUS(rdl_context_scatter(world, RDL_WORLD, whole, NULL, 8, 1),
                 RDL_INVALID);
    CHECK_STATUS(rdl_context_gather(world, stale, local, whole, 8, 1),
                 RDL_INVALID);
    CHECK_STATUS(rdl_context_scatter(world, stale, whole, local, 8, 1),
                 RDL_INVALID);
    CHECK_STATUS(rdl_context_gather(NULL, RDL_WORLD, local, whole, 8, 1),
                 RDL_INVALID);
    CHECK(local[0] == 1 && whole[0] == 2);
    rdl_check_digits(world, RDL_WORLD, 11);
}

RDL_TEST(bad_arguments_change_nothing)
{
    both(2, refuse, NULL);
}

#ifdef RDL_FAULTS
static void lack_memory(rdl_world *world, void *arg)
{
    float local[4] = { 1, 1, 1, 1 }, whole[8] = { 1 };
    rdl_fault plan = { .memory_at = 1 };

    (void)arg;
    rdl_check_digits(world, RDL_WORLD, 11);
    rdl_fault_use(&plan);
    CHECK_OK(rdl_context_gather(world, RDL_WORLD, local, whole, 8, 1));
    CHECK_INT(plan.memory, 0);
    CHECK_STATUS(rdl_context_scatter(world, RDL_WORLD, whole, local, 8, 1),
                 RDL_NO_MEMORY);
    CHECK_HAS(rdl_error_detail(), "32 bytes");
    CHECK_OK(rdl_context_scatter(world, RDL_WORLD, whole, local, 8, 1));
    rdl_fault_use(NULL);
    CHECK(local[0] == 2);
}

RDL_TEST(gathering_takes_no_memory_and_scattering_may_be_tried_again)
{
    both(2, lack_memory, NULL);
}
#endif
