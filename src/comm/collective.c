/* The public calls. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <raddle/collective.h>

#include "comm/call.h"

rdl_status rdl_barrier(rdl_world *world, rdl_group group, const rdl_call *call)
{
    rdl_arguments a = { .operation = RDL_OP_BARRIER };

    return rdl_call_run(world, group, &a, call);
}

rdl_status rdl_broadcast(rdl_world *world, rdl_group group, void *buffer,
                         size_t count, rdl_dtype dtype, int root,
                         const rdl_call *call)
{
    rdl_arguments a = { .operation = RDL_OP_BROADCAST,
                        .input = buffer,
                        .output = buffer,
                        .count = count,
                        .dtype = dtype,
                        .root = root };

    return rdl_call_run(world, group, &a, call);
}

rdl_status rdl_reduce(rdl_world *world, rdl_group group, const void *input,
                      void *output, size_t count, rdl_dtype dtype,
                      rdl_reduction reduction, int root, const rdl_call *call)
{
    rdl_arguments a = { .operation = RDL_OP_REDUCE,
                        .input = input,
                        .output = output,
                        .count = count,
                        .dtype = dtype,
                        .reduction = reduction,
                        .root = root };

    return rdl_call_run(world, group, &a, call);
}

rdl_status rdl_all_reduce(rdl_world *world, rdl_group group, const void *input,
                          void *output, size_t count, rdl_dtype dtype,
                          rdl_reduction reduction, const rdl_call *call)
{
    rdl_arguments a = { .operation = RDL_OP_ALL_REDUCE,
                        .input = input,
                        .output = output,
                        .count = count,
                        .dtype = dtype,
                        .reduction = reduction };

    return rdl_call_run(world, group, &a, call);
}

rdl_status rdl_gather(rdl_world *world, rdl_group group, const void *input,
                      void *output, size_t count, rdl_dtype dtype, int root,
                      const rdl_call *call)
{
    rdl_arguments a = { .operation = RDL_OP_GATHER,
                        .input = input,
                        .output = output,
                        .count = count,
                        .dtype = dtype,
                        .root = root };

    return rdl_call_run(world, group, &a, call);
}

rdl_status rdl_scatter(rdl_world *world, rdl_group group, const void *input,
                       void *output, size_t count, rdl_dtype dtype, int root,
                       const rdl_call *call)
{
    rdl_arguments a = { .operation = RDL_OP_SCATTER,
                        .input = input,
                        .output = output,
                        .count = count,
                        .dtype = dtype,
                        .root = root };

    return rdl_call_run(world, group, &a, call);
}

rdl_status rdl_all_gather(rdl_world *world, rdl_group group, const void *input,
                          void *output, size_t count, rdl_dtype dtype,
                          const rdl_call *call)
{
    rdl_arguments a = { .operation = RDL_OP_ALL_GATHER,
                        .input = input,
                        .output = output,
                        .count = count,
                        .dtype = dtype };

    return rdl_call_run(world, group, &a, call);
}

rdl_status rdl_all_gather_v(rdl_world *world, rdl_group group, const void *input,
                            void *output, const size_t *counts, rdl_dtype dtype,
                            const rdl_call *call)
{
    rdl_arguments a = { .operation = RDL_OP_ALL_GATHER_V,
                        .input = input,
                        .output = output,
                        .input_counts = counts,
                        .output_counts = counts,
                        .dtype = dtype };

    return rdl_call_run(world, group, &a, call);
}

rdl_status rdl_reduce_scatter(rdl_world *world, rdl_group group,
                              const void *input, void *output, size_t count,
                              rdl_dtype dtype, rdl_reduction reduction,
                              const rdl_call *call)
{
    rdl_arguments a = { .operation = RDL_OP_REDUCE_SCATTER,
                        .input = input,
                        .output = output,
                        .count = count,
                        .dtype = dtype,
                        .reduction = reduction };

    return rdl_call_run(world, group, &a, call);
}

rdl_status rdl_reduce_scatter_v(rdl_world *world, rdl_group group,
                                const void *input, void *output,
                                const size_t *counts, rdl_dtype dtype,
                                rdl_reduction reduction, const rdl_call *call)
{
    rdl_arguments a = { .operation = RDL_OP_REDUCE_SCATTER_V,
                        .input = input,
                        .output = output,
                        .input_counts = counts,
                        .output_counts = counts,
                        .dtype = dtype,
                        .reduction = reduction };

    return rdl_call_run(world, group, &a, call);
}

rdl_status rdl_all_to_all(rdl_world *world, rdl_group group, const void *input,
                          void *output, size_t count, rdl_dtype dtype,
                          const rdl_call *call)
{
    rdl_arguments a = { .operation = RDL_OP_ALL_TO_ALL,
                        .input = input,
                        .output = output,
                        .count = count,
                        .dtype = dtype };

    return rdl_call_run(world, group, &a, call);
}

rdl_status rdl_all_to_all_v(rdl_world *world, rdl_group group,
                            const void *input, const size_t *input_counts,
                            void *output, const size_t *output_counts,
                            rdl_dtype dtype, const rdl_call *call)
{
    rdl_arguments a = { .operation = RDL_OP_ALL_TO_ALL_V,
                        .input = input,
                        .output = output,
                        .input_counts = input_counts,
                        .output_counts = output_counts,
                        .dtype = dtype };

    return rdl_call_run(world, group, &a, call);
}
