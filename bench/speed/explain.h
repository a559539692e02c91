/* `raddle bench --explain`. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BENCH_SPEED_EXPLAIN_H
#define RDL_BENCH_SPEED_EXPLAIN_H

#include "speed.h"

/* Prints the table of rules, and what calls of the options' sizes and ranks take on
 * this many cores. Returns the exit status. */
int speed_explain(const speed_options *options, int cores);

#endif
