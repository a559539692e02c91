/* Random calls, replayed on plain arrays: every member gets exactly its part.
 *
 * Input: operation, members, root, order, in place or not (a byte each), bytes and
 * window (two bytes each). */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/replay.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static rdl_replay_call call;
    const char *wrong;

    if (bytes < 9)
        return 0;
    call.shape.operation =
        (rdl_operation)(data[0] % (unsigned)(RDL_OP_ALL_TO_ALL + 1));
    call.shape.size = 2 + data[1] % (RDL_REPLAY_MOST - 1);
    call.shape.root = data[2] % call.shape.size;
    call.shape.bytes = (size_t)data[5] | (size_t)data[6] << 8;
    /* A half of a lease: whole cache lines, or there is none. */
    call.window = ((size_t)data[7] | (size_t)data[8] << 8) / 64 * 64;
    /* Through lines alone long calls take long. */
    call.shape.bytes %= call.window > 0 ? 20000 : 2000;
    call.seed = data[3];
    call.in_place = data[4] & 1;
    wrong = rdl_replay(&call);
    if (wrong != NULL) {
        fprintf(stderr, "%s of %zu bytes, %d members, window %zu: %s\n",
                rdl_operation_name(call.shape.operation), call.shape.bytes,
                call.shape.size, call.window, wrong);
        abort();
    }
    return 0;
}
