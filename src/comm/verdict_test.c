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

/* The verdict on members that sum these counts. */
static rdl_status judge(const uint64_t *counts, int size)
{
    rdl_description descriptions[64];
    int ranks[64];

    for (int i = 0; i < size; i++) {
        descriptions[i] = sum_of(counts[i]);
        ranks[i] = i;
    }
    return rdl_verdict(descriptions, ranks, size, "group 'dp'",
                       &(rdl_sites){ 0 });
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
            rdl_status st =
                rdl_verdict(descriptions, ranks, size, "g", &(rdl_sites){ 0 });
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

    b.number++;
    b.site = 99;
    CHECK(rdl_fingerprint(&a) == rdl_fingerprint(&b));
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
    rdl_description_text(&d, text, 128);
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
}

/* A description is read from shared memory: whatever stands there is text. */
RDL_TEST(a_description_that_makes_no_sense_is_still_a_text)
{
    rdl_description d;
    char t[128];

    memset(&d, 0xff, sizeof d);
    CHECK_HAS(text_of(d, t), "?");
    d.operation = RDL_OP_ALL_REDUCE;
    CHECK_HAS(text_of(d, t), "all_reduce(18446744073709551615 ?, ?");
}

RDL_TEST(the_sentence_of_a_thousand_ranks_is_cut_and_ends)
{
    static rdl_description descriptions[RDL_MAX_RANKS];
    static int ranks[RDL_MAX_RANKS];

    for (int i = 0; i < RDL_MAX_RANKS; i++) {
        descriptions[i] = sum_of((uint64_t)(i % 7));
        ranks[i] = RDL_MAX_RANKS - 1 - i;
    }
    CHECK_STATUS(rdl_verdict(descriptions, ranks, RDL_MAX_RANKS, "the world",
                             &(rdl_sites){ 0 }),
                 RDL_MISMATCH);
    CHECK_HAS(rdl_error_detail(), "no majority; ranks 1023,1016,");
    CHECK(strlen(rdl_error_detail()) < 1024);
}
