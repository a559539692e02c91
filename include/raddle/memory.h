/* Memory for buffers of collectives, out of this rank's heap: a range that the
 * ranks of a job share, of which nothing is reserved until it is asked for. Any
 * call takes memory from anywhere; this may be freed at any time, and a large call
 * whose members all give it is not staged, but read where it lies.
 *
 * Threads: any.
 * Ownership: the program frees what it was given; what is left when the world
 * closes goes with it. Memory may be freed while operations that read or write it
 * are pending, on a stream, behind a work or in a batch: at once it is no longer
 * the program's, and the kernel gets it back, and nothing else is put there, when
 * the last of them has ended.
 * Fork: a forked child has no such memory. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RADDLE_MEMORY_H
#define RADDLE_MEMORY_H

#include <raddle/status.h>
#include <raddle/world.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is given out begins at a multiple of this. */
#define RDL_MEMORY_ALIGNMENT 4096

/* bytes of zeroed memory into *out, reserved at once, in whole pages: it is for
 * buffers, not for many small things. 0 bytes: *out becomes NULL.
 *
 * RDL_INVALID: out is NULL. RDL_NO_MEMORY: no free piece of the heap is so large, or
 * the limits of memory (cgroups, the machine) do not leave that much, with need and
 * have. RDL_SYSTEM: the kernel refused. On failure *out is untouched. */
RDL_CALL rdl_status rdl_mem_alloc(rdl_world *world, size_t bytes, void **out);

/* Never waits for an operation. NULL is allowed.
 *
 * RDL_INVALID: memory is not the beginning of what rdl_mem_alloc gave for this
 * world, or was freed before. RDL_SYSTEM: the kernel did not take it back; it is
 * freed, and stays in the account until the world closes. */
RDL_CALL rdl_status rdl_mem_free(rdl_world *world, void *memory);

#ifdef __cplusplus
}
#endif
#endif
