/* Raddle's ranks. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "speed.h"

#include "base/cpus.h"
#include "rank.h"

#include <raddle/memory.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef struct home {
    rdl_world *world;
    rdl_group group;
    size_t counts[SPEED_RANKS_MOST]; /* of blocks, for calls that want a list */
} home;

static void *take(speed_rank *self, size_t bytes, int mapped)
{
    home *h = self->context;
    void *memory = NULL;

    if (mapped)
        return rdl_mem_alloc(h->world, bytes, &memory) == RDL_OK ? memory : NULL;
    memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void give(speed_rank *self, void *memory, size_t bytes, int mapped)
{
    home *h = self->context;

    if (!mapped)
        (void)munmap(memory, bytes);
    else if (rdl_mem_free(h->world, memory) != RDL_OK)
        fprintf(stderr, SPEED_WHO ": %s\n", rdl_error_detail());
}

static int meet(speed_rank *self)
{
    home *h = self->context;

    return rdl_barrier(h->world, RDL_WORLD, NULL) == RDL_OK;
}

static const size_t *blocks_of(home *h, int members, size_t count)
{
    for (int i = 0; i < members; i++)
        h->counts[i] = count;
    return h->counts;
}

static rdl_status exchange(const speed_rank *self, home *h, const speed_call *c,
                           size_t n)
{
    rdl_dtype d = (rdl_dtype)c->dtype;
    int next = (self->place + 1) % self->members;
    int last = (self->place + self->members - 1) % self->members;
    rdl_transfer both[] = {
        { .peer = next, .send = c->input, .count = n, .dtype = d },
        { .peer = last, .receive = c->output, .count = n, .dtype = d },
    };

    return rdl_exchange(h->world, h->group, both, 2, NULL);
}

/* The operations that take lists of counts, and those between two. */
static rdl_status call_rare(const speed_rank *self, home *h,
                            const speed_call *c, size_t n, size_t block)
{
    rdl_dtype d = (rdl_dtype)c->dtype;
    const size_t *blocks = blocks_of(h, self->members, block);

    switch (c->operation) {
    case SPEED_ALL_GATHER_V:
        return rdl_all_gather_v(h->world, h->group, c->input, c->output,
                                blocks_of(h, self->members, n), d, NULL);
    case SPEED_REDUCE_SCATTER_V:
        return rdl_reduce_scatter_v(h->world, h->group, c->input, c->output,
                                    blocks, d, RDL_SUM, NULL);
    case SPEED_ALL_TO_ALL_V:
        return rdl_all_to_all_v(h->world, h->group, c->input, blocks, c->output,
                                blocks, d, NULL);
    default:
        return exchange(self, h, c, n);
    }
}

static rdl_status call(const speed_rank *self, home *h, const speed_call *c)
{
    rdl_dtype d = (rdl_dtype)c->dtype;
    size_t n = c->bytes / rdl_dtype_bytes(d), block = n / (size_t)self->members;

    switch (c->operation) {
    case SPEED_BARRIER:
        return rdl_barrier(h->world, h->group, NULL);
    case SPEED_BROADCAST:
        return rdl_broadcast(h->world, h->group, c->input, n, d, c->root, NULL);
    case SPEED_ALL_REDUCE:
        return rdl_all_reduce(h->world, h->group, c->input, c->output, n, d,
                              RDL_SUM, NULL);
    case SPEED_ALL_GATHER:
        return rdl_all_gather(h->world, h->group, c->input, c->output, n, d,
                              NULL);
    case SPEED_REDUCE_SCATTER:
        return rdl_reduce_scatter(h->world, h->group, c->input, c->output,
                                  block, d, RDL_SUM, NULL);
    case SPEED_ALL_TO_ALL:
        return rdl_all_to_all(h->world, h->group, c->input, c->output, block, d,
                              NULL);
    case SPEED_REDUCE:
        return rdl_reduce(h->world, h->group, c->input, c->output, n, d,
                          RDL_SUM, c->root, NULL);
    case SPEED_GATHER:
        return rdl_gather(h->world, h->group, c->input, c->output, n, d,
                          c->root, NULL);
    case SPEED_SCATTER:
        return rdl_scatter(h->world, h->group, c->input, c->output, block, d,
                           c->root, NULL);
    default:
        return call_rare(self, h, c, n, block);
    }
}

static speed_outcome run(speed_rank *self, const speed_call *c, char text[256])
{
    if (call(self, self->context, c) == RDL_OK)
        return SPEED_DONE;
    snprintf(text, 256, "%.255s", rdl_error_detail());
    return SPEED_BROKEN;
}

/* Groups of neighbours, all of one size. */
static rdl_status open_group(speed_rank *self, home *h, int groups)
{
    int ranks[SPEED_RANKS_MOST], first;

    self->members = self->size / groups;
    self->place = self->rank % self->members;
    first = self->rank - self->place;
    h->group = RDL_WORLD;
    if (groups == 1)
        return RDL_OK;
    for (int i = 0; i < self->members; i++)
        ranks[i] = first + i;
    return rdl_group_open(h->world, ranks, self->members, NULL, &h->group);
}

static void stay_on(int nth)
{
    rdl_cpus allowed = rdl_cpus_allowed();
    int cpu = rdl_cpus_next(&allowed, 0), n = rdl_cpus_count(&allowed);
    cpu_set_t set;

    for (int i = 0; i < nth % n; i++)
        cpu = rdl_cpus_next(&allowed, cpu + 1);
    CPU_ZERO(&set);
    CPU_SET((unsigned)cpu, &set);
    (void)sched_setaffinity(0, sizeof set, &set);
}

int speed_be_a_rank(const char *socket, int groups, bool pinned)
{
    home h = { .world = NULL };
    speed_rank self = {
        .context = &h, .run = run, .meet = meet, .take = take, .give = give
    };
    int status = 1;

    if (rdl_world_open(NULL, &h.world) == RDL_OK) {
        self.rank = rdl_world_rank(h.world);
        self.size = rdl_world_size(h.world);
        /* After opening, which counts the cores that a rank may use. */
        if (pinned)
            stay_on(self.rank);
        if (open_group(&self, &h, groups) == RDL_OK)
            status = speed_serve(&self, socket);
    }
    if (status != 0)
        fprintf(stderr, SPEED_WHO ": %s\n", rdl_error_detail());
    if (h.world != NULL && rdl_world_close(h.world) != RDL_OK)
        status = 1;
    return status;
}
