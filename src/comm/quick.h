/* The quick way: a blocking call whose data fit the lines of an idle lane, or parts of
 * nooks, as straight code. It does what the runner does with the plan of such a call (comm/plan.h), over
 * the same slots and in the same phases, so that members may differ in which way they
 * take; tests/ranks/quick_test.c holds them against each other. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_COMM_QUICK_H
#define RDL_COMM_QUICK_H

#include "comm/op.h"

#include <stdbool.h>

/* A call whose arguments are checked, and its ticket. */
typedef struct rdl_quick {
    rdl_lane *lane;
    uint64_t ticket;
    const rdl_arguments *arguments;
    int64_t timeout_ms;
    bool small;    /* the data do not fit a line */
    uint64_t part; /* of the lane's nook; 0: this rank gives nothing */
    uint64_t needs; /* the phase that all must have passed before part is written */
} rdl_quick;

/* Whether it can go that way, and sets part: else nothing was done. */
bool rdl_quick_takes(rdl_quick *quick);

/* To the end; the ticket is passed. */
rdl_status rdl_quick_run(const rdl_quick *quick);

#endif
