/* Numbers of all ranks. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/account.h"

#include "command.h"

#include <inttypes.h>
#include <raddle/account.h>
#include <raddle/collective.h>
#include <stdio.h>
#include <string.h>

/* Lines are "FROM-TO RIGHTS OFFSET DEVICE INODE PATH". */
int64_t account_shm_bytes(void)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[4352];
    int64_t bytes = 0;

    if (maps == NULL)
        return 0;
    while (fgets(line, sizeof line, maps) != NULL) {
        unsigned long from, to;

        if (strstr(line, " /dev/shm/") != NULL &&
            sscanf(line, "%lx-%lx", &from, &to) == 2)
            bytes += (int64_t)(to - from);
    }
    fclose(maps);
    return bytes;
}

/* The header belongs to no rank: it is the first one's here, to be counted once. */
static void list_spent(const rdl_account *a, bool first,
                       int64_t own[SPENT_KINDS])
{
    const rdl_account_arena *arena = &a->arena_rank;

    own[SPENT_HEADER] = first ? (int64_t)a->arena_total.header : 0;
    own[SPENT_STATE] = (int64_t)arena->state;
    own[SPENT_SLOTS] = (int64_t)arena->slots;
    own[SPENT_TEXTS] = (int64_t)arena->texts;
    own[SPENT_RECORDS] = (int64_t)arena->records;
    own[SPENT_STAGING] = (int64_t)arena->staging;
    own[SPENT_HEAP] = (int64_t)arena->heap;
    own[SPENT_PAGE_TABLES] = (int64_t)a->page_table_bytes;
    own[SPENT_PRIVATE] = (int64_t)(a->private_bytes + a->host_bytes);
}

static rdl_status bring_together(account *a, rdl_world *world,
                                 const rdl_account *own)
{
    const rdl_call call = { .caller = "account" };
    int64_t spent[SPENT_KINDS];
    rdl_status st;

    list_spent(own, rdl_world_rank(world) == 0, spent);
    st = rdl_all_reduce(world, RDL_WORLD, spent, a->rank, SPENT_KINDS,
                        RDL_INT64, RDL_MAX, &call);
    return st != RDL_OK ? st
                        : rdl_all_reduce(world, RDL_WORLD, spent, a->all,
                                         SPENT_KINDS, RDL_INT64, RDL_SUM, &call);
}

bool account_take(account *a, rdl_world *world, int64_t shm_peak, trouble *t)
{
    const rdl_call call = { .caller = "account" };
    rdl_account own;
    int64_t most[5];

    if (rdl_account_read(world, &own) != RDL_OK)
        return trouble_note(t, STATUS_FAILED, "%s", rdl_error_detail());
    most[0] = (int64_t)own.groups_opened;
    most[1] = (int64_t)own.communicators;
    most[2] = (int64_t)own.arena_bytes_rank;
    most[3] = (int64_t)own.arena_bytes_total;
    most[4] = (int64_t)own.collectives;
    if (rdl_all_reduce(world, RDL_WORLD, most, most, 5, RDL_INT64, RDL_MAX,
                       &call) != RDL_OK ||
        rdl_all_reduce(world, RDL_WORLD, &shm_peak, &a->shm_peak, 1, RDL_INT64,
                       RDL_SUM, &call) != RDL_OK ||
        bring_together(a, world, &own) != RDL_OK)
        return trouble_note(t, STATUS_FAILED, "%s", rdl_error_detail());
    a->groups_opened = most[0];
    a->communicators = most[1];
    a->arena_rank = most[2];
    a->arena_total = most[3];
    a->collectives = most[4];
    return true;
}
