/* Failing on request: the seam by which tests make the n-th allocation or the
 * n-th system call of a rank fail. Without RDL_FAULTS (release builds) nothing of
 * it is compiled.
 *
 * A plan belongs to a thread, which is a rank in such tests; the library never
 * sets one. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BASE_FAULT_H
#define RDL_BASE_FAULT_H

#include <stdbool.h>

typedef struct rdl_fault {
    long memory_at; /* the allocation that fails, from 1; 0: none */
    long os_at;     /* the system call that fails, from 1; 0: none */
    int os_error;   /* with this errno; 0: EMFILE */
    bool onward;    /* and every one after it */
    long memory;    /* counted so far */
    long os;
    bool fired;
} rdl_fault;

#ifdef RDL_FAULTS
/* Makes plan the calling thread's; NULL: none. Returns the one before. */
rdl_fault *rdl_fault_use(rdl_fault *plan);
bool rdl_fault_memory(void);
/* Sets errno if it answers true. */
bool rdl_fault_os(void);
#else
#define rdl_fault_memory() false
#define rdl_fault_os() false
#endif

#endif
