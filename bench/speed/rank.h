/* The measured side: a rank that does what the driver orders. Whoever plugs in a
 * library gives it four functions; buffers, checks and clock are the same for all. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BENCH_SPEED_RANK_H
#define RDL_BENCH_SPEED_RANK_H

#include "wire.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct speed_rank speed_rank;

typedef struct speed_call {
    int operation;
    int dtype;
    uint64_t bytes; /* of this rank's input, always of whole elements */
    int root;       /* of a broadcast, reduce, gather or scatter */
    void *input;    /* of a broadcast the buffer */
    void *output;
} speed_call;

struct speed_rank {
    int rank; /* in the job, as it says hello */
    int size;
    int place; /* in the group that calls together, and its size */
    int members;
    void *context;
    /* SPEED_DONE, else why as a text of speed_answer. */
    speed_outcome (*run)(speed_rank *self, const speed_call *call,
                         char text[256]);
    /* All ranks meet; false: they cannot. */
    int (*meet)(speed_rank *self);
    /* Memory for a buffer, zeroed, at least a page; NULL functions: private memory.
     * give takes back what take gave. */
    void *(*take)(speed_rank *self, size_t bytes, int mapped);
    void (*give)(speed_rank *self, void *memory, size_t bytes, int mapped);
};

/* Connects to the driver and does what it says until it ends. Returns an exit
 * status; what went wrong before there was a connection goes to standard error. */
int speed_serve(speed_rank *self, const char *socket);

#ifdef __cplusplus
}
#endif
#endif
