/* What CHECKs print, and how they end a test. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/run.h"
#include "support/test.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static _Thread_local int this_rank = -1;

void rdl_test_set_rank(int rank)
{
    this_rank = rank;
}

/* In one write, so that the lines of several ranks do not mix. */
static void say(const char *before, const char *format, va_list args)
{
    char line[8192];
    int n = 0;

    if (this_rank >= 0)
        n = snprintf(line, sizeof line, "rank %d: ", this_rank);
    n += snprintf(line + n, sizeof line - (size_t)n, "%s", before);
    n += vsnprintf(line + n, sizeof line - (size_t)n, format, args);
    if (n > (int)sizeof line - 2)
        n = (int)sizeof line - 2;
    line[n++] = '\n';
    if (write(STDERR_FILENO, line, (size_t)n) < 0)
        return;
}

void rdl_test_fail(const char *file, int line, const char *format, ...)
{
    char before[300];
    va_list args;

    snprintf(before, sizeof before, "%s:%d: ", file, line);
    va_start(args, format);
    say(before, format, args);
    va_end(args);
    fflush(stdout);
    _exit(RDL_TEST_FAILED);
}

void rdl_test_skip(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say("skipped: ", format, args);
    va_end(args);
    fflush(stdout);
    _exit(RDL_TEST_SKIPPED);
}

void rdl_test_int(const char *file, int line, const char *what, intmax_t actual,
                  intmax_t expected)
{
    if (actual != expected)
        rdl_test_fail(file, line, "%s is %jd, not %jd", what, actual, expected);
}

void rdl_test_near(const char *file, int line, const char *what, double actual,
                   double expected, double tolerance)
{
    if (isnan(actual) && isnan(expected))
        return;
    if (actual == expected || fabs(actual - expected) <= tolerance)
        return;
    rdl_test_fail(file, line, "%s is %.17g, not %.17g within %g", what, actual,
                  expected, tolerance);
}

void rdl_test_text(const char *file, int line, const char *what,
                   const char *actual, const char *expected)
{
    if (actual == NULL)
        rdl_test_fail(file, line, "%s is NULL, not \"%s\"", what, expected);
    if (strcmp(actual, expected) != 0)
        rdl_test_fail(file, line, "%s is \"%s\", not \"%s\"", what, actual,
                      expected);
}

void rdl_test_has(const char *file, int line, const char *what,
                  const char *text, const char *part)
{
    if (text == NULL)
        rdl_test_fail(file, line, "%s is NULL and has no \"%s\"", what, part);
    if (strstr(text, part) == NULL)
        rdl_test_fail(file, line, "%s is \"%s\" and has no \"%s\"", what, text,
                      part);
}

void rdl_test_status(const char *file, int line, const char *what,
                     rdl_status actual, rdl_status expected)
{
    if (actual != expected)
        rdl_test_fail(file, line, "%s is %s (\"%s\"), not %s", what,
                      rdl_status_name(actual),
                      actual == RDL_OK ? "" : rdl_error_detail(),
                      rdl_status_name(expected));
}

/* Behind " at a/b.c:12" at the beginning of text; NULL: there is none. */
static const char *behind_site(const char *text)
{
    static const char at[] = " at ";
    const char *end;

    if (strncmp(text, at, strlen(at)) != 0)
        return NULL;
    end = text + strlen(at) + strcspn(text + strlen(at), " :;,");
    if (*end != ':' || strncmp(end - 2, ".c", 2) != 0)
        return NULL;
    return end + 1 + strspn(end + 1, "0123456789");
}

const char *rdl_test_detail(void)
{
    static _Thread_local char text[1024];
    const char *from = rdl_error_detail();
    char *to = text;

    while (*from != 0 && to < text + sizeof text - 1) {
        const char *behind = behind_site(from);

        if (behind != NULL)
            from = behind;
        else
            *to++ = *from++;
    }
    *to = 0;
    return text;
}
