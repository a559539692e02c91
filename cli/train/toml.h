/* Reading a TOML file: what a file of settings needs of TOML 1.0, which is
 * tables, dotted keys, strings on one line, integers, floats, booleans, arrays of
 * one kind of these, and comments. The rest (dates, inline tables, arrays of
 * tables or arrays, strings over several lines) is refused by name.
 *
 * A file becomes a list of keys and values in the order in which they stand. What
 * is refused is refused with the line it stands in. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_CLI_TRAIN_TOML_H
#define RDL_CLI_TRAIN_TOML_H

#include "train/trouble.h"

#include <stddef.h>

#define TOML_MOST_BYTES ((size_t)1 << 20)

typedef enum toml_kind {
    TOML_TEXT,
    TOML_INTEGER, /* its text is decimal, within int64_t */
    TOML_NUMBER,  /* its text is as strtod reads it; also "inf" and "nan" */
    TOML_SWITCH,  /* its text is "true" or "false" */
    TOML_TABLE    /* the line of a [table]; it has no values */
} toml_kind;

typedef struct toml_entry {
    char *key; /* whole: "training.steps" */
    int line;
    toml_kind kind; /* of its values; of an empty array TOML_TEXT */
    bool is_array;
    char **values;
    size_t count;
} toml_entry;

typedef struct toml {
    toml_entry *entries;
    size_t count;
} toml;

/* Reads bytes of text, which came from the file called name. On failure there is
 * nothing to be freed. */
bool toml_read(const char *name, const char *text, size_t bytes, toml *out,
               trouble *t);
void toml_free(toml *file);

/* "a string", "an integer", "a number", "true or false" */
const char *toml_kind_text(toml_kind kind);

#endif
