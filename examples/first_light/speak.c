/* How the ranks agree on an early end, and how rank 0 speaks for them. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "first_light.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

__attribute__((format(printf, 4, 0))) static bool keep(demo *d, int status,
                                                       int shared,
                                                       const char *format,
                                                       va_list args)
{
    if (d->trouble.status == 0) {
        d->trouble.status = status;
        d->trouble.shared = shared;
        vsnprintf(d->trouble.text, sizeof d->trouble.text, format, args);
    }
    return false;
}

bool fail(demo *d, int status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    keep(d, status, 0, format, args);
    va_end(args);
    return false;
}

bool fail_alike(demo *d, int status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    keep(d, status, 1, format, args);
    va_end(args);
    return false;
}

bool ok(demo *d, rdl_status status)
{
    return status == RDL_OK || fail(d, 1, "%s", rdl_error_detail());
}

bool agree(demo *d)
{
    int32_t who = d->trouble.status != 0 ? d->rank : d->size;

    if (!ok(d, rdl_all_reduce(d->world, RDL_WORLD, &who, &who, 1, RDL_INT32,
                              RDL_MIN, NULL)))
        return false;
    if (who == d->size)
        return true;
    if (!ok(d, rdl_broadcast(d->world, RDL_WORLD, &d->trouble,
                             sizeof d->trouble, RDL_UINT8, who, NULL)))
        return false;
    d->trouble.shared = 1;
    return false;
}

void say(const demo *d, const char *format, ...)
{
    va_list args;

    if (d->rank != 0 || d->json)
        return;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
}

void say_json(const demo *d, const char *format, ...)
{
    va_list args;

    if (d->rank != 0 || !d->json)
        return;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
}

void say_gap(const demo *d)
{
    say(d, "%s", "");
}

double seconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

const char *grouped(int64_t number, words *buffer)
{
    char plain[24];
    int digits =
        snprintf(plain, sizeof plain, "%" PRId64, number < 0 ? 0 : number);
    int at = 0;

    for (int i = 0; i < digits; i++) {
        if (i > 0 && (digits - i) % 3 == 0)
            buffer->text[at++] = ',';
        buffer->text[at++] = plain[i];
    }
    buffer->text[at] = '\0';
    return buffer->text;
}

const char *scaled_bytes(double bytes, words *buffer)
{
    static const char *const units[] = { "B", "kB", "MB", "GB", "TB", "PB" };
    size_t unit = 0;

    while (bytes >= 999.95 && unit + 1 < sizeof units / sizeof *units) {
        bytes /= 1000;
        unit++;
    }
    snprintf(buffer->text, sizeof buffer->text, "%.*f %s", unit == 0 ? 0 : 1,
             bytes, units[unit]);
    return buffer->text;
}

const char *duration(double seconds, words *buffer)
{
    if (seconds < 60)
        snprintf(buffer->text, sizeof buffer->text, "%.1f s", seconds);
    else
        snprintf(buffer->text, sizeof buffer->text, "%.0f min %02d s",
                 (seconds - (double)((int64_t)seconds % 60)) / 60,
                 (int)((int64_t)seconds % 60));
    return buffer->text;
}
