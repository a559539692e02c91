/* The counter, and what it is in time. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/ticks.h"

#include <time.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define INVARIANT_LEAF 0x80000007u
#define INVARIANT_BIT 8

bool rdl_ticks_are_even(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;

    return __get_cpuid(INVARIANT_LEAF, &a, &b, &c, &d) != 0 &&
           (d >> INVARIANT_BIT & 1) != 0;
#elif defined(__aarch64__)
    return true;
#else
    return false;
#endif
}

uint64_t rdl_ticks_coarse(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

rdl_instant rdl_instant_now(bool even)
{
    return (rdl_instant){ .ticks = rdl_ticks(even), .time = rdl_now() };
}

rdl_time rdl_ticks_time(uint64_t ticks, rdl_instant before, rdl_instant after)
{
    double per_tick;

    if (after.ticks <= before.ticks || after.time <= before.time)
        return after.time;
    per_tick = (double)(after.time - before.time) /
               (double)(after.ticks - before.ticks);
    return after.time -
           (rdl_time)((double)(int64_t)(after.ticks - ticks) * per_tick);
}
