/* Data for a rank: the list of documents from rank 0, the rows from the files. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/job.h"

#include "command.h"

#include <inttypes.h>
#include <stdlib.h>

/* --- the list -------------------------------------------------------------- */

static bool find_data(train_job *j, text *packed)
{
    corpus_request request = { .paths = &j->o->data,
                               .token_type = j->o->token_type,
                               .vocabulary = j->plan.config->vocab };

    return corpus_find(&j->data, &request, &j->trouble) &&
           corpus_check_rows(&j->data, j->plan.length, &j->trouble) &&
           corpus_pack(&j->data, packed, &j->trouble);
}

/* Room for bytes that are to come. */
static bool take_room(train_job *j, text *packed, int64_t bytes)
{
    packed->data = malloc((size_t)bytes);
    packed->room = packed->used = (size_t)bytes;
    return packed->data != NULL || trouble_memory(&j->trouble);
}

static bool share_list(train_job *j, text *packed)
{
    const rdl_call call = { .caller = "data" };
    int64_t bytes = (int64_t)packed->used;

    if (!job_ok(
            j, rdl_broadcast(j->world, RDL_WORLD, &bytes, 1, RDL_INT64, 0, &call),
            NULL) ||
        (j->rank != 0 && !take_room(j, packed, bytes)) ||
        !job_ok(j,
                rdl_broadcast(j->world, RDL_WORLD, packed->data, (size_t)bytes,
                              RDL_UINT8, 0, &call),
                NULL))
        return false;
    return j->rank == 0 ||
           corpus_unpack(&j->data, packed->data, packed->used, &j->trouble);
}

static bool make_room(train_job *j)
{
    const train_plan *p = &j->plan;
    size_t tokens = (size_t)(p->accumulate * p->microbatch * p->length);

    j->room = calloc(tokens * 3, sizeof *j->room);
    j->rows = calloc((size_t)p->accumulate, sizeof *j->rows);
    if (j->room == NULL || j->rows == NULL)
        return trouble_memory(&j->trouble);
    return true;
}

bool job_open_data(train_job *j)
{
    text packed = { .data = NULL };
    bool fine = j->rank != 0 || find_data(j, &packed);

    fine = job_agree(j) && fine && share_list(j, &packed) && make_room(j);
    text_free(&packed);
    return fine;
}

/* --- rows ------------------------------------------------------------------ */

static bool read_microbatch(train_job *j, int64_t step, int64_t m)
{
    const train_plan *p = &j->plan;
    size_t tokens = (size_t)(p->microbatch * p->length);
    int32_t *to = j->room + (size_t)m * tokens * 3;
    int64_t first = plan_first_row(p, j->rank, step, m);

    for (int64_t i = 0; i < p->microbatch; i++) {
        int32_t *row = to + i * p->length;

        if (!corpus_read_row(&j->data, first + i, p->length, row, row + tokens,
                             row + 2 * tokens, &j->trouble))
            return false;
    }
    j->rows[m] = (llama_rows){ .count = (size_t)p->microbatch,
                               .tokens = to,
                               .labels = to + tokens,
                               .positions = to + 2 * tokens };
    return true;
}

bool job_read_step(train_job *j, int64_t step)
{
    for (int64_t m = 0; m < j->plan.accumulate; m++)
        if (!read_microbatch(j, step, m))
            return false;
    return true;
}
