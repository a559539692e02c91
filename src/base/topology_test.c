/* Topology: machines and control groups laid out as files, and this machine. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/topology.h"

#include "base/fault.h"
#include "support/test.h"
#include "support/tree.h"

static void put_cpu_file(const test_tree *t, int cpu, const char *file,
                         const char *text)
{
    char path[128];

    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/%s", cpu, file);
    tree_put(t, path, text);
}

/* Cores of two hardware threads, c and c + cores, in two NUMA nodes. */
static void put_machine(const test_tree *t, int cores, const char *siblings)
{
    char text[64];

    snprintf(text, sizeof text, "0-%d\n", 2 * cores - 1);
    tree_put(t, "/sys/devices/system/cpu/online", text);
    tree_put(t, "/sys/devices/system/node/online", "0-1\n");
    for (int cpu = 0; cpu < 2 * cores; cpu++) {
        snprintf(text, sizeof text, "%d,%d\n", cpu % cores, cpu % cores + cores);
        put_cpu_file(t, cpu, siblings, text);
        put_cpu_file(t, cpu, "cache/index0/level", "1\n");
        put_cpu_file(t, cpu, "cache/index0/size", "48K\n");
        put_cpu_file(t, cpu, "cache/index1/level", "2\n");
        put_cpu_file(t, cpu, "cache/index1/size", "1280K\n");
        put_cpu_file(t, cpu, "cache/index2/level", "3\n");
        put_cpu_file(t, cpu, "cache/index2/size", "30M\n");
    }
}

static void put_mounts(const test_tree *t)
{
    tree_put(t, "/proc/self/mountinfo",
             "31 23 0:27 / /cg2 rw - cgroup2 cgroup2 rw\n"
             "33 31 0:30 / /cg1/cpu rw - cgroup cgroup rw,cpu,cpuacct\n");
}

static int usable(const test_tree *t, const char *allowed)
{
    rdl_cpus cpus = rdl_cpus_parse(allowed);
    int cores = -1;

    CHECK_OK(rdl_topology_usable_cores_at(t->root, &cpus, &cores));
    return cores;
}

RDL_TEST(hardware_threads_of_one_core_count_once)
{
    const char *const names[] = { "topology/core_cpus_list",
                                  "topology/thread_siblings_list" };

    for (int i = 0; i < 2; i++) {
        test_tree t = tree_open();

        put_machine(&t, 8, names[i]);
        CHECK_INT(usable(&t, "0-15"), 8);
        CHECK_INT(usable(&t, "0,8"), 1);
        CHECK_INT(usable(&t, "0,1,8"), 2);
        CHECK_INT(usable(&t, "15"), 1);
        CHECK_INT(usable(&t, "8-15"), 8);
        tree_close(&t);
    }
}

RDL_TEST(all_of_a_machine_is_read)
{
    test_tree t = tree_open();
    rdl_cpus cpus = rdl_cpus_parse("3,11,4");
    rdl_topology topology;

    put_machine(&t, 8, "topology/core_cpus_list");
    CHECK_OK(rdl_topology_read_at(t.root, &cpus, &topology));
    CHECK_INT(topology.usable_cores, 2);
    CHECK_INT(topology.cores_online, 8);
    CHECK_INT(topology.l2_bytes, 1280 << 10);
    CHECK_INT(topology.l3_bytes, 30 << 20);
    CHECK_INT(topology.numa_nodes, 2);
    tree_close(&t);
}

RDL_TEST(a_machine_that_shows_nothing_has_one_core)
{
    test_tree t = tree_open();
    rdl_cpus none = { 0 };
    rdl_topology topology;

    CHECK_OK(rdl_topology_read_at(t.root, &none, &topology));
    CHECK_INT(topology.usable_cores, 1);
    CHECK_INT(topology.cores_online, 1);
    CHECK_INT(topology.l2_bytes, 0);
    CHECK_INT(topology.l3_bytes, 0);
    CHECK_INT(topology.numa_nodes, 1);
    CHECK_INT(usable(&t, "0-6"), 7);
    tree_close(&t);
}

RDL_TEST(garbage_in_the_machine_is_passed_over)
{
    test_tree t = tree_open();
    rdl_cpus cpus = rdl_cpus_parse("0-3");
    rdl_topology topology;

    tree_put(&t, "/sys/devices/system/cpu/online", "yes\n");
    tree_put(&t, "/sys/devices/system/node/online", "\xff\n");
    put_cpu_file(&t, 0, "topology/core_cpus_list", "-7\n");
    put_cpu_file(&t, 1, "topology/core_cpus_list", "9\n");
    put_cpu_file(&t, 0, "cache/index0/level", "2\n");
    put_cpu_file(&t, 0, "cache/index0/size", "99999999999999999999K\n");
    put_cpu_file(&t, 0, "cache/index1/level", "x\n");
    put_cpu_file(&t, 0, "cache/index2/level", "3\n");
    CHECK_OK(rdl_topology_read_at(t.root, &cpus, &topology));
    CHECK_INT(topology.usable_cores, 4);
    CHECK_INT(topology.cores_online, 4);
    CHECK_INT(topology.l2_bytes, 0);
    CHECK_INT(topology.l3_bytes, 0);
    CHECK_INT(topology.numa_nodes, 1);
    tree_close(&t);
}

RDL_TEST(a_processor_that_is_offline_is_not_usable)
{
    test_tree t = tree_open();

    tree_put(&t, "/sys/devices/system/cpu/online", "0,2-3\n");
    CHECK_INT(usable(&t, "0-7"), 3);
    CHECK_INT(usable(&t, ""), 3);
    CHECK_INT(usable(&t, "6-7"), 2); /* the two files contradict each other */
    tree_close(&t);
}

RDL_TEST(a_quota_of_version_2_is_rounded_up)
{
    const struct {
        const char *max;
        int cores;
    } cases[] = {
        { "max 100000\n", 8 },    { "200000 100000\n", 2 },
        { "150000 100000\n", 2 }, { "1000 100000\n", 1 },
        { "50000 25000\n", 2 },   { "900000 100000\n", 8 },
        { "100000\n", 8 },        { "100000 0\n", 8 },
        { "0 100000\n", 8 },      { "", 8 },
        { "-1 100000\n", 8 },     { "18446744073709551615 1\n", 8 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        test_tree t = tree_open();

        put_machine(&t, 8, "topology/core_cpus_list");
        put_mounts(&t);
        tree_put(&t, "/proc/self/cgroup", "0::/a\n");
        tree_put(&t, "/cg2/a/cpu.max", cases[i].max);
        CHECK_INT(usable(&t, "0-15"), cases[i].cores);
        tree_close(&t);
    }
}

RDL_TEST(a_quota_of_version_1_is_rounded_up)
{
    const struct {
        const char *quota;
        const char *period;
        int cores;
    } cases[] = {
        { "-1\n", "100000\n", 8 },    { "250000\n", "100000\n", 3 },
        { "100000\n", "50000\n", 2 }, { "100000\n", NULL, 8 },
        { NULL, "100000\n", 8 },      { "100000\n", "0\n", 8 },
        { "x\n", "100000\n", 8 },     { "1000\n", "100000\n", 1 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        test_tree t = tree_open();

        put_machine(&t, 8, "topology/core_cpus_list");
        put_mounts(&t);
        tree_put(&t, "/proc/self/cgroup", "4:cpu,cpuacct:/a\n");
        if (cases[i].quota != NULL)
            tree_put(&t, "/cg1/cpu/a/cpu.cfs_quota_us", cases[i].quota);
        if (cases[i].period != NULL)
            tree_put(&t, "/cg1/cpu/a/cpu.cfs_period_us", cases[i].period);
        CHECK_INT(usable(&t, "0-15"), cases[i].cores);
        tree_close(&t);
    }
}

RDL_TEST(the_smallest_quota_on_the_way_up_counts)
{
    const char *const limited[] = { "/cg2/a/b/c", "/cg2/a/b", "/cg2/a", "/cg2" };

    for (int i = 0; i < 4; i++) {
        test_tree t = tree_open();

        put_machine(&t, 8, "topology/core_cpus_list");
        put_mounts(&t);
        tree_put(&t, "/proc/self/cgroup", "0::/a/b/c\n");
        for (int k = 0; k < 4; k++) {
            char path[64];

            snprintf(path, sizeof path, "%s/cpu.max", limited[k]);
            tree_put(&t, path, i == k ? "300000 100000\n" : "500000 100000\n");
        }
        tree_put(&t, "/cg2/other/cpu.max", "100000 100000\n");
        CHECK_INT(usable(&t, "0-15"), 3);
        CHECK_INT(usable(&t, "0-1"), 2);
        tree_close(&t);
    }
}

RDL_TEST(quotas_of_both_versions_count_together)
{
    test_tree t = tree_open();

    put_machine(&t, 8, "topology/core_cpus_list");
    put_mounts(&t);
    tree_put(&t, "/proc/self/cgroup", "4:cpu,cpuacct:/a\n0::/b\n");
    tree_put(&t, "/cg1/cpu/a/cpu.cfs_quota_us", "400000\n");
    tree_put(&t, "/cg1/cpu/a/cpu.cfs_period_us", "100000\n");
    CHECK_INT(usable(&t, "0-15"), 4);
    tree_put(&t, "/cg2/b/cpu.max", "200000 100000\n");
    CHECK_INT(usable(&t, "0-15"), 2);
    tree_put(&t, "/cg1/cpu/cpu.cfs_quota_us", "100000\n");
    tree_put(&t, "/cg1/cpu/cpu.cfs_period_us", "100000\n");
    CHECK_INT(usable(&t, "0-15"), 1);
    tree_close(&t);
}

RDL_TEST(this_machine_is_read_alike_in_both_ways)
{
    rdl_cpus allowed = rdl_cpus_allowed();
    rdl_topology whole;
    rdl_topology files;
    int cores;

    CHECK_OK(rdl_topology_usable_cores(&cores));
    CHECK_OK(rdl_topology_read(&whole));
    CHECK_OK(rdl_topology_read_at("", &allowed, &files));
    CHECK(cores >= 1);
    CHECK_INT(whole.usable_cores, cores);
    CHECK_INT(files.usable_cores, cores);
    CHECK(whole.cores_online >= cores);
    CHECK_INT(whole.cores_online, files.cores_online);
    CHECK(whole.numa_nodes >= 1);
    CHECK_INT(whole.numa_nodes, files.numa_nodes);
    CHECK_INT(whole.l2_bytes, files.l2_bytes);
    CHECK_INT(whole.l3_bytes, files.l3_bytes);
}

RDL_TEST(a_thread_on_one_processor_has_one_core)
{
    rdl_cpus allowed = rdl_cpus_allowed();
    rdl_cpus one = { 0 };
    int cores;

    rdl_cpus_add(&one, rdl_cpus_next(&allowed, 0));
    CHECK_INT(sched_setaffinity(0, sizeof one.parts, one.parts), 0);
    CHECK_OK(rdl_topology_usable_cores(&cores));
    CHECK_INT(cores, 1);
}

#ifdef RDL_FAULTS
/* sched_getaffinity is one of the calls: without it every core online is taken,
 * and that is no failure. */
RDL_TEST(each_missing_descriptor_is_a_failure_with_a_sentence)
{
    int failures = 0;

    for (long n = 1;; n++) {
        rdl_fault plan = { .os_at = n };
        int cores = -1;
        rdl_status st;

        rdl_fault_use(&plan);
        st = rdl_topology_usable_cores(&cores);
        rdl_fault_use(NULL);
        if (!plan.fired)
            break;
        CHECK(st == RDL_OK ? cores >= 1 : cores == -1);
        if (st == RDL_OK)
            continue;
        failures++;
        CHECK_STATUS(st, RDL_SYSTEM);
        CHECK_HAS(rdl_error_detail(), "EMFILE");
    }
    CHECK(failures >= 3);
}
#endif
