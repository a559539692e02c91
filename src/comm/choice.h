/* Which algorithm a call takes, where it may take several: a table of rules, of which
 * the first that fits decides. What the program's environment says stands before our
 * own. All ranks must have the same rules, as a plan must be equal on all members.
 *
 * As text: rules apart by commas, OPERATION[:BYTES[:RANKS[:CORES]]]=ALGORITHM, such as
 * "all_reduce:16K:4=one_shot,all_reduce=two_phase". BYTES (of a block, with K or M for
 * 1,024 and its square) and RANKS (of the group) are the most for which the rule
 * holds, CORES is "each" where each rank of the world has one and "shared" where not;
 * "*", or nothing, is any. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_COMM_CHOICE_H
#define RDL_COMM_CHOICE_H

#include "base/status.h"
#include "comm/plan.h"

#define RDL_RULES_MOST 16 /* of the environment's */
#define RDL_RULE_TEXT 96

typedef enum rdl_cores {
    RDL_CORES_ANY,
    RDL_CORES_EACH,
    RDL_CORES_SHARED
} rdl_cores;

typedef struct rdl_rule {
    rdl_operation operation;
    size_t bytes_most; /* SIZE_MAX: any */
    int ranks_most;    /* INT_MAX: any */
    rdl_cores cores;
    rdl_algorithm algorithm;
} rdl_rule;

/* Zeroed: our own rules alone. */
struct rdl_choices {
    rdl_rule rules[RDL_RULES_MOST];
    int count;
    rdl_cores cores; /* how it is in this world; ANY: only rules for any fit */
};

/* text NULL or "": no rules. RDL_INVALID, with the rule and what would do; then *out
 * is untouched. */
rdl_status rdl_choices_read(const char *text, rdl_choices *out);

/* Equal for equal rules; 0: there are none. */
uint32_t rdl_choices_hash(const rdl_choices *choices);

/* The algorithm of a call that has staging; choices NULL: our own rules. RDL_EMPTY:
 * no rule is about this operation, which has one way only. */
rdl_algorithm rdl_choose(const rdl_choices *choices, const rdl_shape *shape);

/* The i-th rule of all, in order; NULL: there are no more. */
const rdl_rule *rdl_choices_rule(const rdl_choices *choices, int i);

const char *rdl_algorithm_name(rdl_algorithm algorithm);

/* "all_reduce:16384:4:*=one_shot" */
void rdl_rule_text(const rdl_rule *rule, char text[RDL_RULE_TEXT]);

#endif
