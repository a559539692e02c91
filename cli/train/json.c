/* Members with commas between them. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void add_string(text *line, const char *s)
{
    text_add(line, "\"", 1);
    for (; *s != '\0'; s++) {
        unsigned char c = (unsigned char)*s;

        if (c == '"' || c == '\\')
            text_print(line, "\\%c", c);
        else if (c < ' ')
            text_print(line, "\\u%04x", c);
        else
            text_add(line, s, 1);
    }
    text_add(line, "\"", 1);
}

/* A comma, unless it is the first of its object; and the name. */
static void begin_member(text *line, const char *name)
{
    if (line->used > 0 && line->data[line->used - 1] != '{')
        text_add(line, ", ", 2);
    add_string(line, name);
    text_add(line, ": ", 2);
}

void json_open(text *line, const char *name)
{
    if (name != NULL)
        begin_member(line, name);
    text_add(line, "{", 1);
}

void json_close(text *line)
{
    text_add(line, "}", 1);
}

void json_integer(text *line, const char *name, int64_t value)
{
    begin_member(line, name);
    text_print(line, "%" PRId64, value);
}

void json_number(text *line, const char *name, double value)
{
    char digits[32] = "null";

    begin_member(line, name);
    for (int n = 15; isfinite(value) && n <= 17; n++) {
        snprintf(digits, sizeof digits, "%.*g", n, value);
        if (strtod(digits, NULL) == value)
            break;
    }
    text_print(line, "%s", digits);
}

void json_text(text *line, const char *name, const char *value)
{
    begin_member(line, name);
    add_string(line, value);
}

void json_integers(text *line, const char *name, const int64_t *values,
                   size_t count)
{
    begin_member(line, name);
    text_add(line, "[", 1);
    for (size_t i = 0; i < count; i++)
        text_print(line, "%s%" PRId64, i > 0 ? ", " : "", values[i]);
    text_add(line, "]", 1);
}
