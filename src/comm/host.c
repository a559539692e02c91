/* Hosts. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/host.h"

#include "base/fault.h"
#include "base/memory.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#define STAGING_DEFAULT (((size_t)1 << 20) + 16 * RDL_NOOK_BYTES)

static rdl_status check(const rdl_host_options *options)
{
    if (options->staging_bytes != 0 && options->staging_bytes < RDL_STAGING_LEAST)
        return rdl_fail(RDL_INVALID,
                        "staging_bytes %zu is too little: a rank needs %zu (0: "
                        "%zu)",
                        options->staging_bytes, RDL_STAGING_LEAST,
                        STAGING_DEFAULT);
    if (options->staging_bytes > RDL_STAGING_MOST)
        return rdl_fail(RDL_INVALID,
                        "staging_bytes %zu is too much: a rank has at most %zu "
                        "(0: %zu)",
                        options->staging_bytes, RDL_STAGING_MOST,
                        STAGING_DEFAULT);
    if (options->groups < 0 || options->groups > RDL_GROUPS_MOST)
        return rdl_fail(RDL_INVALID, "groups %d is outside 1..%d (or 0)",
                        options->groups, RDL_GROUPS_MOST);
    if (options->records != 0 &&
        (options->records < RDL_RECORDS_LEAST ||
         options->records > RDL_RECORDS_MOST ||
         (options->records & (options->records - 1)) != 0))
        return rdl_fail(RDL_INVALID,
                        "records %d is no power of two in %d..%d (or 0)",
                        options->records, RDL_RECORDS_LEAST, RDL_RECORDS_MOST);
    return RDL_OK;
}

rdl_status rdl_host_create(const rdl_host_options *options, rdl_host **out)
{
    static const rdl_host_options none = { 0 };
    rdl_host *host;
    rdl_status st;
    size_t staging;

    if (out == NULL)
        return rdl_fail(RDL_INVALID, "rdl_host_create: out is NULL");
    if (options == NULL)
        options = &none;
    RDL_TRY(check(options));
    host = rdl_calloc(1, sizeof *host);
    if (host == NULL)
        return rdl_fail(RDL_NO_MEMORY, "no memory for a host object");
    rdl_charge(&host->purse, host);
    staging = options->staging_bytes ? options->staging_bytes : STAGING_DEFAULT;
    host->staging_bytes = (staging + RDL_PAGE - 1) & ~(size_t)(RDL_PAGE - 1);
    host->groups = options->groups ? options->groups : RDL_GROUPS_MOST;
    host->records = options->records ? options->records : RDL_RECORDS;
    host->users = 1;
    st = rdl_fork_mark_create(&host->mark);
    if (st != RDL_OK) {
        rdl_free(host);
        return st;
    }
    pthread_mutex_init(&host->lock, NULL);
    pthread_mutex_init(&host->helping, NULL);
    *out = host;
    return RDL_OK;
}

void rdl_host_hold(rdl_host *host)
{
    pthread_mutex_lock(&host->lock);
    host->users++;
    pthread_mutex_unlock(&host->lock);
}

void rdl_host_release(rdl_host *host)
{
    int users;

    pthread_mutex_lock(&host->lock);
    users = --host->users;
    pthread_mutex_unlock(&host->lock);
    if (users == 0)
        rdl_host_free(host);
}

void rdl_host_free(rdl_host *host)
{
    if (rdl_fork_mark_holds(host->mark)) /* a forked child has no such thread */
        rdl_helper_end(host);
    pthread_mutex_destroy(&host->helping);
    pthread_mutex_destroy(&host->lock);
    rdl_fork_mark_destroy(host->mark);
    rdl_free(host);
}

void rdl_host_destroy(rdl_host *host)
{
    if (host == NULL)
        return;
    if (rdl_fork_mark_holds(host->mark))
        rdl_host_release(host);
    else if (--host->users == 0)
        rdl_host_free(host);
}

static rdl_mapping *find(rdl_host *host, const struct stat *st)
{
    rdl_mapping *m = host->mappings;

    while (m != NULL && (m->arena.inode != (uint64_t)st->st_ino ||
                         m->arena.device != (uint64_t)st->st_dev))
        m = m->next;
    return m;
}

static rdl_status map_new(rdl_host *host, int fd, rdl_mapping **out)
{
    rdl_mapping *m = rdl_calloc_for(&host->purse, 1, sizeof *m);
    rdl_status st;

    if (m == NULL)
        return rdl_fail(RDL_NO_MEMORY, "no memory for a mapping");
    st = rdl_arena_map(&m->arena, fd);
    if (st != RDL_OK) {
        rdl_free(m);
        return st;
    }
    rdl_charge(&host->purse, m->arena.pieces.touched);
    rdl_charge(&host->purse, m->arena.heap_pieces.touched);
    m->next = host->mappings;
    host->mappings = m;
    *out = m;
    return RDL_OK;
}

rdl_status rdl_host_map(rdl_host *host, int fd, rdl_mapping **out)
{
    struct stat st;
    rdl_status status = RDL_OK;
    rdl_mapping *m;

    if (rdl_fault_os() || fstat(fd, &st) != 0)
        return rdl_fail_errno(errno, "cannot look at the arena");
    pthread_mutex_lock(&host->lock);
    m = find(host, &st);
    if (m == NULL)
        status = map_new(host, fd, &m);
    if (status == RDL_OK) {
        if (m->arena.fd != fd)
            close(fd);
        m->users++;
        *out = m;
    }
    pthread_mutex_unlock(&host->lock);
    return status;
}

/* One user less; whether it was the last, and the mapping is off the list. */
static bool drop_user(rdl_host *host, rdl_mapping *mapping)
{
    rdl_mapping **link = &host->mappings;

    if (--mapping->users > 0)
        return false;
    while (*link != mapping)
        link = &(*link)->next;
    *link = mapping->next;
    return true;
}

void rdl_host_unmap(rdl_host *host, rdl_mapping *mapping)
{
    bool last;

    pthread_mutex_lock(&host->lock);
    last = drop_user(host, mapping);
    pthread_mutex_unlock(&host->lock);
    if (last) {
        rdl_arena_unmap(&mapping->arena);
        rdl_free(mapping);
    }
}

void rdl_host_forget(rdl_host *host, rdl_mapping *mapping)
{
    if (!drop_user(host, mapping))
        return;
    close(mapping->arena.fd);
    rdl_arena_forget_pieces(&mapping->arena);
    rdl_free(mapping);
}
