/* Programs for the scripts of this folder, which start them as ranks: each is a
 * body, and alone, as a world of one, passes. What the library says goes to
 * standard error, and the rank ends with 1. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/test.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <raddle/collective.h>
#include <raddle/group.h>
#include <raddle/world.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define COUNT 409600

static float numbers[COUNT];

/* Where the rank's number does not count, a world of one does the same. */
static rdl_world *join(void)
{
    rdl_world *world;

    CHECK_OK(rdl_world_open(NULL, &world));
    return world;
}

static void leave(rdl_world *world, rdl_status st)
{
    if (st != RDL_OK) {
        fprintf(stderr, "%s\n", rdl_error_detail());
        _exit(1);
    }
    CHECK_OK(rdl_world_close(world));
}

static rdl_status sum(rdl_world *world, rdl_group group, size_t count)
{
    return rdl_all_reduce(world, group, numbers, numbers, count, RDL_FLOAT32,
                          RDL_SUM, NULL);
}

/* H09 */
RDL_TEST(rank_0_sums_two_numbers_more)
{
    rdl_world *world = join();

    leave(world,
          sum(world, RDL_WORLD, rdl_world_rank(world) == 0 ? COUNT : COUNT - 2));
}

/* H14 f */
RDL_TEST(rank_2_stops_before_the_sum)
{
    rdl_world *world = join();

    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    if (rdl_world_rank(world) == 2)
        kill(getpid(), SIGSTOP);
    leave(world, sum(world, RDL_WORLD, 8));
}

RDL_TEST(rank_1_idles_instead_of_the_sum)
{
    rdl_world *world = join();

    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    if (rdl_world_rank(world) == 1)
        pause();
    leave(world, sum(world, RDL_WORLD, 8));
}

/* It ends after those that it told by leaving. */
RDL_TEST(rank_1_leaves_and_then_fails)
{
    rdl_world *world = join();

    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    if (rdl_world_rank(world) == 1) {
        CHECK_OK(rdl_world_close(world));
        usleep(300 * 1000);
        _exit(4);
    }
    leave(world, sum(world, RDL_WORLD, 8));
}

/* The command in START, and all that it starts, may not trace. */
RDL_TEST(what_is_started_may_not_trace)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof filter / sizeof *filter, filter };
    const char *start = getenv("START");

    if (start == NULL)
        return;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        SKIP("no filter of system calls");
    execl("/bin/sh", "sh", "-c", start, (char *)NULL);
}

/* Sums a mebibyte, for ever if FOREVER is set; then the digits of who takes part. */
RDL_TEST(all_sum_a_mebibyte)
{
    static float mebibyte[1 << 18];
    rdl_world *world = join();
    int64_t digit = 1, digits = 0;
    rdl_status st = RDL_OK;

    for (int i = 0; st == RDL_OK && (i < 3 || getenv("FOREVER") != NULL); i++)
        st = rdl_all_reduce(world, RDL_WORLD, mebibyte, mebibyte, 1 << 18,
                            RDL_FLOAT32, RDL_SUM, NULL);
    for (int r = 0; r < rdl_world_rank(world); r++)
        digit *= 10;
    if (st == RDL_OK)
        st = rdl_all_reduce(world, RDL_WORLD, &digit, &digits, 1, RDL_INT64,
                            RDL_SUM, NULL);
    printf("%lld\n", (long long)digits);
    leave(world, st);
}

/* As HOW says: a status, or the name of a signal. */
static void end_as_told(void)
{
    const char *how = getenv("HOW");

    if (how != NULL && how[0] == 'S')
        raise(how[3] == 'S' ? SIGSEGV : SIGKILL);
    _exit(how != NULL ? atoi(how) : 0);
}

/* H12: connections of a group would be made at its first use. */
RDL_TEST(rank_0_ends_before_the_first_use_of_a_group)
{
    rdl_world *world = join();
    int ranks[] = { 0, 1 }, size = rdl_world_size(world);
    rdl_group group;

    CHECK_OK(rdl_group_open(world, ranks, size < 2 ? size : 2, "pair", &group));
    CHECK_OK(rdl_barrier(world, RDL_WORLD, NULL));
    if (rdl_world_rank(world) == 0 && size > 1)
        end_as_told();
    leave(world, sum(world, group, 8));
}
