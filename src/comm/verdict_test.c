/* Verdicts: who is blamed, and that all ranks say the same. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/verdict.h"

#include "comm/plan.h"
#include "support/test.h"

#include <raddle/collective.h>
#include <raddle/world.h>
#include <string.h>

static rdl_description sum_of(uint64_t count)
{
    return (rdl_description){ .count = count,
                              .number = 417,
                              .operation = RDL_OP_ALL_REDUCE,
                              .dtype = RDL_FLOAT32,
                              .reduction = RDL_SUM };
}

static rdl_status verdict_on(const rdl_description *calls, const int *ranks,
                             int size, const char *group)
{
    return rdl_verdict(&(rdl_published){
        .calls = calls, .ranks = ranks, .size = size, .group = group });
}

/* The verdict on members that sum these counts. */
static rdl_status judge(const uint64_t *counts, int size)
{
    rdl_description descriptions[64];
    int ranks[64];

    for (int i = 0; i < size; i++) {
        descriptions[i] = sum_of(counts[i]);
        ranks[i] = i;
    }
    return verdict_on(descriptions, ranks, size, "group 'dp'");
}

#define JUDGE(...)                                                             \
    judge((const uint64_t[]){ __VA_ARGS__ },                                   \
          sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

RDL_TEST(members_that_agree_have_no_verdict)
{
    CHECK_OK(JUDGE(8, 8));
    CHECK_OK(JUDGE(0, 0, 0, 0, 0));
}

RDL_TEST(a_strict_majority_blames_the_others)
{
    CHECK_STATUS(JUDGE(8, 9, 8), RDL_MISMATCH);
    CHECK_TEXT(rdl_error_detail(),
               "mismatch in call #417 on group 'dp': rank 1 differs from ranks "
               "0,2; ranks 0,2: all_reduce(8 float32, sum); rank 1: "
               "all_reduce(9 float32, sum)");
    CHECK_STATUS(JUDGE(409600, 409598, 409598, 409598), RDL_MISMATCH);
    CHECK_HAS(rdl_error_detail(), "rank 0 differs from ranks 1,2,3; rank 0: "
                                  "all_reduce(409600 float32, sum); ranks "
                                  "1,2,3: all_reduce(409598 float32, sum)");
    CHECK_STATUS(JUDGE(8, 8, 8, 1, 2), RDL_MISMATCH);
    CHECK_HAS(rdl_error_detail(), "ranks 3,4 differ from ranks 0,1,2; ");
}

RDL_TEST(without_a_strict_majority_nobody_is_blamed)
{
    CHECK_STATUS(JUDGE(8, 9), RDL_MISMATCH);
    CHECK_HAS(rdl_error_detail(), "no majority; rank 0: ");
    CHECK_STATUS(JUDGE(8, 9, 8, 9), RDL_MISMATCH);
    CHECK_HAS(rdl_error_detail(), "no majority; ranks 0,2: ");
    CHECK_STATUS(JUDGE(8, 8, 9, 7), RDL_MISMATCH);
    CHECK_HAS(rdl_error_detail(), "no majority; ranks 0,1: ");
    CHECK(strstr(rdl_error_detail(), "differ") == NULL);
}

/* Each rank computes it, from what all published, in the list's order. */
RDL_TEST(a_verdict_is_the_same_whoever_computes_it)
{
    uint64_t seed = rdl_test_seed();

    for (int round = 0; round < 200; round++) {
        rdl_description descriptions[9];
        int ranks[9], size = 2 + (int)(rdl_test_random(&seed) % 8);
        char first[1024] = "";

        for (int i = 0; i < size; i++) {
            ranks[i] = 100 - i;
            descriptions[i] = sum_of(rdl_test_random(&seed) % 3);
        }
        for (int rank = 0; rank < size; rank++) {
            rdl_status st = verdict_on(descriptions, ranks, size, "g");
            const char *text = st == RDL_OK ? "" : rdl_error_detail();

            if (rank > 0)
                CHECK_TEXT(text, first);
            strcpy(first, text);
        }
    }
}

/* What must agree makes a difference, and what need not does not. */
RDL_TEST(a_fingerprint_tells_apart_what_must_agree)
{
    rdl_description a = sum_of(4), b = a;

    b.site = 99;
    b.receives = 1;
    CHECK(rdl_fingerprint(&a) == rdl_fingerprint(&b));
    b = a, b.number++;
    CHECK(rdl_fingerprint(&a) != rdl_fingerprint(&b));
    b = a, b.count++;
    CHECK(rdl_fingerprint(&a) != rdl_fingerprint(&b));
    b = a, b.root++;
    CHECK(rdl_fingerprint(&a) != rdl_fingerprint(&b));
    b = a, b.operation++;
    CHECK(rdl_fingerprint(&a) != rdl_fingerprint(&b));
    b = a, b.dtype++;
    CHECK(rdl_fingerprint(&a) != rdl_fingerprint(&b));
    b = a, b.reduction++;
    CHECK(rdl_fingerprint(&a) != rdl_fingerprint(&b));
}

RDL_TEST(fingerprints_of_many_calls_are_all_different_and_never_0)
{
    enum { COUNTS = 40, N = COUNTS * 6 * 5 * 2 };
    static uint64_t seen[N];
    int n = 0;

    for (int count = 0; count < COUNTS; count++)
        for (int operation = 0; operation < 6; operation++)
            for (int dtype = 0; dtype < 5; dtype++)
                for (int root = 0; root < 2; root++) {
                    rdl_description d = { .count = (uint64_t)count,
                                          .operation = (uint8_t)operation,
                                          .dtype = (uint8_t)dtype,
                                          .root = root };

                    seen[n++] = rdl_fingerprint(&d);
                }
    for (int i = 0; i < N; i++) {
        CHECK(seen[i] != 0);
        for (int j = 0; j < i; j++)
            CHECK(seen[i] != seen[j]);
    }
}

static const char *text_of(rdl_description d, char text[128])
{
    rdl_description_text(&d, NULL, text, 128);
    return text;
}

RDL_TEST(a_description_reads_like_its_call)
{
    rdl_description d = { .count = 8, .dtype = RDL_INT64, .root = 1 };
    char t[128];

    d.operation = RDL_OP_BARRIER;
    CHECK_TEXT(text_of(d, t), "barrier");
    d.operation = RDL_OP_BROADCAST;
    CHECK_TEXT(text_of(d, t), "broadcast(8 int64, root 1)");
    d.operation = RDL_OP_ALL_GATHER;
    CHECK_TEXT(text_of(d, t), "all_gather(8 int64)");
    d.operation = RDL_OP_ALL_TO_ALL;
    CHECK_TEXT(text_of(d, t), "all_to_all(8 int64)");
    d.operation = RDL_OP_REDUCE_SCATTER;
    d.reduction = RDL_AVG;
    CHECK_TEXT(text_of(d, t), "reduce_scatter(8 int64, avg)");
    d.operation = RDL_OP_REDUCE;
    CHECK_TEXT(text_of(d, t), "reduce(8 int64, root 1, avg)");
    d.operation = RDL_OP_SEND_RECV;
    CHECK_TEXT(text_of(d, t), "send(8 int64)");
    d.receives = 1;
    CHECK_TEXT(text_of(d, t), "receive(8 int64)");
    d.operation = RDL_OP_ALL_TO_ALL_V;
    CHECK_TEXT(text_of(d, t), "all_to_all_v(int64)");
    d.operation = RDL_OP_ALL_GATHER_V;
    d.detail = 1;
    CHECK_TEXT(text_of(d, t), "all_gather_v(8 int64 in all)");
}

/* --- lists of counts -------------------------------------------------------- */

RDL_TEST(a_list_of_counts_is_shown_and_a_long_one_is_cut)
{
    rdl_description d = { .count = 4,
                          .operation = RDL_OP_REDUCE_SCATTER_V,
                          .dtype = RDL_INT32,
                          .detail = 1 };
    rdl_counts four = { { 0, 3, 1, 0 }, .shown = 4, .size = 4 };
    rdl_counts many = { { 1, 2 }, .shown = RDL_COUNTS_SHOWN, .size = 17 };
    char t[256];

    rdl_description_text(&d, &four, t, sizeof t);
    CHECK_TEXT(t, "reduce_scatter_v(4 int32 in all, counts [0,3,1,0], sum)");
    rdl_description_text(&d, &many, t, sizeof t);
    CHECK_TEXT(t, "reduce_scatter_v(4 int32 in all, counts "
                  "[1,2,0,0,0,0,0,0,0,0,0,0,0,0,0,0,...], sum)");
    many.size = RDL_COUNTS_SHOWN;
    rdl_description_text(&d, &many, t, sizeof t);
    CHECK_HAS(t, "0,0], sum)");
}

/* Member i gathers the counts 10 + i, 1. */
static void read_counts(const void *arg, int member, rdl_counts *counts)
{
    (void)arg;
    *counts = (rdl_counts){ { 10 + (uint64_t)member, 1 }, 2, 2 };
}

RDL_TEST(a_verdict_shows_the_list_of_each_camp)
{
    rdl_description d = {
        .count = 11, .number = 2, .operation = RDL_OP_ALL_GATHER_V, .detail = 1
    };
    rdl_description both[] = { d, d };
    rdl_published p = { .calls = both,
                        .ranks = (const int[]){ 4, 7 },
                        .size = 2,
                        .group = "g",
                        .read_counts = read_counts };

    both[1].count = 12;
    both[1].detail = 3;
    CHECK_STATUS(rdl_verdict(&p), RDL_MISMATCH);
    CHECK_TEXT(rdl_error_detail(),
               "mismatch in call #2 on g: no majority; rank 4: all_gather_v(11 "
               "uint8 in all, counts [10,1]); rank 7: all_gather_v(12 uint8 in "
               "all, counts [11,1])");
}

/* --- pairs ------------------------------------------------------------------ */

static rdl_status judge_pairs(const uint64_t *table)
{
    static const rdl_description calls[3] = {
        { .number = 5, .operation = RDL_OP_ALL_TO_ALL_V, .dtype = RDL_INT64 }
    };

    return rdl_verdict_on_pairs(
        table, &(rdl_published){ .calls = calls,
                                 .ranks = (const int[]){ 2, 4, 9 },
                                 .size = 3,
                                 .group = "g" });
}

RDL_TEST(pairs_that_agree_have_no_verdict)
{
    static const uint64_t table[] = { 1, 2, 3, 1, 4, 7, 4, 5, 6,
                                      2, 5, 8, 7, 8, 9, 3, 6, 9 };

    CHECK_OK(judge_pairs(table));
}

RDL_TEST(a_pair_that_differs_is_shown_with_all_that_both_said)
{
    uint64_t table[] = { 1, 2, 3, 1, 4, 7, 4, 5, 6, 2, 5, 8, 7, 8, 9, 3, 6, 9 };

    table[9] = 0; /* what the second expects of the first */
    CHECK_STATUS(judge_pairs(table), RDL_MISMATCH);
    CHECK_TEXT(
        rdl_error_detail(),
        "mismatch in call #5 on g: all_to_all_v: rank 2 sends 2 elements "
        "to rank 4, which expects 0; rank 2: all_to_all_v(int64, sends "
        "[1,2,3], expects [1,4,7]); rank 4: all_to_all_v(uint8, sends "
        "[4,5,6], expects [0,5,8])");
    table[17] = 8; /* the third, of itself */
    CHECK_STATUS(judge_pairs(table), RDL_MISMATCH);
    CHECK_HAS(rdl_error_detail(), "[0,5,8]); and 1 more pair differs");
}

/* --- order ------------------------------------------------------------------ */

RDL_TEST(who_is_at_another_call_of_the_group_is_named_with_both_numbers)
{
    rdl_description calls[] = { sum_of(8), sum_of(8), sum_of(8) };
    static const int ranks[] = { 0, 1, 2 };

    calls[1].number = 418;
    CHECK_STATUS(verdict_on(calls, ranks, 3, "the world"), RDL_MISMATCH);
    CHECK_TEXT(rdl_error_detail(),
               "mismatch: calls out of order on the world: rank 1 differs from "
               "ranks 0,2; ranks 0,2 at call #417: all_reduce(8 float32, sum); "
               "rank 1 at call #418: all_reduce(8 float32, sum)");
    CHECK_STATUS(verdict_on(calls, ranks, 2, "the world"), RDL_MISMATCH);
    CHECK_HAS(rdl_error_detail(), "no majority; rank 0 at call #417: ");
}

RDL_TEST(two_ends_of_a_transfer_are_shown_side_by_side)
{
    rdl_description d = { .count = 3,
                          .number = 1,
                          .operation = RDL_OP_SEND_RECV,
                          .dtype = RDL_FLOAT32 };
    rdl_description ends[] = { d, d };

    ends[1].receives = 1;
    CHECK_OK(verdict_on(ends, (const int[]){ 0, 1 }, 2, "a way"));
    ends[1].count = 4;
    CHECK_STATUS(verdict_on(ends, (const int[]){ 0, 1 }, 2, "a way"),
                 RDL_MISMATCH);
    CHECK_TEXT(rdl_error_detail(),
               "mismatch in call #1 on a way: rank 0: send(3 float32); rank 1: "
               "receive(4 float32)");
}

/* A description is read from shared memory: whatever stands there is text. */
RDL_TEST(a_description_that_makes_no_sense_is_still_a_text)
{
    rdl_description d;
    char t[128];

    memset(&d, 0xff, sizeof d);
    CHECK_HAS(text_of(d, t), "?");
    d.operation = RDL_OP_ALL_REDUCE;
    CHECK_HAS(text_of(d, t), "all_reduce(18446744073709551615 ? in all, ?");
}

RDL_TEST(the_sentence_of_a_thousand_ranks_is_cut_and_ends)
{
    static rdl_description descriptions[RDL_MAX_RANKS];
    static int ranks[RDL_MAX_RANKS];

    for (int i = 0; i < RDL_MAX_RANKS; i++) {
        descriptions[i] = sum_of((uint64_t)(i % 7));
        ranks[i] = RDL_MAX_RANKS - 1 - i;
    }
    CHECK_STATUS(verdict_on(descriptions, ranks, RDL_MAX_RANKS, "the world"),
                 RDL_MISMATCH);
    CHECK_HAS(rdl_error_detail(), "no majority; ranks 1023,1016,");
    CHECK(strlen(rdl_error_detail()) < 1024);
}
