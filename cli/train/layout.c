/* The mesh of a plan, and which groups the model gets of it. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/job.h"

bool job_open_groups(train_job *j)
{
    static const char *const names[] = { "dp_replicate", "dp_shard", "cp" };
    const train_plan *p = &j->plan;
    const int sizes[] = { p->replicate, p->shard, p->context };

    if (!job_ok(j, rdl_mesh_create(j->world, names, sizes, 3, &j->mesh), NULL) ||
        !job_ok(j, rdl_mesh_group(j->mesh, "cp", &j->context), NULL))
        return false;
    /* Without FSDP the ranks that share a row have all parameters as well. */
    if (!p->fsdp) {
        j->replicate = RDL_WORLD;
        return job_ok(j, rdl_group_open(j->world, &j->rank, 1, NULL, &j->shard),
                      NULL);
    }
    return job_ok(j, rdl_mesh_group(j->mesh, "dp_shard,cp", &j->shard), NULL) &&
           job_ok(j, rdl_mesh_group(j->mesh, "dp_replicate", &j->replicate),
                  NULL);
}
