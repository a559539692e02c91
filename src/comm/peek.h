/* Looking into another rank's slice: which group a record is of. All that is read is
 * outside data. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_COMM_PEEK_H
#define RDL_COMM_PEEK_H

#include "base/ranks.h"
#include "base/recorder.h"
#include "base/slot.h"

#include <raddle/group.h>
#include <raddle/world.h>
#include <stdbool.h>

/* A lane's list and name. */
typedef struct rdl_listing {
    int size;
    int ranks[RDL_MAX_RANKS];
    char name[RDL_NAME_MOST + 1]; /* printable */
    bool way;                     /* of transfers: from ranks[0] to ranks[1] */
    bool shrunk; /* of those who were left (rdl_group_shrink) */
} rdl_listing;

/* Of the lane whose slot that is; false if it makes no sense. */
bool rdl_peek_list(rdl_slice *slice, rdl_slot *slot, rdl_listing *out);

/* Of the lane with this half of a key; false if it has no slot (any more). */
bool rdl_peek_lane(rdl_slice *slice, uint64_t lane, rdl_listing *out);

#define RDL_PEEK_TEXT 192

/* "group 'dp' [0,1]", "the world [0-3]" in a world of `size` ranks; "a group that is
 * closed" if it is not there. */
void rdl_peek_group(rdl_slice *slice, uint64_t lane, int size, char *text,
                    size_t bytes);

/* "all_reduce #7 on group 'dp' [0,1]", "send to rank 3", "synchronize stream 'up'".
 * A lane on which that rank has not begun a call yet is known from asker's slice, if at
 * all. */
void rdl_peek_call(rdl_slice *slice, rdl_slice *asker, const rdl_entry *entry,
                   int size, char *text, size_t bytes);

/* What stands before it in a sentence that passes it on. */
#define RDL_AFTER_FAILURE ", after its call had failed: "

/* What the rank's program stopped at: the sentence of the failure of its newest call
 * that failed, or what that one passes on, fit to be passed on again (64 bytes at
 * least). False if none failed, if the program has gone on since, or if the sentence is
 * gone. */
bool rdl_peek_failure(rdl_slice *slice, char *text, size_t bytes);

/* A text of the slice, fit for a sentence; "" if there is none. */
void rdl_peek_text(rdl_slice *slice, uint32_t offset, char *text, size_t bytes);

/* Why the rank gave up, likewise. */
void rdl_peek_reason(const rdl_slice *slice, char *text, size_t bytes);

#define RDL_SITE_SHOWN 80 /* bytes; the end of a longer one */

/* Adds " at train.c:120"; nothing if the site is not known. */
void rdl_peek_site(rdl_text *text, rdl_slice *slice, uint64_t site);

#endif
