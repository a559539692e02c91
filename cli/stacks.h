/* Where the threads of a process are: their native stacks, where we may trace it
 * and were built with an unwinder; else what each waits for in the kernel.
 *
 * Its threads are held for the moment that takes, one after the other, and go on
 * as they were. Threads: one at a time, that which may trace (on some systems only
 * an ancestor may). */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_CLI_STACKS_H
#define RDL_CLI_STACKS_H

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* What all processes may take together. */
typedef struct stacks_limit {
    int64_t end; /* by clock_ms */
    int lines;
} stacks_limit;

/* Prints a line that says which of the two it is, and the threads below it. */
void stacks_print(FILE *to, int rank, pid_t pid, stacks_limit *limit);

#endif
