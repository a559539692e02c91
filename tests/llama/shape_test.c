/* What follows from a shape alone: counts, frequencies, rates. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "llama/llama.h"
#include "support/test.h"

#include <math.h>
#include <string.h>

RDL_TEST(the_debug_model_has_6163712_parameters)
{
    const llama_config *c = llama_config_named("llama3-debug");

    CHECK_INT(llama_parameter_count(c), 6163712);
    CHECK(llama_config_named("llama3_debugmodel") == c);
    CHECK(llama_config_named("debugmodel") == c);
    CHECK(llama_config_at(0) == c);
    CHECK(llama_config_named("llama4") == NULL);
}

RDL_TEST(a_token_of_the_debug_model_costs_71585280_operations)
{
    CHECK_INT(llama_flops_per_token(llama_config_named("llama3-debug"), 2048),
              71585280);
}

RDL_TEST(every_preset_is_possible_and_found_by_its_name)
{
    for (int i = 0; llama_config_at(i) != NULL; i++) {
        const llama_config *c = llama_config_at(i);

        CHECK_OK(llama_config_check(c, NULL));
        CHECK(llama_config_named(c->name) == c);
    }
}

RDL_TEST(low_frequencies_turn_eight_times_slower)
{
    static const double expected[] = { 1,
                                       0.193922745,
                                       0.0376060309,
                                       0.00729266474,
                                       0.000524846161,
                                       3.4281022e-5,
                                       6.64786987e-6,
                                       1.28917317e-6 };
    llama_config c = *llama_config_named("llama3-debug");

    for (int i = 0; i < 8; i++)
        CHECK_NEAR(llama_rope_frequency(&c, i), expected[i], 2e-7 * expected[i]);
    c.rope_factor = 1;
    CHECK_NEAR(llama_rope_frequency(&c, 4), 0.00141421356, 1e-9);
}

RDL_TEST(the_rate_of_the_debug_run_is_that_of_torchtitan)
{
    static const double expected[] = { 4, 8, 8, 7, 6, 5, 4, 3, 2, 1 };
    llama_schedule s = llama_schedule_defaults(10);

    for (int i = 0; i < 10; i++)
        CHECK_NEAR(llama_learning_rate(&s, i), expected[i] * 1e-4, 1e-12);
}

RDL_TEST(the_rate_never_leaves_its_range)
{
    static const int runs[] = { 1, 2, 3, 5, 7, 100 };

    for (size_t run = 0; run < sizeof runs / sizeof runs[0]; run++)
        for (int kind = 0; kind < 3 * 3; kind++) {
            llama_schedule s = llama_schedule_defaults(runs[run]);
            int ratio = kind / 3 - 1;

            s.decay = (llama_decay)(kind % 3);
            s.decay_ratio = ratio;
            s.min_factor = 0.1;
            for (int i = 0; i < runs[run]; i++) {
                double rate = llama_learning_rate(&s, i);

                CHECK(rate > 0 && rate <= s.learning_rate * (1 + 1e-12));
            }
        }
}

RDL_TEST(the_rate_stays_at_its_floor)
{
    llama_schedule s = llama_schedule_defaults(10);

    s.min_factor = 0.25;
    s.decay = LLAMA_COSINE;
    CHECK_NEAR(llama_learning_rate(&s, 10), 2e-4, 1e-12);
    CHECK_NEAR(llama_learning_rate(&s, 1000), 2e-4, 1e-12);
}

static void refused(llama_config c, const char *why)
{
    llama_error error = { "" };

    CHECK_STATUS(llama_config_check(&c, &error), RDL_INVALID);
    CHECK_HAS(error.text, why);
}

RDL_TEST(a_shape_that_cannot_be_is_refused_with_its_numbers)
{
    const llama_config good = *llama_config_named("llama3-debug");
    llama_config c = good;

    c.kv_heads = 3;
    refused(c, "3 kv_heads do not divide 16 heads");
    c = good;
    c.head_dim = 15;
    refused(c, "head_dim 15 is odd");
    c = good;
    c.layers = 0;
    refused(c, "layers is 0");
    c = good;
    c.vocab = -1;
    refused(c, "vocab is -1");
    c = good;
    c.norm_epsilon = (double)NAN;
    refused(c, "norm_epsilon");
    c = good;
    c.rope_theta = 0;
    refused(c, "rope theta 0");
    c = good;
    c.rope_high = 1;
    refused(c, "rope scaling by 8");
}
