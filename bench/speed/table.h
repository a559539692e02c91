/* What is printed. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BENCH_SPEED_TABLE_H
#define RDL_BENCH_SPEED_TABLE_H

#include "floor.h"
#include "speed.h"

/* What the rows come to. */
typedef struct speed_sum {
    int points;
    int compared;     /* with a peer */
    int slower;       /* than the best of them: lower quartile above 1.10 */
    int peers_wrong;  /* rows in which a peer gave a wrong result */
    int wrong;        /* results of raddle */
    int broken;       /* raddle's ranks failed */
    double log_best;  /* sums of logarithms: best peer by raddle, */
    double log_gloo;  /* gloo by raddle, */
    double log_floor; /* raddle by the floor */
    int with_gloo;
    int with_floor;
    int left_out; /* for want of time */
} speed_sum;

void speed_print_machine(const speed_options *options,
                         const speed_machine *machine);

/* One row; a heading before the first of each operation and dtype. */
void speed_print_row(const speed_options *options, const speed_row *row,
                     bool first, int cores);

void speed_add(speed_sum *sum, const speed_row *row);

void speed_print_sum(const speed_options *options, const speed_sum *sum);

#endif
