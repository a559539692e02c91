/* What ranks have published, in words. All of it is outside data, of a peer that may
 * be wrong, dead, or writing it at this moment: whatever its bytes are, what is shown
 * is a text of printable characters, and nothing is read outside the slice. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_COMM_SHOW_H
#define RDL_COMM_SHOW_H

#include "base/layout.h"
#include "base/ranks.h"

#include <stdbool.h>

/* Bytes of which some are no printable UTF-8: those as '?'. Ends at a 0. */
void rdl_show_bytes(rdl_text *text, const void *bytes, size_t count);

/* The text at offset of the slice; nothing if there is none. */
void rdl_show_text(rdl_text *text, rdl_slice *slice, uint32_t offset);

#define RDL_SITE_SHOWN 80 /* bytes; the end of a longer one */

/* " at train.c:120"; nothing if the site is not known. */
void rdl_show_site(rdl_text *text, rdl_slice *slice, uint64_t site);

/* The list and the name of a lane, as its slot names them. */
typedef struct rdl_roll {
    int ranks[RDL_MAX_RANKS];
    int count;
    char name[RDL_NAME_MOST + 1];
} rdl_roll;

/* False: what is there makes no sense. */
bool rdl_roll_read(rdl_slice *slice, const rdl_slot *slot, rdl_roll *out);

/* "group 'dp' [0,1]", "the world [0-63]": the lane whose key begins with that word,
 * in a world of size ranks; of a way between two ranks, the group it belongs to.
 * Nothing if the rank does not have it any more. */
void rdl_show_lane(rdl_text *text, rdl_slice *slice, uint64_t lane, int size);

#endif
