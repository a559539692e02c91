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

typedef struct rdl_replay_member {
    rdl_plan plan;
    uint64_t step;
    uint64_t published;
    unsigned char *room; /* all of: input, output, two halves; with margins */
    unsigned char *input;
    unsigned char *output;
    unsigned char *halves;
    unsigned char lines[RDL_LINES][RDL_INLINE];
} rdl_replay_member;

typedef struct rdl_replay_call {
    rdl_shape shape; /* me: of no meaning */
    size_t window;
    bool in_place;
    uint64_t seed;
    /* Set by rdl_replay. */
    size_t input_bytes;
    size_t output_bytes;
    rdl_replay_member members[RDL_REPLAY_MOST];
} rdl_replay_call;

/* Byte i of member's input. */
static inline unsigned char rdl_replay_byte(int member, size_t i)
{
    return (unsigned char)(i * 131 + i / 251 + (size_t)member * 59 + 7);
}

/* What member `me` holds at byte i of its output, by the operation's meaning. A
 * reduction is a fold that is neither commutative nor associative. */
static inline unsigned char rdl_replay_expected(const rdl_shape *s, int me,
                                                size_t i)
{
    size_t bytes = s->bytes > 0 ? s->bytes : 1; /* of a block of nothing: none */
    size_t block = i / bytes;
    size_t at =
        s->operation == RDL_OP_REDUCE_SCATTER ? (size_t)me * s->bytes + i : i;
    unsigned char x = rdl_replay_byte(0, at);

    switch (s->operation) {
    case RDL_OP_BROADCAST:
        return rdl_replay_byte(s->root, i);
    case RDL_OP_ALL_GATHER:
        return rdl_replay_byte((int)block, i % bytes);
    case RDL_OP_ALL_TO_ALL:
        return rdl_replay_byte((int)block, (size_t)me * s->bytes + i % bytes);
    default:
        for (int m = 1; m < s->size; m++)
            x = (unsigned char)(x * 31 + rdl_replay_byte(m, at));
        return x;
    }
}

static inline bool rdl_replay_is(const rdl_replay_call *c, rdl_operation o)
{
    return c->shape.operation == o;
}

static inline void rdl_replay_measure(rdl_replay_call *c)
{
    size_t all = c->shape.bytes * (size_t)c->shape.size;

    c->input_bytes = rdl_replay_is(c, RDL_OP_REDUCE_SCATTER) ||
                             rdl_replay_is(c, RDL_OP_ALL_TO_ALL)
                         ? all
                         : c->shape.bytes;
    c->output_bytes = rdl_replay_is(c, RDL_OP_ALL_GATHER) ||
                              rdl_replay_is(c, RDL_OP_ALL_TO_ALL)
                          ? all
                          : c->shape.bytes;
}

/* Where input and output lie: apart, or as the call says "in place". */
static inline void rdl_replay_place(rdl_replay_call *c, int me)
{
    rdl_replay_member *m = &c->members[me];
    size_t mine = (size_t)me * c->shape.bytes;

    m->input = m->room + RDL_REPLAY_MARGIN;
    m->output = m->input + c->input_bytes + RDL_REPLAY_MARGIN;
    m->halves = m->output + c->output_bytes + RDL_REPLAY_MARGIN;
    if (rdl_replay_is(c, RDL_OP_BROADCAST) ||
        (c->in_place && rdl_replay_is(c, RDL_OP_ALL_REDUCE)))
        m->input = m->output;
    else if (c->in_place && rdl_replay_is(c, RDL_OP_ALL_GATHER))
        m->input = m->output + mine;
    else if (c->in_place && rdl_replay_is(c, RDL_OP_REDUCE_SCATTER))
        m->output = m->input + mine;
}

static inline bool rdl_replay_begin(rdl_replay_call *c)
{
    rdl_replay_measure(c);
    for (int me = 0; me < c->shape.size; me++) {
        rdl_replay_member *m = &c->members[me];
        rdl_shape shape = c->shape;
        size_t room = c->input_bytes + c->output_bytes + 2 * c->window +
                      4 * RDL_REPLAY_MARGIN;

        memset(m, 0, sizeof *m);
        m->room = (unsigned char *)malloc(room);
        if (m->room == NULL)
            return false;
        memset(m->room, RDL_REPLAY_UNTOUCHED, room);
        shape.me = me;
        m->plan = rdl_plan_make(&shape, c->window);
        rdl_replay_place(c, me);
        if (!rdl_replay_is(c, RDL_OP_BROADCAST) || me == c->shape.root)
            for (size_t i = 0; i < c->input_bytes; i++)
                m->input[i] = rdl_replay_byte(me, i);
    }
    return true;
}

static inline void rdl_replay_end(rdl_replay_call *c)
{
    for (int me = 0; me < c->shape.size; me++)
        free(c->members[me].room);
}

/* The window that `of` has for the phase that `reader` is in; its own: for the
 * next it publishes. */
static inline unsigned char *rdl_replay_window(rdl_replay_call *c, int reader,
                                               int of)
{
    rdl_replay_member *r = &c->members[reader], *m = &c->members[of];
    uint64_t round = rdl_plan_round(&r->plan, r->step);

    if (!r->plan.in_line)
        return m->halves + (round & 1) * c->window;
    return m->lines[(r->published + (reader == of)) % RDL_LINES];
}

/* What is wrong with where a step reads and writes. */
static inline const char *rdl_replay_check(const rdl_replay_call *c, int me,
                                           const rdl_step *s)
{
    const rdl_plan *plan = &c->members[me].plan;
    size_t window = plan->in_line ? RDL_INLINE : c->window;
    size_t user = s->kind == RDL_STEP_STAGE ? c->input_bytes : c->output_bytes;
    size_t element = c->shape.bytes % 8 == 0 ? 8 : 1;

    if (s->staged > window || s->bytes > window - s->staged)
        return "a step leaves its window";
    if (s->to_window && (s->result > window || s->bytes > window - s->result))
        return "a result leaves its window";
    if (!s->to_window && (s->user > user || s->bytes > user - s->user))
        return "a step leaves the user's buffer";
    if (s->bytes % element != 0 || s->staged % element != 0 ||
        s->user % element != 0)
        return "a step splits an element";
    if (s->kind == RDL_STEP_TAKE && (s->peer < 0 || s->peer >= c->shape.size))
        return "a step takes from nobody";
    return NULL;
}

static inline void rdl_replay_reduce(rdl_replay_call *c, int me,
                                     const rdl_step *s)
{
    rdl_replay_member *m = &c->members[me];
    const unsigned char *inputs[RDL_REPLAY_MOST];
    unsigned char *out;

    /* While it reduces, its own window is the one it has published. */
    for (int i = 0; i < c->shape.size; i++)
        inputs[i] =
            (m->plan.in_line ? c->members[i].lines[m->published % RDL_LINES]
                             : rdl_replay_window(c, me, i)) +
            s->staged;
    out = s->to_window ? rdl_replay_window(c, me, me) + s->result
                       : m->output + s->user;
    for (size_t at = 0; at < s->bytes; at++) {
        unsigned char x = inputs[0][at];

        for (int i = 1; i < c->shape.size; i++)
            x = (unsigned char)(x * 31 + inputs[i][at]);
        out[at] = x;
    }
}

static inline void rdl_replay_take(rdl_replay_call *c, int me, const rdl_step *s)
{
    rdl_replay_member *m = &c->members[me];
    const unsigned char *from =
        m->plan.in_line ? c->members[s->peer].lines[m->published % RDL_LINES]
                        : rdl_replay_window(c, me, s->peer);

    memcpy(m->output + s->user, from + s->staged, s->bytes);
}

static inline bool rdl_replay_all_published(const rdl_replay_call *c, int me)
{
    for (int i = 0; i < c->shape.size; i++)
        if (c->members[i].published < c->members[me].published)
            return false;
    return true;
}

/* One step of me; *moved says whether it was possible. */
static inline const char *rdl_replay_step(rdl_replay_call *c, int me,
                                          bool *moved)
{
    rdl_replay_member *m = &c->members[me];
    rdl_step s = rdl_plan_step(&m->plan, m->step);
    const char *wrong = NULL;

    *moved = true;
    if (s.bytes > 0)
        wrong = rdl_replay_check(c, me, &s);
    if (wrong != NULL)
        return wrong;
    if (s.kind == RDL_STEP_PUBLISH)
        m->published++;
    else if (s.kind == RDL_STEP_AWAIT)
        *moved = rdl_replay_all_published(c, me);
    else if (s.kind == RDL_STEP_STAGE && s.bytes > 0)
        memcpy(rdl_replay_window(c, me, me) + s.staged, m->input + s.user,
               s.bytes);
    else if (s.kind == RDL_STEP_TAKE && s.bytes > 0)
        rdl_replay_take(c, me, &s);
    else if (s.kind == RDL_STEP_REDUCE && s.bytes > 0)
        rdl_replay_reduce(c, me, &s);
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
    int left = c->shape.size, tried = 0, patience = 1000 * c->shape.size;

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
        if (c->seed <= 1 ? tried == c->shape.size : tried == patience)
            return left > 0 ? "all wait" : NULL;
    }
    return NULL;
}

/* Outputs are as the operation says; what is around them is untouched. */
static inline const char *rdl_replay_compare(const rdl_replay_call *c)
{
    for (int me = 0; me < c->shape.size; me++) {
        const rdl_replay_member *m = &c->members[me];
        const unsigned char *end =
            m->room + c->input_bytes + c->output_bytes + 2 * RDL_REPLAY_MARGIN;

        for (size_t i = 0; i < c->output_bytes; i++)
            if (!rdl_replay_is(c, RDL_OP_BARRIER) &&
                m->output[i] != rdl_replay_expected(&c->shape, me, i))
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
