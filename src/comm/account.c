/* The account. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <raddle/account.h>

#include "comm/world.h"

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
    if (world->mapping != NULL) {
        account.descriptors++;
        account.arena_bytes_rank = rdl_shelf_reserved(&world->shelf);
        RDL_TRY(rdl_os_file_bytes(world->mapping->arena.fd,
                                  &account.arena_bytes_total));
    }
    *out = account;
    return RDL_OK;
}
