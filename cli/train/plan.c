/* Checks of numbers against numbers, with all of them in each sentence. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/plan.h"

#include "command.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* As llama_create has it. */
#define LENGTH_MOST (1 << 20)

/* Of a step; so that rows of all steps can be counted, and those of one rank be
 * made room for. */
#define TOKENS_MOST 1000000000

static bool find_model(train_plan *p, const train_options *o, trouble *t)
{
    const char *name = o->model;
    const char *slash = strrchr(name, '/');
    char known[256] = "";
    const llama_config *config;

    if (strncmp(name, "llama3/", 7) == 0) /* MODULE/CONFIG */
        name = slash + 1;
    p->config = llama_config_named(name);
    if (p->config != NULL)
        return true;
    for (int i = 0; (config = llama_config_at(i)) != NULL; i++) {
        size_t used = strlen(known);

        snprintf(known + used, sizeof known - used, "%s%s", i > 0 ? ", " : "",
                 config->name);
    }
    return trouble_note(t, STATUS_USAGE, "there is no model '%s'; there are %s",
                        o->model, known);
}

/* --- the layout ------------------------------------------------------------ */

static bool check_degree(const char *name, int64_t degree, trouble *t)
{
    if (degree >= 1)
        return true;
    return trouble_note(t, STATUS_USAGE,
                        "Parallelism degree should be >= 1, except for "
                        "dp_shard: %s is %" PRId64,
                        name, degree);
}

static bool check_degrees(const train_options *o, trouble *t)
{
    if (!check_degree("context_parallel_degree", o->context, t) ||
        !check_degree("data_parallel_replicate_degree", o->replicate, t))
        return false;
    if (o->shard != -1 && o->shard < 1)
        return trouble_note(t, STATUS_USAGE,
                            "dp_shard must be -1 or >=1: "
                            "data_parallel_shard_degree is %" PRId64,
                            o->shard);
    if (!o->fsdp && o->shard > 1)
        return trouble_note(t, STATUS_USAGE,
                            "--no-fsdp keeps all parameters on every rank, and "
                            "dp_shard(%" PRId64 ") cuts them: leave one of the "
                            "two, or take dp_replicate",
                            o->shard);
    return true;
}

/* Degrees are up to 10^9 each; three such numbers fit a double well enough to be
 * compared with a number of ranks. */
static double product(const train_options *o, int64_t shard)
{
    return (double)o->replicate * (double)shard * (double)o->context;
}

static bool find_ranks(train_plan *p, const train_options *o, int world_size,
                       trouble *t)
{
    double asked = product(o, o->shard > 0 ? o->shard : 1);

    if (world_size > 0 && o->ranks > 0 && o->ranks != world_size)
        return trouble_note(t, STATUS_USAGE,
                            "--ranks says %" PRId64 ", and this process was "
                            "started as one of %d ranks",
                            o->ranks, world_size);
    if (world_size == 0 && o->ranks < 0 && asked > RDL_MAX_RANKS)
        return trouble_note(t, STATUS_USAGE,
                            "the degrees ask for %.0f ranks, and a world has "
                            "at most %d",
                            asked, RDL_MAX_RANKS);
    p->ranks = world_size > 0 ? world_size
               : o->ranks > 0 ? (int)o->ranks
                              : (int)asked;
    return true;
}

/* -1 of dp_shard is what the others leave, rounded down, so that a product that
 * cannot be met shows as one. Without FSDP these are more copies. */
static bool lay_out(train_plan *p, const train_options *o, trouble *t)
{
    int64_t shard = o->shard, replicate = o->replicate;
    double others = product(o, 1);

    if (shard < 0) {
        shard = others <= p->ranks ? (int64_t)(p->ranks / others) : 1;
        if (!o->fsdp) {
            replicate *= shard;
            shard = 1;
        }
    }
    if ((double)replicate * (double)shard * (double)o->context != p->ranks)
        return trouble_note(t, STATUS_USAGE,
                            "Invalid parallel dims: dp_replicate(%" PRId64
                            ") * dp_shard(%" PRId64 ") * cp(%" PRId64
                            ") != WORLD_SIZE(%d)",
                            replicate, shard, o->context, p->ranks);
    p->replicate = (int)replicate;
    p->shard = (int)shard;
    p->context = (int)o->context;
    p->dp = p->replicate * p->shard;
    p->fsdp = o->fsdp;
    return true;
}

/* --- rows ------------------------------------------------------------------ */

static bool check_length(train_plan *p, const train_options *o, trouble *t)
{
    int64_t pieces = 2 * (int64_t)p->context;

    p->length = o->sequence;
    if (p->length > LENGTH_MOST)
        return trouble_note(t, STATUS_USAGE,
                            "Training sequence length (%" PRId64 ") exceeds "
                            "attention RoPE maximum (%d)",
                            p->length, LENGTH_MOST);
    if (p->context == 1 || p->length % pieces == 0)
        return true;
    return trouble_note(t, STATUS_USAGE,
                        "max_context_length (%" PRId64 ") must be divisible by "
                        "2 * cp (%" PRId64 "): each of the %d ranks of a row "
                        "takes two pieces of it",
                        p->length, pieces, p->context);
}

/* Tokens and microbatches of a step, from those of the two and of the tokens of a
 * microbatch that were given. */
static bool size_step(train_plan *p, const train_options *o, int64_t *tokens,
                      trouble *t)
{
    int64_t unit;

    p->accumulate = o->accumulate > 0 ? o->accumulate : 1;
    *tokens = o->tokens > 0 ? o->tokens : 2 * p->length;
    if (o->microbatch < 1 || p->dp < 1)
        return true;
    unit = o->microbatch * p->dp;
    if (o->tokens <= 0)
        *tokens = unit * p->accumulate;
    if (*tokens % unit != 0 ||
        (o->accumulate > 0 && *tokens / unit != o->accumulate))
        return trouble_note(t, STATUS_USAGE,
                            "a step of %" PRId64 " tokens is not %s%" PRId64
                            " microbatches of %" PRId64 " tokens on dp(%d) "
                            "ranks",
                            *tokens, o->accumulate > 0 ? "" : "a multiple of ",
                            p->accumulate, o->microbatch, p->dp);
    p->accumulate = *tokens / unit;
    return true;
}

static bool deal_rows(train_plan *p, const train_options *o, trouble *t)
{
    int64_t tokens, parts;

    if (o->tokens == 0)
        return trouble_note(t, STATUS_USAGE, "a step has no tokens: --tokens 0");
    if (!size_step(p, o, &tokens, t))
        return false;
    if (tokens > TOKENS_MOST)
        return trouble_note(t, STATUS_USAGE,
                            "a step of %" PRId64 " tokens; at most %d are one "
                            "step",
                            tokens, TOKENS_MOST);
    if (tokens % p->length != 0)
        return trouble_note(t, STATUS_USAGE,
                            "a step of %" PRId64 " tokens is not whole rows of "
                            "%" PRId64 " tokens; %" PRId64 " would be",
                            tokens, p->length,
                            (tokens / p->length + 1) * p->length);
    p->rows = tokens / p->length;
    parts = p->dp * p->accumulate;
    if (p->rows % parts != 0)
        return trouble_note(
            t, STATUS_USAGE,
            "a step of %" PRId64 " rows (%" PRId64 " tokens / %" PRId64
            " a row) cannot be divided by dp(%d) * accumulate(%" PRId64
            "); --tokens %" PRId64 " would fit",
            p->rows, tokens, p->length, p->dp, p->accumulate,
            (p->rows / parts + 1) * parts * p->length);
    p->microbatch = p->rows / parts;
    return true;
}

/* --- the rest -------------------------------------------------------------- */

static void take_optimizer(train_plan *p, const train_options *o)
{
    static const struct {
        const char *word;
        llama_recompute recompute;
    } recomputes[] = { { "none", LLAMA_RECOMPUTE_NONE },
                       { "selective", LLAMA_RECOMPUTE_SELECTIVE },
                       { "full", LLAMA_RECOMPUTE_FULL } };

    for (size_t i = 0; i < 3; i++)
        if (strcmp(o->recompute, recomputes[i].word) == 0)
            p->recompute = recomputes[i].recompute;
    p->schedule = (llama_schedule){
        .learning_rate = o->learning_rate,
        .steps = (int)o->steps,
        .warmup = (int)o->warmup,
        .decay_ratio = o->decay_ratio,
        .min_factor = o->min_factor,
        .decay = strcmp(o->decay, "linear") == 0 ? LLAMA_LINEAR
                 : strcmp(o->decay, "sqrt") == 0 ? LLAMA_SQRT
                                                 : LLAMA_COSINE,
    };
    p->adamw = (llama_adamw){ .beta1 = o->beta1,
                              .beta2 = o->beta2,
                              .epsilon = o->epsilon,
                              .weight_decay = o->weight_decay };
}

bool plan_make(train_plan *p, const train_options *o, int world_size, trouble *t)
{
    *p = (train_plan){ .ranks = 0 };
    if (!find_model(p, o, t) || !check_degrees(o, t) ||
        !find_ranks(p, o, world_size, t) || !lay_out(p, o, t) ||
        !check_length(p, o, t) || !deal_rows(p, o, t))
        return false;
    take_optimizer(p, o);
    return true;
}

int64_t plan_first_row(const train_plan *p, int rank, int64_t step,
                       int64_t microbatch)
{
    int64_t d = rank / p->context;

    return step * p->rows + d * (p->rows / p->dp) + microbatch * p->microbatch;
}
