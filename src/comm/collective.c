/* The public calls: what each says of itself. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <raddle/collective.h>

#include "comm/call.h"

/* The answer of a collective with these arguments. */
#define RUN(...)                                                               \
    rdl_call_run(world, group, &(rdl_arguments){ __VA_ARGS__ }, call, site)

RDL_PUBLIC_CALL(rdl_barrier, RUN(.operation = RDL_OP_BARRIER), rdl_world *world,
                rdl_group group, const rdl_call *call)

RDL_PUBLIC_CALL(rdl_broadcast,
                RUN(.operation = RDL_OP_BROADCAST, .input = buffer,
                    .output = buffer, .count = count, .dtype = dtype,
                    .root = root),
                rdl_world *world, rdl_group group, void *buffer, size_t count,
                rdl_dtype dtype, int root, const rdl_call *call)

RDL_PUBLIC_CALL(rdl_reduce,
                RUN(.operation = RDL_OP_REDUCE, .input = input,
                    .output = output, .count = count, .dtype = dtype,
                    .reduction = reduction, .root = root),
                rdl_world *world, rdl_group group, const void *input,
                void *output, size_t count, rdl_dtype dtype,
                rdl_reduction reduction, int root, const rdl_call *call)

RDL_PUBLIC_CALL(rdl_all_reduce,
                RUN(.operation = RDL_OP_ALL_REDUCE, .input = input,
                    .output = output, .count = count, .dtype = dtype,
                    .reduction = reduction),
                rdl_world *world, rdl_group group, const void *input,
                void *output, size_t count, rdl_dtype dtype,
                rdl_reduction reduction, const rdl_call *call)

RDL_PUBLIC_CALL(rdl_gather,
                RUN(.operation = RDL_OP_GATHER, .input = input, .output = output,
                    .count = count, .dtype = dtype, .root = root),
                rdl_world *world, rdl_group group, const void *input,
                void *output, size_t count, rdl_dtype dtype, int root,
                const rdl_call *call)

RDL_PUBLIC_CALL(rdl_scatter,
                RUN(.operation = RDL_OP_SCATTER, .input = input, .output = output,
                    .count = count, .dtype = dtype, .root = root),
                rdl_world *world, rdl_group group, const void *input,
                void *output, size_t count, rdl_dtype dtype, int root,
                const rdl_call *call)

RDL_PUBLIC_CALL(rdl_all_gather,
                RUN(.operation = RDL_OP_ALL_GATHER, .input = input,
                    .output = output, .count = count, .dtype = dtype),
                rdl_world *world, rdl_group group, const void *input,
                void *output, size_t count, rdl_dtype dtype,
                const rdl_call *call)

RDL_PUBLIC_CALL(rdl_all_gather_v,
                RUN(.operation = RDL_OP_ALL_GATHER_V, .input = input,
                    .output = output, .input_counts = counts,
                    .output_counts = counts, .dtype = dtype),
                rdl_world *world, rdl_group group, const void *input,
                void *output, const size_t *counts, rdl_dtype dtype,
                const rdl_call *call)

RDL_PUBLIC_CALL(rdl_reduce_scatter,
                RUN(.operation = RDL_OP_REDUCE_SCATTER, .input = input,
                    .output = output, .count = count, .dtype = dtype,
                    .reduction = reduction),
                rdl_world *world, rdl_group group, const void *input,
                void *output, size_t count, rdl_dtype dtype,
                rdl_reduction reduction, const rdl_call *call)

RDL_PUBLIC_CALL(rdl_reduce_scatter_v,
                RUN(.operation = RDL_OP_REDUCE_SCATTER_V, .input = input,
                    .output = output, .input_counts = counts,
                    .output_counts = counts, .dtype = dtype,
                    .reduction = reduction),
                rdl_world *world, rdl_group group, const void *input,
                void *output, const size_t *counts, rdl_dtype dtype,
                rdl_reduction reduction, const rdl_call *call)

RDL_PUBLIC_CALL(rdl_all_to_all,
                RUN(.operation = RDL_OP_ALL_TO_ALL, .input = input,
                    .output = output, .count = count, .dtype = dtype),
                rdl_world *world, rdl_group group, const void *input,
                void *output, size_t count, rdl_dtype dtype,
                const rdl_call *call)

RDL_PUBLIC_CALL(rdl_all_to_all_v,
                RUN(.operation = RDL_OP_ALL_TO_ALL_V, .input = input,
                    .output = output, .input_counts = input_counts,
                    .output_counts = output_counts, .dtype = dtype),
                rdl_world *world, rdl_group group, const void *input,
                const size_t *input_counts, void *output,
                const size_t *output_counts, rdl_dtype dtype,
                const rdl_call *call)
