/* Writing lists of ranks for people: "[0,1,2,3]", "[0-63]", "ranks 1,2,3". */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BASE_RANKS_H
#define RDL_BASE_RANKS_H

#include <stddef.h>

/* A text that is written piece by piece, cut at its end, always terminated. */
typedef struct rdl_text {
    char *at;
    size_t left; /* the terminating 0 included */
} rdl_text;

void rdl_text_add(rdl_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* "0,1,2,3"; runs of more than four as "0-63"; long ones cut: "0,2,4,... (64)". */
void rdl_text_add_ranks(rdl_text *text, const int *ranks, int count);

/* "rank 3" or "ranks 1,2,3". */
void rdl_text_add_these_ranks(rdl_text *text, const int *ranks, int count);

#endif
