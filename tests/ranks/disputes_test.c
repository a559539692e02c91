/* Every operation against every way to differ from it (cases H09, H10, H11): who is
 * named, in which words, and that nothing was written; with calls compared as ever
 * and strictly. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/plan.h"
#include "comm/verdict.h"
#include "support/worlds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANKS_MOST 8
#define COUNT_MOST ((size_t)3000)
#define ELEMENT ((size_t)4) /* bytes */
#define ROOM (RANKS_MOST * (COUNT_MOST + 1) * ELEMENT)
#define UNTOUCHED 0x5a
#define SENTENCE 1024

typedef struct call {
    rdl_operation operation;
    size_t count;
    size_t counts[RANKS_MOST];
    rdl_dtype dtype;
    rdl_reduction reduction;
    int root;
    double factor;
} call;

/* --- what the operations are like ------------------------------------------- */

static bool has_list(rdl_operation o)
{
    return o == RDL_OP_ALL_GATHER_V || o == RDL_OP_REDUCE_SCATTER_V;
}

static bool has_count(rdl_operation o)
{
    return o != RDL_OP_BARRIER && o != RDL_OP_ALL_TO_ALL_V && !has_list(o);
}

static bool has_root(rdl_operation o)
{
    return o == RDL_OP_BROADCAST || o == RDL_OP_REDUCE || o == RDL_OP_GATHER ||
           o == RDL_OP_SCATTER;
}

static size_t total(const call *c, int size)
{
    size_t sum = 0;

    for (int i = 0; i < size; i++)
        sum += c->counts[i];
    return sum;
}

typedef struct buffers {
    unsigned char *input;
    unsigned char *output;
} buffers;

static rdl_status make_call(rdl_world *w, rdl_group g, const call *c,
                            const buffers *b)
{
    rdl_call options = { .factor = c->factor };

    switch (c->operation) {
    case RDL_OP_BROADCAST:
        return rdl_broadcast(w, g, b->output, c->count, c->dtype, c->root,
                             &options);
    case RDL_OP_REDUCE:
        return rdl_reduce(w, g, b->input, b->output, c->count, c->dtype,
                          c->reduction, c->root, &options);
    case RDL_OP_ALL_REDUCE:
        return rdl_all_reduce(w, g, b->input, b->output, c->count, c->dtype,
                              c->reduction, &options);
    case RDL_OP_GATHER:
        return rdl_gather(w, g, b->input, b->output, c->count, c->dtype,
                          c->root, &options);
    case RDL_OP_SCATTER:
        return rdl_scatter(w, g, b->input, b->output, c->count, c->dtype,
                           c->root, &options);
    case RDL_OP_ALL_GATHER:
        return rdl_all_gather(w, g, b->input, b->output, c->count, c->dtype,
                              &options);
    case RDL_OP_REDUCE_SCATTER:
        return rdl_reduce_scatter(w, g, b->input, b->output, c->count, c->dtype,
                                  c->reduction, &options);
    case RDL_OP_ALL_TO_ALL:
        return rdl_all_to_all(w, g, b->input, b->output, c->count, c->dtype,
                              &options);
    case RDL_OP_ALL_GATHER_V:
        return rdl_all_gather_v(w, g, b->input, b->output, c->counts, c->dtype,
                                &options);
    case RDL_OP_REDUCE_SCATTER_V:
        return rdl_reduce_scatter_v(w, g, b->input, b->output, c->counts,
                                    c->dtype, c->reduction, &options);
    default:
        return rdl_barrier(w, g, &options);
    }
}

/* all_to_all_v as a whole table: c->counts[k] from i to j, k = i + j. odd sends one
 * more to the first. */
static rdl_status make_table_call(rdl_world *w, rdl_group g, const call *c,
                                  bool odd, const buffers *b)
{
    int rank = rdl_world_rank(w), size = rdl_world_size(w);
    size_t in[RANKS_MOST] = { 0 }, out[RANKS_MOST];

    for (int i = 0; i < size; i++)
        in[i] = out[i] = c->counts[(rank + i) % size];
    in[0] += odd;
    return rdl_all_to_all_v(w, g, b->input, in, b->output, out, c->dtype, NULL);
}

static rdl_status make(rdl_world *w, rdl_group g, const call *c,
                       const buffers *b)
{
    return c->operation == RDL_OP_ALL_TO_ALL_V
               ? make_table_call(w, g, c, false, b)
               : make_call(w, g, c, b);
}

/* The words for it. */
static void write_text(const call *c, int size, char text[300])
{
    char *at = text;

    at += sprintf(at, "%s", rdl_operation_name(c->operation));
    if (c->operation == RDL_OP_BARRIER)
        return;
    at += sprintf(at, "(");
    if (c->operation != RDL_OP_ALL_TO_ALL_V)
        at += sprintf(at, "%zu ",
                      has_list(c->operation) ? total(c, size) : c->count);
    at += sprintf(at, "%s", rdl_dtype_name(c->dtype));
    if (has_list(c->operation)) {
        at += sprintf(at, " in all, counts [%zu", c->counts[0]);
        for (int i = 1; i < size; i++)
            at += sprintf(at, ",%zu", c->counts[i]);
        at += sprintf(at, "]");
    }
    if (has_root(c->operation))
        at += sprintf(at, ", root %d", c->root);
    if (rdl_operation_reduces(c->operation))
        at += sprintf(at, ", %s", rdl_reduction_name(c->reduction));
    if (c->factor != 0)
        at += sprintf(at, " by %g", c->factor);
    sprintf(at, ")");
}

/* --- ways to differ ---------------------------------------------------------- */

typedef enum difference {
    IN_OPERATION,
    IN_COUNT,
    IN_DTYPE,
    IN_ROOT,
    IN_REDUCTION,
    IN_COUNTS,
    IN_FACTOR,
    DIFFERENCES
} difference;

static call usual(rdl_operation operation)
{
    return (call){ .operation = operation,
                   /* some fit a line, some go through staging */
                   .count = operation % 2 ? 3 : COUNT_MOST,
                   .counts = { 1, 2, 0, 700, 3, 0, 0, 5 },
                   .dtype = RDL_FLOAT32,
                   .reduction = RDL_SUM };
}

/* What most call, and what the others call; false: they cannot differ so. */
static bool differ(difference d, call *most, call *odd)
{
    rdl_operation o = most->operation;

    *odd = *most;
    switch (d) {
    case IN_OPERATION:
        *odd = usual((o + 1) % RDL_OP_SEND_RECV);
        return true;
    case IN_COUNT:
        odd->count++;
        return has_count(o);
    case IN_DTYPE: /* of as many bytes */
        odd->dtype = RDL_INT32;
        return o != RDL_OP_BARRIER;
    case IN_ROOT:
        odd->root = 1;
        return has_root(o);
    case IN_REDUCTION:
        odd->reduction = RDL_MAX;
        return rdl_operation_reduces(o);
    case IN_COUNTS: /* with the same sum */
        odd->counts[0] = 2;
        odd->counts[1] = 1;
        return has_list(o);
    default:
        most->reduction = odd->reduction = RDL_PREMUL_SUM;
        most->factor = 0.5;
        odd->factor = 0.1;
        return rdl_operation_reduces(o);
    }
}

/* --- one dispute ------------------------------------------------------------- */

/* Who is odd: a bit for each rank. */
typedef struct dispute {
    int size;
    unsigned odd;
    const char *blame;
    const char *most; /* as the sentence lists them */
    const char *odds;
} dispute;

static const dispute disputes[] = {
    { 2, 2, "no majority; ", "rank 0: ", "rank 1: " },
    { 3, 1, "rank 0 differs from ranks 1,2; ", "ranks 1,2: ", "rank 0: " },
    { 3, 2, "rank 1 differs from ranks 0,2; ", "ranks 0,2: ", "rank 1: " },
    { 4, 8, "rank 3 differs from ranks 0,1,2; ", "ranks 0,1,2: ", "rank 3: " },
    { 4, 6, "no majority; ", "ranks 0,3: ", "ranks 1,2: " },
    { 8, 32, "rank 5 differs from ranks 0-4,6,7; ",
      "ranks 0-4,6,7: ", "rank 5: " },
    { 8, 0xc1, "ranks 0,6,7 differ from ranks 1-5; ",
      "ranks 1-5: ", "ranks 0,6,7: " },
    { 8, 0xaa, "no majority; ", "ranks 0,2,4,6: ", "ranks 1,3,5,7: " },
};

#define N_DISPUTES (sizeof disputes / sizeof *disputes)

static void check_untouched(const buffers *b)
{
    for (size_t i = 0; i < ROOM; i++)
        if (b->output[i] != UNTOUCHED || b->input[i] != 1)
            RDL_TEST_FAIL("byte %zu was written", i);
}

/* All ranks of the world say the same. */
static void compare_sentences(rdl_world *world, const char *mine)
{
    char text[SENTENCE] = "", all[RANKS_MOST * SENTENCE];

    snprintf(text, sizeof text, "%s", mine);
    CHECK_OK(
        rdl_all_gather(world, RDL_WORLD, text, all, SENTENCE, RDL_UINT8, NULL));
    for (int rank = 0; rank < rdl_world_size(world); rank++)
        CHECK_TEXT(all + rank * SENTENCE, mine);
}

/* A group on which one call has gone well, and buffers to see writes in. */
static rdl_group begin(rdl_world *world, const char *name, buffers *b)
{
    static const int all[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    rdl_group group;

    memset(b->output, UNTOUCHED, ROOM);
    memset(b->input, 1, ROOM);
    CHECK_OK(rdl_group_open(world, all, rdl_world_size(world), name, &group));
    CHECK_OK(rdl_barrier(world, group, NULL));
    return group;
}

static void check_camp(const char *sentence, const char *who, const call *c,
                       int size)
{
    char text[300], part[400];

    write_text(c, size, text);
    snprintf(part, sizeof part, "; %s%s", who, text);
    CHECK_HAS(sentence, part);
}

/* The order, too: those that differ make the two calls the other way round, and
 * the first of them ends the group. */
static void dispute_once(rdl_world *world, const dispute *d, const call *most,
                         const call *odd, const char *name, buffers *b)
{
    bool differs = d->odd >> rdl_world_rank(world) & 1;
    char sentence[SENTENCE];
    rdl_group group = begin(world, name, b);

    CHECK_STATUS(make(world, group, differs ? odd : most, b), RDL_MISMATCH);
    snprintf(sentence, sizeof sentence, "%s", rdl_error_detail());
    CHECK_HAS(sentence, "mismatch in call #2 on group '");
    CHECK_HAS(sentence, d->blame);
    check_camp(sentence, d->most, most, d->size);
    check_camp(sentence, d->odds, odd, d->size);
    CHECK_STATUS(make(world, group, differs ? most : odd, b), RDL_MISMATCH);
    CHECK_TEXT(rdl_error_detail(), sentence);
    check_untouched(b);
    compare_sentences(world, sentence);
    CHECK_OK(rdl_group_close(world, group));
}

static void dispute_all_ways(rdl_world *world, size_t which, buffers *b)
{
    char name[RDL_NAME_MOST + 1];
    call odd;

    for (int o = 0; o < RDL_OP_SEND_RECV; o++)
        for (int d = 0; d < DIFFERENCES; d++) {
            call most = usual((rdl_operation)o);

            if (!differ((difference)d, &most, &odd))
                continue;
            snprintf(name, sizeof name, "%s-%d-%zu",
                     rdl_operation_name((rdl_operation)o), d, which);
            dispute_once(world, &disputes[which], &most, &odd, name, b);
        }
}

static buffers make_buffers(void)
{
    buffers b = { malloc(ROOM), malloc(ROOM) };

    CHECK(b.input != NULL && b.output != NULL);
    return b;
}

static void free_buffers(buffers *b)
{
    free(b->input);
    free(b->output);
}

static void dispute_all(rdl_world *world, void *arg)
{
    static const int64_t digits[] = { 0, 1, 11, 111, 1111, 0, 0, 0, 11111111 };
    int size = rdl_world_size(world);
    buffers b = make_buffers();

    (void)arg;
    for (size_t i = 0; i < N_DISPUTES; i++)
        if (disputes[i].size == size)
            dispute_all_ways(world, i, &b);
    rdl_check_digits(world, RDL_WORLD, digits[size]);
    free_buffers(&b);
}

static void for_each_size(rdl_check check, rdl_world_body body)
{
    static const int sizes[] = { 2, 3, 4, 8 };

    for (int i = 0; i < 4; i++) {
        rdl_test_job job = { .size = sizes[i], .check = check };

        rdl_test_worlds(&job, body, NULL);
    }
}

RDL_TEST(every_way_to_differ_is_told_on_all_ranks_by_the_very_call)
{
    for_each_size(RDL_CHECK_DEFAULT, dispute_all);
}

RDL_TEST(every_way_to_differ_is_told_where_calls_are_compared_strictly)
{
    for_each_size(RDL_CHECK_STRICT, dispute_all);
}

RDL_TEST(processes_that_differ_in_any_way_are_told_too)
{
    rdl_test_job job = { .size = 3, .processes = true };

    rdl_test_worlds(&job, dispute_all, NULL);
    job.check = RDL_CHECK_STRICT;
    rdl_test_worlds(&job, dispute_all, NULL);
}

/* --- pairs ------------------------------------------------------------------- */

/* The last rank sends one more to the first than that expects. */
static void dispute_a_pair(rdl_world *world, void *arg)
{
    int size = rdl_world_size(world), last = size - 1;
    call c = usual(RDL_OP_ALL_TO_ALL_V);
    char part[200], sentence[SENTENCE];
    buffers b = make_buffers();
    rdl_group group = begin(world, "pairs", &b);

    (void)arg;
    CHECK_STATUS(
        make_table_call(world, group, &c, rdl_world_rank(world) == last, &b),
        RDL_MISMATCH);
    snprintf(sentence, sizeof sentence, "%s", rdl_error_detail());
    snprintf(
        part, sizeof part,
        "all_to_all_v: rank %d sends %zu elements to rank 0, which expects "
        "%zu; rank %d: all_to_all_v(float32, sends [%zu,",
        last, c.counts[last] + 1, c.counts[last], last, c.counts[last] + 1);
    CHECK_HAS(sentence, part);
    CHECK_HAS(sentence, "; rank 0: all_to_all_v(float32, sends [1,2");
    check_untouched(&b);
    compare_sentences(world, sentence);
    CHECK_OK(rdl_group_close(world, group));
    free_buffers(&b);
}

RDL_TEST(a_pair_that_differs_is_named_to_all)
{
    for_each_size(RDL_CHECK_DEFAULT, dispute_a_pair);
    for_each_size(RDL_CHECK_STRICT, dispute_a_pair);
}

/* --- transfers: both ends, and nobody else (H11) ------------------------------ */

typedef struct ends {
    size_t sent;
    size_t expected;
    rdl_dtype sent_type;
    rdl_dtype expected_type;
    const char *verdict;
} ends;

static const ends wrong_ends[] = {
    { 3, 4, RDL_FLOAT32, RDL_FLOAT32,
      "send(3 float32); rank 0: receive(4 float32)" },
    { 3, 2, RDL_FLOAT32, RDL_FLOAT32,
      "send(3 float32); rank 0: receive(2 float32)" },
    { 2999, 3000, RDL_FLOAT32, RDL_FLOAT32,
      "send(2999 float32); rank 0: receive(3000 float32)" },
    { 0, 1, RDL_INT32, RDL_INT32, "send(0 int32); rank 0: receive(1 int32)" },
    { 4, 4, RDL_INT32, RDL_FLOAT32, "send(4 int32); rank 0: receive(4 float32)" },
    { 8, 4, RDL_INT32, RDL_INT64, "send(8 int32); rank 0: receive(4 int64)" },
};

#define N_ENDS (sizeof wrong_ends / sizeof *wrong_ends)

/* From the last member to the first; the way back and the group go on. */
static void transfer_wrongly(rdl_world *world, const ends *e, size_t which,
                             buffers *b)
{
    static const int64_t digits[] = { 0, 1, 11, 111, 1111, 0, 0, 0, 11111111 };
    int rank = rdl_world_rank(world), size = rdl_world_size(world);
    char name[16], part[200];
    rdl_status st = RDL_MISMATCH;
    rdl_group group;

    snprintf(name, sizeof name, "way %zu", which);
    group = begin(world, name, b);
    snprintf(part, sizeof part, "]: rank %d: %s", size - 1, e->verdict);
    for (int turn = 0; turn < 2; turn++) { /* a second one hears of the first */
        if (rank == 0)
            st = rdl_receive(world, group, b->output, e->expected,
                             e->expected_type, size - 1, NULL);
        else if (rank == size - 1)
            st = rdl_send(world, group, b->input, e->sent, e->sent_type, 0,
                          NULL);
        CHECK_INT(st, RDL_MISMATCH);
        if (rank == 0 || rank == size - 1)
            CHECK_HAS(rdl_test_detail(), part);
    }
    check_untouched(b);
    if (rank == 0)
        CHECK_OK(
            rdl_send(world, group, b->input, 3, RDL_FLOAT32, size - 1, NULL));
    if (rank == size - 1)
        CHECK_OK(rdl_receive(world, group, b->output, 3, RDL_FLOAT32, 0, NULL));
    rdl_check_digits(world, group, digits[size]);
    CHECK_OK(rdl_group_close(world, group));
}

static void transfer_all(rdl_world *world, void *arg)
{
    buffers b = make_buffers();

    (void)arg;
    for (size_t i = 0; i < N_ENDS; i++)
        transfer_wrongly(world, &wrong_ends[i], i, &b);
    free_buffers(&b);
}

RDL_TEST(both_ends_of_a_transfer_that_differ_are_told_and_the_rest_goes_on)
{
    for_each_size(RDL_CHECK_DEFAULT, transfer_all);
    for_each_size(RDL_CHECK_STRICT, transfer_all);
}

/* --- what is not compared ----------------------------------------------------- */

/* H10 f: two calls of the same description are the same call. */
static void swap_equal_calls(rdl_world *world, void *arg)
{
    int64_t a = 1, b = 10, first = 0, second = 0;
    bool swapped = rdl_world_rank(world) == 1;

    (void)arg;
    CHECK_OK(rdl_all_reduce(world, RDL_WORLD, swapped ? &b : &a, &first, 1,
                            RDL_INT64, RDL_SUM, NULL));
    CHECK_OK(rdl_all_reduce(world, RDL_WORLD, swapped ? &a : &b, &second, 1,
                            RDL_INT64, RDL_SUM, NULL));
    CHECK_INT(first, 11);
    CHECK_INT(second, 11);
}

RDL_TEST(equal_calls_for_different_data_are_not_told_apart)
{
    rdl_test_worlds(&(rdl_test_job){ .size = 2, .check = RDL_CHECK_STRICT },
                    swap_equal_calls, NULL);
}

/* Each does what it was asked, with what the other gave. */
static void differ_unseen(rdl_world *world, void *arg)
{
    int rank = rdl_world_rank(world);
    int64_t mine = rank + 1, result = 0;
    size_t ones[] = { 1, 1 }, none[] = { 0, 1 };
    unsigned char in[2] = { 0 }, out[2] = { 0 };

    (void)arg;
    CHECK_OK(rdl_all_reduce(world, RDL_WORLD, &mine, &result, 1, RDL_INT64,
                            rank == 0 ? RDL_SUM : RDL_MAX, NULL));
    CHECK_INT(result, rank == 0 ? 3 : 2);
    /* But for the sizes that the data itself goes by. */
    CHECK_STATUS(rdl_all_to_all_v(world, RDL_WORLD, in, rank ? none : ones, out,
                                  ones, RDL_UINT8, NULL),
                 RDL_MISMATCH);
    CHECK_HAS(rdl_test_detail(), "rank 1 sends 0 elements to rank 0, which "
                                 "expects 1");
}

RDL_TEST(with_the_check_off_calls_that_differ_go_through)
{
    rdl_test_worlds(&(rdl_test_job){ .size = 2, .check = RDL_CHECK_OFF },
                    differ_unseen, NULL);
}
