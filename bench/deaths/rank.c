/* The program of a rank: small and large collectives on two groups, in an order
 * that luck has made and that is equal on all ranks, until one fails. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "deaths.h"

#include <fcntl.h>
#include <raddle/collective.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define GROUPS 2
#define SMALL ((size_t)1)
#define LARGE ((size_t)1 << 17) /* elements: a MiB, many leases of staging */
#define LIMIT_MS 20000

typedef struct member {
    deaths_board *board;
    deaths_report *report;
    rdl_world *world;
    rdl_group groups[GROUPS];
    int64_t *input;
    int64_t *output;
    int rank;
    int size;
} member;

uint64_t deaths_draw(uint64_t *state, uint64_t below)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (x ^ x >> 31) % below;
}

/* Every rank depends on every other in each of these: so all fail at one. */
static rdl_status make_call(const member *m, rdl_group group, unsigned kind,
                            size_t count)
{
    const rdl_call *call = &(rdl_call){ .timeout_ms = LIMIT_MS };
    size_t part = count / (size_t)m->size + 1;

    switch (kind) {
    case 0:
        return rdl_barrier(m->world, group, call);
    case 1:
        return rdl_all_gather(m->world, group, m->input, m->output, part,
                              RDL_INT64, call);
    case 2:
        return rdl_reduce_scatter(m->world, group, m->input, m->output, part,
                                  RDL_INT64, RDL_SUM, call);
    case 3:
        return rdl_all_to_all(m->world, group, m->input, m->output, part,
                              RDL_INT64, call);
    default:
        return rdl_all_reduce(m->world, group, m->input, m->output, count,
                              RDL_INT64, RDL_SUM, call);
    }
}

static rdl_status make_odd_call(const member *m, rdl_group group)
{
    bool odd = m->rank == m->board->odd_rank;

    return make_call(m, group, 4, odd ? 2 * SMALL : SMALL);
}

/* Half of the calls are small. Notes what the rank is about to do first. */
static rdl_status make_next_call(const member *m, uint64_t *luck, int call)
{
    int group = (int)deaths_draw(luck, GROUPS);
    unsigned kind = (unsigned)deaths_draw(luck, 5);
    size_t count = deaths_draw(luck, 2) == 0 ? SMALL : LARGE;

    m->report->call = call;
    m->report->group = group;
    m->report->entered = rdl_now();
    if (call == m->board->odd_call)
        return make_odd_call(m, m->groups[group]);
    return make_call(m, m->groups[group], kind, count);
}

static rdl_status open_all(member *m)
{
    int all[DEATHS_RANKS_MOST];
    rdl_status st = rdl_world_open(NULL, &m->world);

    if (st != RDL_OK)
        return st;
    m->rank = rdl_world_rank(m->world);
    m->size = rdl_world_size(m->world);
    m->report = &m->board->reports[m->rank];
    for (int rank = 0; rank < m->size; rank++)
        all[rank] = rank;
    m->groups[0] = RDL_WORLD;
    return rdl_group_open(m->world, all, m->size, "second", &m->groups[1]);
}

static void run_calls(member *m)
{
    uint64_t luck = m->board->seed;
    deaths_report *r = m->report;
    rdl_status st = RDL_OK;

    atomic_store(&r->pid, (int)getpid());
    for (int call = 0; st == RDL_OK; call++) {
        st = make_next_call(m, &luck, call);
        atomic_store(&r->calls, call + 1);
    }
    r->failed = rdl_now();
    r->status = st;
    snprintf(r->sentence, sizeof r->sentence, "%s", rdl_error_detail());
    atomic_store(&r->ended, true);
}

static deaths_board *map_board(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    void *board = MAP_FAILED;

    if (fd >= 0)
        board = mmap(NULL, sizeof(deaths_board), PROT_READ | PROT_WRITE,
                     MAP_SHARED, fd, 0);
    return board == MAP_FAILED ? NULL : board;
}

void deaths_rank(const char *path)
{
    size_t bytes = (LARGE + DEATHS_RANKS_MOST) * sizeof(int64_t);
    member m = { .board = map_board(path),
                 .input = calloc(1, bytes),
                 .output = calloc(1, bytes) };

    if (m.board == NULL || m.input == NULL || m.output == NULL ||
        open_all(&m) != RDL_OK)
        _exit(2);
    /* The launcher ends who is left; what it saw is told before that. */
    signal(SIGTERM, SIG_IGN);
    run_calls(&m);
    /* As a program does that was told of a failure: without closing its world. */
    _exit(1);
}
