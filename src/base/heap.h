/* A rank's heap: whole pages out of a sparse file that is mapped already, reserved
 * when they are taken and given back to the kernel when they are free. Peers may
 * have the same range mapped; all bookkeeping is private to its owner.
 *
 * A block may be pinned by operations that read or write it. One that is given
 * back while it is pinned is its user's no longer, and stays where it is until
 * the last pin is gone.
 *
 * Threads: any; one lock, held across no system call but those that make a heap of
 * its own, once. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BASE_HEAP_H
#define RDL_BASE_HEAP_H

#include "base/arena.h"
#include "base/memory.h"
#include "base/status.h"

#include <pthread.h>
#include <stdbool.h>

/* Blocks are whole ones of these, so that no two share a page of the kernel's. */
#ifdef __aarch64__
#define RDL_HEAP_UNIT ((size_t)65536)
#else
#define RDL_HEAP_UNIT ((size_t)RDL_PAGE)
#endif

typedef enum rdl_block_state {
    RDL_BLOCK_HELD,
    RDL_BLOCK_FREED, /* by its user; still pinned */
    RDL_BLOCK_GOING  /* its pages are on their way to the kernel */
} rdl_block_state;

typedef struct rdl_block {
    size_t at; /* in the heap */
    size_t bytes;
    uint32_t pins;
    rdl_block_state state;
} rdl_block;

typedef struct rdl_heap {
    /* The range; bytes is 0 until there is one. Begin is written first. */
    _Atomic uintptr_t begin;
    _Atomic size_t bytes;
    int fd;
    size_t file_at;   /* of the range in the file */
    bool own;         /* file and mapping are this heap's */
    rdl_purse *purse; /* its private memory's; NULL: nobody's */
    rdl_slice *slice; /* where what is reserved is noted; NULL: it is its own */
    rdl_pieces *pieces; /* of the mapping that it lies in */
    rdl_pieces own_pieces;
    pthread_mutex_t lock; /* protects all below */
    rdl_block *blocks;    /* by their place */
    size_t count;
    size_t room;
    uint64_t reserved; /* bytes */
    uint64_t peak;
} rdl_heap;

/* The heap of rank in arena. Where that is not mapped, or arena is NULL, the heap
 * gets a nameless file of its own when first something is taken. Holds nothing
 * yet. Private memory is the purse's, which may be NULL. */
void rdl_heap_init(rdl_heap *heap, rdl_arena *arena, int rank, rdl_purse *purse);

/* Gives all back, pinned or not. */
void rdl_heap_fini(rdl_heap *heap);

/* For a forked child, which did not inherit the memory: only what is private. */
void rdl_heap_forget(rdl_heap *heap);

/* Zeroed, beginning with a unit; bytes is not 0. RDL_NO_MEMORY: no free piece is so
 * large, or the limits of memory are in the way. RDL_SYSTEM. */
rdl_status rdl_heap_take(rdl_heap *heap, size_t bytes, void **out);

/* RDL_INVALID: memory is not what take gave out, or was given before. RDL_SYSTEM:
 * it is no longer the user's, and its pages stay reserved. */
rdl_status rdl_heap_give(rdl_heap *heap, void *memory);

/* Whether memory lies in the range; all that memory from elsewhere costs. */
static inline bool rdl_heap_has(rdl_heap *heap, const void *memory)
{
    /* Pairs with the release of who made the range: begin is there. */
    size_t bytes = atomic_load_explicit(&heap->bytes, memory_order_acquire);

    return (uintptr_t)memory -
               atomic_load_explicit(&heap->begin, memory_order_relaxed) <
           bytes;
}

/* The shared range, if this process has mapped it; 0 bytes if the heap is private. */
static inline size_t rdl_heap_shared(rdl_heap *heap)
{
    return heap->own ? 0
                     : atomic_load_explicit(&heap->bytes, memory_order_relaxed);
}

/* The place in the heap of memory that it has. */
static inline uint64_t rdl_heap_place(rdl_heap *heap, const void *memory)
{
    return (uintptr_t)memory -
           atomic_load_explicit(&heap->begin, memory_order_relaxed);
}

/* The input and output of one operation, where they lie in the heap; else NULL. */
typedef struct rdl_pins {
    const void *memory[2];
} rdl_pins;

/* Pins the blocks of one buffer of name into slot which, if it is the heap's.
 * RDL_INVALID: it is no block's, or runs over the end of one; nothing is pinned. */
rdl_status rdl_heap_pin(rdl_heap *heap, rdl_pins *pins, int which,
                        const void *memory, size_t bytes, const char *name);

/* Of both; what was freed meanwhile goes back with its last pin. */
void rdl_heap_unpin(rdl_heap *heap, rdl_pins *pins);

/* Bytes reserved now, and the most there ever were. */
void rdl_heap_count(rdl_heap *heap, uint64_t *reserved, uint64_t *peak);

/* 1 with a file of its own, else 0. */
/* Bytes of page tables, if its mapping is its own. */
uint64_t rdl_heap_tables(const rdl_heap *heap);

uint64_t rdl_heap_descriptors(rdl_heap *heap);

#endif
