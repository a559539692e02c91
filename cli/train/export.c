/* Files for other programs: what was trained on, from what values, to which.
 *
 * Rank 0 writes; parameters and gradients are brought together one at a time, so
 * that it never holds two whole ones. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/job.h"

#include "train/tensors.h"

#include <stdlib.h>
#include <string.h>

/* A file that is being written; on ranks other than 0 there is none. */
typedef struct export
{
    train_job *j;
    tensor_file *file;
}
export;

/* --- parameters ------------------------------------------------------------ */

static tensor describe(const llama_parameter *p)
{
    tensor x = { .name = p->name, .type = TENSOR_F32, .dims = p->dims };

    for (int i = 0; i < p->dims; i++)
        x.shape[i] = (int64_t)p->shape[i];
    return x;
}

static bool create(export *e, const char *name)
{
    train_job *j = e->j;
    int count = llama_parameters(j->model);
    tensor *tensors;
    bool fine;

    if (j->rank != 0)
        return true;
    tensors = calloc((size_t)count, sizeof *tensors);
    if (tensors == NULL)
        return trouble_memory(&j->trouble);
    for (int i = 0; i < count; i++) {
        llama_parameter p;

        llama_parameter_at(j->model, i, &p);
        tensors[i] = describe(&p);
    }
    fine = tensor_file_create(j->o->export_to, name, tensors, (size_t)count,
                              &e->file, &j->trouble);
    free(tensors);
    return fine;
}

static bool put(export *e, const llama_parameter *p, const float *whole)
{
    size_t count = p->shape[0] * (p->dims > 1 ? p->shape[1] : 1);

    return e->file == NULL ||
           tensor_file_write(e->file, whole, count * sizeof *whole,
                             &e->j->trouble);
}

/* Takes the file, whether fine or not. */
static bool finish(export *e, bool fine)
{
    if (e->file != NULL && fine)
        return tensor_file_finish(e->file, &e->j->trouble);
    tensor_file_drop(e->file);
    return fine;
}

static rdl_status visit(void *arg, const llama_parameter *p, const float *whole)
{
    return put(arg, p, whole) ? RDL_OK : RDL_SYSTEM;
}

bool job_export_model(train_job *j, const char *name)
{
    export e = { .j = j };
    llama_error error = { { 0 } };
    bool fine = create(&e, name);

    fine = fine && job_ok(j, llama_whole(j->model, visit, &e, &error), &error);
    return finish(&e, fine);
}

/* --- gradients ------------------------------------------------------------- */

/* Shards are of equal room, the last ones perhaps not full; gathered, the rows
 * stand one behind the other. */
static bool export_gradient(export *e, const llama_parameter *p, int size)
{
    train_job *j = e->j;
    size_t room = (p->shape[0] + (size_t)size - 1) / (size_t)size * p->columns;
    float *own = calloc(room * ((size_t)size + 1), sizeof *own);
    bool fine;

    if (own == NULL)
        return trouble_memory(&j->trouble);
    memcpy(own, p->gradient, p->rows * p->columns * sizeof *own);
    fine = job_ok(j,
                  rdl_all_gather(j->world, j->shard, own, own + room, room,
                                 RDL_FLOAT32, &(rdl_call){ .caller = "export" }),
                  NULL) &&
           put(e, p, own + room);
    free(own);
    return fine;
}

bool job_export_gradients(train_job *j)
{
    export e = { .j = j };
    bool fine = create(&e, "gradients.safetensors");
    int size = 1;

    fine = fine && job_ok(j, rdl_group_size(j->world, j->shard, &size), NULL);
    for (int i = 0; fine && i < llama_parameters(j->model); i++) {
        llama_parameter p;

        llama_parameter_at(j->model, i, &p);
        fine = export_gradient(&e, &p, size);
    }
    return finish(&e, fine);
}

/* --- tokens ---------------------------------------------------------------- */

enum { TOKENS, LABELS, POSITIONS, DOCUMENTS, STREAMS };

/* A token's document, counted within its row. */
static void count_documents(const int32_t *positions, int32_t *documents,
                            int64_t length)
{
    int32_t last = -1;

    for (int64_t i = 0; i < length; i++) {
        last += positions[i] == 0;
        documents[i] = last;
    }
}

static bool write_stream(train_job *j, tensor_file *file, int stream,
                         int32_t *room)
{
    int64_t length = j->plan.length, rows = j->o->steps * j->plan.rows;
    int32_t *part[STREAMS];

    for (int i = 0; i < STREAMS; i++)
        part[i] = room + i * length;
    for (int64_t row = 0; row < rows; row++) {
        if (!corpus_read_row(&j->data, row, length, part[TOKENS], part[LABELS],
                             part[POSITIONS], &j->trouble))
            return false;
        count_documents(part[POSITIONS], part[DOCUMENTS], length);
        if (!tensor_file_write(file, part[stream],
                               (size_t)length * sizeof *room, &j->trouble))
            return false;
    }
    return true;
}

static bool write_tokens(train_job *j, int32_t *room)
{
    static const char *const names[STREAMS] = { "tokens", "labels", "positions",
                                                "documents" };
    tensor tensors[STREAMS];
    export e = { .j = j };
    bool fine;

    for (int i = 0; i < STREAMS; i++)
        tensors[i] = (tensor){
            .name = names[i],
            .type = TENSOR_I32,
            .dims = 3,
            .shape = { j->o->steps, j->plan.rows, j->plan.length },
        };
    fine = tensor_file_create(j->o->export_to, "tokens.safetensors", tensors,
                              STREAMS, &e.file, &j->trouble);
    for (int i = 0; fine && i < STREAMS; i++)
        fine = write_stream(j, e.file, i, room);
    return finish(&e, fine);
}

bool job_export_tokens(train_job *j)
{
    int32_t *room;
    bool fine;

    if (j->rank != 0)
        return true;
    room = calloc((size_t)j->plan.length * STREAMS, sizeof *room);
    fine = room != NULL ? write_tokens(j, room) : trouble_memory(&j->trouble);
    free(room);
    return fine;
}
