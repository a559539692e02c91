/* Meshes: who stands where, and who meets whom along an axis (case H18). */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/fault.h"
#include "support/worlds.h"

#include <pthread.h>
#include <raddle/account.h>
#include <raddle/mesh.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void both(int size, rdl_world_body body, void *arg)
{
    rdl_test_job job = { .size = size };

    rdl_test_worlds(&job, body, arg);
    job.processes = true;
    rdl_test_worlds(&job, body, arg);
}

/* --- every axis and every flattened axis ----------------------------------- */

typedef struct shape {
    int n;
    int sizes[4];
} shape;

static const char *const letters[] = { "a", "b", "c", "d" };

static int ranks_of(const shape *s)
{
    int ranks = 1;

    for (int i = 0; i < s->n; i++)
        ranks *= s->sizes[i];
    return ranks;
}

static int coordinate_of(const shape *s, int rank, int axis)
{
    for (int i = s->n; --i > axis;)
        rank /= s->sizes[i];
    return rank % s->sizes[axis];
}

/* Whether other differs from rank along the axes of set alone. */
static bool is_along(const shape *s, int rank, int other, unsigned set)
{
    for (int i = 0; i < s->n; i++)
        if (!(set >> i & 1) &&
            coordinate_of(s, rank, i) != coordinate_of(s, other, i))
            return false;
    return true;
}

static void check_along(rdl_world *world, rdl_mesh *mesh, const shape *s,
                        unsigned set)
{
    char name[16] = "";
    int me = rdl_world_rank(world), size = -1, place = -1, group_rank = -1;
    int members = 0;
    int64_t digits = 0;
    rdl_group group;

    for (int i = 0; i < s->n; i++)
        if (set >> i & 1) {
            strcat(name, name[0] ? "," : "");
            strcat(name, letters[i]);
        }
    CHECK_OK(rdl_mesh_group(mesh, name, &group));
    for (int r = 0; r < rdl_world_size(world); r++) {
        int world_rank = -1;

        if (!is_along(s, me, r, set))
            continue;
        CHECK_OK(rdl_group_world_rank(world, group, members, &world_rank));
        CHECK_INT(world_rank, r); /* row-major is the order of ranks */
        members++;
        digits += rdl_digit(r);
    }
    CHECK_OK(rdl_mesh_size(mesh, name, &size));
    CHECK_INT(size, members);
    CHECK_OK(rdl_group_size(world, group, &size));
    CHECK_INT(size, members);
    CHECK_OK(rdl_mesh_coordinate(mesh, name, &place));
    CHECK_OK(rdl_group_rank(world, group, &group_rank));
    CHECK_INT(place, group_rank);
    rdl_check_digits(world, group, digits);
}

static void use_every_axis(rdl_world *world, void *arg)
{
    const shape *s = arg;
    rdl_account account;
    rdl_mesh *mesh;

    CHECK_OK(rdl_mesh_create(world, letters, s->sizes, s->n, &mesh));
    for (int i = 0; i < s->n; i++) {
        int place = -1;

        CHECK_OK(rdl_mesh_coordinate(mesh, letters[i], &place));
        CHECK_INT(place, coordinate_of(s, rdl_world_rank(world), i));
    }
    for (unsigned set = 1; set < 1u << s->n; set++)
        check_along(world, mesh, s, set);
    rdl_mesh_destroy(mesh);
    CHECK_OK(rdl_account_read(world, &account));
    CHECK_INT(account.groups_open, 1); /* the world */
    rdl_check_digits(world, RDL_WORLD, rdl_digit(rdl_world_size(world)) / 9);
}

RDL_TEST(along_each_axis_the_ranks_that_differ_in_it_alone_meet)
{
    static const shape shapes[] = {
        { 1, { 1 } },       { 3, { 1, 1, 1 } },    { 1, { 2 } },
        { 2, { 1, 2 } },    { 1, { 3 } },          { 2, { 2, 2 } },
        { 3, { 1, 4, 1 } }, { 2, { 5, 1 } },       { 2, { 2, 4 } },
        { 2, { 4, 2 } },    { 4, { 2, 1, 2, 2 } },
    };

    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        shape s = shapes[i];

        both(ranks_of(&s), use_every_axis, &s);
    }
}

/* spec: W = 8, dp_replicate 2, dp_shard 2, tp 2. */
static void look_at_rank_five(rdl_world *world, void *arg)
{
    static const char *const names[] = { "dp_replicate", "dp_shard", "tp" };
    static const int members[3][2] = { { 1, 5 }, { 5, 7 }, { 4, 5 } };
    static const int places[] = { 1, 0, 1 };
    rdl_mesh *mesh;
    rdl_group group;
    int rank, place;

    (void)arg;
    CHECK_OK(rdl_mesh_create(world, names, (int[]){ 2, 2, 2 }, 3, &mesh));
    for (int i = 0; i < 3 && rdl_world_rank(world) == 5; i++) {
        CHECK_OK(rdl_mesh_coordinate(mesh, names[i], &place));
        CHECK_INT(place, places[i]);
        CHECK_OK(rdl_mesh_group(mesh, names[i], &group));
        for (int k = 0; k < 2; k++) {
            CHECK_OK(rdl_group_world_rank(world, group, k, &rank));
            CHECK_INT(rank, members[i][k]);
        }
    }
    rdl_mesh_destroy(mesh);
}

RDL_TEST(rank_five_of_two_by_two_by_two_stands_at_one_zero_one)
{
    both(8, look_at_rank_five, NULL);
}

/* --- the axis that is the world -------------------------------------------- */

static void train_on_the_world(rdl_world *world, void *arg)
{
    static const char *const names[] = { "dp", "cp", "tp" };
    static const char *const ways[] = { "cp", "dp,cp", "cp,tp", "dp,cp,tp" };
    rdl_account account;
    rdl_mesh *mesh;
    rdl_group group;

    (void)arg;
    CHECK_OK(rdl_mesh_create(world, names, (int[]){ 1, 4, 1 }, 3, &mesh));
    for (int i = 0; i < 4; i++) {
        CHECK_OK(rdl_mesh_group(mesh, ways[i], &group));
        CHECK_INT(group.index, RDL_WORLD.index);
        rdl_check_digits(world, group, 1111);
        rdl_check_digits(world, RDL_WORLD, 1111);
    }
    CHECK_OK(rdl_mesh_group(mesh, "dp,tp", &group));
    rdl_check_digits(world, group, rdl_digit(rdl_world_rank(world)));
    CHECK_OK(rdl_account_read(world, &account));
    CHECK_INT(account.communicators, 1);
    CHECK_INT(account.lanes, 1);
    rdl_mesh_destroy(mesh);
    rdl_check_digits(world, RDL_WORLD, 1111);
}

RDL_TEST(an_axis_that_covers_the_world_is_the_world)
{
    both(4, train_on_the_world, NULL);
}

/* --- lives ----------------------------------------------------------------- */

/* H18 */
static void live_ten_times(int rank, int size, void *arg)
{
    static const char *const names[] = { "dp", "tp" };
    rdl_mesh *mesh;
    rdl_group old = { 0, 0, 0 }, tp, dp;

    for (int life = 0; life < 10; life++) {
        rdl_world_options options = { .rank = rank, .size = size, .job = arg };
        rdl_world *world;

        CHECK_OK(rdl_world_open(&options, &world));
        CHECK_OK(rdl_mesh_create(world, names, (int[]){ 2, 2 }, 2, &mesh));
        CHECK_OK(rdl_mesh_group(mesh, "tp", &tp));
        CHECK_OK(rdl_mesh_group(mesh, "dp", &dp));
        rdl_check_digits(world, tp, rank < 2 ? 11 : 1100);
        rdl_check_digits(world, dp, rank % 2 ? 1010 : 101);
        if (life == 0) {
            old = tp;
        } else {
            CHECK_STATUS(rdl_barrier(world, old, NULL), RDL_INVALID);
            CHECK_HAS(rdl_error_detail(), "destroyed");
        }
        rdl_mesh_destroy(mesh);
        CHECK_OK(rdl_world_close(world));
    }
}

RDL_TEST(ten_lives_of_a_mesh_know_nothing_of_each_other)
{
    char job[64];

    snprintf(job, sizeof job, "mesh-lives-%d", (int)getpid());
    rdl_test_threads(4, live_ten_times, job);
    rdl_test_processes(4, live_ten_times, job);
}

static void compare_meshes(rdl_world *world, void *arg)
{
    static const char *const names[] = { "dp", "tp" };
    static const char *const others[] = { "dp", "cp" };
    rdl_mesh *mesh, *twin, *renamed, *flat, *wide;
    rdl_group tp, again;

    (void)arg;
    CHECK_OK(rdl_mesh_create(world, names, (int[]){ 2, 2 }, 2, &mesh));
    CHECK_OK(rdl_mesh_create(world, names, (int[]){ 2, 2 }, 2, &twin));
    CHECK_OK(rdl_mesh_create(world, others, (int[]){ 2, 2 }, 2, &renamed));
    CHECK_OK(rdl_mesh_create(world, names, (int[]){ 4 }, 1, &flat));
    CHECK_OK(rdl_mesh_create(world, names, (int[]){ 1, 4 }, 2, &wide));
    CHECK(rdl_mesh_equal(mesh, mesh) && rdl_mesh_equal(mesh, twin));
    CHECK(!rdl_mesh_equal(mesh, renamed) && !rdl_mesh_equal(mesh, flat));
    CHECK(!rdl_mesh_equal(mesh, wide) && !rdl_mesh_equal(mesh, NULL));
    CHECK(!rdl_mesh_equal(NULL, NULL));

    /* Twins hold one group open twice: one leaves, the other goes on. */
    CHECK_OK(rdl_mesh_group(mesh, "tp", &tp));
    rdl_mesh_destroy(twin);
    rdl_mesh_destroy(renamed);
    rdl_check_digits(world, tp, rdl_world_rank(world) < 2 ? 11 : 1100);
    rdl_mesh_destroy(mesh);
    CHECK_STATUS(rdl_barrier(world, tp, NULL), RDL_INVALID);

    /* The list is opened anew, and the handle is another. */
    CHECK_OK(rdl_mesh_create(world, names, (int[]){ 2, 2 }, 2, &mesh));
    CHECK_OK(rdl_mesh_group(mesh, "tp", &again));
    CHECK(again.generation != tp.generation || again.index != tp.index);
    rdl_check_digits(world, again, rdl_world_rank(world) < 2 ? 11 : 1100);
    rdl_mesh_destroy(mesh);
    rdl_mesh_destroy(flat);
    rdl_mesh_destroy(wide);
}

RDL_TEST(meshes_are_equal_if_names_sizes_and_groups_are)
{
    both(4, compare_meshes, NULL);
}

RDL_TEST(meshes_of_two_worlds_are_not_equal)
{
    static const char *const names[] = { "dp" };
    rdl_world_options options = { .size = 1 };
    rdl_world *worlds[2];
    rdl_mesh *meshes[2];

    for (int i = 0; i < 2; i++) {
        CHECK_OK(rdl_world_open(&options, &worlds[i]));
        CHECK_OK(rdl_mesh_create(worlds[i], names, (int[]){ 1 }, 1, &meshes[i]));
    }
    CHECK(!rdl_mesh_equal(meshes[0], meshes[1]));
    for (int i = 0; i < 2; i++) {
        rdl_mesh_destroy(meshes[i]);
        CHECK_OK(rdl_world_close(worlds[i]));
    }
}

/* --- bad input ------------------------------------------------------------- */

static void refuse(rdl_world *world, const char *const *names, const int *sizes,
                   int axes, const char *part)
{
    rdl_mesh *mesh = NULL;

    CHECK_STATUS(rdl_mesh_create(world, names, sizes, axes, &mesh), RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), part);
    CHECK(mesh == NULL);
}

static void refuse_meshes(rdl_world *world, void *arg)
{
    static const char *const names[] = { "dp", "tp", "x", "y", "z" };
    static const char *const twice[] = { "dp", "dp" };
    static const char *const nothing[] = { "dp", NULL };
    static const char *const empty[] = { "", "tp" };
    static const char *const comma[] = { "dp,tp", "x" };
    static const char *const long_name[] = {
        "0123456789012345678901234567890123456789012345678901234567890123", "tp"
    };
    static const int huge[] = { 1 << 30, 1 << 30, 1 << 30, 1 << 30, 1 << 30 };
    rdl_mesh *mesh;

    (void)arg;
    refuse(world, names, (int[]){ 2, 3 }, 2,
           "dp x tp: 2 x 3 = 6 ranks, and the world has 2");
    refuse(world, names, (int[]){ 1, 1 }, 2, "1 x 1 = 1 ranks");
    refuse(world, names, huge, 5, "too many to count, and the world has 2");
    refuse(world, names, (int[]){ 2, 0 }, 2, "axis 'tp' has 0 ranks");
    refuse(world, names, (int[]){ -2, -1 }, 2, "axis 'dp' has -2 ranks");
    refuse(world, twice, (int[]){ 2, 1 }, 2, "two axes are named 'dp'");
    refuse(world, nothing, (int[]){ 2, 1 }, 2, "axis 1 has no name");
    refuse(world, empty, (int[]){ 2, 1 }, 2, "axis 0 has no name");
    refuse(world, comma, (int[]){ 2, 1 }, 2, "holds a comma");
    refuse(world, long_name, (int[]){ 2, 1 }, 2, "has 64 bytes; 63 is the most");
    refuse(world, names, (int[]){ 2, 1 }, 0, "0 axes are outside 1..8");
    refuse(world, names, (int[]){ 2, 1 }, 9, "9 axes are outside 1..8");
    refuse(world, NULL, (int[]){ 2, 1 }, 2, "names is NULL");
    refuse(world, names, NULL, 2, "sizes is NULL");
    refuse(NULL, names, (int[]){ 2, 1 }, 2, "NULL");
    CHECK_STATUS(rdl_mesh_create(world, names, (int[]){ 2 }, 1, NULL),
                 RDL_INVALID);
    CHECK_OK(rdl_mesh_create(world, names, (int[]){ 2 }, 1, &mesh));
    rdl_mesh_destroy(mesh);
    rdl_mesh_destroy(NULL);
}

RDL_TEST(a_layout_that_is_no_mesh_is_refused_with_the_numbers)
{
    both(2, refuse_meshes, NULL);
}

static void refuse_axes(rdl_world *world, void *arg)
{
    static const char *const names[] = { "dp", "cp", "tp" };
    static const struct {
        const char *axis, *part;
    } cases[] = {
        { "pp", "no axis 'pp': it has dp,cp,tp" },
        { "", "no axis ''" },
        { "d", "no axis 'd'" },
        { "dp,", "no axis ''" },
        { "dp,pp", "no axis 'pp'" },
        { "tp,dp", "'tp,dp' is out of order: in the mesh 'dp' stands before" },
        { "dp,tp,cp", "out of order" },
        { "cp,cp", "each may be named once" },
        { NULL, "axis is NULL" },
    };
    rdl_group group = { 7, 7, 7 };
    rdl_mesh *mesh;
    int n = 7;

    (void)arg;
    CHECK_OK(rdl_mesh_create(world, names, (int[]){ 1, 2, 1 }, 3, &mesh));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_STATUS(rdl_mesh_group(mesh, cases[i].axis, &group), RDL_INVALID);
        CHECK_HAS(rdl_error_detail(), cases[i].part);
        CHECK_STATUS(rdl_mesh_size(mesh, cases[i].axis, &n), RDL_INVALID);
        CHECK_HAS(rdl_error_detail(), cases[i].part);
        CHECK_STATUS(rdl_mesh_coordinate(mesh, cases[i].axis, &n), RDL_INVALID);
        CHECK_HAS(rdl_error_detail(), cases[i].part);
    }
    CHECK(group.index == 7 && n == 7);
    CHECK_STATUS(rdl_mesh_group(NULL, "dp", &group), RDL_INVALID);
    CHECK_STATUS(rdl_mesh_group(mesh, "dp", NULL), RDL_INVALID);
    CHECK_STATUS(rdl_mesh_size(mesh, "dp", NULL), RDL_INVALID);
    CHECK_STATUS(rdl_mesh_coordinate(mesh, "dp", NULL), RDL_INVALID);
    rdl_mesh_destroy(mesh);
}

RDL_TEST(an_axis_that_is_not_there_is_refused_with_those_that_are)
{
    both(2, refuse_axes, NULL);
}

/* --- memory and threads ---------------------------------------------------- */

#ifdef RDL_FAULTS
static void run_out_of_memory(rdl_world *world, void *arg)
{
    static const char *const names[] = { "dp", "cp", "tp" };
    rdl_account account;
    rdl_group group;
    int failures = 0;

    (void)arg;
    for (long n = 1;; n++) {
        rdl_fault plan = { .memory_at = n };
        rdl_mesh *mesh = NULL;
        rdl_status st;

        rdl_fault_use(&plan);
        st = rdl_mesh_create(world, names, (int[]){ 2, 2, 1 }, 3, &mesh);
        if (st == RDL_OK)
            st = rdl_mesh_group(mesh, "dp,tp", &group);
        rdl_fault_use(NULL);
        if (plan.fired) {
            CHECK_STATUS(st, RDL_NO_MEMORY);
            CHECK(rdl_error_detail()[0] != 0);
            failures++;
        }
        rdl_mesh_destroy(mesh);
        CHECK_OK(rdl_account_read(world, &account));
        CHECK_INT(account.groups_open, 1);
        if (!plan.fired)
            break;
    }
    CHECK(failures > 3);
    rdl_check_digits(world, RDL_WORLD, 1111);
}

RDL_TEST(a_mesh_without_memory_leaves_no_group_open)
{
    both(4, run_out_of_memory, NULL);
}
#endif

static void *ask(void *arg)
{
    rdl_group group = { 0, 0, 0 };

    for (int i = 0; i < 100; i++)
        CHECK_OK(rdl_mesh_group(arg, i % 2 ? "a,b" : "b,c", &group));
    return NULL;
}

static void ask_from_two_threads(rdl_world *world, void *arg)
{
    rdl_account before, after;
    rdl_mesh *mesh;
    pthread_t thread;

    (void)arg;
    CHECK_OK(rdl_mesh_create(world, letters, (int[]){ 2, 1, 2 }, 3, &mesh));
    CHECK_OK(rdl_account_read(world, &before));
    CHECK_INT(pthread_create(&thread, NULL, ask, mesh), 0);
    ask(mesh);
    CHECK_INT(pthread_join(thread, NULL), 0);
    CHECK_OK(rdl_account_read(world, &after));
    CHECK_INT(after.groups_opened - before.groups_opened, 2);
    rdl_mesh_destroy(mesh);
}

RDL_TEST(any_thread_may_ask_and_a_group_is_opened_once)
{
    both(4, ask_from_two_threads, NULL);
}
