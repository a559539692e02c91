/* Models to test with: a layout of ranks, rows of made-up text, and steps. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_SUPPORT_MODEL_H
#define RDL_SUPPORT_MODEL_H

#include "llama/llama.h"
#include "support/test.h"

#include <raddle/mesh.h>

/* Zero is the default of every field. */
typedef struct rdl_test_layout {
    const llama_config *config;    /* NULL: llama3-tiny */
    int replicate, shard, context; /* 0: 1 */
    size_t length;                 /* of a row; 0: 32 */
    size_t rows;                   /* of a step, on all ranks; 0: 4 */
    int microbatches;              /* 0: 1 */
    llama_recompute recompute;
    bool one_document; /* else rows hold several */
    bool whole;        /* parameters are not in shards: every rank has all */
} rdl_test_layout;

typedef struct rdl_test_model {
    rdl_test_layout layout; /* without zeros */
    rdl_world *world;
    rdl_mesh *mesh;
    llama *llama;
    size_t mine; /* rows of a step on this rank */
    int32_t *data;
    llama_rows *rows; /* [microbatches]: of the step that was read last */
} rdl_test_model;

/* A library to multiply with, opened before there are threads. */
llama_blas *rdl_test_blas(void);

/* Every rank of the world makes one; the layout must fit it. */
rdl_test_model rdl_test_model_open(rdl_world *world, const llama_blas *blas,
                                   const rdl_test_layout *layout);
void rdl_test_model_close(rdl_test_model *model);

/* Reads this rank's rows of a step, which counts from 0. Row b of a step is the
 * same in every layout. */
void rdl_test_model_read(rdl_test_model *model, int step);

/* Reads and trains one step at the rate of the debug schedule of 10 steps. */
llama_result rdl_test_model_step(rdl_test_model *model, int step);

/* The loss of the rows that were read last. */
double rdl_test_model_loss(rdl_test_model *model);

/* Whether a and b, of the same type, hold the same bits. */
bool rdl_test_same_bits(const void *a, const void *b, size_t bytes);

/* Zero, forward and backward of the rows that were read last. */
void rdl_test_model_gradients(rdl_test_model *model);

#endif
