/* Control groups: where the limits of this process stand, from its own group up
 * to the root of what it can see.
 *
 * Version 1, with a tree for each controller, version 2, with one, and both at
 * once, as many systems have them. Where the group of the process is outside of
 * what is mounted (a container that sees its own part only), the mount point
 * stands for it. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BASE_CGROUP_H
#define RDL_BASE_CGROUP_H

#include "base/status.h"

typedef struct rdl_cgroup {
    int version;        /* 1 or 2 */
    const char *root;   /* as given to rdl_cgroup_walk */
    const char *folder; /* below root; without a slash at its end */
} rdl_cgroup;

/* A failure ends the walk and is its result. */
typedef rdl_status (*rdl_cgroup_visit)(const rdl_cgroup *group, void *arg);

/* Visits the groups of this process that limit controller ("cpu", "memory"),
 * each before its parent. A group of version 2 is visited whether or not it has
 * the controller: then its files are not there.
 * root is "" but in tests. RDL_SYSTEM, RDL_NO_MEMORY: as rdl_read_text. */
rdl_status rdl_cgroup_walk(const char *root, const char *controller,
                           rdl_cgroup_visit visit, void *arg);

#endif
