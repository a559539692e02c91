/* A text that grows, always ended by 0 once something was added. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_CLI_TRAIN_TEXT_H
#define RDL_CLI_TRAIN_TEXT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct text {
    char *data;
    size_t used; /* the 0 not counted */
    size_t room;
} text;

/* False without memory; then the text is as before. */
bool text_add(text *t, const char *bytes, size_t count);
bool text_print(text *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void text_free(text *t);

#endif
