/* Reading the arenas of another process. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <raddle/dump.h>

#include "base/arena.h"
#include "base/fault.h"
#include "base/memory.h"
#include "base/recorder.h"
#include "comm/peek.h"
#include "comm/plan.h"
#include "comm/verdict.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct rdl_dump {
    rdl_arena *arenas;
    int count;
    rdl_process self;
};

/* --- finding ---------------------------------------------------------------- */

static bool has(const rdl_dump *d, const struct stat *st)
{
    for (int i = 0; i < d->count; i++)
        if (d->arenas[i].device == (uint64_t)st->st_dev &&
            d->arenas[i].inode == (uint64_t)st->st_ino)
            return true;
    return false;
}

static rdl_status add(rdl_dump *d, int fd)
{
    rdl_arena *more =
        rdl_realloc(d->arenas, (size_t)(d->count + 1) * sizeof *more);

    if (more == NULL)
        return rdl_fail(RDL_NO_MEMORY, "no memory for a dump of %d jobs",
                        d->count + 1);
    d->arenas = more;
    RDL_TRY(rdl_arena_map_to_read(&more[d->count], fd));
    d->count++;
    return RDL_OK;
}

/* Whether what a descriptor leads to may be an arena, by the name that it was
 * made with (base/os.c). */
static bool may_be_arena(int folder, const char *name)
{
    static const char made[] = "/memfd:raddle";
    char target[64];
    ssize_t n = readlinkat(folder, name, target, sizeof target - 1);

    return n >= (ssize_t)sizeof made - 1 &&
           strncmp(target, made, sizeof made - 1) == 0;
}

/* A descriptor that has been closed meanwhile is none. */
static rdl_status look_at(rdl_dump *d, int folder, const char *name)
{
    struct stat st;
    rdl_status status;
    int fd;

    if (!may_be_arena(folder, name))
        return RDL_OK;
    fd = rdl_fault_os() ? -1 : openat(folder, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT
                   ? RDL_OK
                   : rdl_fail_errno(errno, "cannot open descriptor %s", name);
    status = fstat(fd, &st) != 0 || has(d, &st) ? RDL_AGAIN : add(d, fd);
    if (status != RDL_OK)
        close(fd);
    /* Others may give their files that name; and one is made at this moment. */
    return status == RDL_AGAIN || status == RDL_FORMAT ? RDL_OK : status;
}

static rdl_status look_at_all(rdl_dump *d, DIR *folder)
{
    const struct dirent *entry;

    while ((entry = readdir(folder)) != NULL)
        RDL_TRY(look_at(d, dirfd(folder), entry->d_name));
    return RDL_OK;
}

static rdl_status refuse(int64_t pid, int error)
{
    struct stat st;
    char path[64];

    snprintf(path, sizeof path, "/proc/%" PRId64, pid);
    if (stat(path, &st) != 0)
        return rdl_fail(RDL_INVALID, "there is no process %" PRId64, pid);
    if (st.st_uid != geteuid())
        return rdl_fail_errno(error,
                              "process %" PRId64
                              " belongs to user %u, and this "
                              "is user %u",
                              pid, (unsigned)st.st_uid, (unsigned)geteuid());
    return rdl_fail_errno(error, "process %" PRId64 " may not be looked at",
                          pid);
}

static rdl_status fill(rdl_dump *d, int64_t pid)
{
    char path[64];
    rdl_status st;
    DIR *folder;

    RDL_TRY(rdl_process_self(&d->self));
    snprintf(path, sizeof path, "/proc/%" PRId64 "/fd", pid);
    folder = rdl_fault_os() ? NULL : opendir(path);
    if (folder == NULL)
        return refuse(pid, errno);
    st = look_at_all(d, folder);
    closedir(folder);
    RDL_TRY(st);
    return d->count > 0
               ? RDL_OK
               : rdl_fail(RDL_STATE,
                          "process %" PRId64 " holds no memory of a job: it is "
                          "no rank and no launcher, has ended, has closed its "
                          "world, or is alone in it",
                          pid);
}

rdl_status rdl_dump_open(int64_t pid, rdl_dump **out)
{
    rdl_dump *d;
    rdl_status st;

    if (out == NULL || pid < 1 || pid > INT_MAX)
        return rdl_fail(RDL_INVALID,
                        "rdl_dump_open: no place for the answer, or %" PRId64
                        " is no process id",
                        pid);
    d = rdl_calloc(1, sizeof *d);
    if (d == NULL)
        return rdl_fail(RDL_NO_MEMORY, "no memory for a dump");
    st = fill(d, pid);
    if (st != RDL_OK) {
        rdl_dump_close(d);
        return st;
    }
    *out = d;
    return RDL_OK;
}

void rdl_dump_close(rdl_dump *d)
{
    if (d == NULL)
        return;
    for (int i = 0; i < d->count; i++)
        rdl_arena_unmap(&d->arenas[i]);
    rdl_free(d->arenas);
    rdl_free(d);
}

/* --- ranks ------------------------------------------------------------------ */

int rdl_dump_jobs(const rdl_dump *d)
{
    return d != NULL ? d->count : 0;
}

int rdl_dump_size(const rdl_dump *d, int job)
{
    return job >= 0 && job < rdl_dump_jobs(d) ? d->arenas[job].size : 0;
}

uint64_t rdl_dump_id(const rdl_dump *d, int job)
{
    return rdl_dump_size(d, job) > 0 ? d->arenas[job].inode : 0;
}

static rdl_status check(const rdl_dump *d, int job, int rank, const void *out,
                        const char *who)
{
    if (out != NULL && rank >= 0 && rank < rdl_dump_size(d, job))
        return RDL_OK;
    return rdl_fail(
        RDL_INVALID,
        "%s: no place for the answer, job %d of %d, or rank %d of %d", who, job,
        rdl_dump_jobs(d), rank, rdl_dump_size(d, job));
}

/* NULL: the rank has not joined. Then its pages must not be touched, as that would
 * take them for good; reading the file takes none. */
static rdl_slice *find_slice(const rdl_dump *d, int job, int rank,
                             uint32_t *state)
{
    rdl_slice *slice = rdl_arena_slice(&d->arenas[job], rank);
    off_t at = (unsigned char *)slice - d->arenas[job].base;

    if (pread(d->arenas[job].fd, state, sizeof *state, at) != sizeof *state ||
        *state == RDL_SLICE_EMPTY)
        return NULL;
    *state = atomic_load_explicit(&slice->state, memory_order_acquire);
    return slice;
}

static rdl_member_state member_state(const rdl_dump *d, const rdl_slice *slice,
                                     uint32_t state)
{
    rdl_process process = { slice->pid, slice->started, slice->pid_namespace };

    if (state == RDL_SLICE_LEFT)
        return RDL_MEMBER_LEFT;
    return rdl_process_liveness(&d->self, &process) == RDL_DEAD
               ? RDL_MEMBER_DEAD
               : RDL_MEMBER_JOINED;
}

rdl_status rdl_dump_look(const rdl_dump *d, int job, int rank,
                         rdl_dump_rank *out)
{
    uint32_t state = RDL_SLICE_EMPTY;
    rdl_slice *slice;

    RDL_TRY(check(d, job, rank, out, "rdl_dump_look"));
    *out = (rdl_dump_rank){ .state = RDL_MEMBER_ABSENT };
    slice = find_slice(d, job, rank, &state);
    if (slice == NULL)
        return RDL_OK;
    out->state = member_state(d, slice, state);
    out->pid = slice->pid;
    out->newest = rdl_records_newest(slice);
    out->oldest = out->newest > 0 ? rdl_records_oldest(slice) : 0;
    if (state == RDL_SLICE_FAILED)
        rdl_peek_reason(slice, out->reason, sizeof out->reason);
    return RDL_OK;
}

/* --- calls ------------------------------------------------------------------ */

_Static_assert((int)RDL_CALL_ISSUED == (int)RDL_RECORD_ISSUED &&
                   (int)RDL_CALL_RUNNING == (int)RDL_RECORD_RUNNING &&
                   (int)RDL_CALL_WAITING == (int)RDL_RECORD_WAITING &&
                   (int)RDL_CALL_ENDED == (int)RDL_RECORD_ENDED,
               "states are handed on as they are");

static const char *name_of(const rdl_entry *e)
{
    switch (e->operation) {
    case RDL_OP_SEND_RECV:
        return e->flags & RDL_RECORD_SENDS ? "send" : "receive";
    case RDL_RECORD_AWAIT:
        return "await";
    case RDL_RECORD_SYNCHRONIZE:
        return "synchronize";
    case RDL_RECORD_SHRINK:
        return "shrink";
    default:
        return rdl_operation_name((rdl_operation)e->operation);
    }
}

static bool is_wait(const rdl_entry *e)
{
    return e->operation == RDL_RECORD_AWAIT ||
           e->operation == RDL_RECORD_SYNCHRONIZE ||
           e->operation == RDL_RECORD_SHRINK;
}

static bool has_root(const rdl_entry *e)
{
    return e->operation == RDL_OP_BROADCAST || e->operation == RDL_OP_REDUCE ||
           e->operation == RDL_OP_GATHER || e->operation == RDL_OP_SCATTER;
}

/* In words. */
static void add_call(rdl_text *text, const rdl_dump_call *c, const rdl_entry *e)
{
    rdl_text_add(text, "%s", c->operation);
    if (e->operation == RDL_RECORD_AWAIT && c->count > 0)
        rdl_text_add(text, "(call %" PRIu64 ")", c->count);
    if (e->operation == RDL_RECORD_SYNCHRONIZE && c->stream[0] != 0)
        rdl_text_add(text, "(stream '%s')", c->stream);
    if (c->dtype[0] == 0)
        return;
    rdl_text_add(text, "(%" PRIu64 " %s", c->count, c->dtype);
    if (has_root(e))
        rdl_text_add(text, ", root %d", c->root);
    if (c->reduction[0] != 0)
        rdl_text_add(text, ", %s", c->reduction);
    if (e->operation == RDL_OP_SEND_RECV)
        rdl_text_add(text, " %s rank %d",
                     e->flags & RDL_RECORD_SENDS ? "to" : "from", c->root);
    rdl_text_add(text, ")");
}

static void add_times(rdl_dump_call *c, const rdl_slice *slice,
                      const rdl_entry *e)
{
    rdl_instant now = rdl_instant_now(rdl_ticks_are_even());
    double all = (double)(now.time - slice->time_then) / 1e9, per_tick = 0;

    if (now.ticks > slice->ticks_then)
        per_tick = all / (double)(now.ticks - slice->ticks_then);
    c->at = (double)(int64_t)(e->ticks - slice->ticks_then) * per_tick;
    c->ago = all - c->at;
    if (e->state == RDL_RECORD_ENDED)
        c->took = (double)e->took * per_tick;
}

static void add_texts(rdl_dump_call *c, rdl_slice *slice, const rdl_entry *e,
                      int size)
{
    rdl_text what = { c->what, sizeof c->what };

    if (!is_wait(e))
        rdl_peek_group(slice, e->lane, size, c->group, sizeof c->group);
    rdl_peek_text(slice, e->stream, c->stream, sizeof c->stream);
    rdl_peek_text(slice, e->site, c->site, sizeof c->site);
    add_call(&what, c, e);
}

static void translate(rdl_dump_call *c, rdl_slice *slice, const rdl_entry *e,
                      int size)
{
    bool plain = is_wait(e) || e->operation == RDL_OP_BARRIER;

    *c = (rdl_dump_call){
        .number = e->number,
        .state = (rdl_call_state)e->state,
        .status = e->status <= RDL_BUG ? (rdl_status)e->status : RDL_BUG,
        .peer = e->peer < size ? e->peer : -1,
        .call = e->call,
        .count = e->count,
        .root = e->root,
        .blocks = (e->flags & RDL_RECORD_BLOCKS) != 0,
        .operation = name_of(e),
        .dtype = plain ? "" : rdl_dtype_name(e->dtype),
        .reduction = rdl_operation_reduces((rdl_operation)e->operation)
                         ? rdl_reduction_name(e->reduction)
                         : "",
    };
    add_times(c, slice, e);
    add_texts(c, slice, e, size);
}

rdl_status rdl_dump_read(const rdl_dump *d, int job, int rank, uint64_t number,
                         rdl_dump_call *out)
{
    uint32_t state = RDL_SLICE_EMPTY;
    rdl_slice *slice;
    rdl_entry e;

    RDL_TRY(check(d, job, rank, out, "rdl_dump_read"));
    slice = find_slice(d, job, rank, &state);
    if (slice == NULL || !rdl_records_read(slice, number, &e) ||
        e.state < RDL_RECORD_ISSUED || e.state > RDL_RECORD_ENDED)
        return rdl_fail(RDL_AGAIN,
                        "rank %d has no call %" PRIu64
                        ", has it no more, or is "
                        "writing it",
                        rank, number);
    translate(out, slice, &e, rdl_dump_size(d, job));
    return RDL_OK;
}
