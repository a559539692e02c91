/* Operations: a call whose arguments are checked, with its ticket and its runs, as
 * an object that can be driven, left, and driven on.
 *
 * Threads: one at a time; who drives needs the lane's turn. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_COMM_OP_H
#define RDL_COMM_OP_H

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
    int root;
} rdl_arguments;

typedef struct rdl_op {
    rdl_lane *lane;
    uint64_t ticket;
    rdl_arguments arguments;
    size_t bytes; /* that a group of one copies */
    rdl_limit limit;
    const char *caller;
    bool begun;   /* counted, traced, its first run under way */
    bool running; /* run holds a lease */
    bool tabled;  /* all_to_all_v: everyone's counts are known */
    rdl_request request;
    rdl_run run;
    rdl_uneven uneven;
    size_t *room;    /* of the counts and offsets of uneven blocks */
    uint64_t *table; /* all_to_all_v: everyone's counts */
} rdl_op;

/* Copies arguments (not the buffers). The lane stays open by the ticket, which is
 * the caller's until the end. RDL_NO_MEMORY: nothing is held. */
rdl_status rdl_op_init(rdl_op *op, rdl_lane *lane, uint64_t ticket,
                       const rdl_arguments *arguments, size_t bytes,
                       int64_t timeout_ms, const char *caller);

/* Gives back what the op holds, finished or not; not the ticket. */
void rdl_op_fini(rdl_op *op);

/* With the turn: goes on until done (RDL_OK), until it would wait for member
 * run.peer (RDL_AGAIN), or until it has failed. */
rdl_status rdl_op_advance(rdl_op *op);

/* Takes its turn and goes on to the end, waiting where it must; the ticket is
 * passed. */
rdl_status rdl_op_run(rdl_op *op);

/* Several of one world, together: each as far as it goes, whichever comes first.
 * statuses[i] becomes op i's, and its sentence sentences[i] (NULL: none, or no
 * memory; the caller frees it). All tickets are passed. */
void rdl_op_run_together(rdl_world *world, rdl_op *ops, int count,
                         rdl_status *statuses, char **sentences);

#endif
