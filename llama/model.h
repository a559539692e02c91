/* The inside of a model. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LLAMA_MODEL_H
#define LLAMA_MODEL_H

#include "llama/blas.h"
#include "llama/error.h"
#include "llama/kernels.h"

#include <raddle/fsdp.h>

/* What is where in a block's unit. */
enum {
    LLAMA_WQ,
    LLAMA_WK,
    LLAMA_WV,
    LLAMA_WO,
    LLAMA_W1,
    LLAMA_W2,
    LLAMA_W3,
    LLAMA_ATTENTION_NORM,
    LLAMA_FFN_NORM,
    LLAMA_BLOCK_PARAMETERS
};

/* And in the unit of the last norm and the head. */
enum { LLAMA_NORM, LLAMA_HEAD, LLAMA_LAST_PARAMETERS };

#define LLAMA_NAME_MOST 63

/* How a parameter's first values are spread. */
typedef struct llama_spread {
    double deviation; /* of a normal distribution; 0: all ones */
    double cut;       /* values beyond are drawn again; 0: none are */
} llama_spread;

typedef struct llama_slot {
    char name[LLAMA_NAME_MOST + 1];
    int unit;
    int index; /* in its unit */
    int dims;
    size_t shape[2];
    llama_spread spread;
    float *moment1; /* of this rank's rows */
    float *moment2;
} llama_slot;

/* What the backward pass of a block needs of its forward pass: rows of this
 * rank's tokens, but for key and value, which are of all tokens of a row of data,
 * [row][kv head][token][head_dim]. With recomputation some are shared by all
 * blocks. */
typedef struct llama_saved {
    float *input;         /* dim */
    float *inverse1;      /* 1: of the norm before attention */
    float *normed1;       /* dim */
    float *query;         /* heads * head_dim, turned */
    float *key, *value;   /* key turned */
    float *attended;      /* heads * head_dim */
    float *log_sum;       /* [row][head][token]: of softmax */
    float *middle;        /* dim: input + attention */
    float *inverse2;      /* 1: of the norm before the gate */
    float *normed2;       /* dim */
    float *gate1, *gate3; /* hidden: w1 and w3 times normed2 */
    float *gated;         /* hidden */
} llama_saved;

/* Used by every block in turn. */
typedef struct llama_scratch {
    float *pairs; /* 2 * kv: key and value of this rank's tokens, side by side */
    float *whole;  /* the same of all tokens of one row of data */
    float *scores; /* of one block of queries and all tokens of a row */
    float *dscores;
    float *inverse; /* this and delta: one for each query of a block */
    float *delta;
    float *gradient;  /* dim: of a block's output, becomes that of its input */
    float *dnormed;   /* dim */
    float *dattended; /* heads * head_dim */
    float *dquery;
    float *dkey, *dvalue;   /* as llama_saved's, of one row of data */
    float *dgate1, *dgate3; /* hidden */
    float *logits;          /* vocab, of LLAMA_CHUNK tokens */
} llama_scratch;

/* Tokens whose logits exist at one time. */
#define LLAMA_CHUNK 256

struct llama {
    llama_options o;
    const llama_kernels *kernel;

    int context_rank, context_size;
    int tokens_rank, tokens_size;

    rdl_fsdp **units;  /* embedding, blocks, norm and head: layers + 2 */
    llama_slot *slots; /* in the order of the state dict */
    int slot_count;
    float *moments;
    int64_t updates;

    float *memory; /* all that follows lies in it */
    size_t memory_bytes;
    float *frequency;     /* head_dim / 2 */
    float *cosine, *sine; /* head_dim for each token */
    llama_saved *saved;   /* one for each block */
    float *output;        /* dim: of the last block */
    float *last_inverse;
    float *last_normed;
    llama_scratch scratch;

    /* This rank's part of the rows of a microbatch. */
    size_t local;   /* tokens of a row that are this rank's */
    size_t *place;  /* [local]: where they stand in the row */
    size_t count;   /* rows of this microbatch */
    int32_t *token; /* [count * local] */
    int32_t *label;
    llama_span *span; /* what each sees of its row */

    /* Since llama_zero. */
    double loss_sum;  /* of this rank's labels, not divided */
    uint64_t counted; /* labels in it */
    int unfit;        /* a slot whose gradient was not finite; -1: none */
};

/* Tokens of this microbatch on this rank. */
static inline size_t llama_tokens(const llama *m)
{
    return m->count * m->local;
}

static inline size_t llama_query_width(const llama *m)
{
    return (size_t)m->o.config.heads * (size_t)m->o.config.head_dim;
}

static inline size_t llama_kv_width(const llama *m)
{
    return (size_t)m->o.config.kv_heads * (size_t)m->o.config.head_dim;
}

static inline int llama_last_unit(const llama *m)
{
    return m->o.config.layers + 1;
}

/* Queries in one block of attention: as many as leave its scores in the second
 * level of cache. */
static inline size_t llama_queries(const llama *m)
{
    size_t fit = 65536 / m->o.length;

    return fit < 16 ? 16 : fit > 64 ? 64 : fit;
}

/* ---- slots.c, memory.c, initial.c ---- */

/* Names, shapes and units of all parameters. */
rdl_status llama_lay_slots(llama *m, llama_error *error);
/* Memory for activations, by the way of recomputation. */
rdl_status llama_lay_memory(llama *m, llama_error *error);
/* The first values of this rank's rows. */
void llama_fill(llama *m);

/* ---- rows.c ---- */

rdl_status llama_check_rows(const llama *m, const llama_rows *rows,
                            llama_error *error);
/* Makes this rank's part of rows, which were checked, the present microbatch. */
void llama_take_rows(llama *m, const llama_rows *rows);

/* ---- block.c, attention.c, ends.c ---- */

/* The unit is gathered. With output NULL only what is saved is computed. */
rdl_status llama_block_forward(llama *m, int layer, float *output,
                               llama_error *error);
/* scratch.gradient: of the output, becomes that of the input. */
rdl_status llama_block_backward(llama *m, int layer, llama_error *error);

/* pairs -> saved key and value -> attended and log_sum. */
rdl_status llama_attend(llama *m, const llama_saved *s, llama_error *error);
/* dattended -> dquery and pairs (the gradient of key and value), not turned back. */
rdl_status llama_attend_backward(llama *m, const llama_saved *s,
                                 llama_error *error);

void llama_embed(llama *m);
rdl_status llama_embed_backward(llama *m, llama_error *error);
/* The loss; with factor not 0 also scratch.gradient of the last block's output,
 * and the head's own, both times factor. */
rdl_status llama_head(llama *m, float factor, llama_error *error);

#endif
