/* Lists of ranks as text. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/ranks.h"

#include <stdarg.h>
#include <stdio.h>

#define PIECES_MOST 24

void rdl_text_add(rdl_text *text, const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(text->at, text->left, format, args);
    va_end(args);
    if (n < 0)
        return;
    if ((size_t)n >= text->left)
        n = text->left > 0 ? (int)text->left - 1 : 0;
    text->at += n;
    text->left -= (size_t)n;
}

/* How many from ranks[0] on follow each other by one. */
static int run_length(const int *ranks, int count)
{
    int n = 1;

    while (n < count && ranks[n] == ranks[0] + n)
        n++;
    return n;
}

void rdl_text_add_ranks(rdl_text *text, const int *ranks, int count)
{
    int pieces = 0;

    for (int i = 0; i < count; pieces++) {
        int run = run_length(ranks + i, count - i);

        if (pieces == PIECES_MOST) {
            rdl_text_add(text, ",... (%d)", count);
            return;
        }
        if (run > 4) {
            rdl_text_add(text, "%s%d-%d", i ? "," : "", ranks[i],
                         ranks[i] + run - 1);
            i += run;
        } else {
            rdl_text_add(text, "%s%d", i ? "," : "", ranks[i]);
            i++;
        }
    }
}

void rdl_text_add_these_ranks(rdl_text *text, const int *ranks, int count)
{
    rdl_text_add(text, count == 1 ? "rank " : "ranks ");
    rdl_text_add_ranks(text, ranks, count);
}
