/* Moving apart. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/seats.h"

#include "base/cpus.h"
#include "comm/world.h"

#define WAITS 64 /* from look to look */

static int32_t seat_of(const rdl_lane *lane, int member)
{
    return atomic_load_explicit(&lane->peers[member].slice->cpu,
                                memory_order_relaxed) -
           1;
}

/* Of the members there; *last: whether this one is the last of them. */
static int count_here(const rdl_lane *lane, int here, bool *last)
{
    int n = 0;

    for (int i = 0; i < lane->comm->size; i++)
        if (seat_of(lane, i) == here) {
            n++;
            *last = i == lane->comm->me;
        }
    return n;
}

/* Where the fewest members are, of the processors this thread may use; -1: none. */
static int find_emptiest(const rdl_lane *lane, const rdl_cpus *allowed)
{
    int best = -1, fewest = 0;
    bool last;

    for (int cpu = rdl_cpus_next(allowed, 0); cpu >= 0;
         cpu = rdl_cpus_next(allowed, cpu + 1)) {
        int n = count_here(lane, cpu, &last);

        if (best < 0 || n < fewest) {
            best = cpu;
            fewest = n;
        }
    }
    return best;
}

void rdl_seats_look(rdl_lane *lane)
{
    int here = rdl_cpu_here(), cores = lane->world->cores, to;
    bool last = false;
    rdl_cpus allowed;
    int n;

    if (++lane->waits % WAITS != 0 || here < 0 || cores < 2)
        return;
    n = count_here(lane, here, &last);
    if (!last || n <= (lane->comm->size + cores - 1) / cores)
        return;
    allowed = rdl_cpus_allowed();
    to = find_emptiest(lane, &allowed);
    if (to >= 0 && to != here && count_here(lane, to, &last) + 1 < n)
        rdl_cpus_move(&allowed, to);
}

void rdl_seats_take(const rdl_world *world)
{
    rdl_cpus allowed = rdl_cpus_allowed();
    int n = rdl_cpus_count(&allowed), cpu = rdl_cpus_next(&allowed, 0);

    if (world->size <= world->cores || n < 2)
        return;
    for (int i = (int)((long)world->rank * n / world->size); i > 0; i--)
        cpu = rdl_cpus_next(&allowed, cpu + 1);
    rdl_cpus_move(&allowed, cpu);
}
