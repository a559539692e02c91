/* Ranks that others than raddle started, by the variables that mpirun and srun set,
 * and ranks that meet at a path. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/left.h"
#include "support/worlds.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define RANKS 3

static void set_number(const char *name, int value)
{
    char text[16];

    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

static void sum_digits(int rank, int size)
{
    static const int64_t digits[] = { 0, 1, 11, 111 };
    rdl_world *world;

    CHECK_OK(rdl_world_open(NULL, &world));
    CHECK_INT(rdl_world_rank(world), rank);
    CHECK_INT(rdl_world_size(world), size);
    rdl_check_digits(world, RDL_WORLD, digits[size]);
    CHECK_OK(rdl_world_close(world));
}

/* --- variables ------------------------------------------------------------- */

/* Names of rank and size, and what else there is. */
typedef struct variables {
    const char *rank;
    const char *size;
    const char *also[3];
} variables;

static void join_by(int rank, int size, void *arg)
{
    const variables *v = arg;

    set_number(v->rank, rank);
    set_number(v->size, size);
    for (int i = 0; i < 3 && v->also[i] != NULL; i++)
        CHECK_INT(putenv((char *)(uintptr_t)v->also[i]), 0);
    sum_digits(rank, size);
}

RDL_TEST(ranks_of_mpirun_and_srun_meet)
{
    variables all[] = {
        { "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", { NULL } },
        { "PMI_RANK", "PMI_SIZE", { NULL } },
        { "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", { "SLURM_STEP_ID=0" } },
        { "SLURM_PROCID", "SLURM_NTASKS", { "SLURM_STEP_ID=1" } },
    };
    char job[64];

    snprintf(job, sizeof job, "meeting-%d", (int)getpid());
    setenv("SLURM_JOB_ID", job, 1);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        rdl_test_processes(RANKS, join_by, &all[i]);
}

/* The program that a real mpirun starts; alone it is a world of one. */
RDL_TEST(a_rank_of_any_launcher_sums_digits)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    const char *pmi = getenv("PMI_RANK");

    if (rank == NULL)
        rank = pmi;
    sum_digits(rank ? atoi(rank) : 0, rank ? RANKS : 1);
}

RDL_TEST(ranks_of_a_real_mpirun_meet)
{
    const char *build = getenv("RADDLE_BUILD");
    char line[1024];

    if (build == NULL || system("command -v mpirun >/dev/null 2>&1") != 0)
        SKIP("no mpirun is installed");
    /* Open MPI refuses root, and more ranks than cores, unless it is told. */
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
    snprintf(line, sizeof line,
             "mpirun -n %d '%s/tests/ranks/meeting' "
             "a_rank_of_any_launcher_sums_digits",
             RANKS, build);
    CHECK_INT(system(line), 0);
}

/* --- a path ---------------------------------------------------------------- */

/* A folder of this test's own, in which the socket is to be. */
typedef struct place {
    char folder[128];
    char path[160];
    bool apart; /* each rank in a network namespace of its own */
} place;

static place make_place(void)
{
    place p = { .apart = false };

    snprintf(p.folder, sizeof p.folder, "%s/raddle-meet-XXXXXX",
             rdl_test_temp());
    CHECK(mkdtemp(p.folder) != NULL);
    snprintf(p.path, sizeof p.path, "%s/socket", p.folder);
    setenv("RADDLE_SOCKET", p.path, 1);
    return p;
}

static void end_place(const place *p)
{
    CHECK_TEXT(rdl_test_list(p->folder, "").text, "");
    CHECK_INT(rmdir(p->folder), 0);
}

static void join_at_path(int rank, int size, void *arg)
{
    const place *p = arg;

    if (p->apart && unshare(CLONE_NEWNET) != 0)
        SKIP("no network namespace of our own: %s", strerror(errno));
    set_number("RANK", rank);
    set_number("WORLD_SIZE", size);
    sum_digits(rank, size);
    CHECK_INT(access(p->path, F_OK), -1);
}

RDL_TEST(ranks_meet_at_a_path_and_leave_nothing_there)
{
    place p = make_place();

    rdl_test_processes(RANKS, join_at_path, &p);
    rdl_test_processes(RANKS, join_at_path, &p);
    end_place(&p);
}

RDL_TEST(ranks_without_a_common_network_meet_at_a_path)
{
    place p = make_place();

    if (geteuid() != 0)
        SKIP("network namespaces want root");
    p.apart = true;
    rdl_test_processes(RANKS, join_at_path, &p);
    end_place(&p);
}

/* The first rank of a job that never becomes whole. */
static void wait_in_vain(int rank, int size, void *arg)
{
    rdl_world *world;

    (void)arg;
    set_number("RANK", rank);
    set_number("WORLD_SIZE", size);
    (void)!rdl_world_open(NULL, &world);
}

static void await_socket(const place *p)
{
    struct stat is = { .st_mode = 0 };

    while (lstat(p->path, &is) != 0)
        usleep(1000);
    CHECK(S_ISSOCK(is.st_mode));
    CHECK_INT(is.st_mode & 0777, 0600);
}

/* What SIGKILL leaves of a path, the next job takes away. */
RDL_TEST(a_socket_that_nobody_answers_is_replaced)
{
    place p = make_place();
    pid_t pid;

    umask(0);
    pid = rdl_test_start(0, 2, wait_in_vain, &p);
    await_socket(&p);
    kill(pid, SIGKILL);
    CHECK_INT(rdl_test_wait(pid), 128 + SIGKILL);
    CHECK_INT(access(p.path, F_OK), 0);
    rdl_test_processes(RANKS, join_at_path, &p);
    end_place(&p);
}

static void refuse_path(const char *path, rdl_status status,
                        const char *sentence)
{
    rdl_world *world = NULL;

    setenv("RADDLE_SOCKET", path, 1);
    set_number("RANK", 0);
    set_number("WORLD_SIZE", 2);
    setenv("RADDLE_START_TIMEOUT", "0.3", 1);
    CHECK_STATUS(rdl_world_open(NULL, &world), status);
    CHECK_HAS(rdl_error_detail(), sentence);
    CHECK(world == NULL);
}

RDL_TEST(a_path_where_no_socket_can_be_is_refused)
{
    place p = make_place();
    char below[200];
    FILE *file = fopen(p.path, "w");

    CHECK(file != NULL);
    fputs("precious", file);
    fclose(file);
    refuse_path(p.path, RDL_INVALID, "is there already, and is no socket");
    snprintf(below, sizeof below, "%s/below", p.path);
    refuse_path(below, RDL_SYSTEM, "cannot open its folder: Not a directory");
    CHECK_INT(unlink(p.path), 0);
    snprintf(below, sizeof below, "%s/not/there", p.folder);
    refuse_path(below, RDL_SYSTEM,
                "cannot open its folder: No such file or directory (ENOENT)");
    /* Where one could be, it waits, and takes its socket away. */
    refuse_path(p.path, RDL_TIMEOUT, "1 of 2 joined, missing rank 1");
    end_place(&p);
}
