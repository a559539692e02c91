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
                       RDL_SUM, &call) != RDL_OK)
        return trouble_note(t, STATUS_FAILED, "%s", rdl_error_detail());
    a->groups_opened = most[0];
    a->communicators = most[1];
    a->arena_rank = most[2];
    a->arena_total = most[3];
    a->collectives = most[4];
    return true;
}
