/* A rank whose peer has written anything in its slice: it makes a call on a group of
 * both, which ends at once, with a status and a sentence.
 *
 * Input: pieces (pieces.h); then the slots that the table names get the group's name,
 * so that the rank shows what else its peer has opened under it. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/hash.h"
#include "base/slice.h"
#include "base/slot.h"
#include "base/store.h"
#include "fuzz/pieces.h"

#include <pthread.h>
#include <raddle/collective.h>
#include <string.h>
#include <unistd.h>

#define NAME "fuzzed"

typedef struct stage {
    char job[32];
    rdl_world *world; /* of rank 0 */
    rdl_arena arena;  /* as rank 1 has it */
} stage;

static const char *no_environment(const char *name)
{
    (void)name;
    return NULL;
}

static void show_rank(const stage *s)
{
    rdl_slice *slice = rdl_arena_slice(&s->arena, 1);
    rdl_process self;

    MUST(rdl_process_self(&self) == RDL_OK);
    slice->pid = self.pid;
    slice->started = self.started;
    slice->pid_namespace = self.pid_namespace;
    slice->cpus = rdl_cpus_allowed();
    slice->check = RDL_CHECK_ON;
    atomic_store(&slice->state, RDL_SLICE_JOINED);
}

/* Rank 1: it has the arena, and no world. */
static void *join_by_hand(void *arg)
{
    stage *s = arg;
    rdl_world_options options = { .rank = 1, .size = 2, .job = s->job };
    rdl_place place;
    rdl_store store;
    int fd;

    MUST(rdl_place_read(&options, no_environment, &place) == RDL_OK);
    for (;;) {
        MUST(rdl_store_open(&store, &place, rdl_deadline_after_ms(20000),
                            &fd) == RDL_OK);
        if (store.listener < 0)
            break;
        rdl_store_close(&store); /* it came first, and shall not keep the job */
        close(fd);
        usleep(1000);
    }
    MUST(rdl_arena_map(&s->arena, fd) == RDL_OK);
    show_rank(s);
    return NULL;
}

static void make_stage(stage *s)
{
    rdl_world_options options = { .rank = 0,
                                  .size = 2,
                                  .job = s->job,
                                  .start_timeout_ms = 20000,
                                  .check = RDL_CHECK_ON };
    pthread_t thread;

    snprintf(s->job, sizeof s->job, "peer-%d", (int)getpid());
    MUST(pthread_create(&thread, NULL, join_by_hand, s) == 0);
    MUST(rdl_world_open(&options, &s->world) == RDL_OK);
    MUST(pthread_join(thread, NULL) == 0);
}

static void name_slots(rdl_slice *slice)
{
    uint64_t name = rdl_hash_bytes(5, NAME, strlen(NAME));

    for (uint32_t place = 0; place < 64; place++) {
        rdl_slot *slot = rdl_table_at(slice, place);

        if (slot != NULL)
            atomic_store(&slot->name, name);
    }
}

static void make_call(const stage *s)
{
    static const int list[] = { 0, 1 };
    int64_t x = 1, y = 0;
    rdl_group group;
    rdl_status st;

    MUST(rdl_group_open(s->world, list, 2, NAME, &group) == RDL_OK);
    st = rdl_all_reduce(s->world, group, &x, &y, 1, RDL_INT64, RDL_SUM,
                        &(rdl_call){ .timeout_ms = 1 });
    MUST(st <= RDL_BUG && st != RDL_AGAIN);
    if (st != RDL_OK)
        MUST(rdl_error_detail()[0] != 0);
    (void)rdl_group_close(s->world, group);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static stage s;
    rdl_slice *slice;

    if (s.world == NULL)
        make_stage(&s);
    slice = rdl_arena_slice(&s.arena, 1);
    write_pieces(slice, data, bytes);
    name_slots(slice);
    make_call(&s);
    wipe_slice(&s.arena, 1);
    show_rank(&s);
    return 0;
}
