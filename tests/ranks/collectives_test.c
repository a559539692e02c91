/* Every collective, dtype and reduction at every awkward count and number of
 * ranks, as threads and as processes, against a reference that adds plain arrays
 * in the order of ranks. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/worlds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANKS_MOST 64

typedef struct plan {
    size_t wraps; /* a count that goes round every buffer several times */
    bool in_place;
    size_t offset; /* bytes by which buffers are off their alignment */
} plan;

/* --- values ---------------------------------------------------------------- */

static double value(int rank, size_t i)
{
    return (double)((i * 7 + (size_t)rank * 13) % 101) - 20;
}

static void put(void *at, rdl_dtype dtype, double x)
{
    switch (dtype) {
    case RDL_UINT8: {
        uint8_t v = (uint8_t)(int)x;
        memcpy(at, &v, sizeof v);
        break;
    }
    case RDL_INT32: {
        int32_t v = (int32_t)x;
        memcpy(at, &v, sizeof v);
        break;
    }
    case RDL_INT64: {
        int64_t v = (int64_t)x;
        memcpy(at, &v, sizeof v);
        break;
    }
    case RDL_FLOAT32: {
        float v = (float)x;
        memcpy(at, &v, sizeof v);
        break;
    }
    case RDL_FLOAT64:
        memcpy(at, &x, sizeof x);
        break;
    }
}

static double get(const void *at, rdl_dtype dtype)
{
    uint8_t u8;
    int32_t i32;
    int64_t i64;
    float f32;
    double f64 = 0;

    switch (dtype) {
    case RDL_UINT8:
        memcpy(&u8, at, sizeof u8);
        return u8;
    case RDL_INT32:
        memcpy(&i32, at, sizeof i32);
        return i32;
    case RDL_INT64:
        memcpy(&i64, at, sizeof i64);
        return (double)i64;
    case RDL_FLOAT32:
        memcpy(&f32, at, sizeof f32);
        return (double)f32;
    case RDL_FLOAT64:
        memcpy(&f64, at, sizeof f64);
        break;
    }
    return f64;
}

/* As the dtype holds it: uint8 wraps. */
static double held(double x, rdl_dtype dtype)
{
    return dtype == RDL_UINT8 ? (double)(uint8_t)(int)x : x;
}

/* What element i, which rank r has at index[r], combines to: exact, as all sums
 * of these values are small. */
static double combine(int size, size_t i, rdl_dtype dtype,
                      rdl_reduction reduction)
{
    double x = held(value(0, i), dtype);
    int64_t whole;

    for (int rank = 1; rank < size; rank++) {
        double y = held(value(rank, i), dtype);

        if (reduction == RDL_SUM || reduction == RDL_AVG)
            x += y;
        else if (reduction == RDL_MIN ? y < x : y > x)
            x = y;
    }
    if (reduction == RDL_SUM)
        return held(x, dtype);
    if (reduction != RDL_AVG)
        return x;
    if (dtype == RDL_FLOAT32)
        return (double)((float)x / (float)size);
    whole = (int64_t)x / size; /* toward zero */
    return dtype == RDL_FLOAT64 ? x / size : (double)whole;
}

/* --- buffers: with a margin that must stay as it is ------------------------ */

#define MARGIN 64
#define UNTOUCHED 0xa5

static unsigned char *make(size_t bytes, size_t offset, unsigned char **all)
{
    size_t whole = bytes + offset + 2 * MARGIN;

    *all = malloc(whole);
    CHECK(*all != NULL);
    memset(*all, UNTOUCHED, whole);
    return *all + MARGIN + offset;
}

static void check_margin(const unsigned char *buffer, size_t bytes)
{
    for (size_t i = 1; i <= MARGIN; i++)
        CHECK(buffer[-(ptrdiff_t)i] == UNTOUCHED &&
              buffer[bytes + i - 1] == UNTOUCHED);
}

static void fill(unsigned char *buffer, int rank, size_t first, size_t count,
                 rdl_dtype dtype)
{
    for (size_t i = 0; i < count; i++)
        put(buffer + i * rdl_dtype_bytes(dtype), dtype, value(rank, first + i));
}

static void check(const unsigned char *buffer, size_t i, rdl_dtype dtype,
                  double expected, const char *what, size_t count)
{
    double is = get(buffer + i * rdl_dtype_bytes(dtype), dtype);

    if (is != expected)
        RDL_TEST_FAIL("%s: element %zu of %zu, dtype %d: %g, not %g", what, i,
                      count, (int)dtype, is, expected);
}

/* --- the collectives ------------------------------------------------------- */

static void test_all_reduce(rdl_world *world, const plan *p, size_t count,
                            rdl_dtype dtype, rdl_reduction reduction)
{
    int rank = rdl_world_rank(world), size = rdl_world_size(world);
    size_t bytes = count * rdl_dtype_bytes(dtype);
    unsigned char *in_all, *out_all;
    unsigned char *in = make(bytes, p->offset, &in_all);
    unsigned char *out = make(bytes, p->offset / 2, &out_all);

    fill(in, rank, 0, count, dtype);
    if (p->in_place)
        memcpy(out, in, bytes);
    CHECK_OK(rdl_all_reduce(world, RDL_WORLD, p->in_place ? out : in, out,
                            count, dtype, reduction, NULL));
    for (size_t i = 0; i < count; i++)
        check(out, i, dtype, combine(size, i, dtype, reduction), "all_reduce",
              count);
    check_margin(in, bytes);
    check_margin(out, bytes);
    free(in_all);
    free(out_all);
}

static void test_reduce_scatter(rdl_world *world, const plan *p, size_t count,
                                rdl_dtype dtype, rdl_reduction reduction)
{
    int rank = rdl_world_rank(world), size = rdl_world_size(world);
    size_t bytes = count * rdl_dtype_bytes(dtype), whole = bytes * (size_t)size;
    unsigned char *in_all, *out_all;
    unsigned char *in = make(whole, p->offset, &in_all);
    unsigned char *out = make(bytes, p->offset / 2, &out_all);
    unsigned char *result = p->in_place ? in + (size_t)rank * bytes : out;

    fill(in, rank, 0, count * (size_t)size, dtype);
    CHECK_OK(rdl_reduce_scatter(world, RDL_WORLD, in, result, count, dtype,
                                reduction, NULL));
    for (size_t i = 0; i < count; i++)
        check(result, i, dtype,
              combine(size, (size_t)rank * count + i, dtype, reduction),
              "reduce_scatter", count);
    check_margin(in, whole);
    check_margin(out, bytes);
    free(in_all);
    free(out_all);
}

static void test_all_gather(rdl_world *world, const plan *p, size_t count,
                            rdl_dtype dtype)
{
    int rank = rdl_world_rank(world), size = rdl_world_size(world);
    size_t bytes = count * rdl_dtype_bytes(dtype), whole = bytes * (size_t)size;
    unsigned char *in_all, *out_all;
    unsigned char *in = make(bytes, p->offset, &in_all);
    unsigned char *out = make(whole, p->offset / 2, &out_all);
    unsigned char *input = p->in_place ? out + (size_t)rank * bytes : in;

    fill(input, rank, 0, count, dtype);
    CHECK_OK(rdl_all_gather(world, RDL_WORLD, input, out, count, dtype, NULL));
    for (size_t i = 0; i < count * (size_t)size; i++)
        check(out, i, dtype, held(value((int)(i / count), i % count), dtype),
              "all_gather", count);
    check_margin(out, whole);
    free(in_all);
    free(out_all);
}

static void test_all_to_all(rdl_world *world, const plan *p, size_t count,
                            rdl_dtype dtype)
{
    int rank = rdl_world_rank(world), size = rdl_world_size(world);
    size_t whole = count * rdl_dtype_bytes(dtype) * (size_t)size;
    unsigned char *in_all, *out_all;
    unsigned char *in = make(whole, p->offset, &in_all);
    unsigned char *out = make(whole, p->offset / 2, &out_all);

    fill(in, rank, 0, count * (size_t)size, dtype);
    CHECK_OK(rdl_all_to_all(world, RDL_WORLD, in, out, count, dtype, NULL));
    for (size_t i = 0; i < count * (size_t)size; i++)
        check(out, i, dtype,
              held(value((int)(i / count), (size_t)rank * count + i % count),
                   dtype),
              "all_to_all", count);
    check_margin(out, whole);
    free(in_all);
    free(out_all);
}

static void test_broadcast(rdl_world *world, const plan *p, size_t count,
                           rdl_dtype dtype)
{
    int rank = rdl_world_rank(world), size = rdl_world_size(world);
    size_t bytes = count * rdl_dtype_bytes(dtype);

    for (int root = 0; root<size; root += size> 4 ? size - 1 : 1) {
        unsigned char *all;
        unsigned char *buffer = make(bytes, p->offset, &all);

        if (rank == root)
            fill(buffer, root, 0, count, dtype);
        CHECK_OK(
            rdl_broadcast(world, RDL_WORLD, buffer, count, dtype, root, NULL));
        for (size_t i = 0; i < count; i++)
            check(buffer, i, dtype, held(value(root, i), dtype), "broadcast",
                  count);
        check_margin(buffer, bytes);
        free(all);
    }
}

static void test_all(rdl_world *world, void *arg)
{
    const plan *p = arg;
    size_t n = (size_t)rdl_world_size(world);
    size_t counts[] = { 0, 1, n - 1, n, n + 1, p->wraps };
    static const rdl_dtype dtypes[] = { RDL_UINT8, RDL_INT32, RDL_INT64,
                                        RDL_FLOAT32, RDL_FLOAT64 };

    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
            size_t count = counts[c];
            rdl_dtype dtype = dtypes[d];

            for (int r = RDL_SUM; r <= RDL_AVG; r++) {
                test_all_reduce(world, p, count, dtype, (rdl_reduction)r);
                test_reduce_scatter(world, p, count, dtype, (rdl_reduction)r);
            }
            test_all_gather(world, p, count, dtype);
            test_all_to_all(world, p, count, dtype);
            test_broadcast(world, p, count, dtype);
            CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
        }
}

static void test_sizes(const rdl_test_job *like, const plan *p)
{
    static const int sizes[] = { 1, 2, 3, 4, 5, 8 };

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        rdl_test_job job = *like;

        job.size = sizes[i];
        rdl_test_worlds(&job, test_all, (void *)(uintptr_t)p);
    }
}

/* Staging of 32 KiB: a lease of half of that, windows of 8 KiB; 40,000 elements
 * go round them 5 to 40 times. */
#define SMALL_STAGING ((size_t)32768)

RDL_TEST(collectives_equal_the_reference_as_threads)
{
    rdl_test_job job = { .staging_bytes = SMALL_STAGING };
    plan p = { .wraps = 12345 };

    test_sizes(&job, &p);
}

RDL_TEST(collectives_equal_the_reference_as_processes)
{
    rdl_test_job job = { .staging_bytes = SMALL_STAGING, .processes = true };
    plan p = { .wraps = 12345 };

    test_sizes(&job, &p);
}

RDL_TEST(collectives_in_place_equal_the_reference)
{
    rdl_test_job job = { .staging_bytes = SMALL_STAGING };
    plan p = { .wraps = 5000, .in_place = true };

    test_sizes(&job, &p);
}

RDL_TEST(collectives_equal_the_reference_with_the_default_staging)
{
    rdl_test_job job = { .size = 3 };
    plan p = { .wraps = 200000 };

    rdl_test_worlds(&job, test_all, &p);
    job.processes = true;
    rdl_test_worlds(&job, test_all, &p);
}

RDL_TEST(collectives_equal_the_reference_with_the_least_staging)
{
    rdl_test_job job = { .staging_bytes = RDL_STAGING_LEAST };
    plan p = { .wraps = 3000 };

    test_sizes(&job, &p);
    job.processes = true;
    test_sizes(&job, &p);
}

RDL_TEST(collectives_equal_the_reference_at_any_alignment)
{
    for (size_t offset = 1; offset < 64; offset += 9) {
        rdl_test_job job = { .size = 3, .staging_bytes = SMALL_STAGING };
        plan p = { .wraps = 1027, .offset = offset };

        rdl_test_worlds(&job, test_all, &p);
    }
}

RDL_TEST(collectives_equal_the_reference_on_many_ranks)
{
    static const int sizes[] = { 16, 33, 64 };

    for (int i = 0; i < 3; i++) {
        rdl_test_job job = { .size = sizes[i], .staging_bytes = SMALL_STAGING };
        plan p = { .wraps = 700 };

        rdl_test_worlds(&job, test_all, &p);
        job.processes = true;
        rdl_test_worlds(&job, test_all, &p);
    }
}

/* --- the handed cases of buffers and counts -------------------------------- */

/* H24 b */
static void pass_nothing(rdl_world *world, void *arg)
{
    (void)arg;
    CHECK_OK(rdl_all_reduce(world, RDL_WORLD, NULL, NULL, 0, RDL_FLOAT32,
                            RDL_SUM, NULL));
    CHECK_OK(rdl_all_gather(world, RDL_WORLD, NULL, NULL, 0, RDL_FLOAT32, NULL));
    CHECK_OK(rdl_reduce_scatter(world, RDL_WORLD, NULL, NULL, 0, RDL_FLOAT32,
                                RDL_SUM, NULL));
    CHECK_OK(rdl_broadcast(world, RDL_WORLD, NULL, 0, RDL_FLOAT32, 1, NULL));
    CHECK_OK(rdl_all_to_all(world, RDL_WORLD, NULL, NULL, 0, RDL_FLOAT32, NULL));
    rdl_check_digits(world, RDL_WORLD, 1111);
}

RDL_TEST(calls_of_nothing_take_null_and_their_turn)
{
    rdl_test_job job = { .size = 4 };

    rdl_test_worlds(&job, pass_nothing, NULL);
}

/* H25 a, b */
static void gather_in_place(rdl_world *world, void *arg)
{
    int rank = rdl_world_rank(world);
    int32_t all[15];

    (void)arg;
    memset(all, 0, sizeof all);
    for (int i = 0; i < 5; i++)
        all[5 * rank + i] = rank + 1 + i;
    CHECK_OK(rdl_all_gather(world, RDL_WORLD, all + 5 * rank, all, 5, RDL_INT32,
                            NULL));
    for (int i = 0; i < 15; i++)
        CHECK_INT(all[i], i / 5 + 1 + i % 5);
    CHECK_STATUS(rdl_all_gather(world, RDL_WORLD, all + 5 * ((rank + 1) % 3),
                                all, 5, RDL_INT32, NULL),
                 RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "overlap");
    CHECK_STATUS(rdl_all_reduce(world, RDL_WORLD, all, all + 1, 5, RDL_INT32,
                                RDL_SUM, NULL),
                 RDL_INVALID);
    CHECK_STATUS(rdl_all_to_all(world, RDL_WORLD, all, all, 5, RDL_INT32, NULL),
                 RDL_INVALID);
    for (int i = 0; i < 15; i++)
        CHECK_INT(all[i], i / 5 + 1 + i % 5);
    rdl_check_digits(world, RDL_WORLD, 111);
}

RDL_TEST(in_place_is_the_own_part_and_other_overlaps_are_refused)
{
    rdl_test_job job = { .size = 3 };

    rdl_test_worlds(&job, gather_in_place, NULL);
}

/* H25 c */
static void sum_at_every_offset(rdl_world *world, void *arg)
{
    enum { N = 1027 };
    int rank = rdl_world_rank(world);
    _Alignas(64) unsigned char room[2][4 * N + 128];

    (void)arg;
    for (size_t offset = 0; offset < 64; offset++) {
        unsigned char *in = room[0] + (rank ? 63 - offset : offset);
        unsigned char *out = room[1] + (rank ? offset : (offset * 7) % 64);
        double sum = 0;

        for (int i = 0; i < N; i++) {
            float x = (float)(i * (rank + 1));

            memcpy(in + 4 * i, &x, 4);
        }
        CHECK_OK(rdl_all_reduce(world, RDL_WORLD, in, out, N, RDL_FLOAT32,
                                RDL_SUM, NULL));
        for (int i = 0; i < N; i++) {
            float x;

            memcpy(&x, out + 4 * i, 4);
            CHECK(x == (float)(3 * i));
            sum += (double)x;
        }
        CHECK(sum == 1580553);
    }
}

RDL_TEST(sums_are_exact_at_every_offset)
{
    rdl_test_job job = { .size = 2 };

    rdl_test_worlds(&job, sum_at_every_offset, NULL);
}

static void call_badly(rdl_world *world, void *arg)
{
    int32_t x[4] = { 1, 2, 3, 4 }, y[4] = { 0 };

    (void)arg;
    CHECK_STATUS(
        rdl_all_reduce(world, RDL_WORLD, NULL, y, 1, RDL_INT32, RDL_SUM, NULL),
        RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "input is NULL");
    CHECK_STATUS(
        rdl_all_reduce(world, RDL_WORLD, x, NULL, 1, RDL_INT32, RDL_SUM, NULL),
        RDL_INVALID);
    CHECK_STATUS(
        rdl_all_reduce(world, RDL_WORLD, x, y, 1, (rdl_dtype)77, RDL_SUM, NULL),
        RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "77 is no dtype");
    CHECK_STATUS(rdl_all_reduce(world, RDL_WORLD, x, y, 1, RDL_INT32,
                                (rdl_reduction)9, NULL),
                 RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "9 is no reduction");
    CHECK_STATUS(rdl_all_reduce(world, RDL_WORLD, x, y, SIZE_MAX / 2, RDL_INT32,
                                RDL_SUM, NULL),
                 RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "overflows");
    CHECK_STATUS(rdl_all_gather(world, RDL_WORLD, x, y, (size_t)1 << 62,
                                RDL_FLOAT32, NULL),
                 RDL_INVALID);
    CHECK_STATUS(rdl_broadcast(world, RDL_WORLD, x, 1, RDL_INT32, 2, NULL),
                 RDL_INVALID);
    CHECK_STATUS(rdl_broadcast(world, RDL_WORLD, x, 1, RDL_INT32, -1, NULL),
                 RDL_INVALID);
    CHECK_STATUS(rdl_barrier(world, RDL_WORLD, &(rdl_call){ .timeout_ms = -5 }),
                 RDL_INVALID);
    CHECK_STATUS(rdl_barrier(NULL, RDL_WORLD, NULL), RDL_INVALID);
    CHECK_INT(y[0], 0);
    rdl_check_digits(world, RDL_WORLD, 11);
}

RDL_TEST(wrong_arguments_are_refused_and_the_group_goes_on)
{
    rdl_test_job job = { .size = 2 };

    rdl_test_worlds(&job, call_badly, NULL);
}
