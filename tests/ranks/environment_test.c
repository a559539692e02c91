/* Surroundings that are poor: /dev/shm full, read-only, not ours or not there (cases
 * H01, H03), a sandbox (H04), few descriptors (H07), little address space, more ranks
 * than cores (H08). */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/left.h"
#include "support/puppet.h"
#include "support/worlds.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHM "/dev/shm"

/* --- /dev/shm -------------------------------------------------------------- */

/* Mounts of our own from here on: nobody else sees them. */
static void leave_the_mounts_of_others(void)
{
    if (unshare(CLONE_NEWNS) != 0)
        SKIP("no mount namespace of our own: %s", strerror(errno));
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        SKIP("cannot make our mounts private: %s", strerror(errno));
}

static void mount_shm(const char *options)
{
    leave_the_mounts_of_others();
    if (mount("tmpfs", SHM, "tmpfs", 0, options) != 0)
        SKIP("cannot mount a tmpfs on " SHM ": %s", strerror(errno));
}

static long long used_bytes(void)
{
    struct statfs fs;

    CHECK_INT(statfs(SHM, &fs), 0);
    return (long long)(fs.f_blocks - fs.f_bfree) * fs.f_bsize;
}

/* All of it but that many bytes. */
static void fill_shm(size_t but)
{
    static const char zeros[65536];
    int fd = open(SHM "/filler", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    off_t end;

    CHECK(fd >= 0);
    while (write(fd, zeros, sizeof zeros) > 0)
        continue;
    CHECK_INT(errno, ENOSPC);
    end = lseek(fd, 0, SEEK_CUR);
    CHECK_INT(ftruncate(fd, end - (off_t)but), 0);
    close(fd);
}

static rdl_world *open_world(int rank, int size, const char *job)
{
    rdl_world_options options = { .rank = rank, .size = size, .job = job };
    rdl_world *world;

    CHECK_OK(rdl_world_open(&options, &world));
    return world;
}

/* H01; under RADDLE_SOAK at its full size, 128 MiB a rank. */
static void sum_a_large_buffer(int rank, int size, void *arg)
{
    size_t count = rdl_test_soak() ? (size_t)1 << 25 : (size_t)1 << 20;
    float *x = malloc(count * sizeof *x);
    rdl_world *world = open_world(rank, size, arg);

    CHECK(x != NULL);
    for (size_t i = 0; i < count; i++)
        x[i] = (float)(rank + 1);
    CHECK_OK(rdl_all_reduce(world, RDL_WORLD, x, x, count, RDL_FLOAT32, RDL_SUM,
                            NULL));
    for (size_t i = 0; i < count; i++)
        CHECK(x[i] == 10.0f);
    CHECK_OK(rdl_world_close(world));
    free(x);
}

/* H03 */
static void gather_two(int rank, int size, void *arg)
{
    rdl_world *world = open_world(rank, size, arg);
    int64_t mine = 10 * (rank + 1), all[2];

    CHECK_OK(rdl_all_gather(world, RDL_WORLD, &mine, all, 1, RDL_INT64, NULL));
    CHECK_INT(all[0], 10);
    CHECK_INT(all[1], 20);
    CHECK_OK(rdl_world_close(world));
}

static void name_job(char job[64])
{
    snprintf(job, 64, "around-%d", (int)getpid());
}

/* Ranks as processes; while they run, /dev/shm holds what it held. */
static void run_beside_shm(int size, rdl_test_body body)
{
    long long before = used_bytes();
    char job[64];
    pid_t pid;
    int state;

    name_job(job);
    for (int rank = 0; rank < size; rank++)
        rdl_test_start(rank, size, body, job);
    for (int running = size; running > 0; usleep(200)) {
        CHECK_INT(used_bytes(), before);
        pid = waitpid(-1, &state, WNOHANG);
        if (pid > 0) {
            CHECK_INT(state, 0);
            running--;
        }
    }
    CHECK_INT(used_bytes(), before);
}

RDL_TEST(a_job_puts_nothing_into_dev_shm)
{
    mount_shm("size=64m");
    CHECK_INT(used_bytes(), 0);
    run_beside_shm(4, sum_a_large_buffer);
    CHECK_TEXT(rdl_test_list(SHM, "").text, "");
}

RDL_TEST(a_job_runs_where_dev_shm_has_one_mebibyte_left)
{
    mount_shm("size=64m");
    fill_shm((size_t)1 << 20);
    run_beside_shm(4, sum_a_large_buffer);
}

RDL_TEST(a_job_runs_where_dev_shm_is_full)
{
    mount_shm("size=64m");
    fill_shm(0);
    run_beside_shm(4, sum_a_large_buffer);
    run_beside_shm(2, gather_two);
}

RDL_TEST(a_job_runs_where_dev_shm_is_read_only)
{
    mount_shm("size=64m");
    CHECK_INT(mount("tmpfs", SHM, "tmpfs", MS_REMOUNT | MS_RDONLY, NULL), 0);
    CHECK_INT(open(SHM "/x", O_CREAT | O_WRONLY, 0600), -1);
    run_beside_shm(2, gather_two);
}

static void gather_as_an_ordinary_user(int rank, int size, void *arg)
{
    CHECK_INT(setgid(65534), 0);
    CHECK_INT(setuid(65534), 0);
    CHECK_INT(open(SHM "/x", O_CREAT | O_WRONLY, 0600), -1);
    CHECK_INT(errno, EACCES);
    gather_two(rank, size, arg);
}

RDL_TEST(a_job_runs_where_dev_shm_is_not_ours)
{
    mount_shm("size=64m,mode=0755");
    run_beside_shm(2, gather_as_an_ordinary_user);
}

RDL_TEST(a_job_runs_where_there_is_no_dev_shm)
{
    char job[64];

    leave_the_mounts_of_others();
    if (mount("tmpfs", "/dev", "tmpfs", 0, "size=1m") != 0)
        SKIP("cannot mount a tmpfs on /dev: %s", strerror(errno));
    CHECK_INT(access(SHM, F_OK), -1);
    name_job(job);
    rdl_test_processes(4, sum_a_large_buffer, job);
    rdl_test_processes(2, gather_two, job);
}

/* --- descriptors ----------------------------------------------------------- */

static void limit_descriptors(rlim_t limit, struct rlimit *before)
{
    struct rlimit now;

    CHECK_INT(getrlimit(RLIMIT_NOFILE, before), 0);
    now = (struct rlimit){ limit, before->rlim_max };
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &now), 0);
}

typedef struct need {
    char job[64];
    rlim_t limit;
    atomic_int named; /* ranks whose sentence names the limit */
    atomic_int ran;
} need;

static need *make_need(rlim_t limit)
{
    need *n = mmap(NULL, sizeof *n, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    CHECK(n != MAP_FAILED);
    n->limit = limit;
    name_job(n->job);
    return n;
}

static void open_three_hundred_groups(int rank, int size, void *arg)
{
    static const int all[] = { 0, 1, 2, 3 };
    const need *n = arg;
    struct rlimit before;
    rdl_world *world;
    int had;

    limit_descriptors(n->limit, &before);
    world = open_world(rank, size, n->job);
    had = n->limit > 16 ? rdl_test_descriptors() : 0;
    for (int i = 0; i < 300; i++) {
        char name[16];
        rdl_group group;

        snprintf(name, sizeof name, "%d", i % 150);
        CHECK_OK(rdl_group_open(world, all, 4, name, &group));
        rdl_check_digits(world, group, 1111);
        CHECK_OK(rdl_group_close(world, group));
    }
    CHECK_INT(n->limit > 16 ? rdl_test_descriptors() : 0, had);
    CHECK_OK(rdl_world_close(world));
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &before), 0);
}

RDL_TEST(groups_take_no_descriptors_and_sixteen_are_enough)
{
    static const rlim_t limits[] = { 1024, 64, 16 };

    for (int i = 0; i < 3; i++)
        rdl_test_processes(4, open_three_hundred_groups, make_need(limits[i]));
}

/* Either it runs, or a sentence names the limit; whoever meets no limit itself
 * hears of it from others, or at the start limit. */
static void open_with_few_descriptors(int rank, int size, void *arg)
{
    need *n = arg;
    rdl_world_options options = {
        .rank = rank, .size = size, .job = n->job, .start_timeout_ms = 3000
    };
    rdl_test_left left = rdl_test_left_now();
    struct rlimit before;
    rdl_world *world = NULL;
    rdl_status st;

    limit_descriptors(n->limit, &before);
    st = rdl_world_open(&options, &world);
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &before), 0);
    if (st == RDL_OK) {
        rdl_check_digits(world, RDL_WORLD, 111);
        atomic_fetch_add(&n->ran, 1);
        CHECK_OK(rdl_world_close(world));
    } else {
        CHECK(st == RDL_SYSTEM || st == RDL_TIMEOUT || st == RDL_PEER);
        atomic_fetch_add(&n->named,
                         strstr(rdl_error_detail(), "RLIMIT_NOFILE (ulimit -n) "
                                                    "is ") != NULL);
    }
    rdl_test_nothing_left(&left);
}

RDL_TEST(too_few_descriptors_are_a_sentence_that_names_the_limit)
{
    int most = 0;

    for (rlim_t limit = 3; limit <= 13; limit++) {
        need *n = make_need(limit);

        rdl_test_processes(3, open_with_few_descriptors, n);
        if (atomic_load(&n->ran) == 3)
            continue;
        CHECK_INT(atomic_load(&n->ran), 0);
        CHECK(atomic_load(&n->named) > 0);
        most = (int)limit;
    }
    printf("the largest limit that is too small: %d\n", most);
    CHECK(most >= 3);
}

/* --- address space --------------------------------------------------------- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LIMITS_OF_ADDRESS_SPACE false
#else
#define LIMITS_OF_ADDRESS_SPACE true
#endif

static void open_in_little_space(int rank, int size, void *arg)
{
    rdl_world_options options = {
        .rank = rank, .size = size, .job = arg, .start_timeout_ms = 20000
    };
    struct rlimit little = { (rlim_t)100 << 20, (rlim_t)100 << 20 };
    rdl_world *world = NULL;

    if (rank != 0) {
        CHECK_INT(setrlimit(RLIMIT_AS, &little), 0);
        CHECK_STATUS(rdl_world_open(&options, &world), RDL_NO_MEMORY);
        CHECK_HAS(rdl_error_detail(), "cannot map ");
        CHECK_HAS(rdl_error_detail(), "is RLIMIT_AS set?");
        return;
    }
    /* Who cannot map the arena says so in it all the same. */
    CHECK_STATUS(rdl_world_open(&options, &world), RDL_NO_MEMORY);
    CHECK_HAS(rdl_error_detail(), "rank 1: cannot map ");
}

RDL_TEST(too_little_address_space_is_a_sentence_on_every_rank)
{
    char job[64];
    pid_t pid[2];

    if (!LIMITS_OF_ADDRESS_SPACE)
        SKIP("a sanitizer wants all of the address space");
    name_job(job);
    pid[0] = rdl_test_start(0, 2, open_in_little_space, job);
    while (!rdl_puppet_name_is_held(job)) /* rank 0 keeps the job */
        usleep(1000);
    pid[1] = rdl_test_start(1, 2, open_in_little_space, job);
    CHECK_INT(rdl_test_wait(pid[1]), 0);
    CHECK_INT(rdl_test_wait(pid[0]), 0);
}

/* --- a sandbox ------------------------------------------------------------- */

/* H04: reading another process' memory is answered by error from here on. */
static void forbid_reading_others(int error)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = { .len = sizeof steps / sizeof *steps,
                                 .filter = steps };
    struct iovec nothing = { 0 };

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
        SKIP("no filter of system calls: %s", strerror(errno));
    CHECK_INT(process_vm_readv(getpid(), &nothing, 1, &nothing, 1, 0), -1);
    CHECK_INT(errno, error);
}

typedef struct sandbox {
    char job[64];
    int error;
} sandbox;

static void send_a_long_message(int rank, int size, void *arg)
{
    enum { N = 120240 };
    const sandbox *s = arg;
    int32_t *x = calloc(N, sizeof *x);
    rdl_world *world;
    int64_t sum = 0;

    CHECK(x != NULL);
    forbid_reading_others(s->error);
    world = open_world(rank, size, s->job);
    for (int i = 0; rank == 0 && i < N; i++)
        x[i] = i;
    CHECK_OK(rank == 0
                 ? rdl_send(world, RDL_WORLD, x, N, RDL_INT32, 1, NULL)
                 : rdl_receive(world, RDL_WORLD, x, N, RDL_INT32, 0, NULL));
    for (int i = 0; i < N; i++)
        sum += x[i];
    CHECK_INT(sum, 7228768680);
    CHECK_OK(rdl_world_close(world));
    free(x);
}

RDL_TEST(a_long_message_arrives_where_reading_others_is_forbidden)
{
    sandbox s[] = { { .error = EPERM }, { .error = ENOSYS } };

    for (int i = 0; i < 2; i++) {
        name_job(s[i].job);
        rdl_test_processes(2, send_a_long_message, &s[i]);
    }
}

/* --- more ranks than cores ------------------------------------------------- */

/* H08 */
static void meet_on_two_cores(rdl_world *world, void *arg)
{
    (void)arg;
    for (int i = 0; i < 1000; i++)
        CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    for (int i = 0; i < 1000; i++) {
        int64_t x = rdl_world_rank(world) + 1;

        CHECK_OK(rdl_all_reduce(world, RDL_WORLD, &x, &x, 1, RDL_INT64, RDL_SUM,
                                NULL));
        CHECK_INT(x, 136);
    }
}

static void pin_to_two_cores(void)
{
    cpu_set_t allowed, two;

    CHECK_INT(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    CPU_ZERO(&two);
    for (size_t cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&two) < 2; cpu++)
        if (CPU_ISSET(cpu, &allowed))
            CPU_SET(cpu, &two);
    CHECK_INT(sched_setaffinity(0, sizeof two, &two), 0);
}

RDL_TEST(sixteen_ranks_meet_on_two_cores)
{
    rdl_test_job job = { .size = 16 };

    pin_to_two_cores();
    rdl_test_worlds(&job, meet_on_two_cores, NULL);
    job.processes = true;
    rdl_test_worlds(&job, meet_on_two_cores, NULL);
}

/* The rest of H08. */
static double cpu_seconds(void)
{
    struct rusage use;

    CHECK_INT(getrusage(RUSAGE_SELF, &use), 0);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

static void wait_for_five_seconds(rdl_world *world, void *arg)
{
    bool late = rdl_world_rank(world) == rdl_world_size(world) - 1;
    double before;

    (void)arg;
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    before = cpu_seconds();
    if (late)
        sleep(5);
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    CHECK(cpu_seconds() - before < 1);
    rdl_check_digits(world, RDL_WORLD, 1111);
}

static void wait_by(const char *how)
{
    rdl_test_job job = { .size = 4, .processes = true };

    if (how != NULL)
        CHECK_INT(setenv("RADDLE_WAIT", how, 1), 0);
    rdl_test_worlds(&job, wait_for_five_seconds, NULL);
}

RDL_TEST(a_rank_that_waits_five_seconds_uses_less_than_one_of_its_core)
{
    wait_by(NULL);
}

RDL_TEST(a_rank_that_was_told_to_spin_sleeps_after_it)
{
    wait_by("1000,10");
}

static void sum_often(rdl_world *world, void *arg)
{
    (void)arg;
    for (int i = 0; i < 100; i++)
        rdl_check_digits(world, RDL_WORLD, 111);
}

RDL_TEST(sums_are_right_however_ranks_wait)
{
    static const char *const ways[] = { "spin", "yield", "sleep", "0,0",
                                        "2000,50" };

    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        rdl_test_job job = { .size = 3 };

        CHECK_INT(setenv("RADDLE_WAIT", ways[i], 1), 0);
        rdl_test_worlds(&job, sum_often, NULL);
        job.processes = true;
        rdl_test_worlds(&job, sum_often, NULL);
    }
}
