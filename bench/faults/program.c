/* Random programs, each with one fault. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "faults.h"

#include <raddle/group.h>
#include <stdio.h>
#include <string.h>

const char *const faults_kind_names[FAULTS_KINDS] = {
#define X(name, text, verdict) text,
    FAULTS_KIND_MAP(X)
#undef X
};

static const faults_verdict verdicts[FAULTS_KINDS] = {
#define X(name, text, verdict) FAULTS_##verdict,
    FAULTS_KIND_MAP(X)
#undef X
};

const char *const faults_verdict_names[] = { "none",  "culprit", "camps",
                                             "dead",  "stopped", "absent",
                                             "cycle", "unclear" };

static const rdl_dtype dtypes[] = { RDL_INT32, RDL_FLOAT32, RDL_INT64,
                                    RDL_FLOAT64 };

uint64_t faults_draw(uint64_t *state, uint64_t below)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return below > 0 ? (x ^ x >> 31) % below : 0;
}

static int draw(uint64_t *state, int below)
{
    return (int)faults_draw(state, (uint64_t)below);
}

int faults_place(const faults_group *group, int rank)
{
    for (int i = 0; i < group->size; i++)
        if (group->ranks[i] == rank)
            return i;
    return -1;
}

/* --- groups ---------------------------------------------------------------- */

static void shuffle(uint64_t *state, int *ranks, int n)
{
    for (int i = 0; i < n; i++)
        ranks[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int j = draw(state, i + 1), kept = ranks[i];

        ranks[i] = ranks[j];
        ranks[j] = kept;
    }
}

static void make_groups(faults_program *p, uint64_t *state)
{
    p->groups = 1 + FAULTS_GROUPS;
    p->group[0].size = p->ranks;
    for (int i = 0; i < p->ranks; i++)
        p->group[0].ranks[i] = i;
    for (int g = 1; g < p->groups; g++) {
        shuffle(state, p->group[g].ranks, p->ranks);
        p->group[g].size = 2 + draw(state, p->ranks - 1);
        if (draw(state, 3) > 0)
            snprintf(p->group[g].name, sizeof p->group[g].name, "g%d", g);
    }
}

/* --- steps ----------------------------------------------------------------- */

/* Elements of one block, of which the largest call has as many as there are
 * members: 100 KiB in all, at most. */
static size_t draw_count(uint64_t *state, int members)
{
    static const int below[] = { 1, 7, 1500, 25000 };

    return faults_draw(state, (uint64_t)below[draw(state, 4)]) / (size_t)members;
}

static void draw_splits(uint64_t *state, faults_step *s, int members)
{
    for (int from = 0; from < members; from++)
        for (int to = 0; to < members; to++)
            s->splits[from][to] = draw_count(state, members);
}

static void make_step(faults_program *p, uint64_t *state, faults_step *s,
                      faults_op op, int group)
{
    int members = p->group[group].size;

    *s = (faults_step){ .op = op, .group = group };
    s->root = draw(state, members);
    s->to = (s->root + 1 + draw(state, members - 1)) % members;
    s->count = draw_count(state, op == FAULTS_TRANSFER ? 2 : members);
    s->dtype = dtypes[draw(state, 4)];
    if (op == FAULTS_ALL_TO_ALL_V)
        draw_splits(state, s, members);
}

static void make_steps(faults_program *p, uint64_t *state)
{
    for (int i = 0; i < FAULTS_STEPS; i++)
        make_step(p, state, &p->step[i], (faults_op)draw(state, FAULTS_OPS),
                  draw(state, p->groups));
}

/* --- faults ---------------------------------------------------------------- */

/* An operation that the fault can be in. */
static faults_op draw_op(const faults_program *p, uint64_t *state)
{
    switch (p->kind) {
    case FAULTS_COUNT_KIND:
    case FAULTS_DTYPE_KIND:
        return (faults_op)(1 + draw(state, FAULTS_TRANSFER));
    case FAULTS_ROOT_KIND:
        return (faults_op)(FAULTS_BROADCAST + draw(state, 4));
    case FAULTS_SPLITS_KIND:
        return FAULTS_ALL_TO_ALL_V;
    default:
        return (faults_op)draw(state, FAULTS_OPS);
    }
}

static int draw_group_of(const faults_program *p, uint64_t *state, int rank)
{
    int group;

    do
        group = draw(state, p->groups);
    while (faults_place(&p->group[group], rank) < 0);
    return group;
}

/* The step of the fault: the culprit takes part in it. */
static void place_fault(faults_program *p, uint64_t *state)
{
    int group = draw_group_of(p, state, p->culprit);
    faults_step *s = &p->step[p->at];

    make_step(p, state, s, draw_op(p, state), group);
    if (s->op == FAULTS_TRANSFER && p->group[group].ranks[s->to] != p->culprit) {
        s->root = faults_place(&p->group[group], p->culprit);
        s->to = (s->root + 1) % p->group[group].size;
    }
}

/* Two calls on one group that the culprit makes in the other order. */
static void swap_calls(faults_program *p, uint64_t *state)
{
    int group = draw_group_of(p, state, p->culprit);

    make_step(p, state, &p->step[p->at], FAULTS_ALL_REDUCE, group);
    make_step(p, state, &p->step[p->at + 1],
              (faults_op)(FAULTS_ALL_GATHER + draw(state, 7)), group);
    p->other = p->at + 1;
}

/* On a ring of groups of two, each rank calls on the one with its neighbour before
 * and then on the one with its neighbour after. The culprit begins at the other
 * end, so that each waits for the next. */
static void make_ring(faults_program *p, uint64_t *state)
{
    int ring[FAULTS_RANKS_MOST], size = 2 + draw(state, p->ranks - 1);

    shuffle(state, ring, p->ranks);
    p->culprit = ring[0];
    for (int i = 0; i < size; i++) {
        faults_group *g = &p->group[p->groups];

        g->size = 2;
        g->ranks[0] = ring[i];
        g->ranks[1] = ring[(i + 1) % size];
        snprintf(g->name, sizeof g->name, "ring%d", i);
        make_step(p, state, &p->step[p->at + i], FAULTS_ALL_REDUCE, p->groups++);
    }
    p->other = p->at + size - 1;
}

static void choose_faulty(faults_program *p, uint64_t *state)
{
    const faults_step *s = &p->step[p->at];
    const faults_group *g = &p->group[s->group];
    bool half = p->kind == FAULTS_COUNT_KIND || p->kind == FAULTS_DTYPE_KIND ||
                p->kind == FAULTS_ROOT_KIND;

    p->faulty = 1U << p->culprit;
    if (!half || g->size % 2 != 0 || s->op == FAULTS_TRANSFER ||
        draw(state, 4) > 0)
        return;
    for (int n = 1, i = 0; n < g->size / 2; i++)
        if (g->ranks[i] != p->culprit) {
            p->faulty |= 1U << g->ranks[i];
            n++;
        }
}

/* One of two, or half, differs from no majority. */
static faults_verdict expect(const faults_program *p)
{
    const faults_step *s = &p->step[p->at];
    int members = p->group[s->group].size;
    int faulty = __builtin_popcount(p->faulty);

    if (verdicts[p->kind] == FAULTS_CULPRIT &&
        (s->op == FAULTS_TRANSFER || 2 * (members - faulty) <= members))
        return FAULTS_CAMPS;
    return verdicts[p->kind];
}

static void make_fault(faults_program *p, uint64_t *state)
{
    p->culprit = draw(state, p->ranks);
    p->at = 2 + draw(state, FAULTS_STEPS - 2 - FAULTS_RANKS_MOST);
    p->other = p->at;
    p->variant = draw(state, 4);
    p->delay = draw(state, 3) == 0 ? 0 : draw(state, 1500000);
    if (p->kind == FAULTS_CYCLE_KIND)
        make_ring(p, state);
    else if (p->kind == FAULTS_ORDER_KIND)
        swap_calls(p, state);
    else
        place_fault(p, state);
    choose_faulty(p, state);
    p->verdict = expect(p);
}

void faults_make(faults_program *p, uint64_t seed, int run, faults_kind kind)
{
    uint64_t state = seed * 1000003 + (uint64_t)run;

    memset(p, 0, sizeof *p);
    p->seed = faults_draw(&state, UINT64_MAX);
    p->kind = kind;
    p->ranks = 2 + draw(&state, FAULTS_RANKS_MOST - 1);
    make_groups(p, &state);
    make_steps(p, &state);
    make_fault(p, &state);
}
