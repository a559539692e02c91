/* What the parts of bench/faults share: the faults, the program of a run, what its
 * ranks report, and what is wrong about it. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BENCH_FAULTS_H
#define RDL_BENCH_FAULTS_H

#include <raddle/collective.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAULTS_RANKS_MOST 8
#define FAULTS_GROUPS 4 /* random ones, beside the world and the ring's */
#define FAULTS_GROUPS_MOST (1 + FAULTS_GROUPS + FAULTS_RANKS_MOST)
#define FAULTS_STEPS 28
#define FAULTS_LIMIT_MS 1000 /* of an operation */

/* Exit statuses of a rank. */
#define FAULTS_HEARD 3  /* a call failed */
#define FAULTS_ERROR 4  /* an error of its own, as was wanted */
#define FAULTS_WRONG 5  /* results were wrong, or the program is */
#define FAULTS_EXITED 7 /* as was wanted */

/* What every rank that goes on must be told. */
typedef enum faults_verdict {
    FAULTS_NONE,    /* nothing: the run ends right */
    FAULTS_CULPRIT, /* who made another call than most */
    FAULTS_CAMPS,   /* calls side by side, and no blame */
    FAULTS_DEAD,
    FAULTS_STOPPED,
    FAULTS_ABSENT,
    FAULTS_CYCLE,
    FAULTS_UNCLEAR /* no sentence that says one of these */
} faults_verdict;

/* name; what the verdict is if a majority has made no mistake. */
#define FAULTS_KIND_MAP(X)                                                     \
    X(KILL, "kill", DEAD)                                                      \
    X(STOP, "stop", STOPPED)                                                   \
    X(PAUSE, "pause", NONE)                                                    \
    X(EXIT, "exit", DEAD)                                                      \
    X(ERROR, "error", DEAD)                                                    \
    X(COUNT, "count", CULPRIT)                                                 \
    X(DTYPE, "dtype", CULPRIT)                                                 \
    X(ROOT, "root", CULPRIT)                                                   \
    X(ORDER, "order", CULPRIT)                                                 \
    X(SPLITS, "splits", CAMPS)                                                 \
    X(LATE, "late", ABSENT)                                                    \
    X(SLOW, "slow", NONE)                                                      \
    X(NEVER, "never", ABSENT)                                                  \
    X(CYCLE, "cycle", CYCLE)

typedef enum faults_kind {
#define X(name, text, verdict) FAULTS_##name##_KIND,
    FAULTS_KIND_MAP(X)
#undef X
        FAULTS_KINDS
} faults_kind;

extern const char *const faults_kind_names[FAULTS_KINDS];
extern const char *const faults_verdict_names[FAULTS_UNCLEAR + 1];

typedef enum faults_op {
    FAULTS_BARRIER,
    FAULTS_ALL_REDUCE,
    FAULTS_ALL_GATHER,
    FAULTS_REDUCE_SCATTER,
    FAULTS_ALL_TO_ALL,
    FAULTS_BROADCAST, /* from here on with a root */
    FAULTS_REDUCE,
    FAULTS_GATHER,
    FAULTS_SCATTER,
    FAULTS_TRANSFER, /* from the root to member `to` */
    FAULTS_ALL_TO_ALL_V,
    FAULTS_OPS
} faults_op;

typedef struct faults_group {
    int size;
    int ranks[FAULTS_RANKS_MOST];
    char name[16]; /* "": none */
} faults_group;

/* One call of all members of a group. */
typedef struct faults_step {
    faults_op op;
    int group;
    int root; /* group ranks */
    int to;
    size_t count;
    rdl_dtype dtype;
    size_t splits[FAULTS_RANKS_MOST][FAULTS_RANKS_MOST]; /* from, to */
} faults_step;

/* What a run does: every rank goes through all steps and takes part in those of its
 * groups. A pure function of seed, number and kind. */
typedef struct faults_program {
    uint64_t seed;
    int ranks;
    int groups;
    faults_group group[FAULTS_GROUPS_MOST]; /* 0: the world */
    faults_step step[FAULTS_STEPS];
    faults_kind kind;
    int culprit;
    unsigned faulty; /* bits of ranks: the culprit, or half a group */
    int at;          /* the step */
    int other;       /* ORDER and CYCLE: the one that comes before it */
    int variant;     /* 0..3 */
    int64_t delay;   /* ns into the step; 0: before it */
    faults_verdict verdict;
} faults_program;

void faults_make(faults_program *program, uint64_t seed, int run,
                 faults_kind kind);

/* The next number of a generator, below that; 0 if that is 0. */
uint64_t faults_draw(uint64_t *state, uint64_t below);

/* This rank's place in the group; -1: none. */
int faults_place(const faults_group *group, int rank);

/* What a call puts into memory: input and output of one step, on one rank. */
typedef struct faults_buffers {
    void *input;
    void *output;
} faults_buffers;

bool faults_prepare(const faults_program *program, int step, int rank,
                    faults_buffers *buffers);

/* Whether the results are right; else why not, in text. */
bool faults_check(const faults_program *program, int step, int rank,
                  const faults_buffers *buffers, char *text, size_t bytes);

/* The rank that the environment says. Returns its exit status. */
int faults_rank(const faults_program *program);

/* --- what comes of it ------------------------------------------------------ */

#define FAULTS_SENTENCE 2048

/* What one rank reported. */
typedef struct faults_report {
    bool right; /* it came to its end */
    bool wrong; /* and its results are not right: sentence */
    bool told;  /* a call has failed: what follows */
    rdl_status status;
    int step;
    bool succeeded;  /* in the call of the fault */
    int64_t fault;   /* when it did the fault; 0: it did not */
    int64_t passed;  /* when it came to the fault's step; 0: it did not */
    int64_t entered; /* when it made the call that failed */
    int64_t ended;   /* and when that returned */
    int64_t starved; /* ns meanwhile in which it wanted a core and had none */
    char sentence[FAULTS_SENTENCE];
} faults_report;

/* How a run ended. */
typedef struct faults_end {
    faults_report report[FAULTS_RANKS_MOST];
    int status;   /* of the launcher; -1: it had to be killed */
    int first;    /* whom it calls the first that failed; -1: nobody */
    int left;     /* processes */
    double ms;    /* all of it */
    char *output; /* of launcher and ranks; the caller frees it */
} faults_end;

typedef struct faults_setting {
    const char *raddle; /* the command */
    const char *self;   /* this program */
    uint64_t seed;
    int run;
    faults_kind kind;
    bool strict;
} faults_setting;

/* One run in fresh processes; false if it could not be started, which was said. */
bool faults_run(const faults_setting *setting, faults_end *end);

/* What is wrong about a run. */
typedef struct faults_marks {
    int wrong_verdict;
    int innocent_named;
    int late;
    int wrong_status;
    int left_behind;
    double ms; /* from the fault to the last verdict; -1: none */
    char why[FAULTS_SENTENCE + 256]; /* the first thing that is wrong; "" */
} faults_marks;

void faults_judge(const faults_program *program, const faults_end *end,
                  bool strict, faults_marks *marks);

#endif
