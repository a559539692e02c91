/* Causal attention within documents: this rank's queries over the keys and values
 * of all tokens of a row.
 *
 * One head and one block of queries at a time. A query sees a span of its row,
 * from its document's start to itself, so a block sees the columns from its first
 * query's start to its last query; nothing else is computed. The backward pass
 * computes the probabilities again, from the logarithm of their sum. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "llama/model.h"

#include <math.h>
#include <raddle/context.h>
#include <string.h>

/* Queries of one row that stand next to one another, and what they see. */
typedef struct block {
    size_t first; /* of this rank's tokens of the row */
    size_t count;
    size_t column; /* of the row: the first that one of them may see */
    size_t width;
    const llama_span *spans;
} block;

/* A head of one row, and where it lies. */
typedef struct head {
    size_t size;    /* head_dim */
    size_t stride;  /* of query, attended and their gradients */
    size_t query;   /* where its first value is in those */
    size_t log_sum; /* in llama_saved.log_sum */
    size_t key;     /* in llama_saved.key and value */
    size_t dkey;    /* in llama_scratch.dkey and dvalue */
    float scale;
} head;

static block block_at(const llama *m, size_t row, size_t first)
{
    const llama_span *spans = m->span + row * m->local + first;
    size_t most = llama_queries(m);
    block b = { .first = first, .count = 1, .spans = spans };

    while (b.count < most && first + b.count < m->local &&
           spans[b.count].end == spans[b.count - 1].end + 1)
        b.count++;
    b.column = spans[0].begin / LLAMA_LANES * LLAMA_LANES;
    b.width = spans[b.count - 1].end - b.column;
    return b;
}

static head head_at(const llama *m, size_t row, size_t h)
{
    size_t size = (size_t)m->o.config.head_dim;
    size_t heads = (size_t)m->o.config.heads;
    size_t kv_heads = (size_t)m->o.config.kv_heads;
    size_t kv = h / (heads / kv_heads);

    return (head){
        .size = size,
        .stride = heads * size,
        .query = row * m->local * heads * size + h * size,
        .log_sum = (row * heads + h) * m->local,
        .key = (row * kv_heads + kv) * m->o.length * size,
        .dkey = kv * m->o.length * size,
        .scale = 1 / sqrtf((float)size),
    };
}

/* scores = scale * query key' */
static void score(llama *m, const llama_saved *s, const head *h, const block *b)
{
    llama_in query = { s->query + h->query + b->first * h->stride, h->stride };
    llama_in key = { s->key + h->key + b->column * h->size, h->size };
    llama_out scores = { m->scratch.scores, LLAMA_PADDED(m->o.length) };

    llama_product_nt(m->o.blas, b->count, b->width, h->size, h->scale, query,
                     key, 0, scores);
}

static void attend_block(llama *m, const llama_saved *s, const head *h,
                         const block *b)
{
    size_t stride = LLAMA_PADDED(m->o.length);
    llama_in power = { m->scratch.scores, stride };
    llama_in value = { s->value + h->key + b->column * h->size, h->size };
    llama_out out = { s->attended + h->query + b->first * h->stride, h->stride };

    score(m, s, h, b);
    m->kernel->softmax(b->count, b->column, b->width, b->spans,
                       m->scratch.scores, stride,
                       s->log_sum + h->log_sum + b->first, m->scratch.inverse);
    llama_product_nn(m->o.blas, b->count, h->size, b->width, 1, power, value, 0,
                     out);
    m->kernel->scale_rows(b->count, h->size, m->scratch.inverse, out.values,
                          out.stride);
}

static void attend_block_backward(llama *m, const llama_saved *s, const head *h,
                                  const block *b)
{
    llama_scratch *t = &m->scratch;
    size_t stride = LLAMA_PADDED(m->o.length), from = b->column * h->size;
    size_t at = h->query + b->first * h->stride;
    llama_in query = { s->query + at, h->stride };
    llama_in key = { s->key + h->key + from, h->size };
    llama_in value = { s->value + h->key + from, h->size };
    llama_in dout = { t->dattended + at, h->stride };
    llama_in p = { t->scores, stride }, dp = { t->dscores, stride };

    score(m, s, h, b);
    llama_product_nt(m->o.blas, b->count, b->width, h->size, 1, dout, value, 0,
                     (llama_out){ t->dscores, stride });
    m->kernel->dot_rows(b->count, h->size, dout.values, s->attended + at,
                        h->stride, t->delta);
    m->kernel->softmax_backward(b->count, b->column, b->width, b->spans,
                                t->scores, t->dscores, stride,
                                s->log_sum + h->log_sum + b->first, t->delta);
    llama_product_tn(m->o.blas, b->width, h->size, b->count, 1, p, dout, 1,
                     (llama_out){ t->dvalue + h->dkey + from, h->size });
    llama_product_tn(m->o.blas, b->width, h->size, b->count, h->scale, dp,
                     query, 1, (llama_out){ t->dkey + h->dkey + from, h->size });
    llama_product_nn(m->o.blas, b->count, h->size, b->width, h->scale, dp, key,
                     0, (llama_out){ t->dquery + at, h->stride });
}

typedef void each(llama *m, const llama_saved *s, const head *h, const block *b);

static void for_each_block(llama *m, const llama_saved *s, size_t row,
                           each *call)
{
    for (size_t i = 0; i < (size_t)m->o.config.heads; i++) {
        head h = head_at(m, row, i);

        for (size_t first = 0; first < m->local;) {
            block b = block_at(m, row, first);

            call(m, s, &h, &b);
            first += b.count;
        }
    }
}

/* Keys and values of the whole row, side by side. */
static rdl_status gather_row(llama *m, size_t row, const float **out,
                             llama_error *error)
{
    size_t width = 2 * llama_kv_width(m);
    const float *mine = m->scratch.pairs + row * m->local * width;

    *out = mine;
    if (m->context_size == 1)
        return RDL_OK;
    *out = m->scratch.whole;
    return llama_pass_on(error, rdl_context_gather(m->o.world, m->o.context,
                                                   mine, m->scratch.whole,
                                                   m->o.length, width));
}

rdl_status llama_attend(llama *m, const llama_saved *s, llama_error *error)
{
    size_t size = (size_t)m->o.config.head_dim, kv = llama_kv_width(m);
    size_t heads = (size_t)m->o.config.kv_heads, plane = m->o.length * size;

    for (size_t row = 0; row < m->count; row++) {
        const float *whole;

        LLAMA_TRY(gather_row(m, row, &whole, error));
        m->kernel->split(m->o.length, heads, size, whole, 2 * kv,
                         s->key + row * heads * plane, plane);
        m->kernel->split(m->o.length, heads, size, whole + kv, 2 * kv,
                         s->value + row * heads * plane, plane);
        for_each_block(m, s, row, attend_block);
    }
    return RDL_OK;
}

rdl_status llama_attend_backward(llama *m, const llama_saved *s,
                                 llama_error *error)
{
    llama_scratch *t = &m->scratch;
    size_t size = (size_t)m->o.config.head_dim, kv = llama_kv_width(m);
    size_t heads = (size_t)m->o.config.kv_heads, plane = m->o.length * size;

    for (size_t row = 0; row < m->count; row++) {
        float *mine = t->pairs + row * m->local * 2 * kv;
        float *whole = m->context_size == 1 ? mine : t->whole;

        memset(t->dkey, 0, heads * plane * sizeof *t->dkey);
        memset(t->dvalue, 0, heads * plane * sizeof *t->dvalue);
        for_each_block(m, s, row, attend_block_backward);
        m->kernel->merge(m->o.length, heads, size, t->dkey, plane, whole,
                         2 * kv);
        m->kernel->merge(m->o.length, heads, size, t->dvalue, plane, whole + kv,
                         2 * kv);
        if (m->context_size > 1)
            LLAMA_RADDLE(rdl_context_scatter(m->o.world, m->o.context, whole,
                                             mine, m->o.length, 2 * kv));
    }
    return RDL_OK;
}
