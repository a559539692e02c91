/* Replaying plans on plain arrays: all members of a call, in one thread, each a
 * step at a time in an order that a seed chooses, as ranks that run when they may.
 * What a step reads is what stands there in that moment, so a plan that reuses a
 * window too early gives wrong bytes.
 *
 * For tests and for fuzzing, which has no CHECK: rdl_replay answers what is wrong,
 * or NULL. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_SUPPORT_REPLAY_H
#define RDL_SUPPORT_REPLAY_H

#include "base/layout.h"
#include "comm/plan.h"

#include <stdlib.h>
#include <string.h>

#define RDL_REPLAY_MOST 16 /* members */
#define RDL_REPLAY_MARGIN 16
#define RDL_REPLAY_UNTOUCHED 0xa5

typedef size_t rdl_replay_list[RDL_REPLAY_MOST];

typedef struct rdl_replay_member {
    rdl_plan plan;
    uint64_t step;
    uint64_t published;
    size_t input_bytes;
    size_t output_bytes;
    rdl_uneven uneven;
    rdl_replay_list in_at, in_bytes, their_at, out_at, out_bytes;
    unsigned char *room; /* input, output, two halves; with margins */
    unsigned char *input;
    unsigned char *output;
    unsigned char *halves;
    unsigned char lines[RDL_LINES][RDL_INLINE];
} rdl_replay_member;

typedef struct rdl_replay_call {
    rdl_shape shape; /* me and uneven: of no meaning */
    /* Of the uneven operations: bytes from each member (row) to each. Of
     * all_gather_v and reduce_scatter_v the first row counts. */
    rdl_replay_list blocks[RDL_REPLAY_MOST];
    size_t window;
    bool in_place;
    uint64_t seed;
    rdl_replay_member members[RDL_REPLAY_MOST];
} rdl_replay_call;

/* Byte i of member's input. */
static inline unsigned char rdl_replay_byte(int member, size_t i)
{
    return (unsigned char)(i * 131 + i / 251 + (size_t)member * 59 + 7);
}

/* --- what goes where --------------------------------------------------------- */

static inline bool rdl_replay_is_uneven(const rdl_replay_call *c)
{
    return c->shape.operation == RDL_OP_ALL_GATHER_V ||
           c->shape.operation == RDL_OP_REDUCE_SCATTER_V ||
           c->shape.operation == RDL_OP_ALL_TO_ALL_V;
}

/* Bytes that `from` hands to `to`. */
static inline size_t rdl_replay_block(const rdl_replay_call *c, int from, int to)
{
    switch (c->shape.operation) {
    case RDL_OP_ALL_GATHER_V:
        return c->blocks[0][from];
    case RDL_OP_REDUCE_SCATTER_V:
        return c->blocks[0][to];
    case RDL_OP_ALL_TO_ALL_V:
        return c->blocks[from][to];
    default:
        return c->shape.bytes;
    }
}

/* Whether a member's input holds a block for each member. */
static inline bool rdl_replay_in_blocks(const rdl_replay_call *c)
{
    switch (c->shape.operation) {
    case RDL_OP_REDUCE_SCATTER:
    case RDL_OP_REDUCE_SCATTER_V:
    case RDL_OP_ALL_TO_ALL:
    case RDL_OP_ALL_TO_ALL_V:
    case RDL_OP_SCATTER:
        return true;
    default:
        return false;
    }
}

static inline bool rdl_replay_out_blocks(const rdl_replay_call *c)
{
    switch (c->shape.operation) {
    case RDL_OP_ALL_GATHER:
    case RDL_OP_ALL_GATHER_V:
    case RDL_OP_GATHER:
    case RDL_OP_ALL_TO_ALL:
    case RDL_OP_ALL_TO_ALL_V:
        return true;
    default:
        return false;
    }
}

/* Whether me hands anything over, and whether it gets anything. */
static inline bool rdl_replay_gives(const rdl_replay_call *c, int me)
{
    rdl_operation o = c->shape.operation;

    return o != RDL_OP_BARRIER &&
           ((o != RDL_OP_BROADCAST && o != RDL_OP_SCATTER &&
             o != RDL_OP_SEND_RECV) ||
            me == c->shape.root);
}

static inline bool rdl_replay_gets(const rdl_replay_call *c, int me)
{
    switch (c->shape.operation) {
    case RDL_OP_BARRIER:
        return false;
    case RDL_OP_REDUCE:
    case RDL_OP_GATHER:
        return me == c->shape.root;
    case RDL_OP_BROADCAST:
    case RDL_OP_SEND_RECV:
        return me != c->shape.root;
    default:
        return true;
    }
}

static inline size_t rdl_replay_larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Where the block from `from` to `to` begins in from's input. */
static inline size_t rdl_replay_in_at(const rdl_replay_call *c, int from, int to)
{
    size_t at = 0;

    for (int j = 0; rdl_replay_in_blocks(c) && j < to; j++)
        at += rdl_replay_block(c, from, j);
    return at;
}

static inline size_t rdl_replay_out_at(const rdl_replay_call *c, int from,
                                       int to)
{
    size_t at = 0;

    for (int i = 0; rdl_replay_out_blocks(c) && i < from; i++)
        at += rdl_replay_block(c, i, to);
    return at;
}

/* The tables of an uneven call, as comm/op.c makes them for member me. */
static inline void rdl_replay_tabulate(rdl_replay_call *c, int me)
{
    rdl_replay_member *m = &c->members[me];
    bool gathers = c->shape.operation == RDL_OP_ALL_GATHER_V;
    int size = c->shape.size;

    m->uneven = (rdl_uneven){ m->in_at,  m->in_bytes,  m->their_at,
                              m->out_at, m->out_bytes, .block_most = 0 };
    for (int j = 0; j < size; j++) {
        size_t sum = 0;

        m->in_bytes[j] = gathers ? c->blocks[0][j] : rdl_replay_block(c, me, j);
        m->in_at[j] = j > 0 ? m->in_at[j - 1] + m->in_bytes[j - 1] : 0;
        m->out_bytes[j] = rdl_replay_block(c, j, me);
        m->out_at[j] = rdl_replay_out_at(c, j, me);
        m->their_at[j] = rdl_replay_in_at(c, j, me);
        for (int i = 0; i < size; i++) {
            size_t block = rdl_replay_block(c, j, i);

            m->uneven.block_most =
                rdl_replay_larger(m->uneven.block_most, block);
            sum = gathers ? block : sum + block;
        }
        m->uneven.total_most = rdl_replay_larger(m->uneven.total_most, sum);
    }
}

static inline void rdl_replay_measure(rdl_replay_call *c, int me)
{
    rdl_replay_member *m = &c->members[me];
    int last = c->shape.size - 1;

    m->input_bytes = m->output_bytes = 0;
    if (rdl_replay_gives(c, me))
        m->input_bytes =
            rdl_replay_in_blocks(c)
                ? rdl_replay_in_at(c, me, last) + rdl_replay_block(c, me, last)
                : rdl_replay_block(c, me, 0);
    if (rdl_replay_gets(c, me))
        m->output_bytes =
            rdl_replay_out_blocks(c)
                ? rdl_replay_out_at(c, last, me) + rdl_replay_block(c, last, me)
                : rdl_replay_block(c, 0, me);
}

/* What member me holds at byte i of its output, by the operation's meaning. A
 * reduction is a fold that is neither commutative nor associative. */
static inline unsigned char rdl_replay_expected(const rdl_replay_call *c,
                                                int me, size_t i)
{
    int from = c->shape.root;
    unsigned char x;

    if (rdl_operation_reduces(c->shape.operation)) {
        x = rdl_replay_byte(0, rdl_replay_in_at(c, 0, me) + i);
        for (int m = 1; m < c->shape.size; m++)
            x = (unsigned char)(x * 31 + rdl_replay_byte(
                                             m, rdl_replay_in_at(c, m, me) + i));
        return x;
    }
    if (rdl_replay_out_blocks(c))
        for (from = 0; i >= rdl_replay_block(c, from, me); from++)
            i -= rdl_replay_block(c, from, me);
    return rdl_replay_byte(from, rdl_replay_in_at(c, from, me) + i);
}

/* --- members ----------------------------------------------------------------- */

/* Where input and output lie: apart, or as the call says "in place". */
static inline void rdl_replay_place(rdl_replay_call *c, int me)
{
    rdl_replay_member *m = &c->members[me];

    m->input = m->room + RDL_REPLAY_MARGIN;
    m->output = m->input + m->input_bytes + RDL_REPLAY_MARGIN;
    m->halves = m->output + m->output_bytes + RDL_REPLAY_MARGIN;
    if (!c->in_place)
        return;
    switch (c->shape.operation) {
    case RDL_OP_ALL_REDUCE:
        m->input = m->output;
        break;
    case RDL_OP_ALL_GATHER:
    case RDL_OP_ALL_GATHER_V:
        m->input = m->output + rdl_replay_out_at(c, me, me);
        break;
    case RDL_OP_REDUCE_SCATTER:
    case RDL_OP_REDUCE_SCATTER_V:
        m->output = m->input + rdl_replay_in_at(c, me, me);
        break;
    default:
        break;
    }
}

static inline bool rdl_replay_begin(rdl_replay_call *c)
{
    for (int me = 0; me < c->shape.size; me++) {
        rdl_replay_member *m = &c->members[me];
        rdl_shape shape = c->shape;
        size_t room;

        memset(m, 0, sizeof *m);
        shape.me = me;
        shape.uneven = rdl_replay_is_uneven(c) ? &m->uneven : NULL;
        rdl_replay_tabulate(c, me);
        rdl_replay_measure(c, me);
        room = m->input_bytes + m->output_bytes +
               (c->window == RDL_PLAN_MAPPED ? 0 : 2 * c->window) +
               4 * RDL_REPLAY_MARGIN;
        m->room = (unsigned char *)malloc(room);
        if (m->room == NULL)
            return false;
        memset(m->room, RDL_REPLAY_UNTOUCHED, room);
        m->plan = rdl_plan_make(&shape, c->window);
        rdl_replay_place(c, me);
        for (size_t i = 0; i < m->input_bytes; i++)
            m->input[i] = rdl_replay_byte(me, i);
    }
    return true;
}

static inline void rdl_replay_end(rdl_replay_call *c)
{
    for (int me = 0; me < c->shape.size; me++)
        free(c->members[me].room);
}

/* --- steps ------------------------------------------------------------------- */

/* The window that me writes: of a half, or of the line it publishes next. */
static inline unsigned char *rdl_replay_own_window(rdl_replay_call *c, int me)
{
    rdl_replay_member *m = &c->members[me];
    uint64_t round = rdl_plan_round(&m->plan, m->step);

    if (m->plan.in_line)
        return m->lines[(m->published + 1) % RDL_LINES];
    return m->halves + (round & 1) * c->window;
}

/* What me reads of `of`: a half, the line of the phase that me is in, or a buffer. */
static inline const unsigned char *rdl_replay_window(rdl_replay_call *c, int me,
                                                     int of, bool of_output)
{
    rdl_replay_member *m = &c->members[me];
    uint64_t round = rdl_plan_round(&m->plan, m->step);

    if (m->plan.mapped)
        return of_output ? c->members[of].output : c->members[of].input;
    if (m->plan.in_line)
        return c->members[of].lines[m->published % RDL_LINES];
    return c->members[of].halves + (round & 1) * c->window;
}

/* Eight if all blocks are whole numbers of it. */
static inline size_t rdl_replay_element(const rdl_replay_call *c)
{
    for (int i = 0; i < c->shape.size; i++)
        for (int j = 0; j < c->shape.size; j++)
            if (rdl_replay_block(c, i, j) % 8 != 0)
                return 1;
    return 8;
}

/* Bytes of the window that a step reads or writes. */
static inline size_t rdl_replay_window_bytes(const rdl_replay_call *c, int me,
                                             const rdl_step *s)
{
    const rdl_replay_member *m = &c->members[me];

    if (m->plan.mapped && s->kind == RDL_STEP_REDUCE)
        return m->input_bytes; /* all have the same */
    if (m->plan.mapped)
        return s->of_output ? c->members[s->peer].output_bytes
                            : c->members[s->peer].input_bytes;
    return m->plan.in_line ? RDL_INLINE : c->window;
}

/* What is wrong with where a step reads and writes. */
static inline const char *rdl_replay_check(const rdl_replay_call *c, int me,
                                           const rdl_step *s)
{
    const rdl_replay_member *m = &c->members[me];
    size_t window;
    size_t user = s->kind == RDL_STEP_STAGE ? m->input_bytes : m->output_bytes;
    size_t element = rdl_replay_element(c);

    if (s->kind == RDL_STEP_TAKE && (s->peer < 0 || s->peer >= c->shape.size))
        return "a step takes from nobody";
    if (m->plan.mapped && s->kind == RDL_STEP_STAGE)
        return "a mapped plan stages";
    window = rdl_replay_window_bytes(c, me, s);
    if (s->staged > window || s->bytes > window - s->staged)
        return "a step leaves its window";
    if (s->to_window && (s->result > window || s->bytes > window - s->result))
        return "a result leaves its window";
    if (!s->to_window && (s->user > user || s->bytes > user - s->user))
        return "a step leaves the user's buffer";
    if (s->bytes % element != 0 || s->staged % element != 0 ||
        s->user % element != 0)
        return "a step splits an element";
    return NULL;
}

static inline void rdl_replay_reduce(rdl_replay_call *c, int me,
                                     const rdl_step *s)
{
    unsigned char *out = s->to_window ? rdl_replay_own_window(c, me) + s->result
                                      : c->members[me].output + s->user;

    for (size_t at = s->staged; at < s->staged + s->bytes; at++) {
        unsigned char x = rdl_replay_window(c, me, 0, false)[at];

        for (int i = 1; i < c->shape.size; i++)
            x = (unsigned char)(x * 31 + rdl_replay_window(c, me, i, false)[at]);
        out[at - s->staged] = x;
    }
}

static inline bool rdl_replay_all_published(const rdl_replay_call *c, int me)
{
    for (int i = 0; i < c->shape.size; i++)
        if (c->members[i].published < c->members[me].published)
            return false;
    return true;
}

/* A step that moves bytes. */
static inline void rdl_replay_move(rdl_replay_call *c, int me, const rdl_step *s)
{
    rdl_replay_member *m = &c->members[me];

    if (s->kind == RDL_STEP_STAGE)
        memcpy(rdl_replay_own_window(c, me) + s->staged, m->input + s->user,
               s->bytes);
    else if (s->kind == RDL_STEP_TAKE)
        memmove(m->output + s->user,
                rdl_replay_window(c, me, s->peer, s->of_output) + s->staged,
                s->bytes);
    else
        rdl_replay_reduce(c, me, s);
}

/* One step of me; *moved says whether it was possible. */
static inline const char *rdl_replay_step(rdl_replay_call *c, int me,
                                          bool *moved)
{
    rdl_replay_member *m = &c->members[me];
    rdl_step s = rdl_plan_step(&m->plan, m->step);
    const char *wrong = s.bytes > 0 ? rdl_replay_check(c, me, &s) : NULL;

    if (wrong != NULL)
        return wrong;
    *moved = true;
    if (s.kind == RDL_STEP_PUBLISH)
        m->published++;
    else if (s.kind == RDL_STEP_AWAIT)
        *moved = rdl_replay_all_published(c, me);
    else if (s.bytes > 0)
        rdl_replay_move(c, me, &s);
    m->step += *moved;
    return NULL;
}

static inline uint64_t rdl_replay_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Who is tried next: seeds 0 and 1 let the first or the last member run as far as
 * it can. */
static inline int rdl_replay_next(const rdl_replay_call *c, uint64_t *state,
                                  int tried)
{
    if (c->seed == 0)
        return tried;
    if (c->seed == 1)
        return c->shape.size - 1 - tried;
    return (int)(rdl_replay_random(state) % (uint64_t)c->shape.size);
}

static inline const char *rdl_replay_run(rdl_replay_call *c)
{
    uint64_t state = c->seed;
    int size = c->shape.size, left = size, tried = 0;
    int patience = c->seed <= 1 ? size : 1000 * size;

    while (left > 0) {
        int me = rdl_replay_next(c, &state, tried);
        rdl_replay_member *m = &c->members[me];
        bool moved = false;

        if (m->step < rdl_plan_steps(&m->plan)) {
            const char *wrong = rdl_replay_step(c, me, &moved);

            if (wrong != NULL)
                return wrong;
            left -= m->step == rdl_plan_steps(&m->plan);
        }
        tried = moved ? 0 : tried + 1;
        if (left > 0 && tried == patience)
            return "all wait";
    }
    return NULL;
}

/* Outputs are as the operation says; what is around them is untouched. */
static inline const char *rdl_replay_compare(const rdl_replay_call *c)
{
    for (int me = 0; me < c->shape.size; me++) {
        const rdl_replay_member *m = &c->members[me];
        const unsigned char *end =
            m->room + m->input_bytes + m->output_bytes + 2 * RDL_REPLAY_MARGIN;

        for (size_t i = 0; i < m->output_bytes; i++)
            if (m->output[i] != rdl_replay_expected(c, me, i))
                return "a byte of the output is wrong";
        for (size_t i = 0; i < RDL_REPLAY_MARGIN; i++)
            if (m->room[i] != RDL_REPLAY_UNTOUCHED ||
                end[i] != RDL_REPLAY_UNTOUCHED)
                return "what is around the buffers was written";
    }
    return NULL;
}

/* What is wrong with the plan of this call, or NULL. */
static inline const char *rdl_replay(rdl_replay_call *c)
{
    const char *wrong = "no memory";

    if (rdl_replay_begin(c))
        wrong = rdl_replay_run(c);
    if (wrong == NULL)
        wrong = rdl_replay_compare(c);
    rdl_replay_end(c);
    return wrong;
}

#endif
