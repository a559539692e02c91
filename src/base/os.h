/* The system calls that can fail, behind one seam that tests make fail
 * (base/fault.h). Each answers RDL_SYSTEM or RDL_NO_MEMORY with a sentence. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BASE_OS_H
#define RDL_BASE_OS_H

#include "base/status.h"
#include "base/time.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* --- shared memory --------------------------------------------------------- */

/* A nameless file of that many bytes, none of them reserved, whose length can
 * never change again; close-on-exec. */
rdl_status rdl_os_memory_file(size_t bytes, int *fd);

/* Takes the pages for real, so that no later touch can fail. */
rdl_status rdl_os_reserve(int fd, size_t offset, size_t bytes);

/* Gives the pages back: what is read there is zero again. */
rdl_status rdl_os_discard(int fd, size_t offset, size_t bytes);

/* Maps a part of the file, shared; a forked child does not inherit the mapping. */
rdl_status rdl_os_map(int fd, size_t offset, size_t bytes, void **out);
/* The same for one who only looks. */
rdl_status rdl_os_map_to_read(int fd, size_t offset, size_t bytes, void **out);
void rdl_os_unmap(void *memory, size_t bytes);

/* A core dump would touch, and so take, every page of a sparse range. */
void rdl_os_leave_out_of_dumps(void *memory, size_t bytes);

/* Bytes the kernel has taken for the file: st_blocks * 512. */
rdl_status rdl_os_file_bytes(int fd, uint64_t *bytes);

/* --- a mark that a fork wipes ---------------------------------------------- */

typedef struct rdl_fork_mark rdl_fork_mark;

rdl_status rdl_fork_mark_create(rdl_fork_mark **out);
void rdl_fork_mark_destroy(rdl_fork_mark *mark);

/* False in a forked child of the process that created it. */
bool rdl_fork_mark_holds(const rdl_fork_mark *mark);

/* --- processes ------------------------------------------------------------- */

typedef struct rdl_process {
    uint32_t pid;
    uint64_t started; /* clock ticks after boot; tells reused pids apart */
    uint64_t pid_namespace; /* 0: not known */
} rdl_process;

rdl_status rdl_process_self(rdl_process *out);

typedef enum rdl_liveness {
    RDL_ALIVE,
    RDL_DEAD,
    RDL_UNKNOWN /* another pid namespace, no /proc, or no descriptor left */
} rdl_liveness;

/* Whether that very process still runs; a zombie is dead. self: the asker. */
rdl_liveness rdl_process_liveness(const rdl_process *self,
                                  const rdl_process *other);

typedef enum rdl_condition {
    RDL_GOES_ON, /* or it cannot be told */
    RDL_STOPPED, /* by a signal or a debugger */
    RDL_DUMPING  /* it has crashed, and the kernel writes its core */
} rdl_condition;

/* What keeps that very process from going on. self: the asker. One that is traced is looked
 * at for a tenth of a second: who only looks at it lets it go. */
rdl_condition rdl_process_condition(const rdl_process *self,
                                    const rdl_process *other);

/* Whether it writes its core; never waits. */
bool rdl_process_is_dumping(const rdl_process *self, const rdl_process *other);

/* --- waiting --------------------------------------------------------------- */

/* Sleeps while *word == value, at most that long; may return early. */
void rdl_futex_wait(_Atomic uint32_t *word, uint32_t value, rdl_time most);
void rdl_futex_wake_all(_Atomic uint32_t *word);

#endif
