/* Pieces of mappings that nobody has mapped: only their addresses count. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/pieces.h"

#include "base/fault.h"
#include "base/layout.h"
#include "support/test.h"

#define PIECE ((uintptr_t)1 << RDL_PIECE_SHIFT)
#define AT(bytes) ((const void *)(uintptr_t)(bytes))

static uint64_t tables(rdl_pieces *pieces)
{
    return rdl_pieces_tables(pieces) / RDL_PAGE;
}

RDL_TEST(a_piece_that_is_touched_is_a_table_and_counts_once)
{
    uintptr_t from = 1024 * PIECE;
    rdl_pieces p;

    rdl_pieces_init(&p, AT(from), 600 * PIECE);
    CHECK_INT(tables(&p), 0);
    rdl_pieces_touch(&p, AT(from + 5), 0);
    CHECK_INT(tables(&p), 0);
    rdl_pieces_touch(&p, AT(from + 5), 1);
    CHECK_INT(tables(&p), 2); /* and the one above it */
    rdl_pieces_touch(&p, AT(from), PIECE);
    CHECK_INT(tables(&p), 2);
    rdl_pieces_touch(&p, AT(from + PIECE - 1), 2);
    CHECK_INT(tables(&p), 3);
    rdl_pieces_touch(&p, AT(from + 511 * PIECE), 2 * PIECE);
    CHECK_INT(tables(&p), 6); /* two more, of which one has another above */
    rdl_pieces_fini(&p);
    CHECK_INT(tables(&p), 0);
}

RDL_TEST(a_mapping_need_not_begin_with_a_piece)
{
    uintptr_t from = 7 * PIECE + PIECE / 2;
    rdl_pieces p;

    rdl_pieces_init(&p, AT(from), PIECE);
    rdl_pieces_touch(&p, AT(from), PIECE);
    CHECK_INT(tables(&p), 3);
    rdl_pieces_fini(&p);
}

RDL_TEST(what_lies_outside_of_the_mapping_is_passed_over)
{
    rdl_pieces p;

    rdl_pieces_init(&p, AT(100 * PIECE), 3 * PIECE);
    rdl_pieces_touch(&p, AT(99 * PIECE), 10);
    rdl_pieces_touch(&p, AT(103 * PIECE), 10);
    CHECK_INT(tables(&p), 0);
    rdl_pieces_touch(&p, AT(102 * PIECE), 5 * PIECE);
    CHECK_INT(tables(&p), 2);
    rdl_pieces_fini(&p);
}

#ifdef RDL_FAULTS
RDL_TEST(without_memory_nothing_is_noted)
{
    rdl_fault refuse = { .memory_at = 1 };
    rdl_pieces p;

    rdl_fault_use(&refuse);
    rdl_pieces_init(&p, AT(100 * PIECE), 3 * PIECE);
    rdl_fault_use(NULL);
    rdl_pieces_touch(&p, AT(100 * PIECE), PIECE);
    CHECK_INT(tables(&p), 0);
    rdl_pieces_fini(&p);
}
#endif
