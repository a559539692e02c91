/* Sets of the processors that the kernel numbers (hardware threads), in the
 * form of its files: "0-3,8". */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BASE_CPUS_H
#define RDL_BASE_CPUS_H

#include <sched.h>
#include <stdbool.h>

/* As many as any kernel is built for. */
#define RDL_CPUS_MOST 8192

/* Zeroed: the empty set. */
typedef struct rdl_cpus {
    cpu_set_t parts[RDL_CPUS_MOST / CPU_SETSIZE];
} rdl_cpus;

void rdl_cpus_add(rdl_cpus *cpus, int cpu);
void rdl_cpus_remove(rdl_cpus *cpus, const rdl_cpus *others);
void rdl_cpus_join(rdl_cpus *cpus, const rdl_cpus *others);
void rdl_cpus_keep(rdl_cpus *cpus, const rdl_cpus *others);
bool rdl_cpus_has(const rdl_cpus *cpus, int cpu);
int rdl_cpus_count(const rdl_cpus *cpus);
/* The first that is not below cpu; -1: none. */
int rdl_cpus_next(const rdl_cpus *cpus, int cpu);

/* The set that text lists, as far as it is a list. */
rdl_cpus rdl_cpus_parse(const char *text);

/* Those on which the calling thread may run; empty if that cannot be known. */
rdl_cpus rdl_cpus_allowed(void);

/* Moves the calling thread to that processor, and leaves it free to run on all that are
 * allowed, as before. Where that cannot be done nothing happens. */
void rdl_cpus_move(const rdl_cpus *allowed, int cpu);

#endif
