/* The program of a rank: it goes through the steps, does its fault, checks what it
 * gets, and reports the first call that fails.
 *
 * Its own moments are drawn apart from the others': whether a call blocks, goes on
 * beside it or on a stream, when it is waited for, how the rank ends after a
 * failure. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "faults.h"

#include <pthread.h>
#include <raddle/stream.h>
#include <raddle/work.h>
#include <raddle/world.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define STREAMS 2
#define PAUSE_MS (FAULTS_LIMIT_MS * 3 / 10)
#define LATE_MS (FAULTS_LIMIT_MS * 18 / 10)

typedef enum mode { BLOCKS, WORKS, STREAMS_ON } mode;

/* How this rank makes a call. */
typedef struct turn {
    mode mode;
    int stream;
    int wait_at; /* the step before which it is waited for */
    bool waits;  /* for it, still */
    rdl_work work;
    faults_buffers buffers;
} turn;

typedef struct player {
    const faults_program *program;
    int rank;
    rdl_world *world;
    rdl_group groups[FAULTS_GROUPS_MOST];
    rdl_stream *streams[STREAMS];
    turn turns[FAULTS_STEPS];
    bool leaves; /* after a failure it closes its world */
    bool has_bomb;
    pthread_t bomb;
    int waker; /* the pipe of a process that wakes this one */
    faults_report report;
    int64_t starved; /* at the fault's step */
} player;

/* --- time ------------------------------------------------------------------ */

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void nap_ns(int64_t ns)
{
    struct timespec t = { ns / 1000000000, ns % 1000000000 };

    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t) != 0)
        ;
}

static void nap_ms(int64_t ms)
{
    nap_ns(ms * 1000000);
}

/* How long this thread has waited for a core, in its life. */
static int64_t starved_ns(void)
{
    FILE *f = fopen("/proc/self/schedstat", "r");
    long long ran, waited = 0;

    if (f == NULL)
        return 0;
    if (fscanf(f, "%lld %lld", &ran, &waited) != 2)
        waited = 0;
    fclose(f);
    return waited;
}

/* --- reports --------------------------------------------------------------- */

static void say_fault(void)
{
    printf("@fault %lld\n", (long long)now_ns());
    fflush(stdout);
}

static void say_verdict(player *p, rdl_status status, int step, int64_t entered)
{
    int64_t ended = now_ns();

    printf("@verdict %d %d %d %lld %lld %lld %lld %s\n", (int)status, step,
           p->report.succeeded, (long long)p->report.passed, (long long)entered,
           (long long)ended, (long long)(starved_ns() - p->starved),
           rdl_error_detail());
    fflush(stdout);
}

static int say_wrong(const char *text)
{
    printf("@wrong %s\n", text);
    fflush(stdout);
    return FAULTS_WRONG;
}

/* --- calls ----------------------------------------------------------------- */

static bool takes_part(const player *p, int step)
{
    const faults_step *s = &p->program->step[step];
    int me = faults_place(&p->program->group[s->group], p->rank);

    return me >= 0 && (s->op != FAULTS_TRANSFER || me == s->root || me == s->to);
}

static bool is_wrong(const player *p, int step)
{
    return step == p->program->at && (p->program->faulty >> p->rank & 1) != 0;
}

/* The step as this rank calls it. */
static faults_step step_of(const player *p, int step)
{
    faults_step s = p->program->step[step];
    const faults_group *g = &p->program->group[s.group];
    int me = faults_place(g, p->rank);

    if (!is_wrong(p, step))
        return s;
    if (p->program->kind == FAULTS_COUNT_KIND)
        s.count++;
    if (p->program->kind == FAULTS_DTYPE_KIND)
        s.dtype = s.dtype == RDL_INT32 ? RDL_FLOAT64 : RDL_INT32;
    if (p->program->kind == FAULTS_ROOT_KIND)
        s.root = (s.root + 1) % g->size;
    if (p->program->kind == FAULTS_SPLITS_KIND)
        s.splits[me][(me + 1) % g->size]++;
    return s;
}

static rdl_status make_v_call(player *p, const faults_step *s,
                              const faults_buffers *b, const rdl_call *call)
{
    const faults_group *g = &p->program->group[s->group];
    int me = faults_place(g, p->rank);
    size_t from[FAULTS_RANKS_MOST];

    for (int m = 0; m < g->size; m++)
        from[m] = s->splits[m][me];
    return rdl_all_to_all_v(p->world, p->groups[s->group], b->input,
                            s->splits[me], b->output, from, s->dtype, call);
}

static rdl_status make_call(player *p, const faults_step *s,
                            const faults_buffers *b, const rdl_call *call)
{
    rdl_world *w = p->world;
    rdl_group g = p->groups[s->group];
    int me = faults_place(&p->program->group[s->group], p->rank);

    switch (s->op) {
    case FAULTS_ALL_REDUCE:
        return rdl_all_reduce(w, g, b->input, b->output, s->count, s->dtype,
                              RDL_SUM, call);
    case FAULTS_ALL_GATHER:
        return rdl_all_gather(w, g, b->input, b->output, s->count, s->dtype,
                              call);
    case FAULTS_REDUCE_SCATTER:
        return rdl_reduce_scatter(w, g, b->input, b->output, s->count, s->dtype,
                                  RDL_SUM, call);
    case FAULTS_ALL_TO_ALL:
        return rdl_all_to_all(w, g, b->input, b->output, s->count, s->dtype,
                              call);
    case FAULTS_ALL_TO_ALL_V:
        return make_v_call(p, s, b, call);
    case FAULTS_BROADCAST:
        return rdl_broadcast(w, g, b->output, s->count, s->dtype, s->root, call);
    case FAULTS_REDUCE:
        return rdl_reduce(w, g, b->input, b->output, s->count, s->dtype,
                          RDL_SUM, s->root, call);
    case FAULTS_GATHER:
        return rdl_gather(w, g, b->input, b->output, s->count, s->dtype,
                          s->root, call);
    case FAULTS_SCATTER:
        return rdl_scatter(w, g, b->input, b->output, s->count, s->dtype,
                           s->root, call);
    case FAULTS_TRANSFER:
        if (me == s->root)
            return rdl_send(w, g, b->input, s->count, s->dtype, s->to, call);
        return rdl_receive(w, g, b->output, s->count, s->dtype, s->root, call);
    case FAULTS_BARRIER:
    case FAULTS_OPS:
        break;
    }
    return rdl_barrier(w, g, call);
}

/* The one that is made at that place. */
static int step_at(const player *p, int place)
{
    const faults_program *m = p->program;

    if (p->rank != m->culprit || m->other == m->at)
        return place;
    return place == m->at ? m->other : place == m->other ? m->at : place;
}

static rdl_status issue(player *p, int step)
{
    turn *t = &p->turns[step];
    faults_step s = step_of(p, step);
    rdl_call call = { .stream =
                          t->mode == STREAMS_ON ? p->streams[t->stream] : NULL,
                      .work = t->mode == WORKS ? &t->work : NULL };

    return make_call(p, &s, &t->buffers, &call);
}

/* --- the fault ------------------------------------------------------------- */

/* Somebody must wake us, once it gets a byte: it is made before there are threads. More
 * than once, lest the first comes too early. */
static void make_waker(player *p)
{
    pid_t me = getpid();
    int ends[2];
    char byte;

    if (pipe(ends) != 0)
        return;
    p->waker = ends[1];
    if (fork() != 0) {
        close(ends[0]);
        return;
    }
    close(ends[1]);
    if (read(ends[0], &byte, 1) != 1)
        _exit(0);
    nap_ms(PAUSE_MS);
    for (int i = 0; i < 10 && kill(me, SIGCONT) == 0; i++)
        nap_ms(50);
    _exit(0);
}

static void pause_here(const player *p)
{
    if (write(p->waker, "", 1) == 1)
        kill(getpid(), SIGSTOP);
}

/* What may strike at any moment. */
static void strike(const player *p)
{
    say_fault();
    switch (p->program->kind) {
    case FAULTS_KILL_KIND:
        kill(getpid(), SIGKILL);
        break;
    case FAULTS_PAUSE_KIND:
        pause_here(p);
        break;
    case FAULTS_STOP_KIND:
        kill(getpid(), SIGSTOP);
        break;
    default:
        _exit(p->program->variant == 0 ? 0 : FAULTS_EXITED);
    }
}

static void *run_bomb(void *arg)
{
    const player *p = arg;

    nap_ns(p->program->delay);
    strike(p);
    return NULL;
}

static void arm(player *p)
{
    if (p->program->delay == 0) {
        strike(p);
        return;
    }
    p->has_bomb = pthread_create(&p->bomb, NULL, run_bomb, p) == 0;
    if (!p->has_bomb)
        strike(p);
}

/* An error of this rank alone, and what programs do then. Does not return. */
static void err(player *p)
{
    int root = p->program->ranks; /* there is none */
    rdl_status st =
        rdl_broadcast(p->world, RDL_WORLD, NULL, 0, RDL_INT32, root, NULL);

    if (st != RDL_INVALID)
        _exit(say_wrong("a wrong root was taken"));
    say_fault();
    if (p->program->variant == 1)
        rdl_world_abort(p->world, rdl_error_detail());
    if (p->program->variant <= 1)
        rdl_world_close(p->world);
    exit(FAULTS_ERROR);
}

/* Before the step; true: it is not to be made. */
static bool do_fault(player *p)
{
    switch (p->program->kind) {
    case FAULTS_KILL_KIND:
    case FAULTS_STOP_KIND:
    case FAULTS_PAUSE_KIND:
    case FAULTS_EXIT_KIND:
        arm(p);
        return false;
    case FAULTS_ERROR_KIND:
        err(p);
        return true;
    case FAULTS_SLOW_KIND:
        say_fault();
        nap_ms(PAUSE_MS);
        return false;
    case FAULTS_LATE_KIND:
        say_fault();
        nap_ms(LATE_MS);
        return false;
    case FAULTS_NEVER_KIND:
        say_fault();
        for (;;)
            nap_ms(FAULTS_LIMIT_MS);
    default:
        return false;
    }
}

/* --- steps ----------------------------------------------------------------- */

static int fail(player *p, rdl_status status, int step, int64_t entered)
{
    say_verdict(p, status, step, entered);
    return FAULTS_HEARD;
}

/* Its results are there. Returns 0 or the exit status. */
static int check(player *p, int step)
{
    char text[256];

    p->report.succeeded |= step == step_at(p, p->program->at);
    if (faults_check(p->program, step, p->rank, &p->turns[step].buffers, text,
                     sizeof text))
        return 0;
    return say_wrong(text);
}

static rdl_status await(player *p, const turn *t)
{
    /* A stream may have many calls before this one, each with its own limit. */
    return t->mode == WORKS ? rdl_work_wait(p->world, t->work, 0)
                            : rdl_stream_synchronize(p->streams[t->stream],
                                                     3 * FAULTS_LIMIT_MS);
}

/* What is to be waited for before that step. */
static int finish(player *p, int before)
{
    int code = 0;

    for (int i = 0; i < before && i < FAULTS_STEPS && code == 0; i++) {
        turn *t = &p->turns[i];
        int64_t entered = now_ns();
        rdl_status st;

        if (!t->waits || t->wait_at > before)
            continue;
        t->waits = false;
        st = await(p, t);
        code = st == RDL_OK ? check(p, i) : fail(p, st, i, entered);
    }
    return code;
}

static int make_step(player *p, int step)
{
    turn *t = &p->turns[step];
    int64_t entered = now_ns();
    rdl_status st = issue(p, step);

    if (st != RDL_OK)
        return fail(p, st, step, entered);
    t->waits = t->mode != BLOCKS;
    return t->waits ? 0 : check(p, step);
}

static void reach_fault(player *p)
{
    p->report.passed = now_ns();
    p->starved = starved_ns();
}

static int go_through(player *p)
{
    int code = 0;

    for (int i = 0; i < FAULTS_STEPS && code == 0; i++) {
        code = finish(p, i);
        if (code != 0)
            break;
        if (i == p->program->at) {
            reach_fault(p);
            if (p->rank == p->program->culprit && do_fault(p))
                continue;
        }
        if (takes_part(p, step_at(p, i)))
            code = make_step(p, step_at(p, i));
    }
    return code == 0 ? finish(p, FAULTS_STEPS) : code;
}

/* So that every rank depends on every other once more. */
static int meet(player *p)
{
    int64_t entered;
    rdl_status st;

    if (p->has_bomb)
        pthread_join(p->bomb, NULL);
    entered = now_ns();
    st = rdl_barrier(p->world, RDL_WORLD, NULL);
    return st == RDL_OK ? 0 : fail(p, st, FAULTS_STEPS, entered);
}

/* --- beginning and end ----------------------------------------------------- */

static mode draw_mode(uint64_t *state)
{
    static const mode modes[] = { BLOCKS, BLOCKS, WORKS, STREAMS_ON };

    return modes[faults_draw(state, 4)];
}

/* Those of a cycle block, and two that are swapped end in their order. */
static bool must_block(const faults_program *m, int step)
{
    return m->other != m->at && step >= m->at && step <= m->other;
}

static bool draw_turns(player *p)
{
    const faults_program *m = p->program;
    uint64_t state = m->seed + (uint64_t)p->rank;

    p->leaves = faults_draw(&state, 4) > 0;
    for (int i = 0; i < FAULTS_STEPS; i++) {
        turn *t = &p->turns[i];

        t->mode = must_block(m, i) ? BLOCKS : draw_mode(&state);
        t->stream = (int)faults_draw(&state, STREAMS);
        t->wait_at = i + 1 + (int)faults_draw(&state, 4);
        if (takes_part(p, i) && !faults_prepare(m, i, p->rank, &t->buffers))
            return false;
    }
    return true;
}

static rdl_status open_groups(player *p)
{
    const faults_program *m = p->program;
    rdl_status st = RDL_OK;

    for (int g = 0; g < m->groups && st == RDL_OK; g++)
        if (faults_place(&m->group[g], p->rank) >= 0)
            st = rdl_group_open(p->world, m->group[g].ranks, m->group[g].size,
                                m->group[g].name, &p->groups[g]);
    return st;
}

static rdl_status open_all(player *p)
{
    rdl_world_options options = { .timeout_ms = FAULTS_LIMIT_MS };
    rdl_status st = rdl_world_open(&options, &p->world);

    if (st != RDL_OK)
        return st;
    p->rank = rdl_world_rank(p->world);
    for (int s = 0; s < STREAMS && st == RDL_OK; s++)
        st = rdl_stream_create(p->world, s == 0 ? "first" : "second",
                               &p->streams[s]);
    if (st == RDL_OK)
        st = open_groups(p);
    /* A fault must not meet one that has yet to open its world. */
    return st == RDL_OK ? rdl_barrier(p->world, RDL_WORLD, NULL) : st;
}

static int close_all(player *p, int code)
{
    rdl_status st = RDL_OK;

    if (code != 0 && !p->leaves)
        _exit(code);
    for (int s = 0; s < STREAMS; s++)
        if (p->streams[s] != NULL)
            st = rdl_stream_destroy(p->streams[s]);
    if (st == RDL_OK || code != 0)
        st = rdl_world_close(p->world);
    if (st != RDL_OK && code == 0)
        return say_wrong(rdl_error_detail());
    for (int i = 0; i < FAULTS_STEPS; i++) {
        free(p->turns[i].buffers.input);
        free(p->turns[i].buffers.output);
    }
    if (code == 0)
        printf("@right\n");
    return code;
}

/* Before there is a world to ask. */
static bool is_culprit(const faults_program *program)
{
    const char *rank = getenv("RADDLE_RANK");

    return rank != NULL && atoi(rank) == program->culprit;
}

int faults_rank(const faults_program *program)
{
    player *p = calloc(1, sizeof *p);
    rdl_status st;
    int code;

    if (p == NULL)
        return say_wrong("no memory");
    p->program = program;
    if (program->kind == FAULTS_PAUSE_KIND && is_culprit(program))
        make_waker(p);
    st = open_all(p);
    if (st != RDL_OK || !draw_turns(p))
        return say_wrong(st != RDL_OK ? rdl_error_detail() : "no memory");
    code = go_through(p);
    code = close_all(p, code == 0 ? meet(p) : code);
    free(p);
    return code;
}
