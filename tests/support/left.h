/* What must not be left behind in a process: taken before, compared after. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_SUPPORT_LEFT_H
#define RDL_SUPPORT_LEFT_H

#include "support/test.h"

typedef struct rdl_test_left {
    int descriptors;
    long mapped_kib; /* of arenas, and of pages that a fork wipes */
} rdl_test_left;

rdl_test_left rdl_test_left_now(void);

/* Fails the test if there is more now, or less. */
void rdl_test_nothing_left(const rdl_test_left *before);

#endif
