/* FSDP: shards, what is gathered, and the sums of gradients (cases H28 a, H33). */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/fault.h"
#include "parallel/fsdp.h"
#include "support/worlds.h"

#include <math.h>
#include <raddle/account.h>
#include <raddle/mesh.h>
#include <string.h>

static void run(int size, rdl_world_body body, void *arg, bool processes)
{
    rdl_test_job job = { .size = size, .processes = processes };

    rdl_test_worlds(&job, body, arg);
}

static void both(int size, rdl_world_body body, void *arg)
{
    run(size, body, arg, false);
    run(size, body, arg, true);
}

/* --- a unit on a mesh of replicate x shard --------------------------------- */

typedef struct layout {
    int replicate;
    int shard;
    const rdl_parameter *parameters;
    int count;
} layout;

typedef struct setting {
    rdl_world *world;
    rdl_mesh *mesh;
    rdl_fsdp *unit;
    const layout *layout;
    int size;
} setting;

static rdl_mesh *make_mesh(rdl_world *world, const layout *l)
{
    static const char *const names[] = { "replicate", "shard" };
    rdl_mesh *mesh;

    CHECK_OK(rdl_mesh_create(world, names, (int[]){ l->replicate, l->shard }, 2,
                             &mesh));
    return mesh;
}

static rdl_fsdp *make_unit(rdl_world *world, rdl_mesh *mesh, const layout *l)
{
    rdl_group shard, replicate;
    rdl_fsdp *unit;

    CHECK_OK(rdl_mesh_group(mesh, "shard", &shard));
    CHECK_OK(rdl_mesh_group(mesh, "replicate", &replicate));
    CHECK_OK(rdl_fsdp_create(world, shard, replicate, l->parameters, l->count,
                             &unit));
    return unit;
}

static setting set_up(rdl_world *world, const layout *l)
{
    rdl_mesh *mesh = make_mesh(world, l);

    return (setting){ world, mesh, make_unit(world, mesh, l), l,
                      rdl_world_size(world) };
}

static void tear_down(const setting *s)
{
    rdl_fsdp_destroy(s->unit);
    rdl_mesh_destroy(s->mesh);
}

/* Small integers everywhere, so that sums are exact in any order. */
static float value(int i, size_t k)
{
    return (float)((k * 7 + (size_t)i * 13) % 101) - 50;
}

static float gradient(int rank, int i, size_t k)
{
    return (float)((k * 5 + (size_t)i * 3 + (size_t)rank * 11) % 23) - 11;
}

static float everyones(int size, int i, size_t k)
{
    float sum = 0;

    for (int r = 0; r < size; r++)
        sum += gradient(r, i, k);
    return sum;
}

/* --- steps of a unit's life ------------------------------------------------ */

static void check_rows(const setting *s, int i)
{
    size_t rows = s->layout->parameters[i].rows, n = (size_t)s->layout->shard;
    size_t chunk = (rows + n - 1) / n;
    size_t begin = (size_t)(rdl_world_rank(s->world) % s->layout->shard) * chunk;
    size_t first, mine;

    rdl_fsdp_rows(s->unit, i, &first, &mine);
    CHECK_INT(first, begin < rows ? begin : rows);
    CHECK_INT(mine, rows - first < chunk ? rows - first : chunk);
}

static void fill_shards(const setting *s)
{
    for (int i = 0; i < s->layout->count; i++) {
        size_t columns = s->layout->parameters[i].columns, first, rows;
        float *shard = rdl_fsdp_shard(s->unit, i);

        check_rows(s, i);
        rdl_fsdp_rows(s->unit, i, &first, &rows);
        for (size_t k = 0; k < rows * columns; k++) {
            CHECK(shard[k] == 0);
            CHECK(rdl_fsdp_shard_gradient(s->unit, i)[k] == 0);
            shard[k] = value(i, first * columns + k);
        }
    }
}

static void check_full(const setting *s)
{
    for (int i = 0; i < s->layout->count; i++) {
        const rdl_parameter *p = &s->layout->parameters[i];
        const float *full = rdl_fsdp_full(s->unit, i);

        CHECK(full != NULL);
        CHECK(s->layout->shard > 1 || full == rdl_fsdp_shard(s->unit, i));
        for (size_t k = 0; k < p->rows * p->columns; k++)
            CHECK(full[k] == value(i, k));
    }
}

static void add_gradients(const setting *s, float factor)
{
    int rank = rdl_world_rank(s->world);

    for (int i = 0; i < s->layout->count; i++) {
        const rdl_parameter *p = &s->layout->parameters[i];
        float *whole = rdl_fsdp_gradient(s->unit, i);

        CHECK(whole != NULL);
        for (size_t k = 0; k < p->rows * p->columns; k++)
            whole[k] += factor * gradient(rank, i, k);
    }
}

/* That shard_gradient is factor times the sum of everyone's gradients. */
static void check_sums(const setting *s, float factor)
{
    double expected = 0, square = -1;

    for (int i = 0; i < s->layout->count; i++) {
        size_t columns = s->layout->parameters[i].columns, first, rows;
        const float *sums = rdl_fsdp_shard_gradient(s->unit, i);

        rdl_fsdp_rows(s->unit, i, &first, &rows);
        for (size_t k = 0; k < rows * columns; k++) {
            float sum = factor * everyones(s->size, i, first * columns + k);

            CHECK(sums[k] == sum);
            expected += (double)sum * sum;
        }
    }
    rdl_fsdp_square(s->unit, &square);
    CHECK(square == expected);
}

static uint64_t collectives(rdl_world *world)
{
    rdl_account account;

    CHECK_OK(rdl_account_read(world, &account));
    return account.collectives;
}

static void check_calls(const setting *s, uint64_t before, int expected)
{
    CHECK_INT(collectives(s->world) - before, expected);
}

static void gather_twice_and_free(const setting *s)
{
    uint64_t before = collectives(s->world);

    CHECK(rdl_fsdp_full(s->unit, 0) == NULL);
    CHECK_OK(rdl_fsdp_gather(s->unit));
    CHECK_OK(rdl_fsdp_gather(s->unit));
    check_calls(s, before, s->layout->shard > 1);
    check_full(s);
    rdl_fsdp_free(s->unit);
    rdl_fsdp_free(s->unit);
    CHECK(rdl_fsdp_full(s->unit, 0) == NULL);
}

/* Two microbatches, then one more, reduced apart; then none. */
static void accumulate_and_reduce(const setting *s)
{
    uint64_t before = collectives(s->world);
    int calls = (s->layout->shard > 1) + (s->layout->replicate > 1);

    add_gradients(s, 1);
    add_gradients(s, 2);
    CHECK_OK(rdl_fsdp_reduce(s->unit));
    check_calls(s, before, calls);
    check_sums(s, 3);
    add_gradients(s, -1);
    CHECK_OK(rdl_fsdp_gather(s->unit)); /* gathered or not does not matter */
    CHECK_OK(rdl_fsdp_reduce(s->unit));
    check_full(s);
    rdl_fsdp_free(s->unit);
    check_sums(s, 2);
    CHECK_OK(rdl_fsdp_reduce(s->unit));
    check_sums(s, 2);
}

static void live(rdl_world *world, void *arg)
{
    setting s = set_up(world, arg);

    fill_shards(&s);
    for (int step = 0; step < 2; step++) {
        gather_twice_and_free(&s);
        accumulate_and_reduce(&s);
        rdl_fsdp_zero(s.unit);
        check_sums(&s, 0);
        gather_twice_and_free(&s); /* gradients touch no value */
    }
    tear_down(&s);
}

/* Every number of ranks as shards, as replicas and as both; each parameter alone,
 * and all of them as a unit. */
static void live_everywhere(bool processes)
{
    static const int shapes[][2] = { { 1, 1 }, { 1, 2 }, { 2, 1 }, { 1, 3 },
                                     { 3, 1 }, { 1, 4 }, { 2, 2 }, { 4, 1 },
                                     { 1, 5 }, { 5, 1 }, { 1, 8 }, { 2, 4 },
                                     { 4, 2 }, { 8, 1 } };
    static const rdl_parameter parameters[] = {
        { "one", 1, 3 },   { "two", 2, 1 },       { "five", 5, 7 },
        { "seven", 7, 2 }, { "sixteen", 16, 16 }, { "seventeen", 17, 5 },
    };

    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        layout l = { shapes[k][0], shapes[k][1], parameters, 6 };

        run(l.replicate * l.shard, live, &l, processes);
        l.count = 1;
        for (int i = 0; i < 6; i++, l.parameters++)
            run(l.replicate * l.shard, live, &l, processes);
    }
}

RDL_TEST(a_unit_gathers_what_was_sharded_and_sums_what_was_added)
{
    live_everywhere(false);
}

RDL_TEST(a_unit_does_so_between_processes)
{
    live_everywhere(true);
}

static bool same_bits(const void *a, const void *b, size_t bytes)
{
    return memcmp(a, b, bytes) == 0;
}

/* --- cases ----------------------------------------------------------------- */

/* H28 a */
static void shard_five_rows(rdl_world *world, void *arg)
{
    static const size_t expected[] = { 2, 2, 1, 0 };
    static const rdl_parameter parameter = { "t", 5, 3 };
    layout l = { 1, 4, &parameter, 1 };
    setting s = set_up(world, &l);
    size_t first, rows;

    (void)arg;
    rdl_fsdp_rows(s.unit, 0, &first, &rows);
    CHECK_INT(rows, expected[rdl_world_rank(world)]);
    for (size_t k = 0; k < rows * 3; k++)
        rdl_fsdp_shard(s.unit, 0)[k] = (float)(first * 3 + k);
    CHECK_OK(rdl_fsdp_gather(s.unit));
    for (int k = 0; k < 15; k++)
        CHECK(rdl_fsdp_full(s.unit, 0)[k] == (float)k);
    tear_down(&s);
}

RDL_TEST(five_rows_on_four_ranks_are_two_two_one_and_none)
{
    both(4, shard_five_rows, NULL);
}

/* H33: one step of plain gradient descent, rate 1, on the mean over ranks. The
 * library sums; the case's mean is the program's business. */
static void descend(rdl_world *world, void *arg)
{
    static const float expected[] = { -2.5f, -25 };
    static const rdl_parameter parameter = { "w", 2, 1 };
    const int *shape = arg;
    layout l = { shape[0], shape[1], &parameter, 1 };
    setting s = set_up(world, &l);
    float rank = (float)rdl_world_rank(world);
    size_t first, rows;

    rdl_fsdp_gradient(s.unit, 0)[0] += rank + 1;
    rdl_fsdp_gradient(s.unit, 0)[1] += 10 * (rank + 1);
    CHECK_OK(rdl_fsdp_reduce(s.unit));
    rdl_fsdp_rows(s.unit, 0, &first, &rows);
    for (size_t k = 0; k < rows; k++) {
        rdl_fsdp_shard(s.unit, 0)[k] -=
            rdl_fsdp_shard_gradient(s.unit, 0)[k] / 4;
        CHECK(rdl_fsdp_shard(s.unit, 0)[k] == expected[first + k]);
    }
    if (shape[0] == 2)
        CHECK(rows == 1 && first == (size_t)rdl_world_rank(world) % 2);
    CHECK_OK(rdl_fsdp_gather(s.unit));
    CHECK(same_bits(rdl_fsdp_full(s.unit, 0), expected, sizeof expected));
    tear_down(&s);
}

RDL_TEST(replicas_add_their_gradients_too)
{
    both(4, descend, (int[]){ 2, 2 });
    both(4, descend, (int[]){ 1, 4 });
    both(4, descend, (int[]){ 4, 1 });
}

/* Values whose sum depends on the order: replicas still have the same bits, and so
 * has a second run. */
static void add_in_floats(rdl_world *world, void *arg)
{
    static const rdl_parameter parameters[] = { { "a", 7, 5 }, { "b", 3, 3 } };
    static const layout l = { 2, 2, parameters, 2 };
    setting s = set_up(world, &l);
    float sums[2][60], theirs[2 * 60];
    rdl_group replicate;

    (void)arg;
    memset(sums, 0, sizeof sums);
    CHECK_OK(rdl_mesh_group(s.mesh, "replicate", &replicate));
    for (int time = 0; time < 2; time++) {
        for (size_t k = 0; k < 35; k++)
            rdl_fsdp_gradient(s.unit, 0)[k] +=
                (float)exp((double)rdl_world_rank(world) * 5 + (double)k);
        CHECK_OK(rdl_fsdp_reduce(s.unit));
        memcpy(sums[time], rdl_fsdp_shard_gradient(s.unit, 0),
               20 * sizeof(float));
        rdl_fsdp_zero(s.unit);
    }
    CHECK(same_bits(sums[0], sums[1], sizeof sums[0]));
    CHECK_OK(rdl_all_gather(world, replicate, sums[0], theirs, 60, RDL_FLOAT32,
                            NULL));
    CHECK(same_bits(theirs, theirs + 60, sizeof sums[0]));
    tear_down(&s);
}

RDL_TEST(replicas_and_repetitions_have_the_same_bits)
{
    both(4, add_in_floats, NULL);
}

/* --- memory ---------------------------------------------------------------- */

#define UNITS 6

static size_t held(const rdl_fsdp *unit)
{
    size_t taken, all;

    rdl_pool_bytes(rdl_fsdp_pool(unit), &taken, &all);
    return all;
}

/* A step of a model of several units: gathered one at a time, forward and back. */
static void step(rdl_fsdp **units, size_t most)
{
    for (int k = 0; k < UNITS; k++) {
        CHECK_OK(rdl_fsdp_gather(units[k]));
        CHECK(held(units[0]) <= most);
        rdl_fsdp_free(units[k]);
    }
    for (int k = UNITS; k-- > 0;) {
        CHECK_OK(rdl_fsdp_gather(units[k]));
        CHECK(rdl_fsdp_gradient(units[k], 0) != NULL);
        rdl_fsdp_free(units[k]);
        CHECK_OK(rdl_fsdp_reduce(units[k]));
        CHECK(held(units[0]) <= most);
    }
}

static void train_units(rdl_world *world, void *arg)
{
    static const rdl_parameter small[] = { { "a", 100, 10 }, { "b", 10, 1 } };
    static const rdl_parameter large[] = { { "c", 400, 10 }, { "d", 10, 1 } };
    /* The larger unit twice, and some rows that only pad. */
    static const size_t most = 2 * 4096 * sizeof(float);
    layout l = { 1, rdl_world_size(world), small, 2 };
    rdl_mesh *mesh = make_mesh(world, &l);
    rdl_fsdp *units[UNITS];

    (void)arg;
    for (int k = 0; k < UNITS; k++) {
        l.parameters = k % 2 ? large : small;
        units[k] = make_unit(world, mesh, &l);
        CHECK_OK(rdl_fsdp_share(units[k], units[0]));
        CHECK_OK(rdl_fsdp_share(units[k], units[0]));
        CHECK(rdl_fsdp_pool(units[k]) == rdl_fsdp_pool(units[0]));
    }
    for (int i = 0; i < 3; i++)
        step(units, most);
    CHECK(held(units[0]) > 0); /* for the next step */
    for (int k = 0; k < UNITS - 1; k++)
        rdl_fsdp_destroy(units[k]);
    CHECK_INT(held(units[UNITS - 1]), 0); /* whoever is alone keeps nothing */
    CHECK_OK(rdl_fsdp_gather(units[UNITS - 1]));
    rdl_fsdp_free(units[UNITS - 1]);
    CHECK_INT(held(units[UNITS - 1]), 0);
    rdl_fsdp_destroy(units[UNITS - 1]);
    rdl_mesh_destroy(mesh);
}

RDL_TEST(units_that_share_never_hold_more_than_two_of_the_largest)
{
    both(2, train_units, NULL);
    both(3, train_units, NULL);
}

static void share_late(rdl_world *world, void *arg)
{
    static const rdl_parameter parameters[] = { { "a", 4, 4 }, { "b", 3, 3 } };
    static const layout l = { 1, 2, parameters, 2 };
    setting s = set_up(world, &l);
    rdl_fsdp *other = make_unit(world, s.mesh, &l);

    (void)arg;
    CHECK_OK(rdl_fsdp_gather(s.unit));
    CHECK_STATUS(rdl_fsdp_share(s.unit, other), RDL_STATE);
    CHECK_HAS(rdl_error_detail(), "'a' and 1 more is gathered");
    rdl_fsdp_free(s.unit);
    CHECK(rdl_fsdp_gradient(s.unit, 1) != NULL);
    CHECK_STATUS(rdl_fsdp_share(s.unit, other), RDL_STATE);
    CHECK_HAS(rdl_error_detail(), "has a gradient");
    CHECK_OK(rdl_fsdp_reduce(s.unit));
    CHECK_OK(rdl_fsdp_share(s.unit, other));
    CHECK_STATUS(rdl_fsdp_share(NULL, other), RDL_INVALID);
    CHECK_STATUS(rdl_fsdp_share(other, NULL), RDL_INVALID);
    /* What is still taken goes with the unit. */
    CHECK_OK(rdl_fsdp_gather(other));
    CHECK(rdl_fsdp_gradient(other, 1) != NULL);
    rdl_fsdp_destroy(other);
    tear_down(&s);
}

RDL_TEST(a_unit_in_use_cannot_begin_to_share)
{
    both(2, share_late, NULL);
}

#ifdef RDL_FAULTS
/* All ranks at the same call, so that nobody waits for one that gave up. */
static void gather_without_memory(const setting *s)
{
    for (long n = 1; n <= 2; n++) { /* the whole; the shards on their way */
        rdl_fault plan = { .memory_at = n };

        rdl_fault_use(&plan);
        CHECK_STATUS(rdl_fsdp_gather(s->unit), RDL_NO_MEMORY);
        rdl_fault_use(NULL);
        CHECK_HAS(rdl_error_detail(), "of 'a' and 1 more");
        CHECK(rdl_fsdp_full(s->unit, 0) == NULL);
        CHECK_INT(held(s->unit), 0);
    }
}

static void reduce_without_memory(const setting *s)
{
    rdl_fault plan = { .memory_at = 1 };

    rdl_fault_use(&plan);
    CHECK(rdl_fsdp_gradient(s->unit, 0) == NULL);
    CHECK_HAS(rdl_error_detail(), "the whole gradient of 'a' and 1 more");
    add_gradients(s, 1);
    plan = (rdl_fault){ .memory_at = 1 };
    CHECK_STATUS(rdl_fsdp_reduce(s->unit), RDL_NO_MEMORY);
    CHECK_HAS(rdl_error_detail(), "the gradient on its way");
    rdl_fault_use(NULL);
}

static void lack_memory(rdl_world *world, void *arg)
{
    static const rdl_parameter parameters[] = { { "a", 4, 4 }, { "b", 3, 3 } };
    static const layout l = { 1, 2, parameters, 2 };
    setting s = set_up(world, &l);

    (void)arg;
    fill_shards(&s);
    gather_without_memory(&s);
    CHECK_OK(rdl_fsdp_gather(s.unit));
    check_full(&s);
    rdl_fsdp_free(s.unit);
    reduce_without_memory(&s);
    CHECK_OK(rdl_fsdp_reduce(s.unit)); /* nothing of it was lost */
    check_sums(&s, 1);
    tear_down(&s);
}

RDL_TEST(a_call_without_memory_may_be_made_again)
{
    both(2, lack_memory, NULL);
}

/* A group of one needs nobody, so that every allocation may fail. */
static void create_without_memory(rdl_world *world, void *arg)
{
    static const rdl_parameter parameters[] = { { "a", 4, 4 }, { "b", 3, 3 } };

    (void)arg;
    for (long n = 1;; n++) {
        rdl_fault plan = { .memory_at = n };
        rdl_fsdp *unit = NULL;
        rdl_status st;

        rdl_fault_use(&plan);
        st = rdl_fsdp_create(world, RDL_WORLD, RDL_WORLD, parameters, 2, &unit);
        rdl_fault_use(NULL);
        if (!plan.fired) {
            CHECK_OK(st);
            rdl_fsdp_destroy(unit);
            CHECK(n > 5);
            return;
        }
        CHECK_STATUS(st, RDL_NO_MEMORY);
        CHECK_HAS(rdl_error_detail(), "no memory");
        CHECK(unit == NULL);
    }
}

RDL_TEST(a_unit_that_cannot_be_made_leaves_nothing)
{
    run(1, create_without_memory, NULL, false);
}
#endif

/* --- what goes wrong ------------------------------------------------------- */

static void refuse_unit(rdl_world *world, rdl_group shard, rdl_group replicate,
                        const rdl_parameter *parameters, int count,
                        const char *part)
{
    rdl_fsdp *unit = NULL;

    CHECK_STATUS(
        rdl_fsdp_create(world, shard, replicate, parameters, count, &unit),
        RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), part);
    CHECK(unit == NULL);
}

static void refuse(rdl_world *world, void *arg)
{
    static const rdl_parameter good = { "w", 5, 3 };
    static const rdl_parameter flat = { "w", 5, 0 };
    static const rdl_parameter huge = { "w", SIZE_MAX / 2, 3 };
    int me = rdl_world_rank(world);
    rdl_group self, other, stale = { 5, 5, 5 };
    uint64_t before = collectives(world);

    (void)arg;
    CHECK_OK(rdl_group_open(world, &me, 1, NULL, &self));
    CHECK_OK(rdl_group_open(world, (int[]){ 1 - me }, 1, NULL, &other));
    refuse_unit(world, RDL_WORLD, self, &flat, 1, "5 rows of 0 columns");
    refuse_unit(world, RDL_WORLD, self, &huge, 1, "for 2 ranks: the size over");
    refuse_unit(world, RDL_WORLD, self, NULL, 1, "at least one parameter");
    refuse_unit(world, RDL_WORLD, self, &good, 0, "at least one parameter");
    refuse_unit(world, RDL_WORLD, other, &good, 1, "not in the replicate group");
    refuse_unit(world, other, self, &good, 1, "is not in the shard group");
    refuse_unit(world, stale, self, &good, 1, "belongs to another world");
    refuse_unit(NULL, RDL_WORLD, self, &good, 1, "NULL");
    refuse_unit(world, RDL_WORLD, RDL_WORLD, &good, 1,
                me ? "rank 0 is in both the shard group of 2 ranks"
                   : "rank 1 is in both the shard group of 2 ranks");
    CHECK_STATUS(rdl_fsdp_create(world, RDL_WORLD, self, &good, 1, NULL),
                 RDL_INVALID);
    CHECK_INT(collectives(world), before);
    CHECK_OK(rdl_group_close(world, self));
    CHECK_OK(rdl_group_close(world, other));
}

RDL_TEST(a_unit_that_cannot_be_is_refused_before_anybody_waits)
{
    both(2, refuse, NULL);
}

static void ask_wrongly(rdl_world *world, void *arg)
{
    static const rdl_parameter parameter = { "w", 5, 3 };
    layout l = { 1, 2, &parameter, 1 };
    setting s = set_up(world, &l);
    size_t first = 9, rows = 9;
    double square = -1;

    (void)arg;
    for (int i = -1; i < 2; i += 2) {
        CHECK(rdl_fsdp_shard(s.unit, i) == NULL);
        CHECK_HAS(rdl_error_detail(), i < 0 ? "parameter -1 is outside 0..0"
                                            : "parameter 1 is outside 0..0");
        CHECK(rdl_fsdp_shard_gradient(s.unit, i) == NULL);
        CHECK(rdl_fsdp_full(s.unit, i) == NULL);
        CHECK(rdl_fsdp_gradient(s.unit, i) == NULL);
        rdl_fsdp_rows(s.unit, i, &first, &rows);
        CHECK(first == 0 && rows == 0);
    }
    CHECK(rdl_fsdp_shard(NULL, 0) == NULL);
    CHECK(rdl_fsdp_full(NULL, 0) == NULL);
    CHECK(rdl_fsdp_gradient(NULL, 0) == NULL);
    CHECK_STATUS(rdl_fsdp_gather(NULL), RDL_INVALID);
    CHECK_STATUS(rdl_fsdp_reduce(NULL), RDL_INVALID);
    rdl_fsdp_rows(s.unit, 0, NULL, NULL);
    rdl_fsdp_square(NULL, &square);
    CHECK(square == 0);
    rdl_fsdp_square(s.unit, NULL);
    rdl_fsdp_zero(NULL);
    rdl_fsdp_free(NULL);
    rdl_fsdp_destroy(NULL);
    tear_down(&s);
}

RDL_TEST(a_parameter_that_is_not_there_is_null_with_a_sentence)
{
    both(2, ask_wrongly, NULL);
}

/* Blocks of one size, parameters in another order: every rank hears of it, also
 * those whose own groups agree, and nobody waits. */
static void swap_on_rank_two(rdl_world *world, void *arg)
{
    static const rdl_parameter here[] = { { "q", 4, 4 }, { "k", 4, 4 } };
    static const rdl_parameter there[] = { { "k", 4, 4 }, { "q", 4, 4 } };
    layout l = { 2, 2, here, 2 };
    rdl_mesh *mesh = make_mesh(world, &l);
    rdl_group shard, replicate;
    rdl_fsdp *unit;

    (void)arg;
    CHECK_OK(rdl_mesh_group(mesh, "shard", &shard));
    CHECK_OK(rdl_mesh_group(mesh, "replicate", &replicate));
    CHECK_STATUS(rdl_fsdp_create(world, shard, replicate,
                                 rdl_world_rank(world) == 2 ? there : here, 2,
                                 &unit),
                 RDL_MISMATCH);
    CHECK_HAS(rdl_error_detail(), "2 ");
    CHECK_HAS(rdl_error_detail(), "give parameters of other names or sizes");
    rdl_check_digits(world, RDL_WORLD, 1111); /* no group has failed */
    rdl_mesh_destroy(mesh);
}

RDL_TEST(ranks_that_give_other_parameters_all_hear_of_it)
{
    both(4, swap_on_rank_two, NULL);
}

/* Rank 1 reduces while the others gather. */
static void disagree(rdl_world *world, void *arg)
{
    static const rdl_parameter parameters[] = { { "a", 4, 4 }, { "b", 3, 3 } };
    static const layout l = { 1, 4, parameters, 2 };
    setting s = set_up(world, &l);

    (void)arg;
    if (rdl_world_rank(world) == 1) {
        add_gradients(&s, 1);
        CHECK_STATUS(rdl_fsdp_reduce(s.unit), RDL_MISMATCH);
        CHECK_HAS(rdl_error_detail(),
                  "reducing the gradient of 'a' and 1 more");
        check_sums(&s, 0);
    } else {
        CHECK_STATUS(rdl_fsdp_gather(s.unit), RDL_MISMATCH);
        CHECK_HAS(rdl_error_detail(), "gathering 'a' and 1 more: ");
        CHECK(rdl_fsdp_full(s.unit, 0) == NULL);
    }
    CHECK_STATUS(rdl_fsdp_gather(s.unit), RDL_MISMATCH);
    tear_down(&s);
}

RDL_TEST(ranks_in_other_parts_of_the_step_get_the_same_verdict)
{
    both(4, disagree, NULL);
}

/* Beside the caller, on streams: the same sums, step after step. */
static void train_on_streams(rdl_world *world, void *arg)
{
    static const rdl_parameter parameters[] = { { "w", 5, 3 }, { "b", 7, 1 } };
    rdl_group alone;
    int rank = rdl_world_rank(world), size = rdl_world_size(world);
    int me[] = { rank };
    rdl_stream *gathers, *reductions;
    rdl_fsdp *units[3];
    int64_t took, waited;

    (void)arg;
    CHECK_OK(rdl_group_open(world, me, 1, NULL, &alone));
    CHECK_OK(rdl_stream_create(world, "gather", &gathers));
    CHECK_OK(rdl_stream_create(world, "reduce", &reductions));
    for (int u = 0; u < 3; u++) {
        CHECK_OK(
            rdl_fsdp_create(world, RDL_WORLD, alone, parameters, 2, &units[u]));
        CHECK_OK(rdl_fsdp_share(units[u], units[0]));
        for (int p = 0; p < 2; p++) {
            size_t first, rows, columns = parameters[p].columns;

            rdl_fsdp_rows(units[u], p, &first, &rows);
            for (size_t i = 0; i < rows * columns; i++)
                rdl_fsdp_shard(units[u], p)[i] =
                    (float)(100 * u + 10 * p) + (float)(first * columns + i);
        }
    }
    for (int step = 1; step <= 3; step++) {
        CHECK_OK(rdl_fsdp_prefetch(units[0], gathers));
        for (int u = 0; u < 3; u++) {
            CHECK_OK(rdl_fsdp_gather(units[u]));
            if (u < 2)
                CHECK_OK(rdl_fsdp_prefetch(units[u + 1], gathers));
            for (int p = 0; p < 2; p++)
                for (size_t i = 0;
                     i < parameters[p].rows * parameters[p].columns; i++) {
                    CHECK(rdl_fsdp_full(units[u], p)[i] ==
                          (float)(100 * u + 10 * p) + (float)i);
                    rdl_fsdp_gradient(units[u], p)[i] += (float)(rank + 1);
                }
            rdl_fsdp_free(units[u]);
            CHECK_OK(rdl_fsdp_reduce_on(units[u], reductions));
        }
        for (int u = 0; u < 3; u++) {
            CHECK_OK(rdl_fsdp_settle(units[u]));
            for (int p = 0; p < 2; p++) {
                size_t first, rows;

                rdl_fsdp_rows(units[u], p, &first, &rows);
                for (size_t i = 0; i < rows * parameters[p].columns; i++)
                    CHECK_INT((int)rdl_fsdp_shard_gradient(units[u], p)[i],
                              step * size * (size + 1) / 2);
            }
        }
    }
    rdl_fsdp_times(units[1], &took, &waited);
    CHECK(size == 1 || took > 0);
    CHECK_OK(rdl_fsdp_prefetch(units[1], gathers)); /* never used */
    CHECK_OK(rdl_fsdp_reduce_on(units[2], reductions));
    for (int u = 0; u < 3; u++)
        rdl_fsdp_destroy(units[u]);
    CHECK_OK(rdl_stream_destroy(gathers));
    CHECK_OK(rdl_stream_destroy(reductions));
    CHECK_OK(rdl_group_close(world, alone));
}

RDL_TEST(units_on_streams_give_the_same_values_and_sums)
{
    for (int size = 1; size <= 4; size++) {
        rdl_test_job job = { .size = size };

        rdl_test_worlds(&job, train_on_streams, NULL);
        job.processes = true;
        rdl_test_worlds(&job, train_on_streams, NULL);
    }
}
