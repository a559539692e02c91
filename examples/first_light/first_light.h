/* What the files of this program share: one rank's view of the demo, and how
 * the ranks say that something is wrong.
 *
 * Functions that return bool return true if all is well; false means that
 * demo.trouble holds a sentence and the demo ends. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FIRST_LIGHT_H
#define FIRST_LIGHT_H

#include <raddle/account.h>
#include <raddle/collective.h>
#include <raddle/group.h>
#include <raddle/world.h>
#include <stdbool.h>
#include <stdint.h>

#define MOST_RANKS 16 /* 10^16 and all below it fit an int64 */
#define MANY_GROUPS 1000
#define BYTES 256 /* values of a byte: rows and columns of the model */
#define CELLS ((size_t)BYTES * BYTES)

/* Why the demo ends early. */
typedef struct trouble {
    int32_t status; /* of the exit; 0: there is none */
    int32_t shared; /* every rank has this one: rank 0 speaks for all */
    char text[504];
} trouble;

/* What /proc and /dev/shm say of this process and this machine. */
typedef struct surroundings {
    int64_t descriptors;
    int64_t threads;
    int64_t dev_shm; /* bytes in use, by whomever */
} surroundings;

/* The documents, the same on every rank. */
typedef struct corpus {
    int64_t documents;
    int64_t bytes;
    int64_t pairs;  /* a document of n bytes has n-1; none spans two */
    int64_t binary; /* skipped: files that are not text, */
    int64_t tiny;   /* shorter than a pair, */
    int64_t odd;    /* and what is not a regular file */
    int64_t path_bytes;
    char *paths;    /* one after another, each with its NUL */
    int64_t *sizes; /* of each document */
} corpus;

typedef struct demo {
    rdl_world *world;
    int rank;
    int size;
    bool json;
    bool help;
    long steps;
    long every; /* print each so many steps; 0: the first ten, then each 50 */
    char **paths;
    int n_paths;
    corpus text;
    int64_t *counts; /* CELLS pairs: of this rank's part of the text, */
    int64_t *totals; /* and of all of it */
    trouble trouble;
    surroundings before; /* the world was opened */
    surroundings full;   /* all groups open */
    int64_t dev_shm_peak;
    rdl_account account; /* all groups open */
} demo;

/* speak.c: ends and output */

/* Keeps the sentence (if it is the first) and returns false. fail_alike: every
 * rank is known to come to the same sentence. */
bool fail(demo *d, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool fail_alike(demo *d, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Passes on a raddle call's failure, with its sentence. */
bool ok(demo *d, rdl_status status);

/* All ranks call it, in trouble or not: the trouble of the lowest rank that has
 * one becomes everybody's, so that all end alike and nobody waits. */
bool agree(demo *d);

/* A line of output from rank 0: for a person, and for a program. */
void say(const demo *d, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void say_json(const demo *d, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void say_gap(const demo *d);

double seconds_now(void);

/* "1,234,567"; "12.3 MB"; "1 min 05 s", written into the caller's buffer. */
typedef struct words {
    char text[32];
} words;
const char *grouped(int64_t number, words *buffer);
const char *scaled_bytes(double bytes, words *buffer);
const char *duration(double seconds, words *buffer);

/* show.c: sums over groups, a thousand groups, two lanes of one list */
bool show_sums(demo *d);
bool show_many_groups(demo *d);
bool show_two_names(demo *d);

/* account.c: what it took */
surroundings look_around(void);
void watch_dev_shm(demo *d);
bool take_account(demo *d);
bool show_account(demo *d);
bool find_peak(demo *d);

/* text.c: the documents, and this rank's part of them */
bool list_text(demo *d);
bool count_pairs(demo *d);

/* train.c: the model */
bool train(demo *d);

#endif
