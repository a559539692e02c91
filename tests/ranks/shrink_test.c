/* Groups that go on without the ranks that are gone (case H20 d): whoever died, and
 * when, all who are left get the same group. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/worlds.h"

#include <pthread.h>
#include <raddle/mesh.h>
#include <raddle/work.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LONG_MS 100000 /* longer than a test that passes takes */
#define RANKS_MOST 8

static const int all[RANKS_MOST] = { 0, 1, 2, 3, 4, 5, 6, 7 };

static rdl_group open_all(rdl_world *world, const char *name)
{
    rdl_group group;

    CHECK_OK(rdl_group_open(world, all, rdl_world_size(world), name, &group));
    return group;
}

/* The group is these world ranks, in this order, and works. */
static void check_group(rdl_world *world, rdl_group group, const int *ranks,
                        int count)
{
    int size, rank;
    int64_t digits = 0;

    CHECK_OK(rdl_group_size(world, group, &size));
    CHECK_INT(size, count);
    for (int i = 0; i < count; i++) {
        CHECK_OK(rdl_group_world_rank(world, group, i, &rank));
        CHECK_INT(rank, ranks[i]);
        digits += rdl_digit(ranks[i]);
    }
    rdl_check_digits(world, group, digits);
}

#define CHECK_GROUP(world, group, ...)                                         \
    check_group(world, group, (const int[]){ __VA_ARGS__ },                    \
                sizeof((const int[]){ __VA_ARGS__ }) / sizeof(int))

static rdl_group shrink(rdl_world *world, rdl_group group)
{
    rdl_group rest = RDL_WORLD;

    CHECK_OK(rdl_group_shrink(world, group, LONG_MS, &rest));
    return rest;
}

/* --- ranks that die, each in its way ---------------------------------------- */

typedef enum manner { BY_ABORT, BY_CLOSE, BY_EXIT, BY_KILL } manner;

typedef struct mortal {
    manner end;
    rdl_check check;
    char job[64];
} mortal;

static void name_job(mortal *m, manner end)
{
    m->end = end;
    m->check = RDL_CHECK_ON;
    snprintf(m->job, sizeof m->job, "shrink-%d-%d", (int)getpid(), (int)end);
}

/* Ends this rank; the world is closed after, if it comes to that. */
static void die(rdl_world *world, manner end)
{
    switch (end) {
    case BY_ABORT:
        rdl_world_abort(world, "it has served its time");
        break;
    case BY_CLOSE:
        break;
    case BY_EXIT:
        _exit(0);
    case BY_KILL:
        raise(SIGKILL);
    }
}

static rdl_world *join(int rank, int size, const char *job, rdl_check check)
{
    rdl_world_options options = { .rank = rank,
                                  .size = size,
                                  .job = job,
                                  .timeout_ms = LONG_MS,
                                  .check = check };
    rdl_world *world;

    CHECK_OK(rdl_world_open(&options, &world));
    return world;
}

/* H20 d */
static void average_what_is_left(rdl_world *world, rdl_group group)
{
    float mine = 2.0f * (float)rdl_world_rank(world), avg = 0, sum = 0;

    CHECK_OK(rdl_all_reduce(world, group, &mine, &avg, 1, RDL_FLOAT32, RDL_AVG,
                            NULL));
    CHECK_OK(rdl_all_reduce(world, group, &mine, &sum, 1, RDL_FLOAT32, RDL_SUM,
                            NULL));
    CHECK_NEAR(avg, 3.0, 0);
    CHECK_NEAR(sum, 6.0, 0);
}

static void lose_the_first(int rank, int size, void *arg)
{
    mortal *m = arg;
    rdl_world *world = join(rank, size, m->job, m->check);
    rdl_group group = open_all(world, "dp"), rest, again;

    CHECK_OK(rdl_barrier(world, group, NULL));
    if (rank == 0) {
        die(world, m->end);
        CHECK_OK(rdl_world_close(world));
        return;
    }
    CHECK_STATUS(rdl_barrier(world, group, NULL), RDL_PEER);
    rest = shrink(world, group);
    CHECK_GROUP(world, rest, 1, 2);
    average_what_is_left(world, rest);
    /* The old one stays as it was, and so do questions about it. */
    CHECK_STATUS(rdl_barrier(world, group, NULL), RDL_PEER);
    CHECK_HAS(rdl_test_detail(), "barrier #2 on group 'dp' [0,1,2]: rank 0 ");
    CHECK_OK(rdl_group_close(world, group));
    average_what_is_left(world, rest);
    CHECK_OK(rdl_group_close(world, rest));
    /* Nobody has noticed on the world yet. */
    again = shrink(world, RDL_WORLD);
    CHECK_GROUP(world, again, 1, 2);
    CHECK_OK(rdl_world_close(world));
}

RDL_TEST(the_rest_of_a_group_goes_on_after_an_abort_or_a_close)
{
    mortal m;

    for (int end = BY_ABORT; end <= BY_CLOSE; end++) {
        name_job(&m, (manner)end);
        rdl_test_threads(3, lose_the_first, &m);
        rdl_test_processes(3, lose_the_first, &m);
        m.check = RDL_CHECK_STRICT;
        rdl_test_threads(3, lose_the_first, &m);
    }
}

/* Ranks as processes, of which some die by a signal. */
static void run_mortals(int size, rdl_test_body body, mortal *m,
                        const int *statuses)
{
    pid_t pid[RANKS_MOST];

    for (int rank = 0; rank < size; rank++)
        pid[rank] = rdl_test_start(rank, size, body, m);
    for (int rank = 0; rank < size; rank++)
        CHECK_INT(rdl_test_wait(pid[rank]), statuses[rank]);
}

RDL_TEST(the_rest_of_a_group_goes_on_after_a_kill_or_an_exit)
{
    mortal m;

    name_job(&m, BY_KILL);
    run_mortals(3, lose_the_first, &m, (const int[]){ 128 + SIGKILL, 0, 0 });
    name_job(&m, BY_EXIT);
    run_mortals(3, lose_the_first, &m, (const int[]){ 0, 0, 0 });
}

/* Rank 3 goes first; rank 1 when the group of the others has been in use. */
static void lose_two(int rank, int size, void *arg)
{
    mortal *m = arg;
    rdl_world *world = join(rank, size, m->job, m->check);
    rdl_group rest;

    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    if (rank == 3)
        die(world, m->end);
    if (rank == 3)
        goto end;
    CHECK_STATUS(rdl_barrier(world, RDL_WORLD, NULL), RDL_PEER);
    rest = shrink(world, RDL_WORLD);
    CHECK_GROUP(world, rest, 0, 1, 2, 4);
    if (rank == 1)
        die(world, m->end);
    if (rank == 1)
        goto end;
    CHECK_STATUS(rdl_barrier(world, rest, NULL), RDL_PEER);
    CHECK_HAS(rdl_test_detail(), "barrier #2 on the world [0-4] shrunk to "
                                 "[0,1,2,4]: rank 1 ");
    rest = shrink(world, rest);
    CHECK_GROUP(world, rest, 0, 2, 4);
end:
    CHECK_OK(rdl_world_close(world));
}

RDL_TEST(what_is_left_shrinks_again)
{
    static const int killed[] = { 0, 128 + SIGKILL, 0, 128 + SIGKILL, 0 };
    mortal m;

    name_job(&m, BY_ABORT);
    rdl_test_threads(5, lose_two, &m);
    name_job(&m, BY_CLOSE);
    rdl_test_threads(5, lose_two, &m);
    name_job(&m, BY_KILL);
    run_mortals(5, lose_two, &m, killed);
}

/* --- ranks that die at any moment ------------------------------------------- */

#define CROWD 6

typedef struct storm {
    char job[64];
    atomic_int in_use;        /* ranks whose group works */
    uint64_t delay_us[CROWD]; /* of those who abort; 0: lives */
} storm;

static void *abort_later(void *arg)
{
    rdl_world *world = arg;

    rdl_world_abort(world, "at any moment");
    return NULL;
}

/* The members of group agree on who they are, and on nobody else. */
static bool all_agree(rdl_world *world, rdl_group group)
{
    int64_t mine = 0, least, most;
    int size, rank;

    CHECK_OK(rdl_group_size(world, group, &size));
    for (int i = 0; i < size; i++) {
        CHECK_OK(rdl_group_world_rank(world, group, i, &rank));
        mine = mine * 10 + rank;
    }
    if (rdl_all_reduce(world, group, &mine, &least, 1, RDL_INT64, RDL_MIN,
                       NULL) != RDL_OK ||
        rdl_all_reduce(world, group, &mine, &most, 1, RDL_INT64, RDL_MAX,
                       NULL) != RDL_OK)
        return false;
    CHECK_INT(least, mine);
    CHECK_INT(most, mine);
    return true;
}

/* Shrinks until what is left holds; a rank that gives up meanwhile just ends. */
static void weather(rdl_world *world, bool lives)
{
    rdl_group group = RDL_WORLD, rest;
    rdl_status st;

    for (int turn = 0;; turn++) {
        CHECK(turn < 2 * CROWD);
        st = rdl_group_shrink(world, group, LONG_MS, &rest);
        if (st == RDL_STATE && !lives)
            return;
        CHECK_OK(st);
        group = rest;
        if (all_agree(world, group))
            return;
    }
}

static void stand_in_a_storm(int rank, int size, void *arg)
{
    storm *s = arg;
    bool lives = s->delay_us[rank] == 0;
    rdl_world *world = join(rank, size, s->job, RDL_CHECK_ON);
    pthread_t thread;

    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    if (!lives) {
        usleep((unsigned)s->delay_us[rank] / 2);
        CHECK_INT(pthread_create(&thread, NULL, abort_later, world), 0);
    }
    weather(world, lives);
    if (!lives)
        CHECK_INT(pthread_join(thread, NULL), 0);
    CHECK(rdl_world_close(world) == RDL_OK || !lives);
}

static void draw(storm *s, uint64_t *seed, int round)
{
    snprintf(s->job, sizeof s->job, "storm-%d-%d", (int)getpid(), round);
    for (int rank = 0; rank < CROWD; rank++) {
        bool dies = rank > 0 && rdl_test_random(seed) % 2 == 0;

        s->delay_us[rank] = dies ? 1 + rdl_test_random(seed) % 3000 : 0;
    }
}

RDL_TEST(ranks_that_give_up_while_others_shrink_are_out_for_all_or_for_nobody)
{
    uint64_t seed = rdl_test_seed();
    int rounds = rdl_test_soak() ? 500 : 25;
    storm s;

    for (int round = 0; round < rounds; round++) {
        draw(&s, &seed, round);
        rdl_test_threads(CROWD, stand_in_a_storm, &s);
    }
}

/* Killed from outside, at any moment of it. */
static void be_killed_in_a_storm(int rank, int size, void *arg)
{
    storm *s = arg;
    rdl_world *world = join(rank, size, s->job, RDL_CHECK_ON);

    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    atomic_fetch_add(&s->in_use, 1);
    weather(world, true);
    if (s->delay_us[rank] > 0)
        for (;;)
            pause(); /* for the kill */
    CHECK_OK(rdl_world_close(world));
}

RDL_TEST(ranks_killed_while_others_shrink_are_out_for_all_or_for_nobody)
{
    uint64_t seed = rdl_test_seed();
    int rounds = rdl_test_soak() ? 200 : 10;
    storm *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid[CROWD];

    CHECK(s != MAP_FAILED);
    for (int round = 0; round < rounds; round++) {
        draw(s, &seed, round);
        atomic_store(&s->in_use, 0);
        for (int rank = 0; rank < CROWD; rank++)
            pid[rank] = rdl_test_start(rank, CROWD, be_killed_in_a_storm, s);
        while (atomic_load(&s->in_use) < 1)
            usleep(100);
        for (int rank = 0; rank < CROWD; rank++)
            if (s->delay_us[rank] > 0) {
                usleep((unsigned)s->delay_us[rank]);
                kill(pid[rank], SIGKILL);
            }
        for (int rank = 0; rank < CROWD; rank++)
            CHECK_INT(rdl_test_wait(pid[rank]),
                      s->delay_us[rank] > 0 ? 128 + SIGKILL : 0);
    }
    munmap(s, sizeof *s);
}

/* --- groups in which nobody died -------------------------------------------- */

static void revoke_and_shrink(rdl_world *world, void *arg)
{
    rdl_group group = open_all(world, "healthy"), first, second, third;
    int rank = rdl_world_rank(world);

    (void)arg;
    rdl_check_digits(world, group, 1111);
    if (rank == 2)
        CHECK_OK(rdl_group_revoke(world, group));
    first = shrink(world, group);
    CHECK_GROUP(world, first, 0, 1, 2, 3);
    second = shrink(world, group);
    CHECK(first.index != second.index);
    /* Two queues: one rank uses them in another order than the rest. */
    if (rank == 0) {
        rdl_work work;
        rdl_call beside = { .work = &work };

        CHECK_OK(rdl_barrier(world, second, &beside));
        rdl_check_digits(world, first, 1111);
        CHECK_OK(rdl_work_wait(world, work, 0));
    } else {
        rdl_check_digits(world, first, 1111);
        CHECK_OK(rdl_barrier(world, second, NULL));
    }
    third = shrink(world, first);
    CHECK_GROUP(world, third, 0, 1, 2, 3);
    CHECK_STATUS(rdl_barrier(world, first, NULL), RDL_REVOKED);
    CHECK_GROUP(world, second, 0, 1, 2, 3);
    CHECK_OK(rdl_group_close(world, group));
    CHECK_OK(rdl_group_close(world, first));
    CHECK_OK(rdl_group_close(world, second));
    CHECK_OK(rdl_group_close(world, third));
    CHECK_STATUS(rdl_group_shrink(world, third, 0, &first), RDL_INVALID);
    rdl_check_digits(world, RDL_WORLD, 1111);
}

RDL_TEST(a_revoked_group_shrinks_to_its_members_each_time_to_another_group)
{
    rdl_test_job job = { .size = 4 };

    rdl_test_worlds(&job, revoke_and_shrink, NULL);
    job.processes = true;
    rdl_test_worlds(&job, revoke_and_shrink, NULL);
}

/* Who still waits in a call on the group comes too. */
static void shrink_under_a_call(rdl_world *world, void *arg)
{
    static const int turned[] = { 2, 0, 1 };
    rdl_group group, rest;
    int64_t x = 1;

    (void)arg;
    CHECK_OK(rdl_group_open(world, turned, 3, "turned", &group));
    if (rdl_world_rank(world) > 0) {
        CHECK_STATUS(rdl_barrier(world, group, NULL), RDL_REVOKED);
        CHECK_HAS(rdl_test_detail(), "was revoked by rank 0");
    }
    rest = shrink(world, group);
    CHECK_GROUP(world, rest, 2, 0, 1);
    /* With ways of its own. */
    if (rdl_world_rank(world) == 0)
        CHECK_OK(rdl_send(world, rest, &x, 1, RDL_INT64, 0, NULL));
    if (rdl_world_rank(world) == 2)
        CHECK_OK(rdl_receive(world, rest, &x, 1, RDL_INT64, 1, NULL));
}

RDL_TEST(who_is_in_a_call_on_a_group_that_others_shrink_hears_of_it)
{
    rdl_test_worlds(&(rdl_test_job){ .size = 3, .timeout_ms = LONG_MS },
                    shrink_under_a_call, NULL);
}

static void shrink_a_mesh(rdl_world *world, void *arg)
{
    static const char *const names[] = { "dp", "tp" };
    int rank = rdl_world_rank(world);
    rdl_group tp, dp, rest;
    rdl_mesh *mesh;

    (void)arg;
    CHECK_OK(rdl_mesh_create(world, names, (int[]){ 2, 3 }, 2, &mesh));
    CHECK_OK(rdl_mesh_group(mesh, "tp", &tp));
    CHECK_OK(rdl_mesh_group(mesh, "dp", &dp));
    rdl_check_digits(world, RDL_WORLD, 111111); /* all have started */
    rdl_check_digits(world, tp, rank < 3 ? 111 : 111000);
    if (rank == 4)
        rdl_world_abort(world, "one of six");
    if (rank == 3 || rank == 5) {
        rest = shrink(world, tp);
        CHECK_GROUP(world, rest, 3, 5);
    } else if (rank != 4) { /* the other half is whole */
        rdl_check_digits(world, tp, 111);
    }
    if (rank == 1) {
        rest = shrink(world, dp);
        CHECK_GROUP(world, rest, 1);
    }
    rdl_mesh_destroy(mesh);
}

RDL_TEST(a_meshs_group_shrinks_and_its_other_groups_go_on)
{
    rdl_test_job job = { .size = 6, .keeps_failures = true };

    rdl_test_worlds(&job, shrink_a_mesh, NULL);
}

static void shrink_alone(rdl_world *world, void *arg)
{
    int me = rdl_world_rank(world);
    rdl_group own, rest;

    (void)arg;
    CHECK_OK(rdl_group_open(world, &me, 1, "own", &own));
    rest = shrink(world, own);
    CHECK_GROUP(world, rest, me);
    CHECK_STATUS(rdl_barrier(world, own, NULL), RDL_REVOKED);
    rest = shrink(world, rest);
    CHECK_GROUP(world, rest, me);
}

RDL_TEST(a_group_of_one_shrinks_to_itself)
{
    rdl_test_worlds(&(rdl_test_job){ .size = 1 }, shrink_alone, NULL);
    rdl_test_worlds(&(rdl_test_job){ .size = 2 }, shrink_alone, NULL);
}

/* --- members that do not come ------------------------------------------------ */

static void come_late(rdl_world *world, void *arg)
{
    rdl_group group = open_all(world, "late"), rest = RDL_WORLD;

    (void)arg;
    if (rdl_world_rank(world) == 1) {
        rdl_check_digits(world, RDL_WORLD, 111);
    } else {
        CHECK_STATUS(rdl_group_shrink(world, group, 300, &rest), RDL_TIMEOUT);
        CHECK_TEXT(rdl_test_detail(),
                   "shrink of group 'late' [0,1,2]: timed out after 0.3 s, "
                   "waiting for rank 1");
        CHECK_INT(rest.world, 0); /* untouched */
        rdl_check_digits(world, RDL_WORLD, 111);
    }
    rest = shrink(world, group);
    CHECK_GROUP(world, rest, 0, 1, 2);
}

RDL_TEST(a_member_that_does_not_shrink_is_named_and_may_come_later)
{
    rdl_test_job job = { .size = 3 };

    rdl_test_worlds(&job, come_late, NULL);
    job.processes = true;
    rdl_test_worlds(&job, come_late, NULL);
}

/* A rank that is stopped is not dead. */
static void shrink_around_a_stop(int rank, int size, void *arg)
{
    storm *s = arg;
    rdl_world *world = join(rank, size, s->job, RDL_CHECK_ON);
    rdl_group rest;

    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    if (rank == 2)
        raise(SIGSTOP);
    if (rank < 2) {
        CHECK_STATUS(rdl_group_shrink(world, RDL_WORLD, 500, &rest),
                     RDL_TIMEOUT);
        CHECK_HAS(rdl_test_detail(), "waiting for rank 2");
        atomic_fetch_add(&s->in_use, 1);
    }
    rest = shrink(world, RDL_WORLD);
    CHECK_GROUP(world, rest, 0, 1, 2);
    CHECK_OK(rdl_world_close(world));
}

RDL_TEST(a_stopped_member_is_waited_for_and_not_left_out)
{
    storm *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid[3];

    CHECK(s != MAP_FAILED);
    snprintf(s->job, sizeof s->job, "stop-%d", (int)getpid());
    for (int rank = 0; rank < 3; rank++)
        pid[rank] = rdl_test_start(rank, 3, shrink_around_a_stop, s);
    while (atomic_load(&s->in_use) < 2)
        usleep(1000);
    kill(pid[2], SIGCONT);
    for (int rank = 0; rank < 3; rank++)
        CHECK_INT(rdl_test_wait(pid[rank]), 0);
    munmap(s, sizeof *s);
}

/* --- wrong calls ------------------------------------------------------------- */

static void *shrink_beside(void *arg)
{
    rdl_world *world = arg;
    rdl_group rest;
    rdl_status st;

    do /* until the other is outside */
        st = rdl_group_shrink(world, RDL_WORLD, 700, &rest);
    while (st == RDL_STATE);
    CHECK_STATUS(st, RDL_TIMEOUT);
    return NULL;
}

/* While one thread of rank 0 shrinks the world. */
static void shrink_twice_at_once(rdl_world *world)
{
    rdl_group rest;
    pthread_t thread;
    rdl_status st;

    CHECK_INT(pthread_create(&thread, NULL, shrink_beside, world), 0);
    do /* until it is inside */
        st = rdl_group_shrink(world, RDL_WORLD, 1, &rest);
    while (st == RDL_TIMEOUT);
    CHECK_STATUS(st, RDL_STATE);
    CHECK_HAS(rdl_test_detail(), "another thread of this rank");
    CHECK_INT(pthread_join(thread, NULL), 0);
}

static void shrink_wrongly(rdl_world *world, void *arg)
{
    static const int first[] = { 0 };
    rdl_group group = open_all(world, "right"), other, rest;
    rdl_group stale = { 77, 1, group.world };

    (void)arg;
    CHECK_STATUS(rdl_group_shrink(NULL, group, 0, &rest), RDL_INVALID);
    CHECK_STATUS(rdl_group_shrink(world, group, 0, NULL), RDL_INVALID);
    CHECK_HAS(rdl_test_detail(), "rdl_group_shrink: out is NULL");
    CHECK_STATUS(rdl_group_shrink(world, group, -5, &rest), RDL_INVALID);
    CHECK_HAS(rdl_test_detail(), "shrink: a limit of -5 ms is negative");
    CHECK_STATUS(rdl_group_shrink(world, stale, 0, &rest), RDL_INVALID);
    CHECK_OK(rdl_group_open(world, first, 1, "", &other));
    if (rdl_world_rank(world) == 1) {
        CHECK_STATUS(rdl_group_shrink(world, other, 0, &rest), RDL_INVALID);
        CHECK_HAS(rdl_test_detail(), "shrink: rank 1 is not in group [0]");
    }
    rdl_check_digits(world, group, 11); /* nothing has ended */
    if (rdl_world_rank(world) == 0)
        shrink_twice_at_once(world);
    rdl_check_digits(world, group, 11);
    if (rdl_world_rank(world) == 0) {
        rdl_world_abort(world, "that is all");
        CHECK_STATUS(rdl_group_shrink(world, group, 0, &rest), RDL_STATE);
    }
}

RDL_TEST(wrong_calls_of_shrink_end_nothing)
{
    rdl_test_job job = { .size = 2, .keeps_failures = true };

    rdl_test_worlds(&job, shrink_wrongly, NULL);
}
