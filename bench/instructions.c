/* Instructions of a call whose peers have been there before it: what the side that
 * issues it executes, and no time. Counted by stepping through it with ptrace, which
 * works where the processor's own counters are not to be had.
 *
 * A row: name, ranks, bytes, the median and the least of the calls' instructions. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <raddle/collective.h>
#include <raddle/work.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define WHO "bench/instructions"
#define RANKS_MOST 4
#define WARM 200 /* calls before those that are counted */
#define CALLS 9
#define OPERATIONS 2

#if defined(__x86_64__)
#define MARK() __asm__ __volatile__("int3" ::: "memory")
#define MARK_CODE 0x80 /* SI_KERNEL; a step over a system call is TRAP_BRKPT */
#elif defined(__aarch64__)
#define MARK() __asm__ __volatile__("brk #0; nop" ::: "memory")
#define MARK_CODE TRAP_BRKPT
#endif

/* --- the ranks ------------------------------------------------------------- */

typedef struct rank {
    rdl_world *world;
    int rank;
    int size;
    int (*pipes)[2]; /* from each to rank 0: its line is there */
    int64_t one;
    int64_t sum;
} rank;

static rdl_status operate(rank *r, int which, const rdl_call *call)
{
    if (which == 1)
        return rdl_barrier(r->world, RDL_WORLD, call);
    return rdl_all_reduce(r->world, RDL_WORLD, &r->one, &r->sum, 1, RDL_INT64,
                          RDL_SUM, call);
}

/* Issued beside the caller, a call publishes its line and returns. */
static bool go_ahead(rank *r, int which)
{
    rdl_work work;
    char word = 0;

    return operate(r, which, &(rdl_call){ .work = &work }) == RDL_OK &&
           write(r->pipes[r->rank][1], &word, 1) == 1 &&
           rdl_work_wait(r->world, work, 0) == RDL_OK;
}

static bool come_last(rank *r, int which)
{
    rdl_status st;
    char word;

    for (int i = 1; i < r->size; i++)
        if (read(r->pipes[i][0], &word, 1) != 1)
            return false;
#ifdef MARK
    MARK();
#endif
    st = operate(r, which, NULL);
#ifdef MARK
    MARK();
#endif
    return st == RDL_OK;
}

static bool run_calls(rank *r)
{
    for (int which = 0; which < OPERATIONS; which++) {
        for (int i = 0; i < WARM; i++)
            if (operate(r, which, NULL) != RDL_OK)
                return false;
        for (int i = 0; i < CALLS; i++)
            if (!(r->rank == 0 ? come_last(r, which) : go_ahead(r, which)))
                return false;
    }
    return true;
}

static int run_rank(rank r)
{
    char job[64];
    bool good;

    snprintf(job, sizeof job, "instructions-%d-%d", (int)getppid(), r.size);
    good =
        rdl_world_open(
            &(rdl_world_options){ .rank = r.rank, .size = r.size, .job = job },
            &r.world) == RDL_OK &&
        run_calls(&r);
    if (!good)
        fprintf(stderr, WHO ": rank %d: %s\n", r.rank, rdl_error_detail());
    (void)rdl_world_close(r.world);
    return good ? 0 : 1;
}

/* --- counting -------------------------------------------------------------- */

typedef struct counts {
    long of[OPERATIONS * CALLS];
    int n;
} counts;

/* A mark of the program, and not the end of a step. */
static bool is_mark(pid_t pid)
{
    siginfo_t info;

    return ptrace(PTRACE_GETSIGINFO, pid, NULL, &info) == 0 &&
           info.si_code == MARK_CODE;
}

/* Steps from each first mark to the second; the rest runs. */
static int count_steps(pid_t pid, counts *c)
{
    bool inside = false;
    long steps = 0;
    int status;

    while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
        long signal = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);

        if (signal == 0 && is_mark(pid)) {
            if (inside && c->n < OPERATIONS * CALLS)
                c->of[c->n++] = steps;
            inside = !inside;
            steps = 0;
        } else if (signal == 0) {
            steps++;
        }
        if (ptrace(inside ? PTRACE_SINGLESTEP : PTRACE_CONT, pid, NULL,
                   (void *)signal) != 0)
            break;
    }
    return status;
}

static int by_size(const void *a, const void *b)
{
    long x = *(const long *)a, y = *(const long *)b;

    return (x > y) - (x < y);
}

static void report(int size, counts *c)
{
    static const char *const names[OPERATIONS] = { "all_reduce", "barrier" };
    static const int bytes[OPERATIONS] = { 8, 0 };

    for (int i = 0; i < OPERATIONS; i++) {
        long *of = c->of + (size_t)i * CALLS;

        qsort(of, CALLS, sizeof *of, by_size);
        printf("%s\t%d\t%d\t%ld\t%ld\n", names[i], size, bytes[i],
               of[CALLS / 2], of[0]);
    }
}

static pid_t start(int which, int size, int pipes[RANKS_MOST][2])
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    if (which == 0 && ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) {
        fprintf(stderr, WHO ": a process may not be traced here: %s\n",
                strerror(errno));
        exit(77);
    }
    exit(run_rank((rank){ .rank = which, .size = size, .pipes = pipes }));
}

static int run_size(int size)
{
    int pipes[RANKS_MOST][2], status, worst;
    counts c = { .n = 0 };
    pid_t first;

    for (int i = 0; i < size; i++)
        if (pipe(pipes[i]) != 0)
            return 1;
    first = start(0, size, pipes);
    for (int i = 1; i < size; i++)
        start(i, size, pipes);
    worst = count_steps(first, &c);
    while (wait(&status) > 0)
        worst |= status;
    if (c.n == OPERATIONS * CALLS)
        report(size, &c);
    return worst == 0 && c.n == OPERATIONS * CALLS ? 0 : 1;
}

int main(void)
{
#ifndef MARK
    fprintf(stderr, WHO ": not for this processor\n");
    return 77;
#endif
    setvbuf(stdout, NULL, _IOLBF, 0);
    return run_size(2) | run_size(4);
}
