/* Waits of the program's own thread that are no collectives: for a work, a batch, a
 * stream, an event. One that sleeps stands in the record, so that who reads it sees
 * what the thread does; one that does not, costs nothing. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_COMM_PAUSE_H
#define RDL_COMM_PAUSE_H

#include "base/recorder.h"
#include "comm/texts.h"

#include <raddle/world.h>

/* Of one wait. */
typedef struct rdl_pause {
    rdl_world *world;
    rdl_call_site site;
    uint8_t operation; /* RDL_RECORD_AWAIT, RDL_RECORD_SYNCHRONIZE */
    uint64_t count;    /* of AWAIT: the number of the awaited record */
    uint32_t stream;   /* of SYNCHRONIZE: the text of its name */
    uint64_t record;   /* 0: it has not slept yet */
} rdl_pause;

/* It is about to sleep; from the second time on nothing. pause may be NULL. */
void rdl_pause_sleep(rdl_pause *pause);

/* It has ended. Returns status. */
rdl_status rdl_pause_end(rdl_pause *pause, rdl_status status);

#endif
