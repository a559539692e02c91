/* The reference: integers by way of 128 bits, 16-bit floating point by way of
 * double and the functions of math.h. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/values.h"

#include "support/test.h"

#include <math.h>
#include <string.h>

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

const char *rdl_test_dtype_name(rdl_dtype dtype)
{
    static const char *const names[] = {
#define X(name, text, bytes, type) #text,
        RDL_DTYPE_MAP(X)
#undef X
    };

    return names[dtype];
}

const char *rdl_test_reduction_name(rdl_reduction reduction)
{
    static const char *const names[] = {
#define X(name, text) #text,
        RDL_REDUCTION_MAP(X)
#undef X
    };

    return names[reduction];
}

static bool is_floating(rdl_dtype dtype)
{
    return dtype == RDL_FLOAT16 || dtype == RDL_BFLOAT16 ||
           dtype == RDL_FLOAT32 || dtype == RDL_FLOAT64;
}

bool rdl_test_reduces(rdl_dtype dtype, rdl_reduction reduction)
{
    switch (reduction) {
    case RDL_AVG:
        return dtype != RDL_BOOL;
    case RDL_PREMUL_SUM:
        return is_floating(dtype);
    case RDL_BIT_AND:
    case RDL_BIT_OR:
    case RDL_BIT_XOR:
        return !is_floating(dtype);
    default:
        return true;
    }
}

/* --- 16 bits --------------------------------------------------------------- */

/* Digits of the significand, and the power of two of the last digit of the
 * smallest numbers. */
typedef struct format {
    int digits;
    int least;
} format;

static format format_of(rdl_dtype dtype)
{
    return dtype == RDL_FLOAT16 ? (format){ 11, -24 } : (format){ 8, -133 };
}

/* The steps of the last digit in x, from 0 on: the numbers and their bits are in
 * the same order, and as close. */
static uint16_t encode(double x, format f)
{
    int infinity = 0x7fff >> (f.digits - 1) << (f.digits - 1);
    int sign = signbit(x) ? 0x8000 : 0;
    int exponent, bits;
    double steps;

    if (isnan(x))
        return 0xffff;
    if (isinf(x) || x == 0)
        return (uint16_t)(sign | (x == 0 ? 0 : infinity));
    frexp(x, &exponent);
    if (exponent - f.digits < f.least)
        exponent = f.least + f.digits;
    steps = nearbyint(ldexp(fabs(x), f.digits - exponent));
    exponent -= f.least + f.digits;
    if (exponent > 1000)
        return (uint16_t)(sign | infinity);
    bits = exponent * (1 << (f.digits - 1)) + (int)steps;
    return (uint16_t)(sign | (bits < infinity ? bits : infinity));
}

static double decode(uint16_t half, format f)
{
    int first = 1 << (f.digits - 1);
    int exponent = (half & 0x7fff) / first, rest = half % first;
    double x;

    if (exponent == 0x7fff / first)
        x = rest ? (double)NAN : (double)INFINITY;
    else if (exponent == 0)
        x = ldexp(rest, f.least);
    else
        x = ldexp(rest + first, exponent - 1 + f.least);
    return half & 0x8000 ? -x : x;
}

/* --- one element ----------------------------------------------------------- */

static int128 get_integer(const void *at, rdl_dtype dtype)
{
    int128 x = 0;

    switch (dtype) {
#define X(NAME, name, bytes, type)                                             \
    case RDL_##NAME: {                                                         \
        type v;                                                                \
        memcpy(&v, at, sizeof v);                                              \
        x = (int128)v;                                                         \
        break;                                                                 \
    }
        RDL_DTYPE_MAP(X)
#undef X
    }
    return x;
}

/* By way of 64 bits whose low ones are taken: the machine is little-endian. */
static void put_integer(void *at, rdl_dtype dtype, uint128 x)
{
    uint64_t low = (uint64_t)x;

    memcpy(at, &low, rdl_dtype_bytes(dtype));
}

static double get_floating(const void *at, rdl_dtype dtype)
{
    uint16_t half;
    float single;
    double x;

    switch (dtype) {
    case RDL_FLOAT64:
        memcpy(&x, at, sizeof x);
        return x;
    case RDL_FLOAT32:
        memcpy(&single, at, sizeof single);
        return (double)single;
    default:
        memcpy(&half, at, sizeof half);
        return decode(half, format_of(dtype));
    }
}

/* x is a float32 unless the dtype is float64. */
static void put_floating(void *at, rdl_dtype dtype, double x)
{
    float single = (float)x;
    uint16_t half;

    switch (dtype) {
    case RDL_FLOAT64:
        memcpy(at, &x, sizeof x);
        break;
    case RDL_FLOAT32:
        memcpy(at, &single, sizeof single);
        break;
    default:
        half = encode(x, format_of(dtype));
        memcpy(at, &half, sizeof half);
        break;
    }
    if (isnan(x))
        memset(at, 0xff, rdl_dtype_bytes(dtype));
}

void rdl_test_put(void *at, rdl_dtype dtype, double x)
{
    if (is_floating(dtype))
        put_floating(at, dtype, x);
    else
        put_integer(at, dtype, (uint128)(int128)x);
}

double rdl_test_get(const void *at, rdl_dtype dtype)
{
    return is_floating(dtype) ? get_floating(at, dtype)
                              : (double)get_integer(at, dtype);
}

/* --- combining ------------------------------------------------------------- */

static void combine_truths(void *at, const void *const *elements, int n,
                           rdl_reduction reduction)
{
    int trues = 0;
    unsigned char result;

    for (int k = 0; k < n; k++)
        trues += *(const unsigned char *)elements[k] ? 1 : 0;
    if (reduction == RDL_BIT_XOR)
        result = trues % 2 == 1;
    else if (reduction == RDL_SUM || reduction == RDL_MAX ||
             reduction == RDL_BIT_OR)
        result = trues > 0;
    else
        result = trues == n;
    memcpy(at, &result, 1);
}

/* Through 128 bits: the low ones of the exact result are the wrapped one. */
static void combine_integers(void *at, const void *const *elements, int n,
                             rdl_dtype dtype, rdl_reduction reduction)
{
    int128 r = get_integer(elements[0], dtype);

    for (int k = 1; k < n; k++) {
        int128 x = get_integer(elements[k], dtype);

        switch (reduction) {
        case RDL_MIN:
            r = x < r ? x : r;
            break;
        case RDL_MAX:
            r = x > r ? x : r;
            break;
        case RDL_PRODUCT:
            r = (int128)((uint128)r * (uint128)x);
            break;
        case RDL_BIT_AND:
            r &= x;
            break;
        case RDL_BIT_OR:
            r |= x;
            break;
        case RDL_BIT_XOR:
            r ^= x;
            break;
        default:
            r += x;
            break;
        }
    }
    put_integer(at, dtype, (uint128)(reduction == RDL_AVG ? r / n : r));
}

/* The first NaN, else the first of the least or greatest, in all its bits. */
static void choose(void *at, const void *const *elements, int n,
                   rdl_dtype dtype, rdl_reduction reduction)
{
    int best = 0;

    for (int k = n - 1; k >= 0; k--) {
        double x = get_floating(elements[k], dtype);
        double y = get_floating(elements[best], dtype);

        if (isnan(x) || (!isnan(y) && (reduction == RDL_MIN ? x <= y : x >= y)) ||
            k == n - 1)
            best = k;
    }
    memcpy(at, elements[best], rdl_dtype_bytes(dtype));
}

/* In the order of elements, each product and each sum rounded to type. */
#define CHAIN(type)                                                            \
    static double chain_##type(const void *const *elements, int n,             \
                               rdl_dtype dtype, rdl_reduction reduction,       \
                               double factor)                                  \
    {                                                                          \
        type f = reduction == RDL_PREMUL_SUM ? (type)factor : 1, r = 0;        \
                                                                               \
        for (int k = 0; k < n; k++) {                                          \
            type x = (type)get_floating(elements[k], dtype);                   \
            volatile type scaled = f * x;                                      \
                                                                               \
            if (k == 0)                                                        \
                r = scaled;                                                    \
            else if (reduction == RDL_PRODUCT)                                 \
                r = r * scaled;                                                \
            else                                                               \
                r = r + scaled;                                                \
        }                                                                      \
        if (reduction == RDL_AVG)                                              \
            r = r / (type)n;                                                   \
        return (double)r;                                                      \
    }
CHAIN(float)
CHAIN(double)

void rdl_test_combine(void *at, const void *const *elements, int n,
                      rdl_dtype dtype, rdl_reduction reduction, double factor)
{
    CHECK(rdl_test_reduces(dtype, reduction));
    if (dtype == RDL_BOOL)
        combine_truths(at, elements, n, reduction);
    else if (!is_floating(dtype))
        combine_integers(at, elements, n, dtype, reduction);
    else if (n == 1 && reduction != RDL_PREMUL_SUM)
        memcpy(at, elements[0], rdl_dtype_bytes(dtype));
    else if (reduction == RDL_MIN || reduction == RDL_MAX)
        choose(at, elements, n, dtype, reduction);
    else if (dtype == RDL_FLOAT64)
        put_floating(at, dtype,
                     chain_double(elements, n, dtype, reduction, factor));
    else
        put_floating(at, dtype,
                     chain_float(elements, n, dtype, reduction, factor));
}
