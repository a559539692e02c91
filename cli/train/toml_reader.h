/* The reader that the parts of the TOML reader share: toml.c reads lines and keys,
 * toml_value.c values, toml_string.c strings. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_CLI_TRAIN_TOML_READER_H
#define RDL_CLI_TRAIN_TOML_READER_H

#include "train/text.h"
#include "train/toml.h"

typedef struct toml_reader {
    const char *name;
    const char *at; /* never beyond end */
    const char *end;
    int line;
    text table; /* the present [table] */
    toml *out;
    trouble *t;
} toml_reader;

/* toml.c */

/* Notes a trouble in the present line; returns false. */
bool toml_wrong(toml_reader *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* What stands at the reader, for sentences. */
typedef struct toml_shown {
    char text[32];
} toml_shown;
toml_shown toml_show(const toml_reader *r);

void toml_skip_blanks(toml_reader *r);
void toml_skip_comment(toml_reader *r);
bool toml_take_newline(toml_reader *r);

/* toml_value.c */

/* A value or an array of values, into e. */
bool toml_read_value(toml_reader *r, toml_entry *e);

/* toml_string.c */

/* The whole text is UTF-8 without control characters. */
bool toml_check_bytes(toml_reader *r);

/* A string of either kind, whose quote stands here; adds what it means. */
bool toml_read_string(toml_reader *r, text *out);

#endif
