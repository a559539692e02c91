/* The loops that combine elements: for each dtype and reduction, compiled once for
 * each kind of processor (base/isa.h). All kinds give the same bits.
 *
 * A loop goes over count elements. to is x or y, or overlaps neither; all are of any
 * alignment. number: the n of AVG, the factor of PREMUL_SUM. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_COMM_REDUCE_KERNELS_H
#define RDL_COMM_REDUCE_KERNELS_H

#include <raddle/collective.h>

typedef void (*rdl_loop)(void *to, const void *x, const void *y, size_t count,
                         double number);

/* x is an element or a partial result, y an element; together of one input (y is
 * x), of two, or of three and more: first, next for each in the middle, end. */
typedef struct rdl_kernel {
    size_t bytes;      /* of an element */
    size_t wide_bytes; /* of a partial result */
    rdl_loop alone;    /* element = element; NULL: they are the same */
    rdl_loop both;     /* element = element, element; NULL: no such pair */
    rdl_loop first;    /* partial result = element, element */
    rdl_loop next;     /* partial result = partial result, element */
    rdl_loop end;      /* element = partial result, element */
} rdl_kernel;

#define RDL_PLUS_ONE(...) +1
#define RDL_DTYPES (0 RDL_DTYPE_MAP(RDL_PLUS_ONE))
#define RDL_REDUCTIONS (0 RDL_REDUCTION_MAP(RDL_PLUS_ONE))

/* By dtype, then by reduction. */
typedef struct rdl_kernels {
    const rdl_kernel *of[RDL_DTYPES];
} rdl_kernels;

extern const rdl_kernels rdl_kernels_base;
#if defined(__x86_64__)
extern const rdl_kernels rdl_kernels_avx2;
extern const rdl_kernels rdl_kernels_avx512;
#endif

#endif
