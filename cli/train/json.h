/* Writing JSON, one object a line.
 *
 *     text line = { .data = NULL };
 *     json_open(&line, NULL);
 *     json_integer(&line, "step", 1);
 *     json_close(&line);           {"step": 1}
 *
 * Without memory what does not fit is left out; the caller has checked that there
 * is some, by adding to the text first, or does not mind. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_CLI_TRAIN_JSON_H
#define RDL_CLI_TRAIN_JSON_H

#include "train/text.h"

#include <stdint.h>

/* Begins an object: the whole line (name NULL), or a member of what is open. */
void json_open(text *line, const char *name);
void json_close(text *line);

void json_integer(text *line, const char *name, int64_t value);
/* With as many digits as tell it from its neighbours; null if it is not finite,
 * for which JSON has no word. */
void json_number(text *line, const char *name, double value);
void json_text(text *line, const char *name, const char *value);
/* [1, 2, 3] */
void json_integers(text *line, const char *name, const int64_t *values,
                   size_t count);

#endif
