/* From rows of data to this rank's part of them. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "llama/model.h"

#include <math.h>

static rdl_status check_place(const llama *m, const llama_rows *rows, size_t at,
                              llama_error *error)
{
    size_t row = at / m->o.length, place = at % m->o.length;
    int32_t token = rows->tokens[at], label = rows->labels[at];
    int vocab = m->o.config.vocab;

    if (token < 0 || token >= vocab)
        return llama_fail(error, RDL_INVALID,
                          "token %d of row %zu is %d, outside the vocabulary "
                          "0..%d",
                          (int)place, row, token, vocab - 1);
    if (label != LLAMA_IGNORE && (label < 0 || label >= vocab))
        return llama_fail(error, RDL_INVALID,
                          "label %d of row %zu is %d, neither %d nor in the "
                          "vocabulary 0..%d",
                          (int)place, row, label, LLAMA_IGNORE, vocab - 1);
    if (rows->positions[at] < 0)
        return llama_fail(error, RDL_INVALID,
                          "position %d of row %zu is %d, which is negative",
                          (int)place, row, rows->positions[at]);
    return RDL_OK;
}

rdl_status llama_check_rows(const llama *m, const llama_rows *rows,
                            llama_error *error)
{
    if (rows->count > m->o.rows)
        return llama_fail(
            error, RDL_INVALID,
            "a microbatch of %zu rows, and the model was made for "
            "%zu",
            rows->count, m->o.rows);
    for (size_t i = 0; i < rows->count * m->o.length; i++)
        LLAMA_TRY(check_place(m, rows, i, error));
    return RDL_OK;
}

/* Angles in float, as everyone computes them. */
static void fill_angles(llama *m, size_t at, int32_t position)
{
    int head = m->o.config.head_dim;
    float *cosine = m->cosine + at * (size_t)head;
    float *sine = m->sine + at * (size_t)head;

    for (int i = 0; i < head / 2; i++) {
        float angle = (float)position * m->frequency[i];

        cosine[2 * i] = cosine[2 * i + 1] = cosf(angle);
        sine[2 * i + 1] = sinf(angle);
        sine[2 * i] = -sine[2 * i + 1];
    }
}

/* This rank's part of the row that begins at from. */
static void take_row(llama *m, const llama_rows *rows, size_t from, size_t to)
{
    size_t start = 0, seen = 0;

    for (size_t i = 0; i < m->local; i++) {
        size_t place = m->place[i];

        for (; seen <= place; seen++)
            if (rows->positions[from + seen] == 0)
                start = seen;
        m->token[to + i] = rows->tokens[from + place];
        m->label[to + i] = rows->labels[from + place];
        m->span[to + i] = (llama_span){ (uint32_t)start, (uint32_t)place + 1 };
        fill_angles(m, to + i, rows->positions[from + place]);
    }
}

void llama_take_rows(llama *m, const llama_rows *rows)
{
    m->count = rows->count;
    for (size_t row = 0; row < rows->count; row++)
        take_row(m, rows, row * m->o.length, row * m->local);
}
