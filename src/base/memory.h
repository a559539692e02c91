/* Private memory. Every allocation of the library goes through here, may fail,
 * and is made to in tests (base/fault.h).
 *
 * All return NULL when there is none; the caller says what it was for. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BASE_MEMORY_H
#define RDL_BASE_MEMORY_H

#include <stddef.h>

/* Zeroed; also NULL when count * bytes overflows. */
void *rdl_calloc(size_t count, size_t bytes);
/* Zeroed, and beginning with a cache line. */
void *rdl_calloc_lines(size_t bytes);
void *rdl_realloc(void *old, size_t bytes);
/* A copy of text[0..bytes) with a 0 behind it. */
char *rdl_copy_text(const char *text, size_t bytes);
void rdl_free(void *memory);

#endif
