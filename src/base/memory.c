/* The allocator's front door. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/memory.h"

#include "base/fault.h"
#include "base/layout.h"

#include <stdlib.h>
#include <string.h>

/* What stands before each block. */
typedef struct head {
    rdl_purse *purse;
    uint64_t size; /* of the whole, with this, and in its lowest byte what there is
                      from the beginning of the system's memory to the block */
} head;

_Static_assert(sizeof(head) == _Alignof(max_align_t),
               "a block is aligned as the system's memory is");

#define BEFORE_BITS 8
#define BEFORE_MOST UINT64_C(0xff)

static uint64_t bytes_of(const head *h)
{
    return h->size >> BEFORE_BITS;
}

static head *head_of(void *memory)
{
    return (head *)memory - 1;
}

static void count(rdl_purse *purse, uint64_t more)
{
    if (purse != NULL)
        atomic_fetch_add_explicit(&purse->bytes, more, memory_order_relaxed);
}

/* The block in the system's memory, which may be NULL. */
static void *make_block(rdl_purse *purse, void *raw, size_t whole, size_t before)
{
    unsigned char *memory = raw;

    if (memory == NULL)
        return NULL;
    memory += before;
    *head_of(memory) =
        (head){ .purse = purse, .size = whole << BEFORE_BITS | before };
    count(purse, whole);
    return memory;
}

void *rdl_calloc_for(rdl_purse *purse, size_t n, size_t bytes)
{
    size_t whole;

    if (rdl_fault_memory() || __builtin_mul_overflow(n, bytes, &whole) ||
        __builtin_add_overflow(whole, sizeof(head), &whole))
        return NULL;
    return make_block(purse, calloc(1, whole), whole, sizeof(head));
}

void *rdl_calloc_lines_for(rdl_purse *purse, size_t bytes)
{
    size_t lines = (bytes + RDL_CACHE_LINE - 1) & ~(size_t)(RDL_CACHE_LINE - 1);
    size_t whole = lines + RDL_CACHE_LINE;
    void *memory =
        rdl_fault_memory() ? NULL : aligned_alloc(RDL_CACHE_LINE, whole);

    if (memory != NULL)
        memset(memory, 0, whole);
    return make_block(purse, memory, whole, RDL_CACHE_LINE);
}

static void *grow(void *old, size_t whole)
{
    head was = *head_of(old);
    void *raw = realloc(head_of(old), whole);

    if (raw != NULL)
        count(was.purse, -bytes_of(&was));
    return make_block(was.purse, raw, whole, sizeof(head));
}

void *rdl_realloc_for(rdl_purse *purse, void *old, size_t bytes)
{
    size_t whole;

    if (rdl_fault_memory() ||
        __builtin_add_overflow(bytes, sizeof(head), &whole))
        return NULL;
    return old != NULL ? grow(old, whole)
                       : make_block(purse, malloc(whole), whole, sizeof(head));
}

char *rdl_copy_text_for(rdl_purse *purse, const char *text, size_t bytes)
{
    char *copy = rdl_calloc_for(purse, bytes + 1, 1);

    if (copy != NULL)
        memcpy(copy, text, bytes);
    return copy;
}

void rdl_charge(rdl_purse *purse, void *memory)
{
    head *h;

    if (memory == NULL)
        return;
    h = head_of(memory);
    count(h->purse, -bytes_of(h));
    h->purse = purse;
    count(purse, bytes_of(h));
}

void rdl_free(void *memory)
{
    head *h;

    if (memory == NULL)
        return;
    h = head_of(memory);
    count(h->purse, -bytes_of(h));
    free((unsigned char *)memory - (h->size & BEFORE_MOST));
}
