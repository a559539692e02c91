/* What the driver of `raddle bench OP ...` and the ranks that it measures say to each
 * other: raddle's, the peers' and those of the floor. Each rank connects to the
 * driver's socket, says its rank, and then does one order after another; between
 * orders it sleeps in the kernel, so that those who are not measured take no time
 * from those who are. Valid as C++ too, as a peer may be written in it. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BENCH_SPEED_WIRE_H
#define RDL_BENCH_SPEED_WIRE_H

#include <stddef.h>
#include <stdint.h>

#define SPEED_RANKS_MOST 256
#define SPEED_BLOCKS 16

/* number, name */
#define SPEED_OPERATION_MAP(X)                                                 \
    X(BARRIER, barrier)                                                        \
    X(ALL_REDUCE, all_reduce)                                                  \
    X(ALL_GATHER, all_gather)                                                  \
    X(REDUCE_SCATTER, reduce_scatter)                                          \
    X(ALL_TO_ALL, all_to_all)                                                  \
    X(BROADCAST, broadcast)                                                    \
    X(REDUCE, reduce)                                                          \
    X(GATHER, gather)                                                          \
    X(SCATTER, scatter)                                                        \
    X(ALL_GATHER_V, all_gather_v)                                              \
    X(REDUCE_SCATTER_V, reduce_scatter_v)                                      \
    X(ALL_TO_ALL_V, all_to_all_v)                                              \
    X(EXCHANGE, exchange) /* each to the next, from the one before */

typedef enum speed_operation {
#define X(number, text) SPEED_##number,
    SPEED_OPERATION_MAP(X)
#undef X
        SPEED_OPERATIONS
} speed_operation;

/* The first six are the ones that peers have. */
#define SPEED_PEER_OPERATIONS 6

typedef enum speed_kind {
    SPEED_PREPARE, /* make buffers, make one call and look at what came */
    SPEED_TIME,    /* blocks of calls */
    SPEED_CHECK,   /* one call more, looked at */
    SPEED_DROP,    /* free the buffers */
    SPEED_END
} speed_kind;

typedef struct speed_order {
    int32_t kind;
    int32_t operation;
    int32_t dtype;  /* a number of rdl_dtype */
    int32_t mapped; /* memory that peers of a job may read where it lies */
    int32_t fresh;  /* inputs are written before each call, outside its time */
    int32_t blocks;
    int32_t calls; /* of a block */
    int32_t unused;
    uint64_t bytes; /* of a rank's input */
} speed_order;

typedef enum speed_outcome {
    SPEED_DONE,
    SPEED_UNSUPPORTED,
    SPEED_WRONG, /* a result is not what it must be */
    SPEED_BROKEN
} speed_outcome;

typedef struct speed_answer {
    int32_t rank;
    int32_t outcome;
    double us[SPEED_BLOCKS]; /* of each block of a TIME, a call */
    char text[256];          /* why, if it is not DONE */
} speed_answer;

#ifdef __cplusplus
extern "C" {
#endif

const char *speed_operation_name(int operation);

/* Bytes of an element, without the library, which peers are not linked with. */
size_t speed_dtype_bytes(int dtype);

/* Of `bytes` what all ranks can share, at least an element for each. */
uint64_t speed_fit(int operation, int size, size_t element, uint64_t bytes);

/* Bytes of what goes to one rank: of an input that is divided, its part. */
uint64_t speed_block_bytes(int operation, int size, uint64_t bytes);

/* Bytes of a rank's output if its input has `bytes`. */
uint64_t speed_output_bytes(int operation, int size, uint64_t bytes);

#ifdef __cplusplus
}
#endif
#endif
