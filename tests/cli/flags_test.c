/* Flags: one table for command lines, files, help and man page. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/test.h"

#include "train/flags.h"
#include "train/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORDS_MOST 32

/* Reads "--a 1 --b" as a command line would give it, blanks between arguments. */
static bool type(train_options *o, const char *typed, trouble *t)
{
    char words[512], *argv[WORDS_MOST] = { "train" };
    int argc = 1;
    bool help;

    snprintf(words, sizeof words, "%s", typed);
    for (char *w = strtok(words, " "); w != NULL; w = strtok(NULL, " "))
        argv[argc++] = w;
    argv[argc] = NULL;
    *t = (trouble){ .status = 0 };
    CHECK(options_init(o, t));
    return options_read(o, argc, argv, &help, t);
}

static void check_refused(const char *typed, const char *sentence)
{
    train_options o;
    trouble t;

    CHECK(!type(&o, typed, &t));
    CHECK_TEXT(t.text, sentence);
    CHECK_INT(t.status, 2);
    options_free(&o);
}

static void check_accepted(const char *typed)
{
    train_options o;
    trouble t;

    if (!type(&o, typed, &t))
        RDL_TEST_FAIL("%s: %s", typed, t.text);
    options_free(&o);
}

RDL_TEST(defaults_are_the_debug_models)
{
    train_options o;
    trouble t;

    CHECK(type(&o, "", &t));
    CHECK_TEXT(o.model, "llama3-debug");
    CHECK_INT(o.data.count, 0);
    CHECK_INT(o.ranks, -1);
    CHECK_INT(o.shard, -1);
    CHECK_INT(o.replicate, 1);
    CHECK_INT(o.context, 1);
    CHECK(o.fsdp && !o.json && !o.log_collectives);
    CHECK_INT(o.steps, 10);
    CHECK_INT(o.sequence, 1024);
    CHECK_INT(o.tokens, -1);
    CHECK_INT(o.seed, -1);
    CHECK_NEAR(o.learning_rate, 8e-4, 0);
    CHECK_NEAR(o.max_norm, 1, 0);
    CHECK_TEXT(o.recompute, "selective");
    CHECK_INT(o.log_every, 1);
    options_free(&o);
}

RDL_TEST(long_and_short_names_are_one_flag)
{
    train_options o;
    trouble t;

    CHECK(type(&o,
               "--parallelism.context_parallel_degree 4 --training.steps=3 "
               "--debug.seed 42 --parallelism.data-parallel-shard-degree -1",
               &t));
    CHECK_INT(o.context, 4);
    CHECK_INT(o.steps, 3);
    CHECK_INT(o.seed, 42);
    CHECK_INT(o.shard, -1);
    options_free(&o);
    CHECK(type(&o,
               "--cp=4 --steps 3 --seed=42 --dp_shard 2 --dp-replicate=3 "
               "--lr 1e-3 --tokens 4096 --seq 256 --accumulate 2 --ac full",
               &t));
    CHECK_INT(o.context, 4);
    CHECK_INT(o.steps, 3);
    CHECK_INT(o.seed, 42);
    CHECK_INT(o.shard, 2);
    CHECK_INT(o.replicate, 3);
    CHECK_NEAR(o.learning_rate, 1e-3, 0);
    CHECK_INT(o.tokens, 4096);
    CHECK_INT(o.sequence, 256);
    CHECK_INT(o.accumulate, 2);
    CHECK_TEXT(o.recompute, "full");
    options_free(&o);
}

RDL_TEST(the_last_of_a_flag_counts_and_paths_add_up)
{
    train_options o;
    trouble t;

    CHECK(type(&o,
               "--steps 3 --data a b --steps 4 --data=c "
               "activation-checkpoint:none --data d",
               &t));
    CHECK_INT(o.steps, 4);
    CHECK_TEXT(o.recompute, "none");
    CHECK_INT(o.data.count, 4);
    CHECK_TEXT(o.data.items[0], "a");
    CHECK_TEXT(o.data.items[3], "d");
    options_free(&o);
}

RDL_TEST(switches_turn_off_by_their_names)
{
    train_options o;
    trouble t;

    CHECK(type(&o, "--no-fsdp --json --log-collectives", &t));
    CHECK(!o.fsdp && o.json && o.log_collectives);
    options_free(&o);
    CHECK(type(&o, "--no_fsdp --fsdp --json=true --no-json", &t));
    CHECK(o.fsdp && !o.json);
    options_free(&o);
    check_refused("--no-fsdp=false", "--no-fsdp takes no value; 'raddle train "
                                     "--help' explains");
    check_refused("--json=maybe",
                  "--json takes true or false, and got 'maybe'");
    check_refused("--no-steps",
                  "there is no flag '--no-steps'; the nearest is "
                  "'--steps', and 'raddle train --help' lists all");
}

RDL_TEST(an_unknown_flag_is_answered_with_the_nearest)
{
    check_refused("--step 3", "there is no flag '--step'; the nearest is "
                              "'--steps', and 'raddle train --help' lists all");
    check_refused(
        "--parallelism.context_paralel_degree 4",
        "there is no flag '--parallelism.context_paralel_degree'; the "
        "nearest is '--parallelism.context_parallel_degree', and "
        "'raddle train --help' lists all");
    check_refused("README.md", "'README.md' is no flag; data is named with "
                               "--data PATH, and 'raddle train --help' lists "
                               "all flags");
}

RDL_TEST(wrong_values_are_refused_with_what_is_right)
{
    check_refused("--steps", "--steps wants a value behind it; 'raddle train "
                             "--help' explains");
    check_refused("--data --json", "--data wants a value behind it; 'raddle "
                                   "train --help' explains");
    check_refused("--steps ten",
                  "--steps takes an integer from 1 to 1000000000, "
                  "and got 'ten'");
    check_refused("--steps 0", "--steps takes an integer from 1 to 1000000000, "
                               "and got '0'");
    check_refused("--steps 99999999999999999999",
                  "--steps takes an integer from 1 to 1000000000, and got "
                  "'99999999999999999999'");
    check_refused("--ranks 1025",
                  "--ranks takes an integer from 1 to 1024, and "
                  "got '1025'");
    check_refused("--lr nan", "--lr takes a number from 0 to 1e+30, and got "
                              "'nan'");
    check_refused("--ac some",
                  "--ac takes one of none, selective, full, and got "
                  "'some'");
    check_refused("--export=", "--export got an empty text");
    check_refused("activation-checkpoint:memory-budget",
                  "activation-checkpoint:memory-budget: a memory budget is not "
                  "in this version; there are none, selective and full");
}

RDL_TEST(flags_of_torchtitan_that_are_not_done_say_so)
{
    check_accepted("--parallelism.tensor_parallel_degree 1");
    check_accepted("--module llama3 --config llama3_debugmodel");
    check_accepted("--debug.deterministic --compile.no_enable");
    check_accepted("--checkpoint.folder x --checkpoint.no_enable");
    check_accepted("--training.mixed_precision_param float32");
    check_refused(
        "--parallelism.tensor_parallel_degree 2",
        "--parallelism.tensor_parallel_degree got '2', and may be 1: "
        "tensor parallelism is not in this version (and would have to "
        "divide n_heads and n_kv_heads)");
    check_refused("--checkpoint.enable",
                  "--checkpoint.enable got 'true', and may be false: "
                  "checkpoints are not in this version");
    check_refused("--training.mixed_precision_param bfloat16",
                  "--training.mixed_precision_param got 'bfloat16', and may be "
                  "float32: this version trains in float32");
    check_refused("--checkpoint.initial_load_path x",
                  "--checkpoint.initial_load_path: checkpoints are not in this "
                  "version");
    check_refused("--training.seq_len 2048",
                  "--training.seq_len is a name of older versions; it is now "
                  "training.max_context_length");
}

RDL_TEST(torchtitans_config_names_a_model)
{
    train_options o;
    trouble t;

    CHECK(type(&o, "--module llama3 --config llama3_debugmodel", &t));
    CHECK_TEXT(o.model, "llama3_debugmodel");
    options_free(&o);
}

static bool read_file(train_options *o, const char *file, trouble *t)
{
    *t = (trouble){ .status = 0 };
    CHECK(options_init(o, t));
    return options_read_toml(o, "file", file, strlen(file), t);
}

RDL_TEST(a_file_sets_flags_by_either_name)
{
    train_options o;
    trouble t;

    CHECK(read_file(&o,
                    "data = [\"a\", \"b\"]\ncp = 2\nno-fsdp = true\nlr = 1\n"
                    "[training]\nsteps = 3\n[parallelism]\n"
                    "data_parallel_shard_degree = -1\n"
                    "tensor_parallel_degree = 1\n[compile]\nenable = false",
                    &t));
    CHECK_INT(o.data.count, 2);
    CHECK_INT(o.context, 2);
    CHECK(!o.fsdp);
    CHECK_INT(o.steps, 3);
    CHECK_NEAR(o.learning_rate, 1, 0);
    options_free(&o);
}

static void check_file_refused(const char *file, const char *sentence)
{
    train_options o;
    trouble t;

    CHECK(!read_file(&o, file, &t));
    CHECK_TEXT(t.text, sentence);
    CHECK_INT(t.status, 2);
    options_free(&o);
}

RDL_TEST(what_is_wrong_in_a_file_is_said_with_its_line)
{
    check_file_refused("\n[training]\nstep = 3",
                       "file, line 3: there is no flag 'training.step'; the "
                       "nearest is 'training.steps', and 'raddle train --help' "
                       "lists all");
    check_file_refused("steps = \"3\"", "file, line 1: steps takes an integer, "
                                        "and got a string");
    check_file_refused("steps = 3.0",
                       "file, line 1: steps takes an integer, and "
                       "got a number");
    check_file_refused("steps = [3]",
                       "file, line 1: steps takes an integer, and "
                       "got an array of: an integer");
    check_file_refused("steps = 0",
                       "file, line 1: steps takes an integer from 1 "
                       "to 1000000000, and got '0'");
    check_file_refused("json = 1",
                       "file, line 1: json takes true or false, and "
                       "got an integer");
    check_file_refused("data = 1",
                       "file, line 1: data takes a string or an array "
                       "of strings, and got an integer");
    check_file_refused("config = \"x.toml\"", "file, line 1: config: a file of "
                                              "settings cannot name another");
    check_file_refused("[parallelism]\ntensor_parallel_degree = 2",
                       "file, line 2: parallelism.tensor_parallel_degree got "
                       "'2', and may be 1: tensor parallelism is not in this "
                       "version (and would have to divide n_heads and "
                       "n_kv_heads)");
}

RDL_TEST(the_command_line_goes_before_its_file)
{
    char path[4096], typed[4096 + 64];
    train_options o;
    trouble t;
    FILE *f;

    snprintf(path, sizeof path, "%s/flags_test.%d.toml", rdl_test_temp(),
             (int)getpid());
    f = fopen(path, "w");
    CHECK(f != NULL);
    fputs("steps = 3\nseq = 64\ndata = \"of the file\"\n", f);
    fclose(f);
    snprintf(typed, sizeof typed, "--steps 4 --config %s --data a", path);
    CHECK(strchr(path, ' ') == NULL);
    CHECK(type(&o, typed, &t));
    remove(path);
    CHECK_INT(o.steps, 4);
    CHECK_INT(o.sequence, 64);
    CHECK_INT(o.data.count, 1);
    CHECK_TEXT(o.data.items[0], "a");
    options_free(&o);
    check_refused(
        "--config ./missing.toml",
        "cannot read the settings in './missing.toml': No such file or "
        "directory");
    check_refused("--config ./", "cannot read the settings in './': Is a "
                                 "directory");
}

/* Every line of the list must stand in the page. */
RDL_TEST(the_man_page_lists_every_flag)
{
    static const char path[] = RDL_SOURCE "/docs/man/raddle-train.1.md";
    char page[65536], list[65536];
    FILE *f = fopen(path, "r"), *to = fmemopen(list, sizeof list, "w");
    size_t n;

    CHECK(f != NULL && to != NULL);
    n = fread(page, 1, sizeof page - 1, f);
    page[n] = '\0';
    fclose(f);
    CHECK(flags_print_page(to));
    fclose(to);
    for (char *part = strtok(list, "\n"); part != NULL;
         part = strtok(NULL, "\n"))
        if (strstr(page, part) == NULL)
            RDL_TEST_FAIL("%s lacks: %s", path, part);
}
