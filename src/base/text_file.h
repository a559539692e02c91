/* Small text files which the kernel writes: /proc, /sys, cgroups.
 *
 * What is there depends on the kernel, the container and the rights of the
 * process, so a file that cannot be read is an empty text, and a text that is
 * not understood is passed over; nobody fails for it. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BASE_TEXT_FILE_H
#define RDL_BASE_TEXT_FILE_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* Longest path, its end included; longer ones are files that are not there. */
#define RDL_PATH_MOST 4096

/* Reads the file root + format into text, its end included; what does not fit is
 * cut off. root is "" but in tests, which lay out a tree of their own.
 * RDL_SYSTEM or RDL_NO_MEMORY when the process has no descriptor or memory left
 * to open it with. */
rdl_status rdl_read_text(char *text, size_t bytes, const char *root,
                         const char *format, ...) RDL_PRINTF(4, 5);

/* The number without sign at the start of text, spaces before it allowed.
 * Returns what stands behind it; NULL, and *out untouched, when there is none or
 * it is too large. */
const char *rdl_parse_number(const char *text, uint64_t *out);

/* True, and fails, for the errors of opening a file that say something of this
 * process and nothing of the file. */
bool rdl_is_shortage(int error);

#endif
