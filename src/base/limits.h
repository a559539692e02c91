/* The limits that end a process without a word, asked before they are met.
 *
 * A memory cgroup that is full kills the process that touches the next page;
 * reserving the page first (fallocate) kills it just so. An answer here is true
 * for one moment only: ranks that start together should ask once for all. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BASE_LIMITS_H
#define RDL_BASE_LIMITS_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* What is left for everything else (page tables, the program's own heap) when
 * need is granted. */
#define RDL_MEMORY_SPARED (UINT64_C(4) << 20)

/* Whether need more bytes and RDL_MEMORY_SPARED fit into every memory cgroup from
 * ours up to the root, and into the memory that the machine has available. The
 * page cache of a cgroup counts as available, since the kernel drops it before
 * it kills; swap does not. A need of 0 always fits.
 *
 * RDL_NO_MEMORY: "what needs 8388608 bytes ..." with what is there, which limit
 * it is, and what to turn. RDL_SYSTEM: no descriptor left to read a limit with. */
rdl_status rdl_limits_check_memory(uint64_t need, const char *what);

/* For tests: as the files below root have it. */
rdl_status rdl_limits_check_memory_at(const char *root, uint64_t need,
                                      const char *what);

/* wish, or less where a file may not be so large (RLIMIT_FSIZE): who makes it
 * longer is sent a signal. */
size_t rdl_limits_file(size_t wish);

/* wish, or less: address space for what is sparse and can be done without. Where
 * RLIMIT_AS is set, a quarter of it, as the program wants the rest. */
size_t rdl_limits_space(size_t wish);

#define RDL_DESCRIPTORS_TEXT 96

/* "RLIMIT_NOFILE (ulimit -n) is 1024, hard limit 4096": for the sentence of a
 * failure with EMFILE. Returns text; keeps errno. */
const char *rdl_limits_descriptors(char text[RDL_DESCRIPTORS_TEXT]);

#endif
