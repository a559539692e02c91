/* SIGKILL of a rank, the launcher or the keeper at random moments: nothing of the
 * job is left, whatever stands between the launcher and the ranks and whatever
 * they have started.
 *
 * This process is a subreaper, so whoever of the job loses all its parents comes
 * to it: "no child is left" is then seen exactly. A marker in the environment
 * finds whoever might have got away all the same. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <raddle/collective.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RANKS 4
#define SUM 1111
#define LATEST_US 300000 /* the last moment to kill at, from the start */
#define START_US 20000   /* half of the moments lie before this one */
#define END_MS 10000     /* in which the job has ended */
#define SIGHT_MS 5000    /* in which the victim has been born */
#define TICK_MS 2

#define MARK "RADDLE_KILL_MARK"
#define FORKS "RADDLE_KILL_FORKS"

typedef enum victim_kind { RANK, LAUNCHER, KEEPER } victim_kind;

typedef enum rank_kind { PLAIN, BEHIND_SHELL, WITH_FORKS, KINDS } rank_kind;

static const char *const kind_names[] = { "plain", "behind a shell",
                                          "with forked children" };

/* --- the rank's program ---------------------------------------------------- */

_Noreturn static void stay(void)
{
    signal(SIGTERM, SIG_IGN);
    for (;;)
        pause();
}

/* Twice forked, in a session of its own: what a daemon does to get away. */
static void fork_daemon(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        setsid();
        if (fork() == 0)
            stay();
        _exit(0);
    }
    if (pid > 0)
        waitpid(pid, NULL, 0);
}

static void fork_children(void)
{
    for (int i = 0; i < 2; i++)
        if (fork() == 0)
            stay();
    fork_daemon();
}

static rdl_status sum_digits(rdl_world *world)
{
    static const int64_t digits[RANKS] = { 1, 10, 100, 1000 };
    int64_t mine = digits[rdl_world_rank(world)], sum = 0;
    rdl_status st = rdl_all_reduce(world, RDL_WORLD, &mine, &sum, 1, RDL_INT64,
                                   RDL_SUM, NULL);

    if (st == RDL_OK)
        CHECK_INT(sum, rdl_world_size(world) == RANKS ? SUM : 1);
    return st;
}

/* The program that the tests below start: alone it is a world of one. */
RDL_TEST(a_rank_sums_until_a_peer_is_gone)
{
    bool in_job = getenv("RADDLE_RANK") != NULL;
    rdl_world *world;
    rdl_status st = rdl_world_open(NULL, &world);

    if (in_job && st == RDL_PEER)
        _exit(3);
    CHECK_STATUS(st, RDL_OK);
    if (getenv(FORKS) != NULL)
        fork_children();
    for (int i = 0; st == RDL_OK && (in_job || i < 100); i++)
        st = sum_digits(world);
    if (in_job) {
        CHECK_STATUS(st, RDL_PEER);
        _exit(3);
    }
    CHECK_OK(rdl_world_close(world));
}

/* --- looking at processes -------------------------------------------------- */

static void sleep_ms(int ms)
{
    struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

    nanosleep(&t, NULL);
}

/* Zombies included; returns how many, most at most. */
static int children_of(pid_t pid, pid_t *children, int most)
{
    char path[64];
    FILE *file;
    int count = 0;

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    file = fopen(path, "re");
    while (file != NULL && count < most &&
           fscanf(file, "%d", &children[count]) == 1)
        count++;
    if (file != NULL)
        fclose(file);
    return count;
}

static bool environment_has(const char *pid, const char *text)
{
    char path[64], content[65536];
    ssize_t n;
    int fd;

    snprintf(path, sizeof path, "/proc/%.20s/environ", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    n = read(fd, content, sizeof content);
    close(fd);
    return n > 0 && memmem(content, (size_t)n, text, strlen(text)) != NULL;
}

/* The first process but this one that has the marker; 0: none. */
static int marked_process(const char *mark)
{
    DIR *folder = opendir("/proc");
    const struct dirent *d;
    char text[128];
    int found = 0;

    CHECK(folder != NULL);
    snprintf(text, sizeof text, MARK "=%s", mark);
    while (found == 0 && (d = readdir(folder)) != NULL)
        if (atoi(d->d_name) > 0 && atoi(d->d_name) != getpid() &&
            environment_has(d->d_name, text))
            found = atoi(d->d_name);
    closedir(folder);
    return found;
}

/* --- one round ------------------------------------------------------------- */

typedef struct job {
    rank_kind kind;
    victim_kind victim;
    int round;
    uint64_t seed;
    char mark[64];
    char folder[128]; /* its temporary one */
    pid_t launcher;
    int launcher_status; /* of waitpid, once it has ended */
    bool ended;
    int log; /* what it prints */
} job;

static void describe(const job *j, const char *what)
{
    char text[8192];
    ssize_t n = pread(j->log, text, sizeof text - 1, 0);
    rdl_test_names left;

    text[n > 0 ? n : 0] = '\0';
    left = rdl_test_descendants(getpid());
    /* Its keeper ends the rest. */
    if (!j->ended)
        kill(j->launcher, SIGKILL);
    RDL_TEST_FAIL(
        "%s\nround %d, seed %llu, ranks %s, victim %s, status %#x; it "
        "printed:\n%s\nprocesses:\n%s",
        what, j->round, (unsigned long long)j->seed, kind_names[j->kind],
        j->victim == RANK       ? "a rank"
        : j->victim == LAUNCHER ? "the launcher"
                                : "the keeper",
        (unsigned)j->launcher_status, text, left.text);
}

_Noreturn static void become_launcher(const job *j)
{
    const char *build = getenv("RADDLE_BUILD");
    char raddle[512], program[512], line[600];

    snprintf(raddle, sizeof raddle, "%s/cli/raddle", build);
    snprintf(program, sizeof program, "%s/tests/fault/kill", build);
    snprintf(line, sizeof line, "'%s' a_rank_sums_until_a_peer_is_gone; true",
             program);
    setenv(MARK, j->mark, 1);
    setenv("TMPDIR", j->folder, 1);
    if (j->kind == WITH_FORKS)
        setenv(FORKS, "1", 1);
    dup2(j->log, STDOUT_FILENO);
    dup2(j->log, STDERR_FILENO);
    if (j->kind == BEHIND_SHELL)
        execl(raddle, raddle, "run", "-n", "4", "sh", "-c", line, NULL);
    else
        execl(raddle, raddle, "run", "-n", "4", program,
              "a_rank_sums_until_a_peer_is_gone", NULL);
    _exit(99);
}

/* Reaps the launcher if it has ended, and orphans. True while any child is
 * there. */
static bool reap(job *j)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        if (pid == j->launcher) {
            j->launcher_status = status;
            j->ended = true;
        }
    return pid == 0;
}

/* The launcher's only child; 0 if there is none yet. */
static pid_t find_keeper(const job *j)
{
    pid_t child;

    return children_of(j->launcher, &child, 1) == 1 ? child : 0;
}

/* One of the ranks, or, behind a shell, at times the program itself. Daemons are
 * the keeper's children too, and no ranks. */
static pid_t find_rank(const job *j, uint64_t *random)
{
    pid_t children[4 * RANKS], program, keeper = find_keeper(j);
    int count = keeper > 0 ? children_of(keeper, children, 4 * RANKS) : 0;
    pid_t pid;

    if (count == 0)
        return 0;
    pid = children[rdl_test_random(random) % (uint64_t)count];
    if (getsid(pid) != getsid(0))
        return 0;
    if (j->kind == BEHIND_SHELL && rdl_test_random(random) % 2 == 0 &&
        children_of(pid, &program, 1) == 1)
        return program;
    return pid;
}

static pid_t find_victim(const job *j, uint64_t *random)
{
    if (j->victim == LAUNCHER)
        return j->launcher;
    return j->victim == KEEPER ? find_keeper(j) : find_rank(j, random);
}

/* The victim may not have been born at that moment: then it dies at birth. */
static void kill_victim(job *j, uint64_t *random)
{
    uint64_t latest = rdl_test_random(random) % 2 ? LATEST_US : START_US;
    pid_t pid = 0;

    usleep((useconds_t)(rdl_test_random(random) % latest));
    for (int ms = 0; pid == 0; ms++) {
        pid = find_victim(j, random);
        if (pid == 0 && ms >= SIGHT_MS)
            describe(j, "the victim was not found");
        if (pid == 0)
            sleep_ms(1);
    }
    if (kill(pid, SIGKILL) != 0)
        describe(j, "the victim was gone");
}

static void wait_for_end(job *j)
{
    int ms = 0;

    while (reap(j) && ms < END_MS) {
        sleep_ms(TICK_MS);
        ms += TICK_MS;
    }
    if (ms >= END_MS)
        describe(j, "a process was left after 10 s");
    if (marked_process(j->mark) != 0)
        describe(j, "a process with the marker was left");
}

static void check_ending(const job *j)
{
    int status = j->launcher_status;
    char text[8192] = "";

    if (pread(j->log, text, sizeof text - 1, 0) < 0)
        describe(j, "the log cannot be read");
    if (j->victim == LAUNCHER) {
        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
            describe(j, "the launcher did not die of SIGKILL");
        if (strstr(text, "raddle run:") != NULL)
            describe(j, "the keeper was not silent");
        return;
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) == 0)
        describe(j, "the exit status shows no failure");
    if (strstr(text, j->victim == KEEPER ? "raddle run: the keeper of the job"
                                         : " failed first: ") == NULL)
        describe(j, "the failure is not named");
    if ((j->victim == KEEPER || j->kind != BEHIND_SHELL) &&
        WEXITSTATUS(status) != 128 + SIGKILL)
        describe(j, "the exit status is not 137");
}

static void check_traces(const job *j, const rdl_test_names *shm_before)
{
    rdl_test_names shm = rdl_test_list("/dev/shm", "");

    CHECK_TEXT(rdl_test_list(j->folder, "").text, "");
    CHECK_TEXT(shm.text, shm_before->text);
}

static void play_round(rank_kind kind, victim_kind victim, int round,
                       uint64_t *random)
{
    job j = { .kind = kind, .victim = victim, .round = round, .seed = *random };
    rdl_test_names shm = rdl_test_list("/dev/shm", "");

    snprintf(j.mark, sizeof j.mark, "%d.%d.%d.%d", (int)getpid(), kind, victim,
             round);
    snprintf(j.folder, sizeof j.folder, "%s/raddle-kill-XXXXXX",
             rdl_test_temp());
    CHECK(mkdtemp(j.folder) != NULL);
    j.log = memfd_create("log", MFD_CLOEXEC);
    CHECK(j.log >= 0);
    fcntl(j.log, F_SETFL, O_APPEND);
    j.launcher = fork();
    if (j.launcher == 0)
        become_launcher(&j);
    CHECK(j.launcher > 0);
    kill_victim(&j, random);
    wait_for_end(&j);
    check_ending(&j);
    check_traces(&j, &shm);
    close(j.log);
    rmdir(j.folder);
}

static void kill_many(victim_kind victim)
{
    int rounds = rdl_test_soak() ? 50 : 1;
    uint64_t random = rdl_test_seed();

    if (getenv("RADDLE_BUILD") == NULL)
        SKIP("RADDLE_BUILD, the folder with the command, is not set");
    CHECK_INT(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    for (int round = 0; round < rounds; round++)
        for (rank_kind k = PLAIN; k < KINDS; k++)
            play_round(k, victim, round, &random);
}

RDL_TEST(a_killed_rank_leaves_nothing_and_is_named)
{
    kill_many(RANK);
}

RDL_TEST(a_killed_launcher_leaves_nothing)
{
    kill_many(LAUNCHER);
}

RDL_TEST(a_killed_keeper_leaves_nothing_and_is_named)
{
    kill_many(KEEPER);
}
