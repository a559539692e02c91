/* Verdicts: whether all members made the same call, and if not, who differs. A
 * pure function of what all published, so that all ranks come to the same one
 * without asking each other again. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_COMM_VERDICT_H
#define RDL_COMM_VERDICT_H

#include "base/layout.h"
#include "base/ranks.h"
#include "base/status.h"
#include "comm/lane.h"

#include <stdbool.h>

/* Of all that must agree, and of the number of the call; never 0. */
uint64_t rdl_fingerprint(const rdl_description *description);

/* "bfloat16", "premul_sum"; "?" for a number that is none. Static. */
const char *rdl_dtype_name(unsigned dtype);
const char *rdl_reduction_name(unsigned reduction);

/* "all_reduce(409600 float32, sum)", "broadcast(8 int64, root 1)",
 * "all_reduce(8 bfloat16, premul_sum by 0.5)", "receive(4 float32)",
 * "all_gather_v(4 int64 in all, counts [0,3,1,0])". counts: its list; NULL: not
 * known. */
void rdl_description_text(const rdl_description *description,
                          const rdl_counts *counts, char *text, size_t bytes);

/* What the members of a group published for one call. */
typedef struct rdl_published {
    const rdl_description *calls; /* of each member */
    const int *ranks;             /* their ranks in the world */
    int size;
    const char *group; /* in words */
    /* Reads a member's list of counts; NULL: there are none. */
    void (*read_counts)(const void *arg, int member, rdl_counts *counts);
    /* Adds where a member makes its call, " at train.c:120"; NULL: nobody knows. */
    void (*show_site)(const void *arg, int member, rdl_text *text);
    const void *arg;
} rdl_published;

/* RDL_OK if all agree, else RDL_MISMATCH and the verdict as sentence: by strict
 * majority where there is one, else camp beside camp, each with the site of its first
 * member; who is at another call of the group is said to be. */
rdl_status rdl_verdict(const rdl_published *published);

/* The same for all_to_all_v, pair by pair. Row i of the table: what member i sends
 * to each of size members, then what it expects from each. */
rdl_status rdl_verdict_on_pairs(const uint64_t *table,
                                const rdl_published *published);

#endif
