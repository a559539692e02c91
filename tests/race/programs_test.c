/* Random programs: the same calls in the same order on all ranks, made in whatever
 * way each rank's own luck says: blocking, as works, on streams, in batches; with
 * delays, shuffled waits, dropped handles, events, and staging at its least. All end,
 * with every result right, and nothing is held afterwards. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/worlds.h"

#include "comm/world.h"

#include <raddle/stream.h>
#include <raddle/work.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { GROUPS = 6, STREAMS = 4, STEPS = 60, RANKS = 8, COUNT_MOST = 400 };

typedef enum kind {
    ALL_REDUCE,
    ALL_GATHER,
    REDUCE_SCATTER,
    BROADCAST,
    RING, /* a batch: to the right, from the left, and the sum */
    KINDS
} kind;

typedef struct crew {
    rdl_group group;
    int ranks[RANKS];
    int size;
    int me; /* -1: not a member */
} crew;

typedef struct step {
    kind kind;
    int crew;
    int root;
    size_t count;
    int64_t *in;
    int64_t *out;
} step;

typedef struct program {
    rdl_world *world;
    rdl_stream *streams[STREAMS];
    rdl_event *event;
    crew crews[GROUPS];
    step steps[STEPS];
    rdl_work pending[STEPS];
    int n_pending;
    unsigned common; /* luck that all ranks share */
    unsigned own;
} program;

static int draw(unsigned *seed, int below)
{
    return rand_r(seed) % below;
}

static int64_t element(int rank, int number, size_t i)
{
    return (int64_t)rank * 1000003 + (int64_t)number * 10007 + (int64_t)i;
}

/* --- making ---------------------------------------------------------------- */

static void open_crew(program *p, int number)
{
    crew *c = &p->crews[number];
    int size = rdl_world_size(p->world);
    int mask = 1 + draw(&p->common, (1 << size) - 1);
    char name[16];

    c->me = -1;
    for (int r = 0; r < size; r++)
        if (mask >> r & 1) {
            if (r == rdl_world_rank(p->world))
                c->me = c->size;
            c->ranks[c->size++] = r;
        }
    snprintf(name, sizeof name, "g%d", number);
    CHECK_OK(rdl_group_open(p->world, c->ranks, c->size, name, &c->group));
}

static void make_step(program *p, int number)
{
    step *s = &p->steps[number];
    const crew *c;
    int giver;

    s->kind = (kind)draw(&p->common, KINDS);
    s->crew = draw(&p->common, GROUPS);
    s->count =
        1 + (size_t)draw(&p->common, draw(&p->common, 2) ? 5 : COUNT_MOST);
    c = &p->crews[s->crew];
    s->root = draw(&p->common, c->size);
    if (c->size == 1 && s->kind == RING)
        s->kind = ALL_REDUCE;
    if (c->me < 0)
        return;
    s->in = calloc((size_t)c->size * s->count, sizeof *s->in);
    s->out = calloc((size_t)(c->size + 1) * s->count, sizeof *s->out);
    CHECK(s->in != NULL && s->out != NULL);
    giver = c->ranks[c->me];
    for (size_t i = 0; i < (size_t)c->size * s->count; i++)
        s->in[i] = element(giver, number, i);
    if (s->kind == BROADCAST && c->me == s->root)
        for (size_t i = 0; i < s->count; i++)
            s->out[i] = element(giver, number, i);
}

/* --- running --------------------------------------------------------------- */

static rdl_status call_one(program *p, const step *s, const rdl_call *call)
{
    const crew *c = &p->crews[s->crew];

    switch (s->kind) {
    case ALL_GATHER:
        return rdl_all_gather(p->world, c->group, s->in, s->out, s->count,
                              RDL_INT64, call);
    case REDUCE_SCATTER:
        return rdl_reduce_scatter(p->world, c->group, s->in, s->out, s->count,
                                  RDL_INT64, RDL_SUM, call);
    case BROADCAST:
        return rdl_broadcast(p->world, c->group, s->out, s->count, RDL_INT64,
                             s->root, call);
    default:
        return rdl_all_reduce(p->world, c->group, s->in, s->out, s->count,
                              RDL_INT64, RDL_SUM, call);
    }
}

static rdl_status call_ring(program *p, const step *s, const rdl_call *call)
{
    const crew *c = &p->crews[s->crew];
    int right = (c->me + 1) % c->size, left = (c->me + c->size - 1) % c->size;
    rdl_call in_batch = { 0 };

    CHECK_OK(rdl_batch_begin(p->world, &in_batch.batch));
    CHECK_OK(rdl_send(p->world, c->group, s->in, s->count, RDL_INT64, right,
                      &in_batch));
    CHECK_OK(rdl_all_reduce(p->world, c->group, s->in, s->out + s->count,
                            s->count, RDL_INT64, RDL_SUM, &in_batch));
    CHECK_OK(rdl_receive(p->world, c->group, s->out, s->count, RDL_INT64, left,
                         &in_batch));
    return rdl_batch_end(in_batch.batch, call);
}

static void wait_for_some(program *p)
{
    while (p->n_pending > 0 && draw(&p->own, 3) == 0) {
        int at = draw(&p->own, p->n_pending);

        CHECK_OK(rdl_work_wait(p->world, p->pending[at], 0));
        p->pending[at] = p->pending[--p->n_pending];
    }
}

/* What only this rank does besides. */
static void wander(program *p)
{
    int from = draw(&p->own, STREAMS), to = draw(&p->own, STREAMS);

    if (draw(&p->own, 4) == 0)
        usleep((unsigned)draw(&p->own, 200));
    if (draw(&p->own, 6) == 0) {
        CHECK_OK(rdl_event_record(p->event, p->streams[from]));
        CHECK_OK(rdl_event_wait(p->event, p->streams[to]));
    }
    if (p->n_pending > 0 && draw(&p->own, 6) == 0)
        CHECK_OK(rdl_work_fence(
            p->world, p->pending[draw(&p->own, p->n_pending)], p->streams[to]));
    wait_for_some(p);
}

static void run_step(program *p, const step *s)
{
    rdl_work work;
    rdl_call call = { 0 };
    int how = draw(&p->own, 8);

    if (how < 4)
        call.stream = p->streams[draw(&p->own, STREAMS)];
    if (how >= 3 && how < 7)
        call.work = &work;
    CHECK_OK((s->kind == RING ? call_ring : call_one)(p, s, &call));
    /* A handle may be dropped; of a batch only one with a stream, as there is no
     * barrier that comes after transfers. */
    if (call.work != NULL &&
        (draw(&p->own, 4) != 0 || (s->kind == RING && call.stream == NULL)))
        p->pending[p->n_pending++] = work;
}

/* --- the end --------------------------------------------------------------- */

static int64_t sum_of(const crew *c, int number, size_t i)
{
    int64_t sum = 0;

    for (int m = 0; m < c->size; m++)
        sum += element(c->ranks[m], number, i);
    return sum;
}

static void check_step(const program *p, int number)
{
    const step *s = &p->steps[number];
    const crew *c = &p->crews[s->crew];
    int left = (c->me + c->size - 1) % c->size;

    for (size_t i = 0; i < s->count; i++)
        switch (s->kind) {
        case ALL_GATHER:
            for (int m = 0; m < c->size; m++)
                CHECK_INT(s->out[(size_t)m * s->count + i],
                          element(c->ranks[m], number, i));
            break;
        case REDUCE_SCATTER:
            CHECK_INT(s->out[i],
                      sum_of(c, number, (size_t)c->me * s->count + i));
            break;
        case BROADCAST:
            CHECK_INT(s->out[i], element(c->ranks[s->root], number, i));
            break;
        case RING:
            CHECK_INT(s->out[i], element(c->ranks[left], number, i));
            CHECK_INT(s->out[s->count + i], sum_of(c, number, i));
            break;
        default:
            CHECK_INT(s->out[i], sum_of(c, number, i));
            break;
        }
}

static void finish(program *p)
{
    while (p->n_pending > 0)
        CHECK_OK(rdl_work_wait(p->world, p->pending[--p->n_pending], 0));
    for (int s = 0; s < STREAMS; s++)
        CHECK_OK(rdl_stream_destroy(p->streams[s]));
    CHECK_OK(rdl_event_destroy(p->event));
    /* What was dropped comes before it. */
    for (int g = 0; g < GROUPS; g++)
        if (p->crews[g].me >= 0)
            CHECK_OK(rdl_barrier(p->world, p->crews[g].group, NULL));
    for (int i = 0; i < STEPS; i++) {
        if (p->steps[i].in != NULL)
            check_step(p, i);
        free(p->steps[i].in);
        free(p->steps[i].out);
    }
    for (int g = 0; g < GROUPS; g++)
        CHECK_OK(rdl_group_close(p->world, p->crews[g].group));
}

static void check_nothing_is_held(rdl_world *world)
{
    if (world->mapping == NULL)
        return;
    pthread_mutex_lock(&world->shelf.lock);
    CHECK_INT(world->shelf.staging_busy, 0);
    pthread_mutex_unlock(&world->shelf.lock);
    /* A dropped work has passed its turn on, and its driver is at its last steps. */
    for (int i = 0; i < 5000 && atomic_load(&world->tasks.n_out) > 0; i++)
        usleep(1000);
    CHECK_INT(atomic_load(&world->tasks.n_out), 0);
}

static void run_program(rdl_world *world, void *arg)
{
    program *p = calloc(1, sizeof *p);

    CHECK(p != NULL);
    p->world = world;
    p->common = *(unsigned *)arg;
    p->own = p->common * 31 + (unsigned)rdl_world_rank(world);
    for (int s = 0; s < STREAMS; s++)
        CHECK_OK(rdl_stream_create(world, NULL, &p->streams[s]));
    CHECK_OK(rdl_event_create(world, &p->event));
    for (int g = 0; g < GROUPS; g++)
        open_crew(p, g);
    for (int i = 0; i < STEPS; i++) {
        make_step(p, i);
        if (p->steps[i].in != NULL)
            run_step(p, &p->steps[i]);
        wander(p);
    }
    finish(p);
    check_nothing_is_held(world);
    free(p);
}

/* 10,000 in the long form, in parts that end in time. */
#define PARTS 20

static void run_part(unsigned part)
{
    unsigned rounds = rdl_test_soak() ? 10000 / PARTS : 3;

    for (unsigned round = 0; round < rounds; round++) {
        unsigned seed = 1 + part + round * PARTS;
        rdl_test_job job = { .size = 2 + (int)(seed % 7),
                             .staging_bytes = RDL_STAGING_LEAST,
                             .timeout_ms = 40000,
                             .processes = seed % 3 == 0 };

        rdl_test_worlds(&job, run_program, &seed);
    }
}

#define PART(n)                                                                \
    RDL_TEST(random_programs_end_with_every_result_right_##n)                  \
    {                                                                          \
        run_part(n);                                                           \
    }

PART(0)
PART(1)
PART(2)
PART(3)
PART(4)
PART(5)
PART(6)
PART(7)
PART(8)
PART(9)
PART(10)
PART(11)
PART(12)
PART(13)
PART(14)
PART(15)
PART(16)
PART(17)
PART(18)
PART(19)
