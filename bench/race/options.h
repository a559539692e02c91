/* What the command line of `raddle bench race` may ask for. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BENCH_RACE_OPTIONS_H
#define RDL_BENCH_RACE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#define RACE_WHO "raddle bench race"
#define RACE_FAILED 1 /* exit statuses */
#define RACE_USAGE 2
#define RACE_RUNS_MOST 1000

typedef struct race_options {
    int runs;
    int ranks;
    uint64_t seed;
    bool train;
    bool json;
} race_options;

/* *options has the defaults. -1: go on; else the exit status, and all was said. */
int race_read_options(int argc, char **argv, race_options *options);

#endif
