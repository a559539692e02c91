/* What keeps a process from going on, as /proc shows it. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_CLI_LOOK_H
#define RDL_CLI_LOOK_H

#include <sys/types.h>

typedef enum look {
    LOOK_RUNNING, /* or it cannot be told */
    LOOK_STOPPED, /* by a signal, or by who traces it */
    LOOK_DUMPING, /* it has crashed, and its core is being written */
    LOOK_GONE     /* ended, if not reaped */
} look;

look look_at(pid_t pid);

#endif
