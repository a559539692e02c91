/* One rank's part in a training, from joining the job to leaving it. The parts of
 * the command that run on ranks share this. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_CLI_TRAIN_JOB_H
#define RDL_CLI_TRAIN_JOB_H

#include "train/corpus.h"
#include "train/plan.h"
#include "train/report.h"

#include <raddle/collective.h>
#include <raddle/mesh.h>
#include <raddle/stream.h>
#include <raddle/trace.h>

typedef struct train_job {
    const train_options *o;
    train_plan plan;
    rdl_world *world;
    int rank;
    trouble trouble; /* the first of this rank */
    bool is_shared;  /* every rank has it: one of them says it */
    bool is_echo;    /* another rank's end, which others tell of */

    rdl_mesh *mesh;
    rdl_group context;
    rdl_group shard;
    rdl_group replicate;

    corpus data;
    int32_t *room; /* of the rows of a step */
    llama_rows *rows;

    llama_blas *blas;
    llama *model;
    rdl_stream *gathers; /* NULL without --overlap */
    rdl_stream *reductions;
    int64_t seed;
    double peak; /* of matrix products, operations a second */
    report report;

    rdl_trace trace;
    uint64_t seen; /* collectives */
} train_job;

/* job.c */

/* Takes part as one of the ranks; returns the exit status. */
int job_run(const train_options *o, const train_plan *p);

/* Note a trouble; they return false. job_ok: unless status is RDL_OK, with the
 * sentence of the last raddle call or of error. */
bool job_ok(train_job *j, rdl_status status, const llama_error *error);

/* Whether no rank has had trouble, which all learn. Rank 0's goes to all. */
bool job_agree(train_job *j);

/* layout.c: the mesh, and the groups of the model. */
bool job_open_groups(train_job *j);

/* feed.c */

/* Rank 0 finds the data, and all ranks have its list. */
bool job_open_data(train_job *j);
/* The rows of a step (from 0) that are this rank's, into j->rows. */
bool job_read_step(train_job *j, int64_t step);

/* loop.c */
bool job_train(train_job *j);

/* trace.c: prints each collective from now on. */
bool job_trace(train_job *j);

/* export.c: files in the folder of --export, written by rank 0. */
bool job_export_tokens(train_job *j);
bool job_export_model(train_job *j, const char *name);
bool job_export_gradients(train_job *j);

#endif
