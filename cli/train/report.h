/* What is said while training: rank 0 speaks, the others are silent.
 *
 * Standard output has the metrics, one line a step, or with --json one object a
 * line. Standard error has the rest: sentences, and on a terminal a line of
 * progress that is overwritten. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_CLI_TRAIN_REPORT_H
#define RDL_CLI_TRAIN_REPORT_H

#include "train/trouble.h"

#include <raddle/world.h>
#include <stdint.h>

typedef struct report {
    bool speaks;
    bool json;
    bool has_progress; /* on a terminal */
    bool progress_shown;
    int64_t started_ns; /* the first step */
    int64_t logged_ns;  /* the last line */
    int64_t steps_since;
    int64_t shm_peak; /* bytes of /dev/shm that this process has mapped */
} report;

/* What a line says of a step. */
typedef struct step_report {
    int64_t step; /* from 1 */
    int64_t steps;
    double loss;
    double loss_most;
    double norm;
    double learning_rate;
    uint64_t valid_tokens;
    int64_t tokens; /* of a step, all ranks */
    int ranks;
    double flops_per_token;
    double peak; /* of a rank's matrix products, operations a second */
} step_report;

void report_open(report *r, bool json, bool speaks);
void report_close(report *r);

/* A sentence of rank 0. */
void report_say(report *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Training begins now. */
void report_start(report *r);

/* Step (from 1) begins. */
void report_progress(report *r, int64_t step, int64_t steps);

/* A step has ended; show: with its line. False if it could not be written. */
bool report_step(report *r, const step_report *s, bool show, trouble *t);

/* What of the communication on streams was hidden: it took so long, and the thread
 * that computes waited for so much of it; nanoseconds. */
void report_hidden(report *r, int64_t took, int64_t waited);

/* The last words: the account. Collective over the world. */
bool report_account(report *r, rdl_world *world, const step_report *last,
                    trouble *t);

/* "6,163,712" */
typedef struct digits {
    char text[40];
} digits;
digits digits_of(int64_t n);

#endif
