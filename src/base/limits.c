/* Comparing a need with the limits of the kernel. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/limits.h"

#include "base/cgroup.h"
#include "base/text_file.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

/* memory.stat of version 2 has some 70 lines of up to 40 bytes. */
#define STAT_MOST 8192

/* The tightest limit so far. */
typedef struct tightest {
    uint64_t have;
    uint64_t limit;
    char file[RDL_PATH_MOST]; /* that holds the limit; "": none met yet */
} tightest;

/* The number behind key at the start of a line of text; 0: there is none. */
static uint64_t find_number(const char *text, const char *key)
{
    size_t length = strlen(key);
    uint64_t number = 0;

    while (strncmp(text, key, length) != 0) {
        text = strchr(text, '\n');
        if (text == NULL)
            return 0;
        text++;
    }
    (void)rdl_parse_number(text + length, &number);
    return number;
}

static uint64_t less(uint64_t from, uint64_t what)
{
    return from > what ? from - what : 0;
}

static void note(tightest *t, uint64_t have, uint64_t limit, const char *folder,
                 const char *file)
{
    if (t->file[0] != 0 && have >= t->have)
        return;
    t->have = have;
    t->limit = limit;
    snprintf(t->file, sizeof t->file, "%.*s/%s", RDL_PATH_MOST - 64, folder,
             file);
}

/* Which files a version has. */
typedef struct names {
    const char *limit;
    const char *usage;
    const char *inactive;
    const char *active;
} names;

static const names of_version[] = {
    { "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ",
      "total_active_file " },
    { "memory.max", "memory.current", "inactive_file ", "active_file " },
};

/* Reads a file of one number; *there says whether that is what it held. */
static rdl_status read_number(const rdl_cgroup *group, const char *file,
                              uint64_t *out, bool *there)
{
    char text[64];

    RDL_TRY(rdl_read_text(text, sizeof text, group->root, "%s/%s",
                          group->folder, file));
    *there = rdl_parse_number(text, out) != NULL;
    return RDL_OK;
}

static rdl_status visit_memory_group(const rdl_cgroup *group, void *arg)
{
    const names *n = &of_version[group->version - 1];
    char stat[STAT_MOST];
    uint64_t limit;
    uint64_t usage;
    bool there;

    RDL_TRY(read_number(group, n->limit, &limit, &there));
    if (!there)
        return RDL_OK;
    RDL_TRY(read_number(group, n->usage, &usage, &there));
    if (!there)
        usage = 0;
    RDL_TRY(rdl_read_text(stat, sizeof stat, group->root, "%s/memory.stat",
                          group->folder));
    /* Both lists: a page is on the active one when it was read twice, and is
     * dropped for all that before anyone is killed. Shared memory is on neither. */
    usage = less(usage, find_number(stat, n->inactive));
    usage = less(usage, find_number(stat, n->active));
    note(arg, less(limit, usage), limit, group->folder, n->limit);
    return RDL_OK;
}

static rdl_status read_machine(const char *root, tightest *t)
{
    char text[2048];
    uint64_t have;

    RDL_TRY(rdl_read_text(text, sizeof text, root, "/proc/meminfo"));
    if (strstr(text, "MemAvailable:") == NULL)
        return RDL_OK;
    have = find_number(text, "MemAvailable:") << 10;
    note(t, have, find_number(text, "MemTotal:") << 10, "/proc",
         "meminfo (MemAvailable)");
    return RDL_OK;
}

rdl_status rdl_limits_check_memory_at(const char *root, uint64_t need,
                                      const char *what)
{
    tightest t = { 0 };

    if (need == 0)
        return RDL_OK;
    RDL_TRY(read_machine(root, &t));
    RDL_TRY(rdl_cgroup_walk(root, "memory", visit_memory_group, &t));
    if (t.file[0] == 0 || need <= less(t.have, RDL_MEMORY_SPARED))
        return RDL_OK;
    return rdl_fail(
        RDL_NO_MEMORY,
        "%.100s needs %llu bytes and has %llu: %.600s allows %llu, of "
        "which %llu are free and %llu are left to the program; ask for less "
        "(at the start by rdl_host_options.staging_bytes) or start fewer ranks",
        what, (unsigned long long)need,
        (unsigned long long)less(t.have, RDL_MEMORY_SPARED), t.file,
        (unsigned long long)t.limit, (unsigned long long)t.have,
        (unsigned long long)RDL_MEMORY_SPARED);
}

rdl_status rdl_limits_check_memory(uint64_t need, const char *what)
{
    return rdl_limits_check_memory_at("", need, what);
}

/* wish, or what of the limit is for it. */
static size_t within(size_t wish, const struct rlimit *limit, rlim_t part)
{
    return limit->rlim_cur == RLIM_INFINITY || limit->rlim_cur / part >= wish
               ? wish
               : (size_t)(limit->rlim_cur / part);
}

size_t rdl_limits_file(size_t wish)
{
    struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

    (void)getrlimit(RLIMIT_FSIZE, &limit); /* fails for wrong arguments only */
    return within(wish, &limit, 1);
}

size_t rdl_limits_space(size_t wish)
{
    struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

    (void)getrlimit(RLIMIT_AS, &limit);
    return within(wish, &limit, 4);
}

static void put_limit(char *text, size_t bytes, rlim_t limit)
{
    if (limit == RLIM_INFINITY)
        snprintf(text, bytes, "unlimited");
    else
        snprintf(text, bytes, "%llu", (unsigned long long)limit);
}

const char *rdl_limits_descriptors(char text[RDL_DESCRIPTORS_TEXT])
{
    struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
    char soft[24];
    char hard[24];
    int error = errno;

    (void)getrlimit(RLIMIT_NOFILE, &limit); /* fails for wrong arguments only */
    put_limit(soft, sizeof soft, limit.rlim_cur);
    put_limit(hard, sizeof hard, limit.rlim_max);
    snprintf(text, RDL_DESCRIPTORS_TEXT,
             "RLIMIT_NOFILE (ulimit -n) is %s, hard limit %s", soft, hard);
    errno = error;
    return text;
}
