/* How the parameters of a unit lie in memory; two layouts, in floats.
 *
 * A *block* is what one rank keeps: its chunk of every parameter, one behind the
 * other, each filled up with zero rows to ceil(rows / ranks). The blocks of all
 * ranks, in order, are what collectives move.
 * The *whole* is what a model wants: every parameter with all its rows in order.
 *
 * Between them rows are copied, unless the layout is *direct*: the chunks of a
 * lone parameter are its rows already, and so is the block of a lone rank. Then
 * the whole is the blocks, zero rows included.
 *
 * Nothing here knows of worlds or memory but its own list. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_PARALLEL_BLOCKS_H
#define RDL_PARALLEL_BLOCKS_H

#include "base/memory.h"

#include <raddle/fsdp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Parameters begin at multiples of this, for the sake of vector instructions. */
#define RDL_PART_ALIGN 16

typedef struct rdl_part {
    char *name;
    size_t rows;
    size_t columns;
    size_t chunk;    /* rows of a rank, zero rows included */
    size_t in_block; /* where it begins in a block */
    size_t in_whole; /* where it begins in the whole */
} rdl_part;

typedef struct rdl_blocks {
    int ranks;
    int count;
    rdl_part *parts;
    size_t block; /* floats of one block */
    size_t whole; /* floats of the whole */
    bool direct;
} rdl_blocks;

/* RDL_INVALID: there is no parameter, one has no name, rows or columns, or the
 * size overflows. RDL_NO_MEMORY. Wants fini even if it fails. */
rdl_status rdl_blocks_init(rdl_blocks *blocks, const rdl_parameter *parameters,
                           int count, int ranks);
void rdl_blocks_fini(rdl_blocks *blocks);

/* Their memory is the purse's from now on. */
void rdl_blocks_charge(rdl_blocks *blocks, rdl_purse *purse);

/* The floats of all blocks together. */
size_t rdl_blocks_floats(const rdl_blocks *blocks);

/* The rows of the part that rank has, and the first of them. */
size_t rdl_part_rows(const rdl_part *part, int rank, size_t *first);

/* From the whole to blocks, with zeros wherever there is no row, and back. */
void rdl_blocks_pack(const rdl_blocks *blocks, const float *whole, float *to);
void rdl_blocks_unpack(const rdl_blocks *blocks, const float *from,
                       float *whole);

/* Equal where names, sizes and ranks are; else different, almost surely. */
uint64_t rdl_blocks_fingerprint(const rdl_blocks *blocks);

/* "'w'", or "'w' and 3 more". */
typedef struct rdl_blocks_name {
    char text[128];
} rdl_blocks_name;
rdl_blocks_name rdl_blocks_say(const rdl_blocks *blocks);

#endif
