/* Recording waits. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/pause.h"

#include "comm/world.h"

void rdl_pause_sleep(rdl_pause *p)
{
    rdl_entry entry = { .root = -1, .flags = RDL_RECORD_BLOCKS };

    if (p == NULL || p->record != 0)
        return;
    entry.operation = p->operation;
    entry.count = p->count;
    entry.stream = p->stream;
    entry.site = rdl_texts_site(&p->world->texts, p->site);
    p->record = rdl_recorder_add(&p->world->recorder, &entry);
    rdl_recorder_wait(&p->world->recorder, p->record, -1);
}

rdl_status rdl_pause_end(rdl_pause *p, rdl_status status)
{
    if (p->record != 0)
        rdl_recorder_end(&p->world->recorder, p->record, status, true);
    return status;
}
