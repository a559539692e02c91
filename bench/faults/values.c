/* What ranks put in and must get out: each element has a digit for each rank, so
 * that a sum shows who is in it. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "faults.h"

#include <stdio.h>
#include <stdlib.h>

#define DIGIT_BITS 3 /* 8 ranks: 24 bits, exact in every dtype here */
#define SPARE 8      /* elements that a wrong call reads or writes more */

/* What world rank `rank` puts at place i of its part. */
static int64_t code(int step, int rank, int part, size_t i)
{
    int64_t digit = 1 + (int64_t)(((size_t)(step + part * 3) + i) % 7);

    return digit << (rank * DIGIT_BITS);
}

static void put(void *buffer, size_t i, rdl_dtype dtype, int64_t value)
{
    switch (dtype) {
    case RDL_INT32:
        ((int32_t *)buffer)[i] = (int32_t)value;
        return;
    case RDL_INT64:
        ((int64_t *)buffer)[i] = value;
        return;
    case RDL_FLOAT32:
        ((float *)buffer)[i] = (float)value;
        return;
    default:
        ((double *)buffer)[i] = (double)value;
    }
}

static int64_t get(const void *buffer, size_t i, rdl_dtype dtype)
{
    switch (dtype) {
    case RDL_INT32:
        return ((const int32_t *)buffer)[i];
    case RDL_INT64:
        return ((const int64_t *)buffer)[i];
    case RDL_FLOAT32:
        return (int64_t)((const float *)buffer)[i];
    default:
        return (int64_t)((const double *)buffer)[i];
    }
}

/* --- parts ----------------------------------------------------------------- */

static int input_parts(const faults_step *s, int size, int me)
{
    switch (s->op) {
    case FAULTS_BARRIER:
        return 0;
    case FAULTS_REDUCE_SCATTER:
    case FAULTS_ALL_TO_ALL:
    case FAULTS_ALL_TO_ALL_V:
        return size;
    case FAULTS_SCATTER:
        return me == s->root ? size : 0;
    default:
        return 1;
    }
}

static int output_parts(const faults_step *s, int size, int me)
{
    switch (s->op) {
    case FAULTS_BARRIER:
        return 0;
    case FAULTS_ALL_GATHER:
    case FAULTS_ALL_TO_ALL:
    case FAULTS_ALL_TO_ALL_V:
        return size;
    case FAULTS_GATHER:
        return me == s->root ? size : 0;
    case FAULTS_REDUCE:
        return me == s->root;
    case FAULTS_TRANSFER:
        return me == s->to;
    default:
        return 1;
    }
}

static size_t input_count(const faults_step *s, int me, int part)
{
    return s->op == FAULTS_ALL_TO_ALL_V ? s->splits[me][part] : s->count;
}

static size_t output_count(const faults_step *s, int me, int part)
{
    return s->op == FAULTS_ALL_TO_ALL_V ? s->splits[part][me] : s->count;
}

static bool adds(const faults_step *s)
{
    return s->op == FAULTS_ALL_REDUCE || s->op == FAULTS_REDUCE ||
           s->op == FAULTS_REDUCE_SCATTER;
}

/* The part of the others' input that member `me` gets. */
static int wanted_part(const faults_step *s, int me)
{
    return s->op == FAULTS_REDUCE_SCATTER || s->op == FAULTS_SCATTER ||
                   s->op == FAULTS_ALL_TO_ALL || s->op == FAULTS_ALL_TO_ALL_V
               ? me
               : 0;
}

static int source(const faults_step *s, int part)
{
    return s->op == FAULTS_BROADCAST || s->op == FAULTS_SCATTER ||
                   s->op == FAULTS_TRANSFER
               ? s->root
               : part;
}

static int64_t expected(const faults_program *p, int step, int me, int part,
                        size_t i)
{
    const faults_step *s = &p->step[step];
    const faults_group *g = &p->group[s->group];
    int64_t sum = 0;

    if (!adds(s))
        return code(step, g->ranks[source(s, part)], wanted_part(s, me), i);
    for (int m = 0; m < g->size; m++)
        sum += code(step, g->ranks[m], wanted_part(s, me), i);
    return sum;
}

/* --- buffers --------------------------------------------------------------- */

/* Elements for any role in the step, for the widest dtype: a wrong call must not
 * hurt who makes it. */
static size_t room(const faults_step *s, int size)
{
    size_t most = s->count;

    for (int i = 0; i < size; i++)
        for (int j = 0; j < size; j++)
            most = s->splits[i][j] > most ? s->splits[i][j] : most;
    return (most + SPARE) * (size_t)size;
}

static void fill(const faults_program *p, int step, int rank, void *buffer)
{
    const faults_step *s = &p->step[step];
    const faults_group *g = &p->group[s->group];
    int me = faults_place(g, rank);
    size_t at = 0;

    for (int part = 0; part < input_parts(s, g->size, me); part++)
        for (size_t i = 0; i < input_count(s, me, part); i++)
            put(buffer, at++, s->dtype, code(step, rank, part, i));
}

bool faults_prepare(const faults_program *p, int step, int rank,
                    faults_buffers *b)
{
    const faults_step *s = &p->step[step];
    size_t elements = room(s, p->group[s->group].size);

    b->input = calloc(elements, sizeof(int64_t));
    b->output = calloc(elements, sizeof(int64_t));
    if (b->input == NULL || b->output == NULL)
        return false;
    fill(p, step, rank, b->input);
    /* A broadcast has one buffer. */
    if (s->op == FAULTS_BROADCAST &&
        faults_place(&p->group[s->group], rank) == s->root)
        fill(p, step, rank, b->output);
    return true;
}

bool faults_check(const faults_program *p, int step, int rank,
                  const faults_buffers *b, char *text, size_t bytes)
{
    const faults_step *s = &p->step[step];
    const faults_group *g = &p->group[s->group];
    int me = faults_place(g, rank);
    size_t at = 0;

    for (int part = 0; part < output_parts(s, g->size, me); part++)
        for (size_t i = 0; i < output_count(s, me, part); i++, at++) {
            int64_t got = get(b->output, at, s->dtype);
            int64_t wanted = expected(p, step, me, part, i);

            if (got == wanted)
                continue;
            snprintf(text, bytes,
                     "step %d: element %zu of part %d is octal %llo and not "
                     "%llo",
                     step, i, part, (unsigned long long)got,
                     (unsigned long long)wanted);
            return false;
        }
    return true;
}
