/* The allocator's front door. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/memory.h"

#include "base/fault.h"
#include "base/layout.h"

#include <stdlib.h>
#include <string.h>

void *rdl_calloc(size_t count, size_t bytes)
{
    return rdl_fault_memory() ? NULL : calloc(count, bytes);
}

void *rdl_calloc_lines(size_t bytes)
{
    size_t whole = (bytes + RDL_CACHE_LINE - 1) & ~(size_t)(RDL_CACHE_LINE - 1);
    void *memory =
        rdl_fault_memory() ? NULL : aligned_alloc(RDL_CACHE_LINE, whole);

    if (memory != NULL)
        memset(memory, 0, whole);
    return memory;
}

void *rdl_realloc(void *old, size_t bytes)
{
    return rdl_fault_memory() ? NULL : realloc(old, bytes);
}

char *rdl_copy_text(const char *text, size_t bytes)
{
    char *copy = rdl_calloc(bytes + 1, 1);

    if (copy != NULL)
        memcpy(copy, text, bytes);
    return copy;
}

void rdl_free(void *memory)
{
    free(memory);
}
