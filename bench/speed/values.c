/* Patterns and checks. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "values.h"

#include "base/half.h"

#include <string.h>

#define ALL_OF_THE_FIRST ((uint64_t)1 << 18)
#define THEN_EACH 17

static int value(int rank, uint64_t i)
{
    return ((int)(i % 7) + rank) % 5;
}

static int sum(int size, uint64_t i)
{
    int total = 0;

    for (int rank = 0; rank < size; rank++)
        total += value(rank, i);
    return total;
}

/* The bits of a whole number as an element, into 8 bytes. */
static void encode(rdl_dtype dtype, int number, void *element)
{
    float single = (float)number;
    double wide = number;
    uint16_t half;
    uint64_t whole = (uint64_t)number;

    switch (dtype) {
    case RDL_FLOAT32:
        memcpy(element, &single, sizeof single);
        return;
    case RDL_FLOAT64:
        memcpy(element, &wide, sizeof wide);
        return;
    case RDL_FLOAT16:
    case RDL_BFLOAT16:
        half = dtype == RDL_FLOAT16 ? rdl_float16_narrow(single)
                                    : rdl_bfloat16_narrow(single);
        memcpy(element, &half, sizeof half);
        return;
    case RDL_BOOL:
        whole = number != 0;
        break;
    default:
        break;
    }
    memcpy(element, &whole, sizeof whole); /* the low bytes come first */
}

/* The pattern has a period of 7 elements, so a piece of it is made once. */
void speed_fill(const speed_look *look, void *input)
{
    size_t element = speed_dtype_bytes((int)look->dtype);
    unsigned char period[7 * 8], bits[8];

    for (uint64_t i = 0; i < 7; i++) {
        encode(look->dtype, value(look->rank, i), bits);
        memcpy(period + i * element, bits, element);
    }
    for (uint64_t at = 0; at < look->bytes; at += 7 * element) {
        uint64_t left = look->bytes - at;

        memcpy((unsigned char *)input + at, period,
               left < 7 * element ? left : 7 * element);
    }
}

static int wanted(const speed_look *l, uint64_t i)
{
    uint64_t all = l->bytes / speed_dtype_bytes((int)l->dtype);
    uint64_t block = all / (uint64_t)l->size;
    uint64_t mine = (uint64_t)l->rank * block;

    switch (l->operation) {
    case SPEED_ALL_REDUCE:
    case SPEED_REDUCE:
        return sum(l->size, i);
    case SPEED_ALL_GATHER:
    case SPEED_ALL_GATHER_V:
    case SPEED_GATHER:
        return value((int)(i / all), i % all);
    case SPEED_REDUCE_SCATTER:
    case SPEED_REDUCE_SCATTER_V:
        return sum(l->size, mine + i);
    case SPEED_ALL_TO_ALL:
    case SPEED_ALL_TO_ALL_V:
        return value((int)(i / block), mine + i % block);
    case SPEED_SCATTER:
        return value(l->root, mine + i);
    case SPEED_EXCHANGE:
        return value((l->rank + l->size - 1) % l->size, i);
    default:
        return value(l->root, i);
    }
}

static bool element_is_right(const speed_look *l, const void *output, uint64_t i)
{
    size_t element = speed_dtype_bytes((int)l->dtype);
    unsigned char bits[8];

    encode(l->dtype, wanted(l, i), bits);
    return memcmp((const unsigned char *)output + i * element, bits, element) ==
           0;
}

/* Whether this rank gets a result. */
static bool gets(const speed_look *l)
{
    return (l->operation != SPEED_REDUCE && l->operation != SPEED_GATHER) ||
           l->rank == l->root;
}

bool speed_right(const speed_look *l, const void *output)
{
    uint64_t bytes = l->operation == SPEED_BROADCAST
                         ? l->bytes
                         : speed_output_bytes(l->operation, l->size, l->bytes);
    uint64_t n = bytes / speed_dtype_bytes((int)l->dtype);

    if (!gets(l) || n == 0)
        return true;
    for (uint64_t i = 0; i < n; i += i < ALL_OF_THE_FIRST ? 1 : THEN_EACH)
        if (!element_is_right(l, output, i))
            return false;
    return element_is_right(l, output, n - 1);
}
