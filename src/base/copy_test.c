/* Copies, plain and past the caches: the same bytes, and none beside them. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/copy.h"

#include "support/test.h"

#include <string.h>

#define MOST 1000
#define GUARD 64

static void check_copy(size_t bytes, size_t to, size_t from, bool streaming)
{
    static _Alignas(64) unsigned char source[64 + MOST];
    static _Alignas(64) unsigned char room[GUARD + 64 + MOST + GUARD];
    unsigned char *target = room + GUARD + to;

    for (size_t i = 0; i < sizeof source; i++)
        source[i] = (unsigned char)(i * 7 + bytes);
    memset(room, 0x5a, sizeof room);
    rdl_copy(target, source + from, bytes, streaming);
    CHECK(memcmp(target, source + from, bytes) == 0);
    for (size_t i = 0; i < sizeof room; i++)
        if (room + i < target || room + i >= target + bytes)
            CHECK_INT(room[i], 0x5a);
}

RDL_TEST(a_copy_has_all_its_bytes_and_no_more_wherever_it_lies)
{
    static const size_t bytes[] = { 0, 1, 63, 64, 65, 127, 128, 500, MOST };
    static const size_t shifts[] = { 0, 1, 16, 31, 48, 63 };

    for (size_t b = 0; b < sizeof bytes / sizeof *bytes; b++)
        for (size_t i = 0; i < 6; i++)
            for (size_t k = 0; k < 6; k++) {
                check_copy(bytes[b], shifts[i], shifts[k], false);
                check_copy(bytes[b], shifts[i], shifts[k], true);
            }
}

RDL_TEST(nothing_is_copied_from_nowhere_to_nowhere)
{
    rdl_copy(NULL, NULL, 0, false);
    rdl_copy(NULL, NULL, 0, true);
}
