/* Random calls, replayed on plain arrays: every member gets exactly its part.
 *
 * Input: operation, members, root, order, in place or not (a byte each), bytes and
 * window (two bytes each); then the blocks of an uneven call (a byte each, and over
 * again). */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/replay.h"

#include <stdio.h>

#define HEAD 9

static size_t two_bytes(const uint8_t *data)
{
    return (size_t)data[0] | (size_t)data[1] << 8;
}

/* Each up to some 8,000 bytes. */
static void fill_blocks(rdl_replay_call *call, const uint8_t *data, size_t bytes)
{
    for (size_t i = 0; i < RDL_REPLAY_MOST; i++)
        for (size_t j = 0; j < RDL_REPLAY_MOST; j++) {
            size_t at = (i * RDL_REPLAY_MOST + j) % (bytes > 0 ? bytes : 1);
            size_t x = bytes > 0 ? data[at] : 0;

            call->blocks[i][j] = x < 200 ? x : (x - 200) * 150;
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static rdl_replay_call call;
    rdl_shape *s = &call.shape;
    const char *wrong;

    if (bytes < HEAD)
        return 0;
    s->operation = (rdl_operation)(data[0] % (unsigned)(RDL_OP_SEND_RECV + 1));
    s->size = 2 + data[1] % (RDL_REPLAY_MOST - 1);
    if (s->operation == RDL_OP_SEND_RECV)
        s->size = 2;
    s->root = data[2] % s->size;
    s->bytes = two_bytes(data + 5);
    /* A half of a lease: whole cache lines, or there is none. */
    call.window = two_bytes(data + 7) / 64 * 64;
    /* Through lines alone long calls take long. */
    s->bytes %= call.window > 0 ? 20000 : 2000;
    fill_blocks(&call, data + HEAD, bytes - HEAD);
    call.seed = data[3];
    call.in_place = data[4] & 1;
    wrong = rdl_replay(&call);
    if (wrong != NULL) {
        fprintf(stderr, "%s of %zu bytes, %d members, window %zu: %s\n",
                rdl_operation_name(s->operation), s->bytes, s->size,
                call.window, wrong);
        abort();
    }
    return 0;
}
