/* The kernels: for each dtype and reduction a few loops, which one driver runs
 * over blocks of elements.
 *
 * To add a dtype: one line at the end of the kernels (INTEGER, FLOATING, HALF, or
 * functions of its own, as for BOOL); a dtype without does not compile. To add a
 * reduction: a COMBINE and a line of the table in each of those that know it; a
 * pair without is refused by the public calls.
 *
 * The loops are written for the compiler's vectoriser, which wants -O3. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/reduce.h"

#include "base/half.h"
#include "base/status.h"

#include <raddle/world.h>
#include <string.h>

/* Partial results of one block: small enough for the first level of cache beside
 * the inputs. */
#define BLOCK_BYTES 4096

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

/* Loops over count elements. to is x or y, or overlaps neither. number: the n of
 * AVG, the factor of PREMUL_SUM. */
typedef void (*combine)(void *to, const void *x, const void *y, size_t count,
                        double number);
typedef void (*finish)(void *to, const void *x, size_t count, double number);

typedef struct kernel {
    size_t bytes;      /* of an element */
    size_t wide_bytes; /* of a partial result */
    finish alone; /* element = element, where n is 1; NULL: they are the same */
    combine first; /* partial result = element, element; NULL: no such pair */
    combine next;  /* partial result = partial result, element */
    finish last;   /* element = partial result; NULL: they are the same */
} kernel;

/* What comes next is a loop whose rounds are independent (see combine): without
 * this the compiler tests for overlap, and takes in place for one. Unrolled, it
 * hides what it does besides loading and storing. */
#if defined(__clang__)
/* Sums of 128 bits, and builds without optimisation, do not vectorise. */
#pragma clang diagnostic ignored "-Wpass-failed"
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define INDEPENDENT _Pragma("GCC ivdep") _Pragma("GCC unroll 4")
#else
#define INDEPENDENT
#endif

/* An element where it lies: of any alignment, in memory of any type. */
#define ELEMENT(type)                                                          \
    struct {                                                                   \
        type value;                                                            \
    } __attribute__((packed, may_alias))

/* Every product and every sum is rounded by itself: gcc keeps to that without
 * extensions, clang wants to be told. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif

/* Defines a combine; in expression, a is of type from x, b of type from y. */
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
            out[i].value = (result)(expression);                               \
        }                                                                      \
    }

/* Defines a finish; in expression, a is of type from x. */
#define FINISH(name, result, type, expression)                                 \
    static void name(void *to, const void *x, size_t count, double number)     \
    {                                                                          \
        ELEMENT(result) *out = to;                                             \
        const ELEMENT(type) *in = x;                                           \
                                                                               \
        (void)number;                                                          \
        INDEPENDENT                                                            \
        for (size_t i = 0; i < count; i++) {                                   \
            type a = in[i].value;                                              \
                                                                               \
            out[i].value = (result)(expression);                               \
        }                                                                      \
    }

#define PLUS_ONE(...) +1
#define DTYPES (0 RDL_DTYPE_MAP(PLUS_ONE))
#define REDUCTIONS (0 RDL_REDUCTION_MAP(PLUS_ONE))

/* What is combined in its own type. */
#define PLAIN(type, function)                                                  \
    {                                                                          \
        sizeof(type), sizeof(type), NULL, function, function, NULL             \
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
    FINISH(avg_last_##name, type, wide, a / (wide)(unsigned)number)            \
                                                                               \
    static const kernel name##_kernels[REDUCTIONS] = {                         \
        [RDL_SUM] = PLAIN(type, sum_##name),                                   \
        [RDL_MIN] = PLAIN(type, min_##name),                                   \
        [RDL_MAX] = PLAIN(type, max_##name),                                   \
        [RDL_AVG] = { sizeof(type), sizeof(wide), NULL, avg_first_##name,      \
                      avg_next_##name, avg_last_##name },                      \
        [RDL_PRODUCT] = PLAIN(type, product_##name),                           \
        [RDL_BIT_AND] = PLAIN(type, bit_and_##name),                           \
        [RDL_BIT_OR] = PLAIN(type, bit_or_##name),                             \
        [RDL_BIT_XOR] = PLAIN(type, bit_xor_##name),                           \
    };

/* A byte that is not 0 counts as 1. */
COMBINE(or_bool, uint8_t, uint8_t, uint8_t, (a | b) != 0)
COMBINE(and_bool, uint8_t, uint8_t, uint8_t, (a != 0) & (b != 0))
COMBINE(xor_bool, uint8_t, uint8_t, uint8_t, (a != 0) ^ (b != 0))
FINISH(settle_bool, uint8_t, uint8_t, a != 0)

#define TRUTH(function)                                                        \
    {                                                                          \
        1, 1, settle_bool, function, function, NULL                            \
    }

static const kernel bool_kernels[REDUCTIONS] = {
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
    FINISH(avg_last_##name, type, type, a / (type)number)                      \
    FINISH(premul_alone_##name, type, type, settle_##name((a) * (type)number)) \
    COMBINE(premul_first_##name, type, type, type,                             \
            settle_##name((a) * (type)number + (b) * (type)number))            \
    COMBINE(premul_next_##name, type, type, type,                              \
            settle_##name(a + (b) * (type)number))                             \
                                                                               \
    static const kernel name##_kernels[REDUCTIONS] = {                         \
        [RDL_SUM] = PLAIN(type, sum_##name),                                   \
        [RDL_MIN] = PLAIN(type, min_##name),                                   \
        [RDL_MAX] = PLAIN(type, max_##name),                                   \
        [RDL_AVG] = { sizeof(type), sizeof(type), NULL, sum_##name,            \
                      sum_##name, avg_last_##name },                           \
        [RDL_PRODUCT] = PLAIN(type, product_##name),                           \
        [RDL_PREMUL_SUM] = { sizeof(type), sizeof(type), premul_alone_##name,  \
                             premul_first_##name, premul_next_##name, NULL },  \
    };

/* As integers in the order of the numbers; both zeros are 0. */
static inline int16_t order_half(uint16_t x)
{
    int16_t sign = (int16_t)((int16_t)x >> 15);

    return (int16_t)((int16_t)((x & 0x7fff) ^ sign) - sign);
}

#define IS_NAN(x, infinity) (((x)&0x7fff) > (infinity))

/* 16 bits, that are combined in float32; any NaN is settled when that becomes 16
 * bits again. MIN and MAX go by the bits, which are an input's. */
#define HALF(name, infinity)                                                    \
    COMBINE(sum_first_##name, float, uint16_t, uint16_t,                        \
            rdl_##name##_widen(a) + rdl_##name##_widen(b))                      \
    COMBINE(sum_next_##name, float, float, uint16_t, a + rdl_##name##_widen(b)) \
    COMBINE(product_first_##name, float, uint16_t, uint16_t,                    \
            rdl_##name##_widen(a) * rdl_##name##_widen(b))                      \
    COMBINE(product_next_##name, float, float, uint16_t,                        \
            rdl_##name##_widen(b) * a)                                          \
    COMBINE(premul_first_##name, float, uint16_t, uint16_t,                     \
            rdl_##name##_widen(a) * (float)number +                             \
                rdl_##name##_widen(b) * (float)number)                          \
    COMBINE(premul_next_##name, float, float, uint16_t,                         \
            a + rdl_##name##_widen(b) * (float)number)                          \
    COMBINE(min_##name, uint16_t, uint16_t, uint16_t,                           \
            (IS_NAN(a, infinity) |                                              \
             (!IS_NAN(b, infinity) & (order_half(a) <= order_half(b))))         \
                ? a                                                             \
                : b)                                                            \
    COMBINE(max_##name, uint16_t, uint16_t, uint16_t,                           \
            (IS_NAN(a, infinity) |                                              \
             (!IS_NAN(b, infinity) & (order_half(a) >= order_half(b))))         \
                ? a                                                             \
                : b)                                                            \
    FINISH(narrow_##name, uint16_t, float, rdl_##name##_narrow(a))              \
    FINISH(avg_last_##name, uint16_t, float,                                    \
           rdl_##name##_narrow(a / (float)number))                              \
    FINISH(premul_alone_##name, uint16_t, uint16_t,                             \
           rdl_##name##_narrow(rdl_##name##_widen(a) * (float)number))          \
                                                                                \
    static const kernel name##_kernels[REDUCTIONS] = {                          \
        [RDL_SUM] = { 2, 4, NULL, sum_first_##name, sum_next_##name,            \
                      narrow_##name },                                          \
        [RDL_MIN] = PLAIN(uint16_t, min_##name),                                \
        [RDL_MAX] = PLAIN(uint16_t, max_##name),                                \
        [RDL_AVG] = { 2, 4, NULL, sum_first_##name, sum_next_##name,            \
                      avg_last_##name },                                        \
        [RDL_PRODUCT] = { 2, 4, NULL, product_first_##name,                     \
                          product_next_##name, narrow_##name },                 \
        [RDL_PREMUL_SUM] = { 2, 4, premul_alone_##name, premul_first_##name,    \
                             premul_next_##name, narrow_##name },               \
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

static const kernel *const kernels[DTYPES] = { RDL_DTYPE_MAP(ROW) };

bool rdl_can_reduce(rdl_dtype dtype, rdl_reduction reduction)
{
    return (unsigned)dtype < DTYPES && (unsigned)reduction < REDUCTIONS &&
           kernels[dtype][reduction].first != NULL;
}

static const char *at(const void *input, size_t offset)
{
    return (const char *)input + offset;
}

/* count elements from offset on, in bytes; n is 2 or more. */
static void reduce_block(const kernel *k, char *output,
                         const void *const *inputs, int n, size_t offset,
                         size_t count, double number)
{
    _Alignas(64) char partial[BLOCK_BYTES];
    void *last = k->last == NULL ? output + offset : partial;

    k->first(n == 2 ? last : partial, at(inputs[0], offset),
             at(inputs[1], offset), count, number);
    for (int i = 2; i < n; i++)
        k->next(i == n - 1 ? last : partial, partial, at(inputs[i], offset),
                count, number);
    if (k->last != NULL)
        k->last(output + offset, partial, count, number);
}

static void reduce_one(const kernel *k, void *output, const void *input,
                       size_t count, double number)
{
    if (k->alone != NULL)
        k->alone(output, input, count, number);
    else if (count != 0 && output != input)
        memcpy(output, input, count * k->bytes);
}

void rdl_combine(void *output, const void *const *inputs, int n, size_t count,
                 rdl_dtype dtype, rdl_reduction reduction, double factor)
{
    double number = reduction == RDL_AVG ? n : factor;
    const kernel *k;
    size_t block;

    rdl_assert(n >= 1 && n <= RDL_MAX_RANKS);
    rdl_assert(rdl_can_reduce(dtype, reduction));
    k = &kernels[dtype][reduction];
    if (n == 1) {
        reduce_one(k, output, inputs[0], count, number);
        return;
    }
    block = BLOCK_BYTES / k->wide_bytes;
    for (size_t i = 0; i < count; i += block)
        reduce_block(k, output, inputs, n, i * k->bytes,
                     count - i < block ? count - i : block, number);
}
