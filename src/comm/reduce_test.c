/* Reduction: every kernel against a reference that takes one element at a time. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/reduce.h"

#include "support/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define N_MOST 8
#define COUNT_MOST 5000
#define GUARD 64

static const int sizes[] = { 1, 2, 3, 4, 5, 8 };
static const size_t counts[] = { 0, 1, 7, 63, 64, 65, 1003, 5000 };

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])
#define ONE_BYTES(NAME, name, bytes, type) bytes,
static const size_t bytes_of[] = { RDL_DTYPE_MAP(ONE_BYTES) };

/* One value of any dtype. */
typedef union value {
    uint8_t uint8;
    int32_t int32;
    int64_t int64;
    float float32;
    double float64;
    char bytes[8];
} value;

/* --- the reference -------------------------------------------------------- */

__extension__ typedef __int128 int128;

/* x of inputs 0..n-1, combined. Integers through 128 bits: the low ones of the
 * exact sum are the wrapped sum. */
static int128 combine_integers(const int128 *x, int n, rdl_reduction reduction)
{
    int128 r = x[0];

    for (int k = 1; k < n; k++)
        if (reduction == RDL_MIN)
            r = x[k] < r ? x[k] : r;
        else if (reduction == RDL_MAX)
            r = x[k] > r ? x[k] : r;
        else
            r += x[k];
    return reduction == RDL_AVG ? r / n : r;
}

/* As reduce.h has it: NaNs of additions are all ones, zeros and NaNs of MIN and
 * MAX the earliest. */
#define FLOATING_REFERENCE(type)                                               \
    static type combine_##type(const type *x, int n, rdl_reduction reduction)  \
    {                                                                          \
        bool adds = reduction == RDL_SUM || reduction == RDL_AVG;              \
        type r = x[0];                                                         \
                                                                               \
        for (int k = 1; k < n; k++)                                            \
            if (adds)                                                          \
                r = r + x[k];                                                  \
            else if (isnan(r))                                                 \
                continue;                                                      \
            else if (isnan(x[k]))                                              \
                r = x[k];                                                      \
            else if (reduction == RDL_MIN ? x[k] < r : x[k] > r)               \
                r = x[k];                                                      \
        if (reduction == RDL_AVG && n > 1)                                     \
            r = r / (type)n;                                                   \
        if (adds && n > 1 && isnan(r))                                         \
            memset(&r, 0xff, sizeof r);                                        \
        return r;                                                              \
    }
FLOATING_REFERENCE(float)
FLOATING_REFERENCE(double)

static value reference(const value *x, int n, rdl_dtype dtype,
                       rdl_reduction reduction)
{
    int128 integers[N_MOST] = { 0 };
    float floats[N_MOST] = { 0 };
    double doubles[N_MOST] = { 0 };
    value r = { .bytes = { 0 } };

    for (int k = 0; k < n; k++) {
        integers[k] = dtype == RDL_UINT8   ? x[k].uint8
                      : dtype == RDL_INT32 ? x[k].int32
                                           : x[k].int64;
        floats[k] = x[k].float32;
        doubles[k] = x[k].float64;
    }
    switch (dtype) {
    case RDL_UINT8:
        r.uint8 = (uint8_t)combine_integers(integers, n, reduction);
        break;
    case RDL_INT32:
        r.int32 = (int32_t)combine_integers(integers, n, reduction);
        break;
    case RDL_INT64:
        r.int64 = (int64_t)combine_integers(integers, n, reduction);
        break;
    case RDL_FLOAT32:
        r.float32 = combine_float(floats, n, reduction);
        break;
    case RDL_FLOAT64:
        r.float64 = combine_double(doubles, n, reduction);
        break;
    }
    return r;
}

/* --- inputs --------------------------------------------------------------- */

static double random_float(uint64_t *state)
{
    static const double special[] = { 0.0, -0.0, INFINITY, -INFINITY, NAN };
    uint64_t r = rdl_test_random(state);

    if (r % 16 < LENGTH(special))
        return special[r % 16];
    return ldexp((double)(int64_t)r, (int)(r % 40) - 80);
}

/* Integers are of all sizes, as sums of the largest must wrap. */
static value random_value(uint64_t *state, rdl_dtype dtype)
{
    value v = { .bytes = { 0 } };

    if (dtype == RDL_FLOAT32)
        v.float32 = (float)random_float(state);
    else if (dtype == RDL_FLOAT64)
        v.float64 = random_float(state);
    else {
        v.int64 = (int64_t)rdl_test_random(state);
        if (rdl_test_random(state) % 4 == 0)
            v.int64 >>= 40;
    }
    return v;
}

/* Room for COUNT_MOST elements at a distance of 0..63 from a line's border, with
 * guards on both sides. */
typedef struct buffer {
    _Alignas(64) char room[GUARD + 64 + COUNT_MOST * 8 + GUARD];
    char *start;
} buffer;

static void lay_out(buffer *b, size_t misalignment)
{
    memset(b->room, 0x5a, sizeof b->room);
    b->start = b->room + GUARD + misalignment;
}

static void check_guards(const buffer *b, size_t bytes)
{
    const char *end = b->room + sizeof b->room;

    for (const char *c = b->room; c < b->start; c++)
        CHECK_INT(*c, 0x5a);
    for (const char *c = b->start + bytes; c < end; c++)
        CHECK_INT(*c, 0x5a);
}

/* --- everything with everything ------------------------------------------- */

typedef struct room {
    buffer inputs[N_MOST];
    buffer output;
    value values[N_MOST][COUNT_MOST];
    value expected[COUNT_MOST];
} room;

static void fill(room *r, int n, size_t count, rdl_dtype dtype,
                 rdl_reduction reduction, uint64_t *state)
{
    for (int k = 0; k < n; k++)
        for (size_t i = 0; i < count; i++)
            r->values[k][i] = random_value(state, dtype);
    for (size_t i = 0; i < count; i++) {
        value x[N_MOST];

        for (int k = 0; k < n; k++)
            x[k] = r->values[k][i];
        r->expected[i] = reference(x, n, dtype, reduction);
    }
}

/* same: the input that is the output; -1: none. shift: how the buffers lie. */
static void check_one(room *r, int n, size_t count, rdl_dtype dtype,
                      rdl_reduction reduction, int same, size_t shift)
{
    const void *inputs[N_MOST];
    buffer *output = same < 0 ? &r->output : &r->inputs[same];

    lay_out(&r->output, shift % 64);
    for (int k = 0; k < n; k++) {
        lay_out(&r->inputs[k], (shift * (size_t)(k + 3) + (size_t)k) % 64);
        for (size_t i = 0; i < count; i++)
            memcpy(r->inputs[k].start + i * bytes_of[dtype],
                   r->values[k][i].bytes, bytes_of[dtype]);
        inputs[k] = r->inputs[k].start;
    }
    rdl_combine(output->start, inputs, n, count, dtype, reduction);
    for (size_t i = 0; i < count; i++)
        if (memcmp(output->start + i * bytes_of[dtype], r->expected[i].bytes,
                   bytes_of[dtype]) != 0)
            RDL_TEST_FAIL(
                "dtype %d, reduction %d, n %d, count %zu, same %d, shift "
                "%zu: element %zu differs",
                (int)dtype, (int)reduction, n, count, same, shift, i);
    check_guards(output, count * bytes_of[dtype]);
    for (int k = 0; k < n; k++)
        for (size_t i = 0; k != same && i < count; i++)
            CHECK(memcmp(r->inputs[k].start + i * bytes_of[dtype],
                         r->values[k][i].bytes, bytes_of[dtype]) == 0);
}

static void check_dtype(rdl_dtype dtype)
{
    static const size_t shifts[] = { 0, 1, 4, 8, 13, 63 };
    room *r = malloc(sizeof *r);
    uint64_t state = rdl_test_seed();

    CHECK(r != NULL);
    for (rdl_reduction reduction = RDL_SUM; reduction <= RDL_AVG; reduction++)
        for (size_t s = 0; s < LENGTH(sizes); s++)
            for (size_t c = 0; c < LENGTH(counts); c++) {
                int n = sizes[s];

                fill(r, n, counts[c], dtype, reduction, &state);
                for (size_t i = 0; i < LENGTH(shifts); i++)
                    check_one(r, n, counts[c], dtype, reduction, -1, shifts[i]);
                for (int k = 0; k < n; k++)
                    check_one(r, n, counts[c], dtype, reduction, k,
                              (size_t)k * 5);
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

RDL_TEST(sums_of_integers_wrap)
{
    const uint8_t a8[] = { 200, 255, 128 };
    const uint8_t b8[] = { 100, 255, 128 };
    const int32_t a32[] = { INT32_MAX, INT32_MIN };
    const int32_t b32[] = { 1, -1 };
    const int64_t a64[] = { INT64_MAX, INT64_MIN };
    const int64_t b64[] = { 1, -1 };
    uint8_t out8[3];
    int32_t out32[2];
    int64_t out64[2];

    rdl_combine(out8, (const void *[]){ a8, b8 }, 2, 3, RDL_UINT8, RDL_SUM);
    CHECK_INT(out8[0], 44);
    CHECK_INT(out8[1], 254);
    CHECK_INT(out8[2], 0);
    rdl_combine(out32, (const void *[]){ a32, b32 }, 2, 2, RDL_INT32, RDL_SUM);
    CHECK_INT(out32[0], INT32_MIN);
    CHECK_INT(out32[1], INT32_MAX);
    rdl_combine(out64, (const void *[]){ a64, b64 }, 2, 2, RDL_INT64, RDL_SUM);
    CHECK_INT(out64[0], INT64_MIN);
    CHECK_INT(out64[1], INT64_MAX);
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

    rdl_combine(out, (const void *[]){ a, b }, 2, 5, RDL_INT32, RDL_AVG);
    for (int i = 0; i < 5; i++)
        CHECK_INT(out[i], expected[i]);
    rdl_combine(wide_out, (const void *[]){ wide, more, more }, 3, 2, RDL_INT64,
                RDL_AVG);
    CHECK_INT(wide_out[0], INT64_MIN);
    CHECK_INT(wide_out[1], INT64_MAX - 1);
    rdl_combine(bytes_out, (const void *[]){ bytes, fewer }, 2, 2, RDL_UINT8,
                RDL_AVG);
    CHECK_INT(bytes_out[0], 255);
    CHECK_INT(bytes_out[1], 254);
}

RDL_TEST(averages_of_as_many_ranks_as_may_be_do_not_overflow)
{
    enum { MOST = RDL_MAX_RANKS };
    const uint8_t byte = UINT8_MAX;
    const int32_t integer = INT32_MIN;
    const int64_t wide = INT64_MIN;
    const void *inputs[3][MOST];
    uint8_t byte_out;
    int32_t integer_out;
    int64_t wide_out;

    for (int k = 0; k < MOST; k++) {
        inputs[0][k] = &byte;
        inputs[1][k] = &integer;
        inputs[2][k] = &wide;
    }
    rdl_combine(&byte_out, inputs[0], MOST, 1, RDL_UINT8, RDL_AVG);
    CHECK_INT(byte_out, UINT8_MAX);
    rdl_combine(&integer_out, inputs[1], MOST, 1, RDL_INT32, RDL_AVG);
    CHECK_INT(integer_out, INT32_MIN);
    rdl_combine(&wide_out, inputs[2], MOST, 1, RDL_INT64, RDL_AVG);
    CHECK_INT(wide_out, INT64_MIN);
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
    rdl_combine(&out, (const void *[]){ &a, &b, &c }, 3, 1, RDL_FLOAT32,
                RDL_AVG);
    CHECK(out == 50.0f / 3.0f);
    rdl_combine(&zero, (const void *[]){ &d, &d }, 2, 1, RDL_FLOAT64, RDL_AVG);
    CHECK(zero == 0 && signbit(zero));
}

RDL_TEST(sums_are_taken_in_the_order_of_the_inputs)
{
    const float big = 16777216;
    const float one = 1;
    const float minus = -16777216;
    float out;

    rdl_combine(&out, (const void *[]){ &big, &one, &minus }, 3, 1, RDL_FLOAT32,
                RDL_SUM);
    CHECK(out == 0);
    rdl_combine(&out, (const void *[]){ &big, &minus, &one }, 3, 1, RDL_FLOAT32,
                RDL_SUM);
    CHECK(out == 1);
}

/* H21: 1, 2, 3, 4 with a NaN in place of each, at the end of a vector loop. */
#define NAN_TEST(DTYPE, type, not_a_number)                                    \
    static void check_nan_##type(size_t count, int place, rdl_reduction what)  \
    {                                                                          \
        static type x[4][1003];                                                \
        static type out[1003];                                                 \
        type normal = what == RDL_MIN ? 1 : 4;                                 \
                                                                               \
        for (int k = 0; k < 4; k++)                                            \
            for (size_t i = 0; i < count; i++)                                 \
                x[k][i] = (type)(k + 1);                                       \
        x[place][count - 1] = not_a_number;                                    \
        rdl_combine(out, (const void *[]){ x[0], x[1], x[2], x[3] }, 4, count, \
                    RDL_##DTYPE, what);                                        \
        for (size_t i = 0; i < count - 1; i++)                                 \
            CHECK(out[i] == normal);                                           \
        CHECK(isnan(out[count - 1]));                                          \
    }
NAN_TEST(FLOAT32, float, nanf(""))
NAN_TEST(FLOAT64, double, nan(""))

RDL_TEST(a_nan_of_any_rank_is_the_least_and_the_greatest)
{
    for (int place = 0; place < 4; place++)
        for (rdl_reduction what = RDL_MIN; what <= RDL_MAX; what++) {
            check_nan_float(1, place, what);
            check_nan_float(1003, place, what);
            check_nan_double(1, place, what);
            check_nan_double(1003, place, what);
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

        rdl_combine(out, zeros, 2, 2, RDL_FLOAT32, RDL_MIN);
        CHECK(memcmp(out, bits[k], sizeof out) == 0);
        rdl_combine(out, zeros, 2, 2, RDL_FLOAT32, RDL_MAX);
        CHECK(memcmp(out, bits[k], sizeof out) == 0);
        rdl_combine(out, least, 3, 2, RDL_FLOAT32, RDL_MIN);
        CHECK(memcmp(out, bits[k], sizeof out) == 0);
        rdl_combine(out, greatest, 3, 2, RDL_FLOAT32, RDL_MAX);
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
                rdl_combine(out, inputs, n, count, RDL_FLOAT32, RDL_SUM);
                for (size_t i = 0; i < count; i++)
                    CHECK(memcmp(out + i * 4, &ones, 4) == 0);
                rdl_combine(out, inputs, n, count, RDL_FLOAT32, RDL_AVG);
                for (size_t i = 0; i < count; i++)
                    CHECK(memcmp(out + i * 4, &ones, 4) == 0);
            }
        }
}

RDL_TEST(nothing_is_read_or_written_for_a_count_of_0)
{
    for (int n = 1; n <= 3; n++)
        rdl_combine(NULL, (const void *[]){ NULL, NULL, NULL }, n, 0,
                    RDL_FLOAT32, RDL_SUM);
}
