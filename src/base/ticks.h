/* Ticks: the time stamp of records. It must cost next to nothing, so it is the
 * processor's counter; where that does not run evenly, a coarse clock. Two looks at
 * it and at the clock, some time apart, tell how long a tick is: one when a rank
 * joins (rdl_slice), one by who reads. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BASE_TICKS_H
#define RDL_BASE_TICKS_H

#include "base/time.h"

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

/* Whether the processor's counter runs at one rate, whatever the processor does:
 * on x86-64 it says so itself (Intel's manual, volume 3, "Invariant TSC"); that of
 * 64-bit Arm does by its definition. */
bool rdl_ticks_are_even(void);

/* Coarse: nanoseconds of a clock that moves a few hundred times a second. */
uint64_t rdl_ticks_coarse(void);

static inline uint64_t rdl_ticks(bool even)
{
#if defined(__x86_64__)
    if (even)
        return __rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;

    __asm__ __volatile__("mrs %0, cntvct_el0" : "=r"(ticks));
    if (even)
        return ticks;
#endif
    return rdl_ticks_coarse();
}

/* A point of the counter, and of CLOCK_MONOTONIC, taken together. */
typedef struct rdl_instant {
    uint64_t ticks;
    rdl_time time;
} rdl_instant;

rdl_instant rdl_instant_now(bool even);

/* When the counter showed ticks, by two instants; without a rate (they are one, or
 * make no sense) the later one's time. */
rdl_time rdl_ticks_time(uint64_t ticks, rdl_instant before, rdl_instant after);

#endif
