/* The floor: what this machine's cores can do at best, measured, and from it the
 * least time of each operation: no staging, no kernel, no page fault, all cores busy.
 *
 *     least = line + (n / p - 1) * switch + D     of n ranks on p = min(n, cores)
 *     all_gather      D = n * n * S / (p * copy)  of S bytes of input a rank
 *     all_to_all      D = n * S / (p * copy)
 *     broadcast       D = (n - 1) * S / (p * copy)
 *     reduce_scatter  D = (n + 1) * S / (p * 3 * add)
 *     all_reduce      D = that of reduce_scatter, and (n - 1) * S / (p * copy): ranks
 *                     read each other's memory and write their own
 *
 * line is a cache line's way between cores, switch that of a core from one process to
 * another. copy and add are bytes of result a core and microsecond, by ordinary
 * stores or by such as pass the caches, whichever is faster at that size. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BENCH_SPEED_FLOOR_H
#define RDL_BENCH_SPEED_FLOOR_H

#include "speed.h"

#define SPEED_RATES 5

typedef struct speed_machine {
    int cores;
    double line_us;
    double switch_us;         /* 0: not known */
    double copy[SPEED_RATES]; /* bytes a microsecond and core */
    double add[SPEED_RATES];
    double copy_fresh[SPEED_RATES]; /* of what another core has just written */
} speed_machine;

/* Takes about two seconds. False: a process could not be started, or memory had. */
bool speed_measure_machine(int cores, speed_machine *machine);

/* In microseconds; 0 for an operation that has no formula. fresh: where the inputs
 * were just written by another core. */
double speed_floor(const speed_machine *machine, const speed_point *point,
                   bool fresh);

#endif
