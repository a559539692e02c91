/* The ranks of an MPI library: mpi SOCKET, under its mpirun. Built once with each
 * library's compiler (tools/peers.sh). */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/half.h"
#include "speed/rank.h"

#include <mpi.h>
#include <raddle/collective.h>
#include <stdio.h>

/* MPI has no bfloat16: its elements are pairs of bytes, and we bring the sum. */
typedef struct home {
    MPI_Datatype bfloat16;
    MPI_Op bfloat16_sum;
} home;

static void add_bfloat16(void *in, void *in_out, int *n, MPI_Datatype *type)
{
    const uint16_t *a = in;
    uint16_t *b = in_out;

    (void)type;
    for (int i = 0; i < *n; i++)
        b[i] = rdl_bfloat16_narrow(rdl_bfloat16_widen(a[i]) +
                                   rdl_bfloat16_widen(b[i]));
}

/* How an element is told to MPI. */
typedef struct kind {
    MPI_Datatype type;
    MPI_Op sum;
    int bytes;
} kind;

static int find_kind(const home *h, int dtype, kind *k)
{
    switch (dtype) {
    case RDL_FLOAT32:
        *k = (kind){ MPI_FLOAT, MPI_SUM, 4 };
        return 1;
    case RDL_FLOAT64:
        *k = (kind){ MPI_DOUBLE, MPI_SUM, 8 };
        return 1;
    case RDL_BFLOAT16:
        *k = (kind){ h->bfloat16, h->bfloat16_sum, 2 };
        return 1;
    default:
        return 0;
    }
}

static int call(const speed_rank *self, const speed_call *c, const kind *k)
{
    int n = (int)(c->bytes / (uint64_t)k->bytes), block = n / self->members;

    switch (c->operation) {
    case SPEED_BARRIER:
        return MPI_Barrier(MPI_COMM_WORLD);
    case SPEED_BROADCAST:
        return MPI_Bcast(c->input, n, k->type, c->root, MPI_COMM_WORLD);
    case SPEED_ALL_REDUCE:
        return MPI_Allreduce(c->input, c->output, n, k->type, k->sum,
                             MPI_COMM_WORLD);
    case SPEED_ALL_GATHER:
        return MPI_Allgather(c->input, n, k->type, c->output, n, k->type,
                             MPI_COMM_WORLD);
    case SPEED_REDUCE_SCATTER:
        return MPI_Reduce_scatter_block(c->input, c->output, block, k->type,
                                        k->sum, MPI_COMM_WORLD);
    default:
        return MPI_Alltoall(c->input, block, k->type, c->output, block, k->type,
                            MPI_COMM_WORLD);
    }
}

static speed_outcome run(speed_rank *self, const speed_call *c, char text[256])
{
    kind k;

    if (c->operation >= SPEED_PEER_OPERATIONS ||
        !find_kind(self->context, c->dtype, &k)) {
        snprintf(text, 256, "not in this program");
        return SPEED_UNSUPPORTED;
    }
    if (call(self, c, &k) == MPI_SUCCESS)
        return SPEED_DONE;
    snprintf(text, 256, "the call failed");
    return SPEED_BROKEN;
}

static int meet(speed_rank *self)
{
    (void)self;
    return MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    home h;
    speed_rank self = { .context = &h, .run = run, .meet = meet };
    int status;

    if (argc != 2 || MPI_Init(&argc, &argv) != MPI_SUCCESS)
        return 2;
    MPI_Comm_rank(MPI_COMM_WORLD, &self.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &self.size);
    self.place = self.rank;
    self.members = self.size;
    MPI_Type_contiguous(2, MPI_BYTE, &h.bfloat16);
    MPI_Type_commit(&h.bfloat16);
    MPI_Op_create(add_bfloat16, 1, &h.bfloat16_sum);
    status = speed_serve(&self, argv[1]);
    MPI_Op_free(&h.bfloat16_sum);
    MPI_Type_free(&h.bfloat16);
    MPI_Finalize();
    return status;
}
