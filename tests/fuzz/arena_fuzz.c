/* A file that is handed over as an arena, and texts in a slice of one.
 *
 * Input: a byte of flags, a byte for the number of ranks in the file's length, and
 * the beginning of the header. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/slice.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MUST(condition)                                                        \
    ((condition) ? (void)0 : (fprintf(stderr, "%s\n", #condition), abort()))

enum { SEALED = 1, RIGHT_MAGIC = 2, RIGHT_LAYOUT = 4, ODD_LENGTH = 8 };

static void write_header(int fd, unsigned flags, const uint8_t *data, size_t n)
{
    union {
        unsigned char bytes[offsetof(rdl_header, failed)];
        struct {
            uint64_t magic;
            uint64_t layout;
        } start;
    } header = { { 0 } };

    memcpy(header.bytes, data, n < sizeof header ? n : sizeof header);
    if (flags & RIGHT_MAGIC)
        header.start.magic = RDL_MAGIC;
    if (flags & RIGHT_LAYOUT)
        header.start.layout = rdl_layout_hash();
    MUST(pwrite(fd, header.bytes, sizeof header, 0) == sizeof header);
}

/* The words of a text, read as a peer would. */
static void read_texts(rdl_arena *arena, const uint8_t *data, size_t bytes)
{
    rdl_slice *slice = rdl_arena_slice(arena, arena->size - 1);
    char text[64];

    for (size_t at = 0; at + 12 <= bytes; at += 12) {
        uint32_t offset;
        uint64_t length;

        memcpy(&offset, data + at, sizeof offset);
        memcpy(&length, data + at + 4, sizeof length);
        offset %= RDL_TEXTS_BYTES / 64;
        *(uint64_t *)(void *)((char *)slice + RDL_TEXTS_AT +
                              (size_t)offset * 64) = length;
        MUST(rdl_slice_read_text(slice, offset * 64, text, sizeof text) <=
             sizeof text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    size_t length;
    rdl_arena arena;
    rdl_status st;
    int fd;

    if (bytes < 2)
        return 0;
    length = RDL_HEADER_BYTES + data[1] % 4u * RDL_SLICE_BYTES +
             (data[0] & ODD_LENGTH ? 4096 : 0);
    fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    MUST(fd >= 0 && ftruncate(fd, (off_t)length) == 0);
    write_header(fd, data[0], data + 2, bytes - 2);
    if (data[0] & SEALED)
        MUST(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0);
    st = rdl_arena_map(&arena, fd);
    if (st != RDL_OK) {
        MUST(st == RDL_FORMAT || st == RDL_MISMATCH);
        MUST(rdl_error_detail()[0] != 0);
        close(fd);
        return 0;
    }
    MUST(data[0] & SEALED);
    MUST(arena.bytes + (size_t)arena.size * arena.heap_bytes == length);
    read_texts(&arena, data + 2, bytes - 2);
    rdl_arena_unmap(&arena);
    return 0;
}
