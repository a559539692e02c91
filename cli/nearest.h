/* What a mistyped word was probably meant to be. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_CLI_NEAREST_H
#define RDL_CLI_NEAREST_H

/* The one of known (ended by NULL, at least one) that takes the fewest changes
 * of letters from word; of several, the first. */
const char *nearest_word(const char *word, const char *const *known);

#endif
