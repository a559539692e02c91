/* Blocks in a list by their place, first fit. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/heap.h"

#include "base/limits.h"
#include "base/memory.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

static size_t round_up(size_t bytes)
{
    return (bytes + RDL_HEAP_UNIT - 1) & ~(RDL_HEAP_UNIT - 1);
}

static unsigned char *begin_of(rdl_heap *heap)
{
    return (unsigned char *)atomic_load_explicit(&heap->begin,
                                                 memory_order_relaxed);
}

static size_t bytes_of(rdl_heap *heap)
{
    return atomic_load_explicit(&heap->bytes, memory_order_relaxed);
}

/* --- the range ------------------------------------------------------------- */

static void set_range(rdl_heap *heap, void *begin, size_t bytes)
{
    atomic_store_explicit(&heap->begin, (uintptr_t)begin, memory_order_relaxed);
    /* Pairs with the acquire in rdl_heap_has: begin is there before it counts. */
    atomic_store_explicit(&heap->bytes, bytes, memory_order_release);
}

void rdl_heap_init(rdl_heap *heap, rdl_arena *arena, int rank, rdl_purse *purse)
{
    *heap = (rdl_heap){ .fd = -1, .own = true, .purse = purse };
    heap->pieces = &heap->own_pieces;
    pthread_mutex_init(&heap->lock, NULL);
    if (arena == NULL || arena->heaps == NULL)
        return;
    heap->own = false;
    heap->slice = rdl_arena_slice(arena, rank);
    heap->pieces = &arena->heap_pieces;
    heap->fd = arena->fd;
    heap->file_at = arena->bytes + (size_t)rank * arena->heap_bytes;
    set_range(heap, arena->heaps + (size_t)rank * arena->heap_bytes,
              arena->heap_bytes);
}

/* A smaller part of the file where there is no room for all of it. */
static rdl_status map_what_fits(int fd, size_t least, size_t *bytes, void **out)
{
    rdl_status st = rdl_os_map(fd, 0, *bytes, out);

    while (st == RDL_NO_MEMORY && *bytes / 2 >= least) {
        *bytes = *bytes / 2 & ~(RDL_HEAP_UNIT - 1);
        st = rdl_os_map(fd, 0, *bytes, out);
    }
    return st;
}

/* Under the lock. */
static rdl_status make_own(rdl_heap *heap, size_t least)
{
    size_t bytes =
        rdl_limits_file(rdl_limits_space(RDL_HEAP_MOST)) & ~(RDL_HEAP_UNIT - 1);
    void *begin = NULL;
    rdl_status st;
    int fd;

    if (bytes < least)
        bytes = least;
    RDL_TRY(rdl_os_memory_file(bytes, &fd));
    st = map_what_fits(fd, least, &bytes, &begin);
    if (st != RDL_OK) {
        close(fd);
        return st;
    }
    rdl_os_leave_out_of_dumps(begin, bytes);
    rdl_pieces_init(&heap->own_pieces, begin, bytes);
    rdl_charge(heap->purse, heap->own_pieces.touched);
    heap->fd = fd;
    set_range(heap, begin, bytes);
    return RDL_OK;
}

static void give_back_all(rdl_heap *heap)
{
    for (size_t i = 0; i < heap->count; i++)
        (void)rdl_os_discard(heap->fd, heap->file_at + heap->blocks[i].at,
                             heap->blocks[i].bytes);
}

/* Under the lock. */
static void set_reserved(rdl_heap *heap, uint64_t bytes)
{
    heap->reserved = bytes;
    if (heap->slice != NULL)
        atomic_store_explicit(&heap->slice->taken[RDL_FOR_HEAP], bytes,
                              memory_order_relaxed);
}

void rdl_heap_fini(rdl_heap *heap)
{
    if (heap->own && heap->fd >= 0)
        rdl_os_unmap(begin_of(heap), bytes_of(heap));
    else
        give_back_all(heap);
    set_reserved(heap, 0);
    rdl_heap_forget(heap);
}

void rdl_heap_forget(rdl_heap *heap)
{
    if (heap->own && heap->fd >= 0)
        close(heap->fd);
    pthread_mutex_destroy(&heap->lock);
    rdl_pieces_fini(&heap->own_pieces);
    rdl_free(heap->blocks);
}

void rdl_heap_count(rdl_heap *heap, uint64_t *reserved, uint64_t *peak)
{
    pthread_mutex_lock(&heap->lock);
    *reserved = heap->reserved;
    *peak = heap->peak;
    pthread_mutex_unlock(&heap->lock);
}

uint64_t rdl_heap_tables(const rdl_heap *heap)
{
    return rdl_pieces_tables(&heap->own_pieces);
}

uint64_t rdl_heap_descriptors(rdl_heap *heap)
{
    return heap->own && bytes_of(heap) > 0;
}

/* --- the list; the caller holds the lock ----------------------------------- */

/* How many blocks begin at or before a place: the last of them may hold it. */
static size_t blocks_to(const rdl_heap *heap, size_t at)
{
    size_t low = 0, high = heap->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (heap->blocks[middle].at <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The block that memory lies in, or NULL. */
static rdl_block *find(rdl_heap *heap, const void *memory)
{
    size_t at = (size_t)((uintptr_t)memory - (uintptr_t)begin_of(heap));
    size_t n = blocks_to(heap, at);
    rdl_block *block = n > 0 ? &heap->blocks[n - 1] : NULL;

    return block != NULL && at - block->at < block->bytes ? block : NULL;
}

static rdl_status make_room(rdl_heap *heap)
{
    size_t room = heap->room ? 2 * heap->room : 16;
    rdl_block *blocks;

    if (heap->count < heap->room)
        return RDL_OK;
    blocks = rdl_realloc_for(heap->purse, heap->blocks, room * sizeof *blocks);
    if (blocks == NULL)
        return rdl_fail(RDL_NO_MEMORY,
                        "rdl_mem_alloc: no memory for a list of %zu blocks",
                        room);
    heap->blocks = blocks;
    heap->room = room;
    return RDL_OK;
}

/* The first gap of bytes: before block i, which is count at the end. */
static rdl_status find_gap(rdl_heap *heap, size_t bytes, size_t *at, size_t *i)
{
    size_t from = 0, largest = 0;

    for (*i = 0; *i <= heap->count; ++*i) {
        size_t to = *i < heap->count ? heap->blocks[*i].at : bytes_of(heap);

        if (to - from >= bytes) {
            *at = from;
            return RDL_OK;
        }
        largest = to - from > largest ? to - from : largest;
        if (*i < heap->count)
            from = to + heap->blocks[*i].bytes;
    }
    return rdl_fail(
        RDL_NO_MEMORY,
        "rdl_mem_alloc needs %zu bytes in one piece, and the largest "
        "that is free in this rank's heap of %zu bytes has %zu",
        bytes, bytes_of(heap), largest);
}

static rdl_status insert(rdl_heap *heap, size_t bytes, size_t *at)
{
    size_t i = 0;

    if (bytes_of(heap) == 0)
        RDL_TRY(make_own(heap, bytes));
    RDL_TRY(make_room(heap));
    RDL_TRY(find_gap(heap, bytes, at, &i));
    memmove(&heap->blocks[i + 1], &heap->blocks[i],
            (heap->count - i) * sizeof *heap->blocks);
    heap->blocks[i] = (rdl_block){ .at = *at, .bytes = bytes };
    heap->count++;
    return RDL_OK;
}

static void erase(rdl_heap *heap, size_t at)
{
    size_t i = blocks_to(heap, at) - 1;

    heap->count--;
    memmove(&heap->blocks[i], &heap->blocks[i + 1],
            (heap->count - i) * sizeof *heap->blocks);
}

/* --- taking ---------------------------------------------------------------- */

/* Without the lock: its place is taken, and nobody knows its address yet. */
static rdl_status fill(rdl_heap *heap, size_t at, size_t bytes)
{
    RDL_TRY(rdl_limits_check_memory(bytes, "rdl_mem_alloc"));
    rdl_pieces_touch(heap->pieces, begin_of(heap) + at, bytes);
    return rdl_os_reserve(heap->fd, heap->file_at + at, bytes);
}

static void filled(rdl_heap *heap, size_t at, size_t bytes, rdl_status st)
{
    pthread_mutex_lock(&heap->lock);
    if (st == RDL_OK)
        set_reserved(heap, heap->reserved + bytes);
    else
        erase(heap, at);
    if (heap->reserved > heap->peak)
        heap->peak = heap->reserved;
    pthread_mutex_unlock(&heap->lock);
}

rdl_status rdl_heap_take(rdl_heap *heap, size_t bytes, void **out)
{
    size_t whole = round_up(bytes), at = 0;
    rdl_status st;

    if (bytes > RDL_HEAP_MOST)
        return rdl_fail(RDL_NO_MEMORY,
                        "rdl_mem_alloc: %zu bytes are more than the %zu that a "
                        "heap can have",
                        bytes, RDL_HEAP_MOST);
    pthread_mutex_lock(&heap->lock);
    st = insert(heap, whole, &at);
    pthread_mutex_unlock(&heap->lock);
    if (st != RDL_OK)
        return st;
    st = fill(heap, at, whole);
    filled(heap, at, whole, st);
    if (st == RDL_OK)
        *out = begin_of(heap) + at;
    return st;
}

/* --- giving back ----------------------------------------------------------- */

/* Without the lock: the block keeps its place until its pages are gone. */
static rdl_status discard(rdl_heap *heap, rdl_block block)
{
    RDL_TRY(rdl_os_discard(heap->fd, heap->file_at + block.at, block.bytes));
    pthread_mutex_lock(&heap->lock);
    erase(heap, block.at);
    set_reserved(heap, heap->reserved - block.bytes);
    pthread_mutex_unlock(&heap->lock);
    return RDL_OK;
}

/* The block that begins there and is the user's. */
static rdl_status find_held(rdl_heap *heap, const void *memory, rdl_block **out)
{
    rdl_block *block = rdl_heap_has(heap, memory) ? find(heap, memory) : NULL;
    size_t inside;

    if (block == NULL)
        return rdl_fail(
            RDL_INVALID,
            "rdl_mem_free: %p is no memory of this world's heap, or "
            "was freed before",
            memory);
    inside = (size_t)((uintptr_t)memory - (uintptr_t)begin_of(heap)) - block->at;
    if (inside != 0)
        return rdl_fail(
            RDL_INVALID,
            "rdl_mem_free: %p is byte %zu of a block of %zu, and not "
            "its first",
            memory, inside, block->bytes);
    if (block->state != RDL_BLOCK_HELD)
        return rdl_fail(RDL_INVALID, "rdl_mem_free: %p was freed before",
                        memory);
    *out = block;
    return RDL_OK;
}

#ifdef RDL_MUTANT_PIN /* tests must catch this build */
#define PINS_HOLD false
#else
#define PINS_HOLD true
#endif

rdl_status rdl_heap_give(rdl_heap *heap, void *memory)
{
    rdl_block *block = NULL, copy = { 0 };
    rdl_status st;

    pthread_mutex_lock(&heap->lock);
    st = find_held(heap, memory, &block);
    if (st == RDL_OK) {
        block->state =
            block->pins > 0 && PINS_HOLD ? RDL_BLOCK_FREED : RDL_BLOCK_GOING;
        copy = *block;
    }
    pthread_mutex_unlock(&heap->lock);
    return copy.state == RDL_BLOCK_GOING ? discard(heap, copy) : st;
}

/* --- pins ------------------------------------------------------------------ */

static rdl_status check_extent(rdl_heap *heap, const rdl_block *block,
                               const void *memory, size_t bytes,
                               const char *name)
{
    size_t inside;

    if (block == NULL || block->state != RDL_BLOCK_HELD)
        return rdl_fail(RDL_INVALID,
                        "%s: the %zu bytes at %p lie in this rank's heap, and "
                        "rdl_mem_free has freed them",
                        name, bytes, memory);
    inside = (size_t)((uintptr_t)memory - (uintptr_t)begin_of(heap)) - block->at;
    if (bytes > block->bytes - inside)
        return rdl_fail(RDL_INVALID,
                        "%s: %zu bytes from byte %zu on of a block of %zu that "
                        "rdl_mem_alloc gave",
                        name, bytes, inside, block->bytes);
    return RDL_OK;
}

rdl_status rdl_heap_pin(rdl_heap *heap, rdl_pins *pins, int which,
                        const void *memory, size_t bytes, const char *name)
{
    rdl_block *block;
    rdl_status st;

    pins->memory[which] = NULL;
    if (bytes == 0 || !rdl_heap_has(heap, memory))
        return RDL_OK;
    pthread_mutex_lock(&heap->lock);
    block = find(heap, memory);
    st = check_extent(heap, block, memory, bytes, name);
    if (st == RDL_OK) {
        block->pins++;
        pins->memory[which] = memory;
    }
    pthread_mutex_unlock(&heap->lock);
    return st;
}

static void unpin(rdl_heap *heap, const void *memory)
{
    rdl_block *block, copy;

    pthread_mutex_lock(&heap->lock);
    block = find(heap, memory);
    rdl_assert(block != NULL && block->pins > 0);
    if (--block->pins == 0 && block->state == RDL_BLOCK_FREED)
        block->state = RDL_BLOCK_GOING;
    copy = *block;
    pthread_mutex_unlock(&heap->lock);
    if (copy.state == RDL_BLOCK_GOING)
        (void)discard(heap, copy);
}

void rdl_heap_unpin(rdl_heap *heap, rdl_pins *pins)
{
    for (int which = 0; which < 2; which++)
        if (pins->memory[which] != NULL) {
            unpin(heap, pins->memory[which]);
            pins->memory[which] = NULL;
        }
}
