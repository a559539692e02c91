/* The kernels: for each dtype and reduction a few loops. Compiled once for each kind
 * of processor: RDL_KERNELS is the suffix of the table's name.
 *
 * To add a dtype: one line at the end (INTEGER, FLOATING, HALF, or functions of its
 * own, as for BOOL); a dtype without does not compile. To add a reduction: a COMBINE
 * and a line of the table in each of those that know it; a pair without is refused
 * by the public calls.
 *
 * The loops are written for the compiler's vectoriser, which wants -O3, but for
 * those over 16-bit floats. Every product and every sum is rounded by itself, which
 * wants -ffp-contract=off. Both are in CMakeLists.txt. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/reduce_kernels.h"

#include "comm/half_lanes.h"

#ifndef RDL_KERNELS
#define RDL_KERNELS base
#endif

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

/* What comes next is a loop whose rounds are independent (see rdl_loop): without
 * this the compiler tests for overlap, and takes in place for one. Unrolled, it
 * hides what it does besides loading and storing. */
#if defined(__clang__)
/* Sums of 128 bits, and builds without optimisation, do not vectorise. */
#pragma clang diagnostic ignored "-Wpass-failed"
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define INDEPENDENT _Pragma("GCC ivdep") _Pragma("GCC unroll 4")
#define WIDE_INDEPENDENT _Pragma("GCC ivdep")
#else
#define INDEPENDENT
#endif
#ifndef WIDE_INDEPENDENT /* for long rounds, which hide loads by themselves */
#define WIDE_INDEPENDENT INDEPENDENT
#endif

/* An element where it lies: of any alignment, in memory of any type. */
#define ELEMENT(type)                                                          \
    struct {                                                                   \
        type value;                                                            \
    } __attribute__((packed, may_alias))

/* Defines a loop; in expression, a is of type from x, b of type from y. */
#define COMBINE(name, result, type_a, type_b, expression)                      \
    static void name(void *to, const void *x, const void *y, size_t count,     \
                     double number)                                            \
    {                                                                          \
        ELEMENT(result) *out = to;                                             \
        const ELEMENT(type_a) *in_a = x;                                       \
        const ELEMENT(type_b) *in_b = y;                                       \
                                                                               \
        (void)number;                                                          \
        INDEPENDENT                                                            \
        for (size_t i = 0; i < count; i++) {                                   \
            type_a a = in_a[i].value;                                          \
            type_b b = in_b[i].value;                                          \
                                                                               \
            (void)b;                                                           \
            out[i].value = (result)(expression);                               \
        }                                                                      \
    }

/* What is combined in its own type. */
#define PLAIN(type, function)                                                  \
    {                                                                          \
        sizeof(type), sizeof(type), NULL, function, function, function,        \
            function                                                           \
    }

/* --- integers -------------------------------------------------------------- */

/* bits: the type of the same size without sign, in which sums and products wrap
 * (1U: small ones would be multiplied as int, and overflow). wide: one that holds
 * RDL_MAX_RANKS times any value. */
#define INTEGER(name, type, bits, wide)                                        \
    COMBINE(sum_##name, bits, bits, bits, a + b)                               \
    COMBINE(product_##name, bits, bits, bits, 1U * a * b)                      \
    COMBINE(min_##name, type, type, type, a <= b ? a : b)                      \
    COMBINE(max_##name, type, type, type, a >= b ? a : b)                      \
    COMBINE(bit_and_##name, bits, bits, bits, (a) & (b))                       \
    COMBINE(bit_or_##name, bits, bits, bits, a | b)                            \
    COMBINE(bit_xor_##name, bits, bits, bits, a ^ b)                           \
    COMBINE(avg_first_##name, wide, type, type, (wide)a + (wide)b)             \
    COMBINE(avg_next_##name, wide, wide, type, a + (wide)b)                    \
    COMBINE(avg_end_##name, type, wide, type,                                  \
            (a + (wide)b) / (wide)(unsigned)number)                            \
    COMBINE(avg_both_##name, type, type, type,                                 \
            ((wide)a + (wide)b) / (wide)(unsigned)number)                      \
                                                                               \
    static const rdl_kernel name##_kernels[RDL_REDUCTIONS] = {                 \
        [RDL_SUM] = PLAIN(type, sum_##name),                                   \
        [RDL_MIN] = PLAIN(type, min_##name),                                   \
        [RDL_MAX] = PLAIN(type, max_##name),                                   \
        [RDL_AVG] = { sizeof(type), sizeof(wide), NULL, avg_both_##name,       \
                      avg_first_##name, avg_next_##name, avg_end_##name },     \
        [RDL_PRODUCT] = PLAIN(type, product_##name),                           \
        [RDL_BIT_AND] = PLAIN(type, bit_and_##name),                           \
        [RDL_BIT_OR] = PLAIN(type, bit_or_##name),                             \
        [RDL_BIT_XOR] = PLAIN(type, bit_xor_##name),                           \
    };

/* A byte that is not 0 counts as 1. */
COMBINE(or_bool, uint8_t, uint8_t, uint8_t, (a | b) != 0)
COMBINE(and_bool, uint8_t, uint8_t, uint8_t, (a != 0) & (b != 0))
COMBINE(xor_bool, uint8_t, uint8_t, uint8_t, (a != 0) ^ (b != 0))
COMBINE(settle_bool, uint8_t, uint8_t, uint8_t, a != 0)

#define TRUTH(function)                                                        \
    {                                                                          \
        1, 1, settle_bool, function, function, function, function              \
    }

static const rdl_kernel bool_kernels[RDL_REDUCTIONS] = {
    [RDL_SUM] = TRUTH(or_bool),      [RDL_MIN] = TRUTH(and_bool),
    [RDL_MAX] = TRUTH(or_bool),      [RDL_PRODUCT] = TRUTH(and_bool),
    [RDL_BIT_AND] = TRUTH(and_bool), [RDL_BIT_OR] = TRUTH(or_bool),
    [RDL_BIT_XOR] = TRUTH(xor_bool),
};

/* --- floating point -------------------------------------------------------- */

/* Any NaN becomes the one with all bits set. Which of two NaNs an addition
 * answers depends on the order in which the compiler puts its operands, and that
 * differs between the body of a loop and its tail. Written twice, because gcc
 * vectorises the or for 32 bits only, and the choice is slower. */
static inline float settle_float32(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    bits |= -(uint32_t)(x != x);
    memcpy(&x, &bits, sizeof bits);
    return x;
}

static inline double settle_float64(double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof bits);
    bits = x != x ? UINT64_MAX : bits;
    memcpy(&x, &bits, sizeof bits);
    return x;
}

/* a != a: a is NaN. | and not ||, so that there is no branch to vectorise. */
#define FLOATING(name, type)                                                   \
    COMBINE(sum_##name, type, type, type, settle_##name(a + b))                \
    COMBINE(product_##name, type, type, type, settle_##name((a) * (b)))        \
    COMBINE(min_##name, type, type, type, ((a <= b) | (a != a)) ? a : b)       \
    COMBINE(max_##name, type, type, type, ((a >= b) | (a != a)) ? a : b)       \
    COMBINE(avg_end_##name, type, type, type,                                  \
            settle_##name(a + b) / (type)number)                               \
    COMBINE(premul_alone_##name, type, type, type,                             \
            settle_##name((a) * (type)number))                                 \
    COMBINE(premul_both_##name, type, type, type,                              \
            settle_##name((a) * (type)number + (b) * (type)number))            \
    COMBINE(premul_next_##name, type, type, type,                              \
            settle_##name(a + (b) * (type)number))                             \
                                                                               \
    static const rdl_kernel name##_kernels[RDL_REDUCTIONS] = {                 \
        [RDL_SUM] = PLAIN(type, sum_##name),                                   \
        [RDL_MIN] = PLAIN(type, min_##name),                                   \
        [RDL_MAX] = PLAIN(type, max_##name),                                   \
        [RDL_AVG] = { sizeof(type), sizeof(type), NULL, avg_end_##name,        \
                      sum_##name, sum_##name, avg_end_##name },                \
        [RDL_PRODUCT] = PLAIN(type, product_##name),                           \
        [RDL_PREMUL_SUM] = { sizeof(type), sizeof(type), premul_alone_##name,  \
                             premul_both_##name, premul_both_##name,           \
                             premul_next_##name, premul_next_##name },         \
    };

/* As integers in the order of the numbers; both zeros are 0. */
static inline int16_t order_half(uint16_t x)
{
    int16_t sign = (int16_t)((int16_t)x >> 15);

    return (int16_t)((int16_t)((x & 0x7fff) ^ sign) - sign);
}

#define IS_NAN(x, infinity) (((x)&0x7fff) > (infinity))

/* Defines a loop over 16-bit floats and what becomes of them (half_lanes.h); in
 * expression, a is of x's kind and b of y's, both of them wide. */
#define COMBINE_WIDE(name, result, of_a, of_b, expression)                     \
    static void name(void *to, const void *x, const void *y, size_t count,     \
                     double factor)                                            \
    {                                                                          \
        size_t whole = count / LANES * LANES;                                  \
        const char *in_a = x;                                                  \
        const char *in_b = y;                                                  \
        char *out = to;                                                        \
        float number = (float)factor;                                          \
                                                                               \
        (void)number;                                                          \
        WIDE_INDEPENDENT                                                       \
        for (size_t i = 0; i < whole; i += LANES) {                            \
            lanes a = load_##of_a(in_a + i * BYTES_##of_a);                    \
            lanes b = load_##of_b(in_b + i * BYTES_##of_b);                    \
                                                                               \
            (void)b;                                                           \
            store_##result(out + i * BYTES_##result, expression);              \
        }                                                                      \
        for (size_t i = whole; i < count; i++) {                               \
            float a = load_one_##of_a(in_a + i * BYTES_##of_a);                \
            float b = load_one_##of_b(in_b + i * BYTES_##of_b);                \
                                                                               \
            (void)b;                                                           \
            store_one_##result(out + i * BYTES_##result, expression);          \
        }                                                                      \
    }

/* The four loops of a reduction that begins with `begin`, goes on with `go_on`, and
 * at the end applies `finish` to what is between brackets. */
#define CHAIN(what, name, begin, go_on, finish)                                \
    COMBINE_WIDE(what##_both_##name, name, name, name, (begin)finish)          \
    COMBINE_WIDE(what##_first_##name, wide, name, name, begin)                 \
    COMBINE_WIDE(what##_next_##name, wide, wide, name, go_on)                  \
    COMBINE_WIDE(what##_end_##name, name, wide, name, (go_on)finish)

#define CHAINED(what, name, alone)                                             \
    {                                                                          \
        2, 4, alone, what##_both_##name, what##_first_##name,                  \
            what##_next_##name, what##_end_##name                              \
    }

/* 16 bits, that are combined in float32; any NaN is settled when that becomes 16
 * bits again. MIN and MAX go by the bits, which are an input's. */
#define HALF(name, infinity)                                                   \
    CHAIN(sum, name, a + b, a + b, )                                           \
    CHAIN(avg, name, a + b, a + b, / number)                                   \
    CHAIN(product, name, (a) * (b), (a) * (b), )                               \
    CHAIN(premul, name, (a)*number + (b)*number, a + (b)*number, )             \
    COMBINE_WIDE(premul_alone_##name, name, name, name, (a)*number)            \
    COMBINE(min_##name, uint16_t, uint16_t, uint16_t,                          \
            (IS_NAN(a, infinity) |                                             \
             (!IS_NAN(b, infinity) & (order_half(a) <= order_half(b))))        \
                ? a                                                            \
                : b)                                                           \
    COMBINE(max_##name, uint16_t, uint16_t, uint16_t,                          \
            (IS_NAN(a, infinity) |                                             \
             (!IS_NAN(b, infinity) & (order_half(a) >= order_half(b))))        \
                ? a                                                            \
                : b)                                                           \
                                                                               \
    static const rdl_kernel name##_kernels[RDL_REDUCTIONS] = {                 \
        [RDL_SUM] = CHAINED(sum, name, NULL),                                  \
        [RDL_MIN] = PLAIN(uint16_t, min_##name),                               \
        [RDL_MAX] = PLAIN(uint16_t, max_##name),                               \
        [RDL_AVG] = CHAINED(avg, name, NULL),                                  \
        [RDL_PRODUCT] = CHAINED(product, name, NULL),                          \
        [RDL_PREMUL_SUM] = CHAINED(premul, name, premul_alone_##name),         \
    };

/* --- all ------------------------------------------------------------------- */

INTEGER(uint8, uint8_t, uint8_t, uint32_t)
INTEGER(int8, int8_t, uint8_t, int32_t)
INTEGER(uint16, uint16_t, uint16_t, uint32_t)
INTEGER(int16, int16_t, uint16_t, int32_t)
INTEGER(uint32, uint32_t, uint32_t, uint64_t)
INTEGER(int32, int32_t, uint32_t, int64_t)
INTEGER(uint64, uint64_t, uint64_t, uint128)
INTEGER(int64, int64_t, uint64_t, int128)
HALF(float16, RDL_FLOAT16_INFINITY)
HALF(bfloat16, RDL_BFLOAT16_INFINITY)
FLOATING(float32, float)
FLOATING(float64, double)

#define ROW(NAME, name, bytes, type) [RDL_##NAME] = name##_kernels,

#define TABLE(isa) TABLE_(isa)
#define TABLE_(isa) rdl_kernels_##isa

const rdl_kernels TABLE(RDL_KERNELS) = { { RDL_DTYPE_MAP(ROW) } };
