/* What went wrong, as one sentence and the exit status that goes with it; made
 * where it is found, and said where everything is known. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_CLI_TRAIN_TROUBLE_H
#define RDL_CLI_TRAIN_TROUBLE_H

#include <stdbool.h>

#define TROUBLE_MOST 2048

typedef struct trouble {
    int status; /* 0: none */
    char text[TROUBLE_MOST];
} trouble;

/* Notes it, unless something was noted before; returns false, so that a function
 * can fail in one statement. */
bool trouble_note(trouble *t, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* "out of memory" */
bool trouble_memory(trouble *t);

#endif
