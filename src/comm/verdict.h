/* Verdicts: whether all members made the same call, and if not, who differs. A
 * pure function of what all published, so that all ranks come to the same one
 * without asking each other again. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_COMM_VERDICT_H
#define RDL_COMM_VERDICT_H

#include "base/layout.h"
#include "base/ranks.h"
#include "base/status.h"

#include <stdbool.h>

/* Of all that must agree; never 0. */
uint64_t rdl_fingerprint(const rdl_description *description);

/* "bfloat16", "premul_sum"; "?" for a number that is none. Static. */
const char *rdl_dtype_name(unsigned dtype);
const char *rdl_reduction_name(unsigned reduction);

/* "all_reduce(409600 float32, sum)", "broadcast(8 int64, root 1)",
 * "all_reduce(8 bfloat16, premul_sum by 0.5)" */
void rdl_description_text(const rdl_description *description, char *text,
                          size_t bytes);

/* Where members make their calls. NULL for show: nobody knows. */
typedef struct rdl_sites {
    /* Adds " at train.c:120", or nothing. */
    void (*show)(const void *arg, int member, rdl_text *text);
    const void *arg;
} rdl_sites;

/* What each of size members published for one call: ranks[i] is member i's world
 * rank, in the group named by text. Returns RDL_OK if all agree, else
 * RDL_MISMATCH and the verdict as sentence: by strict majority where there is
 * one, else camp beside camp, each with the site of its first member. */
rdl_status rdl_verdict(const rdl_description *descriptions, const int *ranks,
                       int size, const char *group, const rdl_sites *sites);

#endif
