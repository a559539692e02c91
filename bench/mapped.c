/* Large blocking collectives: the same call with private memory, whose bytes pass
 * through staging, and with memory of rdl_mem_alloc, which members read where it
 * lies. By turns in one process, so that what disturbs one disturbs the other.
 *
 * A row: name, ranks, bytes of a rank's input, median milliseconds staged and mapped,
 * the median of the ratios of neighbours, its quartiles. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <raddle/collective.h>
#include <raddle/memory.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WHO "bench/mapped"
#define MIB ((size_t)1 << 20)
#define PAIRS 15
#define LARGEST (64 * MIB)

typedef struct buffers {
    float *input;
    float *output;
} buffers;

typedef struct bench {
    rdl_world *world;
    int rank;
    int size;
    buffers staged; /* private memory */
    buffers mapped; /* of the heap */
} bench;

/* bytes of input at most; the output of all is as large, so blocks are smaller where
 * it has several. */
typedef rdl_status (*operation)(const bench *b, const buffers *m, size_t bytes);

static rdl_status all_reduce(const bench *b, const buffers *m, size_t bytes)
{
    return rdl_all_reduce(b->world, RDL_WORLD, m->input, m->output,
                          bytes / sizeof(float), RDL_FLOAT32, RDL_SUM, NULL);
}

static rdl_status reduce_scatter(const bench *b, const buffers *m, size_t bytes)
{
    return rdl_reduce_scatter(b->world, RDL_WORLD, m->input, m->output,
                              bytes / sizeof(float) / (size_t)b->size,
                              RDL_FLOAT32, RDL_SUM, NULL);
}

static rdl_status all_gather(const bench *b, const buffers *m, size_t bytes)
{
    return rdl_all_gather(b->world, RDL_WORLD, m->input, m->output,
                          bytes / sizeof(float) / (size_t)b->size, RDL_FLOAT32,
                          NULL);
}

static rdl_status broadcast(const bench *b, const buffers *m, size_t bytes)
{
    return rdl_broadcast(b->world, RDL_WORLD, b->rank ? m->output : m->input,
                         bytes / sizeof(float), RDL_FLOAT32, 0, NULL);
}

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The time of a few calls, from one barrier to the next. */
static bool take_time(const bench *b, const buffers *m, operation go,
                      size_t bytes, double *ms)
{
    int calls = (int)(LARGEST / bytes / 4) + 1;
    double start;

    if (rdl_barrier(b->world, RDL_WORLD, NULL) != RDL_OK)
        return false;
    start = now_ms();
    for (int i = 0; i < calls; i++)
        if (go(b, m, bytes) != RDL_OK)
            return false;
    if (rdl_barrier(b->world, RDL_WORLD, NULL) != RDL_OK)
        return false;
    *ms = (now_ms() - start) / calls;
    return true;
}

static bool run_row(const bench *b, const char *name, operation go, size_t bytes)
{
    double staged[PAIRS], mapped[PAIRS], ratios[PAIRS];

    for (int i = 0; i < PAIRS; i++) {
        if (!take_time(b, &b->staged, go, bytes, &staged[i]) ||
            !take_time(b, &b->mapped, go, bytes, &mapped[i]))
            return false;
        ratios[i] = mapped[i] / staged[i];
    }
    qsort(staged, PAIRS, sizeof *staged, by_size);
    qsort(mapped, PAIRS, sizeof *mapped, by_size);
    qsort(ratios, PAIRS, sizeof *ratios, by_size);
    if (b->rank == 0)
        printf("%s\t%d\t%zu\t%.3f\t%.3f\t%.2f\t%.2f\t%.2f\n", name, b->size,
               bytes, staged[PAIRS / 2], mapped[PAIRS / 2], ratios[PAIRS / 2],
               ratios[PAIRS / 4], ratios[PAIRS * 3 / 4]);
    return true;
}

static bool run_rows(const bench *b)
{
    static const size_t sizes[] = { MIB / 4, MIB, 16 * MIB, LARGEST };
    bool good = true;

    for (int i = 0; i < 4 && good; i++)
        good = run_row(b, "all_reduce", all_reduce, sizes[i]) &&
               run_row(b, "reduce_scatter", reduce_scatter, sizes[i]) &&
               run_row(b, "all_gather", all_gather, sizes[i]) &&
               run_row(b, "broadcast", broadcast, sizes[i]);
    return good;
}

static bool make_buffers(bench *b)
{
    void *memory[2] = { NULL, NULL };

    for (int i = 0; i < 2; i++)
        if (rdl_mem_alloc(b->world, LARGEST, &memory[i]) != RDL_OK)
            return false;
    b->mapped = (buffers){ memory[0], memory[1] };
    b->staged = (buffers){ calloc(1, LARGEST), calloc(1, LARGEST) };
    if (b->staged.input == NULL || b->staged.output == NULL)
        return false;
    for (size_t i = 0; i < LARGEST / sizeof(float); i++) {
        b->staged.input[i] = b->mapped.input[i] = (float)(i % 100);
        b->staged.output[i] = b->mapped.output[i] = 1;
    }
    return true;
}

static int run_rank(int rank, int size)
{
    bench b = { .rank = rank, .size = size };
    char job[64];
    bool good;

    snprintf(job, sizeof job, "mapped-%d-%d", (int)getppid(), size);
    good = rdl_world_open(
               &(rdl_world_options){ .rank = rank, .size = size, .job = job },
               &b.world) == RDL_OK &&
           make_buffers(&b) && run_rows(&b);
    if (!good)
        fprintf(stderr, WHO ": rank %d: %s\n", rank, rdl_error_detail());
    (void)rdl_world_close(b.world);
    free(b.staged.input);
    free(b.staged.output);
    return good ? 0 : 1;
}

static bool run_ranks(int size)
{
    bool good = true;
    int status;

    for (int rank = 0; rank < size && good; rank++) {
        pid_t pid = fork();

        if (pid == 0)
            exit(run_rank(rank, size));
        good = pid > 0;
    }
    while (wait(&status) > 0)
        good &= status == 0;
    return good;
}

int main(void)
{
    bool good;

    printf("name\tranks\tbytes\tstaged\tmapped\tratio\tlower\tupper\n");
    fflush(stdout);
    good = run_ranks(2);
    good &= run_ranks(4);
    return good ? 0 : 1;
}
