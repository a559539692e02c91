/* 16-bit floats widened and narrowed several at once, with the bits of base/half.h:
 * as many as a vector of the processor that the file is compiled for has float32.
 * For the kernels of reductions. Without AVX2 it is one: compilers vectorise that. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_COMM_HALF_LANES_H
#define RDL_COMM_HALF_LANES_H

#include "base/half.h"

#include <stddef.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define LANES 16
#define WIDEN(h) _mm512_cvtph_ps(h)
#define NARROW(x) _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT)
#define EXTEND(h) _mm512_cvtepu16_epi32(h)
#define CUT(x) _mm512_cvtepi32_epi16(x)
#define PACKED __m256i
#define VECTOR __m512
#define WORDS __m512i
#elif defined(__AVX2__)
#define LANES 8
#define WIDEN(h) _mm256_cvtph_ps(h)
#define NARROW(x) _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT)
#define EXTEND(h) _mm256_cvtepu16_epi32(h)
#define CUT(x)                                                                 \
    _mm256_castsi256_si128(                                                    \
        _mm256_permute4x64_epi64(_mm256_packus_epi32(x, x), 0x08))
#define PACKED __m128i
#define VECTOR __m256
#define WORDS __m256i
#else
#define LANES 1
#endif

#define INLINE static inline __attribute__((always_inline))

/* --- one ------------------------------------------------------------------- */

/* What stands in memory: a 16-bit float, or a float32 between the first input and
 * the last. */
#define BYTES_float16 2
#define BYTES_bfloat16 2
#define BYTES_wide 4

INLINE float load_one_float16(const char *from)
{
    uint16_t x;

    memcpy(&x, from, sizeof x);
    return rdl_float16_widen(x);
}

INLINE void store_one_float16(char *to, float x)
{
    uint16_t narrow = rdl_float16_narrow(x);

    memcpy(to, &narrow, sizeof narrow);
}

INLINE float load_one_bfloat16(const char *from)
{
    uint16_t x;

    memcpy(&x, from, sizeof x);
    return rdl_bfloat16_widen(x);
}

INLINE void store_one_bfloat16(char *to, float x)
{
    uint16_t narrow = rdl_bfloat16_narrow(x);

    memcpy(to, &narrow, sizeof narrow);
}

INLINE float load_one_wide(const char *from)
{
    float x;

    memcpy(&x, from, sizeof x);
    return x;
}

INLINE void store_one_wide(char *to, float x)
{
    memcpy(to, &x, sizeof x);
}

/* --- LANES of them --------------------------------------------------------- */

#if LANES == 1
typedef float lanes;

#define load_float16 load_one_float16
#define store_float16 store_one_float16
#define load_bfloat16 load_one_bfloat16
#define store_bfloat16 store_one_bfloat16
#define load_wide load_one_wide
#define store_wide store_one_wide
#else
typedef float lanes __attribute__((vector_size(4 * LANES)));
typedef uint32_t word_lanes __attribute__((vector_size(4 * LANES)));
typedef uint16_t half_lanes __attribute__((vector_size(2 * LANES)));

/* The lower halves of words that are below 2^16. */
INLINE half_lanes cut(word_lanes x)
{
    return (half_lanes)CUT((WORDS)x);
}

INLINE half_lanes load_halves(const char *from)
{
    half_lanes h;

    memcpy(&h, from, sizeof h);
    return h;
}

/* Neither conversion heeds a wish to flush subnormals where it would show. */
INLINE lanes load_float16(const char *from)
{
    return (lanes)WIDEN((PACKED)load_halves(from));
}

/* Of any NaN all bits: the processor would keep some of its own. */
INLINE void store_float16(char *to, lanes x)
{
    half_lanes h =
        (half_lanes)NARROW((VECTOR)x) | cut((word_lanes)(x != x) & 0xffff);

    memcpy(to, &h, sizeof h);
}

INLINE lanes load_bfloat16(const char *from)
{
    word_lanes words = (word_lanes)EXTEND((PACKED)load_halves(from));

    return (lanes)(words << 16);
}

INLINE void store_bfloat16(char *to, lanes x)
{
    word_lanes bits = (word_lanes)x;
    word_lanes rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    half_lanes h = cut((rounded | (word_lanes)(x != x)) & 0xffff);

    memcpy(to, &h, sizeof h);
}

INLINE lanes load_wide(const char *from)
{
    lanes x;

    memcpy(&x, from, sizeof x);
    return x;
}

INLINE void store_wide(char *to, lanes x)
{
    memcpy(to, &x, sizeof x);
}
#endif

#endif
