/* What a thousand open groups took, beside what other libraries take for one
 * communicator each. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "first_light.h"

#include <dirent.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>

/* Bytes of /dev/shm that one communicator takes of each of its ranks. */
#define NCCL_BYTES 34210176 /* 2.30.7, with cuMem off */
#define RCCL_BYTES 82576040 /* 2.32.3 */

/* The numbers that the ranks bring together. */
#define NUMBER_MAP(X)                                                          \
    X(OPENED, groups_opened)                                                   \
    X(OPEN, groups_open)                                                       \
    X(COMMUNICATORS, communicators)                                            \
    X(LANES, lanes)                                                            \
    X(ARENA, arena_bytes_rank)                                                 \
    X(ARENA_ALL, arena_bytes_total)                                            \
    X(SHM, dev_shm_bytes)                                                      \
    X(SHM_PEAK, dev_shm_peak)                                                  \
    X(DESCRIPTORS, descriptors)                                                \
    X(DESCRIPTORS_MORE, descriptors_grown)                                     \
    X(THREADS, threads)                                                        \
    X(THREADS_MORE, threads_grown)

enum {
#define X(number, name) number,
    NUMBER_MAP(X)
#undef X
        NUMBERS
};

/* Entries of a folder of /proc/self; 0 if it cannot be read. */
static int64_t count_entries(const char *folder)
{
    DIR *dir = opendir(folder);
    int64_t n = 0;

    if (dir == NULL)
        return 0;
    for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir))
        n += e->d_name[0] != '.';
    closedir(dir);
    return n;
}

/* 0 where there is no /dev/shm, or only a folder of another file system. */
static int64_t dev_shm_used(void)
{
    struct statfs fs;

    if (statfs("/dev/shm", &fs) != 0 || fs.f_type != TMPFS_MAGIC)
        return 0;
    return (int64_t)(fs.f_blocks - fs.f_bfree) * (int64_t)fs.f_bsize;
}

surroundings look_around(void)
{
    return (surroundings){
        /* less the descriptor that counts them */
        .descriptors = count_entries("/proc/self/fd") - 1,
        .threads = count_entries("/proc/self/task"),
        .dev_shm = dev_shm_used(),
    };
}

void watch_dev_shm(demo *d)
{
    int64_t more = dev_shm_used() - d->before.dev_shm;

    if (more > d->dev_shm_peak)
        d->dev_shm_peak = more;
}

bool take_account(demo *d)
{
    if (!ok(d, rdl_account_read(d->world, &d->account)))
        return false;
    d->full = look_around();
    watch_dev_shm(d);
    return true;
}

/* The peak becomes the highest that any rank saw. */
bool find_peak(demo *d)
{
    return ok(d, rdl_all_reduce(d->world, RDL_WORLD, &d->dev_shm_peak,
                                &d->dev_shm_peak, 1, RDL_INT64, RDL_MAX, NULL));
}

static void own_numbers(const demo *d, int64_t own[NUMBERS])
{
    const rdl_account *a = &d->account;

    own[OPENED] = (int64_t)a->groups_opened;
    own[OPEN] = (int64_t)a->groups_open;
    own[COMMUNICATORS] = (int64_t)a->communicators;
    own[LANES] = (int64_t)a->lanes;
    own[ARENA] = (int64_t)a->arena_bytes_rank;
    own[ARENA_ALL] = (int64_t)a->arena_bytes_total;
    own[SHM] = (int64_t)a->dev_shm_bytes;
    own[SHM_PEAK] = d->dev_shm_peak;
    own[DESCRIPTORS] = (int64_t)a->descriptors;
    own[DESCRIPTORS_MORE] = d->full.descriptors - d->before.descriptors;
    own[THREADS] = (int64_t)a->threads;
    own[THREADS_MORE] = d->full.threads - d->before.threads;
}

static void row(const demo *d, const char *what, const char *raddle,
                const char *nccl, const char *rccl)
{
    say(d, "  %-34s %12s %12s %12s", what, raddle, nccl, rccl);
}

static void shm_row(const demo *d, const char *what, int64_t raddle,
                    int64_t communicators)
{
    double others = (double)communicators;
    words a, b, c;

    row(d, what, scaled_bytes((double)raddle, &a),
        scaled_bytes(others * NCCL_BYTES, &b),
        scaled_bytes(others * RCCL_BYTES, &c));
}

/* What the world says it holds, and what /proc says of the process. */
static void held_row(const demo *d, const char *what, int64_t held, int64_t more)
{
    say(d, "  %-34s %12" PRId64 "   %+" PRId64 " in /proc", what, held, more);
}

static void say_rows(const demo *d, const int64_t *most, const int64_t *sum)
{
    words a, b;

    say(d, "The account of a rank with all its groups open");
    row(d, "", "raddle", "NCCL 2.30.7", "RCCL 2.32.3");
    grouped(most[OPEN], &a);
    row(d, "groups open", a.text, a.text, a.text);
    row(d, "communicators", grouped(most[COMMUNICATORS], &b), a.text, a.text);
    shm_row(d, "/dev/shm", most[SHM], most[OPEN]);
    shm_row(d, "/dev/shm of all ranks, peak", most[SHM_PEAK], sum[OPEN]);
    say(d, "  %-34s %12s", "arena", scaled_bytes((double)most[ARENA], &a));
    say(d, "  %-34s %12s", "arena of all ranks",
        scaled_bytes((double)most[ARENA_ALL], &a));
    say(d, "  %-34s %12s", "groups opened so far", grouped(most[OPENED], &a));
    say(d, "  %-34s %12s", "lanes", grouped(most[LANES], &a));
    held_row(d, "descriptors", most[DESCRIPTORS], most[DESCRIPTORS_MORE]);
    held_row(d, "threads", most[THREADS], most[THREADS_MORE]);
    say(d, "  raddle: measured. NCCL (cuMem off) and RCCL: one communicator a "
           "group, each");
    say(d, "  %s and %s bytes of /dev/shm a rank.", grouped(NCCL_BYTES, &a),
        grouped(RCCL_BYTES, &b));
}

static void json_rows(const demo *d, const int64_t *most, const int64_t *sum)
{
    static const char *const names[NUMBERS] = {
#define X(number, name) #name,
        NUMBER_MAP(X)
#undef X
    };
    char line[1024] = "";
    size_t at = 0;

    for (int i = 0; i < NUMBERS; i++)
        at += (size_t)snprintf(line + at, sizeof line - at,
                               "\"%s\": %" PRId64 ", ", names[i], most[i]);
    say_json(d,
             "{\"event\": \"account\", %s\"nccl_dev_shm_total\": %" PRId64
             ", \"rccl_dev_shm_total\": %" PRId64 "}",
             line, sum[OPEN] * NCCL_BYTES, sum[OPEN] * RCCL_BYTES);
}

bool show_account(demo *d)
{
    int64_t own[NUMBERS], most[NUMBERS], sum[NUMBERS];

    own_numbers(d, own);
    if (!ok(d, rdl_all_reduce(d->world, RDL_WORLD, own, most, NUMBERS,
                              RDL_INT64, RDL_MAX, NULL)) ||
        !ok(d, rdl_all_reduce(d->world, RDL_WORLD, own, sum, NUMBERS, RDL_INT64,
                              RDL_SUM, NULL)))
        return false;
    say_rows(d, most, sum);
    json_rows(d, most, sum);
    return true;
}
