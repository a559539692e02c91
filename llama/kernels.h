/* The arithmetic that is not a matrix product, in the processor's widest vectors.
 *
 * kernels.c is compiled several times, once for each width that processors of one
 * kind may have; a table is chosen at run time. What is done element by element
 * gives the same bits in all of them; sums are added in as many lanes as a vector
 * has, and differ in their last bits.
 *
 * A stride is the distance of rows, in elements. Arrays that are written overlap
 * no other unless a line says so. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LLAMA_KERNELS_H
#define LLAMA_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most lanes of a vector; and n elements in whole vectors. */
#define LLAMA_LANES 16

#define LLAMA_PADDED(n) (((n) + LLAMA_LANES - 1) / LLAMA_LANES * LLAMA_LANES)

/* What one query sees: columns [begin, end) of its row, not empty. */
typedef struct llama_span {
    uint32_t begin;
    uint32_t end;
} llama_span;

typedef struct llama_adamw_step {
    float keep; /* 1 - learning rate * weight decay */
    float beta1, beta2;
    float rate;    /* learning rate / bias correction of the first moment */
    float correct; /* 1 / sqrt(bias correction of the second moment) */
    float epsilon;
} llama_adamw_step;

typedef struct llama_kernels {
    const char *name;

    /* out = x / rms(x) * weight; inverse[row] = 1 / rms(x). */
    void (*norm)(size_t rows, size_t n, const float *x, const float *weight,
                 float epsilon, float *out, float *inverse);
    /* The same with the inverse known. */
    void (*norm_again)(size_t rows, size_t n, const float *x,
                       const float *weight, const float *inverse, float *out);
    /* Adds to dx and dweight. */
    void (*norm_backward)(size_t rows, size_t n, const float *x,
                          const float *weight, const float *inverse,
                          const float *dout, float *dx, float *dweight);

    /* out = silu(a) * b */
    void (*gate)(size_t n, const float *a, const float *b, float *out);
    /* dout becomes da. */
    void (*gate_backward)(size_t n, const float *a, const float *b, float *dout,
                          float *db);

    /* Turns each head of each row: cosine and sine have head values a row, each
     * twice, the sine first negative, then positive. direction: 1, or -1 to
     * turn back. */
    void (*turn)(size_t rows, size_t heads, size_t head, const float *cosine,
                 const float *sine, float direction, float *x, size_t stride);

    /* Rows of heads become heads of rows (plane: elements between heads), and
     * back. */
    void (*split)(size_t rows, size_t heads, size_t head, const float *from,
                  size_t stride, float *to, size_t plane);
    void (*merge)(size_t rows, size_t heads, size_t head, const float *from,
                  size_t plane, float *to, size_t stride);

    /* Scores become exp(score - highest), 0 outside the span; log_sum[row] =
     * log of the sum of exp(score), inverse[row] = 1 / the sum of what is
     * written. A row begins with column, a multiple of the lanes, and has width
     * scores, padded: LLAMA_PADDED(width) may be written. */
    void (*softmax)(size_t rows, size_t column, size_t width,
                    const llama_span *spans, float *s, size_t stride,
                    float *log_sum, float *inverse);
    /* Scores become probabilities, and d their gradient before scaling:
     * p * (d - delta). */
    void (*softmax_backward)(size_t rows, size_t column, size_t width,
                             const llama_span *spans, float *s, float *d,
                             size_t stride, const float *log_sum,
                             const float *delta);
    /* x of each row times factor[row]. */
    void (*scale_rows)(size_t rows, size_t n, const float *factor, float *x,
                       size_t stride);
    /* out[row] = sum over n of a * b. */
    void (*dot_rows)(size_t rows, size_t n, const float *a, const float *b,
                     size_t stride, float *out);

    /* Logits of one row become their gradient times factor; answers the loss,
     * log(sum of exp) - logit[label]. factor 0: only the loss is wanted. */
    double (*cross_entropy)(size_t n, float *logits, size_t label, float factor);

    void (*add)(size_t n, const float *x, float *to);
    void (*scale)(size_t n, float factor, float *x);
    bool (*finite)(size_t n, const float *x);
    void (*adamw)(size_t n, const llama_adamw_step *step, const float *gradient,
                  float *moment1, float *moment2, float *values);
    /* to = exp(x) */
    void (*exponential)(size_t n, const float *x, float *to);
} llama_kernels;

/* The i-th table that this processor can run, the widest first; NULL after the
 * last. */
const llama_kernels *llama_kernels_at(int i);

#endif
