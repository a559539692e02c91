/* The table of flags. Its order is that of --help and of the man page. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/flags.h"

#include <raddle/world.h>

#define AT(field) offsetof(train_options, field)
#define MOST 1e9
#define NONE -1

/* name, short name, place, placeholder, default, least, most, help */
#define INTEGER(name, brief, field, value, standard, least, most, help)        \
    {                                                                          \
        name, brief, FLAG_INTEGER, AT(field), value, standard, NULL, least,    \
            most, help                                                         \
    }
#define NUMBER(name, brief, field, standard, least, most, help)                \
    {                                                                          \
        name, brief, FLAG_NUMBER, AT(field), "X", standard, NULL, least, most, \
            help                                                               \
    }
#define SWITCH(name, brief, field, standard, help)                             \
    {                                                                          \
        name, brief, FLAG_SWITCH, AT(field), NULL, standard, NULL, 0, 0, help  \
    }
#define TEXT(name, brief, field, value, standard, help)                        \
    {                                                                          \
        name, brief, FLAG_TEXT, AT(field), value, standard, NULL, 0, 0, help   \
    }
#define CHOICE(name, brief, field, standard, words, help)                      \
    {                                                                          \
        name, brief, FLAG_CHOICE, AT(field), "WORD", standard, words, 0, 0,    \
            help                                                               \
    }
/* words: what may be said all the same */
#define FIXED(name, words, missing)                                            \
    {                                                                          \
        name, NULL, FLAG_FIXED, 0, NULL, NULL, words, 0, 0, missing            \
    }
#define RENAMED(name, present)                                                 \
    {                                                                          \
        name, NULL, FLAG_RENAMED, 0, NULL, NULL, present, 0, 0, NULL           \
    }

const flag flags[] = {
    TEXT("model", NULL, model, "NAME", "llama3-debug",
         "the model: llama3-debug (torchtitan's llama3_debugmodel), or "
         "llama3-tiny, which is for tests"),
    { "data", NULL, FLAG_PATHS, AT(data), "PATH...", NULL, NULL, 0, 0,
      "what to train on: text files, folders of them, or files of tokens "
      "(NAME.bin)" },
    CHOICE("token-type", NULL, token_type, "auto", "auto uint16 uint32",
           "of the tokens in NAME.bin; auto: uint32 for NAME.u32.bin and "
           "NAME.uint32.bin, else uint16"),
    INTEGER("ranks", NULL, ranks, "N", NULL, 1, RDL_MAX_RANKS,
            "ranks to start on this machine; default: as many as the degrees "
            "below ask for"),
    TEXT("config", NULL, config, "FILE.toml", NULL,
         "a file of settings; flags of the command line go before it"),

    INTEGER("parallelism.context_parallel_degree", "cp", context, "N", "1",
            -1e9, MOST, "ranks that share the tokens of one row"),
    INTEGER("parallelism.data_parallel_shard_degree", "dp-shard", shard, "N",
            "-1", -1e9, MOST,
            "ranks over which rows and parameters are cut; -1: the rest"),
    INTEGER("parallelism.data_parallel_replicate_degree", "dp-replicate",
            replicate, "N", "1", -1e9, MOST,
            "copies of that, with rows of their own"),
    SWITCH("fsdp", NULL, fsdp, "true",
           "every rank keeps all parameters; without it they are cut over "
           "dp_shard and cp"),

    SWITCH("overlap", NULL, overlap, "true",
           "the next layer's parameters are gathered and the last one's "
           "gradients summed on streams of their own; without it by the thread "
           "that computes"),

    INTEGER("training.steps", "steps", steps, "N", "10", 1, MOST,
            "optimizer steps"),
    INTEGER("training.max_context_length", "seq", sequence, "N", "1024", 1,
            MOST, "tokens in a row"),
    INTEGER("training.num_tokens_per_train_step", "tokens", tokens, "N", NULL,
            -1, MOST,
            "tokens of one optimizer step over all ranks; default: 2 rows"),
    INTEGER("training.num_tokens_per_microbatch_per_dp_rank", NULL, microbatch,
            "N", NULL, 1, MOST,
            "tokens of one microbatch of a dp rank, instead of --accumulate or "
            "of --tokens"),
    INTEGER("accumulate", NULL, accumulate, "N", NULL, 1, 1e6,
            "microbatches whose gradients make one step; default: 1"),
    NUMBER("training.max_norm", "max-norm", max_norm, "1.0", 1e-30, 1e30,
           "gradients with a greater norm are scaled down to it"),
    CHOICE("activation_checkpoint", "ac", recompute, "selective",
           "none selective full",
           "what backward computes again instead of keeping it; also written "
           "activation-checkpoint:WORD"),
    INTEGER("debug.seed", "seed", seed, "N", NULL, 0, 9007199254740992.0,
            "of the initial values; default: one that is printed"),

    NUMBER("optimizer.lr", "lr", learning_rate, "8e-4", 0, 1e30,
           "the highest learning rate"),
    NUMBER("optimizer.beta1", NULL, beta1, "0.9", 0, 0.999999999999,
           "AdamW's first decay"),
    NUMBER("optimizer.beta2", NULL, beta2, "0.95", 0, 0.999999999999,
           "AdamW's second decay"),
    NUMBER("optimizer.eps", NULL, epsilon, "1e-8", 0, 1, "AdamW's epsilon"),
    NUMBER("optimizer.weight_decay", NULL, weight_decay, "0.1", 0, 1e6,
           "decoupled, of all parameters"),
    INTEGER("lr_scheduler.warmup_steps", NULL, warmup, "N", "2", 0, MOST,
            "steps over which the learning rate rises"),
    NUMBER("lr_scheduler.decay_ratio", NULL, decay_ratio, "0.8", -1, 1,
           "part of the steps over which it falls; -1: all after the warm-up"),
    CHOICE("lr_scheduler.decay_type", NULL, decay, "linear",
           "linear sqrt cosine", "how it falls"),
    NUMBER("lr_scheduler.min_lr_factor", NULL, min_factor, "0", 0, 1,
           "part of it that is left at the end"),

    INTEGER("metrics.log_freq", "log-freq", log_every, "N", "1", 1, MOST,
            "print the first and each N-th step"),
    SWITCH("json", NULL, json, "false",
           "one object a line, and an account as the last"),
    SWITCH("log-collectives", NULL, log_collectives, "false",
           "each rank prints each of its collectives on standard error"),
    TEXT("export", NULL, export_to, "DIR", NULL,
         "write parameters, first gradients and tokens there, as safetensors"),
    INTEGER(
        "comm.init_timeout_seconds", NULL, start_timeout_s, "N", NULL, 1, 1e6,
        "until all ranks have joined; default: RADDLE_START_TIMEOUT, or 60"),
    INTEGER("comm.train_timeout_seconds", NULL, timeout_s, "N", NULL, 1, 1e6,
            "for each collective; default: RADDLE_TIMEOUT, or 300"),

    FIXED("module", "llama3", "the only module is llama3"),
    FIXED("parallelism.tensor_parallel_degree", "1",
          "tensor parallelism is not in this version (and would have to divide "
          "n_heads and n_kv_heads)"),
    FIXED("parallelism.enable_sequence_parallel", "true false",
          "sequence parallelism comes with tensor parallelism, which is not in "
          "this version"),
    FIXED("parallelism.context_parallel_load_balancer", "headtail",
          "the only balancer of this version is headtail"),
    FIXED("parallelism.expert_parallel_degree", "1",
          "expert parallelism is not in this version"),
    FIXED("parallelism.pipeline_parallel_degree", "1",
          "pipeline parallelism is not in this version"),
    FIXED("parallelism.pipeline_parallel_schedule", "1F1B",
          "pipeline parallelism is not in this version"),
    FIXED("parallelism.num_pp_microbatches", "1",
          "pipeline parallelism is not in this version"),
    FIXED("parallelism.fsdp_reshard_after_forward", "default always",
          "parameters are always let go after forward in this version"),
    FIXED("parallelism.spmd_backend", "spmd_types",
          "Context Parallel requires parallelism.spmd_backend='spmd_types', "
          "which is how this version works"),
    FIXED("parallelism.enable_fsdp_symm_mem", "false",
          "symmetric memory is not in this version"),
    FIXED("training.dtype", "float32", "this version trains in float32"),
    FIXED("training.mixed_precision_param", "float32",
          "this version trains in float32"),
    FIXED("training.mixed_precision_reduce", "float32",
          "this version reduces in float32"),
    FIXED("training.enable_cpu_offload", "false",
          "parameters are in the processor's memory already"),
    FIXED("training.disable_cuda_graphs", "true false",
          "there are no CUDA graphs in this version"),
    FIXED("training.gc_freq", "*", "there is no garbage to collect"),
    FIXED("debug.deterministic", "true", "this version is always deterministic"),
    FIXED("debug.spmd_typechecking", "false",
          "type checking is not in this version"),
    FIXED("debug.moe_force_load_balance", "true false",
          "there are no experts in this version"),
    FIXED("debug.detect_anomaly", "false",
          "a loss or gradient that is not finite is always found and named"),
    FIXED("checkpoint.enable", "false", "checkpoints are not in this version"),
    FIXED("checkpoint.folder", "*", "checkpoints are not in this version"),
    FIXED("checkpoint.interval", "*", "checkpoints are not in this version"),
    FIXED("checkpoint.load_only", "false", "checkpoints are not in this version"),
    FIXED("checkpoint.initial_load_path", "",
          "checkpoints are not in this version"),
    FIXED("checkpoint.exclude_from_loading", "",
          "checkpoints are not in this version"),
    FIXED("checkpoint.last_save_model_only", "false",
          "checkpoints are not in this version; --export writes the model"),
    FIXED("metrics.enable_tensorboard", "false",
          "TensorBoard is not in this version; --json prints what it would "
          "show"),
    FIXED("comm.mode", "default", "the only mode of this version is default"),
    FIXED("compile.enable", "false", "there is no compiler in this version"),
    FIXED("compile.enable_async_tensor_parallel", "false",
          "tensor parallelism is not in this version"),

    RENAMED("training.seq_len", "training.max_context_length"),
    RENAMED("training.global_batch_size",
            "training.num_tokens_per_train_step, in tokens"),
    RENAMED("training.local_batch_size",
            "training.num_tokens_per_microbatch_per_dp_rank, in tokens"),
    RENAMED("activation_checkpoint.mode", "activation_checkpoint"),
    RENAMED("activation_checkpoint.selective_ac_option",
            "activation_checkpoint"),
    RENAMED("job.config_file", "config"),
    RENAMED("parallelism.enable_async_tensor_parallel",
            "compile.enable_async_tensor_parallel"),
    FIXED("parallelism.disable_loss_parallel", "true false",
          "the loss is not cut over ranks in this version"),
    FIXED("parallelism.context_parallel_rotate_method", "allgather",
          "the only method of this version is allgather"),
    { .name = NULL },
};
