/* The clock. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/time.h"

#include <time.h>

#define NS_PER_S INT64_C(1000000000)
#define NS_PER_MS INT64_C(1000000)

rdl_time rdl_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (rdl_time)t.tv_sec * NS_PER_S + t.tv_nsec;
}

rdl_deadline rdl_deadline_after_ms(int64_t ms)
{
    rdl_time now = rdl_now();

    if (ms < 0 || ms > (RDL_NEVER - now) / NS_PER_MS)
        return RDL_NEVER;
    return now + ms * NS_PER_MS;
}

bool rdl_deadline_passed(rdl_deadline deadline)
{
    return deadline != RDL_NEVER && rdl_now() >= deadline;
}

rdl_time rdl_deadline_left(rdl_deadline deadline, rdl_time most)
{
    rdl_time left;

    if (deadline == RDL_NEVER)
        return most;
    left = deadline - rdl_now();
    if (left < 0)
        return 0;
    return left < most ? left : most;
}

void rdl_sleep(rdl_time duration)
{
    struct timespec t = { .tv_sec = duration / NS_PER_S,
                          .tv_nsec = duration % NS_PER_S };

    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t) != 0)
        ;
}
