/* What goes into a measured call, and what must come out. Small whole numbers, whose
 * sums are exact in every dtype for as many ranks as there are cores in a machine. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BENCH_SPEED_VALUES_H
#define RDL_BENCH_SPEED_VALUES_H

#include "wire.h"

#include <raddle/collective.h>
#include <stdbool.h>

typedef struct speed_look {
    int operation;
    int rank;
    int size;
    int root;
    rdl_dtype dtype;
    uint64_t bytes; /* of a rank's input */
} speed_look;

/* Fills this rank's input. */
void speed_fill(const speed_look *look, void *input);

/* Whether the output (of a broadcast: the buffer) is right: all elements of the first
 * 262,144, then each seventeenth, and the last. */
bool speed_right(const speed_look *look, const void *output);

#endif
