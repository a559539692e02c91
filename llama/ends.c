/* The two ends of the model: the embedding, and norm, head and loss. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "llama/model.h"

#include <string.h>

void llama_embed(llama *m)
{
    size_t dim = (size_t)m->o.config.dim;
    const float *table = rdl_fsdp_full(m->units[0], 0);

    for (size_t i = 0; i < llama_tokens(m); i++)
        memcpy(m->saved[0].input + i * dim, table + (size_t)m->token[i] * dim,
               dim * sizeof *table);
}

rdl_status llama_embed_backward(llama *m, llama_error *error)
{
    size_t dim = (size_t)m->o.config.dim;
    float *gradient = rdl_fsdp_gradient(m->units[0], 0);

    if (gradient == NULL)
        return llama_pass_on(error, RDL_NO_MEMORY);
    for (size_t i = 0; i < llama_tokens(m); i++)
        m->kernel->add(dim, m->scratch.gradient + i * dim,
                       gradient + (size_t)m->token[i] * dim);
    return RDL_OK;
}

/* Logits of these tokens become their gradient; the loss is added up. */
static void lose(llama *m, size_t first, size_t count, float factor)
{
    size_t vocab = (size_t)m->o.config.vocab;

    for (size_t i = 0; i < count; i++) {
        float *row = m->scratch.logits + i * vocab;
        int32_t label = m->label[first + i];

        if (label == LLAMA_IGNORE) {
            memset(row, 0, vocab * sizeof *row);
            continue;
        }
        m->loss_sum +=
            m->kernel->cross_entropy(vocab, row, (size_t)label, factor);
        m->counted++;
    }
}

rdl_status llama_head(llama *m, float factor, llama_error *error)
{
    size_t n = llama_tokens(m), dim = (size_t)m->o.config.dim;
    size_t vocab = (size_t)m->o.config.vocab;
    llama_scratch *t = &m->scratch;
    rdl_fsdp *unit = m->units[llama_last_unit(m)];
    const float *weight = rdl_fsdp_full(unit, LLAMA_NORM);
    llama_in head = { rdl_fsdp_full(unit, LLAMA_HEAD), dim };
    llama_out dhead = { NULL, dim };

    if (factor != 0)
        dhead.values = rdl_fsdp_gradient(unit, LLAMA_HEAD);
    if (factor != 0 && dhead.values == NULL)
        return llama_pass_on(error, RDL_NO_MEMORY);
    m->kernel->norm(n, dim, m->output, weight, (float)m->o.config.norm_epsilon,
                    m->last_normed, m->last_inverse);
    for (size_t first = 0; first < n; first += LLAMA_CHUNK) {
        size_t count = n - first < LLAMA_CHUNK ? n - first : LLAMA_CHUNK;
        llama_in x = { m->last_normed + first * dim, dim };

        llama_product_nt(m->o.blas, count, vocab, dim, 1, x, head, 0,
                         (llama_out){ t->logits, vocab });
        lose(m, first, count, factor);
        if (factor == 0)
            continue;
        llama_product_nn(m->o.blas, count, dim, vocab, 1,
                         (llama_in){ t->logits, vocab }, head, 0,
                         (llama_out){ t->dnormed + first * dim, dim });
        llama_product_tn(m->o.blas, vocab, dim, count, 1,
                         (llama_in){ t->logits, vocab }, x, 1, dhead);
    }
    if (factor == 0)
        return RDL_OK;
    memset(t->gradient, 0, n * dim * sizeof *t->gradient);
    m->kernel->norm_backward(n, dim, m->output, weight, m->last_inverse,
                             t->dnormed, t->gradient,
                             rdl_fsdp_gradient(unit, LLAMA_NORM));
    return RDL_OK;
}
