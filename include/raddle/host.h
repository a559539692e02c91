/* Hosts: what the ranks of one process share, which is the mapping of each
 * arena and the limits below. A program with one rank needs none: a world opened
 * without a host makes its own.
 *
 * Threads: a host may be used from any thread.
 * Ownership: the program that created a host destroys it. Worlds keep what they
 * need of it, so the order of destroying and closing does not matter. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RADDLE_HOST_H
#define RADDLE_HOST_H

#include <raddle/status.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rdl_host rdl_host;

#define RDL_STAGING_LEAST ((size_t)4096)
#define RDL_STAGING_MOST ((size_t)64 << 20)
#define RDL_GROUPS_MOST 4096
#define RDL_RECORDS_LEAST 64
#define RDL_RECORDS_MOST 65536

/* Zero is the default of every field, so `{0}` is a complete set of options. */
typedef struct rdl_host_options {
    /* Bytes of staging memory of each rank, through which messages that do not
     * fit a slot pass: 4,096 to 64 MiB, rounded up to whole pages; 0: 1.25 MiB.
     * Less is slower and never wrong. */
    size_t staging_bytes;
    /* Groups that one rank may have in use at once (list and name counted
     * together): 1 to 4,096; 0: 4,096. A closed group gives its place back when
     * the other members have passed its last operation. */
    int groups;
    /* Calls of each rank that its recorder keeps, 64 bytes each: a power of two, 64
     * to 65,536; 0: 2,048. */
    int records;
} rdl_host_options;

/* options may be NULL. The caller owns *out.
 * RDL_INVALID: a limit is out of its range. RDL_NO_MEMORY. */
RDL_CALL rdl_status rdl_host_create(const rdl_host_options *options,
                                    rdl_host **out);

/* NULL is allowed. Memory that open worlds use lives on until they close. */
RDL_API void rdl_host_destroy(rdl_host *host);

#ifdef __cplusplus
}
#endif
#endif
