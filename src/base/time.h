/* Time and deadlines: nanoseconds of CLOCK_MONOTONIC, which all processes of one
 * host share. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BASE_TIME_H
#define RDL_BASE_TIME_H

#include <stdbool.h>
#include <stdint.h>

typedef int64_t rdl_time;     /* nanoseconds */
typedef int64_t rdl_deadline; /* a point in time; RDL_NEVER has none */

#define RDL_NEVER INT64_MAX

rdl_time rdl_now(void);

/* ms from now; a negative or overflowing ms is RDL_NEVER. */
rdl_deadline rdl_deadline_after_ms(int64_t ms);

bool rdl_deadline_passed(rdl_deadline deadline);

/* Until deadline, at least 0; at most most. */
rdl_time rdl_deadline_left(rdl_deadline deadline, rdl_time most);

/* Sleeps that long, interrupted by signals or not. */
void rdl_sleep(rdl_time duration);

#endif
