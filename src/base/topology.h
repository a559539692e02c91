/* The machine as this process may use it.
 *
 * A core is what one thread of work fills: hardware threads of one core count
 * as one. Usable are the cores on which the calling thread may run
 * (sched_getaffinity, which cpusets narrow too), and of these no more than the
 * CPU quota of any control group from ours up to the root pays for, rounded up:
 * a quota of 150 % is two cores.
 *
 * Two doors, because they differ in price. Each rank counts its usable cores
 * when it starts, for a tenth of a millisecond. The rest comes from hwloc, which
 * loads one millisecond on two processors and seven on 128, since it reads ten
 * files and more of each, and longer where it has plugins. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BASE_TOPOLOGY_H
#define RDL_BASE_TOPOLOGY_H

#include "base/cpus.h"
#include "base/status.h"

typedef struct rdl_topology {
    int usable_cores; /* at least 1 */
    int cores_online; /* of the machine, allowed or not; at least 1 */
    size_t l2_bytes;  /* the caches of the first processor that we may use; */
    size_t l3_bytes;  /* 0: none, or not known */
    int numa_nodes;   /* at least 1 */
} rdl_topology;

/* RDL_SYSTEM, RDL_NO_MEMORY: no descriptor or memory left to read a file with,
 * *out untouched. What else is missing or not understood is passed over. */
rdl_status rdl_topology_usable_cores(int *out);

/* The second level of cache of a core, by what the C library knows of the processor;
 * if that is nothing, one MiB. */
size_t rdl_topology_l2_bytes(void);

/* All of it. Without hwloc (RDL_NO_HWLOC), or if it fails, the kernel's files
 * are read instead. Fails as above. */
rdl_status rdl_topology_read(rdl_topology *out);

/* For tests: of the machine whose files are below root, and of a thread that may
 * run on allowed (empty: anywhere). Never asks hwloc. */
rdl_status rdl_topology_usable_cores_at(const char *root,
                                        const rdl_cpus *allowed, int *out);
rdl_status rdl_topology_read_at(const char *root, const rdl_cpus *allowed,
                                rdl_topology *out);

#endif
