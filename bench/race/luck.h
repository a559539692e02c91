/* Luck that a seed decides, and the clock. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BENCH_RACE_LUCK_H
#define RDL_BENCH_RACE_LUCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t race_draw(uint64_t *state, uint64_t below)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (x ^ x >> 31) % below;
}

static inline double race_now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

#endif
