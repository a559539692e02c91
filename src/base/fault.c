/* Counting and firing of fault plans. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/fault.h"

#ifdef RDL_FAULTS
#include <errno.h>
#include <stddef.h>

static _Thread_local rdl_fault *current;

rdl_fault *rdl_fault_use(rdl_fault *plan)
{
    rdl_fault *before = current;

    current = plan;
    return before;
}

static bool fires(long at, long *count)
{
    bool hit;

    ++*count;
    hit = at != 0 && (current->onward ? *count >= at : *count == at);
    current->fired |= hit;
    return hit;
}

bool rdl_fault_memory(void)
{
    return current != NULL && fires(current->memory_at, &current->memory);
}

bool rdl_fault_os(void)
{
    if (current == NULL || !fires(current->os_at, &current->os))
        return false;
    errno = current->os_error ? current->os_error : EMFILE;
    return true;
}
#else
typedef int rdl_fault_is_not_built; /* an empty file is not ISO C */
#endif
