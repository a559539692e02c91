/* Another user of the host at each end of a rendezvous, and at the processes of a
 * job: it cannot join, read, hold up or stop it, and who finds it where a raddle
 * should be says so.
 *
 * Ranks and the other are processes of two users that are nobody's; only root can
 * start them. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/puppet.h"
#include "support/worlds.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <raddle/launch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#define OURS 65532
#define OTHER 65534
#define LONG_MS 60000
#define PATIENCE_MS 20000

/* What the processes of a test share. */
typedef struct stage {
    char job[64];
    int sockets[2];        /* the launcher's, for its ranks */
    _Atomic int entered;   /* processes that may be attacked */
    _Atomic bool finished; /* the other has done all it would */
    pid_t pids[3];         /* two ranks and their launcher */
    int fds[3];            /* the arena's descriptor in each */
    char secret[64];       /* in the memory of each, at the same place */
} stage;

static stage *make_stage(void)
{
    stage *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    CHECK(s != MAP_FAILED);
    snprintf(s->job, sizeof s->job, "users-%d", (int)getpid());
    return s;
}

static void need_root(void)
{
    if (geteuid() != 0)
        SKIP("only root can start processes of two other users");
}

/* For good; what root had opened stays open. */
static void become(uid_t user)
{
    CHECK_INT(setgroups(0, NULL), 0);
    CHECK_INT(setresgid(user, user, user), 0);
    CHECK_INT(setresuid(user, user, user), 0);
    /* A change of user hides a process from all others; a login of that user, and
     * what it starts, is not hidden, and must be safe all the same. */
    CHECK_INT(prctl(PR_SET_DUMPABLE, 1), 0);
    CHECK_INT(prctl(PR_SET_PDEATHSIG, SIGKILL), 0);
}

static void wait_until(const _Atomic int *word, int value)
{
    rdl_deadline deadline = rdl_deadline_after_ms(PATIENCE_MS);

    while (atomic_load(word) < value) {
        CHECK(!rdl_deadline_passed(deadline));
        usleep(500);
    }
}

static void wait_for_the_other(const stage *s)
{
    rdl_deadline deadline = rdl_deadline_after_ms(PATIENCE_MS);

    while (!atomic_load(&s->finished)) {
        CHECK(!rdl_deadline_passed(deadline));
        usleep(500);
    }
}

/* --- the ends by hand ------------------------------------------------------ */

/* The name that our ranks meet at, as anybody can make it. */
static socklen_t our_address(const char *job, struct sockaddr_un *address)
{
    uint64_t hash = rdl_puppet_place(job, 0, 2).job;
    int n;

    *address = (struct sockaddr_un){ .sun_family = AF_UNIX };
    n = snprintf(address->sun_path + 1, sizeof address->sun_path - 1,
                 "raddle-%u-%016" PRIx64, OURS, hash);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int connect_to(const char *job)
{
    rdl_deadline deadline = rdl_deadline_after_ms(PATIENCE_MS);
    struct sockaddr_un address;
    socklen_t length = our_address(job, &address);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    CHECK(fd >= 0);
    while (connect(fd, (struct sockaddr *)&address, length) != 0) {
        CHECK_INT(errno, ECONNREFUSED);
        CHECK(!rdl_deadline_passed(deadline));
        usleep(1000);
    }
    return fd;
}

static int bind_name(const char *job)
{
    struct sockaddr_un address;
    socklen_t length = our_address(job, &address);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    CHECK(fd >= 0);
    CHECK_INT(bind(fd, (struct sockaddr *)&address, length), 0);
    return fd;
}

/* --- ranks of ours --------------------------------------------------------- */

static void join_and_sum(int rank, int size, const char *job)
{
    rdl_world_options options = {
        .rank = rank, .size = size, .job = job, .start_timeout_ms = LONG_MS
    };
    rdl_world *world;

    CHECK_OK(rdl_world_open(&options, &world));
    rdl_check_digits(world, RDL_WORLD, size == 2 ? 11 : 1111);
    CHECK_OK(rdl_world_close(world));
}

static void be_rank(int rank, int size, void *arg)
{
    const stage *s = arg;

    become(OURS);
    join_and_sum(rank, size, s->job);
}

static void open_in_vain(const char *job, int64_t limit_ms, rdl_status status)
{
    rdl_world_options options = {
        .rank = 0, .size = 2, .job = job, .start_timeout_ms = limit_ms
    };
    rdl_world *world = NULL;

    CHECK_STATUS(rdl_world_open(&options, &world), status);
    CHECK(world == NULL);
}

/* --- joining --------------------------------------------------------------- */

static void say_hello_as_other(int rank, int size, void *arg)
{
    const stage *s = arg;
    rdl_hello hello = rdl_puppet_hello(s->job, rank, size);
    rdl_answer answer;
    int socket, came = -1;
    rdl_status st;

    become(OTHER);
    socket = connect_to(s->job);
    st = rdl_message_send(socket, &hello, sizeof hello, -1);
    if (st == RDL_OK)
        st = rdl_message_receive(socket, &answer, sizeof answer, &came,
                                 rdl_deadline_after_ms(PATIENCE_MS));
    CHECK_INT(came, -1);
    /* Its hello is not even read; so the end may overtake the answer, or come before
     * the hello. */
    if (st != RDL_OK) {
        CHECK_STATUS(st, RDL_PEER);
        return;
    }
    CHECK_INT(answer.status, RDL_INVALID);
    CHECK_HAS(answer.text, "belongs to user 65534, not to us (65532)");
    close(socket);
}

RDL_TEST(another_user_with_a_right_hello_gets_no_arena_and_the_job_starts)
{
    stage *s;
    pid_t ranks[2];

    need_root();
    s = make_stage();
    ranks[0] = rdl_test_start(0, 2, be_rank, s);
    CHECK_INT(rdl_test_wait(rdl_test_start(1, 2, say_hello_as_other, s)), 0);
    ranks[1] = rdl_test_start(1, 2, be_rank, s);
    CHECK_INT(rdl_test_wait(ranks[0]), 0);
    CHECK_INT(rdl_test_wait(ranks[1]), 0);
}

/* --- connections without end ----------------------------------------------- */

#define FLOODS 3
#define HELD 100

/* Holds as many as it can, silently, and makes a new one for each that is closed. */
static void flood(int rank, int size, void *arg)
{
    const stage *s = arg;
    struct sockaddr_un address;
    socklen_t length = our_address(s->job, &address);
    int held[HELD];

    (void)rank, (void)size;
    become(OTHER);
    for (int i = 0; i < HELD; i++)
        held[i] = -1;
    for (int i = 0; !atomic_load(&s->finished); i = (i + 1) % HELD) {
        if (held[i] >= 0)
            close(held[i]);
        held[i] =
            socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        CHECK(held[i] >= 0);
        if (connect(held[i], (struct sockaddr *)&address, length) != 0)
            sched_yield();
    }
    _exit(0);
}

RDL_TEST(connections_of_another_user_without_end_do_not_keep_a_job_from_starting)
{
    pid_t floods[FLOODS], ranks[4];
    stage *s;

    need_root();
    s = make_stage();
    for (int i = 0; i < FLOODS; i++)
        floods[i] = rdl_test_start(i, FLOODS, flood, s);
    ranks[0] = rdl_test_start(0, 4, be_rank, s);
    usleep(200000); /* they have found the name by then */
    for (int rank = 1; rank < 4; rank++)
        ranks[rank] = rdl_test_start(rank, 4, be_rank, s);
    for (int rank = 0; rank < 4; rank++)
        CHECK_INT(rdl_test_wait(ranks[rank]), 0);
    atomic_store(&s->finished, true);
    for (int i = 0; i < FLOODS; i++)
        CHECK_INT(rdl_test_wait(floods[i]), 0);
}

/* --- the name -------------------------------------------------------------- */

/* First it listens and would answer, then it holds the name and does not. */
static void hold_the_name(int rank, int size, void *arg)
{
    stage *s = arg;
    char quiet[80];
    int loud, silent;

    (void)rank, (void)size;
    snprintf(quiet, sizeof quiet, "%s-quiet", s->job);
    become(OTHER);
    loud = bind_name(s->job);
    CHECK_INT(listen(loud, 64), 0);
    silent = bind_name(quiet);
    atomic_fetch_add(&s->entered, 1);
    wait_for_the_other(s);
    close(loud);
    close(silent);
    _exit(0);
}

static void find_the_name_held(int rank, int size, void *arg)
{
    const stage *s = arg;
    char name[80];

    (void)rank, (void)size;
    become(OURS);
    open_in_vain(s->job, LONG_MS, RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "belongs to user 65534, not to us (65532): "
                                  "it holds the name raddle-65532-");
    CHECK_HAS(rdl_error_detail(), "RADDLE_JOB");
    snprintf(name, sizeof name, "%s-quiet", s->job);
    open_in_vain(name, 300, RDL_TIMEOUT);
    CHECK_HAS(rdl_error_detail(), "whose name somebody holds");
    CHECK_HAS(rdl_error_detail(), "RADDLE_JOB");
}

/* The cure of these sentences; under `raddle run` there is no name. */
static void use_another_name(int rank, int size, void *arg)
{
    const stage *s = arg;
    char name[80];

    become(OURS);
    snprintf(name, sizeof name, "%s-nobody-guesses", s->job);
    join_and_sum(rank, size, name);
}

RDL_TEST(a_name_that_another_user_holds_is_not_trusted_and_another_name_works)
{
    stage *s;
    pid_t other;

    need_root();
    s = make_stage();
    other = rdl_test_start(0, 1, hold_the_name, s);
    wait_until(&s->entered, 1);
    CHECK_INT(rdl_test_wait(rdl_test_start(0, 2, find_the_name_held, s)), 0);
    rdl_test_processes(2, use_another_name, s);
    atomic_store(&s->finished, true);
    CHECK_INT(rdl_test_wait(other), 0);
}

/* --- RADDLE_FD ------------------------------------------------------------- */

static void set_place(int fd, int rank)
{
    char text[16];

    snprintf(text, sizeof text, "%d", fd);
    setenv("RADDLE_FD", text, 1);
    snprintf(text, sizeof text, "%d", rank);
    setenv("RADDLE_RANK", text, 1);
    setenv("RADDLE_WORLD_SIZE", "2", 1);
}

static void be_rank_of_a_forged_launcher(int rank, int size, void *arg)
{
    const stage *s = arg;
    rdl_world *world = NULL;

    (void)rank, (void)size;
    become(OURS);
    set_place(connect_to(s->job), 0);
    CHECK_STATUS(rdl_world_open(NULL, &world), RDL_INVALID);
    CHECK_HAS(rdl_error_detail(), "belongs to user 65534, not to us (65532)");
    CHECK(world == NULL);
}

RDL_TEST(a_launchers_socket_of_another_user_is_refused)
{
    stage *s;
    pid_t other;

    need_root();
    s = make_stage();
    other = rdl_test_start(0, 1, hold_the_name, s);
    wait_until(&s->entered, 1);
    CHECK_INT(
        rdl_test_wait(rdl_test_start(0, 2, be_rank_of_a_forged_launcher, s)), 0);
    atomic_store(&s->finished, true);
    CHECK_INT(rdl_test_wait(other), 0);
}

/* --- processes of a job ---------------------------------------------------- */

/* The descriptor of the arena in this process; -1: none. */
static int find_arena(void)
{
    for (int fd = 3; fd < 1024; fd++) {
        char path[64], target[64] = "";

        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        if (readlink(path, target, sizeof target - 1) > 0 &&
            strncmp(target, "/memfd:raddle", 13) == 0)
            return fd;
    }
    return -1;
}

/* Says where it is, and is there until the other has tried everything. */
static void show_oneself(stage *s, int place)
{
    s->pids[place] = getpid();
    s->fds[place] = find_arena();
    CHECK(s->fds[place] >= 0);
    atomic_fetch_add(&s->entered, 1);
}

static void be_rank_in_sight(int rank, int size, void *arg)
{
    stage *s = arg;
    rdl_world *world;

    (void)size;
    CHECK_INT(prctl(PR_SET_DUMPABLE, 1), 0);
    set_place(s->sockets[rank], rank);
    CHECK_OK(rdl_world_open(NULL, &world));
    show_oneself(s, rank);
    wait_for_the_other(s);
    rdl_check_digits(world, RDL_WORLD, 11);
    CHECK_OK(rdl_world_close(world));
}

static void launch_in_sight(int rank, int size, void *arg)
{
    stage *s = arg;
    rdl_job *job;
    pid_t ranks[2];
    bool shown = false;

    (void)rank, (void)size;
    become(OURS);
    CHECK_OK(rdl_job_create(2, &job));
    for (int r = 0; r < 2; r++) {
        s->sockets[r] = rdl_job_rank_fd(job, r);
        ranks[r] = rdl_test_start(r, 2, be_rank_in_sight, s);
        rdl_job_started(job, r);
    }
    while (!atomic_load(&s->finished)) {
        CHECK_OK(rdl_job_serve(job));
        if (!shown && find_arena() >= 0) {
            show_oneself(s, 2);
            shown = true;
        }
        usleep(500);
    }
    for (int r = 0; r < 2; r++)
        CHECK_INT(rdl_test_wait(ranks[r]), 0);
    rdl_job_destroy(job);
}

/* One who may can open it, so that the refusals below are about the user. */
static bool can_open(pid_t pid, const char *what, int flags)
{
    char path[128];
    int fd;

    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, what);
    fd = open(path, flags | O_CLOEXEC);
    if (fd < 0)
        CHECK(errno == EACCES || errno == EPERM);
    else
        close(fd);
    return fd >= 0;
}

static bool can_open_arena(const stage *s, int place)
{
    char what[32];

    snprintf(what, sizeof what, "fd/%d", s->fds[place]);
    return can_open(s->pids[place], what, O_RDWR) ||
           can_open(s->pids[place], what, O_RDONLY);
}

static bool can_read_memory(const stage *s, int place)
{
    char secret[sizeof s->secret];
    struct iovec here = { secret, sizeof secret };
    struct iovec there = { (void *)(uintptr_t)s->secret, sizeof secret };

    return process_vm_readv(s->pids[place], &here, 1, &there, 1, 0) > 0;
}

static bool can_write_memory(const stage *s, int place)
{
    char secret[sizeof s->secret] = "overwritten";
    struct iovec here = { secret, sizeof secret };
    struct iovec there = { (void *)(uintptr_t)s->secret, sizeof secret };

    return process_vm_writev(s->pids[place], &here, 1, &there, 1, 0) > 0;
}

static void attack(stage *s, int place)
{
    static const char *const files[] = { "mem", "environ", "maps", "map_files",
                                         "fd",  "stack",   "auxv" };
    pid_t pid = s->pids[place];

    CHECK(!can_open_arena(s, place));
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        CHECK(!can_open(pid, files[i], O_RDONLY));
    CHECK(!can_open(pid, "mem", O_RDWR));
    CHECK(!can_read_memory(s, place));
    CHECK_INT(errno, EPERM);
    CHECK(!can_write_memory(s, place));
    CHECK_INT(errno, EPERM);
    for (int signal = 0; signal < 32; signal++) {
        CHECK_INT(kill(pid, signal), -1);
        CHECK_INT(errno, EPERM);
    }
}

static void attack_as_other(int rank, int size, void *arg)
{
    (void)rank, (void)size;
    become(OTHER);
    /* Within a session anybody may continue anybody (SIGCONT). */
    CHECK(setsid() > 0);
    for (int place = 0; place < 3; place++)
        attack(arg, place);
}

/* The same ways lead there for who may. */
static void look_as_one_of_us(int rank, int size, void *arg)
{
    const stage *s = arg;

    (void)rank, (void)size;
    become(OURS);
    for (int place = 0; place < 3; place++) {
        CHECK(can_open_arena(s, place));
        CHECK_INT(kill(s->pids[place], 0), 0);
    }
}

RDL_TEST(another_user_cannot_open_read_write_or_signal_any_process_of_a_job)
{
    stage *s;
    pid_t launcher;

    need_root();
    s = make_stage();
    launcher = rdl_test_start(0, 1, launch_in_sight, s);
    wait_until(&s->entered, 3);
    CHECK_INT(rdl_test_wait(rdl_test_start(0, 1, look_as_one_of_us, s)), 0);
    CHECK_INT(rdl_test_wait(rdl_test_start(0, 1, attack_as_other, s)), 0);
    atomic_store(&s->finished, true);
    CHECK_INT(rdl_test_wait(launcher), 0);
}

RDL_TEST(an_arenas_file_has_a_mode_that_lets_nobody_else_open_it)
{
    struct stat st;
    int fd;

    CHECK_OK(rdl_arena_make(2, &fd));
    CHECK_INT(fstat(fd, &st), 0);
    CHECK_INT(st.st_mode & 07777, 0600);
    close(fd);
}
