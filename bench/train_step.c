/* How fast one rank trains the debug model, and how much of that its matrix
 * products take: a tab-separated row for each length,
 *
 *     train_step LENGTH TOKENS SECONDS TOKENS/S PRODUCTS_SECONDS RATIO GFLOP/S RATE_RATIO
 *
 * RATIO is the time of the step's products alone over that of the step. Alone they
 * are run one after another on warm memory, each as often as a step wants it,
 * without those that are computed a second time to save memory; attention's are
 * those of its causal half. GFLOP/S is the BLAS's rate at 1,024 cubed, and
 * RATE_RATIO what RATIO would be if all products went at that rate. Times are of
 * the processor, the least of several, taken in turns. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "llama/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TURNS 5

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

/* ---- Products alone ---- */

typedef struct ground {
    const llama_blas *blas;
    float *a, *b, *c;
} ground;

typedef void product(const llama_blas *blas, size_t m, size_t n, size_t k,
                     float scale, llama_in a, llama_in b, float keep,
                     llama_out c);

/* Seconds of one product of these sizes. */
static double time_product(const ground *g, product *run, size_t m, size_t n,
                           size_t k, size_t a_stride, size_t b_stride,
                           float keep)
{
    double flops = 2 * (double)m * (double)n * (double)k, best = 1e9;
    int times = flops < 2e7 ? (int)(2e7 / flops) + 1 : 1;

    for (int turn = 0; turn < 3; turn++) {
        double start = now();

        for (int i = 0; i < times; i++)
            run(g->blas, m, n, k, 1, (llama_in){ g->a, a_stride },
                (llama_in){ g->b, b_stride }, keep, (llama_out){ g->c, n });
        best = least(best, (now() - start) / times);
    }
    return best;
}

/* y = x w', dx = dy w, dw += dy' x for w of out x in and n tokens. */
static double time_weight(const ground *g, size_t n, size_t in, size_t out)
{
    return time_product(g, llama_product_nt, n, out, in, in, in, 0) +
           time_product(g, llama_product_nn, n, in, out, out, in, 0) +
           time_product(g, llama_product_tn, out, in, n, out, in, 1);
}

/* One head of one row, block by block: two products forward, four backward. */
static double time_head(const ground *g, const llama *m)
{
    size_t size = (size_t)m->o.config.head_dim, most = llama_queries(m);
    size_t stride = LLAMA_PADDED(m->o.length);
    double sum = 0;

    for (size_t first = 0; first < m->o.length; first += most) {
        size_t n = m->o.length - first < most ? m->o.length - first : most;
        size_t width = first + n;

        sum += 2 * time_product(g, llama_product_nt, n, width, size,
                                llama_query_width(m), size, 0);
        sum += 2 * time_product(g, llama_product_nn, n, size, width, stride,
                                size, 0);
        sum += 2 * time_product(g, llama_product_tn, width, size, n, stride,
                                llama_query_width(m), 1);
    }
    return sum;
}

static double time_products(const ground *g, const llama *m)
{
    const llama_config *c = &m->o.config;
    size_t n = m->o.rows * m->o.length, dim = (size_t)c->dim;
    size_t hidden = (size_t)c->hidden, chunk = n < LLAMA_CHUNK ? n : LLAMA_CHUNK;
    double layer = 2 * time_weight(g, n, dim, llama_query_width(m)) +
                   2 * time_weight(g, n, dim, llama_kv_width(m)) +
                   2 * time_weight(g, n, dim, hidden) +
                   time_weight(g, n, hidden, dim);
    double heads = time_head(g, m) * (double)c->heads * (double)m->o.rows;
    double head = time_weight(g, chunk, dim, (size_t)c->vocab) * (double)n /
                  (double)chunk;

    return c->layers * (layer + heads) + head;
}

/* 6 for each parameter that multiplies, and the causal half of attention. */
static double operations(const llama *m)
{
    const llama_config *c = &m->o.config;
    double whole = (double)llama_flops_per_token(c, m->o.length);
    double none = (double)llama_flops_per_token(c, 0);

    return (none + (whole - none) / 2) * (double)(m->o.rows * m->o.length);
}

/* ---- Steps ---- */

static void must(rdl_status st, const llama_error *error)
{
    if (st == RDL_OK)
        return;
    fprintf(stderr, "train_step: %s\n",
            error != NULL ? error->text : rdl_error_detail());
    exit(1);
}

static llama *make(rdl_world *world, const llama_blas *blas, size_t length,
                   size_t rows)
{
    llama_options options = {
        .config = *llama_config_named("llama3-debug"),
        .world = world,
        .blas = blas,
        .length = length,
        .rows = rows,
        .adamw = llama_adamw_defaults(),
        .max_norm = 1,
        .seed = 42,
    };
    llama_error error = { "" };
    llama *m;

    must(llama_create(&options, &m, &error), &error);
    return m;
}

/* One document a row, so that attention has all of its causal half. */
static llama_rows make_rows(const llama *m)
{
    size_t count = m->o.rows * m->o.length;
    int32_t *data = calloc(3 * count, sizeof *data);

    if (data == NULL)
        exit(1);
    for (size_t i = 0; i < count; i++) {
        data[i] = (int32_t)(i * i % 97);
        data[count + i] = (int32_t)((i + 1) * (i + 1) % 97);
        data[2 * count + i] = (int32_t)(i % m->o.length);
    }
    return (llama_rows){ m->o.rows, data, data + count, data + 2 * count };
}

static void measure(rdl_world *world, const llama_blas *blas, size_t length,
                    size_t rows)
{
    llama *m = make(world, blas, length, rows);
    llama_rows data = make_rows(m);
    size_t area = (size_t)8 << 20;
    ground g = { .blas = blas };
    double step = 1e9, products = 1e9, cube = 1e9, tokens;

    g.a = calloc(3 * area, sizeof *g.a);
    if (g.a == NULL)
        exit(1);
    g.b = g.a + area;
    g.c = g.b + area;
    for (size_t i = 0; i < 2 * area; i++)
        g.a[i] = (float)(i % 7) - 3;
    for (int turn = 0; turn < TURNS; turn++) {
        llama_error error = { "" };
        llama_result result;
        double start = now();

        must(llama_train_step(m, turn + 1, &data, 1, 1e-4, &result, &error),
             &error);
        step = least(step, now() - start);
        products = least(products, time_products(&g, m));
        cube = least(cube, time_product(&g, llama_product_nn, 1024, 1024, 1024,
                                        1024, 1024, 0));
    }
    tokens = (double)(rows * length);
    printf("train_step\t%zu\t%.0f\t%.4f\t%.0f\t%.4f\t%.3f\t%.1f\t%.3f\n",
           length, tokens, step, tokens / step, products, products / step,
           2.147483648 / cube, operations(m) * cube / 2147483648.0 / step);
    fflush(stdout);
    free(g.a);
    free((void *)(uintptr_t)data.tokens);
    llama_destroy(m);
}

int main(void)
{
    static const struct {
        size_t length, rows;
    } sizes[] = { { 256, 8 }, { 1024, 2 }, { 2048, 1 } };
    rdl_world_options options = { .size = 1 };
    llama_error error = { "" };
    llama_blas *blas;
    rdl_world *world;

    must(llama_blas_open(&blas, &error), &error);
    must(rdl_world_open(&options, &world), NULL);
    fprintf(stderr, "train_step: %s, kernels %s\n", llama_blas_name(blas),
            llama_kernels_at(0)->name);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        measure(world, blas, sizes[i].length, sizes[i].rows);
    must(rdl_world_close(world), NULL);
    llama_blas_close(blas);
    return 0;
}
