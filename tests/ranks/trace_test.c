/* A trace sees each collective of its rank, with what tells them apart. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/worlds.h"

#include <raddle/trace.h>
#include <stdio.h>
#include <string.h>

/* What was seen, one event a line. */
typedef struct record {
    char text[1024];
    size_t used;
} record;

static void note(void *arg, const rdl_trace_event *e)
{
    record *r = arg;

    r->used += (size_t)snprintf(r->text + r->used, sizeof r->text - r->used,
                                "%s '%s' '%s' %s %s %zu %zu %s\n", e->group,
                                e->lane, e->caller, e->operation, e->dtype,
                                e->count, e->bytes, e->stream);
}

static void use_groups(rdl_world *world, void *arg)
{
    const int pair[] = { 0, 1 };
    const rdl_call call = { .caller = "a test" };
    int me = rdl_world_rank(world);
    record r = { .used = 0 };
    rdl_trace trace = { .see = note, .arg = &r };
    double in[3] = { 0 }, out[9];
    rdl_group group;

    (void)arg;
    CHECK_OK(rdl_group_open(world, pair, 2, "two", &group));
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL)); /* nobody looks yet */
    CHECK_OK(rdl_world_trace(world, &trace));
    CHECK_OK(rdl_all_gather(world, RDL_WORLD, in, out, 3, RDL_FLOAT64, &call));
    if (me < 2)
        CHECK_OK(rdl_all_reduce(world, group, in, in, 2, RDL_FLOAT64, RDL_SUM,
                                NULL));
    /* What is refused is not seen. */
    CHECK_STATUS(rdl_broadcast(world, RDL_WORLD, in, 1, RDL_FLOAT64, 7, NULL),
                 RDL_INVALID);
    CHECK_OK(rdl_world_trace(world, NULL));
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    CHECK_TEXT(r.text,
               me < 2 ? "[0,1,2] '' 'a test' all_gather float64 3 24 null\n"
                        "[0,1] 'two' '' all_reduce float64 2 16 null\n"
                      : "[0,1,2] '' 'a test' all_gather float64 3 24 null\n");
}

RDL_TEST(a_trace_sees_each_collective_of_its_rank)
{
    rdl_test_job job = { .size = 3 };

    rdl_test_worlds(&job, use_groups, NULL);
}

static void mark(void *arg, const rdl_trace_event *event)
{
    (void)event;
    *(bool *)arg = true;
}

static void leave_the_other(rdl_world *world, void *arg)
{
    bool seen = false;
    rdl_trace trace = { .see = mark, .arg = &seen };

    (void)arg;
    CHECK_OK(rdl_world_trace(world, &trace));
    if (rdl_world_rank(world) == 0) {
        CHECK_STATUS(rdl_barrier(world, RDL_WORLD, NULL), RDL_PEER);
        CHECK(seen);
    }
}

RDL_TEST(a_trace_sees_a_collective_that_never_ends)
{
    rdl_test_job job = { .size = 2, .keeps_failures = true };

    rdl_test_worlds(&job, leave_the_other, NULL);
}

RDL_TEST(a_trace_without_a_function_is_refused)
{
    const rdl_trace trace = { .see = NULL };
    rdl_world *world;

    CHECK_OK(rdl_world_open(NULL, &world));
    CHECK_STATUS(rdl_world_trace(world, &trace), RDL_INVALID);
    CHECK_STATUS(rdl_world_trace(NULL, &trace), RDL_INVALID);
    CHECK_OK(rdl_world_close(world));
}
