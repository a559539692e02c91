/* Memory of rdl_mem_alloc, and what pending operations do with it (the end of case
 * H26). */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/worlds.h"

#include <raddle/account.h>
#include <raddle/memory.h>
#include <raddle/stream.h>
#include <raddle/work.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT ((size_t)262144) /* float32: 1 MiB */
#define BYTES (COUNT * sizeof(float))

static void both(int size, rdl_world_body body, void *arg)
{
    rdl_test_job job = { .size = size };

    rdl_test_worlds(&job, body, arg);
    job.processes = true;
    rdl_test_worlds(&job, body, arg);
}

static rdl_account account_of(rdl_world *world)
{
    rdl_account account;

    CHECK_OK(rdl_account_read(world, &account));
    return account;
}

static float *alloc_floats(rdl_world *world, float value)
{
    void *memory = NULL;

    CHECK_OK(rdl_mem_alloc(world, BYTES, &memory));
    for (size_t i = 0; i < COUNT; i++)
        ((float *)memory)[i] = value;
    return memory;
}

static void check_all(const float *values, float expected)
{
    for (size_t i = 0; i < COUNT; i++)
        if (values[i] != expected)
            RDL_TEST_FAIL("element %zu is %g, not %g", i, (double)values[i],
                          (double)expected);
}

/* Who drives an operation gives its memory back a moment after its end. */
static void await_heap(rdl_world *world, uint64_t bytes)
{
    for (int ms = 0; account_of(world).heap_bytes != bytes; ms++) {
        CHECK(ms < 20000);
        usleep(1000);
    }
}

/* --- taking and freeing ---------------------------------------------------- */

static void take_and_free(rdl_world *world, void *arg)
{
    size_t sizes[] = { 1, 4096, 4097, 1 << 20, 3 << 20 };
    unsigned char *memory[5];
    uint64_t sum = 0, before;
    void *nothing = arg;

    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    before = account_of(world).arena_bytes_total;
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    for (int i = 0; i < 5; i++) {
        void *at = NULL;

        CHECK_OK(rdl_mem_alloc(world, sizes[i], &at));
        memory[i] = at;
        sum += (sizes[i] + 4095) / 4096 * 4096;
        CHECK_INT((uintptr_t)at % RDL_MEMORY_ALIGNMENT, 0);
        CHECK_INT(memory[i][0] | memory[i][sizes[i] - 1], 0);
        memset(at, 1, sizes[i]);
        CHECK_INT(account_of(world).heap_bytes, sum);
    }
    for (int i = 0; i < 5; i++)
        CHECK_OK(rdl_mem_free(world, memory[i]));
    CHECK_INT(account_of(world).heap_bytes, 0);
    CHECK_INT(account_of(world).heap_bytes_peak, sum);
    if (rdl_world_size(world) == 1)
        CHECK_INT(account_of(world).descriptors, 1);
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    CHECK_INT(account_of(world).arena_bytes_total, before);
    CHECK_OK(rdl_mem_alloc(world, 0, &nothing));
    CHECK(nothing == NULL);
    CHECK_OK(rdl_mem_free(world, nothing));
}

RDL_TEST(memory_is_zeroed_aligned_and_in_the_account)
{
    rdl_test_job job = { .size = 1 };

    rdl_test_worlds(&job, take_and_free, &job);
    both(2, take_and_free, &job);
    both(3, take_and_free, &job);
}

static void pass_what_is_wrong(rdl_world *world, void *arg)
{
    void *memory = NULL, *out = arg;
    int32_t elsewhere = 0;

    CHECK_STATUS(rdl_mem_alloc(NULL, 1, &out), RDL_INVALID);
    CHECK_STATUS(rdl_mem_alloc(world, 1, NULL), RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "out is NULL");
    CHECK_STATUS(rdl_mem_alloc(world, SIZE_MAX, &out), RDL_NO_MEMORY);
    CHECK(out == arg);
    CHECK_STATUS(rdl_mem_free(NULL, out), RDL_INVALID);
    CHECK_STATUS(rdl_mem_free(world, &elsewhere), RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "is no memory of this world's heap");
    CHECK_OK(rdl_mem_alloc(world, 8192, &memory));
    CHECK_STATUS(rdl_mem_free(world, (char *)memory + 64), RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "byte 64 of a block of 8192");
    CHECK_OK(rdl_mem_free(world, memory));
    CHECK_STATUS(rdl_mem_free(world, memory), RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "was freed before");
    CHECK_INT(account_of(world).heap_bytes, 0);
}

RDL_TEST(wrong_pointers_are_refused)
{
    both(1, pass_what_is_wrong, &(int){ 0 });
    both(2, pass_what_is_wrong, &(int){ 0 });
}

RDL_TEST(memory_of_another_world_is_refused)
{
    rdl_world_options alone = { .size = 1 };
    rdl_world *one, *two;
    void *memory = NULL, *other = NULL;

    CHECK_OK(rdl_world_open(&alone, &one));
    CHECK_OK(rdl_world_open(&alone, &two));
    CHECK_OK(rdl_mem_alloc(one, 10, &memory));
    CHECK_OK(rdl_mem_alloc(two, 10, &other));
    CHECK_STATUS(rdl_mem_free(two, memory), RDL_INVALID);
    CHECK_OK(rdl_mem_free(one, memory));
    CHECK_OK(rdl_world_close(one));
    CHECK_OK(rdl_world_close(two)); /* frees the rest */
}

static void fork_a_child(rdl_world *world, void *arg)
{
    void *memory = NULL;
    int state = 0;
    pid_t pid;

    (void)arg;
    CHECK_OK(rdl_mem_alloc(world, 4096, &memory));
    memset(memory, 7, 4096);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        void *more = NULL;
        bool right = rdl_mem_free(world, memory) == RDL_STATE &&
                     rdl_mem_alloc(world, 1, &more) == RDL_STATE &&
                     rdl_world_close(world) == RDL_OK;

        _exit(right ? 0 : 1);
    }
    CHECK(waitpid(pid, &state, 0) == pid && state == 0);
    CHECK_INT(((char *)memory)[4095], 7); /* not given back by the child */
    CHECK_INT(account_of(world).heap_bytes, 4096);
    CHECK_OK(rdl_mem_free(world, memory));
}

RDL_TEST(a_forked_child_has_no_heap)
{
    rdl_test_job job = { .size = 1, .processes = true };

    rdl_test_worlds(&job, fork_a_child, NULL);
    job.size = 2;
    rdl_test_worlds(&job, fork_a_child, NULL);
}

/* --- pending operations ---------------------------------------------------- */

/* The one that frees has the other's part still to come, so that its memory cannot
 * have been read yet. */
static void free_under_a_gather(rdl_world *world, rdl_group go, bool first)
{
    float *input = alloc_floats(world, (float)rdl_world_rank(world) + 1), *other;
    float *output = calloc(2, BYTES);
    rdl_work dropped;
    rdl_call call = { .work = &dropped };

    if (!first)
        CHECK_OK(rdl_barrier(world, go, NULL));
    CHECK_OK(rdl_all_gather(world, RDL_WORLD, input, output, COUNT, RDL_FLOAT32,
                            &call));
    CHECK_OK(rdl_mem_free(world, input));
    CHECK_STATUS(rdl_mem_free(world, input), RDL_INVALID);
    other = alloc_floats(world, 777);
    if (first) {
        CHECK(other != input);
        CHECK_INT(account_of(world).heap_bytes, 2 * BYTES);
        CHECK_STATUS(rdl_all_reduce(world, go, input, output, 1, RDL_FLOAT32,
                                    RDL_SUM, NULL),
                     RDL_INVALID);
        CHECK_HAS(rdl_error_detail(), "rdl_mem_free has freed");
        CHECK_OK(rdl_barrier(world, go, NULL));
    }
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    check_all(output, 1);
    check_all(output + COUNT, 2);
    check_all(other, 777);
    await_heap(world, BYTES);
    CHECK_OK(rdl_mem_free(world, other));
    CHECK_INT(account_of(world).heap_bytes, 0);
    free(output);
}

static void free_on_both(rdl_world *world, void *arg)
{
    static const int all[] = { 0, 1 };
    rdl_group go;

    (void)arg;
    CHECK_OK(rdl_group_open(world, all, 2, "go", &go));
    for (int first = 0; first < 2; first++)
        free_under_a_gather(world, go, rdl_world_rank(world) == first);
}

/* H26 */
RDL_TEST(memory_freed_under_a_pending_call_stays_until_it_is_done)
{
    both(2, free_on_both, NULL);
}

static rdl_status sleep_a_moment(void *arg)
{
    atomic_bool *go = arg;

    while (!atomic_load(go))
        usleep(1000);
    return RDL_OK;
}

static void free_under_a_stream(rdl_world *world, void *arg)
{
    float *input = alloc_floats(world, 3), *copy = alloc_floats(world, 0);
    atomic_bool go = false;
    float *sum = calloc(1, BYTES);
    rdl_stream *stream;
    rdl_call call = { 0 };

    (void)arg;
    CHECK_OK(rdl_stream_create(world, "s", &stream));
    call.stream = stream;
    CHECK_OK(rdl_stream_call(stream, sleep_a_moment, &go));
    CHECK_OK(rdl_stream_copy(stream, copy, input, BYTES));
    CHECK_OK(rdl_mem_free(world, input));
    CHECK_OK(rdl_all_reduce(world, RDL_WORLD, copy, sum, COUNT, RDL_FLOAT32,
                            RDL_SUM, &call));
    CHECK_OK(rdl_mem_free(world, copy));
    CHECK_STATUS(rdl_stream_copy(stream, copy, sum, BYTES), RDL_INVALID);
    CHECK_INT(account_of(world).heap_bytes, 2 * BYTES);
    atomic_store(&go, true);
    CHECK_OK(rdl_stream_synchronize(stream, 0));
    check_all(sum, 3 * (float)rdl_world_size(world));
    CHECK_OK(rdl_stream_destroy(stream));
    CHECK_INT(account_of(world).heap_bytes, 0);
    free(sum);
}

RDL_TEST(memory_freed_under_a_stream_stays_until_it_has_passed)
{
    both(1, free_under_a_stream, NULL);
    both(2, free_under_a_stream, NULL);
}

static void free_under_a_batch(rdl_world *world, void *arg)
{
    float *input = alloc_floats(world, 5);
    float *output = calloc(1, BYTES);
    int next = (rdl_world_rank(world) + 1) % rdl_world_size(world);
    rdl_transfer ways[2] = {
        { .peer = next, .send = input, .count = COUNT, .dtype = RDL_FLOAT32 },
        { .peer = next, .receive = output, .count = COUNT, .dtype = RDL_FLOAT32 }
    };
    rdl_batch *batch = NULL;
    rdl_call call;

    (void)arg;
    CHECK_OK(rdl_batch_begin(world, &batch));
    call = (rdl_call){ .batch = batch };
    CHECK_OK(rdl_exchange(world, RDL_WORLD, ways, 2, &call));
    CHECK_OK(rdl_mem_free(world, input));
    CHECK_INT(account_of(world).heap_bytes, BYTES);
    CHECK_OK(rdl_batch_end(batch, NULL));
    check_all(output, 5);
    CHECK_INT(account_of(world).heap_bytes, 0);
    free(output);
}

RDL_TEST(memory_freed_under_a_batch_stays_until_its_end)
{
    both(1, free_under_a_batch, NULL);
    both(2, free_under_a_batch, NULL);
}

static void run_over_the_end(rdl_world *world, void *arg)
{
    float *memory = alloc_floats(world, 1);
    rdl_work work;
    rdl_call call = { .work = &work };

    (void)arg;
    CHECK_STATUS(rdl_broadcast(world, RDL_WORLD, memory + 1, COUNT, RDL_FLOAT32,
                               0, NULL),
                 RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "from byte 4 on of a block of 1048576");
    CHECK_STATUS(rdl_broadcast(world, RDL_WORLD, memory + 1, COUNT, RDL_FLOAT32,
                               0, &call),
                 RDL_INVALID);
    CHECK_OK(rdl_broadcast(world, RDL_WORLD, memory + 1, COUNT - 1, RDL_FLOAT32,
                           0, NULL));
    CHECK_OK(rdl_mem_free(world, memory));
    CHECK_INT(account_of(world).heap_bytes, 0);
}

RDL_TEST(a_buffer_that_runs_over_the_end_of_its_memory_is_refused)
{
    both(1, run_over_the_end, NULL);
    both(2, run_over_the_end, NULL);
}

/* --- one copy -------------------------------------------------------------- */

#define MOST 4 /* ranks */
#define LONGEST ((size_t)70001)

/* A call of each kind, with its buffers; n elements a block. */
typedef rdl_status (*kind)(rdl_world *world, float *input, float *output,
                           size_t n);

static rdl_status sum_all(rdl_world *w, float *input, float *output, size_t n)
{
    return rdl_all_reduce(w, RDL_WORLD, input, output, n, RDL_FLOAT32, RDL_SUM,
                          NULL);
}

static rdl_status gather_all(rdl_world *w, float *input, float *output, size_t n)
{
    return rdl_all_gather(w, RDL_WORLD, input, output, n, RDL_FLOAT32, NULL);
}

static rdl_status scatter_sums(rdl_world *w, float *input, float *output,
                               size_t n)
{
    return rdl_reduce_scatter(w, RDL_WORLD, input, output, n, RDL_FLOAT32,
                              RDL_AVG, NULL);
}

static rdl_status exchange_all(rdl_world *w, float *input, float *output,
                               size_t n)
{
    return rdl_all_to_all(w, RDL_WORLD, input, output, n, RDL_FLOAT32, NULL);
}

static rdl_status tell_all(rdl_world *w, float *input, float *output, size_t n)
{
    float *buffer = rdl_world_rank(w) == 1 ? input : output;

    return rdl_broadcast(w, RDL_WORLD, buffer, n, RDL_FLOAT32, 1, NULL);
}

static rdl_status sum_in_place(rdl_world *w, float *input, float *output,
                               size_t n)
{
    memcpy(output, input, n * sizeof *input);
    return sum_all(w, output, output, n);
}

static rdl_status gather_in_place(rdl_world *w, float *input, float *output,
                                  size_t n)
{
    float *mine = output + (size_t)rdl_world_rank(w) * n;

    memcpy(mine, input, n * sizeof *input);
    return gather_all(w, mine, output, n);
}

static rdl_status scatter_in_place(rdl_world *w, float *input, float *output,
                                   size_t n)
{
    size_t size = (size_t)rdl_world_size(w);
    float *mine = output + (size_t)rdl_world_rank(w) * n;

    memcpy(output, input, size * n * sizeof *input);
    return scatter_sums(w, output, mine, n);
}

static rdl_status gather_uneven(rdl_world *w, float *input, float *output,
                                size_t n)
{
    size_t counts[MOST] = { n, 0, n / 2, n - 1 };

    return rdl_all_gather_v(w, RDL_WORLD, input, output, counts, RDL_FLOAT32,
                            NULL);
}

static rdl_status exchange_uneven(rdl_world *w, float *input, float *output,
                                  size_t n)
{
    size_t sent[MOST], expected[MOST];
    int me = rdl_world_rank(w);

    for (int i = 0; i < MOST; i++) {
        sent[i] = n * (size_t)(me + 2 * i) / 9;
        expected[i] = n * (size_t)(i + 2 * me) / 9;
    }
    return rdl_all_to_all_v(w, RDL_WORLD, input, sent, output, expected,
                            RDL_FLOAT32, NULL);
}

static const kind kinds[] = { sum_all,         gather_all,       scatter_sums,
                              exchange_all,    tell_all,         sum_in_place,
                              gather_in_place, scatter_in_place, gather_uneven,
                              exchange_uneven };

#define KINDS ((int)(sizeof kinds / sizeof *kinds))

static void fill(float *values, int rank, size_t n)
{
    for (size_t i = 0; i < n; i++)
        values[i] = (float)((i * 37 + (size_t)rank * 101) % 1009) / 3;
}

/* From the heap on all, or on all but one; the same bits as from elsewhere. */
static void compare_one(rdl_world *world, kind call, size_t n, int without,
                        bool maps)
{
    size_t most = (size_t)rdl_world_size(world) * n;
    int me = rdl_world_rank(world);
    float *input = calloc(most + 1, sizeof *input);
    float *expected = calloc(most + 1, sizeof *expected);
    uint64_t mapped = account_of(world).collectives_mapped;
    void *in = NULL, *out = NULL;

    fill(input, me, most);
    CHECK_OK(rdl_mem_alloc(world, (most + 1) * sizeof *input, &in));
    CHECK_OK(rdl_mem_alloc(world, (most + 1) * sizeof *input, &out));
    fill((float *)in + 1, me, most); /* of any alignment */
    CHECK_OK(call(world, input, expected, n));
    CHECK_INT(account_of(world).collectives_mapped, mapped);
    if (me == without)
        CHECK_OK(call(world, input, out, n));
    else
        CHECK_OK(call(world, (float *)in + 1, out, n));
    CHECK(memcmp(out, expected, most * sizeof *input) == 0);
    CHECK_INT(account_of(world).collectives_mapped, mapped + maps);
    CHECK_OK(rdl_mem_free(world, in));
    CHECK_OK(rdl_mem_free(world, out));
    free(input);
    free(expected);
}

/* Whether one whose input is elsewhere keeps all from reading in place. */
static bool minds(kind call, int without)
{
    if (call == sum_in_place || call == gather_in_place ||
        call == scatter_in_place)
        return false; /* its copy is in the heap */
    if (call == tell_all)
        return without == 1;
    return call != gather_uneven || without != 1; /* it has nothing */
}

static void compare_all(rdl_world *world, void *arg)
{
    static const size_t counts[] = { 1500, 17001, LONGEST };
    bool sums;

    (void)arg;
    for (int k = 0; k < KINDS; k++)
        for (int c = 0; c < 3; c++)
            for (int without = -1; without < 2; without++) {
                sums = kinds[k] == sum_all || kinds[k] == sum_in_place;
                compare_one(world, kinds[k], counts[c], without,
                            (without < 0 || !minds(kinds[k], without)) &&
                                (!sums || counts[c] > 4096));
            }
}

RDL_TEST(calls_with_memory_of_the_heap_read_it_where_it_lies)
{
    rdl_test_job job = { .size = MOST, .staging_bytes = 65536 };

    rdl_test_worlds(&job, compare_all, NULL);
    job.processes = true;
    rdl_test_worlds(&job, compare_all, NULL);
}

/* --- peers that stop or leave ---------------------------------------------- */

static void free_while_the_other_is_stopped(rdl_world *world, void *arg)
{
    atomic_int *pid = arg; /* shared */
    float *mine = alloc_floats(world, 1), *all = calloc(2, BYTES);
    rdl_call brief = { .timeout_ms = 300 };

    if (rdl_world_rank(world) == 1) {
        CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
        atomic_store(pid, getpid());
        raise(SIGSTOP);
        CHECK_STATUS(rdl_all_gather(world, RDL_WORLD, mine, all, COUNT,
                                    RDL_FLOAT32, NULL),
                     RDL_TIMEOUT);
    } else {
        CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
        while (atomic_load(pid) == 0)
            usleep(1000);
        usleep(20000);
        CHECK_STATUS(rdl_all_gather(world, RDL_WORLD, mine, all, COUNT,
                                    RDL_FLOAT32, &brief),
                     RDL_TIMEOUT);
        CHECK_OK(rdl_mem_free(world, mine));
        CHECK_INT(account_of(world).heap_bytes, 0);
        check_all(alloc_floats(world, 777), 777);
        CHECK_INT(kill(atomic_load(pid), SIGCONT), 0);
    }
    check_all(all, 0);
    check_all(all + COUNT, 0);
    free(all);
}

RDL_TEST(memory_is_free_at_once_when_a_call_gave_up_on_a_stopped_rank)
{
    rdl_test_job job = { .size = 2, .processes = true, .keeps_failures = true };
    void *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    CHECK(shared != MAP_FAILED);
    rdl_test_worlds(&job, free_while_the_other_is_stopped, shared);
}

static void leave_memory_behind(int rank, int size, void *arg)
{
    rdl_world_options options = { .rank = rank, .size = size, .job = arg };
    uint64_t before = 0;
    rdl_world *world;
    float *mine;

    CHECK_OK(rdl_world_open(&options, &world));
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    before = account_of(world).arena_bytes_total;
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    mine = alloc_floats(world, 1);
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    CHECK_INT(account_of(world).arena_bytes_total,
              before + (uint64_t)size * BYTES);
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    if (rank == 0) {
        for (int ms = 0; account_of(world).arena_bytes_total != before + BYTES;
             ms++) {
            CHECK(ms < 20000);
            usleep(1000);
        }
        check_all(mine, 1);
    }
    CHECK_OK(rdl_world_close(world));
}

RDL_TEST(a_world_that_closes_gives_all_of_its_memory_back)
{
    char job[64];

    snprintf(job, sizeof job, "memory-%d", (int)getpid());
    rdl_test_threads(2, leave_memory_behind, job);
    rdl_test_processes(2, leave_memory_behind, job);
}

/* --- limits ---------------------------------------------------------------- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LIMITS_OF_ADDRESS_SPACE false
#else
#define LIMITS_OF_ADDRESS_SPACE true
#endif

typedef struct bounds {
    char job[64];
    int resource;
    rlim_t limit;
} bounds;

/* Some ranks are limited and some are not. */
static void live_in_bounds(int rank, int size, void *arg)
{
    const bounds *b = arg;
    rdl_world_options options = { .rank = rank, .size = size, .job = b->job };
    struct rlimit limit = { b->limit, b->limit };
    rdl_world *world;
    float *mine;

    if (rank != 1)
        CHECK_INT(
            setrlimit(b->resource == 0 ? RLIMIT_AS : RLIMIT_FSIZE, &limit), 0);
    CHECK_OK(rdl_world_open(&options, &world));
    mine = alloc_floats(world, 2);
    CHECK_INT(account_of(world).heap_bytes, BYTES);
    CHECK_OK(rdl_all_reduce(world, RDL_WORLD, mine, mine, COUNT, RDL_FLOAT32,
                            RDL_SUM, NULL));
    check_all(mine, 2 * (float)size);
    CHECK_OK(rdl_mem_free(world, mine));
    CHECK_INT(account_of(world).heap_bytes, 0);
    CHECK_OK(rdl_world_close(world));
}

RDL_TEST(a_limit_of_address_space_leaves_a_smaller_heap)
{
    bounds b = { .resource = 0, .limit = (rlim_t)2 << 30 };

    if (!LIMITS_OF_ADDRESS_SPACE)
        SKIP("a sanitizer wants all of the address space");
    snprintf(b.job, sizeof b.job, "bounds-%d", (int)getpid());
    rdl_test_processes(3, live_in_bounds, &b);
    rdl_test_processes(1, live_in_bounds, &b);
}

RDL_TEST(a_limit_of_files_leaves_a_smaller_heap)
{
    bounds b = { .resource = 1, .limit = (rlim_t)1 << 30 };

    snprintf(b.job, sizeof b.job, "bounds-%d", (int)getpid());
    rdl_test_processes(3, live_in_bounds, &b);
    rdl_test_processes(1, live_in_bounds, &b);
}
