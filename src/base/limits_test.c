/* Limits: needs that fit and needs that do not, below fake roots. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/limits.h"

#include "base/fault.h"
#include "support/test.h"
#include "support/tree.h"

#include <errno.h>
#include <sys/resource.h>

#define MIB (UINT64_C(1) << 20)

/* A machine with this much memory to have, and a process in /a/b of both
 * versions, without limits. */
static test_tree open_machine(unsigned available_mib)
{
    test_tree t = tree_open();
    char text[256];

    snprintf(text, sizeof text,
             "MemTotal:       67108864 kB\nMemFree:            1024 kB\n"
             "MemAvailable:   %u kB\nBuffers:          7 kB\n",
             available_mib << 10);
    tree_put(&t, "/proc/meminfo", text);
    tree_put(&t, "/proc/self/cgroup", "4:memory:/a/b\n0::/a/b\n");
    tree_put(&t, "/proc/self/mountinfo",
             "33 31 0:30 / /cg1 rw - cgroup cgroup rw,memory\n"
             "31 23 0:27 / /cg2 rw - cgroup2 cgroup2 rw\n");
    return t;
}

static void put_number(const test_tree *t, const char *path, uint64_t number)
{
    char text[32];

    snprintf(text, sizeof text, "%llu\n", (unsigned long long)number);
    tree_put(t, path, text);
}

/* have is what is left to the need itself. */
static void check_have(const test_tree *t, uint64_t have, const char *file)
{
    char text[64];

    if (have != 0)
        CHECK_OK(rdl_limits_check_memory_at(t->root, have, "arena"));
    CHECK_STATUS(rdl_limits_check_memory_at(t->root, have + 1, "arena"),
                 RDL_NO_MEMORY);
    CHECK_HAS(rdl_error_detail(), file);
    snprintf(text, sizeof text, "arena needs %llu bytes and has %llu:",
             (unsigned long long)have + 1, (unsigned long long)have);
    CHECK_HAS(rdl_error_detail(), text);
    CHECK_HAS(rdl_error_detail(), "rdl_host_options.staging_bytes");
    CHECK_HAS(rdl_error_detail(), "fewer ranks");
}

RDL_TEST(the_memory_of_the_machine_is_a_limit)
{
    test_tree t = open_machine(100);

    check_have(&t, 96 * MIB, "/proc/meminfo (MemAvailable)");
    tree_close(&t);
}

RDL_TEST(a_group_of_version_2_is_a_limit)
{
    test_tree t = open_machine(1000);

    tree_put(&t, "/cg2/a/b/memory.max", "max\n");
    put_number(&t, "/cg2/a/b/memory.current", 900 * MIB);
    CHECK_OK(rdl_limits_check_memory_at(t.root, 500 * MIB, "arena"));
    put_number(&t, "/cg2/a/b/memory.max", 64 * MIB);
    put_number(&t, "/cg2/a/b/memory.current", 50 * MIB);
    check_have(&t, 10 * MIB, "/cg2/a/b/memory.max");
    tree_close(&t);
}

RDL_TEST(a_group_of_version_1_is_a_limit)
{
    test_tree t = open_machine(1000);

    put_number(&t, "/cg1/a/b/memory.limit_in_bytes",
               UINT64_C(0x7ffffffffffff000));
    put_number(&t, "/cg1/a/b/memory.usage_in_bytes", 900 * MIB);
    CHECK_OK(rdl_limits_check_memory_at(t.root, 500 * MIB, "arena"));
    put_number(&t, "/cg1/a/b/memory.limit_in_bytes", 64 * MIB);
    put_number(&t, "/cg1/a/b/memory.usage_in_bytes", 50 * MIB);
    check_have(&t, 10 * MIB, "/cg1/a/b/memory.limit_in_bytes");
    tree_close(&t);
}

RDL_TEST(the_tightest_limit_on_the_way_up_counts)
{
    test_tree t = open_machine(1000);

    put_number(&t, "/cg2/a/b/memory.max", 64 * MIB);
    put_number(&t, "/cg2/a/b/memory.current", 1 * MIB);
    put_number(&t, "/cg2/a/memory.max", 80 * MIB);
    put_number(&t, "/cg2/a/memory.current", 60 * MIB);
    check_have(&t, 16 * MIB, "/cg2/a/memory.max");
    put_number(&t, "/cg2/memory.max", 12 * MIB);
    check_have(&t, 8 * MIB, "/cg2/memory.max");
    put_number(&t, "/cg1/a/memory.limit_in_bytes", 70 * MIB);
    put_number(&t, "/cg1/a/memory.usage_in_bytes", 64 * MIB);
    check_have(&t, 2 * MIB, "/cg1/a/memory.limit_in_bytes");
    tree_close(&t);
}

RDL_TEST(page_cache_is_available)
{
    test_tree t = open_machine(1000);

    put_number(&t, "/cg2/a/b/memory.max", 64 * MIB);
    put_number(&t, "/cg2/a/b/memory.current", 60 * MIB);
    tree_put(&t, "/cg2/a/b/memory.stat",
             "anon 1\nfile 2\nunevictable 3\ninactive_file 20971520\n"
             "active_file 10485760\n");
    check_have(&t, 30 * MIB, "/cg2/a/b/memory.max");
    put_number(&t, "/cg1/a/b/memory.limit_in_bytes", 64 * MIB);
    put_number(&t, "/cg1/a/b/memory.usage_in_bytes", 60 * MIB);
    tree_put(&t, "/cg1/a/b/memory.stat",
             "inactive_file 1048576\nactive_file 1048576\n"
             "total_inactive_file 10485760\ntotal_active_file 5242880\n");
    check_have(&t, 15 * MIB, "/cg1/a/b/memory.limit_in_bytes");
    tree_close(&t);
}

RDL_TEST(a_group_that_is_full_has_nothing)
{
    test_tree t = open_machine(1000);

    put_number(&t, "/cg2/a/b/memory.max", 64 * MIB);
    put_number(&t, "/cg2/a/b/memory.current", 65 * MIB);
    check_have(&t, 0, "/cg2/a/b/memory.max");
    put_number(&t, "/cg2/a/b/memory.current", 61 * MIB);
    check_have(&t, 0, "/cg2/a/b/memory.max");
    CHECK_OK(rdl_limits_check_memory_at(t.root, 0, "nothing"));
    tree_close(&t);
}

RDL_TEST(more_cache_than_usage_is_no_more_than_the_limit)
{
    test_tree t = open_machine(1000);

    put_number(&t, "/cg2/a/b/memory.max", 64 * MIB);
    put_number(&t, "/cg2/a/b/memory.current", 10 * MIB);
    tree_put(&t, "/cg2/a/b/memory.stat", "inactive_file 99999999999\n");
    check_have(&t, 60 * MIB, "/cg2/a/b/memory.max");
    tree_close(&t);
}

RDL_TEST(what_is_missing_or_not_understood_is_no_limit)
{
    test_tree t = open_machine(100);

    tree_put(&t, "/cg2/a/b/memory.max", "plenty\n");
    tree_put(&t, "/cg2/a/memory.max", "");
    tree_put(&t, "/cg2/memory.max", "-5\n");
    tree_put(&t, "/cg1/a/b/memory.limit_in_bytes", "99999999999999999999\n");
    put_number(&t, "/cg1/a/memory.limit_in_bytes", 300 * MIB);
    tree_put(&t, "/cg1/a/memory.stat", "total_inactive_file\n\ntotal_active_");
    check_have(&t, 96 * MIB, "/proc/meminfo (MemAvailable)");
    tree_put(&t, "/proc/meminfo", "MemTotal: 5 kB\n");
    check_have(&t, 296 * MIB, "/cg1/a/memory.limit_in_bytes");
    tree_close(&t);
    t = tree_open();
    CHECK_OK(rdl_limits_check_memory_at(t.root, UINT64_MAX, "arena"));
    tree_close(&t);
}

RDL_TEST(this_machine_has_a_page_and_not_everything)
{
    CHECK_OK(rdl_limits_check_memory(4096, "a page"));
    CHECK_STATUS(rdl_limits_check_memory(UINT64_MAX, "everything"),
                 RDL_NO_MEMORY);
    CHECK_HAS(rdl_error_detail(),
              "everything needs 18446744073709551615 bytes");
}

RDL_TEST(the_limit_on_descriptors_is_a_text)
{
    char text[RDL_DESCRIPTORS_TEXT];
    struct rlimit limit;
    char expected[RDL_DESCRIPTORS_TEXT];

    CHECK_INT(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = 77;
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
    snprintf(expected, sizeof expected,
             "RLIMIT_NOFILE (ulimit -n) is 77, hard limit %llu",
             (unsigned long long)limit.rlim_max);
    errno = EMFILE;
    CHECK(rdl_limits_descriptors(text) == text);
    CHECK_INT(errno, EMFILE);
    CHECK_TEXT(text, expected);
}

#ifdef RDL_FAULTS
RDL_TEST(each_missing_descriptor_is_a_failure_with_a_sentence)
{
    for (long n = 1;; n++) {
        rdl_fault plan = { .os_at = n };
        rdl_status st;

        rdl_fault_use(&plan);
        st = rdl_limits_check_memory(1, "a byte");
        rdl_fault_use(NULL);
        if (!plan.fired)
            break;
        CHECK_STATUS(st, RDL_SYSTEM);
        CHECK_HAS(rdl_error_detail(), "EMFILE");
    }
}
#endif
