/* The handed cases of dtypes and reductions, H20-H23, on ranks that are threads
 * and on ranks that are processes. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/values.h"
#include "support/worlds.h"

#include <math.h>
#include <raddle/work.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

static const rdl_dtype floats[] = { RDL_FLOAT16, RDL_BFLOAT16, RDL_FLOAT32,
                                    RDL_FLOAT64 };
static const rdl_dtype integers[] = { RDL_UINT8,  RDL_INT8,   RDL_UINT16,
                                      RDL_INT16,  RDL_UINT32, RDL_INT32,
                                      RDL_UINT64, RDL_INT64 };

static void on_ranks(int size, rdl_world_body body)
{
    rdl_test_job job = { .size = size };

    rdl_test_worlds(&job, body, NULL);
    job.processes = true;
    rdl_test_worlds(&job, body, NULL);
}

/* Count elements of x all. */
static void fill(void *at, size_t count, rdl_dtype dtype, double x)
{
    size_t bytes = rdl_dtype_bytes(dtype);

    for (size_t i = 0; i < count; i++)
        rdl_test_put((char *)at + i * bytes, dtype, x);
}

static void check_all(const void *at, size_t count, rdl_dtype dtype, double x)
{
    size_t bytes = rdl_dtype_bytes(dtype);

    for (size_t i = 0; i < count; i++)
        CHECK_NEAR(rdl_test_get((const char *)at + i * bytes, dtype), x, 0);
}

/* Reduces in all ways: the parts of reduce_scatter are equal, so that each rank
 * gets what all_reduce gives, and so does the root of reduce, here each in turn.
 * input: count elements; output: twice as many, of all_reduce and reduce_scatter;
 * the other two must be the same. */
static void reduce(rdl_world *world, const void *input, void *output,
                   size_t count, rdl_dtype dtype, rdl_reduction reduction,
                   double factor)
{
    size_t size = (size_t)rdl_world_size(world);
    size_t bytes = count * rdl_dtype_bytes(dtype);
    char *parts = malloc(size * bytes + bytes), *result = parts + size * bytes;
    size_t *counts = malloc(size * sizeof *counts);
    rdl_call call = { .factor = factor };

    CHECK(parts != NULL && counts != NULL);
    for (size_t i = 0; i < size; i++) {
        memcpy(parts + i * bytes, input, bytes);
        counts[i] = count;
    }
    CHECK_OK(rdl_all_reduce(world, RDL_WORLD, input, output, count, dtype,
                            reduction, &call));
    CHECK_OK(rdl_reduce_scatter(world, RDL_WORLD, parts, (char *)output + bytes,
                                count, dtype, reduction, &call));
    CHECK_OK(rdl_reduce_scatter_v(world, RDL_WORLD, parts, result, counts,
                                  dtype, reduction, &call));
    CHECK(memcmp(result, output, bytes) == 0);
    for (int root = 0; root < (int)size; root++) {
        memset(result, 0x5a, bytes);
        CHECK_OK(rdl_reduce(world, RDL_WORLD, input, result, count, dtype,
                            reduction, root, &call));
        if (root == rdl_world_rank(world))
            CHECK(memcmp(result, output, bytes) == 0);
    }
    free(counts);
    free(parts);
}

/* --- H20: averages and factors --------------------------------------------- */

static void average_integers(rdl_world *world, void *arg)
{
    static const int32_t x[2][4] = { { 7, -7, 3, INT32_MAX },
                                     { 2, -2, 4, INT32_MAX } };
    static const int32_t expected[4] = { 4, -4, 3, INT32_MAX };
    int rank = rdl_world_rank(world);
    int32_t out[8];

    (void)arg;
    reduce(world, x[rank], out, 4, RDL_INT32, RDL_AVG, 0);
    CHECK(memcmp(out, expected, sizeof expected) == 0);
    CHECK(memcmp(out + 4, expected, sizeof expected) == 0);
    for (size_t d = 0; d < LENGTH(integers); d++) {
        uint64_t ends[2] = { 0 }, both[4] = { 0 };
        size_t bytes = rdl_dtype_bytes(integers[d]);
        uint64_t all = UINT64_MAX >> (64 - 8 * bytes);
        uint64_t least = all ^ (all >> 1);

        memcpy(ends, &all, bytes);
        memcpy((char *)ends + bytes, &least, bytes);
        reduce(world, ends, both, 2, integers[d], RDL_AVG, 0);
        CHECK(memcmp(both, ends, 2 * bytes) == 0);
        CHECK(memcmp((char *)both + 2 * bytes, ends, 2 * bytes) == 0);
    }
}

RDL_TEST(averages_of_integers_are_exact_and_never_zero)
{
    on_ranks(2, average_integers);
}

static void average_rows(rdl_world *world, void *arg)
{
    int rank = rdl_world_rank(world);

    (void)arg;
    for (int d = 0; d < RDL_TEST_DTYPES; d++) {
        rdl_dtype dtype = (rdl_dtype)d;
        size_t bytes = rdl_dtype_bytes(dtype);
        char x[5 * 8], out[10 * 8];

        if (dtype == RDL_BOOL)
            continue;
        for (size_t i = 0; i < 5; i++)
            rdl_test_put(x + i * bytes, dtype, (rank + 1) * (double)(i + 1));
        reduce(world, x, out, 5, dtype, RDL_AVG, 0);
        for (size_t i = 0; i < 10; i++)
            check_all(out + i * bytes, 1, dtype, 2 * (double)(i % 5 + 1));
    }
}

RDL_TEST(averages_divide_by_the_number_of_ranks)
{
    on_ranks(3, average_rows);
}

/* x * factor by the first rank and 2 * x * factor by the second, as the header
 * says it is rounded. */
static void scale(rdl_world *world, rdl_dtype dtype, double factor,
                  double expected, double tolerance)
{
    char x[8 * 8], out[16 * 8];

    fill(x, 8, dtype, rdl_world_rank(world) + 1);
    reduce(world, x, out, 8, dtype, RDL_PREMUL_SUM, factor);
    for (size_t i = 0; i < 16; i++)
        CHECK_NEAR(rdl_test_get(out + i * rdl_dtype_bytes(dtype), dtype),
                   expected, tolerance);
}

static void scale_all(rdl_world *world, void *arg)
{
    (void)arg;
    for (size_t d = 0; d < LENGTH(floats); d++) {
        scale(world, floats[d], 0.5, 1.5, 0);
        scale(world, floats[d], 3.0, 9.0, 0);
        scale(world, floats[d], -0.25, -0.75, 0);
    }
    scale(world, RDL_BFLOAT16, 0.1, 0.30078125, 0);
    scale(world, RDL_FLOAT16, 0.1, 0.300048828125, 0);
    scale(world, RDL_FLOAT32, 0.1, (double)0.3f, 0x1p-25);
    scale(world, RDL_FLOAT64, 0.1, 0.3, 0x1p-53);
}

RDL_TEST(factors_multiply_before_the_sum)
{
    on_ranks(2, scale_all);
}

static void scale_alone(rdl_world *world, void *arg)
{
    float x = 3;
    uint8_t truths[3] = { 0, 2, 0xff };

    (void)arg;
    CHECK_OK(rdl_all_reduce(world, RDL_WORLD, &x, &x, 1, RDL_FLOAT32,
                            RDL_PREMUL_SUM, &(rdl_call){ .factor = 0.5 }));
    CHECK(x == 1.5f);
    CHECK_OK(rdl_all_reduce(world, RDL_WORLD, truths, truths, 3, RDL_BOOL,
                            RDL_SUM, NULL));
    CHECK(memcmp(truths, (uint8_t[]){ 0, 1, 1 }, 3) == 0);
}

RDL_TEST(a_rank_alone_is_multiplied_and_made_true_too)
{
    rdl_test_job job = { .size = 1 };

    rdl_test_worlds(&job, scale_alone, NULL);
}

/* Equal where they are kept: 0.1 and the float32 nearest to it. */
static void agree_on_factor(rdl_world *world, void *arg)
{
    rdl_call call = { .factor = rdl_world_rank(world) ? 0.1 : (double)0.1f };
    float x = 1;

    (void)arg;
    CHECK_OK(rdl_all_reduce(world, RDL_WORLD, &x, &x, 1, RDL_FLOAT32,
                            RDL_PREMUL_SUM, &call));
    CHECK(x == 0.1f + 0.1f);
}

RDL_TEST(factors_that_are_kept_as_the_same_agree)
{
    on_ranks(2, agree_on_factor);
}

/* What the call is issued with counts, also when it runs later. */
static void scale_later(rdl_world *world, void *arg)
{
    rdl_work works[2];
    float x[2] = { 1, 1 };
    rdl_call call = { 0 };

    (void)arg;
    for (int i = 0; i < 2; i++) {
        call.work = &works[i];
        call.factor = i == 0 ? 0.5 : 2;
        CHECK_OK(rdl_all_reduce(world, RDL_WORLD, &x[i], &x[i], 1, RDL_FLOAT32,
                                RDL_PREMUL_SUM, &call));
    }
    call.factor = 77;
    for (int i = 0; i < 2; i++)
        CHECK_OK(rdl_work_wait(world, works[i], 0));
    CHECK(x[0] == 1 && x[1] == 4);
}

RDL_TEST(factors_belong_to_the_call_that_was_issued)
{
    on_ranks(2, scale_later);
}

static void differ_in_factor(rdl_world *world, void *arg)
{
    rdl_dtype dtype = *(const rdl_dtype *)arg;
    rdl_call call = { .factor = rdl_world_rank(world) == 2 ? 0.1 : 0.125 };
    double x[2] = { 5, 6 }, out[2] = { 7, 8 };

    CHECK_STATUS(rdl_all_reduce(world, RDL_WORLD, x, out, 2, dtype,
                                RDL_PREMUL_SUM, &call),
                 RDL_MISMATCH);
    CHECK_HAS(rdl_error_detail(), "rank 2 differs from ranks 0,1");
    CHECK_HAS(rdl_error_detail(), "premul_sum by 0.1)");
    CHECK_HAS(rdl_error_detail(), "premul_sum by 0.125)");
    CHECK(out[0] == 7 && out[1] == 8);
}

RDL_TEST(factors_that_differ_are_a_mismatch_with_both)
{
    for (size_t d = 0; d < LENGTH(floats); d++) {
        rdl_test_job job = { .size = 3, .keeps_failures = true };
        rdl_dtype dtype = floats[d];

        rdl_test_worlds(&job, differ_in_factor, &dtype);
        job.processes = true;
        rdl_test_worlds(&job, differ_in_factor, &dtype);
    }
}

/* --- H21: NaN -------------------------------------------------------------- */

#define MANY 1003

static void place_nan(rdl_world *world, rdl_dtype dtype, size_t count,
                      int place, rdl_reduction reduction)
{
    static const size_t most = MANY * 8;
    int rank = rdl_world_rank(world);
    size_t bytes = rdl_dtype_bytes(dtype);
    char *x = malloc(most), *out = malloc(2 * most);

    CHECK(x != NULL && out != NULL);
    fill(x, count, dtype, rank + 1);
    if (rank == place)
        fill(x + (count - 1) * bytes, 1, dtype, (double)NAN);
    reduce(world, x, out, count, dtype, reduction, 0);
    for (int i = 0; i < 2; i++) {
        const char *part = out + (size_t)i * count * bytes;

        check_all(part, count - 1, dtype, reduction == RDL_MIN ? 1 : 4);
        check_all(part + (count - 1) * bytes, 1, dtype, (double)NAN);
    }
    free(x);
    free(out);
}

static void place_nans(rdl_world *world, void *arg)
{
    (void)arg;
    for (size_t d = 0; d < LENGTH(floats); d++)
        for (int place = 0; place < 4; place++)
            for (int r = RDL_MIN; r <= RDL_MAX; r++) {
                place_nan(world, floats[d], 1, place, (rdl_reduction)r);
                place_nan(world, floats[d], MANY, place, (rdl_reduction)r);
            }
}

RDL_TEST(a_nan_on_any_rank_is_the_least_and_the_greatest)
{
    on_ranks(4, place_nans);
}

/* --- H22: sums of 16 bits -------------------------------------------------- */

#define MORE 24063

/* The sum of what each rank holds, in the same bits on all and every time. */
static void sum_halves(rdl_world *world, rdl_dtype dtype, double mine,
                       uint16_t expected)
{
    uint16_t *x = malloc(MORE * 2), *out = malloc(2 * MORE * 2);

    CHECK(x != NULL && out != NULL);
    fill(x, MORE, dtype, mine);
    for (int repeat = 0; repeat < 10; repeat++)
        for (size_t count = 1; count <= MORE; count += MORE - 1) {
            reduce(world, x, out, count, dtype, RDL_SUM, 0);
            for (size_t i = 0; i < 2 * count; i++)
                CHECK_INT(out[i], expected);
        }
    free(x);
    free(out);
}

static void cancel(rdl_world *world, void *arg)
{
    (void)arg;
    sum_halves(world, RDL_FLOAT16, rdl_world_rank(world) < 2 ? 60000 : -60000,
               0);
}

RDL_TEST(a_sum_of_16_bits_may_pass_what_16_bits_hold)
{
    on_ranks(4, cancel);
}

static void add_ones(rdl_world *world, void *arg)
{
    (void)arg;
    sum_halves(world, RDL_BFLOAT16, rdl_world_rank(world) == 0 ? 256 : 1,
               0x4384); /* 264 */
}

RDL_TEST(a_sum_of_16_bits_is_rounded_once)
{
    on_ranks(8, add_ones);
}

static void overflow(rdl_world *world, void *arg)
{
    (void)arg;
    sum_halves(world, RDL_FLOAT16, 40000, 0x7c00);
}

RDL_TEST(a_sum_of_16_bits_that_is_too_large_is_infinite)
{
    on_ranks(2, overflow);
}

/* --- H23: truths, bytes, 64 bits ------------------------------------------- */

static void reduce_truths(rdl_world *world, void *arg)
{
    static const uint8_t x[3][4] = { { 1, 1, 0, 0 },
                                     { 1, 0, 0, 1 },
                                     { 1, 1, 0, 1 } };
    static const uint8_t any[4] = { 1, 1, 0, 1 }, all[4] = { 1, 0, 0, 0 };
    static const uint8_t odd[4] = { 1, 0, 0, 0 };
    static const struct {
        rdl_reduction reduction;
        const uint8_t *expected;
    } known[] = { { RDL_SUM, any },     { RDL_MAX, any }, { RDL_BIT_OR, any },
                  { RDL_PRODUCT, all }, { RDL_MIN, all }, { RDL_BIT_AND, all },
                  { RDL_BIT_XOR, odd } };
    int rank = rdl_world_rank(world);
    uint8_t out[8];

    (void)arg;
    for (size_t i = 0; i < LENGTH(known); i++) {
        reduce(world, x[rank], out, 4, RDL_BOOL, known[i].reduction, 0);
        CHECK(memcmp(out, known[i].expected, 4) == 0);
        CHECK(memcmp(out + 4, known[i].expected, 4) == 0);
    }
}

RDL_TEST(reductions_of_truths_are_0_and_1)
{
    on_ranks(3, reduce_truths);
}

static void move_truths(rdl_world *world, void *arg)
{
    int rank = rdl_world_rank(world);
    uint8_t mine[3], all[9], theirs[3];

    (void)arg;
    for (int i = 0; i < 3; i++)
        mine[i] = (uint8_t)((rank + i) % 3 == 0);
    CHECK_OK(rdl_all_gather(world, RDL_WORLD, mine, all, 3, RDL_BOOL, NULL));
    for (int i = 0; i < 9; i++)
        CHECK_INT(all[i], (i / 3 + i % 3) % 3 == 0);
    CHECK_OK(rdl_all_to_all(world, RDL_WORLD, mine, theirs, 1, RDL_BOOL, NULL));
    CHECK(memcmp(theirs, mine, 3) == 0); /* who holds what is symmetric */
    CHECK_OK(rdl_broadcast(world, RDL_WORLD, mine, 3, RDL_BOOL, 1, NULL));
    CHECK(memcmp(mine, (uint8_t[]){ 0, 0, 1 }, 3) == 0);
}

RDL_TEST(truths_are_gathered_exchanged_and_broadcast)
{
    on_ranks(3, move_truths);
}

static void wrap(rdl_world *world, void *arg)
{
    int rank = rdl_world_rank(world);
    int8_t small = rank ? 100 : 120, small_out[2];
    uint8_t byte = rank ? 100 : 200, byte_out[2];
    uint64_t top = UINT64_C(1) << 63, top_out[2], other = rank ? 1 : top;

    (void)arg;
    reduce(world, &small, small_out, 1, RDL_INT8, RDL_SUM, 0);
    reduce(world, &byte, byte_out, 1, RDL_UINT8, RDL_SUM, 0);
    for (int i = 0; i < 2; i++) {
        CHECK_INT(small_out[i], -36);
        CHECK_INT(byte_out[i], 44);
    }
    reduce(world, &top, top_out, 1, RDL_UINT64, RDL_SUM, 0);
    CHECK(top_out[0] == 0 && top_out[1] == 0);
    reduce(world, &other, top_out, 1, RDL_UINT64, RDL_MAX, 0);
    CHECK(top_out[0] == top && top_out[1] == top);
    reduce(world, &other, top_out, 1, RDL_UINT64, RDL_MIN, 0);
    CHECK(top_out[0] == 1 && top_out[1] == 1);
    reduce(world, &top, top_out, 1, RDL_UINT64, RDL_AVG, 0);
    CHECK(top_out[0] == top && top_out[1] == top);
}

RDL_TEST(integers_wrap_and_64_bits_without_sign_are_large)
{
    on_ranks(2, wrap);
}

/* --- what there is not ----------------------------------------------------- */

static void check_refusal(rdl_world *world, rdl_dtype dtype,
                          rdl_reduction reduction)
{
    unsigned char x[16] = { 0 }, out[16] = { 9 };
    rdl_call call = { .factor = reduction == RDL_PREMUL_SUM ? 0.5 : 0 };

    CHECK_STATUS(
        rdl_all_reduce(world, RDL_WORLD, x, out, 1, dtype, reduction, &call),
        RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "all_reduce: there is no ");
    CHECK_HAS(rdl_error_detail(), rdl_test_dtype_name(dtype));
    CHECK_HAS(rdl_error_detail(), rdl_test_reduction_name(reduction));
    CHECK_STATUS(rdl_reduce_scatter(world, RDL_WORLD, x, out, 0, dtype,
                                    reduction, &call),
                 RDL_INVALID);
    CHECK_INT(out[0], 9);
}

static void check_refusals(rdl_world *world, void *arg)
{
    int refused = 0;

    for (int d = 0; d < RDL_TEST_DTYPES; d++)
        for (int r = 0; r < RDL_TEST_REDUCTIONS; r++)
            if (!rdl_test_reduces((rdl_dtype)d, (rdl_reduction)r)) {
                check_refusal(world, (rdl_dtype)d, (rdl_reduction)r);
                refused++;
            }
    CHECK_INT(refused, 2 + 8 + 3 * 4);
    rdl_check_digits(world, RDL_WORLD, *(const int64_t *)arg);
}

RDL_TEST(pairs_without_a_meaning_are_refused_and_the_group_goes_on)
{
    static int64_t digits[] = { 1, 11 };

    for (int i = 0; i < 2; i++) {
        rdl_test_job job = { .size = i + 1 };

        rdl_test_worlds(&job, check_refusals, &digits[i]);
        job.processes = true;
        rdl_test_worlds(&job, check_refusals, &digits[i]);
    }
}

static void check_factor(rdl_world *world, rdl_dtype dtype,
                         rdl_reduction reduction, double factor,
                         const char *sentence)
{
    double x = 1, out = 2;
    rdl_call call = { .factor = factor };

    CHECK_STATUS(
        rdl_all_reduce(world, RDL_WORLD, &x, &out, 1, dtype, reduction, &call),
        RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), sentence);
    CHECK(out == 2);
}

static void check_factors(rdl_world *world, void *arg)
{
    const rdl_call call = { .factor = 0.5 };
    double x = 1;

    (void)arg;
    CHECK_STATUS(rdl_all_reduce(world, RDL_WORLD, &x, &x, 1, RDL_FLOAT64,
                                RDL_PREMUL_SUM, NULL),
                 RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "premul_sum wants a factor");
    for (size_t d = 0; d < LENGTH(floats); d++) {
        check_factor(world, floats[d], RDL_PREMUL_SUM, 0, "0 is 0");
        check_factor(world, floats[d], RDL_PREMUL_SUM, (double)NAN, "nan");
        check_factor(world, floats[d], RDL_PREMUL_SUM, (double)-INFINITY,
                     "-inf is -inf");
    }
    check_factor(world, RDL_FLOAT32, RDL_PREMUL_SUM, 1e-50,
                 "1e-50 is 0 in float32");
    check_factor(world, RDL_BFLOAT16, RDL_PREMUL_SUM, 1e39,
                 "1e+39 is inf in float32");
    check_factor(world, RDL_FLOAT32, RDL_SUM, 0.5,
                 "a factor of 0.5, which only premul_sum takes");
    check_factor(world, RDL_INT32, RDL_AVG, 2, "only premul_sum");
    CHECK_STATUS(rdl_broadcast(world, RDL_WORLD, &x, 1, RDL_FLOAT64, 0, &call),
                 RDL_INVALID);
    CHECK_STATUS(rdl_barrier(world, RDL_WORLD, &call), RDL_INVALID);
    rdl_check_digits(world, RDL_WORLD, 11);
}

RDL_TEST(factors_that_mean_nothing_are_refused_and_the_group_goes_on)
{
    on_ranks(2, check_factors);
}
