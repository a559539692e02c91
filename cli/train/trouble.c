/* Noting the first trouble. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/trouble.h"

#include "command.h"

#include <stdarg.h>
#include <stdio.h>

bool trouble_note(trouble *t, int status, const char *format, ...)
{
    va_list args;

    if (t->status != 0)
        return false;
    t->status = status;
    va_start(args, format);
    vsnprintf(t->text, sizeof t->text, format, args);
    va_end(args);
    return false;
}

bool trouble_memory(trouble *t)
{
    return trouble_note(t, STATUS_FAILED, "out of memory");
}
