/* The machine's limits, and the formula. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "floor.h"

#include "base/cpus.h"

#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define WORKERS_MOST 16
#define CROSSINGS 20000
#define REPETITIONS 5
#define MIB ((size_t)1 << 20)

static const size_t sizes[SPEED_RATES] = { 4096, 65536, MIB, 16 * MIB,
                                           64 * MIB };

/* A word on lines of its own. */
typedef struct word {
    _Alignas(128) atomic_ulong value;
    char rest[128 - sizeof(atomic_ulong)];
} word;

/* What the workers share. */
typedef struct place {
    word words[WORKERS_MOST];
    double line_us[WORKERS_MOST]; /* each worker writes its own */
    double switch_us[WORKERS_MOST];
    double copy[WORKERS_MOST][SPEED_RATES];
    double add[WORKERS_MOST][SPEED_RATES];
    double fresh[WORKERS_MOST][SPEED_RATES];
    unsigned char *written; /* 64 MiB for each of them */
} place;

typedef struct worker {
    place *p;
    int me;
    int n;
    unsigned long step;
    float *a, *b, *c; /* 64 MiB each */
    bool gives_way;
} worker;

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* --- kernels --------------------------------------------------------------- */

static void copy_plain(const worker *w, size_t bytes)
{
    memcpy(w->c, w->a, bytes);
}

static void add_plain(const worker *w, size_t bytes)
{
    const float *restrict a = w->a, *restrict b = w->b;
    float *restrict c = w->c;

    for (size_t i = 0; i < bytes / sizeof(float); i++)
        c[i] = a[i] + b[i];
}

#ifdef __SSE2__
static void copy_past(const worker *w, size_t bytes)
{
    for (size_t i = 0; i < bytes / sizeof(float); i += 4)
        _mm_stream_ps(w->c + i, _mm_load_ps(w->a + i));
    _mm_sfence();
}

static void add_past(const worker *w, size_t bytes)
{
    for (size_t i = 0; i < bytes / sizeof(float); i += 4)
        _mm_stream_ps(w->c + i,
                      _mm_add_ps(_mm_load_ps(w->a + i), _mm_load_ps(w->b + i)));
    _mm_sfence();
}
#else
#define copy_past copy_plain
#define add_past add_plain
#endif

/* --- the workers ----------------------------------------------------------- */

static void meet(worker *w)
{
    w->step++;
    atomic_store_explicit(&w->p->words[w->me].value, w->step,
                          memory_order_release); /* pairs with the load below */
    for (int i = 0; i < w->n; i++)
        while (atomic_load_explicit(&w->p->words[i].value,
                                    memory_order_acquire) < w->step)
            if (w->gives_way)
                (void)sched_yield();
}

/* Microseconds of one meeting. */
static double time_meetings(worker *w)
{
    double best = INFINITY, start;

    for (int i = 0; i < REPETITIONS; i++) {
        meet(w);
        start = now_us();
        for (int k = 0; k < CROSSINGS; k++)
            meet(w);
        best = fmin(best, (now_us() - start) / CROSSINGS);
    }
    return best;
}

/* All at once; the best of a few, so that what else runs here counts little. */
static double rate_of(worker *w, void (*kernel)(const worker *, size_t),
                      size_t bytes)
{
    size_t calls = bytes >= MIB ? 1 : MIB / bytes;
    double best = INFINITY, start;

    for (int i = 0; i < REPETITIONS; i++) {
        meet(w);
        start = now_us();
        for (size_t k = 0; k < calls; k++)
            kernel(w, bytes);
        best = fmin(best, (now_us() - start) / (double)calls);
    }
    return (double)bytes / best;
}

static double rate_fresh(worker *w, size_t bytes)
{
    unsigned char *mine = w->p->written + (size_t)w->me * sizes[SPEED_RATES - 1];
    const unsigned char *next =
        w->p->written + (size_t)((w->me + 1) % w->n) * sizes[SPEED_RATES - 1];
    double best = INFINITY, start;

    for (int i = 0; i < REPETITIONS; i++) {
        memset(mine, i, bytes);
        meet(w);
        start = now_us();
        memcpy(w->c, next, bytes);
        best = fmin(best, now_us() - start);
        meet(w);
    }
    return (double)bytes / best;
}

static bool map_floats(float **out)
{
    void *memory = mmap(NULL, sizes[SPEED_RATES - 1], PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

    *out = memory;
    return memory != MAP_FAILED;
}

static int work(worker *w)
{
    place *p = w->p;

    if (!map_floats(&w->a) || !map_floats(&w->b) || !map_floats(&w->c))
        return 1;
    if (w->n > 1)
        p->line_us[w->me] = time_meetings(w);
    for (int i = 0; i < SPEED_RATES; i++) {
        p->copy[w->me][i] = fmax(rate_of(w, copy_plain, sizes[i]),
                                 rate_of(w, copy_past, sizes[i]));
        p->add[w->me][i] = fmax(rate_of(w, add_plain, sizes[i]),
                                rate_of(w, add_past, sizes[i]));
        p->fresh[w->me][i] = rate_fresh(w, sizes[i]);
    }
    return 0;
}

/* A meeting of two on one core is two switches, of which one is each one's own. */
static int work_on_one_core(worker *w)
{
    w->gives_way = true;
    w->p->switch_us[w->me] = time_meetings(w) / 2;
    return 0;
}

/* --- starting them --------------------------------------------------------- */

static void stay_on(int cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET((unsigned)cpu, &set);
    (void)sched_setaffinity(0, sizeof set, &set);
}

static int nth_cpu(int n)
{
    rdl_cpus allowed = rdl_cpus_allowed();
    int cpu = rdl_cpus_next(&allowed, 0);

    while (n-- > 0)
        cpu = rdl_cpus_next(&allowed, cpu + 1);
    return cpu;
}

static bool run_workers(place *p, int n, bool on_one_core, int (*body)(worker *))
{
    bool good = true;
    int status;

    memset(p->words, 0, sizeof p->words);
    for (int i = 0; i < n; i++) {
        int cpu = nth_cpu(on_one_core ? 0 : i);
        pid_t pid = fork();

        if (pid == 0) {
            if (cpu >= 0 && cpu < CPU_SETSIZE)
                stay_on(cpu);
            _exit(body(&(worker){ .p = p, .me = i, .n = n }));
        }
        good &= pid > 0;
    }
    while (wait(&status) > 0)
        good &= status == 0;
    return good;
}

static double slowest(double of[WORKERS_MOST][SPEED_RATES], int n, int size)
{
    double rate = of[0][size];

    for (int i = 1; i < n; i++)
        rate = fmin(rate, of[i][size]);
    return rate;
}

static void *share(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

bool speed_measure_machine(int cores, speed_machine *m)
{
    int n = cores > WORKERS_MOST ? WORKERS_MOST : cores;
    size_t written = (size_t)n * sizes[SPEED_RATES - 1];
    place *p = share(sizeof *p);
    bool good = p != NULL && (p->written = share(written)) != NULL &&
                run_workers(p, n, false, work) &&
                run_workers(p, 2, true, work_on_one_core);

    *m = (speed_machine){ .cores = n };
    if (good) {
        m->line_us = p->line_us[0];
        m->switch_us = p->switch_us[0];
    }
    for (int i = 0; i < SPEED_RATES && good; i++) {
        m->copy[i] = slowest(p->copy, n, i);
        m->add[i] = slowest(p->add, n, i);
        m->copy_fresh[i] = slowest(p->fresh, n, i);
    }
    if (p != NULL && p->written != NULL)
        (void)munmap(p->written, written);
    if (p != NULL)
        (void)munmap(p, sizeof *p);
    return good;
}

/* --- the formula ----------------------------------------------------------- */

/* Of a core that handles these bytes: between two sizes by the logarithm. */
static double rate_at(const double *rates, double bytes)
{
    for (int i = 1; i < SPEED_RATES; i++) {
        double low = (double)sizes[i - 1], high = (double)sizes[i];

        if (bytes <= low)
            return rates[i - 1];
        if (bytes <= high)
            return rates[i - 1] * pow(rates[i] / rates[i - 1],
                                      log(bytes / low) / log(high / low));
    }
    return rates[SPEED_RATES - 1];
}

static double copying(const speed_machine *m, double bytes, double cores)
{
    return bytes / cores / rate_at(m->copy, bytes / cores);
}

static double adding(const speed_machine *m, double bytes, double cores)
{
    return bytes / cores / (3 * rate_at(m->add, bytes / cores / 3));
}

/* Microseconds that moving takes; below 0: no formula. */
static double moving(const speed_machine *m, int operation, double n, double s,
                     double p)
{
    switch (operation) {
    case SPEED_BARRIER:
        return 0;
    case SPEED_ALL_GATHER:
        return copying(m, n * n * s, p);
    case SPEED_ALL_TO_ALL:
        return copying(m, n * s, p);
    case SPEED_BROADCAST:
        return copying(m, (n - 1) * s, p);
    case SPEED_REDUCE_SCATTER:
        return adding(m, (n + 1) * s, p);
    case SPEED_ALL_REDUCE:
        return adding(m, (n + 1) * s, p) + copying(m, (n - 1) * s, p);
    default:
        return -1;
    }
}

/* Bytes that cross to a core from the one that has just written them. */
static double crossing(int operation, double n, double s)
{
    switch (operation) {
    case SPEED_BARRIER:
        return 0;
    case SPEED_ALL_GATHER:
        return n * s / 2;
    case SPEED_ALL_REDUCE:
        return n * s / 4 + s / 2;
    case SPEED_BROADCAST:
        return s / 2;
    default:
        return n * s / 4;
    }
}

double speed_floor(const speed_machine *m, const speed_point *point, bool fresh)
{
    double n = point->members, s = (double)point->bytes;
    double p = n < m->cores ? n : m->cores;
    double x = crossing(point->operation, n, s);
    double moves;

    if (m->cores == 0 || point->members != point->ranks)
        return 0;
    moves = moving(m, point->operation, n, s, p);
    if (moves < 0)
        return 0;
    if (fresh && x > 0)
        moves +=
            x * fmax(0, 1 / rate_at(m->copy_fresh, x) - 1 / rate_at(m->copy, x));
    return m->line_us + (n / p - 1) * m->switch_us + moves;
}
