/* The memory of activations: one block, in which everything has its place. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "llama/model.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LINE 64
#define HUGE_PAGE ((size_t)2 << 20)

/* Hands out memory from base on. With base NULL it only counts. */
typedef struct taker {
    unsigned char *base;
    size_t bytes;
} taker;

static void *take(taker *t, size_t count, size_t bytes)
{
    size_t at = t->bytes;

    t->bytes += (count * bytes + LINE - 1) / LINE * LINE;
    return t->base != NULL ? t->base + at : NULL;
}

static float *floats(taker *t, size_t count)
{
    return take(t, count, sizeof(float));
}

/* What a backward pass needs of a block's forward pass, by how dear it is to
 * compute again. */
enum { INPUT = 1, DEAR = 2, CHEAP = 4 };

/* What each block keeps for itself. */
static int kept(llama_recompute recompute)
{
    if (recompute == LLAMA_RECOMPUTE_NONE)
        return INPUT | DEAR | CHEAP;
    return recompute == LLAMA_RECOMPUTE_SELECTIVE ? INPUT | DEAR : INPUT;
}

static void place(taker *t, bool wanted, float **field, size_t count)
{
    if (wanted)
        *field = floats(t, count);
}

/* Gives the wanted ones of s a place, and leaves the others. */
static void lay_saved(const llama *m, taker *t, int wanted, llama_saved *s)
{
    size_t n = m->o.rows * m->local, whole = m->o.rows * m->o.length;
    size_t dim = (size_t)m->o.config.dim, hidden = (size_t)m->o.config.hidden;
    size_t query = llama_query_width(m), kv = llama_kv_width(m);

    place(t, wanted & INPUT, &s->input, n * dim);
    place(t, wanted & DEAR, &s->inverse1, n);
    place(t, wanted & CHEAP, &s->normed1, n * dim);
    place(t, wanted & DEAR, &s->query, n * query);
    place(t, wanted & DEAR, &s->key, whole * kv);
    place(t, wanted & DEAR, &s->value, whole * kv);
    place(t, wanted & DEAR, &s->attended, n * query);
    place(t, wanted & DEAR, &s->log_sum, n * (size_t)m->o.config.heads);
    place(t, wanted & DEAR, &s->middle, n * dim);
    place(t, wanted & DEAR, &s->inverse2, n);
    place(t, wanted & CHEAP, &s->normed2, n * dim);
    place(t, wanted & DEAR, &s->gate1, n * hidden);
    place(t, wanted & DEAR, &s->gate3, n * hidden);
    place(t, wanted & CHEAP, &s->gated, n * hidden);
}

static void lay_scratch(const llama *m, taker *t, llama_scratch *s)
{
    size_t n = m->o.rows * m->local, length = m->o.length;
    size_t dim = (size_t)m->o.config.dim, hidden = (size_t)m->o.config.hidden;
    size_t query = llama_query_width(m), kv = llama_kv_width(m);
    size_t queries = llama_queries(m);
    size_t chunk = n < LLAMA_CHUNK ? n : LLAMA_CHUNK;

    s->pairs = floats(t, n * 2 * kv);
    s->whole = floats(t, length * 2 * kv);
    s->scores = floats(t, queries * LLAMA_PADDED(length));
    s->dscores = floats(t, queries * LLAMA_PADDED(length));
    s->inverse = floats(t, queries);
    s->delta = floats(t, queries);
    s->gradient = floats(t, n * dim);
    s->dnormed = floats(t, n * dim);
    s->dattended = floats(t, n * query);
    s->dquery = floats(t, n * query);
    s->dkey = floats(t, length * kv);
    s->dvalue = floats(t, length * kv);
    s->dgate1 = floats(t, n * hidden);
    s->dgate3 = floats(t, n * hidden);
    s->logits = floats(t, chunk * (size_t)m->o.config.vocab);
}

static void lay(llama *m, taker *t)
{
    size_t n = m->o.rows * m->local, head = (size_t)m->o.config.head_dim;
    llama_saved shared = { 0 };
    int own = kept(m->o.recompute);

    m->place = take(t, m->local, sizeof *m->place);
    m->token = take(t, n, sizeof *m->token);
    m->label = take(t, n, sizeof *m->label);
    m->span = take(t, n, sizeof *m->span);
    m->frequency = floats(t, head / 2);
    m->cosine = floats(t, n * head);
    m->sine = floats(t, n * head);
    lay_scratch(m, t, &m->scratch);
    lay_saved(m, t, ~own, &shared);
    for (int i = 0; i < m->o.config.layers; i++) {
        m->saved[i] = shared;
        lay_saved(m, t, own, &m->saved[i]);
    }
    m->output = floats(t, n * (size_t)m->o.config.dim);
    m->last_inverse = floats(t, n);
    m->last_normed = floats(t, n * (size_t)m->o.config.dim);
}

rdl_status llama_lay_memory(llama *m, llama_error *error)
{
    taker t = { 0 };

    m->saved = calloc((size_t)m->o.config.layers, sizeof *m->saved);
    if (m->saved == NULL)
        return llama_fail(error, RDL_NO_MEMORY, "model: no memory for layers");
    lay(m, &t);
    m->memory_bytes = (t.bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    m->memory = aligned_alloc(HUGE_PAGE, m->memory_bytes);
    if (m->memory == NULL)
        return llama_fail(
            error, RDL_NO_MEMORY,
            "model: no memory for %zu bytes of activations, which "
            "%zu rows of %zu tokens need",
            m->memory_bytes, m->o.rows, m->o.length);
    /* A help where there are huge pages, and nothing where not. */
    (void)madvise(m->memory, m->memory_bytes, MADV_HUGEPAGE);
    t = (taker){ .base = (unsigned char *)m->memory };
    lay(m, &t);
    return RDL_OK;
}

size_t llama_activation_bytes(const llama *m)
{
    return m->memory_bytes;
}
