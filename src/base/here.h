/* On which processor this thread runs just now. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BASE_HERE_H
#define RDL_BASE_HERE_H

#include <features.h>
#include <sched.h>

#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 35)
#include <sys/rseq.h>

/* The kernel keeps it in this thread's memory; -1: it does not. */
static inline int rdl_cpu_here(void)
{
    const struct rseq *r =
        (const void *)((const char *)__builtin_thread_pointer() + __rseq_offset);

    return __rseq_size > 0 ? (int)__atomic_load_n(&r->cpu_id, __ATOMIC_RELAXED)
                           : -1;
}
#else
static inline int rdl_cpu_here(void)
{
    return -1; /* asking costs more than it is worth */
}
#endif

#endif
