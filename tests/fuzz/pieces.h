/* Nonsense for a slice, piece by piece out of a fuzzer's input: a byte for the region,
 * two for the place in it in units of 4 bytes, one for the length, and so many bytes. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_FUZZ_PIECES_H
#define RDL_FUZZ_PIECES_H

#include "base/arena.h"
#include "base/layout.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(condition)                                                        \
    ((condition) ? (void)0 : (fprintf(stderr, "%s\n", #condition), abort()))

static inline void write_pieces(rdl_slice *slice, const uint8_t *data,
                                size_t bytes)
{
    static const size_t regions[] = { 0, RDL_TABLE_AT, RDL_SLOTS_AT,
                                      RDL_TEXTS_AT, RDL_RECORDS_AT };

    for (size_t at = 0; at + 4 <= bytes;) {
        size_t to = regions[data[at] % (sizeof regions / sizeof *regions)] +
                    ((size_t)data[at + 1] | (size_t)data[at + 2] << 8) * 4;
        size_t n = data[at + 3];

        at += 4;
        n = n < bytes - at ? n : bytes - at;
        memcpy((char *)slice + to, data + at, n);
        at += n;
    }
}

/* All that was written is gone. */
static inline void wipe_slice(const rdl_arena *arena, int rank)
{
    MUST(fallocate(arena->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                   (off_t)(RDL_HEADER_BYTES + (size_t)rank * RDL_SLICE_BYTES),
                   (off_t)RDL_SLICE_BYTES) == 0);
}

#endif
