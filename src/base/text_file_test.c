/* Small files: what cannot be read is empty, what is no number is none. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/text_file.h"

#include "base/fault.h"
#include "support/test.h"
#include "support/tree.h"

#include <errno.h>

RDL_TEST(a_text_is_read_and_cut_to_its_buffer)
{
    test_tree t = tree_open();
    char whole[64];
    char part[4];

    tree_put(&t, "/a/b7", "12345\n");
    CHECK_OK(rdl_read_text(whole, sizeof whole, t.root, "/a/b%d", 7));
    CHECK_TEXT(whole, "12345\n");
    CHECK_OK(rdl_read_text(part, sizeof part, t.root, "/a/b7"));
    CHECK_TEXT(part, "123");
    tree_close(&t);
}

RDL_TEST(what_cannot_be_read_is_an_empty_text)
{
    test_tree t = tree_open();
    char text[64] = "before";
    char path[2 * RDL_PATH_MOST];

    CHECK_OK(rdl_read_text(text, sizeof text, t.root, "/nothing"));
    CHECK_TEXT(text, "");
    tree_put(&t, "/folder/file", "x");
    CHECK_OK(rdl_read_text(text, sizeof text, t.root, "/folder"));
    CHECK_TEXT(text, "");
    memset(path, 'x', sizeof path);
    path[sizeof path - 1] = 0;
    CHECK_OK(rdl_read_text(text, sizeof text, t.root, "/%s", path));
    CHECK_TEXT(text, "");
    CHECK_OK(rdl_read_text(text, sizeof text, path, "/file"));
    CHECK_TEXT(text, "");
    tree_close(&t);
}

RDL_TEST(a_number_ends_where_its_digits_do)
{
    uint64_t number = 7;

    CHECK_TEXT(rdl_parse_number("42 rest", &number), " rest");
    CHECK_INT(number, 42);
    CHECK_TEXT(rdl_parse_number(" \t0\n", &number), "\n");
    CHECK_INT(number, 0);
    CHECK_TEXT(rdl_parse_number("18446744073709551615", &number), "");
    CHECK(number == UINT64_MAX);
}

RDL_TEST(what_is_no_number_leaves_it_untouched)
{
    const char *const texts[] = { "",
                                  "max",
                                  "-1",
                                  "+1",
                                  "\n1",
                                  "x1",
                                  "18446744073709551616",
                                  "99999999999999999999999" };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        uint64_t number = 7;

        CHECK(rdl_parse_number(texts[i], &number) == NULL);
        CHECK_INT(number, 7);
    }
}

#ifdef RDL_FAULTS
RDL_TEST(no_descriptor_left_is_a_failure_and_no_right_is_not)
{
    rdl_fault shortage = { .os_at = 1, .os_error = EMFILE };
    rdl_fault refusal = { .os_at = 1, .os_error = EACCES };
    char text[64];

    rdl_fault_use(&shortage);
    CHECK_STATUS(rdl_read_text(text, sizeof text, "", "/proc/version"),
                 RDL_SYSTEM);
    CHECK_HAS(rdl_error_detail(), "/proc/version");
    CHECK_HAS(rdl_error_detail(), "EMFILE");
    rdl_fault_use(&refusal);
    CHECK_OK(rdl_read_text(text, sizeof text, "", "/proc/version"));
    CHECK_TEXT(text, "");
    rdl_fault_use(NULL);
}
#endif
