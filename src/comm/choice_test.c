/* The table of algorithms: what is chosen, and what rules are refused. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/choice.h"

#include "support/replay.h"
#include "support/test.h"

static rdl_choices read_rules(const char *text)
{
    rdl_choices choices;

    CHECK_OK(rdl_choices_read(text, &choices));
    return choices;
}

static rdl_algorithm choose(const rdl_choices *choices, rdl_operation operation,
                            size_t bytes, int size)
{
    rdl_shape shape = { .operation = operation, .size = size, .bytes = bytes };

    return rdl_choose(choices, &shape);
}

RDL_TEST(our_own_rules_go_by_size_and_ranks)
{
    CHECK_INT(choose(NULL, RDL_OP_ALL_REDUCE, 65536, 2), RDL_ONE_SHOT);
    CHECK_INT(choose(NULL, RDL_OP_ALL_REDUCE, 65537, 2), RDL_TWO_PHASE);
    CHECK_INT(choose(NULL, RDL_OP_ALL_REDUCE, 16384, 4), RDL_ONE_SHOT);
    CHECK_INT(choose(NULL, RDL_OP_ALL_REDUCE, 16385, 3), RDL_TWO_PHASE);
    CHECK_INT(choose(NULL, RDL_OP_REDUCE, 8192, 1024), RDL_ONE_SHOT);
    CHECK_INT(choose(NULL, RDL_OP_REDUCE, 8193, 5), RDL_TWO_PHASE);
    CHECK_INT(choose(NULL, RDL_OP_SCATTER, 1, 2), RDL_BLOCKED);
    CHECK_INT(choose(NULL, RDL_OP_BROADCAST, 1, 2), RDL_EMPTY);
}

RDL_TEST(the_first_rule_that_fits_decides)
{
    rdl_choices c = read_rules("all_reduce:1K:4=two_phase,"
                               "all_reduce:2K=one_shot,"
                               "all_reduce:*:*:each=two_phase,"
                               "all_reduce=one_shot,all_to_all:64=streamed");

    CHECK_INT(c.count, 5);
    CHECK_INT(choose(&c, RDL_OP_ALL_REDUCE, 1024, 4), RDL_TWO_PHASE);
    CHECK_INT(choose(&c, RDL_OP_ALL_REDUCE, 1024, 5), RDL_ONE_SHOT);
    CHECK_INT(choose(&c, RDL_OP_ALL_REDUCE, 2048, 2), RDL_ONE_SHOT);
    CHECK_INT(choose(&c, RDL_OP_ALL_REDUCE, 1 << 30, 2), RDL_ONE_SHOT);
    CHECK_INT(choose(&c, RDL_OP_ALL_TO_ALL, 64, 2), RDL_STREAMED);
    CHECK_INT(choose(&c, RDL_OP_ALL_TO_ALL, 65, 2), RDL_BLOCKED);
    c.cores = RDL_CORES_EACH;
    CHECK_INT(choose(&c, RDL_OP_ALL_REDUCE, 1 << 30, 2), RDL_TWO_PHASE);
    c.cores = RDL_CORES_SHARED;
    CHECK_INT(choose(&c, RDL_OP_ALL_REDUCE, 1 << 30, 2), RDL_ONE_SHOT);
}

RDL_TEST(rules_print_as_they_are_read)
{
    static const char text[] = "all_reduce:4096:8:shared=one_shot";
    rdl_choices c = read_rules(text), again;
    char printed[RDL_RULE_TEXT], second[RDL_RULE_TEXT];
    int n = 0;

    rdl_rule_text(rdl_choices_rule(&c, 0), printed);
    CHECK_TEXT(printed, text);
    while (rdl_choices_rule(NULL, n) != NULL) {
        rdl_rule_text(rdl_choices_rule(NULL, n++), printed);
        again = read_rules(printed);
        rdl_rule_text(rdl_choices_rule(&again, 0), second);
        CHECK_TEXT(second, printed);
    }
    CHECK(n > 0);
    CHECK(rdl_choices_rule(&c, n + 1) == NULL);
}

RDL_TEST(rules_that_differ_have_other_hashes)
{
    rdl_choices none = read_rules(NULL), empty = read_rules("");
    rdl_choices a = read_rules("reduce=one_shot");
    rdl_choices b = read_rules("reduce:*:*:*=one_shot");
    rdl_choices c = read_rules("reduce:9=one_shot");

    CHECK_INT(rdl_choices_hash(&none), 0);
    CHECK_INT(rdl_choices_hash(&empty), 0);
    CHECK(rdl_choices_hash(&a) != 0);
    CHECK_INT(rdl_choices_hash(&a), rdl_choices_hash(&b));
    CHECK(rdl_choices_hash(&a) != rdl_choices_hash(&c));
}

RDL_TEST(wrong_rules_are_refused_with_what_would_do)
{
    static const char *const wrong[][2] = {
        { "broadcast=one_shot", "names no operation that has several ways" },
        { "all_reduce", "has no ALGORITHM" },
        { "all_reduce=", "has no ALGORITHM" },
        { "all_reduce=blocked", "one_shot or two_phase for all_reduce" },
        { "scatter=two_phase", "else blocked or streamed" },
        { "all_reduce:x=one_shot", "has no size for BYTES" },
        { "all_reduce:-1=one_shot", "has no size for BYTES" },
        { "all_reduce:4Q=one_shot", "has no size for BYTES" },
        { "all_reduce:99999999999999999999=one_shot", "has no size" },
        { "all_reduce:4:1=one_shot", "has no number from 2 to 1024" },
        { "all_reduce:4:1025=one_shot", "has no number from 2 to 1024" },
        { "all_reduce:4:2:some=one_shot", "none of each, shared" },
        { "all_reduce:4:2:each:5=one_shot", "none of each, shared" },
        { ",", "names no operation" },
        { "reduce=one_shot,", "names no operation" },
    };
    rdl_choices c = { .count = 7 };

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK_STATUS(rdl_choices_read(wrong[i][0], &c), RDL_INVALID);
        CHECK_HAS(rdl_error_detail(), wrong[i][1]);
        CHECK_HAS(rdl_error_detail(), "RADDLE_ALGORITHM: '");
        CHECK_INT(c.count, 7);
    }
}

RDL_TEST(too_many_rules_and_too_long_ones_are_refused)
{
    char text[RDL_RULES_MOST * RDL_RULE_TEXT + 8] = "";
    rdl_choices c = { .count = 7 };

    for (int i = 0; i < RDL_RULES_MOST; i++)
        strcat(text, i == 0 ? "reduce=one_shot" : ",reduce=one_shot");
    CHECK_INT(read_rules(text).count, RDL_RULES_MOST);
    strcat(text, ",reduce=one_shot");
    CHECK_STATUS(rdl_choices_read(text, &c), RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "one rule too many");
    memset(text, 'a', sizeof text - 1);
    CHECK_STATUS(rdl_choices_read(text, &c), RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "too long");
    CHECK_INT(c.count, 7);
}

/* --- plans by every rule --------------------------------------------------- */

static rdl_replay_call call;

static void replay(const rdl_shape *shape, size_t window, bool in_place,
                   uint64_t seed)
{
    const char *wrong;

    call.shape = *shape;
    call.window = window;
    call.in_place = in_place;
    call.seed = seed;
    wrong = rdl_replay(&call);
    if (wrong != NULL)
        RDL_TEST_FAIL("%s of %zu bytes, %d members, window %zu: %s",
                      rdl_operation_name(shape->operation), shape->bytes,
                      shape->size, window, wrong);
}

static void replay_sizes(const rdl_choices *choices, rdl_operation operation)
{
    static const size_t bytes[] = { 49, 64, 65, 200, 1000, 16448, 70001 };
    static const size_t windows[] = { 0, 256, 1024, 32768 };

    for (int size = 2; size <= 5; size++)
        for (size_t b = 0; b < sizeof bytes / sizeof *bytes; b++) {
            rdl_shape shape = { .operation = operation,
                                .size = size,
                                .bytes = bytes[b],
                                .choices = choices };

            for (size_t w = 0; w < 4; w++)
                replay(&shape, windows[w], (b + w) % 2, b + w);
            if (rdl_plan_may_map(&shape))
                replay(&shape, RDL_PLAN_MAPPED, b % 2, b);
        }
}

RDL_TEST(plans_by_every_algorithm_do_what_they_say)
{
    rdl_choices whole = read_rules("all_reduce=one_shot,reduce=one_shot");
    rdl_choices parts = read_rules("all_reduce=two_phase,reduce=two_phase,"
                                   "reduce_scatter=streamed,"
                                   "all_to_all=streamed,scatter=streamed");

    replay_sizes(&whole, RDL_OP_ALL_REDUCE);
    replay_sizes(&whole, RDL_OP_REDUCE);
    replay_sizes(&parts, RDL_OP_ALL_REDUCE);
    replay_sizes(&parts, RDL_OP_REDUCE);
    replay_sizes(&parts, RDL_OP_REDUCE_SCATTER);
    replay_sizes(&parts, RDL_OP_ALL_TO_ALL);
    replay_sizes(&parts, RDL_OP_SCATTER);
}
