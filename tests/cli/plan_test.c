/* Layouts of ranks and of rows. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/test.h"

#include "train/flags.h"
#include "train/plan.h"

#include <stdio.h>
#include <string.h>

#define WORDS_MOST 32

/* The plan of a command line, for a world of that size (0: none yet). */
static bool make(train_plan *p, const char *typed, int world_size, trouble *t)
{
    char words[512], *argv[WORDS_MOST] = { "train" };
    train_options o;
    int argc = 1;
    bool help, fine;

    snprintf(words, sizeof words, "%s", typed);
    for (char *w = strtok(words, " "); w != NULL; w = strtok(NULL, " "))
        argv[argc++] = w;
    argv[argc] = NULL;
    *t = (trouble){ .status = 0 };
    CHECK(options_init(&o, t));
    if (!options_read(&o, argc, argv, &help, t))
        RDL_TEST_FAIL("%s: %s", typed, t->text);
    fine = plan_make(p, &o, world_size, t);
    options_free(&o);
    return fine;
}

static void check_layout(const char *typed, int ranks, int replicate, int shard,
                         int context)
{
    train_plan p;
    trouble t;

    if (!make(&p, typed, 0, &t))
        RDL_TEST_FAIL("%s: %s", typed, t.text);
    CHECK_INT(p.ranks, ranks);
    CHECK_INT(p.replicate, replicate);
    CHECK_INT(p.shard, shard);
    CHECK_INT(p.context, context);
    CHECK_INT(p.dp, replicate * shard);
}

static void check_refused(const char *typed, const char *sentence)
{
    train_plan p;
    trouble t;

    CHECK(!make(&p, typed, 0, &t));
    CHECK_TEXT(t.text, sentence);
    CHECK_INT(t.status, 2);
}

RDL_TEST(ranks_are_what_the_degrees_ask_for)
{
    check_layout("", 1, 1, 1, 1);
    check_layout("--cp 4", 4, 1, 1, 4);
    check_layout("--dp-replicate 2 --dp-shard 3 --cp 4 --tokens 12288", 24, 2,
                 3, 4);
    check_refused(
        "--cp 4 --dp-shard 512 --tokens 524288",
        "the degrees ask for 2048 ranks, and a world has at most 1024");
}

RDL_TEST(what_the_other_degrees_leave_is_dp_shard)
{
    check_layout("--ranks 2", 2, 1, 2, 1);
    check_layout("--ranks 4 --cp 2", 4, 1, 2, 2);
    check_layout("--ranks 4 --cp 4", 4, 1, 1, 4);
    check_layout("--ranks 4 --dp-replicate 4 --tokens 4096", 4, 4, 1, 1);
    check_layout("--ranks 8 --dp-replicate 2 --cp 2 --tokens 4096", 8, 2, 2, 2);
}

RDL_TEST(without_fsdp_it_is_more_copies)
{
    check_layout("--ranks 4 --no-fsdp --tokens 4096", 4, 4, 1, 1);
    check_layout("--ranks 4 --no-fsdp --cp 2", 4, 2, 1, 2);
    check_layout("--ranks 4 --no-fsdp --dp-replicate 2 --cp 2", 4, 2, 1, 2);
    check_refused(
        "--ranks 4 --no-fsdp --dp-shard 4",
        "--no-fsdp keeps all parameters on every rank, and dp_shard(4) "
        "cuts them: leave one of the two, or take dp_replicate");
}

RDL_TEST(a_layout_that_does_not_multiply_is_refused_with_the_numbers)
{
    check_refused(
        "--ranks 4 --cp 3",
        "Invalid parallel dims: dp_replicate(1) * dp_shard(1) * cp(3) "
        "!= WORLD_SIZE(4)");
    check_refused(
        "--ranks 4 --dp-replicate 2 --dp-shard 4",
        "Invalid parallel dims: dp_replicate(2) * dp_shard(4) * cp(1) "
        "!= WORLD_SIZE(4)");
    check_refused(
        "--ranks 2 --cp 1000000000 --dp-replicate 1000000000",
        "Invalid parallel dims: dp_replicate(1000000000) * dp_shard(1) "
        "* cp(1000000000) != WORLD_SIZE(2)");
    check_refused(
        "--ranks 4 --no-fsdp --cp 3",
        "Invalid parallel dims: dp_replicate(1) * dp_shard(1) * cp(3) "
        "!= WORLD_SIZE(4)");
    check_refused("--cp 0", "Parallelism degree should be >= 1, except for "
                            "dp_shard: context_parallel_degree is 0");
    check_refused("--dp-replicate -1", "Parallelism degree should be >= 1, "
                                       "except for dp_shard: "
                                       "data_parallel_replicate_degree is -1");
    check_refused("--dp-shard 0", "dp_shard must be -1 or >=1: "
                                  "data_parallel_shard_degree is 0");
    check_refused("--dp-shard -2", "dp_shard must be -1 or >=1: "
                                   "data_parallel_shard_degree is -2");
}

RDL_TEST(the_job_says_how_many_ranks_there_are)
{
    train_plan p;
    trouble t;

    CHECK(make(&p, "--cp 2 --tokens 2048", 4, &t));
    CHECK_INT(p.ranks, 4);
    CHECK_INT(p.shard, 2);
    CHECK(make(&p, "--ranks 4 --cp 2", 4, &t));
    CHECK(!make(&p, "--ranks 2", 4, &t));
    CHECK_TEXT(t.text,
               "--ranks says 2, and this process was started as one of 4 "
               "ranks");
}

RDL_TEST(rows_are_divided_by_context_and_data_ranks)
{
    check_refused("--ranks 4 --cp 4 --seq 100",
                  "max_context_length (100) must be divisible by 2 * cp (8): "
                  "each of the 4 ranks of a row takes two pieces of it");
    check_refused("--seq 256 --tokens 1000",
                  "a step of 1000 tokens is not whole rows of 256 tokens; 1024 "
                  "would be");
    check_refused(
        "--ranks 4",
        "a step of 2 rows (2048 tokens / 1024 a row) cannot be divided "
        "by dp(4) * accumulate(1); --tokens 4096 would fit");
    check_refused(
        "--ranks 2 --accumulate 3 --seq 256 --tokens 1024",
        "a step of 4 rows (1024 tokens / 256 a row) cannot be divided "
        "by dp(2) * accumulate(3); --tokens 1536 would fit");
    check_refused("--seq 2000000", "Training sequence length (2000000) exceeds "
                                   "attention RoPE maximum (1048576)");
    check_refused(
        "--ranks 1024 --accumulate 1000000 --training.num_tokens_per_"
        "microbatch_per_dp_rank 1000000000",
        "a step of 1024000000000000000 tokens; at most 1000000000 are "
        "one step");
    check_refused("--tokens 0", "a step has no tokens: --tokens 0");
}

RDL_TEST(tokens_of_a_microbatch_decide_how_many_there_are)
{
    static const char microbatch[] =
        "--training.num_tokens_per_microbatch_per_dp_rank 512 --seq 256 ";
    char typed[256];
    train_plan p;
    trouble t;

    CHECK(make(&p, microbatch, 0, &t));
    CHECK_INT(p.rows, 2);
    CHECK_INT(p.accumulate, 1);
    snprintf(typed, sizeof typed, "%s--ranks 2 --accumulate 3", microbatch);
    CHECK(make(&p, typed, 0, &t));
    CHECK_INT(p.rows, 12);
    CHECK_INT(p.microbatch, 2);
    snprintf(typed, sizeof typed, "%s--ranks 2 --tokens 4096", microbatch);
    CHECK(make(&p, typed, 0, &t));
    CHECK_INT(p.accumulate, 4);
    snprintf(typed, sizeof typed, "%s--ranks 2 --tokens 1536", microbatch);
    check_refused(typed, "a step of 1536 tokens is not a multiple of 1 "
                         "microbatches of 512 tokens on dp(2) ranks");
    snprintf(typed, sizeof typed, "%s--tokens 2048 --accumulate 3", microbatch);
    check_refused(typed, "a step of 2048 tokens is not 3 microbatches of 512 "
                         "tokens on dp(1) ranks");
}

/* Whatever the layout, each row of a step belongs to one data-parallel rank, in
 * the order of the ranks, and all context ranks of it read the same ones. */
RDL_TEST(every_layout_deals_the_same_rows)
{
    static const char *const layouts[] = {
        "--ranks 1",
        "--ranks 1 --accumulate 4",
        "--ranks 2",
        "--ranks 4 --cp 4",
        "--ranks 4 --cp 2 --accumulate 2",
        "--ranks 4 --dp-replicate 2",
        "--ranks 8 --dp-replicate 2 --dp-shard 2 --cp 2 --accumulate 2",
    };
    char typed[256];
    train_plan p;
    trouble t;

    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        int64_t next = 3 * 8;

        snprintf(typed, sizeof typed, "%s --seq 256 --tokens 2048", layouts[i]);
        CHECK(make(&p, typed, 0, &t));
        CHECK_INT(p.rows, 8);
        for (int d = 0; d < p.dp; d++)
            for (int64_t m = 0; m < p.accumulate; m++) {
                for (int c = 0; c < p.context; c++)
                    CHECK_INT(plan_first_row(&p, d * p.context + c, 3, m), next);
                next += p.microbatch;
            }
        CHECK_INT(next, 4 * 8);
    }
}

RDL_TEST(models_are_named_as_torchtitan_does_too)
{
    train_plan p;
    trouble t;

    CHECK(make(&p, "--model llama3_debugmodel", 0, &t));
    CHECK_TEXT(p.config->name, "llama3-debug");
    CHECK(make(&p, "--model llama3/llama3_debugmodel", 0, &t));
    CHECK(make(&p, "--model llama3/debugmodel", 0, &t));
    CHECK(!make(&p, "--model gpt", 0, &t));
    CHECK_HAS(t.text, "there is no model 'gpt'; there are llama3-debug, ");
}

RDL_TEST(words_choose_recomputation_and_decay)
{
    train_plan p;
    trouble t;

    CHECK(make(&p, "activation-checkpoint:full --lr_scheduler.decay_type cosine",
               0, &t));
    CHECK_INT(p.recompute, LLAMA_RECOMPUTE_FULL);
    CHECK_INT(p.schedule.decay, LLAMA_COSINE);
    CHECK(make(&p, "", 0, &t));
    CHECK_INT(p.recompute, LLAMA_RECOMPUTE_SELECTIVE);
    CHECK_INT(p.schedule.decay, LLAMA_LINEAR);
    CHECK_INT(p.schedule.warmup, 2);
    CHECK_NEAR(p.schedule.decay_ratio, 0.8, 0);
}
