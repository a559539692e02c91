/* One point: who takes part takes turns. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BENCH_SPEED_MEASURE_H
#define RDL_BENCH_SPEED_MEASURE_H

#include "job.h"
#include "speed.h"

/* Fills row->results, best and ratios of row->point. jobs: one for each peer; those
 * that do not work are passed over. */
void speed_measure(const speed_options *options, speed_job *jobs, int cores,
                   speed_row *row);

#endif
