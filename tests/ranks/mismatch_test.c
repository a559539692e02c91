/* Ranks that do not make the same call (cases H09, H10): all hear it from that
 * very call, in the same words, and nothing was written. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/world.h"
#include "support/worlds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum kind {
    BARRIER,
    BROADCAST,
    ALL_REDUCE,
    ALL_GATHER,
    REDUCE_SCATTER,
    ALL_TO_ALL
} kind;

typedef struct call {
    kind kind;
    size_t count;
    rdl_dtype dtype;
    rdl_reduction reduction;
    int root;
} call;

/* What most ranks call, what one of them calls, and the words for both. */
typedef struct dispute {
    call most;
    call one;
    const char *most_text;
    const char *one_text;
} dispute;

static const dispute disputes[] = {
    /* H09: counts */
    { { ALL_REDUCE, 409598, RDL_FLOAT32, RDL_SUM, 0 },
      { ALL_REDUCE, 409600, RDL_FLOAT32, RDL_SUM, 0 },
      "all_reduce(409598 float32, sum)",
      "all_reduce(409600 float32, sum)" },
    { { ALL_REDUCE, 2, RDL_FLOAT32, RDL_SUM, 0 },
      { ALL_REDUCE, 1, RDL_FLOAT32, RDL_SUM, 0 },
      "all_reduce(2 float32, sum)",
      "all_reduce(1 float32, sum)" },
    { { ALL_REDUCE, 524288, RDL_FLOAT32, RDL_SUM, 0 },
      { ALL_REDUCE, 262144, RDL_FLOAT32, RDL_SUM, 0 },
      "all_reduce(524288 float32, sum)",
      "all_reduce(262144 float32, sum)" },
    /* H10 a: order; the first of two calls differs */
    { { ALL_REDUCE, 24, RDL_FLOAT32, RDL_SUM, 0 },
      { ALL_REDUCE, 8, RDL_FLOAT32, RDL_SUM, 0 },
      "all_reduce(24 float32, sum)",
      "all_reduce(8 float32, sum)" },
    /* b: kind */
    { { ALL_REDUCE, 1, RDL_INT64, RDL_SUM, 0 },
      { BROADCAST, 1, RDL_INT64, RDL_SUM, 0 },
      "all_reduce(1 int64, sum)",
      "broadcast(1 int64, root 0)" },
    /* c: dtype, of the same bytes */
    { { ALL_REDUCE, 4, RDL_INT32, RDL_SUM, 0 },
      { ALL_REDUCE, 4, RDL_FLOAT32, RDL_SUM, 0 },
      "all_reduce(4 int32, sum)",
      "all_reduce(4 float32, sum)" },
    /* d: root */
    { { BROADCAST, 4, RDL_INT32, RDL_SUM, 1 },
      { BROADCAST, 4, RDL_INT32, RDL_SUM, 0 },
      "broadcast(4 int32, root 1)",
      "broadcast(4 int32, root 0)" },
    /* e: reduction */
    { { ALL_REDUCE, 4, RDL_FLOAT64, RDL_MAX, 0 },
      { ALL_REDUCE, 4, RDL_FLOAT64, RDL_SUM, 0 },
      "all_reduce(4 float64, max)",
      "all_reduce(4 float64, sum)" },
    /* calls of nothing take their turn (H24) */
    { { ALL_GATHER, 5000, RDL_UINT8, RDL_SUM, 0 },
      { ALL_GATHER, 0, RDL_UINT8, RDL_SUM, 0 },
      "all_gather(5000 uint8)",
      "all_gather(0 uint8)" },
    { { BARRIER, 0, RDL_UINT8, RDL_SUM, 0 },
      { REDUCE_SCATTER, 0, RDL_UINT8, RDL_SUM, 0 },
      "barrier",
      "reduce_scatter(0 uint8, sum)" },
    /* the same bytes on the way, another meaning */
    { { ALL_TO_ALL, 3000, RDL_FLOAT32, RDL_SUM, 0 },
      { REDUCE_SCATTER, 3000, RDL_FLOAT32, RDL_MIN, 0 },
      "all_to_all(3000 float32)",
      "reduce_scatter(3000 float32, min)" },
    { { BROADCAST, 100000, RDL_UINT8, RDL_SUM, 0 },
      { BARRIER, 0, RDL_UINT8, RDL_SUM, 0 },
      "broadcast(100000 uint8, root 0)",
      "barrier" },
};

#define N_DISPUTES (sizeof disputes / sizeof *disputes)
#define ROOM ((size_t)4 << 20)
#define UNTOUCHED 0x5a

typedef struct buffers {
    unsigned char *input;
    unsigned char *output;
} buffers;

static rdl_status make_call(rdl_world *world, rdl_group group, const call *c,
                            const buffers *b)
{
    switch (c->kind) {
    case BARRIER:
        break;
    case BROADCAST:
        return rdl_broadcast(world, group, b->output, c->count, c->dtype,
                             c->root, NULL);
    case ALL_REDUCE:
        return rdl_all_reduce(world, group, b->input, b->output, c->count,
                              c->dtype, c->reduction, NULL);
    case ALL_GATHER:
        return rdl_all_gather(world, group, b->input, b->output, c->count,
                              c->dtype, NULL);
    case REDUCE_SCATTER:
        return rdl_reduce_scatter(world, group, b->input, b->output, c->count,
                                  c->dtype, c->reduction, NULL);
    case ALL_TO_ALL:
        return rdl_all_to_all(world, group, b->input, b->output, c->count,
                              c->dtype, NULL);
    }
    return rdl_barrier(world, group, NULL);
}

/* All ranks of the world say the same. */
static void compare_sentences(rdl_world *world, const char *mine)
{
    enum { LONGEST = 1024 };
    int size = rdl_world_size(world);
    char text[LONGEST], *all = malloc((size_t)size * LONGEST);

    CHECK(all != NULL);
    memset(text, 0, sizeof text);
    snprintf(text, sizeof text, "%s", mine);
    CHECK_OK(
        rdl_all_gather(world, RDL_WORLD, text, all, LONGEST, RDL_UINT8, NULL));
    for (int rank = 0; rank < size; rank++)
        CHECK_TEXT(all + rank * LONGEST, mine);
    free(all);
}

static void check_sentence(const char *text, const dispute *d, int odd, int size)
{
    static const char *const others[][4] = {
        { "rank 1: ", "rank 0: " },
        { "ranks 1,2: ", "ranks 0,2: ", "ranks 0,1: " },
        { "ranks 1,2,3: ", "ranks 0,2,3: ", "ranks 0,1,3: ", "ranks 0,1,2: " },
    };
    char part[200];

    if (size == 2)
        CHECK_HAS(text, "no majority; ");
    snprintf(part, sizeof part, "rank %d differs from ranks", odd);
    if (size > 2)
        CHECK_HAS(text, part);
    snprintf(part, sizeof part, "; rank %d: %s", odd, d->one_text);
    CHECK_HAS(text, part);
    snprintf(part, sizeof part, "; %s%s", others[size - 2][odd], d->most_text);
    CHECK_HAS(text, part);
}

/* One dispute on a group of its own, after two calls in which all agree. */
static void dispute_once(rdl_world *world, const dispute *d, int odd,
                         const buffers *b)
{
    static const int all[] = { 0, 1, 2, 3 };
    int rank = rdl_world_rank(world), size = rdl_world_size(world);
    char name[RDL_NAME_MOST + 1], sentence[1024];
    rdl_group group;

    snprintf(name, sizeof name, "%.40s-%d", d->one_text, odd);
    memset(b->output, UNTOUCHED, ROOM);
    CHECK_OK(rdl_group_open(world, all, size, name, &group));
    CHECK_OK(rdl_barrier(world, group, NULL));
    CHECK_OK(rdl_barrier(world, group, NULL));
    CHECK_STATUS(make_call(world, group, rank == odd ? &d->one : &d->most, b),
                 RDL_MISMATCH);
    snprintf(sentence, sizeof sentence, "%s", rdl_error_detail());
    CHECK_HAS(sentence, "mismatch in call #3 on group '");
    check_sentence(sentence, d, odd, size);
    for (size_t i = 0; i < ROOM; i++)
        if (b->output[i] != UNTOUCHED)
            RDL_TEST_FAIL("byte %zu was written", i);

    CHECK_STATUS(rdl_barrier(world, group, NULL), RDL_MISMATCH);
    CHECK_TEXT(rdl_error_detail(), sentence);
    CHECK_STATUS(make_call(world, group, &d->most, b), RDL_MISMATCH);
    CHECK_TEXT(rdl_error_detail(), sentence);
    compare_sentences(world, sentence);
    CHECK_OK(rdl_group_close(world, group)); /* it was reported */
}

static void dispute_all(rdl_world *world, void *arg)
{
    static const int64_t digits[] = { 0, 1, 11, 111, 1111 };
    int size = rdl_world_size(world);
    buffers b = { malloc(ROOM), malloc(ROOM) };

    (void)arg;
    CHECK(b.input != NULL && b.output != NULL);
    memset(b.input, 1, ROOM);
    for (size_t i = 0; i < N_DISPUTES; i++)
        for (int odd = 0; odd<size; odd += size> 2 ? size - 1 : 1) {
            dispute_once(world, &disputes[i], odd, &b);
            rdl_check_digits(world, RDL_WORLD, digits[size]);
        }
    free(b.input);
    free(b.output);
}

RDL_TEST(calls_that_differ_are_a_mismatch_on_all_ranks_and_write_nothing)
{
    for (int size = 2; size <= 4; size++) {
        rdl_test_job job = { .size = size, .staging_bytes = 65536 };

        rdl_test_worlds(&job, dispute_all, NULL);
    }
}

RDL_TEST(calls_of_processes_that_differ_are_a_mismatch_too)
{
    rdl_test_job job = { .size = 3, .processes = true };

    rdl_test_worlds(&job, dispute_all, NULL);
}

/* --- camps ----------------------------------------------------------------- */

#define SITE " at vain.c:7"

static void reduce_in_vain(rdl_world *world, const char *name, size_t count,
                           const char *verdict)
{
    static const int all[] = { 0, 1, 2, 3, 4, 5 };
    int64_t in[8] = { 0 }, out[8];
    rdl_group group;

    CHECK_OK(rdl_group_open(world, all, rdl_world_size(world), name, &group));
    CHECK_STATUS(rdl_all_reduce_at(world, group, in, out, count, RDL_INT64,
                                   RDL_SUM, NULL, "vain.c:7"),
                 RDL_MISMATCH);
    CHECK_HAS(rdl_error_detail(), verdict);
}

static void split_evenly(rdl_world *world, void *arg)
{
    int rank = rdl_world_rank(world);

    (void)arg;
    reduce_in_vain(world, "halves", rank % 2 ? 3 : 2,
                   "no majority; ranks 0,2: all_reduce(2 int64, sum)" SITE
                   "; ranks 1,3: all_reduce(3 int64, sum)" SITE);
    reduce_in_vain(world, "all alone", (size_t)rank + 1,
                   "no majority; rank 0: all_reduce(1 int64, sum)" SITE
                   "; rank 1: all_reduce(2 int64, sum)" SITE "; rank 2: ");
    reduce_in_vain(world, "two and two alone", rank < 2 ? 5 : (size_t)rank,
                   "no majority; ranks 0,1: all_reduce(5 int64, sum)" SITE
                   "; rank 2: ");
}

RDL_TEST(nobody_is_blamed_without_a_majority)
{
    rdl_test_job job = { .size = 4 };

    rdl_test_worlds(&job, split_evenly, NULL);
}

static void split_in_six(rdl_world *world, void *arg)
{
    int rank = rdl_world_rank(world);

    (void)arg;
    reduce_in_vain(world, "four of six", rank == 1 || rank == 4 ? 7 : 2,
                   "ranks 1,4 differ from ranks 0,2,3,5; ranks 0,2,3,5: ");
    reduce_in_vain(world, "each another", (size_t)rank + 1,
                   "; rank 3: all_reduce(4 int64, sum)" SITE
                   "; and 2 more kinds");
}

RDL_TEST(many_camps_are_cut_and_counted)
{
    rdl_test_job job = { .size = 6 };

    rdl_test_worlds(&job, split_in_six, NULL);
}

/* A group's ranks are the world's in the sentence. */
static void differ_in_a_group(rdl_world *world, void *arg)
{
    static const int list[] = { 3, 1, 0 };
    int rank = rdl_world_rank(world);
    int64_t x = 1;
    rdl_group group;

    (void)arg;
    if (rank != 2) {
        CHECK_OK(rdl_group_open(world, list, 3, "turned", &group));
        CHECK_STATUS(rdl_broadcast_at(world, group, &x, 1, RDL_INT64, rank == 3,
                                      NULL, "turned.c:1"),
                     RDL_MISMATCH);
        CHECK_HAS(rdl_error_detail(),
                  "call #1 on group 'turned' [3,1,0]: rank "
                  "3 differs from ranks 1,0; rank 3: "
                  "broadcast(1 int64, root 1) at turned.c:1; ranks 1,0: ");
        CHECK_OK(rdl_group_close(world, group));
        /* The same list and name is the same group, and has failed. */
        CHECK_OK(rdl_group_open(world, list, 3, "turned", &group));
        CHECK_STATUS(rdl_barrier(world, group, NULL), RDL_MISMATCH);
        /* Another name is another. */
        CHECK_OK(rdl_group_open(world, list, 3, "again", &group));
        rdl_check_digits(world, group, 1011);
    }
    rdl_check_digits(world, RDL_WORLD, 1111);
}

RDL_TEST(a_verdict_speaks_of_world_ranks_in_the_groups_order)
{
    rdl_test_job job = { .size = 4 };

    rdl_test_worlds(&job, differ_in_a_group, NULL);
}

/* A rank that has taken a call for done which the others have not made: what it
 * calls next is the same, and is another call all the same. */
static void lose_count(rdl_world *world, void *arg)
{
    int64_t x = 1, sum = UNTOUCHED;
    uint64_t ticket;
    rdl_lane *lane;

    (void)arg;
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    if (rdl_world_rank(world) == 1) {
        CHECK_OK(rdl_registry_enter(world, RDL_WORLD, &lane, &ticket));
        lane->number++;
        rdl_lane_pass_turn(lane, ticket);
    }
    CHECK_STATUS(
        rdl_all_reduce(world, RDL_WORLD, &x, &sum, 1, RDL_INT64, RDL_SUM, NULL),
        RDL_MISMATCH);
    CHECK_TEXT(rdl_test_detail(),
               "mismatch: calls out of order on the world [0,1,2]: rank 1 "
               "differs from ranks 0,2; ranks 0,2 at call #2: all_reduce(1 "
               "int64, sum); rank 1 at call #3: all_reduce(1 int64, sum)");
    CHECK_INT(sum, UNTOUCHED);
}

RDL_TEST(equal_calls_that_are_not_the_same_one_are_out_of_order)
{
    rdl_test_worlds(&(rdl_test_job){ .size = 3 }, lose_count, NULL);
}

/* --- what no call has reported is told at the end --------------------------- */

static void close_without_hearing(rdl_world *world, void *arg)
{
    int64_t x = 1;

    (void)arg;
    CHECK_STATUS(rdl_all_reduce(world, RDL_WORLD, &x, &x,
                                rdl_world_rank(world) == 0 ? 1 : 0, RDL_INT64,
                                RDL_SUM, NULL),
                 RDL_MISMATCH);
    CHECK_STATUS(rdl_group_close(world, RDL_WORLD), RDL_OK);
}

RDL_TEST(a_failure_that_was_reported_is_not_told_again_at_the_end)
{
    rdl_test_job job = { .size = 2 };

    rdl_test_worlds(&job, close_without_hearing, NULL);
}
