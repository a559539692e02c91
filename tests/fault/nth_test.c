/* The nth failure: of everything a rank does from its host to the end of its world,
 * the 1st allocation or system call fails, then the 2nd, and so on until a run
 * meets no fault; once, and from there on.
 *
 * After each: a status and a sentence, no rank that waits for its limit, nothing
 * left, and a new world that works. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/fault.h"
#include "support/left.h"
#include "support/worlds.h"

#include <errno.h>
#include <raddle/account.h>
#include <raddle/launch.h>
#include <raddle/memory.h>
#include <raddle/work.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef RDL_FAULTS

/* A rank whom nobody could tell of a failed start comes again after this; so does
 * one that was late on a busy machine. */
#define START_MS 300
#define PATIENCE_MS 60000
#define BIG 3000 /* int64: several rounds through the least staging */

typedef enum seam { MEMORY, SYSTEM } seam;

/* One run, shared by its ranks. */
typedef struct run {
    char job[2][64]; /* with the fault, and after it */
    int failing;     /* rank */
    bool comes_first;
    rdl_fault plan;
    atomic_bool over; /* a rank failed after the start: nobody comes any more */
} run;

static void check_failure(rdl_status st)
{
    CHECK(st != RDL_OK && st != RDL_AGAIN && st != RDL_BUG);
    CHECK(rdl_error_detail()[0] != 0);
}

static rdl_status open_once(run *r, int life, int rank, int size,
                            rdl_world **world)
{
    rdl_host_options least = { .staging_bytes = RDL_STAGING_LEAST };
    rdl_world_options options = { .rank = rank,
                                  .size = size,
                                  .job = r->job[life],
                                  .start_timeout_ms = START_MS,
                                  .timeout_ms = PATIENCE_MS };
    rdl_status st = rdl_host_create(&least, &options.host);

    if (st != RDL_OK)
        return st;
    st = rdl_world_open(&options, world);
    rdl_host_destroy(options.host);
    return st;
}

/* Comes again until all are there; a fault is met once. False: the others were,
 * and have failed since. */
static bool open_at_last(run *r, int life, int rank, int size, rdl_world **world)
{
    for (int ms = 0; life == 1 || !atomic_load(&r->over); ms += 2) {
        rdl_status st = open_once(r, life, rank, size, world);

        if (st == RDL_OK)
            return true;
        check_failure(st);
        CHECK(ms < PATIENCE_MS);
        rdl_fault_use(NULL);
        usleep(2000);
    }
    return false;
}

typedef struct buffers {
    int64_t input[3 * BIG];
    int64_t output[3 * BIG];
} buffers;

/* Stops at the first call that fails. */
#define GO(call)                                                               \
    do {                                                                       \
        rdl_status go_ = (call);                                               \
        if (go_ != RDL_OK)                                                     \
            return go_;                                                        \
    } while (0)

static rdl_status call_all(rdl_world *w, rdl_group g, buffers *b, size_t n)
{
    int64_t *in = b->input, *out = b->output;

    GO(rdl_barrier(w, g, NULL));
    GO(rdl_broadcast(w, g, in, n, RDL_INT64, 1, NULL));
    GO(rdl_all_reduce(w, g, in, out, n, RDL_INT64, RDL_SUM, NULL));
    GO(rdl_all_gather(w, g, in, out, n, RDL_INT64, NULL));
    GO(rdl_reduce_scatter(w, g, in, out, n, RDL_INT64, RDL_AVG, NULL));
    return rdl_all_to_all(w, g, in, out, n, RDL_INT64, NULL);
}

/* An operation under way with memory that is given back meanwhile. */
static rdl_status use_memory(rdl_world *world, rdl_group g, buffers *b)
{
    void *memory = NULL;
    rdl_work work;
    rdl_call call = { .work = &work };

    GO(rdl_mem_alloc(world, BIG * sizeof(int64_t), &memory));
    GO(rdl_all_gather(world, g, memory, b->output, BIG, RDL_INT64, &call));
    GO(rdl_mem_free(world, memory));
    GO(rdl_work_wait(world, work, 0));
    return b->output[0] == 0 && b->output[BIG - 1] == 0 ? RDL_OK : RDL_BUG;
}

static rdl_status use_groups(rdl_world *world, buffers *b)
{
    static const int all[] = { 0, 1, 2 };
    int size = rdl_world_size(world);
    rdl_group first, second;
    rdl_account account;

    GO(rdl_group_open(world, all, size, "first", &first));
    GO(call_all(world, first, b, 1));
    GO(rdl_group_open(world, all, size, "second", &second));
    GO(call_all(world, second, b, BIG));
    GO(use_memory(world, second, b));
    GO(rdl_account_read(world, &account));
    GO(rdl_group_close(world, second));
    return rdl_group_close(world, first);
}

static void live_with_faults(run *r, int rank, int size)
{
    buffers *b = calloc(1, sizeof *b);
    rdl_world *world;
    rdl_status st;

    CHECK(b != NULL);
    if (rank == r->failing)
        rdl_fault_use(&r->plan);
    if (open_at_last(r, 0, rank, size, &world)) {
        st = use_groups(world, b);
        if (st != RDL_OK) {
            check_failure(st);
            CHECK(st != RDL_TIMEOUT); /* nobody waits to the end */
            atomic_store(&r->over, true);
            rdl_world_abort(world, "a fault");
        }
        if (rdl_world_close(world) != RDL_OK)
            CHECK(rdl_error_detail()[0] != 0);
    }
    rdl_fault_use(NULL);
    free(b);
}

static void live_twice(int rank, int size, void *arg)
{
    static const int64_t digits[] = { 0, 1, 11, 111 };
    run *r = arg;
    rdl_world *world;

    if (r->comes_first != (rank == r->failing))
        usleep(2000);
    live_with_faults(r, rank, size);
    open_at_last(r, 1, rank, size, &world);
    rdl_check_digits(world, RDL_WORLD, digits[size]);
    CHECK_OK(rdl_world_close(world));
}

static rdl_fault plan_at(seam where, bool onward, long n)
{
    rdl_fault plan = { .onward = onward };

    *(where == MEMORY ? &plan.memory_at : &plan.os_at) = n;
    return plan;
}

static void fail_each(seam where, bool onward, int size, int failing,
                      bool comes_first)
{
    rdl_test_left before = rdl_test_left_now();
    bool fired = true;
    long n = 0;

    while (fired) {
        run r = { .failing = failing,
                  .comes_first = comes_first,
                  .plan = plan_at(where, onward, ++n) };

        for (int life = 0; life < 2; life++)
            snprintf(r.job[life], sizeof r.job[life], "nth-%d-%ld-%d",
                     (int)getpid(), n, life);
        rdl_test_threads(size, live_twice, &r);
        rdl_test_nothing_left(&before);
        fired = r.plan.fired;
    }
    printf("%ld faults, rank %d of %d comes %s\n", n - 1, failing, size,
           comes_first ? "first" : "last");
    CHECK(n > 1);
}

static void fail_all(seam where, bool onward)
{
    fail_each(where, onward, 1, 0, true);
    fail_each(where, onward, 2, 0, true);
    fail_each(where, onward, 2, 0, false);
    fail_each(where, onward, 3, 1, false);
}

/* --- sentences --------------------------------------------------------------- */

/* Rank 0 has no memory left to note why its call failed. */
static void fail_without_memory(rdl_world *world, void *arg)
{
    rdl_call brief = { .timeout_ms = 300 };
    rdl_fault none = { .memory_at = 1, .onward = true };
    static const int all[] = { 0, 1 };
    rdl_group group;

    (void)arg;
    CHECK_OK(rdl_group_open(world, all, 2, "g", &group));
    CHECK_OK(rdl_barrier(world, group, NULL));
    if (rdl_world_rank(world) == 0) {
        rdl_fault_use(&none);
        CHECK_STATUS(rdl_barrier(world, group, &brief), RDL_TIMEOUT);
        CHECK(none.fired);
        CHECK_HAS(rdl_error_detail(), "waiting for rank 1");
        rdl_fault_use(NULL);
        CHECK_STATUS(rdl_barrier(world, group, NULL), RDL_TIMEOUT);
        CHECK_HAS(rdl_error_detail(), "has failed before");
    }
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    if (rdl_world_rank(world) == 1) { /* it finds all there, and then hears */
        rdl_status st = rdl_barrier(world, group, NULL);

        CHECK(st == RDL_OK || st == RDL_TIMEOUT);
        CHECK_STATUS(rdl_barrier(world, group, NULL), RDL_TIMEOUT);
        CHECK_HAS(rdl_error_detail(), "waiting for rank 1");
    }
}

static void check_sentences(void)
{
    rdl_test_job job = { .size = 2 };

    rdl_test_worlds(&job, fail_without_memory, NULL);
}

/* --- the launcher ---------------------------------------------------------- */

static void create_with_faults(seam where, bool onward)
{
    rdl_test_left before = rdl_test_left_now();
    bool fired = true;

    for (long n = 1; fired; n++) {
        rdl_fault plan = plan_at(where, onward, n);
        rdl_job *job = NULL;
        rdl_status st;

        rdl_fault_use(&plan);
        st = rdl_job_create(3, &job);
        CHECK((st == RDL_OK) == (job != NULL));
        if (st != RDL_OK)
            check_failure(st);
        rdl_job_destroy(job);
        rdl_fault_use(NULL);
        rdl_test_nothing_left(&before);
        fired = plan.fired;
    }
}

/* A launched rank: comes again until the launcher has met its fault. */
static void be_launched(int rank, int size, void *arg)
{
    rdl_job *job = arg;
    rdl_world *world;
    char text[16];

    snprintf(text, sizeof text, "%d", rdl_job_rank_fd(job, rank));
    setenv("RADDLE_FD", text, 1);
    setenv("RADDLE_RANK", rank ? "1" : "0", 1);
    setenv("RADDLE_WORLD_SIZE", size == 2 ? "2" : "?", 1);
    setenv("RADDLE_START_TIMEOUT", "0.3", 1);
    for (int ms = 0;; ms += 2) {
        rdl_status st = rdl_world_open(NULL, &world);

        if (st == RDL_OK)
            break;
        check_failure(st);
        CHECK(ms < PATIENCE_MS);
        usleep(2000);
    }
    rdl_check_digits(world, RDL_WORLD, 11);
    CHECK_OK(rdl_world_close(world));
}

static bool serve_with_faults(rdl_fault *plan)
{
    rdl_job *job;

    CHECK_OK(rdl_job_create(2, &job));
    for (int rank = 0; rank < 2; rank++) {
        rdl_test_start(rank, 2, be_launched, job);
        rdl_job_started(job, rank);
    }
    rdl_fault_use(plan);
    for (int running = 2; running > 0; usleep(500)) {
        int state;

        CHECK_OK(rdl_job_serve(job));
        while (waitpid(-1, &state, WNOHANG) > 0) {
            CHECK_INT(state, 0);
            running--;
        }
    }
    rdl_job_destroy(job);
    rdl_fault_use(NULL);
    return plan->fired;
}

static void serve_each(seam where)
{
    rdl_test_left before = rdl_test_left_now();
    bool fired = true;
    long n = 0;

    while (fired) {
        rdl_fault plan = plan_at(where, false, ++n);

        fired = serve_with_faults(&plan);
        rdl_test_nothing_left(&before);
    }
    printf("%ld faults while serving\n", n - 1);
}

static void run_out_of_memory_in_the_kernel(void)
{
    rdl_fault plan = { .os_at = 1, .os_error = ENOMEM };
    rdl_host *host = NULL;

    rdl_fault_use(&plan);
    CHECK_STATUS(rdl_host_create(NULL, &host), RDL_NO_MEMORY);
    CHECK_HAS(rdl_error_detail(), "ENOMEM");
    rdl_fault_use(NULL);
}

static void fail_launcher(void)
{
    run_out_of_memory_in_the_kernel();
    for (int onward = 0; onward < 2; onward++) {
        create_with_faults(MEMORY, onward);
        create_with_faults(SYSTEM, onward);
    }
    serve_each(MEMORY);
    serve_each(SYSTEM);
}
#else
typedef enum seam { MEMORY, SYSTEM } seam;

static void fail_all(seam where, bool onward)
{
    (void)where;
    (void)onward;
    SKIP("built without RADDLE_FAULTS");
}

static void check_sentences(void)
{
    SKIP("built without RADDLE_FAULTS");
}

static void fail_launcher(void)
{
    SKIP("built without RADDLE_FAULTS");
}
#endif

RDL_TEST(an_allocation_that_fails_is_a_status_and_harms_nobody)
{
    fail_all(MEMORY, false);
}

RDL_TEST(no_memory_from_anywhere_on_is_a_status_and_harms_nobody)
{
    fail_all(MEMORY, true);
}

RDL_TEST(a_system_call_that_fails_is_a_status_and_harms_nobody)
{
    fail_all(SYSTEM, false);
}

RDL_TEST(no_system_call_from_anywhere_on_is_a_status_and_harms_nobody)
{
    fail_all(SYSTEM, true);
}

RDL_TEST(a_launcher_that_meets_a_failure_goes_on_serving)
{
    fail_launcher();
}

RDL_TEST(a_failure_keeps_its_sentence_without_memory_to_note_it)
{
    check_sentences();
}
