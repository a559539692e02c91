/* Blocks and the whole. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/blocks.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/status.h"

#include <string.h>

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t round_up(size_t floats)
{
    return (floats + RDL_PART_ALIGN - 1) / RDL_PART_ALIGN * RDL_PART_ALIGN;
}

/* --- laying out ------------------------------------------------------------ */

static rdl_status check(const rdl_parameter *p, int i)
{
    if (p->name == NULL)
        return rdl_fail(RDL_INVALID, "parameter %d has no name", i);
    if (p->rows == 0 || p->columns == 0)
        return rdl_fail(
            RDL_INVALID,
            "parameter %d, '%.100s', has %zu rows of %zu columns; 1 "
            "is the least",
            i, p->name, p->rows, p->columns);
    return RDL_OK;
}

/* Whether all sizes that follow from these can be counted, with some to spare. */
static bool fits(const rdl_blocks *blocks, size_t chunk, size_t columns)
{
    size_t most = SIZE_MAX / 64 / (size_t)blocks->ranks;

    return chunk <= most / columns && chunk * columns <= most - blocks->block;
}

/* Puts parameter i behind those before it. */
static rdl_status append(rdl_blocks *blocks, const rdl_parameter *from, int i)
{
    rdl_part *p = &blocks->parts[i];
    size_t n = (size_t)blocks->ranks;
    size_t chunk = from->rows / n + (from->rows % n != 0);

    if (!fits(blocks, chunk, from->columns))
        return rdl_fail(
            RDL_INVALID,
            "parameter %d, '%.100s', of %zu rows of %zu columns for "
            "%d ranks: the size overflows",
            i, from->name, from->rows, from->columns, blocks->ranks);
    *p = (rdl_part){
        .name = rdl_copy_text(from->name, strlen(from->name)),
        .rows = from->rows,
        .columns = from->columns,
        .chunk = chunk,
        .in_block = round_up(blocks->block),
        .in_whole = round_up(blocks->whole),
    };
    blocks->block = p->in_block + chunk * p->columns;
    blocks->whole = p->in_whole + p->rows * p->columns;
    return p->name ? RDL_OK : rdl_fail(RDL_NO_MEMORY, "no memory for a name");
}

rdl_status rdl_blocks_init(rdl_blocks *blocks, const rdl_parameter *parameters,
                           int count, int ranks)
{
    *blocks = (rdl_blocks){ .ranks = ranks };
    if (parameters == NULL || count < 1)
        return rdl_fail(RDL_INVALID,
                        "a unit wants at least one parameter, not %d",
                        parameters ? count : 0);
    for (int i = 0; i < count; i++)
        RDL_TRY(check(&parameters[i], i));
    blocks->parts = rdl_calloc((size_t)count, sizeof *blocks->parts);
    if (blocks->parts == NULL)
        return rdl_fail(RDL_NO_MEMORY, "no memory for %d parameters", count);
    blocks->count = count;
    for (int i = 0; i < count; i++)
        RDL_TRY(append(blocks, &parameters[i], i));
    blocks->direct = ranks == 1 || count == 1;
    if (!blocks->direct)
        return RDL_OK;
    blocks->whole = rdl_blocks_floats(blocks);
    for (int i = 0; i < count; i++)
        blocks->parts[i].in_whole = blocks->parts[i].in_block;
    return RDL_OK;
}

void rdl_blocks_charge(rdl_blocks *blocks, rdl_purse *purse)
{
    for (int i = 0; i < blocks->count; i++)
        rdl_charge(purse, blocks->parts[i].name);
    rdl_charge(purse, blocks->parts);
}

void rdl_blocks_fini(rdl_blocks *blocks)
{
    for (int i = 0; i < blocks->count; i++)
        rdl_free(blocks->parts[i].name);
    rdl_free(blocks->parts);
    *blocks = (rdl_blocks){ 0 };
}

/* --- looking and moving ---------------------------------------------------- */

size_t rdl_blocks_floats(const rdl_blocks *blocks)
{
    return blocks->block * (size_t)blocks->ranks;
}

size_t rdl_part_rows(const rdl_part *part, int rank, size_t *first)
{
    *first = smaller((size_t)rank * part->chunk, part->rows);
    return smaller(part->chunk, part->rows - *first);
}

/* One block, which also becomes zero between the parts and behind them. */
static void pack_block(const rdl_blocks *blocks, int rank, const float *whole,
                       float *to)
{
    size_t end = 0;

    for (int i = 0; i < blocks->count; i++) {
        const rdl_part *p = &blocks->parts[i];
        size_t first, floats = rdl_part_rows(p, rank, &first) * p->columns;

        memset(to + end, 0, (p->in_block - end) * sizeof *to);
        memcpy(to + p->in_block, whole + p->in_whole + first * p->columns,
               floats * sizeof *to);
        end = p->in_block + floats;
    }
    memset(to + end, 0, (blocks->block - end) * sizeof *to);
}

void rdl_blocks_pack(const rdl_blocks *blocks, const float *whole, float *to)
{
    for (int rank = 0; rank < blocks->ranks; rank++, to += blocks->block)
        pack_block(blocks, rank, whole, to);
}

void rdl_blocks_unpack(const rdl_blocks *blocks, const float *from, float *whole)
{
    for (int rank = 0; rank < blocks->ranks; rank++, from += blocks->block)
        for (int i = 0; i < blocks->count; i++) {
            const rdl_part *p = &blocks->parts[i];
            size_t first, floats = rdl_part_rows(p, rank, &first) * p->columns;

            memcpy(whole + p->in_whole + first * p->columns, from + p->in_block,
                   floats * sizeof *whole);
        }
}

uint64_t rdl_blocks_fingerprint(const rdl_blocks *blocks)
{
    uint64_t hash = rdl_hash_add(6, (uint64_t)blocks->ranks);

    for (int i = 0; i < blocks->count; i++) {
        const rdl_part *p = &blocks->parts[i];

        hash = rdl_hash_bytes(hash, p->name, strlen(p->name));
        hash = rdl_hash_add(hash, p->rows);
        hash = rdl_hash_add(hash, p->columns);
    }
    return hash;
}

rdl_blocks_name rdl_blocks_say(const rdl_blocks *blocks)
{
    rdl_blocks_name name;
    const char *first = blocks->parts[0].name;

    if (blocks->count == 1)
        snprintf(name.text, sizeof name.text, "'%.90s'", first);
    else
        snprintf(name.text, sizeof name.text, "'%.90s' and %d more", first,
                 blocks->count - 1);
    return name;
}
