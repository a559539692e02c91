/* Rooted and uneven collectives, and transfers between two members (cases H11,
 * H17 e, H24, H25 d). Values are int64, so that every result is exact: rank r's
 * element i is 1000 * r + i. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/worlds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UNTOUCHED INT64_C(777)
#define RANKS 8

static int64_t value(int rank, size_t i)
{
    return 1000 * rank + (int64_t)i;
}

static int64_t *make(size_t count)
{
    int64_t *buffer = malloc((count + 1) * sizeof *buffer);

    CHECK(buffer != NULL);
    for (size_t i = 0; i <= count; i++)
        buffer[i] = UNTOUCHED;
    return buffer;
}

static int64_t *make_input(int rank, size_t count)
{
    int64_t *buffer = make(count);

    for (size_t i = 0; i < count; i++)
        buffer[i] = value(rank, i);
    return buffer;
}

/* The element after the end is as it was. */
static void done(int64_t *buffer, size_t count)
{
    CHECK_INT(buffer[count], UNTOUCHED);
    free(buffer);
}

static int64_t sum_of(int size, size_t i)
{
    return 1000 * size * (size - 1) / 2 + size * (int64_t)i;
}

/* --- rooted ---------------------------------------------------------------- */

static void test_reduce(rdl_world *world, size_t count, int root)
{
    int rank = rdl_world_rank(world), size = rdl_world_size(world);
    int64_t *in = make_input(rank, count), *out = make(count);

    CHECK_OK(rdl_reduce(world, RDL_WORLD, in, rank == root ? out : NULL, count,
                        RDL_INT64, RDL_SUM, root, NULL));
    for (size_t i = 0; i < count; i++) {
        CHECK_INT(out[i], rank == root ? sum_of(size, i) : UNTOUCHED);
        CHECK_INT(in[i], value(rank, i));
    }
    CHECK_OK(rdl_reduce(world, RDL_WORLD, in, in, count, RDL_INT64, RDL_MAX,
                        root, NULL));
    for (size_t i = 0; i < count; i++)
        CHECK_INT(in[i], value(rank == root ? size - 1 : rank, i));
    done(in, count);
    done(out, count);
}

static void test_gather(rdl_world *world, size_t count, int root)
{
    int rank = rdl_world_rank(world), size = rdl_world_size(world);
    size_t all = count * (size_t)size;
    int64_t *in = make_input(rank, count), *out = make(all);

    CHECK_OK(rdl_gather(world, RDL_WORLD, in, out, count, RDL_INT64, root, NULL));
    for (size_t i = 0; i < all; i++)
        CHECK_INT(out[i], rank == root ? value((int)(i / count), i % count)
                                       : UNTOUCHED);
    done(in, count);
    done(out, all);
}

static void test_scatter(rdl_world *world, size_t count, int root)
{
    int rank = rdl_world_rank(world), size = rdl_world_size(world);
    size_t all = count * (size_t)size;
    int64_t *in = make_input(rank, all), *out = make(count);
    bool is_root = rank == root;

    CHECK_OK(rdl_scatter(world, RDL_WORLD, is_root ? in : NULL, out, count,
                         RDL_INT64, root, NULL));
    for (size_t i = 0; i < count; i++)
        CHECK_INT(out[i], value(root, (size_t)rank * count + i));
    CHECK_OK(rdl_scatter(world, RDL_WORLD, in,
                         is_root ? in + (size_t)rank * count : out, count,
                         RDL_INT64, root, NULL));
    for (size_t i = 0; i < count; i++)
        CHECK_INT(is_root ? in[(size_t)rank * count + i] : out[i],
                  value(root, (size_t)rank * count + i));
    done(in, all);
    done(out, count);
}

/* --- uneven ---------------------------------------------------------------- */

/* A count for what i gives j, some of them 0. */
static size_t pick(int i, int j, size_t scale)
{
    return (size_t)((i * 3 + j * 5 + i * j) % 4) * scale;
}

static void test_all_gather_v(rdl_world *world, size_t scale)
{
    int rank = rdl_world_rank(world), size = rdl_world_size(world);
    size_t counts[RANKS], all = 0, at = 0;
    int64_t *in, *out;

    for (int r = 0; r < size; r++)
        all += counts[r] = pick(r, 1, scale);
    in = make_input(rank, counts[rank]);
    out = make(all);
    CHECK_OK(
        rdl_all_gather_v(world, RDL_WORLD, in, out, counts, RDL_INT64, NULL));
    for (int r = 0; r < size; r++)
        for (size_t i = 0; i < counts[r]; i++)
            CHECK_INT(out[at++], value(r, i));
    done(in, counts[rank]);
    done(out, all);
}

static void test_reduce_scatter_v(rdl_world *world, size_t scale)
{
    int rank = rdl_world_rank(world), size = rdl_world_size(world);
    size_t counts[RANKS], all = 0, before = 0;
    int64_t *in, *out;

    for (int r = 0; r < size; r++) {
        counts[r] = pick(r, 2, scale);
        before += r < rank ? counts[r] : 0;
        all += counts[r];
    }
    in = make_input(rank, all);
    out = make(counts[rank]);
    CHECK_OK(rdl_reduce_scatter_v(world, RDL_WORLD, in, out, counts, RDL_INT64,
                                  RDL_SUM, NULL));
    for (size_t i = 0; i < counts[rank]; i++)
        CHECK_INT(out[i], sum_of(size, before + i));
    CHECK_OK(rdl_reduce_scatter_v(world, RDL_WORLD, in, in + before, counts,
                                  RDL_INT64, RDL_SUM, NULL)); /* in place */
    for (size_t i = 0; i < counts[rank]; i++)
        CHECK_INT(in[before + i], sum_of(size, before + i));
    done(in, all);
    done(out, counts[rank]);
}

static void test_all_to_all_v(rdl_world *world, size_t scale)
{
    int rank = rdl_world_rank(world), size = rdl_world_size(world);
    size_t in_counts[RANKS], out_counts[RANKS], in_all = 0, out_all = 0, at = 0;
    int64_t *in, *out;

    for (int r = 0; r < size; r++) {
        in_all += in_counts[r] = pick(rank, r, scale);
        out_all += out_counts[r] = pick(r, rank, scale);
    }
    in = make_input(rank, in_all);
    out = make(out_all);
    CHECK_OK(rdl_all_to_all_v(world, RDL_WORLD, in, in_counts, out, out_counts,
                              RDL_INT64, NULL));
    for (int r = 0; r < size; r++) {
        size_t before = 0;

        for (int j = 0; j < rank; j++)
            before += pick(r, j, scale);
        for (size_t i = 0; i < out_counts[r]; i++)
            CHECK_INT(out[at++], value(r, before + i));
    }
    done(in, in_all);
    done(out, out_all);
}

/* --- transfers ------------------------------------------------------------- */

static void test_ring(rdl_world *world, size_t count)
{
    int rank = rdl_world_rank(world), size = rdl_world_size(world);
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    int64_t *in = make_input(rank, count), *out = make(count);
    int64_t *second = make(count);
    rdl_transfer batch[] = {
        { .peer = left, .receive = out, .count = count, .dtype = RDL_INT64 },
        { .peer = right, .send = in, .count = count, .dtype = RDL_INT64 },
        { .peer = right, .send = in, .count = count, .dtype = RDL_INT64 },
        { .peer = left, .receive = second, .count = count, .dtype = RDL_INT64 },
    };

    for (int round = 0; round < 3; round++) {
        CHECK_OK(rdl_exchange(world, RDL_WORLD, batch, 4, NULL));
        for (size_t i = 0; i < count; i++) {
            CHECK_INT(out[i], value(left, i));
            CHECK_INT(second[i], value(left, i));
        }
    }
    done(in, count);
    done(out, count);
    done(second, count);
}

static void test_pair(rdl_world *world, size_t count)
{
    int rank = rdl_world_rank(world);
    int64_t *in = make_input(rank, count), *out = make(count);

    if (rank == 0) {
        CHECK_OK(rdl_send(world, RDL_WORLD, in, count, RDL_INT64, 1, NULL));
        CHECK_OK(rdl_receive(world, RDL_WORLD, out, count, RDL_INT64, 1, NULL));
    } else if (rank == 1) {
        CHECK_OK(rdl_receive(world, RDL_WORLD, out, count, RDL_INT64, 0, NULL));
        CHECK_OK(rdl_send(world, RDL_WORLD, in, count, RDL_INT64, 0, NULL));
    }
    for (size_t i = 0; i < count && rank < 2; i++)
        CHECK_INT(out[i], value(1 - rank, i));
    done(in, count);
    done(out, count);
}

/* --- all of them ----------------------------------------------------------- */

static void test_all(rdl_world *world, void *arg)
{
    int size = rdl_world_size(world);
    size_t n = (size_t)size, wraps = *(size_t *)arg;
    size_t counts[] = { 0, 1, n - 1, n, n + 1, wraps };

    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        for (int root = 0; root < size; root++) {
            test_reduce(world, counts[c], root);
            test_gather(world, counts[c], root);
            test_scatter(world, counts[c], root);
        }
        test_all_gather_v(world, counts[c]);
        test_reduce_scatter_v(world, counts[c]);
        test_all_to_all_v(world, counts[c]);
        test_ring(world, counts[c]);
        if (size > 1)
            test_pair(world, counts[c]);
        CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    }
}

static void test_sizes(rdl_test_job job, size_t wraps)
{
    static const int sizes[] = { 1, 2, 3, 4, 5, 8 };

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        job.size = sizes[i];
        rdl_test_worlds(&job, test_all, &wraps);
    }
}

RDL_TEST(rooted_uneven_and_paired_calls_equal_the_reference_as_threads)
{
    test_sizes((rdl_test_job){ .staging_bytes = 32768 }, 5000);
}

RDL_TEST(rooted_uneven_and_paired_calls_equal_the_reference_as_processes)
{
    test_sizes((rdl_test_job){ .staging_bytes = 32768, .processes = true },
               5000);
}

RDL_TEST(rooted_uneven_and_paired_calls_work_with_the_least_staging)
{
    test_sizes((rdl_test_job){ .staging_bytes = RDL_STAGING_LEAST }, 700);
}

/* --- the handed cases ------------------------------------------------------ */

/* H17 e */
static void gather_to_world_rank_3(rdl_world *world, void *arg)
{
    static const int list[] = { 1, 3 };
    int rank = rdl_world_rank(world), root;
    int64_t mine = rdl_digit(rank), all[2] = { UNTOUCHED, UNTOUCHED };
    rdl_group group;

    (void)arg;
    CHECK_OK(rdl_group_open(world, list, 2, NULL, &group));
    CHECK_OK(rdl_group_rank_of(world, group, 3, &root));
    if (rank == 1 || rank == 3)
        CHECK_OK(rdl_gather(world, group, &mine, all, 1, RDL_INT64, root, NULL));
    CHECK_INT(all[0], rank == 3 ? 10 : UNTOUCHED);
    CHECK_INT(all[1], rank == 3 ? 1000 : UNTOUCHED);
    CHECK_OK(rdl_group_close(world, group));
}

RDL_TEST(a_gather_to_a_world_rank_reaches_it_alone)
{
    rdl_test_worlds(&(rdl_test_job){ .size = 4 }, gather_to_world_rank_3, NULL);
}

/* H24 a */
static void exchange_with_empty_parts(rdl_world *world, void *arg)
{
    int rank = rdl_world_rank(world);
    int64_t in[] = { 11, 12 }, out[2] = { UNTOUCHED, UNTOUCHED };
    size_t in_counts[2][2] = { { 1, 1 }, { 0, 0 } };
    size_t out_counts[] = { 1, 0 };

    (void)arg;
    CHECK_OK(rdl_all_to_all_v(world, RDL_WORLD, rank ? NULL : in,
                              in_counts[rank], out, out_counts, RDL_INT64, NULL));
    CHECK_INT(out[0], rank ? 12 : 11);
    CHECK_INT(out[1], UNTOUCHED);
    rdl_check_digits(world, RDL_WORLD, 11);
}

RDL_TEST(all_to_all_v_with_empty_parts_does_not_hang)
{
    rdl_test_worlds(&(rdl_test_job){ .size = 2 }, exchange_with_empty_parts,
                    NULL);
}

/* H24 c, d */
static void gather_and_scatter_with_empty_parts(rdl_world *world, void *arg)
{
    int rank = rdl_world_rank(world);
    size_t counts[] = { 0, 3, 1, 0 }, parts[] = { 2, 0, 1, 0 };
    int64_t three[] = { 1, 2, 3 }, nine = 9, all[5];
    int64_t in[] = { 10, 20, 30 }, out[3] = { UNTOUCHED, UNTOUCHED, UNTOUCHED };

    (void)arg;
    all[4] = UNTOUCHED;
    CHECK_OK(rdl_all_gather_v(world, RDL_WORLD,
                              rank == 1   ? three
                              : rank == 2 ? &nine
                                          : NULL,
                              all, counts, RDL_INT64, NULL));
    CHECK(all[0] == 1 && all[1] == 2 && all[2] == 3 && all[3] == 9);
    CHECK_INT(all[4], UNTOUCHED);
    CHECK_OK(rdl_reduce_scatter_v(world, RDL_WORLD, in, rank % 2 ? NULL : out,
                                  parts, RDL_INT64, RDL_SUM, NULL));
    CHECK_INT(out[0], rank == 0 ? 40 : rank == 2 ? 120 : UNTOUCHED);
    CHECK_INT(out[1], rank == 0 ? 80 : UNTOUCHED);
    CHECK_INT(out[2], UNTOUCHED);
}

RDL_TEST(uneven_calls_take_empty_parts_and_null)
{
    rdl_test_worlds(&(rdl_test_job){ .size = 4 },
                    gather_and_scatter_with_empty_parts, NULL);
}

/* H25 d */
static void reduce_leaves_inputs(rdl_world *world, void *arg)
{
    int64_t a[] = { 1, 2, 3, 4 }, b[] = { 4, 5, 6, 7 }, out[4] = { 0 };
    int rank = rdl_world_rank(world);

    (void)arg;
    CHECK_OK(rdl_reduce(world, RDL_WORLD, rank ? b : a, rank ? b : out, 4,
                        RDL_INT64, RDL_SUM, 0, NULL));
    for (int i = 0; i < 4; i++) {
        CHECK_INT(b[i], 4 + i);
        CHECK_INT(out[i], rank ? 0 : 5 + 2 * i);
    }
}

RDL_TEST(reduce_leaves_the_buffers_of_other_ranks_alone)
{
    rdl_test_worlds(&(rdl_test_job){ .size = 2 }, reduce_leaves_inputs, NULL);
}

/* H11, the first three: each on a way of its own, as each ends it. */
static void transfer_wrong_sizes(rdl_world *world, void *arg)
{
    static const size_t expected[] = { 4, 5, 2 };
    static const int list[] = { 0, 1 };
    int rank = rdl_world_rank(world);

    (void)arg;
    for (int i = 0; i < 3; i++) {
        float three[] = { 1, 2, 3 }, room[6];
        char name[16], verdict[200];
        rdl_group group;
        rdl_status st;

        for (int k = 0; k < 6; k++)
            room[k] = 777;
        snprintf(name, sizeof name, "way %d", i);
        CHECK_OK(rdl_group_open(world, list, 2, name, &group));
        st = rank == 0 ? rdl_send(world, group, three, 3, RDL_FLOAT32, 1, NULL)
                       : rdl_receive(world, group, room, expected[i],
                                     RDL_FLOAT32, 0, NULL);
        CHECK_STATUS(st, RDL_MISMATCH);
        snprintf(
            verdict, sizeof verdict,
            "mismatch in call #1 on the way from rank 0 to rank 1 in group "
            "'way %d' [0,1]: rank 0: send(3 float32); rank 1: "
            "receive(%zu float32)",
            i, expected[i]);
        CHECK_TEXT(rdl_test_detail(), verdict);
        for (int k = 0; k < 6; k++)
            CHECK(room[k] == 777);
        rdl_check_digits(world, group, 11); /* only that way is ended */
        CHECK_OK(rdl_group_close(world, group));
    }
}

RDL_TEST(transfers_of_different_sizes_are_an_error_on_both_sides)
{
    rdl_test_job job = { .size = 2 };

    rdl_test_worlds(&job, transfer_wrong_sizes, NULL);
    job.processes = true;
    rdl_test_worlds(&job, transfer_wrong_sizes, NULL);
}

/* H11 d */
static void half_a_batch(rdl_world *world, void *arg)
{
    int rank = rdl_world_rank(world);
    int64_t mine = rdl_digit(rank), other = UNTOUCHED;
    rdl_transfer batch[] = {
        { .peer = 1 - rank, .receive = &other, .count = 1, .dtype = RDL_INT64 },
        { .peer = 1 - rank, .send = &mine, .count = 1, .dtype = RDL_INT64 },
    };
    rdl_call limit = { .timeout_ms = 1000 };
    rdl_status st =
        rdl_exchange(world, RDL_WORLD, batch, rank == 0 ? 2 : 1, &limit);

    (void)arg;
    CHECK_STATUS(st, rank == 0 ? RDL_TIMEOUT : RDL_OK);
    CHECK_INT(other, rank == 0 ? UNTOUCHED : 1);
    if (rank == 0) {
        CHECK_HAS(rdl_test_detail(), "waiting for rank 1");
        CHECK_HAS(rdl_test_detail(), "from rank 1 to rank 0");
    } else {
        usleep(1500000); /* to be there, and silent, until rank 0 gives up */
    }
}

RDL_TEST(the_half_of_a_batch_that_meets_is_done_and_the_other_named)
{
    rdl_test_job job = { .size = 2, .keeps_failures = true };

    rdl_test_worlds(&job, half_a_batch, NULL);
}

static void differ(rdl_world *world, void *arg)
{
    static const int list[] = { 0, 1, 2 };
    int rank = rdl_world_rank(world);
    size_t ones[] = { 1, 1, 1 }, more[] = { 1, 2, 1 };
    int64_t in[4] = { 1, 2, 3, 4 }, out[4] = { 7, 7, 7, 7 };
    rdl_group group;

    (void)arg;
    CHECK_OK(rdl_group_open(world, list, 3, "table", &group));
    CHECK_STATUS(rdl_all_to_all_v(world, group, in, rank == 2 ? more : ones,
                                  out, ones, RDL_INT64, NULL),
                 RDL_MISMATCH);
    CHECK_HAS(rdl_test_detail(),
              "all_to_all_v: rank 2 sends 2 elements to rank 1, which expects "
              "1; rank 2: all_to_all_v(int64, sends [1,2,1], expects [1,1,1]); "
              "rank 1: all_to_all_v(int64, sends [1,1,1], expects [1,1,1])");
    CHECK_INT(out[0], 7);
    CHECK_OK(rdl_group_close(world, group));
    CHECK_OK(rdl_group_open(world, list, 3, "list", &group));
    CHECK_STATUS(rdl_all_gather_v(world, group, in, out,
                                  rank == 0 ? more : ones, RDL_INT64, NULL),
                 RDL_MISMATCH);
    CHECK_HAS(rdl_test_detail(),
              "rank 0 differs from ranks 1,2; rank 0: all_gather_v(4 int64 in "
              "all, counts [1,2,1]); ranks 1,2: all_gather_v(3 int64 in all, "
              "counts [1,1,1])");
    CHECK_INT(out[0], 7);
    CHECK_OK(rdl_group_close(world, group));
}

RDL_TEST(counts_that_differ_between_ranks_are_a_mismatch_for_all)
{
    rdl_test_worlds(&(rdl_test_job){ .size = 3 }, differ, NULL);
}

static void transfer_badly(rdl_world *world, void *arg)
{
    int64_t x = 1, y = 2;
    int rank = rdl_world_rank(world);
    rdl_transfer both = {
        .peer = 1 - rank, .send = &x, .receive = &y, .count = 1
    };
    rdl_transfer own[] = {
        { .peer = rank, .send = &x, .count = 1, .dtype = RDL_INT64 },
        { .peer = rank, .receive = &y, .count = 1, .dtype = RDL_INT64 },
    };
    size_t counts[] = { (size_t)1 << 63, 2 };
    rdl_call factor = { .factor = 2 };

    (void)arg;
    CHECK_STATUS(rdl_send(world, RDL_WORLD, &x, 1, RDL_INT64, 2, NULL),
                 RDL_INVALID);
    CHECK_HAS(rdl_test_detail(),
              "send: peer 2 is outside the group ranks 0..1");
    CHECK_STATUS(rdl_receive(world, RDL_WORLD, &x, 1, (rdl_dtype)99, 1, NULL),
                 RDL_INVALID);
    CHECK_HAS(rdl_test_detail(), "receive: 99 is no dtype");
    CHECK_STATUS(rdl_send(world, RDL_WORLD, &x, SIZE_MAX / 8, RDL_INT64, 1, NULL),
                 RDL_INVALID);
    CHECK_HAS(rdl_test_detail(), "send: 2305843009213693951 elements of 8 "
                                 "bytes: the size overflows");
    CHECK_STATUS(rdl_send(world, RDL_WORLD, &x, 1, RDL_INT64, 1 - rank, &factor),
                 RDL_INVALID);
    CHECK_HAS(rdl_test_detail(), "send: a factor of 2, which only premul_sum");
    CHECK_STATUS(rdl_send(world, RDL_WORLD, &x, 1, RDL_INT64, rank, NULL),
                 RDL_INVALID);
    CHECK_STATUS(rdl_send(world, RDL_WORLD, NULL, 1, RDL_INT64, 1 - rank, NULL),
                 RDL_INVALID);
    CHECK_STATUS(rdl_exchange(world, RDL_WORLD, &both, 1, NULL), RDL_INVALID);
    CHECK_STATUS(
        rdl_all_gather_v(world, RDL_WORLD, &x, &y, counts, RDL_UINT8, NULL),
        RDL_INVALID);
    CHECK_HAS(rdl_test_detail(), "all_gather_v: 9223372036854775808 elements "
                                 "of 1 bytes, block 0: the size overflows");
    CHECK_STATUS(rdl_all_reduce(world, RDL_WORLD, &x, &y, (size_t)1 << 62,
                                RDL_INT64, RDL_SUM, NULL),
                 RDL_INVALID);
    CHECK_HAS(rdl_test_detail(), "all_reduce: 4611686018427387904 elements of "
                                 "8 bytes: the size overflows");
    CHECK_STATUS(
        rdl_all_gather_v(world, RDL_WORLD, &x, &y, NULL, RDL_UINT8, NULL),
        RDL_INVALID);
    CHECK_OK(rdl_exchange(world, RDL_WORLD, own, 2, NULL));
    CHECK_INT(y, 1);
    rdl_check_digits(world, RDL_WORLD, 11);
}

RDL_TEST(wrong_transfers_are_refused_and_one_may_send_to_oneself)
{
    rdl_test_worlds(&(rdl_test_job){ .size = 2 }, transfer_badly, NULL);
}
