/* Layouts: every row has one owner, and packing loses none. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/blocks.h"
#include "support/test.h"

#include <math.h>
#include <stdlib.h>

static size_t rows_at(size_t rows, int ranks, int rank)
{
    rdl_parameter parameter = { "w", rows, 1 };
    rdl_blocks blocks;
    size_t first, n;

    CHECK_OK(rdl_blocks_init(&blocks, &parameter, 1, ranks));
    n = rdl_part_rows(&blocks.parts[0], rank, &first);
    rdl_blocks_fini(&blocks);
    return n;
}

RDL_TEST(chunks_have_ceil_of_rows_over_ranks_rows)
{
    static const size_t five[] = { 2, 2, 1, 0 }, nine[] = { 3, 3, 3, 0 };

    for (int rank = 0; rank < 4; rank++) {
        CHECK_INT(rows_at(5, 4, rank), five[rank]);
        CHECK_INT(rows_at(9, 4, rank), nine[rank]);
    }
    for (int rank = 0; rank < 32; rank++)
        CHECK_INT(rows_at(8, 32, rank), rank < 8);
}

/* Fills the whole with 1, 2, ... where there are rows and with NaN where there are
 * none, unless the layout is direct. */
static float *fill(const rdl_blocks *blocks)
{
    float *whole = calloc(blocks->whole, sizeof *whole), value = 1;

    CHECK(whole != NULL);
    for (size_t i = 0; i < blocks->whole; i++)
        whole[i] = blocks->direct ? 0 : NAN;
    for (int i = 0; i < blocks->count; i++) {
        const rdl_part *p = &blocks->parts[i];

        for (size_t k = 0; k < p->rows * p->columns; k++)
            whole[p->in_whole + k] = value++;
    }
    return whole;
}

/* Everything that is in the blocks is a row's value in its place, or zero. */
static void check_blocks(const rdl_blocks *blocks, const float *whole,
                         const float *packed)
{
    size_t floats = rdl_blocks_floats(blocks), values = 0, used = 0;

    for (int rank = 0; rank < blocks->ranks; rank++)
        for (int i = 0; i < blocks->count; i++) {
            const rdl_part *p = &blocks->parts[i];
            size_t first, rows = rdl_part_rows(p, rank, &first);
            const float *at =
                packed + (size_t)rank * blocks->block + p->in_block;

            for (size_t k = 0; k < rows * p->columns; k++)
                CHECK(at[k] == whole[p->in_whole + first * p->columns + k]);
            used += rows * p->columns;
        }
    for (size_t i = 0; i < floats; i++)
        values += packed[i] != 0; /* NaN would count, too */
    CHECK_INT(values, used);
}

static void there_and_back(const rdl_parameter *parameters, int count, int ranks)
{
    rdl_blocks blocks;
    float *whole, *packed, *back;

    CHECK_OK(rdl_blocks_init(&blocks, parameters, count, ranks));
    CHECK_INT(blocks.direct, ranks == 1 || count == 1);
    whole = fill(&blocks);
    packed = malloc(rdl_blocks_floats(&blocks) * sizeof *packed);
    back = calloc(blocks.whole, sizeof *back);
    CHECK(packed != NULL && back != NULL);
    for (size_t i = 0; i < rdl_blocks_floats(&blocks); i++)
        packed[i] = NAN;
    rdl_blocks_pack(&blocks, whole, packed);
    check_blocks(&blocks, whole, packed);
    rdl_blocks_unpack(&blocks, packed, back);
    for (int i = 0; i < count; i++) {
        const rdl_part *p = &blocks.parts[i];

        CHECK_INT(p->in_whole % RDL_PART_ALIGN, 0);
        for (size_t k = 0; k < p->rows * p->columns; k++)
            CHECK(back[p->in_whole + k] == whole[p->in_whole + k]);
    }
    for (size_t i = 0; i < blocks.whole && blocks.direct; i++)
        CHECK(whole[i] == packed[i]);
    free(whole);
    free(packed);
    free(back);
    rdl_blocks_fini(&blocks);
}

RDL_TEST(what_is_packed_and_unpacked_is_as_before)
{
    static const size_t rows[] = { 1, 2, 5, 7, 16, 17 };
    rdl_parameter all[6];

    for (int i = 0; i < 6; i++)
        all[i] = (rdl_parameter){ "w", rows[i], i % 2 ? 16 : 3 };
    for (int ranks = 1; ranks <= 9; ranks++)
        for (int i = 0; i < 6; i++)
            for (int count = 1; i + count <= 6; count++)
                there_and_back(&all[i], count, ranks);
}

static uint64_t fingerprint(const char *name, size_t rows, size_t columns,
                            int ranks)
{
    rdl_parameter parameters[] = { { name, rows, columns }, { "b", 1, 1 } };
    rdl_blocks blocks;
    uint64_t print;

    CHECK_OK(rdl_blocks_init(&blocks, parameters, 2, ranks));
    print = rdl_blocks_fingerprint(&blocks);
    rdl_blocks_fini(&blocks);
    return print;
}

RDL_TEST(units_that_differ_have_other_fingerprints)
{
    uint64_t print = fingerprint("w", 4, 2, 2);

    CHECK(print == fingerprint("w", 4, 2, 2));
    CHECK(print != fingerprint("v", 4, 2, 2));
    CHECK(print != fingerprint("w", 2, 4, 2));
    CHECK(print != fingerprint("w", 4, 2, 4));
}

static void refuse(const rdl_parameter *parameters, int count, int ranks,
                   const char *part)
{
    rdl_blocks blocks;

    CHECK_STATUS(rdl_blocks_init(&blocks, parameters, count, ranks),
                 RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), part);
    rdl_blocks_fini(&blocks);
}

RDL_TEST(a_parameter_that_cannot_be_is_refused_with_the_numbers)
{
    size_t half = SIZE_MAX / 2 + 1;

    refuse((rdl_parameter[]){ { "w", 0, 3 } }, 1, 2,
           "'w', has 0 rows of 3 columns");
    refuse((rdl_parameter[]){ { "w", 3, 0 } }, 1, 2,
           "'w', has 3 rows of 0 columns");
    refuse((rdl_parameter[]){ { NULL, 3, 3 } }, 1, 2, "parameter 0 has no name");
    refuse((rdl_parameter[]){ { "a", 3, 3 }, { "w", half, 2 } }, 2, 2,
           "parameter 1, 'w', of 9223372036854775808 rows of 2 columns for 2 "
           "ranks: the size overflows");
    refuse((rdl_parameter[]){ { "w", SIZE_MAX, 1 } }, 1, 1, "overflows");
    refuse((rdl_parameter[]){ { "w", 1, SIZE_MAX / 4 } }, 1, 1, "overflows");
    /* Each alone would do. */
    refuse((rdl_parameter[]){ { "a", 1, SIZE_MAX / 80 },
                              { "b", 1, SIZE_MAX / 80 } },
           2, 1, "'b'");
    refuse(NULL, 1, 1, "at least one parameter");
    refuse((rdl_parameter[]){ { "w", 1, 1 } }, 0, 1,
           "at least one parameter, not 0");
}
