/* RADDLE_WAIT, and what is chosen without it. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/patience.h"

#include "support/test.h"

static rdl_patience read_text(const char *text)
{
    rdl_patience p = { .yields = 777 };

    CHECK_OK(rdl_patience_read(text, &p));
    return p;
}

static void check(rdl_patience p, bool given, rdl_time spin, int yields)
{
    CHECK_INT(p.given, given);
    CHECK_INT(p.spin, spin);
    CHECK_INT(p.yields, yields);
}

RDL_TEST(ranks_with_a_core_each_spin_and_others_yield)
{
    check(rdl_patience_of(2, 2), false, 45000, 0);
    check(rdl_patience_of(1, 16), false, 45000, 0);
    check(rdl_patience_of(3, 2), false, 0, 32);
}

RDL_TEST(a_wait_is_read_as_a_word_or_as_two_numbers)
{
    check(read_text(NULL), false, 0, 0);
    check(read_text(""), false, 0, 0);
    check(read_text("spin"), true, 45000, 0);
    check(read_text("yield"), true, 0, 32);
    check(read_text("sleep"), true, 0, 0);
    check(read_text("0,0"), true, 0, 0);
    check(read_text("100,8"), true, 100000, 8);
    check(read_text("1000000,1000000"), true, 1000000000, 1000000);
}

RDL_TEST(a_wait_that_is_none_is_refused_with_what_is_one)
{
    static const char *const wrong[] = {
        "Spin",
        "spin ",
        "spin,1",
        "5",
        ",",
        "5,",
        ",5",
        "-1,5",
        "5,-1",
        "+1,5",
        " 1,5",
        "1, 5",
        "1,5,6",
        "1,5x",
        "0x10,1",
        "1000001,0",
        "0,1000001",
        "1e3,1",
        "99999999999999999999,1",
    };
    rdl_patience p = { .yields = 777 };

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK_STATUS(rdl_patience_read(wrong[i], &p), RDL_INVALID);
        CHECK_HAS(rdl_error_detail(), wrong[i]);
        CHECK_HAS(rdl_error_detail(), "none of spin, yield, sleep");
        CHECK_INT(p.yields, 777);
    }
}
