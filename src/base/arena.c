/* Making and mapping the arena. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/arena.h"

#include "base/bell.h"
#include "base/fault.h"
#include "base/hash.h"
#include "base/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* What of the header size ranks use, in whole pages. */
static size_t header_used(int size)
{
    size_t bytes =
        offsetof(rdl_header, obituaries) + (size_t)size * sizeof(rdl_obituary);

    return (bytes + RDL_PAGE - 1) & ~(size_t)(RDL_PAGE - 1);
}

size_t rdl_arena_header_bytes(const rdl_arena *arena)
{
    return header_used(arena->size);
}

uint64_t rdl_layout_hash(void)
{
    static const uint64_t facts[] = {
        sizeof(rdl_header),
        sizeof(rdl_slice),
        sizeof(rdl_slot),
        sizeof(rdl_line),
        sizeof(rdl_description),
        sizeof(rdl_obituary),
        sizeof(rdl_record),
        offsetof(rdl_slot, descriptions),
        offsetof(rdl_slot, key),
        offsetof(rdl_slot, list_text),
        offsetof(rdl_slot, name),
        offsetof(rdl_slot, counts_text),
        offsetof(rdl_slot, vote_text),
        offsetof(rdl_slice, sleepers),
        offsetof(rdl_slice, bell),
        offsetof(rdl_slice, recorded),
        offsetof(rdl_slice, reason),
        offsetof(rdl_slice, taken),
        offsetof(rdl_header, heap_bytes),
        offsetof(rdl_header, obituaries),
        RDL_SEQUENCE_BITS,
        RDL_LINES,
        RDL_INLINE,
        RDL_TABLE_AT,
        RDL_SLOTS_AT,
        RDL_TEXTS_AT,
        RDL_RECORDS_AT,
        RDL_STAGING_AT,
        RDL_SLICE_BYTES,
        RDL_HEADER_BYTES,
        RDL_HEAP_ALIGN,
        RDL_PURPOSES,
        RDL_MAX_RANKS,
        RDL_GROUPS_MOST,
        __BYTE_ORDER__,
    };

    return rdl_hash_bytes(2, facts, sizeof facts) | 1;
}

static void fill_header(rdl_header *header, int size, size_t heap_bytes)
{
    rdl_process self;

    rdl_process_self(&self);
    header->layout = rdl_layout_hash();
    header->slice_bytes = RDL_SLICE_BYTES;
    header->heap_bytes = heap_bytes;
    header->size = (uint32_t)size;
    header->maker_pid = self.pid;
    header->maker_started = self.started;
    header->maker_namespace = self.pid_namespace;
    header->magic = RDL_MAGIC;
}

/* Of the header and all slices. */
static size_t fixed_bytes(int size)
{
    return RDL_HEADER_BYTES + (size_t)size * RDL_SLICE_BYTES;
}

/* What each rank's heap may have, so that the file still fits its limit. */
static size_t choose_heap(int size)
{
    size_t fixed = fixed_bytes(size);
    size_t file = rdl_limits_file(fixed + RDL_HEAPS_MOST);
    size_t most = file > fixed ? (file - fixed) / (size_t)size : 0;

    most = most < RDL_HEAP_MOST ? most : RDL_HEAP_MOST;
    return most & ~(RDL_HEAP_ALIGN - 1);
}

rdl_status rdl_arena_make(int size, int *out)
{
    size_t heap_bytes = choose_heap(size);
    void *header;
    rdl_status st;
    int fd;

    RDL_TRY(
        rdl_os_memory_file(fixed_bytes(size) + (size_t)size * heap_bytes, &fd));
    st = rdl_os_reserve(fd, 0, header_used(size));
    if (st == RDL_OK)
        st = rdl_os_map(fd, 0, RDL_HEADER_BYTES, &header);
    if (st != RDL_OK) {
        close(fd);
        return st;
    }
    fill_header(header, size, heap_bytes);
    rdl_os_unmap(header, RDL_HEADER_BYTES);
    *out = fd;
    return RDL_OK;
}

static rdl_status check_header(const rdl_header *h, size_t bytes)
{
    if (h->magic != RDL_MAGIC)
        return rdl_fail(RDL_FORMAT,
                        "what was handed over is no raddle arena: "
                        "magic %016" PRIx64,
                        h->magic);
    if (h->layout != rdl_layout_hash())
        return rdl_fail(RDL_MISMATCH,
                        "the arena has layout %016" PRIx64
                        " and this library has %016" PRIx64 ": launcher and "
                        "ranks must use one version of raddle",
                        h->layout, rdl_layout_hash());
    if (h->size < 1 || h->size > RDL_MAX_RANKS ||
        h->heap_bytes > RDL_HEAP_MOST || h->heap_bytes % RDL_HEAP_ALIGN != 0 ||
        bytes !=
            fixed_bytes((int)h->size) + (size_t)h->size * (size_t)h->heap_bytes)
        return rdl_fail(RDL_FORMAT,
                        "an arena of %" PRIu32 " ranks cannot have "
                        "%zu bytes",
                        h->size, bytes);
    return RDL_OK;
}

typedef rdl_status (*mapper)(int fd, size_t offset, size_t bytes, void **out);

/* Checks the file by its header, and reads what one must know to map it. */
static rdl_status look_at(int fd, size_t bytes, rdl_arena *arena, mapper how)
{
    void *memory;
    rdl_header *h;
    rdl_status st;

    RDL_TRY(how(fd, 0, RDL_HEADER_BYTES, &memory));
    h = memory;
    st = check_header(h, bytes);
    arena->size = (int)h->size;
    arena->heap_bytes = (size_t)h->heap_bytes;
    rdl_os_unmap(memory, RDL_HEADER_BYTES);
    return st;
}

/* Where there is no room for them the ranks of this process do without. */
static void map_heaps(rdl_arena *arena)
{
    size_t bytes = (size_t)arena->size * arena->heap_bytes;
    void *heaps;

    if (bytes == 0 || rdl_limits_space(bytes) < bytes ||
        rdl_os_map(arena->fd, arena->bytes, bytes, &heaps) != RDL_OK)
        return;
    rdl_os_leave_out_of_dumps(heaps, bytes);
    arena->heaps = heaps;
    rdl_pieces_init(&arena->heap_pieces, heaps, bytes);
}

/* What everyone looks at who joins: the header, and how each rank fares. */
static void note_pieces(rdl_arena *arena)
{
    rdl_pieces_init(&arena->pieces, arena->base, arena->bytes);
    rdl_pieces_touch(&arena->pieces, arena->header, header_used(arena->size));
    for (int rank = 0; rank < arena->size; rank++)
        rdl_pieces_touch(&arena->pieces, rdl_arena_slice(arena, rank), RDL_PAGE);
}

static rdl_status map(rdl_arena *arena, const struct stat *st, mapper how)
{
    void *base;

    RDL_TRY(look_at(arena->fd, (size_t)st->st_size, arena, how));
    arena->bytes = fixed_bytes(arena->size);
    RDL_TRY(how(arena->fd, 0, arena->bytes, &base));
    arena->header = base;
    arena->base = base;
    return RDL_OK;
}

static rdl_status check_and_map(rdl_arena *arena, int fd, mapper how)
{
    struct stat st;
    int seals;

    if (rdl_fault_os() || fstat(fd, &st) != 0)
        return rdl_fail_errno(errno, "cannot look at the arena");
    if ((size_t)st.st_size < RDL_HEADER_BYTES)
        return rdl_fail(RDL_FORMAT,
                        "what was handed over is no raddle arena: "
                        "%lld bytes",
                        (long long)st.st_size);
    /* Where it ended early, the first touch would end this process. */
    seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
        return rdl_fail(RDL_FORMAT, "what was handed over is no raddle arena: "
                                    "it can shrink");
    *arena = (rdl_arena){
        .fd = fd,
        .device = (uint64_t)st.st_dev,
        .inode = (uint64_t)st.st_ino,
    };
    return map(arena, &st, how);
}

rdl_status rdl_arena_map(rdl_arena *arena, int fd)
{
    RDL_TRY(check_and_map(arena, fd, rdl_os_map));
    note_pieces(arena);
    map_heaps(arena);
    return RDL_OK;
}

rdl_status rdl_arena_map_to_read(rdl_arena *arena, int fd)
{
    return check_and_map(arena, fd, rdl_os_map_to_read);
}

void rdl_arena_unmap(rdl_arena *arena)
{
    rdl_os_unmap(arena->base, arena->bytes);
    if (arena->heaps != NULL)
        rdl_os_unmap(arena->heaps, (size_t)arena->size * arena->heap_bytes);
    close(arena->fd);
    rdl_arena_forget_pieces(arena);
}

void rdl_arena_forget_pieces(rdl_arena *arena)
{
    rdl_pieces_fini(&arena->pieces);
    rdl_pieces_fini(&arena->heap_pieces);
}

rdl_status rdl_arena_reserve_state(const rdl_arena *arena, int rank)
{
    size_t at = RDL_HEADER_BYTES + (size_t)rank * RDL_SLICE_BYTES;

    return rdl_os_reserve(arena->fd, at, RDL_PAGE);
}

static bool write_all(int fd, const void *data, size_t bytes, size_t at)
{
    return pwrite(fd, data, bytes, (off_t)at) == (ssize_t)bytes;
}

void rdl_arena_write_failure(int fd, int rank, rdl_status status,
                             const char *reason)
{
    size_t at = RDL_HEADER_BYTES + (size_t)rank * RDL_SLICE_BYTES;
    uint32_t failure = (uint32_t)status, state = RDL_SLICE_FAILED;
    int seals = fcntl(fd, F_GET_SEALS);
    char text[RDL_REASON] = { 0 };

    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
        return;
    snprintf(text, sizeof text, "%s", reason);
    /* The state last; whoever reads it finds the rest. */
    if (write_all(fd, text, sizeof text, at + offsetof(rdl_slice, reason)) &&
        write_all(fd, &failure, sizeof failure,
                  at + offsetof(rdl_slice, failure)))
        write_all(fd, &state, sizeof state, at + offsetof(rdl_slice, state));
}

static void ring_all(rdl_arena *arena)
{
    for (int rank = 0; rank < arena->size; rank++)
        rdl_bell_ring(rdl_arena_slice(arena, rank));
}

void rdl_arena_fail_start(rdl_arena *arena, rdl_status status,
                          const char *reason)
{
    rdl_header *h = arena->header;

    if (atomic_load_explicit(&h->failed, memory_order_relaxed) != RDL_OK)
        return;
    snprintf(h->reason, sizeof h->reason, "%s", reason);
    /* Pairs with the acquire of who waits for the start. */
    atomic_store_explicit(&h->failed, (uint32_t)status, memory_order_release);
}

void rdl_arena_bury(rdl_arena *arena, int rank, const char *text)
{
    rdl_obituary *o = &arena->header->obituaries[rank];

    if (atomic_load_explicit(&o->gone, memory_order_relaxed) != 0)
        return;
    snprintf(o->text, sizeof o->text, "%s", text);
    /* Sequentially consistent for the bell; pairs with the waiters' load. */
    atomic_store_explicit(&o->gone, 1, memory_order_seq_cst);
    ring_all(arena);
}
