/* H27: counts above 2^31, and counts that no memory holds. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/limits.h"
#include "support/worlds.h"

#include <string.h>
#include <sys/mman.h>

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

static void check_counts(rdl_world *world, void *arg)
{
    const size_t count = (size_t)1 << 62, counts[2] = { INT64_MAX, 2 };
    float x[2] = { 1, 2 };

    (void)arg;
    CHECK_STATUS(rdl_all_reduce(world, RDL_WORLD, x, x, count, RDL_FLOAT32,
                                RDL_SUM, NULL),
                 RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "the size overflows");
    CHECK_STATUS(rdl_reduce_scatter(world, RDL_WORLD, NULL, NULL, count,
                                    RDL_FLOAT32, RDL_SUM, NULL),
                 RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "the size overflows");
    CHECK_STATUS(
        rdl_all_gather(world, RDL_WORLD, x, x, SIZE_MAX / 2, RDL_INT8, NULL),
        RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "the size overflows");
    CHECK_STATUS(
        rdl_all_to_all(world, RDL_WORLD, x, NULL, SIZE_MAX, RDL_BOOL, NULL),
        RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "the size overflows");
    CHECK_STATUS(rdl_broadcast(world, RDL_WORLD, x, count, RDL_FLOAT32, 0, NULL),
                 RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "the size overflows");
    CHECK_STATUS(
        rdl_all_gather_v(world, RDL_WORLD, x, x, counts, RDL_UINT8, NULL),
        RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "the size overflows");
    CHECK_STATUS(rdl_reduce_scatter_v(world, RDL_WORLD, x, x, counts, RDL_UINT8,
                                      RDL_SUM, NULL),
                 RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "the size overflows");
    CHECK(x[0] == 1 && x[1] == 2);
    rdl_check_digits(world, RDL_WORLD, *(const int64_t *)arg);
}

RDL_TEST(impossible_counts_are_refused_and_the_group_goes_on)
{
    static int64_t digits[] = { 1, 11 };

    for (int i = 0; i < 2; i++) {
        rdl_test_job job = { .size = i + 1 };

        rdl_test_worlds(&job, check_counts, &digits[i]);
    }
}

/* Builds without optimisation, or with a sanitizer. */
#if !defined(__OPTIMIZE__) || defined(__SANITIZE_ADDRESS__) ||                 \
    defined(__SANITIZE_THREAD__)
#define SLOW true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SLOW true
#endif
#endif
#ifndef SLOW
#define SLOW false
#endif

#define LARGE (((size_t)1 << 31) + 16)

static unsigned char large_value(size_t i, int rank)
{
    return (unsigned char)((31 * i + (size_t)rank) % 7);
}

/* Of period 7: the rest is copied, twice as much each time. */
static void fill_large(unsigned char *x, int rank)
{
    size_t filled = 7;

    for (size_t i = 0; i < filled; i++)
        x[i] = large_value(i, rank);
    while (filled < LARGE) {
        size_t n = filled < LARGE - filled ? filled : LARGE - filled;

        memcpy(x + filled, x, n);
        filled += n;
    }
}

static void sum_large(rdl_world *world, void *arg)
{
    static const struct {
        size_t index;
        int sum;
    } known[] = {
        { 0, 1 }, { 2147483647, 7 }, { 2147483648, 6 }, { 2147483663, 5 }
    };
    int rank = rdl_world_rank(world);
    unsigned char *x = mmap(NULL, LARGE, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)arg;
    CHECK(x != MAP_FAILED);
    madvise(x, LARGE, MADV_HUGEPAGE);
    fill_large(x, rank);
    CHECK_INT(x[LARGE - 1], large_value(LARGE - 1, rank));
    CHECK_OK(rdl_all_reduce(world, RDL_WORLD, x, x, LARGE, RDL_UINT8, RDL_SUM,
                            NULL));
    for (size_t i = 0; i < LENGTH(known); i++)
        CHECK_INT(x[known[i].index], known[i].sum);
    for (size_t i = 0; i < LARGE; i += i < LARGE - 4096 ? 4095 : 1)
        CHECK_INT(x[i], large_value(i, 0) + large_value(i, 1));
    munmap(x, LARGE);
}

RDL_TEST(counts_above_2_to_the_31st_are_counts)
{
    rdl_test_job job = { .size = 2, .processes = true, .timeout_ms = 50000 };

    if (SLOW && !rdl_test_soak())
        SKIP("4 GiB are slow in this build: release builds and RADDLE_SOAK=1");
    if (rdl_limits_check_memory(2 * LARGE + ((uint64_t)512 << 20),
                                "two buffers of 2 GiB") != RDL_OK)
        SKIP("%s", rdl_error_detail());
    rdl_test_worlds(&job, sum_large, NULL);
}
