/* A BLAS, opened at run time. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "llama/blas.h"

#include "llama/error.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every BLAS has the Fortran name. The lengths of the one-character texts come
 * last and by value; libraries written in C ignore them. */
typedef void sgemm_function(const char *a_kind, const char *b_kind, const int *m,
                            const int *n, const int *k, const float *scale,
                            const float *a, const int *a_stride, const float *b,
                            const int *b_stride, const float *keep, float *c,
                            const int *c_stride, size_t a_kind_length,
                            size_t b_kind_length);

struct llama_blas {
    void *library;
    sgemm_function *sgemm;
    bool one_at_a_time;
    pthread_mutex_t *turn;
    char name[256];
};

/* A function pointer from dlsym, which C has no conversion for. */
static void find(void *library, const char *name, void *function, size_t bytes)
{
    void *symbol = dlsym(library, name);

    memcpy(function, &symbol, bytes);
}

/* ---- Products ---- */

/* Row-major c = a b is column-major c' = b' a'. */
static void product(const llama_blas *blas, const char *kinds, size_t m,
                    size_t n, size_t k, float scale, llama_in a, llama_in b,
                    float keep, llama_out c)
{
    int rows = (int)m, columns = (int)n, inner = (int)k;
    int a_stride = (int)a.stride, b_stride = (int)b.stride;
    int c_stride = (int)c.stride;

    if (blas->one_at_a_time)
        pthread_mutex_lock(blas->turn);
    blas->sgemm(kinds + 1, kinds, &columns, &rows, &inner, &scale, b.values,
                &b_stride, a.values, &a_stride, &keep, c.values, &c_stride, 1,
                1);
    if (blas->one_at_a_time)
        pthread_mutex_unlock(blas->turn);
}

void llama_product_nn(const llama_blas *blas, size_t m, size_t n, size_t k,
                      float scale, llama_in a, llama_in b, float keep,
                      llama_out c)
{
    product(blas, "NN", m, n, k, scale, a, b, keep, c);
}

void llama_product_nt(const llama_blas *blas, size_t m, size_t n, size_t k,
                      float scale, llama_in a, llama_in b, float keep,
                      llama_out c)
{
    product(blas, "NT", m, n, k, scale, a, b, keep, c);
}

void llama_product_tn(const llama_blas *blas, size_t m, size_t n, size_t k,
                      float scale, llama_in a, llama_in b, float keep,
                      llama_out c)
{
    product(blas, "TN", m, n, k, scale, a, b, keep, c);
}

/* ---- Opening ---- */

/* OpenBLAS releases older than the processor choose a slow kernel or one that it
 * cannot run, so the kernel is named by what the processor can do. Its threads,
 * where it has them, start while it is loaded. */
static void prepare_openblas(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        setenv("OPENBLAS_CORETYPE", "SkylakeX", 0);
    else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        setenv("OPENBLAS_CORETYPE", "Haswell", 0);
#endif
    setenv("OPENBLAS_NUM_THREADS", "1", 0);
}

/* Where distributions keep the build without threads, then what any may have. */
static const char *const candidates[] = {
#if defined(__x86_64__)
    "/usr/lib/x86_64-linux-gnu/openblas-serial/libopenblas.so.0",
#elif defined(__aarch64__)
    "/usr/lib/aarch64-linux-gnu/openblas-serial/libopenblas.so.0",
#endif
    "libopenblas.so.0",
    "libopenblas.so",
    "libblis.so.4",
    "libblas.so.3",
};

static rdl_status open_library(llama_blas *blas, llama_error *error)
{
    const char *wanted = getenv("RADDLE_BLAS");

    if (wanted != NULL && *wanted != 0) {
        blas->library = dlopen(wanted, RTLD_NOW | RTLD_LOCAL);
        if (blas->library == NULL)
            return llama_fail(error, RDL_UNSUPPORTED, "RADDLE_BLAS=%s: %s",
                              wanted, dlerror());
        return RDL_OK;
    }
    for (size_t i = 0; i < sizeof candidates / sizeof candidates[0]; i++) {
        blas->library = dlopen(candidates[i], RTLD_NOW | RTLD_LOCAL);
        if (blas->library != NULL)
            return RDL_OK;
    }
    return llama_fail(error, RDL_UNSUPPORTED,
                      "no BLAS is installed, and the model's matrix products "
                      "need one: install libopenblas0-serial, or set "
                      "RADDLE_BLAS to a library that has sgemm_");
}

/* The first words of text. */
static int words_length(const char *text, int words)
{
    const char *at = text;

    for (; words > 0 && *at != 0; words--)
        at += strcspn(at, " ") + (words > 1 && at[strcspn(at, " ")] != 0);
    return (int)(at - text);
}

/* The file it came from, and what OpenBLAS says of itself. */
static void name_it(llama_blas *blas)
{
    char *(*core)(void), *(*config)(void);
    Dl_info info = { .dli_fname = NULL };
    size_t length;

    find(blas->library, "openblas_get_corename", &core, sizeof core);
    find(blas->library, "openblas_get_config", &config, sizeof config);
    (void)dladdr(dlsym(blas->library, "sgemm_"), &info);
    snprintf(blas->name, sizeof blas->name, "%s",
             info.dli_fname != NULL ? info.dli_fname : "the BLAS");
    if (core == NULL || config == NULL)
        return;
    length = strlen(blas->name);
    snprintf(blas->name + length, sizeof blas->name - length, " (%.*s, %s)",
             words_length(config(), 2), config(), core());
    blas->one_at_a_time = strstr(config(), "SINGLE_THREADED") != NULL &&
                          strstr(config(), "USE_LOCKING") == NULL;
}

static void use_one_thread(llama_blas *blas)
{
    void (*set)(int);

    find(blas->library, "openblas_set_num_threads", &set, sizeof set);
    if (set != NULL)
        set(1);
}

/* Sizes that reach a kernel's body, edges and several blocks of each dimension;
 * small integers, so that every order of adding gives the same bits. */
enum { CHECK_M = 67, CHECK_N = 129, CHECK_K = 400 };

static float check_value(size_t i, size_t step, size_t most)
{
    return (float)(i * step % (2 * most + 1)) - (float)most;
}

static rdl_status compare(const llama_blas *blas, const float *a,
                          const float *b, float *c, llama_error *error)
{
    product(blas, "NT", CHECK_M, CHECK_N, CHECK_K, 1, (llama_in){ a, CHECK_K },
            (llama_in){ b, CHECK_K }, 0, (llama_out){ c, CHECK_N });
    for (size_t i = 0; i < CHECK_M; i++)
        for (size_t j = 0; j < CHECK_N; j++) {
            double sum = 0, got = c[i * CHECK_N + j];

            for (size_t k = 0; k < CHECK_K; k++)
                sum += (double)a[i * CHECK_K + k] * (double)b[j * CHECK_K + k];
            if (got != sum)
                return llama_fail(
                    error, RDL_UNSUPPORTED,
                    "%s computes wrongly: element (%zu, %zu) of a product is "
                    "%g and should be %g; another kernel can be tried with "
                    "OPENBLAS_CORETYPE, another library with RADDLE_BLAS",
                    blas->name, i, j, got, sum);
        }
    return RDL_OK;
}

static rdl_status check_product(const llama_blas *blas, llama_error *error)
{
    size_t a_count = CHECK_M * CHECK_K, b_count = CHECK_N * CHECK_K;
    float *a = calloc(a_count + b_count + CHECK_M * CHECK_N, sizeof *a);
    float *b;
    rdl_status st;

    if (a == NULL)
        return llama_fail(error, RDL_NO_MEMORY, "BLAS: out of memory");
    b = a + a_count;
    for (size_t i = 0; i < a_count; i++)
        a[i] = check_value(i, 7, 8);
    for (size_t i = 0; i < b_count; i++)
        b[i] = check_value(i, 11, 6);
    st = compare(blas, a, b, b + b_count, error);
    free(a);
    return st;
}

rdl_status llama_blas_open(llama_blas **out, llama_error *error)
{
    llama_blas *blas = calloc(1, sizeof *blas);
    rdl_status st;

    if (blas == NULL || (blas->turn = malloc(sizeof *blas->turn)) == NULL) {
        free(blas);
        return llama_fail(error, RDL_NO_MEMORY, "BLAS: out of memory");
    }
    pthread_mutex_init(blas->turn, NULL);
    prepare_openblas();
    st = open_library(blas, error);
    if (st != RDL_OK)
        goto fail;
    name_it(blas);
    find(blas->library, "sgemm_", &blas->sgemm, sizeof blas->sgemm);
    if (blas->sgemm == NULL) {
        st = llama_fail(error, RDL_UNSUPPORTED,
                        "%s is no BLAS: it has no sgemm_", blas->name);
        goto fail;
    }
    use_one_thread(blas);
    st = check_product(blas, error);
    if (st != RDL_OK)
        goto fail;
    *out = blas;
    return RDL_OK;

fail:
    llama_blas_close(blas);
    return st;
}

void llama_blas_close(llama_blas *blas)
{
    if (blas == NULL)
        return;
    if (blas->library != NULL)
        dlclose(blas->library);
    pthread_mutex_destroy(blas->turn);
    free(blas->turn);
    free(blas);
}

const char *llama_blas_name(const llama_blas *blas)
{
    return blas->name;
}
