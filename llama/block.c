/* One block, forward and backward:
 *
 *     middle = input + wo attention(norm1(input))
 *     output = middle + w2 (silu(w1 norm2(middle)) * w3 norm2(middle))
 *
 * A weight is out x in, so y = x w' and dx = dy w, dw += dy' x. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "llama/model.h"

#include <string.h>

/* What a block works with. */
typedef struct work {
    llama *m;
    llama_saved *s;
    rdl_fsdp *unit;
    size_t n; /* tokens */
    size_t dim, query, kv, hidden;
} work;

static work work_of(llama *m, int layer)
{
    return (work){
        .m = m,
        .s = &m->saved[layer],
        .unit = m->units[1 + layer],
        .n = llama_tokens(m),
        .dim = (size_t)m->o.config.dim,
        .query = llama_query_width(m),
        .kv = llama_kv_width(m),
        .hidden = (size_t)m->o.config.hidden,
    };
}

/* to = x w' + keep * to, for the weight w of out x in. */
static void times(const work *k, int weight, size_t in, size_t out,
                  const float *x, float keep, llama_out to)
{
    llama_in w = { rdl_fsdp_full(k->unit, weight), in };

    llama_product_nt(k->m->o.blas, k->n, out, in, 1, (llama_in){ x, in }, w,
                     keep, to);
}

/* dx = dy w + keep * dx, and the gradient of w += dy' x. */
static void times_backward(const work *k, int weight, size_t in, size_t out,
                           llama_in dy, const float *x, float keep, float *dx)
{
    llama_in w = { rdl_fsdp_full(k->unit, weight), in };
    llama_out dw = { rdl_fsdp_gradient(k->unit, weight), in };

    llama_product_nn(k->m->o.blas, k->n, in, out, 1, dy, w, keep,
                     (llama_out){ dx, in });
    llama_product_tn(k->m->o.blas, out, in, k->n, 1, dy, (llama_in){ x, in }, 1,
                     dw);
}

static void turn(const work *k, float direction, float *query, float *pairs)
{
    llama *m = k->m;
    size_t size = (size_t)m->o.config.head_dim;

    m->kernel->turn(k->n, (size_t)m->o.config.heads, size, m->cosine, m->sine,
                    direction, query, k->query);
    m->kernel->turn(k->n, (size_t)m->o.config.kv_heads, size, m->cosine,
                    m->sine, direction, pairs, 2 * k->kv);
}

static rdl_status attention_forward(const work *k, llama_error *error)
{
    llama *m = k->m;
    llama_saved *s = k->s;
    float *pairs = m->scratch.pairs;

    m->kernel->norm(k->n, k->dim, s->input,
                    rdl_fsdp_full(k->unit, LLAMA_ATTENTION_NORM),
                    (float)m->o.config.norm_epsilon, s->normed1, s->inverse1);
    times(k, LLAMA_WQ, k->dim, k->query, s->normed1, 0,
          (llama_out){ s->query, k->query });
    times(k, LLAMA_WK, k->dim, k->kv, s->normed1, 0,
          (llama_out){ pairs, 2 * k->kv });
    times(k, LLAMA_WV, k->dim, k->kv, s->normed1, 0,
          (llama_out){ pairs + k->kv, 2 * k->kv });
    turn(k, 1, s->query, pairs);
    LLAMA_TRY(llama_attend(m, s, error));
    memcpy(s->middle, s->input, k->n * k->dim * sizeof(float));
    times(k, LLAMA_WO, k->query, k->dim, s->attended, 1,
          (llama_out){ s->middle, k->dim });
    return RDL_OK;
}

rdl_status llama_block_forward(llama *m, int layer, float *output,
                               llama_error *error)
{
    work k = work_of(m, layer);
    llama_saved *s = k.s;

    LLAMA_TRY(attention_forward(&k, error));
    m->kernel->norm(k.n, k.dim, s->middle, rdl_fsdp_full(k.unit, LLAMA_FFN_NORM),
                    (float)m->o.config.norm_epsilon, s->normed2, s->inverse2);
    times(&k, LLAMA_W1, k.dim, k.hidden, s->normed2, 0,
          (llama_out){ s->gate1, k.hidden });
    times(&k, LLAMA_W3, k.dim, k.hidden, s->normed2, 0,
          (llama_out){ s->gate3, k.hidden });
    m->kernel->gate(k.n * k.hidden, s->gate1, s->gate3, s->gated);
    if (output == NULL)
        return RDL_OK;
    memcpy(output, s->middle, k.n * k.dim * sizeof(float));
    times(&k, LLAMA_W2, k.hidden, k.dim, s->gated, 1,
          (llama_out){ output, k.dim });
    return RDL_OK;
}

/* What the forward pass did not leave behind. */
static rdl_status recompute(const work *k, int layer, llama_error *error)
{
    llama *m = k->m;
    llama_saved *s = k->s;

    if (m->o.recompute == LLAMA_RECOMPUTE_FULL)
        return llama_block_forward(m, layer, NULL, error);
    if (m->o.recompute == LLAMA_RECOMPUTE_NONE)
        return RDL_OK;
    m->kernel->norm_again(k->n, k->dim, s->input,
                          rdl_fsdp_full(k->unit, LLAMA_ATTENTION_NORM),
                          s->inverse1, s->normed1);
    m->kernel->norm_again(k->n, k->dim, s->middle,
                          rdl_fsdp_full(k->unit, LLAMA_FFN_NORM), s->inverse2,
                          s->normed2);
    m->kernel->gate(k->n * k->hidden, s->gate1, s->gate3, s->gated);
    return RDL_OK;
}

/* Adds what went through a norm to the gradient of its input. */
static void norm_backward(const work *k, int weight, const float *x,
                          const float *inverse)
{
    llama_scratch *t = &k->m->scratch;

    k->m->kernel->norm_backward(k->n, k->dim, x, rdl_fsdp_full(k->unit, weight),
                                inverse, t->dnormed, t->gradient,
                                rdl_fsdp_gradient(k->unit, weight));
}

static void gate_backward(const work *k)
{
    llama_scratch *t = &k->m->scratch;
    llama_saved *s = k->s;

    times_backward(k, LLAMA_W2, k->hidden, k->dim,
                   (llama_in){ t->gradient, k->dim }, s->gated, 0, t->dgate1);
    k->m->kernel->gate_backward(k->n * k->hidden, s->gate1, s->gate3, t->dgate1,
                                t->dgate3);
    times_backward(k, LLAMA_W1, k->dim, k->hidden,
                   (llama_in){ t->dgate1, k->hidden }, s->normed2, 0,
                   t->dnormed);
    times_backward(k, LLAMA_W3, k->dim, k->hidden,
                   (llama_in){ t->dgate3, k->hidden }, s->normed2, 1,
                   t->dnormed);
    norm_backward(k, LLAMA_FFN_NORM, s->middle, s->inverse2);
}

static rdl_status attention_backward(const work *k, llama_error *error)
{
    llama_scratch *t = &k->m->scratch;
    llama_saved *s = k->s;

    times_backward(k, LLAMA_WO, k->query, k->dim,
                   (llama_in){ t->gradient, k->dim }, s->attended, 0,
                   t->dattended);
    LLAMA_TRY(llama_attend_backward(k->m, s, error));
    turn(k, -1, t->dquery, t->pairs);
    times_backward(k, LLAMA_WQ, k->dim, k->query,
                   (llama_in){ t->dquery, k->query }, s->normed1, 0, t->dnormed);
    times_backward(k, LLAMA_WK, k->dim, k->kv,
                   (llama_in){ t->pairs, 2 * k->kv }, s->normed1, 1, t->dnormed);
    times_backward(k, LLAMA_WV, k->dim, k->kv,
                   (llama_in){ t->pairs + k->kv, 2 * k->kv }, s->normed1, 1,
                   t->dnormed);
    norm_backward(k, LLAMA_ATTENTION_NORM, s->input, s->inverse1);
    return RDL_OK;
}

rdl_status llama_block_backward(llama *m, int layer, llama_error *error)
{
    work k = work_of(m, layer);

    if (rdl_fsdp_gradient(k.unit, 0) == NULL)
        return llama_pass_on(error, RDL_NO_MEMORY);
    LLAMA_TRY(recompute(&k, layer, error));
    gate_backward(&k);
    return attention_backward(&k, error);
}
