/* Private memory. Every allocation of the library goes through here, may fail,
 * and is made to in tests (base/fault.h).
 *
 * A block may belong to a purse, which counts what is taken of it: a world has one,
 * and a host. A block knows its purse, so that freeing needs none, and must go before
 * its purse does; a purse may lie in a block of its own.
 *
 * All return NULL when there is none; the caller says what it was for.
 *
 * Threads: any. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BASE_MEMORY_H
#define RDL_BASE_MEMORY_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* All zero is an empty one. */
typedef struct rdl_purse {
    _Atomic uint64_t bytes; /* of its blocks, with what the library adds to each */
} rdl_purse;

/* Zeroed; also NULL when count * bytes overflows. purse may be NULL. */
void *rdl_calloc_for(rdl_purse *purse, size_t count, size_t bytes);
/* Zeroed, and beginning with a cache line. */
void *rdl_calloc_lines_for(rdl_purse *purse, size_t bytes);
/* A block that grows keeps its purse; purse is that of a new one. */
void *rdl_realloc_for(rdl_purse *purse, void *old, size_t bytes);
/* A copy of text[0..bytes) with a 0 behind it. */
char *rdl_copy_text_for(rdl_purse *purse, const char *text, size_t bytes);

/* The block belongs to that purse from now on; NULL: to none, so that it may outlive
 * the one that it had. memory may be NULL. */
void rdl_charge(rdl_purse *purse, void *memory);

void rdl_free(void *memory);

/* What belongs to no world. */
static inline void *rdl_calloc(size_t count, size_t bytes)
{
    return rdl_calloc_for(NULL, count, bytes);
}

static inline void *rdl_calloc_lines(size_t bytes)
{
    return rdl_calloc_lines_for(NULL, bytes);
}

static inline void *rdl_realloc(void *old, size_t bytes)
{
    return rdl_realloc_for(NULL, old, bytes);
}

static inline char *rdl_copy_text(const char *text, size_t bytes)
{
    return rdl_copy_text_for(NULL, text, bytes);
}

static inline uint64_t rdl_purse_bytes(rdl_purse *purse)
{
    return atomic_load_explicit(&purse->bytes, memory_order_relaxed);
}

#endif
