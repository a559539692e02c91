/* Reduction: every kernel against a reference that takes one element at a time. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/reduce.h"

#include "base/half.h"
#include "support/test.h"
#include "support/values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define N_MOST 8
#define COUNT_MOST 5000
#define GUARD 64

static const int sizes[] = { 1, 2, 3, 4, 5, 8 };
static const size_t counts[] = { 0, 1, 7, 63, 64, 65, 1003, 5000 };

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

/* One element of any dtype. */
typedef struct element {
    unsigned char bytes[8];
} element;

/* --- inputs --------------------------------------------------------------- */

static double random_real(uint64_t *state)
{
    static const double special[] = { 0.0, -0.0, INFINITY, -INFINITY, NAN };
    uint64_t r = rdl_test_random(state);

    if (r % 16 < LENGTH(special))
        return special[r % 16];
    return ldexp((double)(int64_t)r, (int)(r % 40) - 80);
}

/* Integers of all sizes, as sums of the largest must wrap; truths of all bytes,
 * most of them 0 and 1; floating point of all bits, so that there are subnormals
 * and NaNs of all kinds, most of it in the middle. */
static element random_element(uint64_t *state, rdl_dtype dtype)
{
    element x = { { 0 } };
    uint64_t r = rdl_test_random(state);

    if (rdl_test_reduces(dtype, RDL_PREMUL_SUM) &&
        rdl_test_random(state) % 8 != 0) {
        rdl_test_put(x.bytes, dtype, random_real(state));
        return x;
    }
    if (rdl_test_random(state) % 4 == 0)
        r = (uint64_t)((int64_t)r >> 40);
    if (dtype == RDL_BOOL && r % 8 != 0)
        r = r >> 8 & 1;
    memcpy(x.bytes, &r, sizeof r);
    return x;
}

/* Room for COUNT_MOST elements at a distance of 0..63 from a line's border, with
 * guards on both sides. */
typedef struct buffer {
    _Alignas(64) char room[GUARD + 64 + COUNT_MOST * 8 + GUARD];
    char *start;
} buffer;

static void lay_out(buffer *b, size_t misalignment, size_t bytes)
{
    b->start = b->room + GUARD + misalignment;
    memset(b->start - GUARD, 0x5a, GUARD + bytes + GUARD);
}

static void check_guards(const buffer *b, size_t bytes)
{
    for (size_t i = 0; i < GUARD; i++) {
        CHECK_INT(b->start[-(ptrdiff_t)(i + 1)], 0x5a);
        CHECK_INT(b->start[bytes + i], 0x5a);
    }
}

/* --- everything with everything ------------------------------------------- */

typedef struct room {
    buffer inputs[N_MOST];
    buffer output;
    element elements[N_MOST][COUNT_MOST];
    element expected[COUNT_MOST];
} room;

/* What is checked, and with what. */
typedef struct trial {
    rdl_dtype dtype;
    rdl_reduction reduction;
    double factor;
    int n;
    size_t count;
    rdl_isa isa;
    bool streaming;
} trial;

static void fill(room *r, const trial *t, uint64_t *state)
{
    for (int k = 0; k < t->n; k++)
        for (size_t i = 0; i < t->count; i++)
            r->elements[k][i] = random_element(state, t->dtype);
    for (size_t i = 0; i < t->count; i++) {
        const void *x[N_MOST];

        for (int k = 0; k < t->n; k++)
            x[k] = r->elements[k][i].bytes;
        rdl_test_combine(r->expected[i].bytes, x, t->n, t->dtype, t->reduction,
                         t->factor);
    }
}

/* same: the input that is the output; -1: none. shift: how the buffers lie. */
static void check_one(room *r, const trial *t, int same, size_t shift)
{
    const void *inputs[N_MOST];
    buffer *output = same < 0 ? &r->output : &r->inputs[same];
    size_t bytes = rdl_dtype_bytes(t->dtype);

    lay_out(&r->output, shift % 64, t->count * bytes);
    for (int k = 0; k < t->n; k++) {
        lay_out(&r->inputs[k], (shift * (size_t)(k + 3) + (size_t)k) % 64,
                t->count * bytes);
        for (size_t i = 0; i < t->count; i++)
            memcpy(r->inputs[k].start + i * bytes, r->elements[k][i].bytes,
                   bytes);
        inputs[k] = r->inputs[k].start;
    }
    rdl_combine(&(rdl_reducer){ .dtype = t->dtype,
                                .reduction = t->reduction,
                                .factor = t->factor,
                                .isa = t->isa,
                                .streaming = t->streaming },
                output->start, inputs, t->n, t->count);
    for (size_t i = 0; i < t->count; i++)
        if (memcmp(output->start + i * bytes, r->expected[i].bytes, bytes) != 0)
            RDL_TEST_FAIL(
                "%s of %s by %s%s, n %d, count %zu, same %d, shift %zu: "
                "element %zu differs",
                rdl_test_reduction_name(t->reduction),
                rdl_test_dtype_name(t->dtype), rdl_isa_name(t->isa),
                t->streaming ? ", streaming" : "", t->n, t->count, same, shift,
                i);
    check_guards(output, t->count * bytes);
    for (int k = 0; k < t->n; k++)
        for (size_t i = 0; k != same && i < t->count; i++)
            CHECK(memcmp(r->inputs[k].start + i * bytes,
                         r->elements[k][i].bytes, bytes) == 0);
}

/* With every kind of vectors, on buffers that lie anywhere and in place. */
static void check_everywhere(room *r, trial t)
{
    static const size_t shifts[] = { 0, 1, 4, 8, 13, 63 };

    for (t.isa = RDL_ISA_BASE; t.isa < RDL_ISAS; t.isa++) {
        if (!rdl_isa_runs(t.isa))
            continue;
        for (size_t i = 0; i < LENGTH(shifts); i++) {
            t.streaming = i % 2 != 0;
            check_one(r, &t, -1, shifts[i]);
        }
        for (int k = 0; k < t.n; k++)
            check_one(r, &t, k, (size_t)k * 5);
    }
}

static void check_reduction(room *r, trial t, uint64_t *state)
{
    static const double factors[] = { 0.1, 0.5, 3.0, -7e-3 };

    for (size_t s = 0; s < LENGTH(sizes); s++)
        for (size_t c = 0; c < LENGTH(counts); c++) {
            t.n = sizes[s];
            t.count = counts[c];
            t.factor = factors[(s + c) % LENGTH(factors)];
            fill(r, &t, state);
            check_everywhere(r, t);
        }
}

static void check_dtype(rdl_dtype dtype)
{
    room *r = malloc(sizeof *r);
    uint64_t state = rdl_test_seed();

    CHECK(r != NULL);
    for (int i = 0; i < RDL_TEST_REDUCTIONS; i++) {
        trial t = { .dtype = dtype, .reduction = (rdl_reduction)i };

        CHECK(rdl_can_reduce(dtype, t.reduction) ==
              rdl_test_reduces(dtype, t.reduction));
        if (rdl_can_reduce(dtype, t.reduction))
            check_reduction(r, t, &state);
    }
    free(r);
}

#define EVERY(NAME, name, bytes, type)                                         \
    RDL_TEST(every_reduction_of_##name##_equals_the_reference)                 \
    {                                                                          \
        check_dtype(RDL_##NAME);                                               \
    }
RDL_DTYPE_MAP(EVERY)

/* --- single promises ------------------------------------------------------ */

/* With every kind of vectors that this processor has; all must answer the same. out
 * is no input. */
static void combine(void *out, const void *const *inputs, int n, size_t count,
                    rdl_dtype dtype, rdl_reduction reduction, double factor)
{
    rdl_reducer r = { .dtype = dtype, .reduction = reduction, .factor = factor };
    size_t bytes = count * rdl_dtype_bytes(dtype);
    void *again = malloc(bytes + 1);

    CHECK(again != NULL);
    rdl_combine(&r, out, inputs, n, count);
    for (r.isa = RDL_ISA_BASE + 1; r.isa < RDL_ISAS; r.isa++)
        if (rdl_isa_runs(r.isa)) {
            rdl_combine(&r, count == 0 ? NULL : again, inputs, n, count);
            CHECK(count == 0 || memcmp(again, out, bytes) == 0);
        }
    free(again);
}

RDL_TEST(sums_of_integers_wrap)
{
    const uint8_t a8[] = { 200, 255, 128 };
    const uint8_t b8[] = { 100, 255, 128 };
    const int32_t a32[] = { INT32_MAX, INT32_MIN };
    const int32_t b32[] = { 1, -1 };
    const int64_t a64[] = { INT64_MAX, INT64_MIN };
    const int64_t b64[] = { 1, -1 };
    const int8_t large = 120, hundred = 100;
    const uint64_t top = UINT64_C(1) << 63;
    int8_t signed8;
    uint64_t nothing;
    uint8_t out8[3];
    int32_t out32[2];
    int64_t out64[2];

    combine(out8, (const void *[]){ a8, b8 }, 2, 3, RDL_UINT8, RDL_SUM, 0);
    CHECK_INT(out8[0], 44);
    CHECK_INT(out8[1], 254);
    CHECK_INT(out8[2], 0);
    combine(out32, (const void *[]){ a32, b32 }, 2, 2, RDL_INT32, RDL_SUM, 0);
    CHECK_INT(out32[0], INT32_MIN);
    CHECK_INT(out32[1], INT32_MAX);
    combine(out64, (const void *[]){ a64, b64 }, 2, 2, RDL_INT64, RDL_SUM, 0);
    CHECK_INT(out64[0], INT64_MIN);
    CHECK_INT(out64[1], INT64_MAX);
    combine(&signed8, (const void *[]){ &large, &hundred }, 2, 1, RDL_INT8,
            RDL_SUM, 0);
    CHECK_INT(signed8, -36);
    combine(&nothing, (const void *[]){ &top, &top }, 2, 1, RDL_UINT64, RDL_SUM,
            0);
    CHECK_INT(nothing, 0);
}

RDL_TEST(averages_of_integers_are_exact_and_truncated_toward_zero)
{
    const int32_t a[] = { 7, -7, 3, 2147483647, INT32_MIN };
    const int32_t b[] = { 2, -2, 4, 2147483647, INT32_MIN };
    const int32_t expected[] = { 4, -4, 3, 2147483647, INT32_MIN };
    const int64_t wide[] = { INT64_MIN, INT64_MAX };
    const int64_t more[] = { INT64_MIN, INT64_MAX - 1 };
    const uint8_t bytes[] = { 255, 255 };
    const uint8_t fewer[] = { 255, 254 };
    int32_t out[5];
    int64_t wide_out[2];
    uint8_t bytes_out[2];

    combine(out, (const void *[]){ a, b }, 2, 5, RDL_INT32, RDL_AVG, 0);
    for (int i = 0; i < 5; i++)
        CHECK_INT(out[i], expected[i]);
    combine(wide_out, (const void *[]){ wide, more, more }, 3, 2, RDL_INT64,
            RDL_AVG, 0);
    CHECK_INT(wide_out[0], INT64_MIN);
    CHECK_INT(wide_out[1], INT64_MAX - 1);
    combine(bytes_out, (const void *[]){ bytes, fewer }, 2, 2, RDL_UINT8,
            RDL_AVG, 0);
    CHECK_INT(bytes_out[0], 255);
    CHECK_INT(bytes_out[1], 254);
}

/* All ranks hold the value whose sum is the largest, or the least, there is. */
RDL_TEST(averages_of_as_many_ranks_as_may_be_do_not_overflow)
{
    enum { MOST = RDL_MAX_RANKS };
    static const struct {
        rdl_dtype dtype;
        uint64_t bits;
    } extremes[] = {
        { RDL_UINT8, UINT8_MAX },   { RDL_INT8, 1U << 7 },
        { RDL_UINT16, UINT16_MAX }, { RDL_INT16, 1U << 15 },
        { RDL_UINT32, UINT32_MAX }, { RDL_INT32, 1U << 31 },
        { RDL_UINT64, UINT64_MAX }, { RDL_INT64, UINT64_C(1) << 63 },
        { RDL_INT64, INT64_MAX },   { RDL_FLOAT16, 0x7bff },
        { RDL_FLOAT16, 0xfbff },
    };

    for (size_t i = 0; i < LENGTH(extremes); i++) {
        const void *inputs[MOST];
        uint64_t out = 0;

        for (int k = 0; k < MOST; k++)
            inputs[k] = &extremes[i].bits;
        combine(&out, inputs, MOST, 1, extremes[i].dtype, RDL_AVG, 0);
        CHECK(out == extremes[i].bits);
    }
}

RDL_TEST(averages_of_floats_are_divided_and_not_multiplied)
{
    const float a = 1;
    const float b = 2;
    const float c = 47;
    const double d = -0.0;
    float out;
    double zero;

    /* 50 / 3 and 50 * (1 / 3) are two floats. */
    combine(&out, (const void *[]){ &a, &b, &c }, 3, 1, RDL_FLOAT32, RDL_AVG, 0);
    CHECK(out == 50.0f / 3.0f);
    combine(&zero, (const void *[]){ &d, &d }, 2, 1, RDL_FLOAT64, RDL_AVG, 0);
    CHECK(zero == 0 && signbit(zero));
}

RDL_TEST(sums_are_taken_in_the_order_of_the_inputs)
{
    const float big = 16777216;
    const float one = 1;
    const float minus = -16777216;
    float out;

    combine(&out, (const void *[]){ &big, &one, &minus }, 3, 1, RDL_FLOAT32,
            RDL_SUM, 0);
    CHECK(out == 0);
    combine(&out, (const void *[]){ &big, &minus, &one }, 3, 1, RDL_FLOAT32,
            RDL_SUM, 0);
    CHECK(out == 1);
}

/* H22: 60000 and 40000 are 0x7b53 and 0x78e2. */
RDL_TEST(sums_of_16_bits_are_taken_in_32_and_rounded_once)
{
    const uint16_t large = 0x7b53, minus = 0xfb53, less = 0x78e2;
    const uint16_t many = 0x4380, one = 0x3f80; /* bfloat16 256 and 1 */
    const void *more[8] = { &many, &one, &one, &one, &one, &one, &one, &one };
    uint16_t out;

    combine(&out, (const void *[]){ &large, &large, &minus, &minus }, 4, 1,
            RDL_FLOAT16, RDL_SUM, 0);
    CHECK_INT(out, 0);
    combine(&out, (const void *[]){ &less, &less }, 2, 1, RDL_FLOAT16, RDL_SUM,
            0);
    CHECK_INT(out, RDL_FLOAT16_INFINITY);
    combine(&out, (const void *[]){ &less, &less }, 2, 1, RDL_FLOAT16, RDL_AVG,
            0);
    CHECK_INT(out, less);
    combine(&out, more, 8, 1, RDL_BFLOAT16, RDL_SUM, 0);
    CHECK_INT(out, 0x4384); /* 264 */
}

RDL_TEST(products_of_16_bits_are_taken_in_32_and_rounded_once)
{
    const uint16_t large = 0x7800, small = 0x1000; /* 2^15, 2^-11 */
    uint16_t out;

    combine(&out, (const void *[]){ &large, &large, &small, &small }, 4, 1,
            RDL_FLOAT16, RDL_PRODUCT, 0);
    CHECK_INT(out, 0x5c00); /* 2^8 */
}

RDL_TEST(products_of_integers_wrap)
{
    const uint16_t most = UINT16_MAX;
    const int32_t least = INT32_MIN, minus = -1;
    const uint64_t wide = (UINT64_C(1) << 63) + 1;
    uint16_t out;
    int32_t same;
    uint64_t square;

    combine(&out, (const void *[]){ &most, &most }, 2, 1, RDL_UINT16,
            RDL_PRODUCT, 0);
    CHECK_INT(out, 1);
    combine(&same, (const void *[]){ &least, &minus }, 2, 1, RDL_INT32,
            RDL_PRODUCT, 0);
    CHECK_INT(same, INT32_MIN);
    combine(&square, (const void *[]){ &wide, &wide }, 2, 1, RDL_UINT64,
            RDL_PRODUCT, 0);
    CHECK_INT(square, 1);
}

/* H20 c: what is multiplied first is not what would be multiplied at the end. */
RDL_TEST(factors_multiply_each_input_in_the_type_of_the_sum)
{
    static const struct {
        rdl_dtype dtype;
        double factor, expected;
    } known[] = {
        { RDL_BFLOAT16, 0.5, 1.5 },        { RDL_BFLOAT16, 3.0, 9.0 },
        { RDL_BFLOAT16, 0.1, 0.30078125 }, { RDL_FLOAT16, 0.5, 1.5 },
        { RDL_FLOAT16, 3.0, 9.0 },         { RDL_FLOAT16, 0.1, 0.300048828125 },
        { RDL_FLOAT32, 0.5, 1.5 },         { RDL_FLOAT32, 3.0, 9.0 },
        { RDL_FLOAT64, 0.5, 1.5 },
    };
    const float large = 0x1p127f, minus = -0x1p127f;
    unsigned char one[8], two[8], out[8];
    float sum;

    for (size_t i = 0; i < LENGTH(known); i++) {
        rdl_test_put(one, known[i].dtype, 1);
        rdl_test_put(two, known[i].dtype, 2);
        combine(out, (const void *[]){ one, two }, 2, 1, known[i].dtype,
                RDL_PREMUL_SUM, known[i].factor);
        CHECK_NEAR(rdl_test_get(out, known[i].dtype), known[i].expected, 0);
        combine(out, (const void *[]){ two }, 1, 1, known[i].dtype,
                RDL_PREMUL_SUM, 0.5);
        CHECK_NEAR(rdl_test_get(out, known[i].dtype), 1, 0);
    }
    combine(&sum, (const void *[]){ &large, &large, &minus, &minus }, 4, 1,
            RDL_FLOAT32, RDL_PREMUL_SUM, 0.25);
    CHECK(sum == 0);
}

RDL_TEST(truths_become_0_and_1_whatever_their_bytes)
{
    const uint8_t a[] = { 0, 0, 1, 2, 0x80, 1 };
    const uint8_t b[] = { 0, 3, 2, 2, 0x80, 0xff };
    const uint8_t any[] = { 0, 1, 1, 1, 1, 1 };
    const uint8_t both_are[] = { 0, 0, 1, 1, 1, 1 };
    const uint8_t one_is[] = { 0, 1, 0, 0, 0, 0 };
    static const rdl_reduction as_or[] = { RDL_SUM, RDL_MAX, RDL_BIT_OR };
    static const rdl_reduction as_and[] = { RDL_PRODUCT, RDL_MIN, RDL_BIT_AND };
    const void *both[] = { a, b }, *thrice[] = { a, b, b };
    uint8_t out[6];

    for (int i = 0; i < 3; i++) {
        combine(out, both, 2, 6, RDL_BOOL, as_or[i], 0);
        CHECK(memcmp(out, any, 6) == 0);
        combine(out, both, 2, 6, RDL_BOOL, as_and[i], 0);
        CHECK(memcmp(out, both_are, 6) == 0);
        combine(out, both + 1, 1, 6, RDL_BOOL, as_or[i], 0);
        CHECK(memcmp(out, any, 6) == 0);
    }
    combine(out, both, 2, 6, RDL_BOOL, RDL_BIT_XOR, 0);
    CHECK(memcmp(out, one_is, 6) == 0);
    combine(out, thrice, 3, 6, RDL_BOOL, RDL_BIT_XOR, 0);
    CHECK(memcmp(out, (uint8_t[]){ 0, 0, 1, 1, 1, 1 }, 6) == 0);
}

/* H21: 1, 2, 3, 4 with a NaN in place of each, at the end of a vector loop. */
static void check_nan(rdl_dtype dtype, size_t count, int place,
                      rdl_reduction what)
{
    static unsigned char x[4][1003 * 8], out[1003 * 8];
    size_t bytes = rdl_dtype_bytes(dtype);

    for (int k = 0; k < 4; k++)
        for (size_t i = 0; i < count; i++)
            rdl_test_put(x[k] + i * bytes, dtype, k + 1);
    rdl_test_put(x[place] + (count - 1) * bytes, dtype, (double)NAN);
    combine(out, (const void *[]){ x[0], x[1], x[2], x[3] }, 4, count, dtype,
            what, 0);
    for (size_t i = 0; i < count - 1; i++)
        CHECK_NEAR(rdl_test_get(out + i * bytes, dtype),
                   what == RDL_MIN ? 1 : 4, 0);
    CHECK(isnan(rdl_test_get(out + (count - 1) * bytes, dtype)));
}

RDL_TEST(a_nan_of_any_rank_is_the_least_and_the_greatest)
{
    static const rdl_dtype dtypes[] = { RDL_FLOAT16, RDL_BFLOAT16, RDL_FLOAT32,
                                        RDL_FLOAT64 };

    for (size_t d = 0; d < LENGTH(dtypes); d++)
        for (int place = 0; place < 4; place++)
            for (rdl_reduction what = RDL_MIN; what <= RDL_MAX; what++) {
                check_nan(dtypes[d], 1, place, what);
                check_nan(dtypes[d], 1003, place, what);
            }
}

RDL_TEST(of_zeros_and_of_nans_the_earliest_is_taken)
{
    const uint32_t bits[4][2] = {
        { 0x80000000, 0x7fc00001 }, /* -0.0, a NaN */
        { 0x00000000, 0x7fc00002 }, /* +0.0, another */
        { 0x3f800000, 0x3f800000 }, /* 1.0 */
        { 0xbf800000, 0xbf800000 }, /* -1.0 */
    };
    uint32_t out[2];

    for (int k = 0; k < 2; k++) {
        const void *zeros[] = { bits[k], bits[1 - k] };
        const void *least[] = { bits[2], bits[k], bits[1 - k] };
        const void *greatest[] = { bits[3], bits[k], bits[1 - k] };

        combine(out, zeros, 2, 2, RDL_FLOAT32, RDL_MIN, 0);
        CHECK(memcmp(out, bits[k], sizeof out) == 0);
        combine(out, zeros, 2, 2, RDL_FLOAT32, RDL_MAX, 0);
        CHECK(memcmp(out, bits[k], sizeof out) == 0);
        combine(out, least, 3, 2, RDL_FLOAT32, RDL_MIN, 0);
        CHECK(memcmp(out, bits[k], sizeof out) == 0);
        combine(out, greatest, 3, 2, RDL_FLOAT32, RDL_MAX, 0);
        CHECK(memcmp(out, bits[k], sizeof out) == 0);
    }
}

RDL_TEST(a_sum_of_nans_has_the_same_bits_wherever_it_stands)
{
    enum { COUNT = 1200 };
    static _Alignas(64) char rooms[4][64 + COUNT * 4];
    const uint32_t nans[3] = { 0x7fc00001, 0xffc00002, 0x7f800000 };
    const uint32_t ones = UINT32_MAX;

    for (size_t shift = 0; shift < 64; shift += 7)
        for (size_t count = 1; count <= COUNT; count += 37) {
            char *out = rooms[3] + 63 - shift;
            const void *inputs[3];

            for (size_t k = 0; k < 3; k++) {
                inputs[k] = rooms[k] + shift;
                for (size_t i = 0; i < count; i++)
                    memcpy(rooms[k] + shift + i * 4, &nans[k], 4);
            }
            for (int n = 2; n <= 3; n++) {
                combine(out, inputs, n, count, RDL_FLOAT32, RDL_SUM, 0);
                for (size_t i = 0; i < count; i++)
                    CHECK(memcmp(out + i * 4, &ones, 4) == 0);
                combine(out, inputs, n, count, RDL_FLOAT32, RDL_AVG, 0);
                for (size_t i = 0; i < count; i++)
                    CHECK(memcmp(out + i * 4, &ones, 4) == 0);
            }
        }
}

/* What half_test.c proves of one at a time. */
static void check_widening(rdl_dtype dtype, rdl_isa isa)
{
    enum { ALL = 1 << 16 };
    static uint16_t x[ALL], minus_zero[ALL], out[ALL];
    rdl_reducer sum = { .dtype = dtype, .reduction = RDL_SUM, .isa = isa };
    uint16_t infinity =
        dtype == RDL_FLOAT16 ? RDL_FLOAT16_INFINITY : RDL_BFLOAT16_INFINITY;

    for (size_t i = 0; i < ALL; i++) {
        x[i] = (uint16_t)i;
        minus_zero[i] = 0x8000;
    }
    for (int n = 2; n <= 3; n++) {
        rdl_combine(&sum, out, (const void *[]){ x, minus_zero, minus_zero }, n,
                    ALL);
        for (size_t i = 0; i < ALL; i++)
            CHECK_INT(out[i], (i & 0x7fff) > infinity ? 0xffff : i);
    }
}

/* A factor of any bits, times one, in a vector and behind it. */
static void check_narrowing(rdl_dtype dtype, rdl_isa isa, uint32_t bits)
{
    enum { COUNT = 17 };
    uint16_t one = dtype == RDL_FLOAT16 ? 0x3c00 : 0x3f80;
    float x = rdl_float32_from_bits(bits);
    uint16_t expected, ones[COUNT], out[COUNT];
    rdl_reducer r = { dtype, RDL_PREMUL_SUM, (double)x, isa, false };

    expected =
        dtype == RDL_FLOAT16 ? rdl_float16_narrow(x) : rdl_bfloat16_narrow(x);
    for (int i = 0; i < COUNT; i++)
        ones[i] = one;
    rdl_combine(&r, out, (const void *[]){ ones }, 1, COUNT);
    for (int i = 0; i < COUNT; i++)
        if (out[i] != expected)
            RDL_TEST_FAIL("%s of bits %08x by %s: %04x at %d, not %04x",
                          rdl_test_dtype_name(dtype), bits, rdl_isa_name(isa),
                          out[i], i, expected);
}

/* Around each 16-bit float, and around the middle between it and the next; those of
 * float16 are in the first half of the bits that a bfloat16 has not. */
static void check_narrowings(rdl_dtype dtype, rdl_isa isa, uint64_t *state)
{
    uint32_t step = dtype == RDL_FLOAT16 ? 1U << 12 : 1U << 15;

    for (uint64_t at = 0; at <= UINT32_MAX; at += step)
        for (uint32_t d = 0; d < 3; d++)
            if (step == 1U << 15 || (at & INT32_MAX) - 0x33000000 < 0x14900000)
                check_narrowing(dtype, isa, (uint32_t)at + d - 1);
    for (int i = 0; i < 200000; i++)
        check_narrowing(dtype, isa, (uint32_t)rdl_test_random(state));
}

RDL_TEST(vectors_widen_and_narrow_16_bits_as_one_at_a_time)
{
    uint64_t state = rdl_test_seed();

    for (rdl_isa isa = RDL_ISA_BASE; isa < RDL_ISAS; isa++)
        if (rdl_isa_runs(isa)) {
            check_widening(RDL_FLOAT16, isa);
            check_widening(RDL_BFLOAT16, isa);
            check_narrowings(RDL_FLOAT16, isa, &state);
            check_narrowings(RDL_BFLOAT16, isa, &state);
        }
}

RDL_TEST(nothing_is_read_or_written_for_a_count_of_0)
{
    for (int n = 1; n <= 3; n++)
        combine(NULL, (const void *[]){ NULL, NULL, NULL }, n, 0, RDL_FLOAT32,
                RDL_SUM, 0);
}
