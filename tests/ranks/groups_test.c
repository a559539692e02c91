/* Groups: who meets whom (cases H15-H18). */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/worlds.h"

#include <raddle/account.h>
#include <raddle/work.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void both(int size, rdl_world_body body, void *arg)
{
    rdl_test_job job = { .size = size };

    rdl_test_worlds(&job, body, arg);
    job.processes = true;
    rdl_test_worlds(&job, body, arg);
}

static void sum_over_the_world(rdl_world *world, void *arg)
{
    static const int64_t expected[] = { 0, 1, 11, 111, 1111, 11111 };

    (void)arg;
    rdl_check_digits(world, RDL_WORLD, expected[rdl_world_size(world)]);
}

RDL_TEST(the_world_adds_every_rank_once)
{
    for (int size = 1; size <= 5; size++)
        both(size, sum_over_the_world, NULL);
}

/* H15: each rank names its own group, in one call. */
static void open_own_pair(rdl_world *world, void *arg)
{
    static const int outer[] = { 0, 3 }, inner[] = { 1, 2 };
    int rank = rdl_world_rank(world);
    bool is_outer = rank == 0 || rank == 3;
    unsigned seed = 17u * (unsigned)rank + 1;

    (void)arg;
    for (int round = 0; round < 100; round++) {
        rdl_group group;

        usleep((unsigned)rand_r(&seed) % 2000);
        CHECK_OK(
            rdl_group_open(world, is_outer ? outer : inner, 2, NULL, &group));
        CHECK_OK(rdl_barrier(world, group, NULL));
        rdl_check_digits(world, group, is_outer ? 1001 : 110);
        CHECK_OK(rdl_group_close(world, group));
    }
}

RDL_TEST(ranks_that_name_different_lists_do_not_meet)
{
    both(4, open_own_pair, NULL);
}

/* H16 */
static void use_group_of_one(rdl_world *world, void *arg)
{
    static const int zero[] = { 0 };
    int64_t in[] = { 5, 6, 7 }, out[3];
    rdl_group group;

    (void)arg;
    CHECK_OK(rdl_group_open(world, zero, 1, NULL, &group));
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    if (rdl_world_rank(world) == 0) {
        for (int reduction = RDL_SUM; reduction <= RDL_AVG; reduction++) {
            memset(out, 7, sizeof out);
            CHECK_OK(rdl_all_reduce(world, group, in, out, 3, RDL_INT64,
                                    (rdl_reduction)reduction, NULL));
            CHECK(memcmp(in, out, sizeof in) == 0);
            memset(out, 7, sizeof out);
            CHECK_OK(rdl_reduce_scatter(world, group, in, out, 3, RDL_INT64,
                                        (rdl_reduction)reduction, NULL));
            CHECK(memcmp(in, out, sizeof in) == 0);
        }
        memset(out, 7, sizeof out);
        CHECK_OK(rdl_all_gather(world, group, in, out, 3, RDL_INT64, NULL));
        CHECK(memcmp(in, out, sizeof in) == 0);
        memset(out, 7, sizeof out);
        CHECK_OK(rdl_all_to_all(world, group, in, out, 3, RDL_INT64, NULL));
        CHECK(memcmp(in, out, sizeof in) == 0);
        CHECK_OK(rdl_broadcast(world, group, in, 3, RDL_INT64, 0, NULL));
        CHECK_OK(rdl_barrier(world, group, NULL));
    } else {
        CHECK_STATUS(rdl_barrier(world, group, NULL), RDL_INVALID);
        CHECK_HAS(rdl_error_detail(), "rank 1 is not in group [0]");
    }
    rdl_check_digits(world, RDL_WORLD, 11);
    CHECK_OK(rdl_group_close(world, group));
}

RDL_TEST(a_group_of_one_copies_and_holds_nobody_up)
{
    both(2, use_group_of_one, NULL);
}

/* H17 */
static void use_group_and_world_ranks(rdl_world *world, void *arg)
{
    static const int list[] = { 1, 3 }, unsorted[] = { 3, 1 };
    int rank = rdl_world_rank(world), place;
    int64_t value = rdl_digit(rank);
    bool member = rank == 1 || rank == 3;
    rdl_group group, turned;

    (void)arg;
    CHECK_OK(rdl_group_open(world, list, 2, NULL, &group));
    CHECK_OK(rdl_group_open(world, unsorted, 2, NULL, &turned));
    if (!member) { /* (a) */
        CHECK_STATUS(rdl_broadcast(world, group, &value, 1, RDL_INT64, 0, NULL),
                     RDL_INVALID);
        CHECK_HAS(rdl_error_detail(), "is not in group [1,3]");
        CHECK_INT(value, rdl_digit(rank));
    } else {
        CHECK_OK(rdl_broadcast(world, group, &value, 1, RDL_INT64, 0, NULL));
        CHECK_INT(value, 10); /* (b) group root 0 is rank 1 */
        value = rdl_digit(rank);
        CHECK_OK(rdl_group_rank_of(world, group, 3, &place));
        CHECK_OK(rdl_broadcast(world, group, &value, 1, RDL_INT64, place, NULL));
        CHECK_INT(value, 1000); /* (c) world rank 3 */
        CHECK_STATUS(rdl_group_rank_of(world, group, 0, &place), RDL_INVALID);
        CHECK_HAS(rdl_error_detail(), "rank 0 is not in group [1,3]"); /* (d) */
        value = rdl_digit(rank);
        CHECK_OK(rdl_broadcast(world, turned, &value, 1, RDL_INT64, 0, NULL));
        CHECK_INT(value, 1000); /* (f) the list's order is kept */
        CHECK_OK(rdl_group_rank(world, turned, &place));
        CHECK_INT(place, rank == 3 ? 0 : 1);
        CHECK_STATUS(rdl_broadcast(world, group, &value, 1, RDL_INT64, 3, NULL),
                     RDL_INVALID);
        CHECK_HAS(rdl_error_detail(), "root 3 is outside the group ranks 0..1");
    }
    CHECK_OK(rdl_group_close(world, group));
    CHECK_OK(rdl_group_close(world, turned));
    rdl_check_digits(world, RDL_WORLD, 1111);
}

RDL_TEST(roots_are_group_ranks_and_the_list_keeps_its_order)
{
    both(4, use_group_and_world_ranks, NULL);
}

/* H18, the groups of it: a second life knows nothing of the first. */
static void live_ten_times(int rank, int size, void *arg)
{
    rdl_group old = { 0, 0, 0 };

    for (int life = 0; life < 10; life++) {
        rdl_world_options options = { .rank = rank, .size = size, .job = arg };
        const int tp[] = { rank / 2 * 2, rank / 2 * 2 + 1 };
        const int dp[] = { rank % 2, rank % 2 + 2 };
        rdl_group tp_group, dp_group;
        rdl_world *world;

        CHECK_OK(rdl_world_open(&options, &world));
        CHECK_OK(rdl_group_open(world, tp, 2, "tp", &tp_group));
        CHECK_OK(rdl_group_open(world, dp, 2, "dp", &dp_group));
        rdl_check_digits(world, tp_group, rank < 2 ? 11 : 1100);
        rdl_check_digits(world, dp_group, rank % 2 ? 1010 : 101);
        if (life > 0) {
            CHECK_STATUS(rdl_barrier(world, old, NULL), RDL_INVALID);
            CHECK_HAS(rdl_error_detail(), "destroyed");
        }
        old = tp_group;
        CHECK_OK(rdl_world_close(world));
    }
}

RDL_TEST(a_second_life_works_and_refuses_handles_of_the_first)
{
    char job[64];

    snprintf(job, sizeof job, "lives-%d", (int)getpid());
    rdl_test_threads(4, live_ten_times, job);
    rdl_test_processes(4, live_ten_times, job);
}

static void use_two_names(rdl_world *world, void *arg)
{
    static const int list[] = { 0, 1, 2 };
    rdl_group plain, again, other;
    rdl_account account;

    (void)arg;
    if (rdl_world_rank(world) == 3)
        return;
    CHECK_OK(rdl_group_open(world, list, 3, NULL, &plain));
    CHECK_OK(rdl_group_open(world, list, 3, "", &again));
    CHECK_INT(plain.index, again.index);
    CHECK_OK(rdl_group_open(world, list, 3, "other", &other));
    CHECK(other.index != plain.index);
    rdl_check_digits(world, plain, 111);
    rdl_check_digits(world, other, 111);
    CHECK_OK(rdl_account_read(world, &account));
    CHECK_INT(account.communicators, 2); /* and the world */
    CHECK_OK(rdl_group_close(world, plain));
    rdl_check_digits(world, again, 111); /* still open once */
    CHECK_OK(rdl_group_close(world, again));
    CHECK_STATUS(rdl_barrier(world, again, NULL), RDL_INVALID);
    CHECK_STATUS(rdl_group_close(world, again), RDL_INVALID);
    CHECK_OK(rdl_group_close(world, other));
}

RDL_TEST(a_list_and_a_name_are_a_lane_and_a_list_is_a_communicator)
{
    both(4, use_two_names, NULL);
}

static void open_the_world_by_its_list(rdl_world *world, void *arg)
{
    static const int list[] = { 0, 1, 2 };
    rdl_group group;

    (void)arg;
    CHECK_OK(rdl_group_open(world, list, 3, NULL, &group));
    CHECK_INT(group.index, RDL_WORLD.index);
    rdl_check_digits(world, group, 111);
    CHECK_OK(rdl_group_close(world, group));
    CHECK_STATUS(rdl_group_close(world, group), RDL_INVALID);
    CHECK_OK(rdl_group_close(world, RDL_WORLD)); /* left as it is */
    rdl_check_digits(world, RDL_WORLD, 111);
}

RDL_TEST(the_list_of_all_ranks_is_the_world)
{
    both(3, open_the_world_by_its_list, NULL);
}

/* More lists than slots: dormant ones are taken back, each rank at a time of its
 * own, and no sum is ever wrong. */
static void use_more_groups_than_slots(rdl_world *world, void *arg)
{
    int rank = rdl_world_rank(world), size = rdl_world_size(world);
    int rounds = *(int *)arg;
    unsigned common = 5; /* all ranks draw the same lists */

    for (int round = 0; round < rounds; round++) {
        int mask = 1 + (int)((unsigned)rand_r(&common) % ((1u << size) - 1));
        int list[8], n = 0;
        int64_t expected = 0;
        char name[16];
        rdl_group group;

        for (int r = 0; r < size; r++)
            if (mask >> r & 1) {
                list[n++] = r;
                expected += rdl_digit(r);
            }
        snprintf(name, sizeof name, "%d", (int)((unsigned)rand_r(&common) % 3));
        if (!(mask >> rank & 1))
            continue;
        CHECK_OK(rdl_group_open(world, list, n, name, &group));
        rdl_check_digits(world, group, expected);
        CHECK_OK(rdl_group_close(world, group));
    }
}

RDL_TEST(slots_of_closed_groups_are_reused_and_sequences_go_on)
{
    int rounds = getenv("RADDLE_SOAK") ? 200000 : 3000;
    rdl_test_job job = { .size = 5, .groups = 12 };

    rdl_test_worlds(&job, use_more_groups_than_slots, &rounds);
    job.processes = true;
    rdl_test_worlds(&job, use_more_groups_than_slots, &rounds);
}

static void open_too_many(rdl_world *world, void *arg)
{
    static const int list[] = { 0, 1 };
    rdl_group groups[5];

    (void)arg;
    for (int i = 0; i < 5; i++) {
        char name[16];
        rdl_status st;

        snprintf(name, sizeof name, "g%d", i);
        CHECK_OK(rdl_group_open(world, list, 2, name, &groups[i]));
        st = rdl_barrier(world, groups[i], NULL);
        if (i < 4) {
            CHECK_STATUS(st, RDL_OK);
        } else {
            CHECK_STATUS(st, RDL_NO_MEMORY);
            CHECK_HAS(rdl_error_detail(), "4 groups in use");
            CHECK_HAS(rdl_error_detail(), "rdl_host_options.groups");
        }
    }
    CHECK_OK(rdl_group_close(world, groups[0]));
    CHECK_OK(rdl_barrier(world, groups[4], NULL));
}

RDL_TEST(too_many_groups_at_once_is_an_error_that_closing_cures)
{
    rdl_test_job job = { .size = 2, .groups = 4 };

    rdl_test_worlds(&job, open_too_many, NULL);
}

/* With one slot each rank waits, again and again, until the others have passed what it
 * has closed. */
RDL_TEST(a_slot_that_others_have_yet_to_pass_is_waited_for)
{
    int rounds = getenv("RADDLE_SOAK") ? 100000 : 1500;
    rdl_test_job job = { .size = 4, .groups = 1 };

    rdl_test_worlds(&job, use_more_groups_than_slots, &rounds);
    job.processes = true;
    rdl_test_worlds(&job, use_more_groups_than_slots, &rounds);
}

/* Rank 1 has published its part of a barrier, and stops before it has passed it. */
typedef struct stopped {
    atomic_int pid;
    atomic_bool goes_on;
} stopped;

static void stop_inside(rdl_world *world, rdl_group first, stopped *s)
{
    rdl_work work;

    CHECK_OK(rdl_barrier(world, first, &(rdl_call){ .work = &work }));
    atomic_store(&s->pid, (int)getpid());
    while (!atomic_load(&s->goes_on))
        usleep(1000);
    CHECK_OK(rdl_work_wait(world, work, 0));
}

/* The signal has been sent; the process may still run a little. */
static void wait_until_stopped(int pid)
{
    char path[64], state = 0;

    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    while (state != 'T') {
        FILE *stat = fopen(path, "r");

        CHECK(stat != NULL);
        CHECK_INT(fscanf(stat, "%*d (%*[^)]) %c", &state), 1);
        fclose(stat);
        usleep(1000);
    }
}

static void pass_while_it_is_stopped(rdl_world *world, rdl_group first,
                                     stopped *s)
{
    while (atomic_load(&s->pid) == 0)
        usleep(1000);
    CHECK_INT(kill(atomic_load(&s->pid), SIGSTOP), 0);
    wait_until_stopped(atomic_load(&s->pid));
    CHECK_OK(rdl_barrier(world, first, NULL));
}

static void wait_for_the_slot(rdl_world *world, void *arg)
{
    static const int list[] = { 0, 1 };
    stopped *s = arg;
    rdl_group first, second;
    bool stops = rdl_world_rank(world) == 1;

    CHECK_OK(rdl_group_open(world, list, 2, "first", &first));
    if (stops)
        stop_inside(world, first, s);
    else
        pass_while_it_is_stopped(world, first, s);
    CHECK_OK(rdl_group_close(world, first));
    CHECK_OK(rdl_group_open(world, list, 2, "second", &second));
    if (!stops) {
        CHECK_STATUS(rdl_barrier(world, second, &(rdl_call){ .timeout_ms = 300 }),
                     RDL_NO_MEMORY);
        CHECK_HAS(rdl_error_detail(), "1 groups in use");
        CHECK_HAS(rdl_error_detail(),
                  "other members are still in the last call");
        atomic_store(&s->goes_on, true);
        CHECK_INT(kill(atomic_load(&s->pid), SIGCONT), 0);
    }
    rdl_check_digits(world, second, 11);
    CHECK_OK(rdl_group_close(world, second));
}

RDL_TEST(a_slot_that_does_not_come_back_is_an_error_at_the_limit)
{
    rdl_test_job job = { .size = 2, .groups = 1, .processes = true };
    stopped *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    CHECK(s != MAP_FAILED);
    rdl_test_worlds(&job, wait_for_the_slot, s);
}

static void open_badly(rdl_world *world, void *arg)
{
    static const int twice[] = { 0, 1, 0 }, outside[] = { 0, 2 }, ok[] = { 0 };
    rdl_group group = { 9, 9, 9 };

    (void)arg;
    CHECK_STATUS(rdl_group_open(world, twice, 3, NULL, &group), RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "rank 0 stands twice");
    CHECK_STATUS(rdl_group_open(world, outside, 2, NULL, &group), RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "rank 2, at place 1 of 2, is outside 0..1");
    CHECK_STATUS(rdl_group_open(world, ok, 0, NULL, &group), RDL_INVALID);
    CHECK_STATUS(rdl_group_open(world, NULL, 1, NULL, &group), RDL_INVALID);
    CHECK_STATUS(rdl_group_open(world, ok, 1, NULL, NULL), RDL_INVALID);
    CHECK_STATUS(rdl_group_open(NULL, ok, 1, NULL, &group), RDL_INVALID);
    CHECK_STATUS(rdl_group_open(world, ok, 1,
                                "a name of sixty-four bytes, which is one more "
                                "than there is room f",
                                &group),
                 RDL_INVALID);
    CHECK_INT(group.index, 9);
    CHECK_STATUS(rdl_barrier(world, group, NULL), RDL_INVALID);
    rdl_check_digits(world, RDL_WORLD, 11);
}

RDL_TEST(wrong_lists_and_foreign_handles_are_refused)
{
    both(2, open_badly, NULL);
}

static void abort_then_close(int rank, int size, void *arg)
{
    rdl_world_options options = { .rank = rank, .size = size, .job = arg };
    rdl_world *world;

    CHECK_OK(rdl_world_open(&options, &world));
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL)); /* the start is over for all */
    if (rank == 1) {
        rdl_world_abort(world, "the disk is full");
    } else {
        usleep(100000); /* until rank 1 has closed as well */
        CHECK_STATUS(rdl_barrier(world, RDL_WORLD, NULL), RDL_PEER);
        CHECK_HAS(rdl_error_detail(), "rank 1 gave up: the disk is full");
    }
    CHECK_OK(rdl_world_close(world));
}

RDL_TEST(the_reason_of_an_abort_outlives_the_close)
{
    char job[64];

    snprintf(job, sizeof job, "abort-%d", (int)getpid());
    rdl_test_threads(3, abort_then_close, job);
    rdl_test_processes(3, abort_then_close, job);
}
