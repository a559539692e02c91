/* Every plan of every small size, replayed on plain arrays. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/plan.h"

#include "support/replay.h"
#include "support/test.h"

static const size_t windows[] = { 0, 256, 512, 768, 1024, 4096, 32768 };

#define N_WINDOWS (sizeof windows / sizeof *windows)

static rdl_replay_call call;

static void replay_call(size_t window, bool in_place, uint64_t seed)
{
    const rdl_shape *s = &call.shape;
    const char *wrong;

    call.window = window;
    call.in_place = in_place;
    call.seed = seed;
    wrong = rdl_replay(&call);
    if (wrong != NULL)
        RDL_TEST_FAIL("%s of %zu bytes, %d members, root %d, window %zu%s, "
                      "seed %d: %s",
                      rdl_operation_name(s->operation), s->bytes, s->size,
                      s->root, window, in_place ? ", in place" : "", (int)seed,
                      wrong);
}

static void replay(rdl_shape shape, size_t window, bool in_place, uint64_t seed)
{
    call.shape = shape;
    replay_call(window, in_place, seed);
}

/* In all windows, each in one of several orders. */
static void replay_all(rdl_shape shape)
{
    if (rdl_plan_may_map(&shape))
        for (uint64_t seed = 0; seed < 5; seed++)
            replay(shape, RDL_PLAN_MAPPED, seed % 2, seed);
    for (size_t w = 0; w < N_WINDOWS; w++) {
        uint64_t seed = (shape.bytes + (size_t)shape.size + w) % 4;

        replay(shape, windows[w], seed == 2, seed < 2 ? seed : shape.bytes + 2);
    }
}

static bool has_root(rdl_operation operation)
{
    return operation == RDL_OP_BROADCAST || operation == RDL_OP_REDUCE ||
           operation == RDL_OP_GATHER || operation == RDL_OP_SCATTER ||
           operation == RDL_OP_SEND_RECV;
}

static void replay_sizes(rdl_operation operation, size_t bytes)
{
    for (int size = 2; size <= 9; size++) {
        rdl_shape shape = { .operation = operation,
                            .size = size,
                            .bytes = bytes };

        replay_all(shape);
        shape.root = size - 1;
        if (has_root(operation))
            replay_all(shape);
        if (operation == RDL_OP_SEND_RECV)
            return; /* of two members */
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

RDL_TEST(plans_of_reduces_to_a_root_do_what_they_say)
{
    replay_small(RDL_OP_REDUCE);
}

RDL_TEST(plans_of_gathers_and_scatters_do_what_they_say)
{
    replay_small(RDL_OP_GATHER);
    replay_small(RDL_OP_SCATTER);
}

RDL_TEST(plans_of_transfers_do_what_they_say)
{
    replay_small(RDL_OP_SEND_RECV);
}

/* Blocks of random sizes, of which many are empty. */
static void replay_uneven(rdl_operation operation)
{
    uint64_t seed = rdl_test_seed();
    int rounds = rdl_test_soak() ? 20000 : 250;

    for (int round = 0; round < rounds; round++) {
        static const size_t most[] = { 1, 2, 9, 50, 700, 5000 };
        size_t limit = most[rdl_test_random(&seed) % 6];
        size_t element = round % 2 ? 8 : 1;

        call.shape =
            (rdl_shape){ .operation = operation, .size = 2 + round % 8 };
        for (int i = 0; i < call.shape.size; i++)
            for (int j = 0; j < call.shape.size; j++)
                call.blocks[i][j] =
                    rdl_test_random(&seed) % 4 == 0
                        ? 0
                        : element * (rdl_test_random(&seed) % limit);
        replay_call(windows[rdl_test_random(&seed) % N_WINDOWS], round % 3 == 0,
                    (uint64_t)round % 5);
        replay_call(RDL_PLAN_MAPPED, round % 2 == 0, (uint64_t)round % 5);
    }
}

RDL_TEST(plans_of_uneven_calls_do_what_they_say)
{
    replay_uneven(RDL_OP_ALL_GATHER_V);
    replay_uneven(RDL_OP_REDUCE_SCATTER_V);
    replay_uneven(RDL_OP_ALL_TO_ALL_V);
}

/* Many rounds, and both phases of large all_reduces. */
RDL_TEST(plans_of_large_calls_do_what_they_say)
{
    static const size_t bytes[] = { 1000, 4096, 8200, 16448, 65544, 70001 };

    for (int o = RDL_OP_BROADCAST; o <= RDL_OP_SCATTER; o++)
        for (size_t b = 0; b < sizeof bytes / sizeof *bytes; b++)
            for (int size = 2; size <= 5; size++) {
                rdl_shape shape = { .operation = (rdl_operation)o,
                                    .size = size,
                                    .root = (int)b % size,
                                    .bytes = bytes[b] };

                if (!has_root(shape.operation))
                    shape.root = 0;
                replay(shape, windows[1 + (b + (size_t)size) % (N_WINDOWS - 1)],
                       b % 2, b + 2);
                replay(shape, 32768, b % 2 == 0, b % 3);
                for (uint64_t seed = 0; seed < 6 && rdl_plan_may_map(&shape);
                     seed++)
                    replay(shape, RDL_PLAN_MAPPED, seed % 2, seed);
            }
}

RDL_TEST(a_window_as_wished_takes_one_round)
{
    for (int o = RDL_OP_BROADCAST; o <= RDL_OP_SCATTER; o++)
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
    for (int o = RDL_OP_BARRIER; o <= RDL_OP_SCATTER; o++)
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
        rdl_shape *s = &call.shape;
        rdl_plan *plan;

        *s = (rdl_shape){ .operation =
                              (rdl_operation)(1 + rdl_test_random(&seed) %
                                                      RDL_OP_SCATTER),
                          .size = 2 + (int)(rdl_test_random(&seed) % 8),
                          .bytes = rdl_test_random(&seed) >> 8 };
        s->me = (int)(rdl_test_random(&seed) % (uint64_t)s->size);
        call.window = windows[1 + rdl_test_random(&seed) % (N_WINDOWS - 1)];
        rdl_replay_measure(&call, s->me);
        plan = &call.members[s->me].plan;
        *plan = rdl_plan_make(s, call.window);
        for (int i = 0; i < 50; i++) {
            uint64_t n = rdl_plan_steps(plan);
            uint64_t at =
                i % 2 ? n - 1 - (uint64_t)i : rdl_test_random(&seed) % n;
            rdl_step step = rdl_plan_step(plan, at);
            const char *wrong = rdl_replay_check(&call, s->me, &step);

            if (step.bytes > 0 && wrong != NULL)
                RDL_TEST_FAIL("%s of %zu bytes: step %llu: %s",
                              rdl_operation_name(s->operation), s->bytes,
                              (unsigned long long)at, wrong);
        }
    }
}
