/* Names and sizes that both sides must see alike. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire.h"

#include <raddle/collective.h>
#include <stdbool.h>

const char *speed_operation_name(int operation)
{
    static const char *const names[] = {
#define X(number, text) #text,
        SPEED_OPERATION_MAP(X)
#undef X
    };

    return operation >= 0 && operation < SPEED_OPERATIONS ? names[operation]
                                                          : "?";
}

size_t speed_dtype_bytes(int dtype)
{
    static const size_t bytes[] = {
#define X(number, text, size, type) [RDL_##number] = size,
        RDL_DTYPE_MAP(X)
#undef X
    };

    return bytes[dtype];
}

/* Whether an input is a block for every rank. */
static bool has_blocks(int operation)
{
    switch (operation) {
    case SPEED_REDUCE_SCATTER:
    case SPEED_ALL_TO_ALL:
    case SPEED_SCATTER:
    case SPEED_REDUCE_SCATTER_V:
    case SPEED_ALL_TO_ALL_V:
        return true;
    default:
        return false;
    }
}

uint64_t speed_fit(int operation, int size, size_t element, uint64_t bytes)
{
    uint64_t unit = element * (has_blocks(operation) ? (uint64_t)size : 1);

    if (operation == SPEED_BARRIER)
        return 0;
    return bytes < unit ? unit : bytes / unit * unit;
}

uint64_t speed_block_bytes(int operation, int size, uint64_t bytes)
{
    return has_blocks(operation) ? bytes / (uint64_t)size : bytes;
}

uint64_t speed_output_bytes(int operation, int size, uint64_t bytes)
{
    switch (operation) {
    case SPEED_BARRIER:
    case SPEED_BROADCAST:
        return 0;
    case SPEED_ALL_GATHER:
    case SPEED_ALL_GATHER_V:
    case SPEED_GATHER:
        return bytes * (uint64_t)size;
    case SPEED_REDUCE_SCATTER:
    case SPEED_REDUCE_SCATTER_V:
    case SPEED_SCATTER:
        return bytes / (uint64_t)size;
    default:
        return bytes;
    }
}
