/* Blocks and whose they are. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/memory.h"

#include "base/fault.h"
#include "base/layout.h"
#include "support/test.h"

#include <string.h>

RDL_TEST(a_purse_counts_what_is_taken_and_given_back)
{
    rdl_purse purse = { 0 };
    void *zeros = rdl_calloc_for(&purse, 10, 100);
    char *text = rdl_copy_text_for(&purse, "abcdef", 3);
    void *line = rdl_calloc_lines_for(&purse, 65);
    uint64_t bytes = rdl_purse_bytes(&purse);

    CHECK(zeros != NULL && text != NULL && line != NULL);
    CHECK_TEXT(text, "abc");
    CHECK_INT((uintptr_t)line % RDL_CACHE_LINE, 0);
    CHECK_INT((uintptr_t)zeros % _Alignof(max_align_t), 0);
    for (int i = 0; i < 1000; i++)
        CHECK_INT(((char *)zeros)[i], 0);
    CHECK(bytes >= 1000 + 4 + 128 && bytes <= 1000 + 4 + 128 + 3 * 64);
    rdl_free(text);
    CHECK(rdl_purse_bytes(&purse) < bytes);
    rdl_free(zeros);
    rdl_free(line);
    rdl_free(NULL);
    CHECK_INT(rdl_purse_bytes(&purse), 0);
}

RDL_TEST(a_block_that_grows_keeps_its_purse_and_what_it_holds)
{
    rdl_purse purse = { 0 }, other = { 0 };
    char *block = rdl_realloc_for(&purse, NULL, 10);
    uint64_t before = rdl_purse_bytes(&purse);

    CHECK(block != NULL);
    memcpy(block, "123456789", 10);
    block = rdl_realloc_for(&other, block, 5000);
    CHECK(block != NULL);
    CHECK_TEXT(block, "123456789");
    CHECK_INT(rdl_purse_bytes(&purse), before + 4990);
    CHECK_INT(rdl_purse_bytes(&other), 0);
    rdl_free(block);
    CHECK_INT(rdl_purse_bytes(&purse), 0);
}

RDL_TEST(a_block_may_change_its_purse_or_outlive_it)
{
    rdl_purse purse = { 0 }, other = { 0 };
    void *block = rdl_calloc(1, 50);
    uint64_t bytes;

    CHECK(block != NULL);
    rdl_charge(&purse, block);
    bytes = rdl_purse_bytes(&purse);
    CHECK(bytes >= 50);
    rdl_charge(&other, block);
    CHECK_INT(rdl_purse_bytes(&purse), 0);
    CHECK_INT(rdl_purse_bytes(&other), bytes);
    rdl_charge(NULL, block);
    CHECK_INT(rdl_purse_bytes(&other), 0);
    rdl_charge(&other, NULL);
    rdl_free(block);
    CHECK_INT(rdl_purse_bytes(&other), 0);
}

RDL_TEST(a_purse_may_lie_in_its_own_block)
{
    rdl_purse *purse = rdl_calloc(1, sizeof *purse);

    CHECK(purse != NULL);
    rdl_charge(purse, purse);
    CHECK(rdl_purse_bytes(purse) >= sizeof *purse);
    rdl_free(purse);
}

RDL_TEST(sizes_that_overflow_are_no_memory)
{
    rdl_purse purse = { 0 };

    CHECK(rdl_calloc_for(&purse, SIZE_MAX / 2, 3) == NULL);
    CHECK(rdl_calloc_for(&purse, 1, SIZE_MAX - 3) == NULL);
    CHECK(rdl_realloc_for(&purse, NULL, SIZE_MAX - 3) == NULL);
    CHECK_INT(rdl_purse_bytes(&purse), 0);
}

#ifdef RDL_FAULTS
RDL_TEST(what_is_refused_is_not_counted)
{
    rdl_purse purse = { 0 };
    void *block = rdl_calloc_for(&purse, 1, 8);
    uint64_t bytes = rdl_purse_bytes(&purse);
    rdl_fault refuse = { .memory_at = 1, .onward = true };

    rdl_fault_use(&refuse);
    CHECK(rdl_realloc_for(&purse, block, 100) == NULL);
    CHECK(rdl_calloc_for(&purse, 1, 8) == NULL);
    CHECK(rdl_calloc_lines_for(&purse, 8) == NULL);
    rdl_fault_use(NULL);
    CHECK_INT(rdl_purse_bytes(&purse), bytes);
    rdl_free(block);
}
#endif
