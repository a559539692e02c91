/* Plans: what moves in a collective, as data. A plan is a pure function of the
 * call's shape and of the room that all members have; it can be printed,
 * compared and replayed on plain arrays without a single rank
 * (comm/plan_test.c). comm/run.c executes it.
 *
 * A plan is rounds of the same steps. In round k a step's range in the user's
 * buffer is [at + k * advance, + bytes), cut to [low, high). What it stages lies at
 * `staged` in this rank's window of the round; when low cuts the range's front,
 * the window is entered that much further. Windows are the line's payload
 * (inline), or one of two halves of the lease in turn: who publishes round k + 1
 * has read all of round k - 1, so its half is free. A mapped plan is one round in
 * which nothing is staged: a window is the member's whole input, or its output. A
 * small plan is one round whose window is a part of this rank's nook, which stays
 * as it is until its own turn comes again: so no phase has to follow. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_COMM_PLAN_H
#define RDL_COMM_PLAN_H

#include <raddle/collective.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RDL_OPERATION_MAP(X)                                                   \
    X(BARRIER, barrier)                                                        \
    X(BROADCAST, broadcast)                                                    \
    X(ALL_REDUCE, all_reduce)                                                  \
    X(ALL_GATHER, all_gather)                                                  \
    X(REDUCE_SCATTER, reduce_scatter)                                          \
    X(ALL_TO_ALL, all_to_all)                                                  \
    X(REDUCE, reduce)                                                          \
    X(GATHER, gather)                                                          \
    X(SCATTER, scatter)                                                        \
    X(ALL_GATHER_V, all_gather_v)                                              \
    X(REDUCE_SCATTER_V, reduce_scatter_v)                                      \
    X(ALL_TO_ALL_V, all_to_all_v)                                              \
    X(SEND_RECV, send_recv)

typedef enum rdl_operation {
#define X(name, text) RDL_OP_##name,
    RDL_OPERATION_MAP(X)
#undef X
} rdl_operation;

const char *rdl_operation_name(rdl_operation operation);

/* Whether it combines elements. */
bool rdl_operation_reduces(rdl_operation operation);

/* Blocks that are not all of one size; all in bytes, arrays of an entry for each
 * member. Block j of my input goes to member j, block j of my output comes from
 * it. */
typedef struct rdl_uneven {
    const size_t *in_at;
    const size_t *in_bytes;
    const size_t *their_at; /* where the block for me begins in j's input */
    const size_t *out_at;
    const size_t *out_bytes;
    size_t block_most; /* the largest block of any pair */
    size_t total_most; /* the largest input of any member */
} rdl_uneven;

/* Rules for choosing an algorithm: comm/choice.h. */
typedef struct rdl_choices rdl_choices;

/* All that a plan depends on. Equal on all members, but for me and for the offsets
 * in uneven. */
typedef struct rdl_shape {
    rdl_operation operation;
    int me;
    int size; /* at least 2 */
    int root;
    size_t bytes;               /* of each block: count * size of an element */
    const rdl_uneven *uneven;   /* NULL: all blocks have these bytes */
    const rdl_choices *choices; /* NULL: our own rules; equal on all members */
} rdl_shape;

typedef enum rdl_step_kind {
    RDL_STEP_STAGE,   /* input range -> window */
    RDL_STEP_PUBLISH, /* the window is written */
    RDL_STEP_AWAIT,   /* every member has published */
    RDL_STEP_TAKE, /* peer's window -> output range, if they are not the same */
    RDL_STEP_REDUCE, /* all members' windows -> output range, or own window */
} rdl_step_kind;

typedef struct rdl_step {
    rdl_step_kind kind;
    int peer;       /* TAKE */
    size_t user;    /* offset in the user's input (STAGE) or output */
    size_t bytes;   /* 0: nothing to do */
    size_t staged;  /* offset in the window read (STAGE: written) */
    bool to_window; /* REDUCE: into the own window at result */
    size_t result;
    bool of_output; /* TAKE, mapped: the window is the peer's output */
} rdl_step;

typedef enum rdl_algorithm {
    RDL_EMPTY,    /* nothing moves: one publish, one wait */
    RDL_ONE_SHOT, /* everyone publishes a piece, everyone takes what it needs */
    RDL_BLOCKED,  /* as one-shot, a piece of every block at once */
    RDL_STREAMED, /* as one-shot, the blocks one after another */
    RDL_TWO_PHASE /* reduce a slice each, then gather the slices */
} rdl_algorithm;

typedef struct rdl_plan {
    rdl_shape shape;
    rdl_algorithm algorithm;
    bool in_line;    /* windows are payloads */
    bool mapped;     /* windows are the members' buffers */
    bool small;      /* windows are parts of nooks */
    size_t piece;    /* bytes of user data per round (of a block if BLOCKED) */
    size_t slice;    /* TWO_PHASE: bytes a rank reduces per round */
    uint64_t rounds; /* at least 1 */
    int steps_in_round;
    int steps_at_end; /* PUBLISH and AWAIT, so that the lease is free */
} rdl_plan;

/* window: bytes of each half of the smallest lease; 0: there is none. element:
 * bytes, which pieces never split. */
rdl_plan rdl_plan_make(const rdl_shape *shape, size_t window);

/* As a window: all members can read each other's buffers where they lie. Only for a
 * shape that may be mapped. */
#define RDL_PLAN_MAPPED SIZE_MAX

/* Whether nobody writes what others may still read, though a member's input be its
 * output; and whether members read outputs, too. */
bool rdl_plan_may_map(const rdl_shape *shape);
bool rdl_plan_reads_outputs(const rdl_shape *shape);

/* Where the steps go on behind the first AWAIT of a mapped plan. */
#define RDL_PLAN_MAPPED_ON 3

/* As a window: all members have a nook. Only for a shape that is small. */
#define RDL_PLAN_SMALL (SIZE_MAX - 1)

/* Whether the call is made through nooks, where all members have one. */
bool rdl_plan_is_small(const rdl_shape *shape);

/* Where the steps wait for the first time in a small plan. */
#define RDL_PLAN_SMALL_AWAIT 2

/* Whether that member's input is read; what this rank hands over; and the most that
 * any member does, in bytes. */
bool rdl_plan_gives(const rdl_shape *shape, int member);
size_t rdl_plan_input(const rdl_shape *shape);
size_t rdl_plan_input_most(const rdl_shape *shape);

/* Whether the call fits one line, so that no lease is wanted. */
bool rdl_plan_fits_line(const rdl_shape *shape);

/* Bytes of a window that would do it all in one round. */
size_t rdl_plan_wish(const rdl_shape *shape);

uint64_t rdl_plan_steps(const rdl_plan *plan);

/* The i-th step. */
rdl_step rdl_plan_step(const rdl_plan *plan, uint64_t i);

/* The round it belongs to: which half of the lease. */
uint64_t rdl_plan_round(const rdl_plan *plan, uint64_t i);

#endif
