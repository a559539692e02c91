/* Sentences. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "llama/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

rdl_status llama_fail(llama_error *error, rdl_status status, const char *format,
                      ...)
{
    char text[sizeof error->text];
    va_list arguments;

    if (error == NULL)
        return status;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    memcpy(error->text, text, sizeof text);
    return status;
}

rdl_status llama_pass_on(llama_error *error, rdl_status status)
{
    if (status != RDL_OK && error != NULL)
        snprintf(error->text, sizeof error->text, "%s", rdl_error_detail());
    return status;
}
