/* What `raddle train` was asked for, as typed or as a file says; what follows from
 * it is in plan.h. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_CLI_TRAIN_OPTIONS_H
#define RDL_CLI_TRAIN_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct word_list {
    char **items;
    size_t count;
} word_list;

/* Texts and lists are the options' own. A number that was not given is -1 where
 * the table in flags.c gives it no default. */
typedef struct train_options {
    char *model;
    word_list data;
    char *token_type;
    int64_t ranks;

    int64_t replicate;
    int64_t shard; /* -1: the rest */
    int64_t context;
    bool fsdp;
    bool overlap;

    int64_t steps;
    int64_t sequence;
    int64_t tokens;
    int64_t microbatch;
    int64_t accumulate;
    double max_norm;
    char *recompute;
    int64_t seed;

    double learning_rate;
    double beta1;
    double beta2;
    double epsilon;
    double weight_decay;
    int64_t warmup;
    double decay_ratio; /* -1: all after the warm-up */
    char *decay;
    double min_factor;

    int64_t log_every;
    bool json;
    bool log_collectives;
    char *export_to;
    char *config;
    int64_t start_timeout_s;
    int64_t timeout_s;
} train_options;

#endif
