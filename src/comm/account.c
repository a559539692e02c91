/* The account. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <raddle/account.h>

#include "comm/world.h"

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
    account.collectives =
        atomic_load_explicit(&world->n_collectives, memory_order_relaxed);
    if (world->mapping != NULL) {
        account.descriptors = 1;
        account.arena_bytes_rank = rdl_shelf_reserved(&world->shelf);
        RDL_TRY(rdl_os_file_bytes(world->mapping->arena.fd,
                                  &account.arena_bytes_total));
    }
    *out = account;
    return RDL_OK;
}
