/* What the parts of bench/deaths share: the arms, and the board on which the ranks
 * of a round write what they saw. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BENCH_DEATHS_H
#define RDL_BENCH_DEATHS_H

#include "base/time.h"

#include <raddle/status.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define DEATHS_RANKS_MOST 16
#define DEATHS_RANK "rank" /* the first argument of a rank's program */

/* Name; whether `raddle run` starts the ranks; whether one is killed or makes
 * another call; milliseconds that the median may take, or all rounds. */
#define DEATHS_ARM_MAP(X)                                                      \
    X("kill, raddle run", true, true, 20, 0)                                   \
    X("kill, torchrun", false, true, 100, 0)                                   \
    X("mismatch", false, false, 0, 50)

typedef struct deaths_arm {
    const char *name;
    bool launched;
    bool kills;
    double median_ms; /* 0: not asked */
    double worst_ms;
} deaths_arm;

/* How a rank's calls ended. Written by the rank, ended last. */
typedef struct deaths_report {
    _Atomic int pid;
    _Atomic int calls; /* made so far */
    rdl_time entered;  /* the call that failed */
    rdl_time failed;
    int call;
    int group;
    rdl_status status;
    char sentence[400];
    _Atomic bool ended;
} deaths_report;

/* In memory that the bench and the ranks of a round share. */
typedef struct deaths_board {
    uint64_t seed;
    int odd_rank; /* whose call is another; -1: nobody's */
    int odd_call;
    deaths_report reports[DEATHS_RANKS_MOST];
} deaths_board;

typedef struct deaths_round {
    const deaths_arm *arm;
    int ranks;
    uint64_t seed;
} deaths_round;

typedef struct deaths_result {
    double ms;   /* to the error of the last who got it */
    bool agreed; /* all failed at one call of one group, of the right cause */
    char sentence[600]; /* why not, or why there is no result */
} deaths_result;

/* The program of a rank; board: a path to the board's file. */
_Noreturn void deaths_rank(const char *board);

/* One round in fresh processes. false: it says nothing, and the sentence why. */
bool deaths_run(const deaths_round *round, deaths_result *result);

/* The next of a row of random numbers, below a bound. */
uint64_t deaths_draw(uint64_t *state, uint64_t below);

#endif
