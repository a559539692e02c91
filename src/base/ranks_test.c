/* Lists of ranks as people read them. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/ranks.h"

#include "support/test.h"

#include <string.h>

typedef struct text {
    char bytes[512];
} text;

static text list(const int *ranks, int count)
{
    text t;
    rdl_text into = { t.bytes, sizeof t.bytes };

    rdl_text_add_ranks(&into, ranks, count);
    CHECK_INT(into.left, sizeof t.bytes - strlen(t.bytes));
    return t;
}

#define LIST(...)                                                              \
    list((const int[]){ __VA_ARGS__ },                                         \
         sizeof((const int[]){ __VA_ARGS__ }) / sizeof(int))                   \
        .bytes

RDL_TEST(few_ranks_are_named_and_runs_of_more_than_four_are_joined)
{
    CHECK_TEXT(LIST(3), "3");
    CHECK_TEXT(LIST(0, 1, 2, 3), "0,1,2,3");
    CHECK_TEXT(LIST(0, 1, 2, 3, 4), "0-4");
    CHECK_TEXT(LIST(5, 6, 7, 8, 9, 2, 11, 12), "5-9,2,11,12");
    CHECK_TEXT(LIST(3, 2, 1, 0), "3,2,1,0"); /* the list's order is kept */
    CHECK_TEXT(LIST(9, 0, 1, 2, 3, 4, 5, 1023), "9,0-5,1023");
}

RDL_TEST(a_long_list_is_cut_and_counted)
{
    int even[64];
    text t;

    for (int i = 0; i < 64; i++)
        even[i] = 2 * i;
    t = list(even, 64);
    CHECK_HAS(t.bytes, "0,2,4,6,");
    CHECK_HAS(t.bytes, ",46,... (64)");
    CHECK(strstr(t.bytes, "48") == NULL);
    t = list(even, 24); /* just as many as are shown */
    CHECK(strstr(t.bytes, "...") == NULL);
}

RDL_TEST(all_ranks_of_the_largest_world_are_one_run)
{
    int all[1024];

    for (int i = 0; i < 1024; i++)
        all[i] = i;
    CHECK_TEXT(list(all, 1024).bytes, "0-1023");
}

RDL_TEST(one_rank_and_several_have_their_own_word)
{
    static const int ranks[] = { 1, 2, 3 };
    text t;
    rdl_text into = { t.bytes, sizeof t.bytes };

    rdl_text_add_these_ranks(&into, ranks, 1);
    rdl_text_add(&into, " and ");
    rdl_text_add_these_ranks(&into, ranks, 3);
    CHECK_TEXT(t.bytes, "rank 1 and ranks 1,2,3");
}

RDL_TEST(a_text_is_cut_at_its_end_and_always_ends)
{
    char bytes[8];
    rdl_text into = { bytes, sizeof bytes };

    memset(bytes, 'x', sizeof bytes);
    rdl_text_add(&into, "%s", "12345");
    CHECK_TEXT(bytes, "12345");
    rdl_text_add(&into, "%s", "6789");
    CHECK_TEXT(bytes, "1234567");
    rdl_text_add(&into, "more");
    CHECK_TEXT(bytes, "1234567");
    CHECK_INT(into.left, 1);
}

RDL_TEST(a_text_of_no_room_is_left_alone)
{
    char byte = 'x';
    rdl_text into = { &byte, 0 };

    rdl_text_add(&into, "anything");
    CHECK_INT(byte, 'x');
    CHECK_INT(into.left, 0);
}
