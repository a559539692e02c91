/* What the parts of `raddle bench OP ...` share: what is to be measured, and what
 * came of it. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BENCH_SPEED_H
#define RDL_BENCH_SPEED_H

#include "wire.h"

#include <raddle/collective.h>
#include <stdbool.h>
#include <sys/types.h>

#define SPEED_WHO "raddle bench"
#define SPEED_FAILED 1 /* exit statuses */
#define SPEED_USAGE 2
#define SPEED_TURNS_MOST 99
#define SPEED_LIST_MOST 16

/* Raddle is the first of those who take turns. */
#define SPEED_PEER_MAP(X)                                                      \
    X(RADDLE, raddle)                                                          \
    X(OPENMPI, openmpi)                                                        \
    X(MPICH, mpich)                                                            \
    X(GLOO, gloo)

typedef enum speed_peer {
#define X(number, text) SPEED_##number,
    SPEED_PEER_MAP(X)
#undef X
        SPEED_PEERS
} speed_peer;

const char *speed_peer_name(int peer);

/* Lists are as long as they say; a size of 0 bytes stands for none. */
typedef struct speed_options {
    bool operations[SPEED_OPERATIONS];
    int ranks[SPEED_LIST_MOST];
    int n_ranks;
    uint64_t bytes[SPEED_LIST_MOST];
    int n_bytes;
    rdl_dtype dtypes[SPEED_LIST_MOST];
    int n_dtypes;
    int turns;
    int groups;
    double seconds; /* no point is begun after these; 0: no limit */
    double turn_ms; /* that a turn of a quick call takes */
    bool peers;
    bool mapped;
    bool fresh;
    bool pin; /* raddle's ranks stay on a core each, as Open MPI's do */
    bool json;
    bool summary; /* the rows are not shown, only what they come to */
    bool explain;
} speed_options;

/* *options has the defaults. -1: go on; else the exit status, and all was said. */
int speed_read_options(int argc, char **argv, speed_options *options);

/* "4096", "64K", "16M" */
const char *speed_bytes_text(uint64_t bytes, char text[24]);

typedef struct speed_point {
    int operation;
    rdl_dtype dtype;
    int ranks;
    int members; /* of the group that calls together */
    uint64_t bytes;
    bool mapped;
} speed_point;

/* What one of those who take turns did at one point. */
typedef struct speed_result {
    speed_outcome outcome;
    char why[256];
    double turns[SPEED_TURNS_MOST]; /* microseconds a call, in order */
    int n_turns;
    double blocks[SPEED_TURNS_MOST * SPEED_BLOCKS]; /* sorted at the end */
    int n_blocks;
    double median; /* of the turns */
} speed_result;

/* Ratios of neighbours: microseconds of raddle by those of a peer. */
typedef struct speed_ratio {
    double lower; /* quartiles */
    double median;
    double upper;
} speed_ratio;

typedef struct speed_row {
    speed_point point;
    speed_result results[SPEED_PEERS];
    double floor; /* microseconds; 0: there is none for this operation */
    double fresh_floor;
    int best; /* of the peers; 0: none took part */
    speed_ratio ratios[SPEED_PEERS];
} speed_row;

/* raddle.c: one rank of raddle's, for the driver at that socket; pinned to the core
 * of its number. */
int speed_be_a_rank(const char *socket, int groups, bool pinned);

#endif
