/* What came of the runs of each arm, and whether that is as it must be. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BENCH_RACE_TABLE_H
#define RDL_BENCH_RACE_TABLE_H

#include "options.h"
#include "race.h"

/* Of one arm, with fingerprints or without. */
typedef struct race_score {
    int ends[RACE_BROKEN];
    int total;
    double *ms; /* of the runs that came to their end */
    int n_ms;
    char sentence[sizeof((race_report *)0)->sentence]; /* the first failure's */
    race_course course; /* of the first run that came to its end, if it trained */
    int strays;         /* of these, others than the first's */
} race_score;

/* Prints all scores; [1] are those with fingerprints. Sorts their times. Returns
 * the exit status. */
int race_print(const race_options *options, race_score scores[RACE_ARMS][2]);

#endif
