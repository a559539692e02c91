/* The account against the kernel and the allocator. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/worlds.h"

#include <malloc.h>
#include <raddle/account.h>
#include <raddle/memory.h>
#include <raddle/mesh.h>
#include <raddle/stream.h>
#include <raddle/work.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ALLOCATOR_IS_THE_SYSTEMS false
#else
#define ALLOCATOR_IS_THE_SYSTEMS true
#endif

static void meet(rdl_world *world)
{
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
}

static rdl_account read_account(rdl_world *world)
{
    rdl_account a;

    CHECK_OK(rdl_account_read(world, &a));
    return a;
}

/* --- the arena ------------------------------------------------------------- */

static uint64_t sum_of(const rdl_account_arena *a)
{
    return a->header + a->state + a->slots + a->texts + a->records +
           a->staging + a->heap;
}

static void open_groups(rdl_world *world, int count)
{
    static const int list[] = { 0, 1, 2, 3 };

    for (int i = 0; i < count; i++) {
        rdl_group group;
        char name[16];

        snprintf(name, sizeof name, "g%d", i);
        CHECK_OK(
            rdl_group_open(world, list, rdl_world_size(world), name, &group));
        CHECK_OK(rdl_barrier(world, group, NULL));
    }
}

/* Nobody takes anything between the two barriers. */
static rdl_account check_sums(rdl_world *world)
{
    rdl_account a;

    meet(world);
    a = read_account(world);
    CHECK_INT(sum_of(&a.arena_total), a.arena_bytes_total);
    CHECK_INT(a.arena_rank.header, 0);
    CHECK_INT(sum_of(&a.arena_rank) - a.arena_rank.heap, a.arena_bytes_rank);
    CHECK_INT(a.arena_rank.heap, a.heap_bytes);
    meet(world);
    return a;
}

static void take_for_each_purpose(rdl_world *world, void *arg)
{
    rdl_account before = check_sums(world), a;
    void *memory = NULL;

    (void)arg;
    open_groups(world, 300);
    a = check_sums(world);
    CHECK(a.arena_rank.slots > before.arena_rank.slots);
    CHECK(a.arena_total.slots ==
          a.arena_rank.slots * (uint64_t)rdl_world_size(world));
    CHECK_INT(a.arena_rank.staging, before.arena_rank.staging);
    CHECK_OK(rdl_mem_alloc(world, 3000000, &memory));
    a = check_sums(world);
    CHECK(a.arena_rank.heap >= 3000000);
    CHECK_OK(rdl_mem_free(world, memory));
    a = check_sums(world);
    CHECK_INT(a.arena_total.heap, 0);
}

RDL_TEST(the_purposes_of_the_arena_sum_up_to_what_the_kernel_counts)
{
    static const size_t staging[] = { 0, 4096, 123456 };

    for (int i = 0; i < 3; i++) {
        rdl_test_job job = { .size = 4, .staging_bytes = staging[i] };

        rdl_test_worlds(&job, take_for_each_purpose, NULL);
        job.processes = true;
        rdl_test_worlds(&job, take_for_each_purpose, NULL);
    }
}

/* --- page tables ----------------------------------------------------------- */

/* Bytes of this process' page tables, all of them; 0: the kernel does not say. */
static uint64_t page_tables(void)
{
    FILE *status = fopen("/proc/self/status", "re");
    unsigned long long kib = 0;
    char line[256];

    CHECK(status != NULL);
    while (fgets(line, sizeof line, status) != NULL)
        if (sscanf(line, "VmPTE: %llu kB", &kib) == 1)
            break;
    fclose(status);
    return kib * 1024;
}

/* Everything once: slots, texts, records, and the staging of all. */
static void touch_all(rdl_world *world)
{
    enum { BYTES = 65536 };
    int size = rdl_world_size(world);
    unsigned char *in = calloc((size_t)size, BYTES);
    unsigned char *out = calloc((size_t)size, BYTES);

    CHECK(in != NULL && out != NULL);
    CHECK_OK(rdl_all_to_all(world, RDL_WORLD, in, out, BYTES, RDL_UINT8, NULL));
    meet(world);
    free(in);
    free(out);
}

/* What the kernel has more of, and what the account says, of one life. */
static void live(const rdl_world_options *options, uint64_t *grown,
                 uint64_t *told)
{
    uint64_t before = page_tables();
    rdl_world *world;

    CHECK_OK(rdl_world_open(options, &world));
    touch_all(world);
    *grown = page_tables() - before;
    *told = read_account(world).page_table_bytes;
    CHECK_OK(rdl_world_close(world));
}

/* The first life touches code and data of the process, whose tables a forked one does
 * not have. */
static void compare_page_tables(int rank, int size, void *arg)
{
    rdl_world_options options = { .rank = rank, .size = size, .job = arg };
    uint64_t grown, told;

    if (page_tables() == 0)
        SKIP("/proc/self/status has no VmPTE");
    live(&options, &grown, &told);
    live(&options, &grown, &told);
    if (rank == 0)
        printf("of %d ranks: the account says %llu and the kernel %llu bytes\n",
               size, (unsigned long long)told, (unsigned long long)grown);
    CHECK(10 * told >= 9 * grown && 10 * told <= 11 * grown);
}

RDL_TEST(page_tables_are_what_the_kernel_says_within_a_tenth)
{
    static const int sizes[] = { 16, 64 };
    char job[64];

    if (!ALLOCATOR_IS_THE_SYSTEMS)
        SKIP("a sanitizer has page tables of its own for each of ours");
    for (int i = 0; i < 2; i++) {
        snprintf(job, sizeof job, "tables-%d-%d", (int)getpid(), sizes[i]);
        rdl_test_processes(sizes[i], compare_page_tables, job);
    }
}

/* --- private memory -------------------------------------------------------- */

static rdl_status no_work(void *arg)
{
    (void)arg;
    return RDL_OK;
}

/* Something of each kind of object. */
static void make_objects(rdl_world *world, rdl_stream **stream, rdl_mesh **mesh)
{
    static const char *const names[] = { "dp", "tp" };
    static const int sizes[] = { 1, 2 };
    rdl_work work;
    int32_t x = 1;

    CHECK_OK(rdl_mesh_create(world, names, sizes, 2, mesh));
    CHECK_OK(rdl_stream_create(world, "s", stream));
    CHECK_OK(rdl_stream_call(*stream, no_work, NULL));
    CHECK_OK(rdl_all_reduce(world, RDL_WORLD, &x, &x, 1, RDL_INT32, RDL_SUM,
                            &(rdl_call){ .work = &work }));
    CHECK_OK(rdl_work_wait(world, work, 0));
    CHECK_OK(rdl_stream_synchronize(*stream, 0));
}

static size_t allocated(void)
{
    struct mallinfo2 m = mallinfo2();

    return m.uordblks + m.hblkhd;
}

static void compare_private_memory(int rank, int size, void *arg)
{
    rdl_world_options options = { .rank = rank, .size = size, .job = arg };
    size_t before = allocated(), grown;
    uint64_t told;
    rdl_stream *stream;
    rdl_account a;
    rdl_world *world;
    rdl_mesh *mesh;

    CHECK_OK(rdl_world_open(&options, &world));
    open_groups(world, 500);
    make_objects(world, &stream, &mesh);
    grown = allocated() - before;
    a = read_account(world);
    CHECK(a.private_bytes > 0 && a.host_bytes > 0);
    told = a.private_bytes + a.host_bytes;
    printf("rank %d: the account says %llu and the allocator %zu bytes\n", rank,
           (unsigned long long)told, grown);
    CHECK(10 * told >= 9 * grown);
    CHECK(told <= grown);
    rdl_mesh_destroy(mesh);
    CHECK_OK(rdl_stream_destroy(stream));
    CHECK_OK(rdl_world_close(world));
}

RDL_TEST(private_memory_is_what_the_allocator_gave)
{
    char job[64];

    if (!ALLOCATOR_IS_THE_SYSTEMS)
        SKIP("the allocator is a sanitizer's");
    snprintf(job, sizeof job, "private-%d", (int)getpid());
    rdl_test_processes(2, compare_private_memory, job);
}

/* A stream and an event that outlive their world are no longer in its account, and
 * not in one that is gone either. */
static void destroy_after_close(int rank, int size, void *arg)
{
    rdl_world_options options = { .rank = rank, .size = size, .job = arg };
    rdl_event *event;
    rdl_stream *stream;
    rdl_world *world;

    CHECK_OK(rdl_world_open(&options, &world));
    CHECK_OK(rdl_stream_create(world, "late", &stream));
    CHECK_OK(rdl_event_create(world, &event));
    CHECK_OK(rdl_world_close(world));
    CHECK_OK(rdl_stream_destroy(stream));
    CHECK_OK(rdl_event_destroy(event));
}

RDL_TEST(what_outlives_its_world_is_in_no_account)
{
    char job[64];

    snprintf(job, sizeof job, "late-%d", (int)getpid());
    rdl_test_threads(2, destroy_after_close, job);
}

static void ask_badly(rdl_world *world, void *arg)
{
    rdl_account a;

    (void)arg;
    memset(&a, 7, sizeof a);
    CHECK_STATUS(rdl_account_read(NULL, &a), RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "the world is NULL");
    CHECK_STATUS(rdl_account_read(world, NULL), RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "out is NULL");
    CHECK_INT(a.lanes, 0x0707070707070707);
}

RDL_TEST(an_account_of_nothing_is_refused)
{
    rdl_test_job job = { .size = 2 };

    rdl_test_worlds(&job, ask_badly, NULL);
}

static void be_alone(rdl_world *world, void *arg)
{
    rdl_account a = read_account(world);
    void *memory = NULL;

    (void)arg;
    CHECK_INT(a.arena_bytes_total, 0);
    CHECK_INT(sum_of(&a.arena_total), 0);
    CHECK_INT(a.page_table_bytes, 0);
    CHECK(a.private_bytes > 0 && a.host_bytes > 0);
    CHECK_OK(rdl_mem_alloc(world, 10, &memory));
    a = read_account(world);
    CHECK_INT(a.arena_total.heap, 0); /* its heap is a file of its own */
    CHECK(a.page_table_bytes > 0);
    CHECK_OK(rdl_mem_free(world, memory));
}

RDL_TEST(a_world_of_one_has_no_arena_in_its_account)
{
    rdl_test_job job = { .size = 1 };

    rdl_test_worlds(&job, be_alone, NULL);
}
