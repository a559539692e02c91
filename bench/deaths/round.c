/* One round: ranks in processes, what is done to them, and what they saw. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "deaths.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS INT64_C(1000000)
#define START_MS 30000 /* all make calls by then */
#define END_MS 30000   /* and all have ended, from what was done to them */
#define MOMENT_US 30000
#define ODD_CALLS 40

typedef struct job {
    const deaths_round *round;
    deaths_board *board;
    char board_path[64];
    char program[PATH_MAX];
    char command[PATH_MAX + 32];       /* raddle */
    pid_t children[DEATHS_RANKS_MOST]; /* the launcher alone, or the ranks */
    int started;
    int victim;
    rdl_time since; /* what was done */
} job;

static bool give_up(deaths_result *result, const char *what)
{
    snprintf(result->sentence, sizeof result->sentence, "%s: %s", what,
             strerror(errno));
    return false;
}

/* --- processes ------------------------------------------------------------- */

static void be_quiet(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null >= 0) {
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
    }
}

static void set_number(const char *name, int number)
{
    char text[16];

    snprintf(text, sizeof text, "%d", number);
    setenv(name, text, 1);
}

/* As torchrun starts it. */
static void become_rank(job *j, int rank)
{
    char *argv[] = { j->program, DEATHS_RANK, j->board_path, NULL };
    char name[64];

    snprintf(name, sizeof name, "deaths-%d-%llu", (int)getppid(),
             (unsigned long long)j->round->seed);
    setenv("RADDLE_JOB", name, 1);
    set_number("RANK", rank);
    set_number("WORLD_SIZE", j->round->ranks);
    set_number("LOCAL_WORLD_SIZE", j->round->ranks);
    execv(j->program, argv);
    _exit(127);
}

static void become_launcher(job *j)
{
    char ranks[16];
    char *argv[] = { j->command, "run",       "-n",          ranks, "--",
                     j->program, DEATHS_RANK, j->board_path, NULL };

    snprintf(ranks, sizeof ranks, "%d", j->round->ranks);
    execv(j->command, argv);
    _exit(127);
}

static bool start_child(job *j)
{
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        be_quiet();
        if (j->round->arm->launched)
            become_launcher(j);
        become_rank(j, j->started);
    }
    j->children[j->started] = pid;
    j->started += pid > 0;
    return pid > 0;
}

static bool start_all(job *j)
{
    int children = j->round->arm->launched ? 1 : j->round->ranks;

    while (j->started < children)
        if (!start_child(j))
            return false;
    return true;
}

/* Reaps who has ended, which frees nobody who waits; how many still run. */
static int count_running(job *j)
{
    int running = 0;

    for (int i = 0; i < j->started; i++) {
        if (j->children[i] > 0 && waitpid(j->children[i], NULL, WNOHANG) != 0)
            j->children[i] = 0;
        running += j->children[i] > 0;
    }
    return running;
}

static void end_all(job *j)
{
    for (int i = 0; i < j->started; i++)
        if (j->children[i] > 0) {
            kill(j->children[i], SIGKILL);
            waitpid(j->children[i], NULL, 0);
        }
}

/* --- what is done to them -------------------------------------------------- */

static bool all_make_calls(const job *j)
{
    for (int rank = 0; rank < j->round->ranks; rank++)
        if (atomic_load(&j->board->reports[rank].calls) < 3)
            return false;
    return true;
}

static bool wait_for_calls(job *j)
{
    rdl_deadline deadline = rdl_deadline_after_ms(START_MS);

    while (!all_make_calls(j)) {
        if (rdl_deadline_passed(deadline) || count_running(j) < j->started)
            return false;
        rdl_sleep(MS);
    }
    return true;
}

static void kill_victim(job *j)
{
    uint64_t luck = j->round->seed;

    j->victim = (int)deaths_draw(&luck, (uint64_t)j->round->ranks);
    rdl_sleep((rdl_time)deaths_draw(&luck, MOMENT_US) * 1000);
    j->since = rdl_now();
    kill(atomic_load(&j->board->reports[j->victim].pid), SIGKILL);
}

static void plan_odd_call(job *j)
{
    uint64_t luck = j->round->seed;

    j->board->odd_call = -1;
    if (j->round->arm->kills)
        return;
    j->board->odd_rank = (int)deaths_draw(&luck, (uint64_t)j->round->ranks);
    j->board->odd_call = 3 + (int)deaths_draw(&luck, ODD_CALLS);
    j->victim = -1;
}

static bool wait_for_end(job *j)
{
    rdl_deadline deadline = rdl_deadline_after_ms(END_MS);

    while (count_running(j) > 0) {
        if (rdl_deadline_passed(deadline))
            return false;
        rdl_sleep(MS / 2);
    }
    return true;
}

/* --- what they saw --------------------------------------------------------- */

static rdl_time last_arrival(const job *j)
{
    rdl_time last = 0;

    for (int rank = 0; rank < j->round->ranks; rank++)
        if (j->board->reports[rank].entered > last)
            last = j->board->reports[rank].entered;
    return last;
}

static bool has_right_cause(const job *j, const deaths_report *r)
{
    char part[48];

    if (j->victim < 0)
        return r->status == RDL_MISMATCH;
    snprintf(part, sizeof part, "rank %d is gone", j->victim);
    return r->status == RDL_PEER && strstr(r->sentence, part) != NULL;
}

/* Compares rank's end with first's, and says how they differ. */
static void compare(const job *j, const deaths_report *first, int rank,
                    deaths_result *result)
{
    const deaths_report *r = &j->board->reports[rank];

    if (r->call == first->call && r->group == first->group &&
        has_right_cause(j, r))
        return;
    if (result->agreed)
        snprintf(result->sentence, sizeof result->sentence,
                 "rank %d at call %d of group %d, another at call %d of group "
                 "%d: %s",
                 rank, r->call, r->group, first->call, first->group,
                 r->sentence);
    result->agreed = false;
}

static bool read_board(const job *j, deaths_result *result)
{
    const deaths_report *first = NULL;
    rdl_time since = j->round->arm->kills ? j->since : last_arrival(j);
    rdl_time last = since;

    result->agreed = true;
    for (int rank = 0; rank < j->round->ranks; rank++) {
        const deaths_report *r = &j->board->reports[rank];

        if (rank == j->victim)
            continue;
        if (!atomic_load(&r->ended)) {
            errno = 0;
            return give_up(result, "a rank said nothing of its end");
        }
        first = first ? first : r;
        compare(j, first, rank, result);
        last = r->failed > last ? r->failed : last;
    }
    result->ms = (double)(last - since) / 1e6;
    return true;
}

/* --- a round --------------------------------------------------------------- */

/* The command stands beside the folder of this program, in a build and installed. */
static bool find_programs(job *j)
{
    static const char *const commands[] = { "../cli/raddle",
                                            "../../bin/raddle" };
    ssize_t n = readlink("/proc/self/exe", j->program, sizeof j->program - 1);

    if (n < 0)
        return false;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        int folder = (int)(strrchr(j->program, '/') - j->program);

        snprintf(j->command, sizeof j->command, "%.*s/%s", folder, j->program,
                 commands[i]);
        if (access(j->command, X_OK) == 0)
            return true;
    }
    return false;
}

static bool make_board(job *j, int *fd)
{
    *fd = memfd_create("deaths", MFD_CLOEXEC);
    if (*fd < 0 || ftruncate(*fd, sizeof *j->board) != 0)
        return false;
    j->board = mmap(NULL, sizeof *j->board, PROT_READ | PROT_WRITE, MAP_SHARED,
                    *fd, 0);
    snprintf(j->board_path, sizeof j->board_path, "/proc/%d/fd/%d",
             (int)getpid(), *fd);
    return j->board != MAP_FAILED;
}

static bool run_job(job *j, deaths_result *result)
{
    if (!start_all(j))
        return give_up(result, "no process");
    if (j->round->arm->kills) {
        if (!wait_for_calls(j))
            return give_up(result, "the ranks did not start");
        kill_victim(j);
    }
    if (!wait_for_end(j))
        return give_up(result, "the ranks did not end");
    return read_board(j, result);
}

bool deaths_run(const deaths_round *round, deaths_result *result)
{
    job j = { .round = round };
    bool good;
    int fd;

    *result = (deaths_result){ 0 };
    if (!find_programs(&j))
        return give_up(result, "the command is not beside this program");
    if (!make_board(&j, &fd)) {
        if (fd >= 0)
            close(fd);
        return give_up(result, "no memory");
    }
    j.board->seed = round->seed;
    plan_odd_call(&j);
    good = run_job(&j, result);
    end_all(&j);
    munmap(j.board, sizeof *j.board);
    close(fd);
    return good;
}
