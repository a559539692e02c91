/* The system, with sentences. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/os.h"

#include "base/fault.h"
#include "base/layout.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/text_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* --- shared memory --------------------------------------------------------- */

static int make_sealed(size_t bytes)
{
    int fd, error;

    if (rdl_limits_file(bytes) < bytes) { /* the kernel would send SIGXFSZ */
        errno = EFBIG;
        return -1;
    }
    fd = memfd_create("raddle", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -1;
    /* Its descriptor is all that opens it; a path of /proc to one shall not. */
    if (fchmod(fd, 0600) == 0 && ftruncate(fd, (off_t)bytes) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        return fd;
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

rdl_status rdl_os_memory_file(size_t bytes, int *out)
{
    int fd = rdl_fault_os() ? -1 : make_sealed(bytes);

    if (fd < 0)
        return rdl_fail_errno(errno, "no memory file of %zu bytes", bytes);
    *out = fd;
    return RDL_OK;
}

rdl_status rdl_os_reserve(int fd, size_t offset, size_t bytes)
{
    int error = EINTR;

    if (rdl_fault_os())
        error = errno;
    while (error == EINTR)
        error = fallocate(fd, 0, (off_t)offset, (off_t)bytes) ? errno : 0;
    if (error == ENOSPC)
        error = ENOMEM;
    return error == 0 ? RDL_OK
                      : rdl_fail_errno(error,
                                       "cannot reserve %zu bytes of "
                                       "shared memory",
                                       bytes);
}

rdl_status rdl_os_discard(int fd, size_t offset, size_t bytes)
{
    int error = EINTR;

    if (rdl_fault_os())
        error = errno;
    while (error == EINTR)
        error = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                          (off_t)offset, (off_t)bytes)
                    ? errno
                    : 0;
    return error == 0 ? RDL_OK
                      : rdl_fail_errno(error,
                                       "cannot give %zu bytes of shared "
                                       "memory back",
                                       bytes);
}

/* What one page table covers, of pages of 4 KiB. */
#define TABLE_BYTES ((size_t)2 << 20)

static void unmap_rest(unsigned char *room, unsigned char *at, size_t bytes)
{
    size_t before = (size_t)(at - room);

    if (before > 0)
        munmap(room, before);
    if (before < TABLE_BYTES)
        munmap(at + bytes, TABLE_BYTES - before);
}

/* Whole tables, if there is room to choose: which parts of a slice share one is then
 * the same in every process, and the account can tell. */
static void *map_tables(int fd, size_t offset, size_t bytes, int protection)
{
    unsigned char *room = MAP_FAILED, *at;
    void *memory;

    if (bytes % TABLE_BYTES == 0)
        room = mmap(NULL, bytes + TABLE_BYTES, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        return mmap(NULL, bytes, protection, MAP_SHARED, fd, (off_t)offset);
    at = room + (-(uintptr_t)room & (TABLE_BYTES - 1));
    memory =
        mmap(at, bytes, protection, MAP_SHARED | MAP_FIXED, fd, (off_t)offset);
    if (memory == MAP_FAILED)
        munmap(room, bytes + TABLE_BYTES);
    else
        unmap_rest(room, at, bytes);
    return memory;
}

static rdl_status map(int fd, size_t offset, size_t bytes, int protection,
                      void **out)
{
    void *memory = MAP_FAILED;

    if (!rdl_fault_os())
        memory = map_tables(fd, offset, bytes, protection);
    if (memory == MAP_FAILED)
        return rdl_fail_errno(errno,
                              "cannot map %zu bytes of shared memory "
                              "(is RLIMIT_AS set?)",
                              bytes);
    /* A child that kept it could write into its parent's arena. */
    madvise(memory, bytes, MADV_DONTFORK);
    *out = memory;
    return RDL_OK;
}

rdl_status rdl_os_map(int fd, size_t offset, size_t bytes, void **out)
{
    return map(fd, offset, bytes, PROT_READ | PROT_WRITE, out);
}

rdl_status rdl_os_map_to_read(int fd, size_t offset, size_t bytes, void **out)
{
    return map(fd, offset, bytes, PROT_READ, out);
}

void rdl_os_leave_out_of_dumps(void *memory, size_t bytes)
{
    madvise(memory, bytes, MADV_DONTDUMP); /* older kernels dump it */
}

void rdl_os_unmap(void *memory, size_t bytes)
{
    munmap(memory, bytes);
}

rdl_status rdl_os_file_bytes(int fd, uint64_t *bytes)
{
    struct stat st;

    if (rdl_fault_os() || fstat(fd, &st) != 0)
        return rdl_fail_errno(errno, "cannot read the size of the arena");
    *bytes = (uint64_t)st.st_blocks * 512;
    return RDL_OK;
}

/* --- a mark that a fork wipes ---------------------------------------------- */

struct rdl_fork_mark {
    uint64_t magic;
};

rdl_status rdl_fork_mark_create(rdl_fork_mark **out)
{
    rdl_fork_mark *mark = MAP_FAILED;

    if (!rdl_fault_os())
        mark = mmap(NULL, RDL_PAGE, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mark == MAP_FAILED)
        return rdl_fail_errno(errno, "cannot map a page");
    if (madvise(mark, RDL_PAGE, MADV_WIPEONFORK) != 0) {
        int error = errno;

        munmap(mark, RDL_PAGE);
        return rdl_fail_errno(error, "cannot mark a page to be wiped by fork "
                                     "(Linux 4.14 can)");
    }
    mark->magic = RDL_MAGIC;
    *out = mark;
    return RDL_OK;
}

void rdl_fork_mark_destroy(rdl_fork_mark *mark)
{
    if (mark != NULL)
        munmap(mark, RDL_PAGE);
}

bool rdl_fork_mark_holds(const rdl_fork_mark *mark)
{
    return mark->magic == RDL_MAGIC;
}

/* --- processes ------------------------------------------------------------- */

/* State letter and start time of a process: the 3rd and 22nd field of its stat
 * (proc(5)); the 2nd is a name that may hold anything, so count from its end.
 * Where it answers false, errno is ENOENT or ESRCH if there is no such process;
 * anything else says nothing about it (EMFILE: we can open no file now). */
static bool read_stat(uint32_t pid, char *state, uint64_t *started)
{
    char path[32], text[1024];
    const char *at;
    ssize_t got;
    int fd, error;

    snprintf(path, sizeof path, "/proc/%" PRIu32 "/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    got = read(fd, text, sizeof text - 1);
    error = got < 0 ? errno : 0;
    close(fd);
    errno = error;
    if (got <= 0)
        return false;
    text[got] = 0;
    at = strrchr(text, ')');
    if (at == NULL || at[1] == 0)
        return false;
    *state = at[2];
    at += 2;
    for (int field = 3; field < 22 && at != NULL; field++) {
        at = strchr(at, ' ');
        at = at ? at + 1 : NULL;
    }
    return at != NULL && sscanf(at, "%" SCNu64, started) == 1;
}

rdl_status rdl_process_self(rdl_process *out)
{
    struct stat st;
    char state;

    *out = (rdl_process){ .pid = (uint32_t)getpid() };
    if (stat("/proc/self/ns/pid", &st) == 0 &&
        read_stat(out->pid, &state, &out->started))
        out->pid_namespace = (uint64_t)st.st_ino;
    return RDL_OK;
}

rdl_liveness rdl_process_liveness(const rdl_process *self,
                                  const rdl_process *other)
{
    uint64_t started;
    char state;

    if (self->pid_namespace == 0 || self->pid_namespace != other->pid_namespace)
        return RDL_UNKNOWN;
    if (other->pid == self->pid)
        return RDL_ALIVE;
    if (!read_stat(other->pid, &state, &started))
        return errno == ENOENT || errno == ESRCH ? RDL_DEAD : RDL_UNKNOWN;
    return started == other->started && state != 'Z' && state != 'X' ? RDL_ALIVE
                                                                     : RDL_DEAD;
}

static bool is_dumping(uint32_t pid)
{
    char text[4096];
    const char *at;

    if (rdl_read_text(text, sizeof text, "", "/proc/%" PRIu32 "/status", pid) !=
        RDL_OK)
        return false;
    at = strstr(text, "\nCoreDumping:"); /* since Linux 4.15 */
    return at != NULL && at[strcspn(at, "01")] == '1';
}

/* A debugger holds a process for long. What only looks at it, as a search for leaks does
 * when a process ends, lets it go soon. */
#define TRACED_LOOKS 5
#define TRACED_NAP INT64_C(20000000)

static bool stays_traced(const rdl_process *process)
{
    uint64_t started;
    char state = 't';

    for (int i = 0; i < TRACED_LOOKS && state == 't'; i++) {
        rdl_sleep(TRACED_NAP);
        if (!read_stat(process->pid, &state, &started) ||
            started != process->started)
            return false;
    }
    return state == 't';
}

rdl_condition rdl_process_condition(const rdl_process *self,
                                    const rdl_process *other)
{
    uint64_t started;
    char state;

    if (self->pid_namespace == 0 ||
        self->pid_namespace != other->pid_namespace || other->pid == self->pid ||
        !read_stat(other->pid, &state, &started) || started != other->started)
        return RDL_GOES_ON;
    if (state == 'T' || (state == 't' && stays_traced(other)))
        return RDL_STOPPED;
    return is_dumping(other->pid) ? RDL_DUMPING : RDL_GOES_ON;
}

bool rdl_process_is_dumping(const rdl_process *self, const rdl_process *other)
{
    uint64_t started;
    char state;

    return self->pid_namespace != 0 &&
           self->pid_namespace == other->pid_namespace &&
           other->pid != self->pid && read_stat(other->pid, &state, &started) &&
           started == other->started && is_dumping(other->pid);
}

/* --- waiting --------------------------------------------------------------- */

void rdl_futex_wait(_Atomic uint32_t *word, uint32_t value, rdl_time most)
{
    struct timespec t = { .tv_sec = most / 1000000000,
                          .tv_nsec = most % 1000000000 };

    syscall(SYS_futex, word, FUTEX_WAIT, value, &t, NULL, 0);
}

void rdl_futex_wake_all(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}
