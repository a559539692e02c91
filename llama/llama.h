/* A llama that trains: the model of one rank, its loss and gradients, and the
 * steps of its training, over any layout of ranks.
 *
 *     llama_blas_open ... llama_create
 *     for each step: llama_train_step
 *     llama_destroy ... llama_blas_close
 *
 * Layout: every rank makes a model of its own, and all make the same calls in the
 * same order. Where a call says *collective*, all ranks of the world take part.
 * The same seed gives the same values whatever the layout; the same layout gives
 * the same bits.
 * Failures: a status, and a sentence with the numbers in the llama_error that the
 * caller lends, whether it came from here or from raddle. After a failure of a
 * collective call the model is fit for llama_destroy only.
 * Threads: one at a time per model. Ownership: see each call; arguments are
 * borrowed for the call but for what llama_create says. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LLAMA_LLAMA_H
#define LLAMA_LLAMA_H

#include <raddle/group.h>
#include <raddle/status.h>
#include <raddle/stream.h>
#include <raddle/world.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where a failing call writes its sentence. {0} before the first. */
typedef struct llama_error {
    char text[1024];
} llama_error;

/* ---- The model's shape ---- */

typedef struct llama_config {
    const char *name;
    int dim;
    int layers;
    int heads;
    int kv_heads; /* divides heads */
    int head_dim; /* even */
    int hidden;   /* of the feed-forward part */
    int vocab;
    double norm_epsilon;
    double rope_theta;
    double rope_factor; /* 1: no scaling, and the next three are not read */
    double rope_low;
    double rope_high;
    int rope_context; /* the context that was trained before scaling */
} llama_config;

/* "llama3-debug" (also "llama3_debugmodel" and "debugmodel"): the debug model of
 * torchtitan's llama3. "llama3-tiny": two layers of 32, for tests. NULL: no such
 * name. Static. */
const llama_config *llama_config_named(const char *name);
/* The i-th preset, NULL after the last. */
const llama_config *llama_config_at(int i);

/* RDL_INVALID, with the numbers, for a shape that cannot be. */
rdl_status llama_config_check(const llama_config *config, llama_error *error);

uint64_t llama_parameter_count(const llama_config *config);
/* Of forward and backward, for one token in rows of length tokens: 6 for each
 * parameter but the embedding's, and the whole square of attention. */
uint64_t llama_flops_per_token(const llama_config *config, size_t length);

/* The frequency that the pair i (0..head_dim / 2 - 1) of a head turns with. */
float llama_rope_frequency(const llama_config *config, int i);

/* ---- The learning rate ---- */

typedef enum llama_decay { LLAMA_LINEAR, LLAMA_SQRT, LLAMA_COSINE } llama_decay;

typedef struct llama_schedule {
    double learning_rate; /* the highest */
    int steps;            /* of the whole run */
    int warmup;           /* steps; cut to steps if more */
    double decay_ratio;   /* of steps; negative: all after the warm-up */
    double min_factor;    /* of learning_rate, where decay ends */
    llama_decay decay;
} llama_schedule;

/* The debug model's: 8e-4, 2 steps of warm-up, linear over the last 0.8. */
llama_schedule llama_schedule_defaults(int steps);
/* At step, which counts from 0. */
double llama_learning_rate(const llama_schedule *schedule, int step);

/* ---- Matrix products ---- */

/* A BLAS, opened at run time. One is enough for all ranks of a process, from any
 * threads; it must outlive the models made with it. */
typedef struct llama_blas llama_blas;

/* Opens RADDLE_BLAS if the environment has it (a library's file or name), else
 * the first of a list of names (OpenBLAS without threads first). It is told to use
 * one thread, and one product is compared with a plain loop.
 * Sets OPENBLAS_CORETYPE for this process, from what the processor can do, unless
 * it is set already; so no other thread may read the environment meanwhile: call
 * it before there are threads.
 * RDL_UNSUPPORTED: no BLAS (the sentence names the package to install), or one
 * that computes wrongly. */
rdl_status llama_blas_open(llama_blas **out, llama_error *error);
/* NULL is allowed. */
void llama_blas_close(llama_blas *blas);
/* For people: the library's file, and its kernel and version if it tells them.
 * Valid while it is open. */
const char *llama_blas_name(const llama_blas *blas);
/* Operations (two for each product of elements) in a second of one core, in products
 * of about the debug model's sizes; takes 50 ms of a core. RDL_NO_MEMORY. */
rdl_status llama_blas_rate(const llama_blas *blas, double *rate,
                           llama_error *error);

/* ---- The model ---- */

/* What the backward pass computes a second time, to need less memory. The results
 * have the same bits. */
typedef enum llama_recompute {
    LLAMA_RECOMPUTE_NONE,
    LLAMA_RECOMPUTE_SELECTIVE, /* norms and element-wise products */
    LLAMA_RECOMPUTE_FULL       /* each block, from its input */
} llama_recompute;

typedef struct llama_adamw {
    double beta1;
    double beta2;
    double epsilon;
    double weight_decay; /* decoupled, of all parameters */
} llama_adamw;

/* 0.9, 0.95, 1e-8, 0.1 */
llama_adamw llama_adamw_defaults(void);

typedef struct llama_options {
    llama_config config;
    rdl_world *world;       /* kept; closed after llama_destroy */
    const llama_blas *blas; /* kept */

    /* Groups this rank is in, of one rank where an axis is not used; kept. The
     * mesh is replicate x dp_shard x cp, the last fastest. */
    rdl_group context;   /* cp: one row of tokens over these ranks */
    rdl_group shard;     /* dp_shard x cp: parameters in shards */
    rdl_group replicate; /* dp_replicate: copies of shards */
    rdl_group tokens;    /* replicate x shard: every rank that has tokens of its
                            own, which is all of them */

    /* Streams of the world on which the next unit's parameters are gathered and the
     * last one's gradients are summed while the present one computes; kept, and
     * destroyed after llama_destroy. NULL: this thread does it when it comes. The
     * results have the same bits. */
    rdl_stream *gathers;
    rdl_stream *reductions;

    size_t length; /* tokens in a row; 2 * cp divides it if cp > 1 */
    size_t rows;   /* most rows in one microbatch of this rank */
    llama_recompute recompute;
    llama_adamw adamw;
    double max_norm; /* of the gradient; 1 is the debug model's */
    uint64_t seed;
} llama_options;

typedef struct llama llama;

/* Makes the model with its initial values. *options is copied. Collective: the
 * ranks compare the parameters' names and sizes.
 * RDL_INVALID, with the numbers: a layout that does not fit. RDL_NO_MEMORY.
 * RDL_MISMATCH: the ranks make different models. */
rdl_status llama_create(const llama_options *options, llama **out,
                        llama_error *error);
/* Before the world is closed. NULL is allowed. */
void llama_destroy(llama *model);

/* ---- Training ---- */

#define LLAMA_IGNORE (-100) /* a label that does not count */

/* count whole rows of length tokens each, one after another; all ranks of a
 * context group pass the same ones, and each takes its part. */
typedef struct llama_rows {
    size_t count;
    const int32_t *tokens;
    const int32_t *labels;
    /* Where a token stands in its document. A document begins at every 0 and at
     * every row's start; attention stays within it. */
    const int32_t *positions;
} llama_rows;

typedef struct llama_result {
    double loss;      /* sum over valid tokens / valid_tokens, all ranks */
    double loss_most; /* the highest over ranks of a rank's own average */
    double norm;      /* of the gradient, before it was clipped */
    uint64_t valid_tokens;
} llama_result;

/* One optimizer step of count microbatches: zero, count, forward and backward of
 * each, sums over ranks, clip, check, update. step is for messages, from 1.
 * Collective.
 * RDL_INVALID: a token or label outside the vocabulary, a negative position, too
 * many rows (before anything is sent). RDL_FORMAT: loss or gradient is not
 * finite, anywhere; the same sentence on every rank ("step 3: the gradient of
 * norm.weight is not finite on rank 1"), and no value was changed. What raddle's
 * collectives answer. */
rdl_status llama_train_step(llama *model, int step, const llama_rows *rows,
                            int count, double learning_rate,
                            llama_result *result, llama_error *error);

/* The parts of it, in order, for tests and other optimizers. */

/* Gradients and the loss become zero. Local. */
void llama_zero(llama *model);
/* *valid: labels that count, of all ranks' rows. Collective. */
rdl_status llama_count_valid(llama *model, const llama_rows *rows, int count,
                             uint64_t *valid, llama_error *error);
/* Forward and backward; adds to loss and gradients. last: of the step, so that
 * each block's gradient is summed over ranks as soon as it is there. Collective. */
rdl_status llama_microbatch(llama *model, const llama_rows *rows,
                            uint64_t valid, bool last, llama_error *error);
/* result->loss, loss_most, norm. RDL_FORMAT as above. Collective. */
rdl_status llama_measure(llama *model, int step, uint64_t valid,
                         llama_result *result, llama_error *error);
/* Multiplies gradients by min(1, max_norm / (norm + 1e-6)). Local. */
void llama_clip(llama *model, double norm);
/* AdamW. Local. */
void llama_update(llama *model, double learning_rate);

/* Forward only; *loss as in llama_result. Collective. */
rdl_status llama_evaluate(llama *model, const llama_rows *rows, int count,
                          double *loss, llama_error *error);

/* ---- Parameters ---- */

/* In the order of the state dict: tok_embeddings.weight, layers.0. ..., norm.weight,
 * lm_head.weight. Rows of columns elements; a vector has dims 1 and columns 1. */
typedef struct llama_parameter {
    const char *name;
    int dims;
    size_t shape[2];
    size_t first_row; /* this rank's: [first_row, first_row + rows) */
    size_t rows;
    size_t columns;
    float *values;   /* rows * columns; may be written between steps */
    float *gradient; /* the same, summed over ranks after the last microbatch */
} llama_parameter;

int llama_parameters(const llama *model);
/* i in 0..llama_parameters - 1. Pointers are valid while the model lives. */
void llama_parameter_at(llama *model, int i, llama_parameter *out);

/* Calls visit for each parameter with its whole values (rows of all ranks), in
 * order, on every rank; a visit that answers other than RDL_OK ends it, and the
 * status is passed on. Collective. */
typedef rdl_status (*llama_visit)(void *arg, const llama_parameter *parameter,
                                  const float *whole);
rdl_status llama_whole(llama *model, llama_visit visit, void *arg,
                       llama_error *error);

/* Nanoseconds up to now that gathers and reductions on streams took, and that this
 * thread waited for them: the rest was hidden behind computing. */
void llama_communication(const llama *model, int64_t *took, int64_t *waited);

/* Bytes of activations and buffers that the model has allocated on this rank,
 * parameters not among them. */
size_t llama_activation_bytes(const llama *model);

#endif
