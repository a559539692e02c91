/* The names of statuses and the sentence of each thread. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/status.h"

#include "base/limits.h"

#include <errno.h>
#include <string.h>

static _Thread_local char sentence[RDL_SENTENCE];

const char *rdl_status_name(rdl_status status)
{
    switch (status) {
#define X(name, text)                                                          \
    case RDL_##name:                                                           \
        return "RDL_" #name;
        RDL_STATUS_MAP(X)
#undef X
    }
    return "RDL_?";
}

const char *rdl_status_text(rdl_status status)
{
    switch (status) {
#define X(name, text)                                                          \
    case RDL_##name:                                                           \
        return text;
        RDL_STATUS_MAP(X)
#undef X
    }
    return "no such status";
}

const char *rdl_error_detail(void)
{
    return sentence;
}

static void set_sentence(const char *format, va_list args)
{
    char fresh[RDL_SENTENCE]; /* arguments may point into the old sentence */

    vsnprintf(fresh, sizeof fresh, format, args);
    memcpy(sentence, fresh, sizeof sentence);
}

void rdl_say(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    set_sentence(format, args);
    va_end(args);
}

bool rdl_say_errno(int error, const char *format, ...)
{
    const char *name = strerrorname_np(error);
    const char *text = strerrordesc_np(error);
    char limits[RDL_DESCRIPTORS_TEXT] = "";
    va_list args;

    va_start(args, format);
    set_sentence(format, args);
    va_end(args);
    if (error == EMFILE)
        rdl_limits_descriptors(limits);
    rdl_say("%s: %s (%s%s%s)", sentence, text ? text : "unknown error",
            name ? name : "?", limits[0] ? "; " : "", limits);
    return error == ENOMEM;
}

_Noreturn void rdl_assert_failed(const char *what, const char *file, int line)
{
    fprintf(stderr, "raddle: bug at %s:%d: %s does not hold\n", file, line,
            what);
    abort();
}
