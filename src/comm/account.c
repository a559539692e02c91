/* The account. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <raddle/account.h>

#include "comm/world.h"

static uint64_t reserved(const rdl_slice *slice, rdl_purpose purpose)
{
    return atomic_load_explicit(&slice->taken[purpose], memory_order_relaxed);
}

static void add_slice(rdl_account_arena *a, const rdl_slice *slice)
{
    a->state += reserved(slice, RDL_FOR_STATE);
    a->slots += reserved(slice, RDL_FOR_SLOTS);
    a->texts += reserved(slice, RDL_FOR_TEXTS);
    a->records += reserved(slice, RDL_FOR_RECORDS);
    a->staging += reserved(slice, RDL_FOR_STAGING);
    a->heap += reserved(slice, RDL_FOR_HEAP);
}

static rdl_status read_arena(const rdl_world *world, rdl_account *account)
{
    const rdl_arena *arena = &world->mapping->arena;

    account->arena_bytes_rank = rdl_shelf_reserved(&world->shelf);
    add_slice(&account->arena_rank, world->slice);
    account->arena_total.header = rdl_arena_header_bytes(arena);
    for (int rank = 0; rank < arena->size; rank++)
        add_slice(&account->arena_total, rdl_arena_slice(arena, rank));
    account->page_table_bytes += rdl_pieces_tables(&arena->pieces) +
                                 rdl_pieces_tables(&arena->heap_pieces);
    return rdl_os_file_bytes(arena->fd, &account->arena_bytes_total);
}

/* Each stream has one, and the host's helper is one of this world's as of every
 * other's on the host: it may be driving for any of them. */
static uint64_t count_threads(const rdl_world *world)
{
    return atomic_load_explicit(&world->n_streams, memory_order_relaxed) +
           (uint64_t)atomic_load_explicit(&world->host->helper_runs,
                                          memory_order_relaxed);
}

rdl_status rdl_account_read(rdl_world *world, rdl_account *out)
{
    rdl_account account = { 0 };

    RDL_TRY(rdl_world_check(world));
    if (out == NULL)
        return rdl_fail(RDL_INVALID, "rdl_account_read: out is NULL");
    pthread_mutex_lock(&world->lock);
    account.groups_opened = world->n_openings;
    account.groups_open = world->n_open;
    account.communicators = world->n_comms;
    account.lanes = world->n_slots;
    pthread_mutex_unlock(&world->lock);
    account.threads = count_threads(world);
    account.collectives =
        atomic_load_explicit(&world->n_collectives, memory_order_relaxed);
    account.collectives_mapped =
        atomic_load_explicit(&world->n_mapped, memory_order_relaxed);
    rdl_heap_count(&world->heap, &account.heap_bytes, &account.heap_bytes_peak);
    account.descriptors = rdl_heap_descriptors(&world->heap);
    account.page_table_bytes = rdl_heap_tables(&world->heap);
    account.private_bytes = rdl_purse_bytes(&world->purse);
    account.host_bytes = rdl_purse_bytes(&world->host->purse);
    if (world->mapping != NULL) {
        account.descriptors++;
        RDL_TRY(read_arena(world, &account));
    }
    *out = account;
    return RDL_OK;
}
