/* The runner: executes a plan on a lane. Its whole state is here, so that it can
 * stop wherever it would wait and go on later. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_COMM_RUN_H
#define RDL_COMM_RUN_H

#include "comm/lane.h"
#include "comm/plan.h"

#include <raddle/collective.h>

/* A call, its arguments checked. */
typedef struct rdl_request {
    rdl_shape shape;
    rdl_operation name; /* as the caller knows it; the shape may be another's */
    uint64_t detail;    /* hash of counts that all must share; 0: none */
    uint32_t site;      /* a text of this rank's slice; 0: not known */
    size_t count;
    rdl_dtype dtype;
    rdl_reduction reduction;
    double factor; /* as it is kept; 0 but for PREMUL_SUM */
    const void *input;
    void *output;
    size_t output_bytes;
} rdl_request;

/* What the first line of a call says that does not fit a line. */
typedef struct rdl_offer {
    uint64_t offset; /* of the lease or the part of a nook, in the slice */
    uint64_t bytes;
    uint64_t input; /* in the heap */
    uint64_t output;
    uint64_t kinds;
} rdl_offer;

enum {
    RDL_OFFER_READS = 1,      /* heaps are mapped here */
    RDL_OFFER_HAS_INPUT = 2,  /* the input is in this rank's heap */
    RDL_OFFER_HAS_OUTPUT = 4, /* and the output */
    RDL_OFFER_NOOK = 8 /* it is a part of a nook, with all of the input */
};

_Static_assert(sizeof(rdl_offer) <= RDL_INLINE, "an offer travels in a line");

/* Whether the offer lies in staging: a member that writes nonsense must not make
 * us read elsewhere. */
bool rdl_offer_makes_sense(const rdl_offer *offer);

typedef struct rdl_run {
    rdl_lane *lane;
    const rdl_request *request;
    rdl_description description;
    uint64_t fingerprint;
    rdl_plan plan;
    rdl_lease lease;
    size_t window;  /* bytes of a half that all members have */
    bool agreed;    /* all members made this call, and window is known */
    bool small;     /* the lease is a part of the lane's nook */
    bool streaming; /* the output is stored past the caches */
    /* The cursor. */
    uint64_t step;
    int peer; /* AWAIT: the one not yet there */
} rdl_run;

/* The caller holds the drive lock of a prepared lane that has not failed, and has
 * counted the call in lane->number. */
void rdl_run_begin(rdl_run *run, rdl_lane *lane, const rdl_request *request);

/* The same for a small call whose first phase is published and has been awaited, with
 * this offer: some member has no nook. */
void rdl_run_take_over(rdl_run *run, rdl_lane *lane, const rdl_request *request,
                       const rdl_offer *mine);

/* Goes on until done (RDL_OK), until it would wait for run->peer (RDL_AGAIN), or
 * until the lane fails. */
rdl_status rdl_run_advance(rdl_run *run);

/* The verdict on what the members published for the present phase, or, with a
 * table, on the pairs of an all_to_all_v; a mismatch is the lane's failure. */
rdl_status rdl_run_judge(rdl_lane *lane, const uint64_t *table);

/* Gives the lease back. */
void rdl_run_end(rdl_run *run);

#endif
