/* The kernels: for each dtype and reduction three loops, which one driver runs
 * over blocks of elements.
 *
 * To add a dtype: one line among the kernels (INTEGER, FLOATING, or functions of
 * its own, as for a type that is summed in a wider one); a dtype without does not
 * compile. To add a reduction: one COMBINE in those two, and one line in ROW.
 *
 * The loops are written for the compiler's vectoriser, which wants -O3. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/reduce.h"

#include "base/status.h"

#include <raddle/world.h>
#include <string.h>

/* Partial results of one block: small enough for the first level of cache beside
 * the inputs. */
#define BLOCK_BYTES 4096

__extension__ typedef __int128 int128;

/* Loops over count elements. to is x or y, or overlaps neither. */
typedef void (*combine)(void *to, const void *x, const void *y, size_t count);
typedef void (*finish)(void *to, const void *x, int n, size_t count);

typedef struct kernel {
    size_t bytes;      /* of an element */
    size_t wide_bytes; /* of a partial result */
    combine first;     /* partial result = element, element */
    combine next;      /* partial result = partial result, element */
    finish last; /* element = partial result, n; NULL: they are the same */
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

/* Defines a combine; in expression, a is of type from x, b of type from y. */
#define COMBINE(name, result, type_a, type_b, expression)                      \
    static void name(void *to, const void *x, const void *y, size_t count)     \
    {                                                                          \
        ELEMENT(result) *out = to;                                             \
        const ELEMENT(type_a) *in_a = x;                                       \
        const ELEMENT(type_b) *in_b = y;                                       \
                                                                               \
        INDEPENDENT                                                            \
        for (size_t i = 0; i < count; i++) {                                   \
            type_a a = in_a[i].value;                                          \
            type_b b = in_b[i].value;                                          \
                                                                               \
            out[i].value = (result)(expression);                               \
        }                                                                      \
    }

/* Defines the last step of an average. */
#define DIVIDE(name, type, wide)                                               \
    static void name(void *to, const void *x, int n, size_t count)             \
    {                                                                          \
        ELEMENT(type) *out = to;                                               \
        const ELEMENT(wide) *in = x;                                           \
                                                                               \
        INDEPENDENT                                                            \
        for (size_t i = 0; i < count; i++)                                     \
            out[i].value = (type)(in[i].value / (wide)n);                      \
    }

/* bits: the type of the same size without sign, in which sums wrap. wide: one
 * that holds RDL_MAX_RANKS times any value. */
#define INTEGER(name, type, bits, wide)                                        \
    typedef wide name##_wide;                                                  \
    COMBINE(sum_##name, bits, bits, bits, a + b)                               \
    COMBINE(min_##name, type, type, type, a <= b ? a : b)                      \
    COMBINE(max_##name, type, type, type, a >= b ? a : b)                      \
    COMBINE(avg_first_##name, wide, type, type, (wide)a + (wide)b)             \
    COMBINE(avg_next_##name, wide, wide, type, a + (wide)b)                    \
    DIVIDE(avg_last_##name, type, wide)

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
    typedef type name##_wide;                                                  \
    COMBINE(sum_##name, type, type, type, settle_##name(a + b))                \
    COMBINE(min_##name, type, type, type, ((a <= b) | (a != a)) ? a : b)       \
    COMBINE(max_##name, type, type, type, ((a >= b) | (a != a)) ? a : b)       \
    COMBINE(avg_first_##name, type, type, type, settle_##name(a + b))          \
    COMBINE(avg_next_##name, type, type, type, settle_##name(a + b))           \
    DIVIDE(avg_last_##name, type, type)

INTEGER(uint8, uint8_t, uint8_t, uint32_t)
INTEGER(int32, int32_t, uint32_t, int64_t)
INTEGER(int64, int64_t, uint64_t, int128)
FLOATING(float32, float)
FLOATING(float64, double)

#define ROW(NAME, name, bytes, type)                                           \
    [RDL_##NAME] = {                                                           \
        [RDL_SUM] = { bytes, bytes, sum_##name, sum_##name, NULL },            \
        [RDL_MIN] = { bytes, bytes, min_##name, min_##name, NULL },            \
        [RDL_MAX] = { bytes, bytes, max_##name, max_##name, NULL },            \
        [RDL_AVG] = { bytes, sizeof(name##_wide), avg_first_##name,            \
                      avg_next_##name, avg_last_##name },                      \
    },

#define PLUS_ONE(...) +1
#define DTYPES (0 RDL_DTYPE_MAP(PLUS_ONE))
#define REDUCTIONS (0 RDL_REDUCTION_MAP(PLUS_ONE))

static const kernel kernels[DTYPES][REDUCTIONS] = { RDL_DTYPE_MAP(ROW) };

static const kernel *find(rdl_dtype dtype, rdl_reduction reduction)
{
    rdl_assert((unsigned)dtype < DTYPES);
    rdl_assert((unsigned)reduction < REDUCTIONS);
    rdl_assert(kernels[dtype][reduction].first != NULL);
    return &kernels[dtype][reduction];
}

static const char *at(const void *input, size_t offset)
{
    return (const char *)input + offset;
}

/* count elements from offset on, in bytes; n is 2 or more. */
static void reduce_block(const kernel *k, char *output,
                         const void *const *inputs, int n, size_t offset,
                         size_t count)
{
    _Alignas(64) char partial[BLOCK_BYTES];
    void *last = k->last == NULL ? output + offset : partial;

    k->first(n == 2 ? last : partial, at(inputs[0], offset),
             at(inputs[1], offset), count);
    for (int i = 2; i < n; i++)
        k->next(i == n - 1 ? last : partial, partial, at(inputs[i], offset),
                count);
    if (k->last != NULL)
        k->last(output + offset, partial, n, count);
}

void rdl_combine(void *output, const void *const *inputs, int n, size_t count,
                 rdl_dtype dtype, rdl_reduction reduction)
{
    const kernel *k = find(dtype, reduction);
    size_t block = BLOCK_BYTES / k->wide_bytes;

    rdl_assert(n >= 1 && n <= RDL_MAX_RANKS);
    if (n == 1) {
        if (count != 0 && output != inputs[0])
            memcpy(output, inputs[0], count * k->bytes);
        return;
    }
    for (size_t i = 0; i < count; i += block)
        reduce_block(k, output, inputs, n, i * k->bytes,
                     count - i < block ? count - i : block);
}
