/* What reductions cost inside one rank: the kernels of each width of vectors by turns
 * on the same buffers, and stores past the caches beside plain ones.
 *
 * A row: dtype/reduction/kernels, inputs, bytes of each, microseconds (median), GB/s
 * of all that is read and written, and the time of the plain code's kernels over it
 * (median of the rounds' ratios). */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/reduce.h"
#include "base/status.h"
#include "base/time.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHO "bench/reduce"
#define INPUTS 8
#define MOST ((size_t)16 << 20) /* bytes of a buffer */
#define ROUNDS 11
#define MOVED                                                                  \
    ((size_t)4 << 20) /* bytes that a round reads and writes, or more */
#define WAYS (RDL_ISAS + 1)

static const int inputs[] = { 2, 4, 8 };
static const size_t sizes[] = { 64, 1024, 16384, (size_t)256 << 10, MOST };

static const struct {
    const char *name;
    rdl_dtype dtype;
    rdl_reduction reduction;
} sums[] = {
    { "float32/sum", RDL_FLOAT32, RDL_SUM },
    { "float32/max", RDL_FLOAT32, RDL_MAX },
    { "float64/sum", RDL_FLOAT64, RDL_SUM },
    { "bfloat16/sum", RDL_BFLOAT16, RDL_SUM },
    { "bfloat16/avg", RDL_BFLOAT16, RDL_AVG },
    { "bfloat16/max", RDL_BFLOAT16, RDL_MAX },
    { "float16/sum", RDL_FLOAT16, RDL_SUM },
    { "int32/sum", RDL_INT32, RDL_SUM },
    { "uint8/sum", RDL_UINT8, RDL_SUM },
};

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

typedef struct bench {
    const void *in[INPUTS];
    void *out;
    double us[WAYS][ROUNDS];
    double ratios[WAYS][ROUNDS];
} bench;

/* The widths, and the widest with stores past the caches. */
static rdl_reducer reducer_of(size_t which, int way)
{
    return (rdl_reducer){ .dtype = sums[which].dtype,
                          .reduction = sums[which].reduction,
                          .isa = way < RDL_ISAS ? (rdl_isa)way : rdl_isa_best(),
                          .streaming = way == RDL_ISAS };
}

static double time_one(bench *b, const rdl_reducer *r, int n, size_t bytes)
{
    size_t times = MOVED / (bytes * (size_t)(n + 1)) + 1;
    rdl_time start = rdl_now();

    for (size_t i = 0; i < times; i++)
        rdl_combine(r, b->out, b->in, n, bytes / rdl_dtype_bytes(r->dtype));
    return (double)(rdl_now() - start) / 1e3 / (double)times;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values)
{
    qsort(values, ROUNDS, sizeof *values, by_size);
    return values[ROUNDS / 2];
}

static void print_row(bench *b, size_t which, int way, int n, size_t bytes)
{
    double us = median(b->us[way]);

    printf("%s/%s\t%d\t%zu\t%.4f\t%.2f\t%.2f\n", sums[which].name,
           way < RDL_ISAS ? rdl_isa_name((rdl_isa)way) : "streaming", n, bytes,
           us, (double)bytes * (n + 1) / us / 1e3, median(b->ratios[way]));
}

static bool runs(int way)
{
    return way == RDL_ISAS || rdl_isa_runs((rdl_isa)way);
}

static void run_rows(bench *b, size_t which, int n, size_t bytes)
{
    for (int round = -1; round < ROUNDS; round++) /* the first is not counted */
        for (int way = 0; way < WAYS; way++) {
            rdl_reducer r = reducer_of(which, way);
            double us = runs(way) ? time_one(b, &r, n, bytes) : 0;

            if (round < 0)
                continue;
            b->us[way][round] = us;
            b->ratios[way][round] = b->us[RDL_ISA_BASE][round] / us;
        }
    for (int way = 0; way < WAYS; way++)
        if (runs(way))
            print_row(b, which, way, n, bytes);
}

/* Each with bits of its own: the least of ordinary numbers in every dtype. */
static bool set_up(bench *b)
{
    for (int i = 0; i <= INPUTS; i++) {
        char *memory = aligned_alloc(4096, MOST);

        if (memory == NULL)
            return false;
        memset(memory, 0x3c + i % 3, MOST);
        if (i == INPUTS)
            b->out = memory;
        else
            b->in[i] = memory;
    }
    return true;
}

int main(int argc, char **argv)
{
    bench *b = calloc(1, sizeof *b);

    if (b == NULL || !set_up(b)) {
        fprintf(stderr, WHO ": no memory for %d buffers of %zu bytes\n",
                INPUTS + 1, MOST);
        free(b);
        return 1;
    }
    for (size_t s = 0; s < LENGTH(sums); s++)
        for (size_t k = 0; k < LENGTH(inputs); k++)
            for (size_t i = 0; i < LENGTH(sizes); i++)
                if (argc < 2 || strcmp(argv[1], sums[s].name) == 0)
                    run_rows(b, s, inputs[k], sizes[i]);
    for (int i = 0; i < INPUTS; i++)
        free((void *)b->in[i]);
    free(b->out);
    free(b);
    return 0;
}
