/* Operations: a call whose arguments are checked, with its ticket and its runs, as
 * an object that can be driven, left, and driven on.
 *
 * Threads: one at a time; who drives needs the lane's turn. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_COMM_OP_H
#define RDL_COMM_OP_H

#include "base/heap.h"
#include "comm/lane.h"
#include "comm/plan.h"
#include "comm/run.h"

#include <raddle/collective.h>

/* A public call's arguments. Zero is right for what a call does not have. */
typedef struct rdl_arguments {
    rdl_operation operation;
    const void *input;
    void *output;
    size_t count;                /* of each block */
    const size_t *input_counts;  /* instead of count, one for each member */
    const size_t *output_counts; /* likewise; the same as input_counts where one
                                    list says both */
    rdl_dtype dtype;
    rdl_reduction reduction;
    double factor; /* of PREMUL_SUM, as it is used */
    int root;
    size_t input_bytes; /* of the buffers of this rank, once they are checked */
    size_t output_bytes;
    uint32_t site; /* a text of the slice: where the program makes the call */
    bool blocks;   /* its own thread is in it until it has ended */
} rdl_arguments;

typedef struct rdl_op {
    rdl_lane *lane;
    uint64_t ticket;
    rdl_arguments arguments;
    rdl_pins pins; /* buffers in this rank's heap stay until the end */
    rdl_limit limit;
    const char *caller;
    const char *stream; /* its name */
    uint64_t on_stream; /* its number, until the operation has ended; 0: none */
    bool unfenced;
    bool begun;   /* counted, traced, its first run under way */
    bool starved; /* waits for a slot, to begin */
    bool running; /* run holds a lease */
    bool tabled;  /* all_to_all_v: everyone's counts are known */
    rdl_request request;
    rdl_run run;
    rdl_uneven uneven;
    size_t *room;    /* of the counts and offsets of uneven blocks */
    uint64_t *table; /* all_to_all_v: everyone's counts */
} rdl_op;

/* Copies arguments (not the buffers). The lane stays open by the ticket, which is
 * the caller's until the end. RDL_NO_MEMORY; RDL_INVALID: a buffer is memory that
 * was freed. Then nothing is held. */
rdl_status rdl_op_init(rdl_op *op, rdl_lane *lane, uint64_t ticket,
                       const rdl_arguments *arguments, int64_t timeout_ms,
                       const char *caller);

/* It will run on that stream. */
void rdl_op_on_stream(rdl_op *op, const rdl_stream *stream);

/* It has ended, with status: the account and the recorder hear of it. */
void rdl_op_note_end(rdl_op *op, rdl_status status);

/* Gives back what the op holds, finished or not; not the ticket. */
void rdl_op_fini(rdl_op *op);

/* What the runner is asked to do for a call whose blocks are all alike. */
rdl_request rdl_op_request(const rdl_lane *lane, const rdl_arguments *arguments);

/* With the turn: goes on until done (RDL_OK), until it would wait for member
 * run.peer or for a slot (RDL_AGAIN), or until it has failed. */
rdl_status rdl_op_advance(rdl_op *op);

/* The seam of bench/race (comm/seam.h): gives the ticket up, and takes a new one
 * when it starts, as a device library does. */
void rdl_op_unfence(rdl_op *op);

/* Takes its turn and goes on to the end, waiting where it must; the ticket is
 * passed. */
rdl_status rdl_op_run(rdl_op *op);

/* Several of one world, together: each as far as it goes, whichever comes first.
 * The lists are the caller's, count entries each. */
typedef struct rdl_crowd {
    rdl_world *world;
    rdl_op *ops;
    int count;
    rdl_status *statuses; /* RDL_AGAIN until op i has ended */
    char **sentences;     /* of failures; NULL: none, or no memory; the caller
                             frees them */
} rdl_crowd;

/* Nothing has ended yet. */
void rdl_crowd_init(rdl_crowd *crowd);

/* Moves each that has its turn as far as it goes, and passes the tickets of those
 * that end. Returns how many are left; *moved says whether one ended. */
int rdl_crowd_advance(rdl_crowd *crowd, bool *moved);

/* Whether one could go on. */
bool rdl_crowd_is_ready(const rdl_crowd *crowd);

/* Ends those that need not wait any more; whether there were any. *sleep becomes
 * less if a deadline comes sooner. */
bool rdl_crowd_look(rdl_crowd *crowd, rdl_time *sleep);

/* To the end, waiting where it must. */
void rdl_crowd_run(rdl_crowd *crowd);

#endif
