/* What the parts of bench/race share: the arms, and how one run ends. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BENCH_RACE_H
#define RDL_BENCH_RACE_H

#include "llama/llama.h"

#include <raddle/status.h>
#include <stdbool.h>
#include <stdint.h>

#define RACE_RANKS_MOST 16
#define RACE_STREAMS 3
#define RACE_CALLS 30
#define RACE_STEPS 10     /* of training */
#define RACE_DELAY_US 300 /* the most */
#define RACE_LIMIT_MS 2000

/* name; what is done: the fence left out, a lane of its own for each stream opened,
 * these lanes used, how many streams are used, whether work delays them; what must
 * come of it. */
#define RACE_ARM_MAP(X)                                                        \
    X(UNFENCED, "unfenced", true, false, false, 3, true, FAILS)                \
    X(FENCED, "fenced", false, false, false, 3, true, PASSES)                  \
    X(OWN, "own-communicator", true, true, true, 3, true, PASSES)              \
    X(UNUSED, "created-unused", true, true, false, 3, true, FAILS)             \
    X(ONE, "one-stream", true, false, false, 1, true, PASSES)                  \
    X(CALM, "deterministic", true, false, false, 3, false, REPORTED)

typedef enum race_arm_number {
#define X(number, ...) RACE_##number,
    RACE_ARM_MAP(X)
#undef X
        RACE_ARMS
} race_arm_number;

typedef enum race_gate {
    RACE_PASSES,  /* every run */
    RACE_FAILS,   /* in a third of the runs at least */
    RACE_REPORTED /* whatever comes */
} race_gate;

typedef struct race_arm {
    const char *name;
    bool unfenced;
    bool opens;
    bool uses;
    int streams;
    bool delays;
    race_gate gate;
} race_arm;

extern const race_arm race_arms[RACE_ARMS];

/* A loss and a norm of gradients for each step, as they come out of training. */
typedef struct race_course {
    int steps; /* that came to their end; 0: nothing was trained */
    double losses[RACE_STEPS];
    double norms[RACE_STEPS];
} race_course;

typedef struct race_setting {
    const race_arm *arm;
    bool compare; /* fingerprints on */
    int ranks;
    uint64_t seed;
    const char *job;
    const llama_blas *blas;    /* to train with; NULL: no training */
    const race_course *wanted; /* what must come of training; NULL: anything */
} race_setting;

typedef enum race_end {
    RACE_PASSED,
    RACE_WRONG,
    RACE_TIMEOUT,
    RACE_MISMATCH,
    RACE_SECOND, /* ended because another rank did */
    RACE_BROKEN  /* nothing that an arm is about */
} race_end;

/* What a rank has to say at its end; in memory that it shares with the parent. */
typedef struct race_report {
    race_end end;
    double ms; /* of the calls, from the first to the last */
    char sentence[512];
    race_course course;
} race_report;

/* One rank, in a process of its own: calls of three streams, or training. */
void race_rank(const race_setting *setting, int rank, race_report *report);
void race_train(const race_setting *setting, int rank, race_report *report);

/* How a rank ends whose call answered st, which is a failure. */
race_end race_end_of(rdl_status st);

/* The same bits. */
bool race_same_course(const race_course *a, const race_course *b);

/* One run in fresh processes; false if it says nothing about the arm, and then
 * report has the sentence. Its end is the worst of the ranks', its time the
 * longest. */
bool race_run(const race_setting *setting, race_report *report);

#endif
