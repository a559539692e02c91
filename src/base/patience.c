/* Choosing and reading patience. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/patience.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* About one wake between cores (measured: 44 us on a virtual machine). */
#define SPIN INT64_C(45000)
#define YIELDS 32

#define SPIN_MOST_US 1000000
#define YIELDS_MOST 1000000

/* Spinning pays only where each rank has a core: else it keeps the awaited one from
 * running. */
rdl_patience rdl_patience_of(int ranks, int cores)
{
    return ranks <= cores ? (rdl_patience){ .spin = SPIN }
                          : (rdl_patience){ .yields = YIELDS };
}

static rdl_status refuse(const char *text)
{
    return rdl_fail(RDL_INVALID,
                    "RADDLE_WAIT='%.64s' is none of spin, yield, sleep, and no "
                    "'MICROSECONDS,YIELDS' of 0..%d and 0..%d",
                    text, SPIN_MOST_US, YIELDS_MOST);
}

/* Digits up to end, and no more than most. */
static bool read_number(const char *text, char end, long most, long *out,
                        const char **rest)
{
    char *stop;

    if (!isdigit((unsigned char)*text)) /* strtol takes signs and blanks */
        return false;
    errno = 0;
    *out = strtol(text, &stop, 10);
    *rest = stop + 1;
    return errno == 0 && *stop == end && *out <= most;
}

static rdl_status read_numbers(const char *text, rdl_patience *out)
{
    const char *rest = text;
    long spin, yields;

    if (!read_number(text, ',', SPIN_MOST_US, &spin, &rest) ||
        !read_number(rest, '\0', YIELDS_MOST, &yields, &rest))
        return refuse(text);
    out->spin = (rdl_time)spin * 1000;
    out->yields = (int)yields;
    return RDL_OK;
}

rdl_status rdl_patience_read(const char *text, rdl_patience *out)
{
    rdl_patience p = { .given = text != NULL && text[0] != '\0' };

    if (!p.given || strcmp(text, "sleep") == 0)
        ;
    else if (strcmp(text, "spin") == 0)
        p.spin = SPIN;
    else if (strcmp(text, "yield") == 0)
        p.yields = YIELDS;
    else
        RDL_TRY(read_numbers(text, &p));
    *out = p;
    return RDL_OK;
}
