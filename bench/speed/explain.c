/* Which algorithm a call takes, by the library's own table and plans. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "explain.h"

#include "comm/choice.h"
#include "comm/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Of each half of a lease, with the default budget of staging. */
#define WINDOW_MOST ((size_t)1 << 19)

/* The library's number for an operation; an exchange is a send and a receive. */
static rdl_operation in_library(int operation)
{
    static const rdl_operation numbers[] = {
        [SPEED_BARRIER] = RDL_OP_BARRIER,
        [SPEED_ALL_REDUCE] = RDL_OP_ALL_REDUCE,
        [SPEED_ALL_GATHER] = RDL_OP_ALL_GATHER,
        [SPEED_REDUCE_SCATTER] = RDL_OP_REDUCE_SCATTER,
        [SPEED_ALL_TO_ALL] = RDL_OP_ALL_TO_ALL,
        [SPEED_BROADCAST] = RDL_OP_BROADCAST,
        [SPEED_REDUCE] = RDL_OP_REDUCE,
        [SPEED_GATHER] = RDL_OP_GATHER,
        [SPEED_SCATTER] = RDL_OP_SCATTER,
        [SPEED_ALL_GATHER_V] = RDL_OP_ALL_GATHER,
        [SPEED_REDUCE_SCATTER_V] = RDL_OP_REDUCE_SCATTER,
        [SPEED_ALL_TO_ALL_V] = RDL_OP_ALL_TO_ALL,
        [SPEED_EXCHANGE] = RDL_OP_SEND_RECV,
    };

    return numbers[operation];
}

static void print_rules(const speed_options *o, const rdl_choices *choices)
{
    const rdl_rule *rule;
    char text[RDL_RULE_TEXT];

    if (!o->json)
        printf("Rules, of which the first that fits decides:\n"
               "OPERATION:BYTES of a block:RANKS:CORES=ALGORITHM, the most of "
               "each, * is any\n\n");
    for (int i = 0; (rule = rdl_choices_rule(choices, i)) != NULL; i++) {
        rdl_rule_text(rule, text);
        if (o->json)
            printf("{\"rule\":\"%s\",\"own\":%s}\n", text,
                   i < choices->count ? "false" : "true");
        else
            printf("  %s%s\n", text,
                   i < choices->count ? "   (RADDLE_ALGORITHM)" : "");
    }
}

static rdl_plan plan_of(const rdl_shape *shape, bool mapped)
{
    size_t wish = rdl_plan_wish(shape);

    if (mapped && rdl_plan_may_map(shape))
        return rdl_plan_make(shape, RDL_PLAN_MAPPED);
    return rdl_plan_make(shape, wish < WINDOW_MOST ? wish : WINDOW_MOST);
}

static const char *way_of(const rdl_plan *plan)
{
    return plan->in_line ? "in the line" : plan->mapped ? "mapped" : "staged";
}

static void print_plan(const speed_options *o, int operation,
                       const rdl_plan *plan, uint64_t bytes)
{
    char text[24];

    if (o->json)
        printf("{\"operation\":\"%s\",\"bytes\":%" PRIu64
               ",\"ranks\":%d,\"cores\":\"%s\",\"algorithm\":\"%s\",\"way\":"
               "\"%s\",\"rounds\":%" PRIu64 "}\n",
               speed_operation_name(operation), bytes, plan->shape.size,
               plan->shape.choices->cores == RDL_CORES_EACH ? "each" : "shared",
               rdl_algorithm_name(plan->algorithm), way_of(plan), plan->rounds);
    else
        printf("%-16s %8s %5d %6s  %-9s %-11s %6" PRIu64 "\n",
               speed_operation_name(operation), speed_bytes_text(bytes, text),
               plan->shape.size,
               plan->shape.choices->cores == RDL_CORES_EACH ? "each" : "shared",
               rdl_algorithm_name(plan->algorithm), way_of(plan), plan->rounds);
}

static void explain_one(const speed_options *o, const rdl_choices *choices,
                        int operation, int members, uint64_t wished)
{
    uint64_t bytes = speed_fit(operation, members, 4, wished);
    rdl_shape shape = { .operation = in_library(operation),
                        .size = members,
                        .bytes = speed_block_bytes(operation, members, bytes),
                        .choices = choices };
    rdl_plan plan;

    plan = plan_of(&shape, o->mapped);
    print_plan(o, operation, &plan, bytes);
}

static void explain_operation(const speed_options *o, rdl_choices *choices,
                              int operation, int cores)
{
    int n = operation == SPEED_BARRIER ? 1 : o->n_bytes;

    for (int r = 0; r < o->n_ranks; r++) {
        int members = operation == SPEED_EXCHANGE ? 2 : o->ranks[r] / o->groups;

        choices->cores =
            o->ranks[r] <= cores ? RDL_CORES_EACH : RDL_CORES_SHARED;
        for (int b = 0; b < n; b++)
            explain_one(o, choices, operation, members, o->bytes[b]);
    }
}

int speed_explain(const speed_options *o, int cores)
{
    rdl_choices choices;

    if (rdl_choices_read(getenv("RADDLE_ALGORITHM"), &choices) != RDL_OK) {
        fprintf(stderr, SPEED_WHO ": %s\n", rdl_error_detail());
        return SPEED_USAGE;
    }
    print_rules(o, &choices);
    if (!o->json)
        printf("\n%-16s %8s %5s %6s  %-9s %-11s %6s\n", "operation", "bytes",
               "ranks", "cores", "algorithm", "way", "rounds");
    for (int i = 0; i < SPEED_OPERATIONS; i++)
        if (o->operations[i])
            explain_operation(o, &choices, i, cores);
    return fflush(stdout) == 0 ? 0 : SPEED_FAILED;
}
