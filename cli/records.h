/* What the ranks of a job did last, in lines. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_CLI_RECORDS_H
#define RDL_CLI_RECORDS_H

#include <raddle/dump.h>
#include <stdio.h>

/* How, and how much. */
typedef struct records_options {
    bool json;     /* an object a line */
    uint64_t last; /* calls of each rank, the newest */
    int rank;      /* of it alone; -1: of all */
} records_options;

/* Prints that job of the dump. */
void records_print(FILE *to, const rdl_dump *dump, int job,
                   const records_options *options);

#endif
