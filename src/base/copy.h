/* Copying, with a choice of what becomes of the caches. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BASE_COPY_H
#define RDL_BASE_COPY_H

#include <stdbool.h>
#include <stddef.h>

/* to and from overlap nowhere; both may be NULL if bytes is 0.
 *
 * streaming: past the caches (non-temporal stores), which saves reading the lines
 * that are written, and leaves the caches what they hold. For results that are
 * larger than a cache and that nobody reads soon. A release does not wait for such
 * stores by itself: rdl_copy_settle comes between. Where a processor has none, and
 * where a race detector must see them, they are plain. */
void rdl_copy(void *to, const void *from, size_t bytes, bool streaming);

/* What this thread has stored past the caches is ordered before what it stores
 * from now on. A tenth of a microsecond: once for many copies. */
void rdl_copy_settle(void);

#endif
