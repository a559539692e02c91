/* The algorithms. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/plan.h"

#include "base/layout.h"
#include "base/status.h"
#include "comm/choice.h"

/* Windows begin on cache lines and pieces are whole ones, so that elements are
 * never split and never straddle: 64 is a multiple of every element's size. */
static size_t round_up(size_t bytes)
{
    return (bytes + RDL_CACHE_LINE - 1) / RDL_CACHE_LINE * RDL_CACHE_LINE;
}

static size_t round_down(size_t bytes)
{
    return bytes / RDL_CACHE_LINE * RDL_CACHE_LINE;
}

const char *rdl_operation_name(rdl_operation operation)
{
    static const char *const names[] = {
#define X(name, text) [RDL_OP_##name] = #text,
        RDL_OPERATION_MAP(X)
#undef X
    };

    return operation < sizeof names / sizeof *names ? names[operation] : "?";
}

bool rdl_operation_reduces(rdl_operation operation)
{
    return operation == RDL_OP_ALL_REDUCE || operation == RDL_OP_REDUCE ||
           operation == RDL_OP_REDUCE_SCATTER ||
           operation == RDL_OP_REDUCE_SCATTER_V;
}

/* --- blocks ---------------------------------------------------------------- */

/* Whether each member's input is a block for every member. */
static bool has_blocks(const rdl_shape *s)
{
    switch (s->operation) {
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

static size_t in_at(const rdl_shape *s, int j)
{
    return s->uneven ? s->uneven->in_at[j] : (size_t)j * s->bytes;
}

static size_t in_bytes(const rdl_shape *s, int j)
{
    return s->uneven ? s->uneven->in_bytes[j] : s->bytes;
}

static size_t their_at(const rdl_shape *s, int j)
{
    return s->uneven ? s->uneven->their_at[j] : (size_t)s->me * s->bytes;
}

static size_t out_at(const rdl_shape *s, int j)
{
    return s->uneven ? s->uneven->out_at[j] : (size_t)j * s->bytes;
}

static size_t out_bytes(const rdl_shape *s, int j)
{
    return s->uneven ? s->uneven->out_bytes[j] : s->bytes;
}

static size_t block_most(const rdl_shape *s)
{
    return s->uneven ? s->uneven->block_most : s->bytes;
}

/* The most that any member hands over. */
static size_t input_most(const rdl_shape *s)
{
    if (s->uneven != NULL)
        return s->uneven->total_most;
    return has_blocks(s) ? s->bytes * (size_t)s->size : s->bytes;
}

/* What this rank hands over. */
static size_t input_bytes(const rdl_shape *s)
{
    int last = s->size - 1;

    if (!has_blocks(s))
        return in_bytes(s, s->me);
    return in_at(s, last) + in_bytes(s, last);
}

bool rdl_plan_gives(const rdl_shape *s, int member)
{
    return (s->operation != RDL_OP_BROADCAST &&
            s->operation != RDL_OP_SEND_RECV && s->operation != RDL_OP_SCATTER) ||
           member == s->root;
}

size_t rdl_plan_input(const rdl_shape *s)
{
    return input_bytes(s);
}

size_t rdl_plan_input_most(const rdl_shape *s)
{
    return input_most(s);
}

/* Whether this rank's input is used at all, and its output. */
static bool gives(const rdl_shape *s)
{
    return rdl_plan_gives(s, s->me);
}

static bool gets(const rdl_shape *s)
{
    switch (s->operation) {
    case RDL_OP_REDUCE:
    case RDL_OP_GATHER:
        return s->me == s->root;
    case RDL_OP_BROADCAST:
    case RDL_OP_SEND_RECV:
        return s->me != s->root;
    default:
        return true;
    }
}

/* From how many members a round takes, one after another; else it takes from the
 * root, or reduces all. */
static int takes(const rdl_shape *s)
{
    switch (s->operation) {
    case RDL_OP_ALL_GATHER:
    case RDL_OP_ALL_GATHER_V:
    case RDL_OP_GATHER:
    case RDL_OP_ALL_TO_ALL:
    case RDL_OP_ALL_TO_ALL_V:
        return s->size;
    default:
        return 1;
    }
}

/* The step that consumes what comes from member `which`. */
static rdl_step consume(const rdl_shape *s, int which)
{
    switch (s->operation) {
    case RDL_OP_ALL_REDUCE:
    case RDL_OP_REDUCE:
    case RDL_OP_REDUCE_SCATTER:
    case RDL_OP_REDUCE_SCATTER_V:
        return (rdl_step){ .kind = RDL_STEP_REDUCE };
    case RDL_OP_BROADCAST:
    case RDL_OP_SEND_RECV:
    case RDL_OP_SCATTER:
        return (rdl_step){ .kind = RDL_STEP_TAKE, .peer = s->root };
    default:
        return (rdl_step){ .kind = RDL_STEP_TAKE, .peer = which };
    }
}

/* The member from which a round takes as the i-th: each rank begins with itself, so
 * that not all of them read from one at once. */
static int taken(const rdl_shape *s, int i)
{
    return takes(s) > 1 ? (s->me + i) % s->size : i;
}

/* Where it goes: 0 where a round has one output, else the member's place. */
static size_t place_of(const rdl_shape *s, int which)
{
    return takes(s) > 1 ? out_at(s, which) : 0;
}

bool rdl_plan_fits_line(const rdl_shape *shape)
{
    return shape->operation == RDL_OP_BARRIER || input_most(shape) <= RDL_INLINE;
}

static bool wants_two_phases(const rdl_shape *shape)
{
    return (shape->operation == RDL_OP_ALL_REDUCE ||
            shape->operation == RDL_OP_REDUCE) &&
           rdl_choose(shape->choices, shape) == RDL_TWO_PHASE;
}

static bool wants_blocks(const rdl_shape *shape)
{
    return rdl_choose(shape->choices, shape) != RDL_STREAMED;
}

bool rdl_plan_is_small(const rdl_shape *shape)
{
    return !rdl_plan_fits_line(shape) && input_most(shape) <= RDL_SMALL &&
           shape->operation != RDL_OP_SEND_RECV && !wants_two_phases(shape);
}

/* A small all_reduce has no phase after which inputs may be written, and a reduction
 * to a root would be the root's work alone. */
bool rdl_plan_may_map(const rdl_shape *shape)
{
    if (rdl_plan_fits_line(shape) || rdl_plan_is_small(shape) ||
        shape->operation == RDL_OP_REDUCE)
        return false;
    return shape->operation != RDL_OP_ALL_REDUCE || wants_two_phases(shape);
}

bool rdl_plan_reads_outputs(const rdl_shape *shape)
{
    return shape->operation == RDL_OP_ALL_REDUCE;
}

/* Bytes of a slice when size ranks share a piece. */
static size_t slice_of(size_t piece, int size)
{
    return round_up((piece + (size_t)size - 1) / (size_t)size);
}

size_t rdl_plan_wish(const rdl_shape *shape)
{
    size_t blocks = has_blocks(shape) ? (size_t)shape->size : 1;
    size_t piece = round_up(block_most(shape));

    if (wants_two_phases(shape))
        return piece + slice_of(piece, shape->size);
    return piece * blocks;
}

/* The largest piece whose input and reduced slice fit the window. */
static size_t two_phase_piece(size_t window, int size)
{
    size_t piece = round_down(window / ((size_t)size + 1) * (size_t)size);

    while (piece > 0 && piece + slice_of(piece, size) > window)
        piece -= RDL_CACHE_LINE;
    return piece;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static uint64_t rounds_for(size_t bytes, size_t piece)
{
    return bytes == 0 ? 1 : bytes / piece + (bytes % piece != 0);
}

static void choose_mapped(rdl_plan *plan)
{
    const rdl_shape *s = &plan->shape;

    plan->mapped = true;
    plan->piece = input_most(s);
    if (rdl_plan_reads_outputs(s)) {
        plan->algorithm = RDL_TWO_PHASE;
        plan->slice = slice_of(plan->piece, s->size);
    } else {
        plan->algorithm = has_blocks(s) ? RDL_STREAMED : RDL_ONE_SHOT;
    }
}

static void choose_small(rdl_plan *plan)
{
    plan->small = true;
    plan->piece = RDL_SMALL;
    plan->algorithm = has_blocks(&plan->shape) ? RDL_STREAMED : RDL_ONE_SHOT;
}

static void choose(rdl_plan *plan, size_t window)
{
    const rdl_shape *s = &plan->shape;
    size_t whole = round_up(block_most(s));

    if (s->operation == RDL_OP_BARRIER || block_most(s) == 0) {
        plan->algorithm = RDL_EMPTY;
        plan->in_line = true;
        plan->piece = RDL_INLINE;
        return;
    }
    plan->in_line = window == 0 || rdl_plan_fits_line(s);
    if (plan->in_line) {
        plan->algorithm = has_blocks(s) ? RDL_STREAMED : RDL_ONE_SHOT;
        plan->piece = RDL_INLINE;
    } else if (has_blocks(s)) {
        size_t piece =
            wants_blocks(s) ? round_down(window / (size_t)s->size) : 0;

        plan->algorithm = piece > 0 ? RDL_BLOCKED : RDL_STREAMED;
        plan->piece = piece > 0 ? smaller(piece, whole) : round_down(window);
    } else if (wants_two_phases(s) && two_phase_piece(window, s->size) > 0) {
        plan->algorithm = RDL_TWO_PHASE;
        plan->piece = smaller(two_phase_piece(window, s->size), whole);
        plan->slice = slice_of(plan->piece, s->size);
    } else {
        plan->algorithm = RDL_ONE_SHOT;
        plan->piece = smaller(round_down(window), whole);
    }
}

#ifdef RDL_MUTANT_END /* tests must catch this build */
#define STEPS_AT_END 0
#else
#define STEPS_AT_END 2
#endif

rdl_plan rdl_plan_make(const rdl_shape *shape, size_t window)
{
    rdl_plan plan = { .shape = *shape };

    if (window == RDL_PLAN_MAPPED)
        choose_mapped(&plan);
    else if (window == RDL_PLAN_SMALL)
        choose_small(&plan);
    else
        choose(&plan, window);
    switch (plan.algorithm) {
    case RDL_EMPTY:
        plan.rounds = 1;
        plan.steps_in_round = 2;
        break;
    case RDL_ONE_SHOT:
        plan.rounds = rounds_for(block_most(shape), plan.piece);
        plan.steps_in_round = 3 + takes(shape);
        break;
    case RDL_STREAMED:
        plan.rounds = rounds_for(input_most(shape), plan.piece);
        plan.steps_in_round = 3 + takes(shape);
        break;
    case RDL_BLOCKED:
        plan.rounds = rounds_for(block_most(shape), plan.piece);
        plan.steps_in_round = shape->size + 2 + takes(shape);
        break;
    case RDL_TWO_PHASE:
        plan.rounds = rounds_for(shape->bytes, plan.piece);
        plan.steps_in_round = 6 + shape->size;
        break;
    }
    plan.steps_at_end = plan.in_line || plan.small ? 0 : STEPS_AT_END;
    return plan;
}

uint64_t rdl_plan_steps(const rdl_plan *plan)
{
    return plan->rounds * (uint64_t)plan->steps_in_round +
           (uint64_t)plan->steps_at_end;
}

uint64_t rdl_plan_round(const rdl_plan *plan, uint64_t i)
{
    return i / (uint64_t)plan->steps_in_round;
}

/* --- the steps ------------------------------------------------------------- */

/* A range before it is cut: in coordinates of a stream of bytes, of which user
 * offsets are shift away. */
typedef struct range {
    size_t at, bytes, low, high;
    ptrdiff_t shift;
} range;

/* Sets user and bytes, and moves staged along if the front is cut. */
static rdl_step cut(rdl_step step, range r)
{
    size_t begin = r.at > r.low ? r.at : r.low;
    size_t end = smaller(r.at + r.bytes, r.high);

    if (begin >= end)
        return step;
    step.bytes = end - begin;
    step.staged += begin - r.at;
    step.user = (size_t)((ptrdiff_t)begin + r.shift);
    return step;
}

static rdl_step publish_or_await(int which)
{
    return (rdl_step){ .kind = which == 0 ? RDL_STEP_PUBLISH : RDL_STEP_AWAIT };
}

static bool stages(const rdl_plan *p)
{
    return gives(&p->shape) && !p->mapped;
}

/* One block each: everyone stages a piece of it, and takes the same piece of the
 * others'. */
static rdl_step one_shot(const rdl_plan *p, uint64_t round, int i)
{
    const rdl_shape *s = &p->shape;
    range r = { .at = (size_t)round * p->piece, .bytes = p->piece };

    if (i == 0) {
        r.high = stages(p) ? input_bytes(s) : 0;
        return cut((rdl_step){ .kind = RDL_STEP_STAGE }, r);
    }
    if (i < 3)
        return publish_or_await(i - 1);
    i = taken(s, i - 3);
    r.high = gets(s) ? out_bytes(s, i) : 0;
    r.shift = (ptrdiff_t)place_of(s, i);
    return cut(consume(s, i), r);
}

/* A block for each member: the blocks as one stream, of which each takes its own
 * when it comes by. */
static rdl_step streamed(const rdl_plan *p, uint64_t round, int i)
{
    const rdl_shape *s = &p->shape;
    range r = { .at = (size_t)round * p->piece, .bytes = p->piece };
    size_t mine;

    if (i == 0) {
        r.high = stages(p) ? input_bytes(s) : 0;
        return cut((rdl_step){ .kind = RDL_STEP_STAGE }, r);
    }
    if (i < 3)
        return publish_or_await(i - 1);
    i = taken(s, i - 3);
    mine = their_at(s, i);
    r.low = mine;
    r.high = mine + out_bytes(s, i);
    r.shift = (ptrdiff_t)place_of(s, i) - (ptrdiff_t)mine;
    return cut(consume(s, i), r);
}

/* A block for each member: a piece of every block at once. */
static rdl_step blocked(const rdl_plan *p, uint64_t round, int i)
{
    const rdl_shape *s = &p->shape;
    range r = { .at = (size_t)round * p->piece, .bytes = p->piece };
    rdl_step step = { .kind = RDL_STEP_STAGE };

    if (i < s->size) {
        step.staged = (size_t)i * p->piece;
        r.high = gives(s) ? in_bytes(s, i) : 0;
        r.shift = (ptrdiff_t)in_at(s, i);
        return cut(step, r);
    }
    i -= s->size;
    if (i < 2)
        return publish_or_await(i);
    i = taken(s, i - 2);
    step = consume(s, i);
    step.staged = (size_t)s->me * p->piece;
    r.high = out_bytes(s, i);
    r.shift = (ptrdiff_t)place_of(s, i);
    return cut(step, r);
}

/* Slice `which` of the round's piece. */
static range slice_range(const rdl_plan *p, uint64_t round, int which)
{
    size_t at = (size_t)round * p->piece;
    size_t begin = smaller((size_t)which * p->slice, p->piece);
    size_t end = smaller(begin + p->slice, p->piece);

    return (
        range){ .at = at + begin, .bytes = end - begin, .high = p->shape.bytes };
}

static rdl_step two_phase(const rdl_plan *p, uint64_t round, int i)
{
    const rdl_shape *s = &p->shape;
    rdl_step step = { .kind = RDL_STEP_REDUCE };
    range r;

    if (i < 3)
        return one_shot(p, round, i);
    if (i == 3) {
        step.staged = smaller((size_t)s->me * p->slice, p->piece);
        step.to_window = !p->mapped;
        step.result = p->piece;
        return cut(step, slice_range(p, round, s->me));
    }
    if (i < 6)
        return publish_or_await(i - 4);
    i = (s->me + i - 6) % s->size; /* as in `taken` */
    step = (rdl_step){ .kind = RDL_STEP_TAKE, .peer = i, .staged = p->piece };
    r = slice_range(p, round, i);
    if (p->mapped) {
        step.staged = r.at;
        step.of_output = true;
    }
    if (!gets(s))
        r.high = 0;
    return cut(step, r);
}

rdl_step rdl_plan_step(const rdl_plan *plan, uint64_t i)
{
    uint64_t round = rdl_plan_round(plan, i);
    int in_round = (int)(i % (uint64_t)plan->steps_in_round);

    if (round >= plan->rounds)
        return publish_or_await(in_round);
    switch (plan->algorithm) {
    case RDL_EMPTY:
        return publish_or_await(in_round);
    case RDL_ONE_SHOT:
        return one_shot(plan, round, in_round);
    case RDL_BLOCKED:
        return blocked(plan, round, in_round);
    case RDL_STREAMED:
        return streamed(plan, round, in_round);
    case RDL_TWO_PHASE:
        break;
    }
    return two_phase(plan, round, in_round);
}
