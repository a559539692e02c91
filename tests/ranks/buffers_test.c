/* Buffers that cannot be: of every operation, on two ranks, each of which is the root
 * of what has one, so that both are told and nobody waits. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/worlds.h"

#include <stdio.h>
#include <string.h>

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])
#define SIZE 2
#define ROOM 4096

typedef rdl_status (*operation)(rdl_world *world, const void *in, void *out,
                                size_t count);

static rdl_status all_reduce(rdl_world *world, const void *in, void *out,
                             size_t count)
{
    return rdl_all_reduce(world, RDL_WORLD, in, out, count, RDL_FLOAT32,
                          RDL_SUM, NULL);
}

static rdl_status reduce(rdl_world *world, const void *in, void *out,
                         size_t count)
{
    return rdl_reduce(world, RDL_WORLD, in, out, count, RDL_FLOAT32, RDL_SUM,
                      rdl_world_rank(world), NULL);
}

static rdl_status all_gather(rdl_world *world, const void *in, void *out,
                             size_t count)
{
    return rdl_all_gather(world, RDL_WORLD, in, out, count, RDL_FLOAT32, NULL);
}

static rdl_status gather(rdl_world *world, const void *in, void *out,
                         size_t count)
{
    return rdl_gather(world, RDL_WORLD, in, out, count, RDL_FLOAT32,
                      rdl_world_rank(world), NULL);
}

static rdl_status reduce_scatter(rdl_world *world, const void *in, void *out,
                                 size_t count)
{
    return rdl_reduce_scatter(world, RDL_WORLD, in, out, count, RDL_FLOAT32,
                              RDL_SUM, NULL);
}

static rdl_status scatter(rdl_world *world, const void *in, void *out,
                          size_t count)
{
    return rdl_scatter(world, RDL_WORLD, in, out, count, RDL_FLOAT32,
                       rdl_world_rank(world), NULL);
}

static rdl_status all_to_all(rdl_world *world, const void *in, void *out,
                             size_t count)
{
    return rdl_all_to_all(world, RDL_WORLD, in, out, count, RDL_FLOAT32, NULL);
}

static rdl_status all_gather_v(rdl_world *world, const void *in, void *out,
                               size_t count)
{
    const size_t counts[SIZE] = { count, count };

    return rdl_all_gather_v(world, RDL_WORLD, in, out, counts, RDL_FLOAT32,
                            NULL);
}

static rdl_status reduce_scatter_v(rdl_world *world, const void *in, void *out,
                                   size_t count)
{
    const size_t counts[SIZE] = { count, count };

    return rdl_reduce_scatter_v(world, RDL_WORLD, in, out, counts, RDL_FLOAT32,
                                RDL_SUM, NULL);
}

static rdl_status all_to_all_v(rdl_world *world, const void *in, void *out,
                               size_t count)
{
    const size_t counts[SIZE] = { count, count };

    return rdl_all_to_all_v(world, RDL_WORLD, in, counts, out, counts,
                            RDL_FLOAT32, NULL);
}

/* The one way in which input and output may share memory: as this rank's block of the
 * other. */
typedef enum way { NO_WAY, SAME, INPUT_IN_OUTPUT, OUTPUT_IN_INPUT } way;

typedef struct subject {
    const char *name;
    operation call;
    int in; /* blocks */
    int out;
    way in_place;
} subject;

static const subject subjects[] = {
    { "all_reduce", all_reduce, 1, 1, SAME },
    { "reduce", reduce, 1, 1, SAME },
    { "all_gather", all_gather, 1, SIZE, INPUT_IN_OUTPUT },
    { "gather", gather, 1, SIZE, INPUT_IN_OUTPUT },
    { "reduce_scatter", reduce_scatter, SIZE, 1, OUTPUT_IN_INPUT },
    { "scatter", scatter, SIZE, 1, OUTPUT_IN_INPUT },
    { "all_to_all", all_to_all, SIZE, SIZE, NO_WAY },
    { "all_gather_v", all_gather_v, 1, SIZE, INPUT_IN_OUTPUT },
    { "reduce_scatter_v", reduce_scatter_v, SIZE, 1, OUTPUT_IN_INPUT },
    { "all_to_all_v", all_to_all_v, SIZE, SIZE, NO_WAY },
};

static bool is_in_place(const subject *s, long shift, long own_block)
{
    switch (s->in_place) {
    case SAME:
        return shift == 0;
    case INPUT_IN_OUTPUT:
        return shift == -own_block;
    case OUTPUT_IN_INPUT:
        return shift == own_block;
    default:
        return false;
    }
}

/* The output begins shift bytes behind the input. */
static void overlap_everywhere(rdl_world *world, const subject *s, size_t count)
{
    long block = (long)count * 4, me = rdl_world_rank(world);
    unsigned char room[ROOM], before[ROOM];
    unsigned char *in = room + ROOM / 2;
    int refused = 0;

    memset(room, 0x5a, ROOM);
    memcpy(before, room, ROOM);
    for (long shift = 1 - s->out * block; shift < s->in * block; shift++) {
        if (is_in_place(s, shift, me * block))
            continue;
        CHECK_STATUS(s->call(world, in, in + shift, count), RDL_INVALID);
        CHECK_HAS(rdl_error_detail(), s->name);
        CHECK_HAS(rdl_error_detail(), "overlap");
        refused++;
    }
    CHECK(refused > 0);
    CHECK(memcmp(room, before, ROOM) == 0);
}

static void overlap_all(rdl_world *world, void *arg)
{
    (void)arg;
    for (size_t i = 0; i < LENGTH(subjects); i++) {
        overlap_everywhere(world, &subjects[i], 1);
        overlap_everywhere(world, &subjects[i], 17);
    }
    rdl_check_digits(world, RDL_WORLD, 11);
}

RDL_TEST(buffers_that_overlap_by_any_byte_are_refused_untouched)
{
    rdl_test_job job = { .size = SIZE };

    rdl_test_worlds(&job, overlap_all, NULL);
}

static void give_null(rdl_world *world, void *arg)
{
    float in[2 * SIZE] = { 1, 2, 3, 4 }, out[2 * SIZE] = { 0 };

    (void)arg;
    for (size_t i = 0; i < LENGTH(subjects); i++) {
        const subject *s = &subjects[i];

        CHECK_STATUS(s->call(world, NULL, out, 1), RDL_INVALID);
        CHECK_HAS(rdl_error_detail(), "input is NULL");
        CHECK_STATUS(s->call(world, in, NULL, 1), RDL_INVALID);
        CHECK_HAS(rdl_error_detail(), "output is NULL");
        CHECK_STATUS(s->call(world, NULL, NULL, 1), RDL_INVALID);
        CHECK_HAS(rdl_error_detail(), "NULL");
        CHECK(out[0] == 0 && in[0] == 1);
    }
    CHECK_STATUS(rdl_broadcast(world, RDL_WORLD, NULL, 1, RDL_FLOAT32, 0, NULL),
                 RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "NULL");
    rdl_check_digits(world, RDL_WORLD, 11);
}

RDL_TEST(null_with_a_count_is_refused)
{
    rdl_test_job job = { .size = SIZE };

    rdl_test_worlds(&job, give_null, NULL);
}

/* Roots are one rank's here: the call is made. */
static void give_nothing(rdl_world *world, void *arg)
{
    (void)arg;
    for (size_t i = 0; i < LENGTH(subjects); i++)
        if (subjects[i].call != reduce && subjects[i].call != gather &&
            subjects[i].call != scatter)
            CHECK_OK(subjects[i].call(world, NULL, NULL, 0));
    CHECK_OK(rdl_broadcast(world, RDL_WORLD, NULL, 0, RDL_FLOAT32, 1, NULL));
    CHECK_OK(rdl_reduce(world, RDL_WORLD, NULL, NULL, 0, RDL_FLOAT32, RDL_SUM,
                        1, NULL));
    CHECK_OK(rdl_gather(world, RDL_WORLD, NULL, NULL, 0, RDL_FLOAT32, 0, NULL));
    CHECK_OK(rdl_scatter(world, RDL_WORLD, NULL, NULL, 0, RDL_FLOAT32, 0, NULL));
    if (rdl_world_rank(world) == 0)
        CHECK_OK(rdl_send(world, RDL_WORLD, NULL, 0, RDL_FLOAT32, 1, NULL));
    else
        CHECK_OK(rdl_receive(world, RDL_WORLD, NULL, 0, RDL_FLOAT32, 0, NULL));
    rdl_check_digits(world, RDL_WORLD, 11);
}

RDL_TEST(null_without_a_count_takes_its_turn)
{
    rdl_test_job job = { .size = SIZE };

    rdl_test_worlds(&job, give_nothing, NULL);
}

/* Counts whose bytes are more than 64 bits hold, once or for all members. */
static void count_too_far(rdl_world *world, void *arg)
{
    static const size_t counts[] = {
        SIZE_MAX,        SIZE_MAX / 2,          SIZE_MAX / 4 + 1,
        (size_t)1 << 62, ((size_t)1 << 62) + 1, SIZE_MAX / 4 / SIZE + 1,
    };
    float x[8] = { 1 }, y[8] = { 2 };

    (void)arg;
    for (size_t i = 0; i < LENGTH(subjects); i++)
        for (size_t c = 0; c < LENGTH(counts); c++) {
            CHECK_STATUS(subjects[i].call(world, x, y, counts[c]), RDL_INVALID);
            CHECK_HAS(rdl_error_detail(), "the size overflows");
        }
    CHECK(x[0] == 1 && y[0] == 2);
    rdl_check_digits(world, RDL_WORLD, 11);
}

RDL_TEST(counts_whose_bytes_overflow_are_refused_by_every_operation)
{
    rdl_test_job job = { .size = SIZE };

    rdl_test_worlds(&job, count_too_far, NULL);
}
