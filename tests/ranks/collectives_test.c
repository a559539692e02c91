/* Every collective, dtype and reduction at every awkward count and number of
 * ranks, as threads and as processes, against a reference that adds plain arrays
 * in the order of ranks. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/values.h"
#include "support/worlds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANKS_MOST 64
#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

/* --- values ---------------------------------------------------------------- */

/* Elements repeat after this many; a prime, so that no piece does. */
#define PERIOD 101

typedef struct element {
    unsigned char bytes[8];
} element;

/* What the ranks of one job hold, and what it combines to. */
typedef struct tables {
    element held[RDL_TEST_DTYPES][PERIOD];
    element combined[RDL_TEST_DTYPES][RDL_TEST_REDUCTIONS][PERIOD];
} tables;

#define FACTOR 0.7

/* The value that element i of rank is. */
static size_t nth(int rank, size_t i)
{
    return (i * 7 + (size_t)rank * 13) % PERIOD;
}

static void make_held(tables *t, rdl_dtype dtype)
{
    for (int v = 0; v < PERIOD; v++)
        rdl_test_put(t->held[dtype][v].bytes, dtype,
                     dtype == RDL_BOOL ? v % 3 : v - 20);
}

static void make_combined(tables *t, int size, rdl_dtype dtype,
                          rdl_reduction reduction)
{
    const void *x[RANKS_MOST];

    for (size_t i = 0; i < PERIOD; i++) {
        for (int rank = 0; rank < size; rank++)
            x[rank] = t->held[dtype][nth(rank, i)].bytes;
        rdl_test_combine(t->combined[dtype][reduction][i].bytes, x, size, dtype,
                         reduction, FACTOR);
    }
}

static tables *make_tables(int size)
{
    tables *t = malloc(sizeof *t);

    CHECK(t != NULL);
    for (int d = 0; d < RDL_TEST_DTYPES; d++) {
        make_held(t, (rdl_dtype)d);
        for (int r = 0; r < RDL_TEST_REDUCTIONS; r++)
            if (rdl_test_reduces((rdl_dtype)d, (rdl_reduction)r))
                make_combined(t, size, (rdl_dtype)d, (rdl_reduction)r);
    }
    return t;
}

typedef struct plan {
    size_t wraps; /* a count that goes round every buffer several times */
    bool in_place;
    size_t offset; /* bytes by which buffers are off their alignment */
    const tables *tables;
} plan;

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

static void fill(const plan *p, unsigned char *buffer, int rank, size_t first,
                 size_t count, rdl_dtype dtype)
{
    size_t bytes = rdl_dtype_bytes(dtype);

    for (size_t i = 0; i < count; i++)
        memcpy(buffer + i * bytes,
               p->tables->held[dtype][nth(rank, first + i)].bytes, bytes);
}

static void check(const unsigned char *buffer, size_t i, rdl_dtype dtype,
                  const element *expected, const char *what, size_t count)
{
    size_t bytes = rdl_dtype_bytes(dtype);

    if (memcmp(buffer + i * bytes, expected->bytes, bytes) != 0)
        RDL_TEST_FAIL("%s: element %zu of %zu %s: %g, not %g", what, i, count,
                      rdl_test_dtype_name(dtype),
                      rdl_test_get(buffer + i * bytes, dtype),
                      rdl_test_get(expected->bytes, dtype));
}

/* What element i of rank is. */
static const element *held(const plan *p, rdl_dtype dtype, int rank, size_t i)
{
    return &p->tables->held[dtype][nth(rank, i)];
}

/* What element i of all ranks combines to. */
static const element *combined(const plan *p, rdl_dtype dtype,
                               rdl_reduction reduction, size_t i)
{
    return &p->tables->combined[dtype][reduction][i % PERIOD];
}

static const rdl_call *call_for(rdl_reduction reduction)
{
    static const rdl_call scaled = { .factor = FACTOR };

    return reduction == RDL_PREMUL_SUM ? &scaled : NULL;
}

/* --- the collectives ------------------------------------------------------- */

static void test_all_reduce(rdl_world *world, const plan *p, size_t count,
                            rdl_dtype dtype, rdl_reduction reduction)
{
    int rank = rdl_world_rank(world);
    size_t bytes = count * rdl_dtype_bytes(dtype);
    unsigned char *in_all, *out_all;
    unsigned char *in = make(bytes, p->offset, &in_all);
    unsigned char *out = make(bytes, p->offset / 2, &out_all);

    fill(p, in, rank, 0, count, dtype);
    if (p->in_place)
        memcpy(out, in, bytes);
    CHECK_OK(rdl_all_reduce(world, RDL_WORLD, p->in_place ? out : in, out,
                            count, dtype, reduction, call_for(reduction)));
    for (size_t i = 0; i < count; i++)
        check(out, i, dtype, combined(p, dtype, reduction, i), "all_reduce",
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

    fill(p, in, rank, 0, count * (size_t)size, dtype);
    CHECK_OK(rdl_reduce_scatter(world, RDL_WORLD, in, result, count, dtype,
                                reduction, call_for(reduction)));
    for (size_t i = 0; i < count; i++)
        check(result, i, dtype,
              combined(p, dtype, reduction, (size_t)rank * count + i),
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

    fill(p, input, rank, 0, count, dtype);
    CHECK_OK(rdl_all_gather(world, RDL_WORLD, input, out, count, dtype, NULL));
    for (size_t i = 0; i < count * (size_t)size; i++)
        check(out, i, dtype, held(p, dtype, (int)(i / count), i % count),
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

    fill(p, in, rank, 0, count * (size_t)size, dtype);
    CHECK_OK(rdl_all_to_all(world, RDL_WORLD, in, out, count, dtype, NULL));
    for (size_t i = 0; i < count * (size_t)size; i++)
        check(out, i, dtype,
              held(p, dtype, (int)(i / count), (size_t)rank * count + i % count),
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
            fill(p, buffer, root, 0, count, dtype);
        CHECK_OK(
            rdl_broadcast(world, RDL_WORLD, buffer, count, dtype, root, NULL));
        for (size_t i = 0; i < count; i++)
            check(buffer, i, dtype, held(p, dtype, root, i), "broadcast", count);
        check_margin(buffer, bytes);
        free(all);
    }
}

/* One of each size, and one that is combined in another. */
static bool is_thorough(rdl_dtype dtype)
{
    return dtype == RDL_UINT8 || dtype == RDL_INT32 || dtype == RDL_INT64 ||
           dtype == RDL_BFLOAT16 || dtype == RDL_FLOAT32 || dtype == RDL_FLOAT64;
}

static void test_dtype(rdl_world *world, const plan *p, size_t count,
                       rdl_dtype dtype, int reductions)
{
    for (int r = 0; r < reductions; r++) {
        rdl_reduction reduction = (rdl_reduction)r;

        if (!rdl_test_reduces(dtype, reduction))
            continue;
        test_all_reduce(world, p, count, dtype, reduction);
        test_reduce_scatter(world, p, count, dtype, reduction);
    }
    test_all_gather(world, p, count, dtype);
    test_all_to_all(world, p, count, dtype);
    test_broadcast(world, p, count, dtype);
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
}

/* Every dtype and reduction at size + 1; what moves differently, at all counts. */
static void test_all(rdl_world *world, void *arg)
{
    const plan *p = arg;
    size_t n = (size_t)rdl_world_size(world);
    size_t counts[] = { 0, 1, n - 1, n, p->wraps };

    for (int d = 0; d < RDL_TEST_DTYPES; d++) {
        rdl_dtype dtype = (rdl_dtype)d;

        test_dtype(world, p, n + 1, dtype, RDL_TEST_REDUCTIONS);
        for (size_t c = 0; c < LENGTH(counts) && is_thorough(dtype); c++)
            test_dtype(world, p, counts[c], dtype, RDL_AVG + 1);
    }
}

static void test_size(const rdl_test_job *job, const plan *like)
{
    tables *t = make_tables(job->size);
    plan p = *like;

    p.tables = t;
    rdl_test_worlds(job, test_all, &p);
    free(t);
}

static void test_sizes(const rdl_test_job *like, const plan *p)
{
    static const int sizes[] = { 1, 2, 3, 4, 5, 8 };

    for (size_t i = 0; i < LENGTH(sizes); i++) {
        rdl_test_job job = *like;

        job.size = sizes[i];
        test_size(&job, p);
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

    test_size(&job, &p);
    job.processes = true;
    test_size(&job, &p);
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

        test_size(&job, &p);
    }
}

static void test_many(int size, bool processes)
{
    rdl_test_job job = { .size = size,
                         .staging_bytes = SMALL_STAGING,
                         .processes = processes };
    plan p = { .wraps = 300 };

    test_size(&job, &p);
}

RDL_TEST(collectives_equal_the_reference_on_16_ranks)
{
    test_many(16, false);
    test_many(16, true);
}

RDL_TEST(collectives_equal_the_reference_on_33_threads)
{
    test_many(33, false);
}

RDL_TEST(collectives_equal_the_reference_on_33_processes)
{
    test_many(33, true);
}

RDL_TEST(collectives_equal_the_reference_on_64_threads)
{
    test_many(64, false);
}

RDL_TEST(collectives_equal_the_reference_on_64_processes)
{
    test_many(64, true);
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
