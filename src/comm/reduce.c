/* Which kernels, and running them over blocks of elements. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/reduce.h"

#include "base/copy.h"
#include "base/status.h"
#include "comm/reduce_kernels.h"

#include <raddle/world.h>
#include <string.h>

/* Partial results of one block: small enough for the first level of cache beside
 * the inputs. */
#define BLOCK_BYTES 4096

static const rdl_kernels *const tables[RDL_ISAS] = {
    [RDL_ISA_BASE] = &rdl_kernels_base,
#if defined(__x86_64__)
    [RDL_ISA_AVX2] = &rdl_kernels_avx2,
    [RDL_ISA_AVX512] = &rdl_kernels_avx512,
#endif
};

bool rdl_can_reduce(rdl_dtype dtype, rdl_reduction reduction)
{
    return (unsigned)dtype < RDL_DTYPES &&
           (unsigned)reduction < RDL_REDUCTIONS &&
           rdl_kernels_base.of[dtype][reduction].both != NULL;
}

static const char *at(const void *input, size_t offset)
{
    return (const char *)input + offset;
}

/* count elements from offset on, in bytes, to `to`; n is 2 or more. */
static void reduce_block(const rdl_kernel *k, char *to,
                         const void *const *inputs, int n, size_t offset,
                         size_t count, double number)
{
    _Alignas(64) char partial[BLOCK_BYTES];
    const char *last = at(inputs[n - 1], offset);

    if (n == 2) {
        k->both(to, at(inputs[0], offset), last, count, number);
        return;
    }
    k->first(partial, at(inputs[0], offset), at(inputs[1], offset), count,
             number);
    for (int i = 2; i < n - 1; i++)
        k->next(partial, partial, at(inputs[i], offset), count, number);
    k->end(to, partial, last, count, number);
}

/* The result of a block goes to memory past the caches, which have it no longer than
 * it takes to leave. */
static void stream_block(const rdl_kernel *k, char *output,
                         const void *const *inputs, int n, size_t offset,
                         size_t count, double number)
{
    _Alignas(64) char result[BLOCK_BYTES];

    reduce_block(k, result, inputs, n, offset, count, number);
    rdl_copy(output + offset, result, count * k->bytes, true);
}

static void reduce_one(const rdl_kernel *k, void *output, const void *input,
                       size_t count, double number)
{
    if (k->alone != NULL)
        k->alone(output, input, input, count, number);
    else if (count != 0 && output != input)
        memcpy(output, input, count * k->bytes);
}

/* In place its lines are in the cache already. */
static bool is_input(const void *output, const void *const *inputs, int n)
{
    for (int i = 0; i < n; i++)
        if (output == inputs[i])
            return true;
    return false;
}

void rdl_combine(const rdl_reducer *r, void *output, const void *const *inputs,
                 int n, size_t count)
{
    double number = r->reduction == RDL_AVG ? n : r->factor;
    const rdl_kernel *k;
    bool streaming;
    size_t block;

    rdl_assert(n >= 1 && n <= RDL_MAX_RANKS);
    rdl_assert(rdl_can_reduce(r->dtype, r->reduction));
    k = &tables[r->isa]->of[r->dtype][r->reduction];
    if (n == 1) {
        reduce_one(k, output, inputs[0], count, number);
        return;
    }
    streaming = r->streaming && !is_input(output, inputs, n);
    block = BLOCK_BYTES / k->wide_bytes;
    for (size_t i = 0; i < count; i += block) {
        size_t some = count - i < block ? count - i : block;
        size_t offset = i * k->bytes;

        if (streaming)
            stream_block(k, output, inputs, n, offset, some, number);
        else
            reduce_block(k, (char *)output + offset, inputs, n, offset, some,
                         number);
    }
    if (streaming)
        rdl_copy_settle();
}
