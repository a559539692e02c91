/* Every plan of every small size, replayed on plain arrays. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/plan.h"

#include "support/replay.h"
#include "support/test.h"

static const size_t windows[] = { 0, 256, 512, 768, 1024, 4096, 32768 };

#define N_WINDOWS (sizeof windows / sizeof *windows)

static void replay(rdl_shape shape, size_t window, bool in_place, uint64_t seed)
{
    static rdl_replay_call call;
    const char *wrong;

    call.shape = shape;
    call.window = window;
    call.in_place = in_place;
    call.seed = seed;
    wrong = rdl_replay(&call);
    if (wrong != NULL)
        RDL_TEST_FAIL("%s of %zu bytes, %d members, root %d, window %zu%s, "
                      "seed %d: %s",
                      rdl_operation_name(shape.operation), shape.bytes,
                      shape.size, shape.root, window,
                      in_place ? ", in place" : "", (int)seed, wrong);
}

/* In all windows and orders. */
static void replay_all(rdl_shape shape)
{
    for (size_t w = 0; w < N_WINDOWS; w++)
        for (uint64_t seed = 0; seed < 3; seed++)
            replay(shape, windows[w], seed == 2,
                   seed + shape.bytes * (seed > 1));
}

static void replay_sizes(rdl_operation operation, size_t bytes)
{
    for (int size = 2; size <= 9; size++) {
        rdl_shape shape = { .operation = operation,
                            .size = size,
                            .bytes = bytes };

        replay_all(shape);
        shape.root = size - 1;
        if (operation == RDL_OP_BROADCAST)
            replay_all(shape);
    }
}

static void replay_small(rdl_operation operation)
{
    for (size_t bytes = 0; bytes <= 320; bytes += bytes < 66 ? 1 : 13)
        replay_sizes(operation, bytes);
    replay_sizes(operation, 320);
}

RDL_TEST(plans_of_barriers_and_broadcasts_do_what_they_say)
{
    replay_small(RDL_OP_BARRIER);
    replay_small(RDL_OP_BROADCAST);
}

RDL_TEST(plans_of_all_reduces_do_what_they_say)
{
    replay_small(RDL_OP_ALL_REDUCE);
}

RDL_TEST(plans_of_all_gathers_do_what_they_say)
{
    replay_small(RDL_OP_ALL_GATHER);
}

RDL_TEST(plans_of_reduce_scatters_do_what_they_say)
{
    replay_small(RDL_OP_REDUCE_SCATTER);
}

RDL_TEST(plans_of_all_to_alls_do_what_they_say)
{
    replay_small(RDL_OP_ALL_TO_ALL);
}

/* Many rounds, and both phases of large all_reduces. */
RDL_TEST(plans_of_large_calls_do_what_they_say)
{
    static const size_t bytes[] = { 1000, 4096, 8200, 16448, 65544, 70001 };

    for (int o = RDL_OP_BROADCAST; o <= RDL_OP_ALL_TO_ALL; o++)
        for (size_t b = 0; b < sizeof bytes / sizeof *bytes; b++)
            for (int size = 2; size <= 5; size++) {
                rdl_shape shape = { .operation = (rdl_operation)o,
                                    .size = size,
                                    .bytes = bytes[b] };

                replay(shape, windows[1 + (b + (size_t)size) % (N_WINDOWS - 1)],
                       b % 2, b + 2);
                replay(shape, 32768, b % 2 == 0, b % 3);
            }
}

RDL_TEST(a_window_as_wished_takes_one_round)
{
    for (int o = RDL_OP_BROADCAST; o <= RDL_OP_ALL_TO_ALL; o++)
        for (int size = 2; size <= 9; size++)
            for (size_t bytes = 1; bytes < 200000; bytes += 1 + bytes / 3) {
                rdl_shape shape = { .operation = (rdl_operation)o,
                                    .size = size,
                                    .bytes = bytes };
                rdl_plan plan = rdl_plan_make(&shape, rdl_plan_wish(&shape));

                if (!rdl_plan_fits_line(&shape))
                    CHECK_INT(plan.rounds, 1);
            }
}

/* All members take the same number of steps of each kind, so that their phases
 * pair. */
RDL_TEST(members_publish_and_await_at_the_same_steps)
{
    for (int o = RDL_OP_BARRIER; o <= RDL_OP_ALL_TO_ALL; o++)
        for (size_t w = 0; w < N_WINDOWS; w++)
            for (size_t bytes = 0; bytes < 3000; bytes += 311) {
                rdl_shape shape = { .operation = (rdl_operation)o,
                                    .size = 4,
                                    .bytes = bytes };
                rdl_plan first = rdl_plan_make(&shape, windows[w]), other;

                shape.me = 3;
                other = rdl_plan_make(&shape, windows[w]);
                CHECK_INT(rdl_plan_steps(&other), rdl_plan_steps(&first));
                for (uint64_t i = 0; i < rdl_plan_steps(&first); i++)
                    CHECK_INT(rdl_plan_step(&other, i).kind,
                              rdl_plan_step(&first, i).kind);
            }
}

/* Sizes no array here can hold: no step leaves the buffers. */
RDL_TEST(plans_of_huge_calls_stay_inside)
{
    uint64_t seed = rdl_test_seed();

    for (int round = 0; round < 2000; round++) {
        rdl_replay_call call = {
            .shape = { .operation =
                           (rdl_operation)(1 + rdl_test_random(&seed) % 5),
                       .size = 2 + (int)(rdl_test_random(&seed) % 8),
                       .bytes = rdl_test_random(&seed) >> 8 },
            .window = windows[1 + rdl_test_random(&seed) % (N_WINDOWS - 1)],
        };
        rdl_shape shape = call.shape;
        rdl_plan plan;

        shape.me = (int)(rdl_test_random(&seed) % (uint64_t)shape.size);
        rdl_replay_measure(&call);
        plan = rdl_plan_make(&shape, call.window);
        call.members[shape.me].plan = plan;
        for (int i = 0; i < 50; i++) {
            uint64_t n = rdl_plan_steps(&plan);
            uint64_t at =
                i % 2 ? n - 1 - (uint64_t)i : rdl_test_random(&seed) % n;
            rdl_step step = rdl_plan_step(&plan, at);
            const char *wrong = rdl_replay_check(&call, shape.me, &step);

            if (step.bytes > 0 && wrong != NULL)
                RDL_TEST_FAIL("%s of %zu bytes: step %llu: %s",
                              rdl_operation_name(shape.operation), shape.bytes,
                              (unsigned long long)at, wrong);
        }
    }
}
