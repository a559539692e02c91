/* Patience: how a wait for another rank goes on before it sleeps. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BASE_PATIENCE_H
#define RDL_BASE_PATIENCE_H

#include "base/status.h"
#include "base/time.h"

#include <stdbool.h>

typedef struct rdl_patience {
    bool given; /* by RADDLE_WAIT */
    rdl_time spin;
    int yields;
} rdl_patience;

/* What suits that many ranks on that many cores. */
rdl_patience rdl_patience_of(int ranks, int cores);

/* As RADDLE_WAIT says it: "spin", "yield", "sleep", or microseconds and yields, as in
 * "100,8". NULL or empty: not given. RDL_INVALID. */
rdl_status rdl_patience_read(const char *text, rdl_patience *out);

#endif
