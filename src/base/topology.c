/* Reading the machine: the kernel's files for what every rank needs, hwloc for
 * the rest. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/topology.h"

#include "base/cgroup.h"
#include "base/text_file.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#ifndef RDL_NO_HWLOC
#include <hwloc.h>
#endif

#define CPU_FOLDER "/sys/devices/system/cpu"
#define NODE_FOLDER "/sys/devices/system/node"

/* Long enough for a list of every second of RDL_CPUS_MOST processors in a
 * thousand ranges; a longer one is cut, which loses cores and nothing else. */
#define LIST_MOST 8192

#define L2_UNKNOWN ((size_t)1 << 20)

/* --- processors and cores ------------------------------------------------- */

static rdl_status read_list(const char *root, const char *path, rdl_cpus *out)
{
    char text[LIST_MOST];

    RDL_TRY(rdl_read_text(text, sizeof text, root, "%s", path));
    *out = rdl_cpus_parse(text);
    return RDL_OK;
}

/* The hardware threads of the core that cpu belongs to. */
static rdl_status read_siblings(const char *root, int cpu, rdl_cpus *out)
{
    char text[LIST_MOST];

    RDL_TRY(rdl_read_text(text, sizeof text, root,
                          CPU_FOLDER "/cpu%d/topology/core_cpus_list", cpu));
    if (text[0] == 0) /* before Linux 5.3 */
        RDL_TRY(rdl_read_text(text, sizeof text, root,
                              CPU_FOLDER "/cpu%d/topology/thread_siblings_list",
                              cpu));
    *out = rdl_cpus_parse(text);
    return RDL_OK;
}

/* The cores that cpus belong to. Counts no further than most, as each core is a
 * file to read. */
static rdl_status count_cores(const char *root, rdl_cpus cpus, int most,
                              int *out)
{
    int count = 0;

    for (int cpu = rdl_cpus_next(&cpus, 0); cpu >= 0 && count < most;
         cpu = rdl_cpus_next(&cpus, cpu + 1)) {
        rdl_cpus core;

        RDL_TRY(read_siblings(root, cpu, &core));
        rdl_cpus_remove(&cpus, &core);
        count++;
    }
    *out = count;
    return RDL_OK;
}

/* Those of allowed that are online. If one of the two is not known, the other;
 * if neither, processor 0. */
static rdl_status read_usable_cpus(const char *root, const rdl_cpus *allowed,
                                   rdl_cpus *out)
{
    rdl_cpus online;

    RDL_TRY(read_list(root, CPU_FOLDER "/online", &online));
    *out = *allowed;
    if (rdl_cpus_count(&online) != 0)
        rdl_cpus_keep(out, &online);
    if (rdl_cpus_count(out) == 0)
        *out = rdl_cpus_count(allowed) != 0 ? *allowed : online;
    if (rdl_cpus_count(out) == 0)
        rdl_cpus_add(out, 0);
    return RDL_OK;
}

/* --- quota ---------------------------------------------------------------- */

/* Lowers *cores to what quota and period pay for. Both are numbers; -1 and "max"
 * are none, and mean that there is no limit. */
static void apply_quota(const char *quota, const char *period, int *cores)
{
    uint64_t time;
    uint64_t window;
    uint64_t whole;

    quota = rdl_parse_number(quota, &time);
    if (quota == NULL)
        return;
    /* Version 2 has both on one line. */
    if (rdl_parse_number(period == NULL ? quota : period, &window) == NULL ||
        time == 0 || window == 0)
        return;
    whole = time / window + (time % window != 0);
    if (whole < (uint64_t)*cores)
        *cores = (int)whole;
}

static rdl_status visit_cpu_group(const rdl_cgroup *group, void *arg)
{
    char quota[64];
    char period[64];
    int *cores = arg;

    if (group->version == 2) {
        RDL_TRY(rdl_read_text(quota, sizeof quota, group->root, "%s/cpu.max",
                              group->folder));
        apply_quota(quota, NULL, cores);
        return RDL_OK;
    }
    RDL_TRY(rdl_read_text(quota, sizeof quota, group->root,
                          "%s/cpu.cfs_quota_us", group->folder));
    if (quota[0] == 0)
        return RDL_OK;
    RDL_TRY(rdl_read_text(period, sizeof period, group->root,
                          "%s/cpu.cfs_period_us", group->folder));
    apply_quota(quota, period, cores);
    return RDL_OK;
}

rdl_status rdl_topology_usable_cores_at(const char *root,
                                        const rdl_cpus *allowed, int *out)
{
    rdl_cpus cpus;
    int most = INT_MAX;

    RDL_TRY(rdl_cgroup_walk(root, "cpu", visit_cpu_group, &most));
    RDL_TRY(read_usable_cpus(root, allowed, &cpus));
    return count_cores(root, cpus, most, out);
}

rdl_status rdl_topology_usable_cores(int *out)
{
    rdl_cpus allowed = rdl_cpus_allowed();

    return rdl_topology_usable_cores_at("", &allowed, out);
}

/* --- the rest, from files ------------------------------------------------- */

/* "1024K" */
static size_t parse_size(const char *text)
{
    uint64_t number;

    text = rdl_parse_number(text, &number);
    if (text == NULL || number > (SIZE_MAX >> 30))
        return 0;
    return (size_t)number << (*text == 'K' ? 10 : *text == 'M' ? 20 : 0);
}

/* A processor has some four caches, of levels 1 to 3; level 1 twice. */
static rdl_status read_caches(const char *root, int cpu, rdl_topology *out)
{
    for (int i = 0; i < 10; i++) {
        char level[16];
        char size[32];

        RDL_TRY(rdl_read_text(level, sizeof level, root,
                              CPU_FOLDER "/cpu%d/cache/index%d/level", cpu, i));
        if (level[0] == 0)
            break;
        RDL_TRY(rdl_read_text(size, sizeof size, root,
                              CPU_FOLDER "/cpu%d/cache/index%d/size", cpu, i));
        if (level[0] == '2')
            out->l2_bytes = parse_size(size);
        else if (level[0] == '3')
            out->l3_bytes = parse_size(size);
    }
    return RDL_OK;
}

rdl_status rdl_topology_read_at(const char *root, const rdl_cpus *allowed,
                                rdl_topology *out)
{
    rdl_topology t = { 0 };
    rdl_cpus online;
    rdl_cpus usable;
    rdl_cpus nodes;

    RDL_TRY(rdl_topology_usable_cores_at(root, allowed, &t.usable_cores));
    RDL_TRY(read_usable_cpus(root, allowed, &usable));
    RDL_TRY(read_caches(root, rdl_cpus_next(&usable, 0), &t));
    RDL_TRY(read_list(root, CPU_FOLDER "/online", &online));
    if (rdl_cpus_count(&online) == 0)
        online = usable;
    RDL_TRY(count_cores(root, online, INT_MAX, &t.cores_online));
    RDL_TRY(read_list(root, NODE_FOLDER "/online", &nodes));
    t.numa_nodes = rdl_cpus_count(&nodes);
    if (t.numa_nodes == 0)
        t.numa_nodes = 1;
    *out = t;
    return RDL_OK;
}

/* --- the rest, from hwloc ------------------------------------------------- */

#ifdef RDL_NO_HWLOC
static bool ask_hwloc(const rdl_cpus *allowed, rdl_topology *out)
{
    (void)allowed;
    (void)out;
    return false;
}
#else
static const hwloc_obj_type_t wanted[] = { HWLOC_OBJ_CORE, HWLOC_OBJ_L2CACHE,
                                           HWLOC_OBJ_L3CACHE };

/* Only what is looked at here, and no devices: half of the time. */
static bool load(hwloc_topology_t h)
{
    if (hwloc_topology_set_flags(h, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) != 0 ||
        hwloc_topology_set_all_types_filter(h, HWLOC_TYPE_FILTER_KEEP_NONE) != 0)
        return false;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        if (hwloc_topology_set_type_filter(h, wanted[i],
                                           HWLOC_TYPE_FILTER_KEEP_ALL) != 0)
            return false;
    return hwloc_topology_load(h) == 0;
}

static void find_caches(hwloc_topology_t h, const rdl_cpus *allowed,
                        rdl_topology *out)
{
    int cpu = rdl_cpus_next(allowed, 0);
    hwloc_obj_t obj =
        hwloc_get_pu_obj_by_os_index(h, cpu < 0 ? 0 : (unsigned)cpu);

    for (; obj != NULL; obj = obj->parent) {
        if (obj->type == HWLOC_OBJ_L2CACHE)
            out->l2_bytes = (size_t)obj->attr->cache.size;
        else if (obj->type == HWLOC_OBJ_L3CACHE)
            out->l3_bytes = (size_t)obj->attr->cache.size;
    }
}

/* Some processors come without cores: then each hardware thread is one. */
static int count_objects(hwloc_topology_t h, hwloc_obj_type_t type)
{
    int count = hwloc_get_nbobjs_by_type(h, type);

    return count > 0 ? count : hwloc_get_nbobjs_by_type(h, HWLOC_OBJ_PU);
}

static bool ask_hwloc(const rdl_cpus *allowed, rdl_topology *out)
{
    hwloc_topology_t h;
    bool loaded;

    if (hwloc_topology_init(&h) != 0)
        return false;
    loaded = load(h);
    if (loaded) {
        out->cores_online = count_objects(h, HWLOC_OBJ_CORE);
        out->numa_nodes = hwloc_get_nbobjs_by_type(h, HWLOC_OBJ_NUMANODE);
        find_caches(h, allowed, out);
        loaded = out->cores_online >= 1 && out->numa_nodes >= 1;
    }
    hwloc_topology_destroy(h);
    return loaded;
}
#endif

size_t rdl_topology_l2_bytes(void)
{
    long bytes = 0;

#ifdef _SC_LEVEL2_CACHE_SIZE
    bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
#endif
    return bytes > 0 ? (size_t)bytes : L2_UNKNOWN;
}

rdl_status rdl_topology_read(rdl_topology *out)
{
    rdl_cpus allowed = rdl_cpus_allowed();
    rdl_topology t = { 0 };

    if (!ask_hwloc(&allowed, &t))
        return rdl_topology_read_at("", &allowed, out);
    RDL_TRY(rdl_topology_usable_cores_at("", &allowed, &t.usable_cores));
    *out = t;
    return RDL_OK;
}
