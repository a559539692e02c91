/* 16-bit floating point: to float32, exactly, and back, rounded to the nearest,
 * of two equally near to the even one. FLOAT16 is IEEE 754's binary16 (5 bits of
 * exponent), BFLOAT16 the upper half of a float32 (8 bits).
 *
 * Plain C without branches, which compilers vectorise, and without subnormal
 * float32 on the way: the bits are the same for all compilers and processors,
 * and where a program has the processor flush subnormals to zero. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BASE_HALF_H
#define RDL_BASE_HALF_H

#include <stdint.h>
#include <string.h>

/* Of a NaN, all above; of an infinity, equal. */
#define RDL_FLOAT16_INFINITY 0x7c00
#define RDL_BFLOAT16_INFINITY 0x7f80
#define RDL_FLOAT32_INFINITY UINT32_C(0x7f800000)

static inline float rdl_float32_from_bits(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint32_t rdl_float32_bits(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* All bits if the condition holds, else none. */
static inline uint32_t rdl_all_bits_if(int condition)
{
    return -(uint32_t)condition;
}

/* All bits if these, without sign, are a NaN's, else none. */
static inline uint32_t rdl_all_bits_if_nan(uint32_t magnitude)
{
    return rdl_all_bits_if((int32_t)magnitude > (int32_t)RDL_FLOAT32_INFINITY);
}

static inline float rdl_bfloat16_widen(uint16_t x)
{
    return rdl_float32_from_bits((uint32_t)x << 16);
}

/* Of any NaN the one with all bits set. */
static inline uint16_t rdl_bfloat16_narrow(float x)
{
    uint32_t bits = rdl_float32_bits(x);
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;

    return (uint16_t)(rounded | rdl_all_bits_if_nan(bits & INT32_MAX));
}

/* From one exponent's bias to the other's, and the place of both. */
#define RDL_FLOAT16_REBIAS ((127U - 15U) << 23)

static inline float rdl_float16_widen(uint16_t x)
{
    uint32_t sign = (uint32_t)(x & 0x8000) << 16;
    uint32_t magnitude = (uint32_t)(x & 0x7fff) << 13;
    uint32_t infinity = (uint32_t)RDL_FLOAT16_INFINITY << 13;
    uint32_t is_special =
        rdl_all_bits_if((int32_t)magnitude >= (int32_t)infinity);
    uint32_t is_small = rdl_all_bits_if((int32_t)magnitude < 1 << 23);
    /* Infinities and NaNs have the greatest exponent in both. */
    uint32_t usual =
        magnitude + RDL_FLOAT16_REBIAS + (is_special & RDL_FLOAT16_REBIAS);
    /* A subnormal, with the exponent of the least normal, is 2^-14 too much. */
    uint32_t small = rdl_float32_bits(
        rdl_float32_from_bits(magnitude + RDL_FLOAT16_REBIAS + (1 << 23)) -
        0x1p-14f);

    return rdl_float32_from_bits(sign | (small & is_small) | (usual & ~is_small));
}

/* Of any NaN the one with all bits set. */
static inline uint16_t rdl_float16_narrow(float x)
{
    uint32_t bits = rdl_float32_bits(x);
    uint32_t magnitude = bits & INT32_MAX;
    uint32_t is_small = rdl_all_bits_if((int32_t)magnitude < 0x38800000);
    /* From 2^16 on all are infinite, as is what rounds to it. */
    uint32_t cut =
        (int32_t)magnitude < 0x47800000 ? magnitude : UINT32_C(0x47800000);
    uint32_t usual = (cut - RDL_FLOAT16_REBIAS + 0xfff + (cut >> 13 & 1)) >> 13;
    /* Below 2^-14 the steps are of 2^-24, and so they are above 0.5: the sum is
     * rounded to one. */
    uint32_t small =
        rdl_float32_bits(rdl_float32_from_bits(magnitude) + 0.5f) - 0x3f000000;

    return (uint16_t)((bits >> 16 & 0x8000) | (small & is_small) |
                      (usual & ~is_small) | rdl_all_bits_if_nan(magnitude));
}

#endif
