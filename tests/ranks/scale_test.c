/* Many groups, one after another and at once, and many ranks: what they leave behind,
 * and what each has. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/worlds.h"

#include <raddle/account.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ALLOCATOR_IS_THE_SYSTEMS false
#else
#define ALLOCATOR_IS_THE_SYSTEMS true
#endif

#define RANKS 4
static const int all[RANKS] = { 0, 1, 2, 3 };

static rdl_account read_account(rdl_world *world)
{
    rdl_account a;

    CHECK_OK(rdl_account_read(world, &a));
    return a;
}

/* --- a thousand at once ---------------------------------------------------- */

static uint64_t taken(const rdl_account *a)
{
    return a->arena_bytes_rank + a->private_bytes + a->host_bytes +
           a->page_table_bytes;
}

static void open_a_thousand(rdl_world *world, void *arg)
{
    enum { N = 1000 };
    int descriptors = rdl_test_descriptors(), threads = rdl_test_thread_count();
    rdl_account before, after;

    (void)arg;
    rdl_check_digits(world, RDL_WORLD, 1111);
    before = read_account(world);
    for (int i = 0; i < N; i++) {
        rdl_group group;
        char name[16];

        snprintf(name, sizeof name, "%d", i);
        CHECK_OK(rdl_group_open(world, all, RANKS, name, &group));
        rdl_check_digits(world, group, 1111);
    }
    after = read_account(world);
    CHECK_INT(after.lanes - before.lanes, N);
    CHECK(taken(&after) - taken(&before) <= 4096 * (uint64_t)N);
    CHECK_INT(rdl_test_descriptors(), descriptors);
    CHECK_INT(rdl_test_thread_count(), threads);
}

RDL_TEST(a_thousand_groups_take_four_kib_each_and_no_descriptor_or_thread)
{
    rdl_test_job job = { .size = RANKS, .processes = true };

    rdl_test_worlds(&job, open_a_thousand, NULL);
}

/* --- again and again ------------------------------------------------------- */

static long resident_bytes(void)
{
    FILE *f = fopen("/proc/self/statm", "re");
    long size, resident;

    CHECK(f != NULL);
    CHECK_INT(fscanf(f, "%ld %ld", &size, &resident), 2);
    fclose(f);
    return resident * sysconf(_SC_PAGESIZE);
}

/* Group i of ranks that all have: its list is turned by i. */
static void use_group(rdl_world *world, int i, const char *name)
{
    int list[RANKS];
    rdl_group group;

    for (int r = 0; r < RANKS; r++)
        list[r] = (r + i) % RANKS;
    CHECK_OK(rdl_group_open(world, list, RANKS, name, &group));
    rdl_check_digits(world, group, 1111);
    CHECK_OK(rdl_group_close(world, group));
}

/* Rounds over a hundred lists and names. */
static void use_a_hundred(rdl_world *world, int from, int rounds)
{
    for (int i = from; i < from + rounds; i++) {
        char name[16];

        snprintf(name, sizeof name, "%d", i % 25);
        use_group(world, i % 100, name);
    }
}

typedef struct plan {
    int rounds;
    double most; /* bytes a round, for each rank */
    void (*use)(rdl_world *world, int from, int rounds);
} plan;

/* What the records take, and the pages of the slots, is there after the first. */
static void measure_growth(rdl_world *world, void *arg)
{
    enum { FIRST = 6000 };
    const plan *p = arg;
    long before;
    double growth;

    p->use(world, 0, FIRST);
    rdl_check_digits(world, RDL_WORLD, 1111);
    before = resident_bytes();
    p->use(world, FIRST, p->rounds);
    growth = (double)(resident_bytes() - before);
    if (rdl_world_rank(world) == 0)
        printf("%d rounds: %.0f bytes more, %.2f each\n", p->rounds, growth,
               growth / p->rounds);
    CHECK(growth <= 65536 + p->most * p->rounds);
    rdl_check_digits(world, RDL_WORLD, 1111);
}

static void test_growth(plan p, int groups)
{
    rdl_test_job job = { .size = RANKS, .processes = true, .groups = groups };

    if (!ALLOCATOR_IS_THE_SYSTEMS)
        SKIP("a sanitizer keeps what is freed");
    rdl_test_worlds(&job, measure_growth, &p);
}

RDL_TEST(opening_using_and_closing_the_same_hundred_leaves_memory_flat)
{
    plan p = { .rounds = rdl_test_soak() ? 100000 : 20000,
               .use = use_a_hundred };

    test_growth(p, 0);
}

/* Each of its own name, once. */
static void use_distinct(rdl_world *world, int from, int rounds)
{
    for (int i = from; i < from + rounds; i++) {
        char name[16];

        snprintf(name, sizeof name, "d%d", i);
        use_group(world, 0, name);
    }
}

RDL_TEST(a_group_that_is_used_once_leaves_32_bytes_at_most)
{
    plan p = { .rounds = rdl_test_soak() ? 100000 : 20000,
               .most = 32,
               .use = use_distinct };

    test_growth(p, 128);
}

/* --- many ranks ------------------------------------------------------------ */

/* Ten groups of sixteen: of 160 ranks each is in one, of 64 in two or three. */
static void meet_in_group(rdl_world *world, int g)
{
    enum { MEMBERS = 16 };
    int size = rdl_world_size(world), rank = rdl_world_rank(world);
    int64_t x = rank, sum = 0;
    bool member = false;
    int list[MEMBERS];
    rdl_group group;

    for (int i = 0; i < MEMBERS; i++) {
        list[i] = (g * MEMBERS + i) % size;
        sum += list[i];
        member |= list[i] == rank;
    }
    if (!member)
        return;
    CHECK_OK(rdl_group_open(world, list, MEMBERS, NULL, &group));
    CHECK_OK(rdl_all_reduce(world, group, &x, &x, 1, RDL_INT64, RDL_SUM, NULL));
    CHECK_INT(x, sum);
}

/* Where rank 0 of each size notes the most descriptors that a rank has. */
static void meet_in_sixteens(rdl_world *world, void *arg)
{
    int64_t descriptors = rdl_test_descriptors();
    rdl_account a;

    for (int g = 0; g < 10; g++)
        meet_in_group(world, g);
    CHECK_INT(rdl_test_descriptors(), descriptors);
    CHECK_OK(rdl_all_reduce(world, RDL_WORLD, &descriptors, &descriptors, 1,
                            RDL_INT64, RDL_MAX, NULL));
    a = read_account(world);
    CHECK_INT(a.descriptors, 1);
    CHECK(a.page_table_bytes >= 4096 * (uint64_t)rdl_world_size(world));
    if (rdl_world_rank(world) == 0)
        *(int64_t *)arg = descriptors;
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
}

RDL_TEST(ranks_by_the_score_have_as_many_descriptors_as_sixteen_have)
{
    static const int sizes[] = { 16, 64, 160 };
    int n =
        ALLOCATOR_IS_THE_SYSTEMS ? 3 : 2; /* of a sanitizer's there is no room */
    int64_t *most = mmap(NULL, 3 * sizeof *most, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    CHECK(most != MAP_FAILED);
    for (int i = 0; i < n; i++) {
        rdl_test_job job = { .size = sizes[i], .processes = true };

        rdl_test_worlds(&job, meet_in_sixteens, &most[i]);
        CHECK_INT(most[i], most[0]);
    }
}
