/* Control groups: which folders are visited, in the layouts that systems have. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/cgroup.h"

#include "base/fault.h"
#include "support/test.h"
#include "support/tree.h"

#include <errno.h>

/* The folders that were visited, "VERSION FOLDER" a line. */
typedef struct visits {
    char text[16384];
    int left; /* visits until one fails; 0: none does */
} visits;

static rdl_status visit(const rdl_cgroup *group, void *arg)
{
    visits *v = arg;
    size_t length = strlen(v->text);

    snprintf(v->text + length, sizeof v->text - length, "%d %s\n",
             group->version, group->folder);
    if (v->left != 0 && --v->left == 0)
        return rdl_fail(RDL_FORMAT, "enough");
    return RDL_OK;
}

static void check_visits(const char *cgroup, const char *mountinfo,
                         const char *controller, const char *expected)
{
    test_tree t = tree_open();
    visits v = { 0 };

    if (cgroup != NULL)
        tree_put(&t, "/proc/self/cgroup", cgroup);
    if (mountinfo != NULL)
        tree_put(&t, "/proc/self/mountinfo", mountinfo);
    CHECK_OK(rdl_cgroup_walk(t.root, controller, visit, &v));
    CHECK_TEXT(v.text, expected);
    tree_close(&t);
}

#define MOUNTS_2                                                               \
    "23 1 8:1 / / rw,relatime shared:1 - ext4 /dev/root rw\n"                  \
    "31 23 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n"

RDL_TEST(a_tree_of_version_2_is_walked_up_to_its_mount_point)
{
    check_visits("0::/user.slice/job/rank\n", MOUNTS_2, "memory",
                 "2 /sys/fs/cgroup/user.slice/job/rank\n"
                 "2 /sys/fs/cgroup/user.slice/job\n"
                 "2 /sys/fs/cgroup/user.slice\n"
                 "2 /sys/fs/cgroup\n");
    check_visits("0::/\n", MOUNTS_2, "memory", "2 /sys/fs/cgroup\n");
}

#define MOUNTS_1                                                               \
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"               \
    "32 31 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"        \
    "33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw shared:4 master:2 - cgroup "   \
    "cgroup rw,cpu,cpuacct\n"                                                  \
    "34 31 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"        \
    "35 31 0:32 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n"
#define GROUPS_1                                                               \
    "9:name=systemd:/\n4:cpu,cpuacct:/a/b\n3:cpuset:/set\n2:memory:/m\n"

RDL_TEST(a_tree_of_version_1_is_that_of_its_controller)
{
    check_visits(GROUPS_1, MOUNTS_1, "cpu",
                 "1 /sys/fs/cgroup/cpu,cpuacct/a/b\n"
                 "1 /sys/fs/cgroup/cpu,cpuacct/a\n"
                 "1 /sys/fs/cgroup/cpu,cpuacct\n");
    check_visits(GROUPS_1, MOUNTS_1, "memory",
                 "1 /sys/fs/cgroup/memory/m\n1 /sys/fs/cgroup/memory\n");
    check_visits(GROUPS_1, MOUNTS_1, "set", "");
}

RDL_TEST(both_versions_at_once_are_both_walked)
{
    check_visits(
        GROUPS_1 "0::/c\n",
        MOUNTS_1
        "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
        "memory",
        "1 /sys/fs/cgroup/memory/m\n1 /sys/fs/cgroup/memory\n"
        "2 /sys/fs/cgroup/unified/c\n2 /sys/fs/cgroup/unified\n");
}

RDL_TEST(a_mount_that_shows_a_part_of_the_tree_is_walked_from_there)
{
    const char *mount =
        "34 31 0:31 /docker/7 /sys/fs/cgroup/memory ro - cgroup cgroup "
        "rw,memory\n";

    check_visits("2:memory:/docker/7/x\n", mount, "memory",
                 "1 /sys/fs/cgroup/memory/x\n1 /sys/fs/cgroup/memory\n");
    check_visits("2:memory:/docker/7\n", mount, "memory",
                 "1 /sys/fs/cgroup/memory\n");
}

RDL_TEST(a_group_outside_of_the_mount_is_stood_for_by_the_mount_point)
{
    const char *mount =
        "34 31 0:31 /docker/7 /sys/fs/cgroup/memory ro - cgroup cgroup "
        "rw,memory\n";

    check_visits("2:memory:/\n", mount, "memory", "1 /sys/fs/cgroup/memory\n");
    check_visits("2:memory:/docker/77\n", mount, "memory",
                 "1 /sys/fs/cgroup/memory\n");
    check_visits("0::/../other\n", MOUNTS_2, "memory", "2 /sys/fs/cgroup\n");
    check_visits("0::/..\n", MOUNTS_2, "memory", "2 /sys/fs/cgroup\n");
    check_visits("0::/..a/b..\n", MOUNTS_2, "memory",
                 "2 /sys/fs/cgroup/..a/b..\n2 /sys/fs/cgroup/..a\n"
                 "2 /sys/fs/cgroup\n");
}

RDL_TEST(of_several_mounts_the_first_that_shows_the_group_is_taken)
{
    check_visits("0::/job/a\n",
                 "30 23 0:27 /else /one rw - cgroup2 cgroup2 rw\n"
                 "31 23 0:27 /job /two rw - cgroup2 cgroup2 rw\n"
                 "32 23 0:27 / /three rw - cgroup2 cgroup2 rw\n",
                 "cpu", "2 /two/a\n2 /two\n");
}

RDL_TEST(a_space_in_a_mount_point_is_a_space)
{
    check_visits("0::/a b\n",
                 "31 23 0:27 / /cg\\040here\\134\\999 rw - cgroup2 none rw\n",
                 "cpu", "2 /cg here\\\\999/a b\n2 /cg here\\\\999\n");
}

RDL_TEST(what_is_missing_or_not_understood_is_passed_over)
{
    check_visits(NULL, NULL, "memory", "");
    check_visits("0::/a\n", NULL, "memory", "");
    check_visits(NULL, MOUNTS_2, "memory", "");
    check_visits("", "", "memory", "");
    check_visits("0\n0:\n\n::\n:::\n7:memory\n", MOUNTS_2 MOUNTS_1, "memory",
                 "");
    check_visits("0::/a\n",
                 "\n \n31\n31 23 0:27 / /x\n31 23 0:27 / /x rw - cgroup2\n"
                 "31 23 0:27 / /x rw - cgroup2 none\n"
                 "31 23 0:27 / /x rw cgroup2 none rw\n",
                 "memory", "");
    check_visits("0::/a", MOUNTS_2, "memory", ""); /* the line is cut off */
}

RDL_TEST(a_line_that_is_too_long_does_not_hide_the_next)
{
    static char mounts[70000];

    memset(mounts, 'x', 60000);
    snprintf(mounts + 60000, sizeof mounts - 60000, "\n%s", MOUNTS_2);
    check_visits("0::/a\n", mounts, "memory",
                 "2 /sys/fs/cgroup/a\n2 /sys/fs/cgroup\n");
}

RDL_TEST(random_bytes_do_no_harm)
{
    static const char *const pieces[] = {
        "0:", ":",  "/a",  "/..",         "/",      "\\040",
        "\\", " ",  " - ", "cgroup2",     "cgroup", "memory",
        ",",  "rw", "\n",  "31 23 0:27 ", "\xff",   "9",
    };
    uint64_t state = rdl_test_seed();

    for (int i = 0; i < 200; i++) {
        char text[2][2048] = { "", "" };
        test_tree t = tree_open();
        visits v = { 0 };

        for (int k = 0; k < 2; k++)
            for (int n = 0; n < 120; n++)
                strcat(text[k], pieces[rdl_test_random(&state) %
                                       (sizeof pieces / sizeof pieces[0])]);
        tree_put(&t, "/proc/self/cgroup", text[0]);
        tree_put(&t, "/proc/self/mountinfo", text[1]);
        CHECK_OK(rdl_cgroup_walk(t.root, "memory", visit, &v));
        tree_close(&t);
    }
}

RDL_TEST(a_failed_visit_ends_the_walk)
{
    test_tree t = tree_open();
    visits v = { .left = 2 };

    tree_put(&t, "/proc/self/cgroup", "0::/a/b\n");
    tree_put(&t, "/proc/self/mountinfo", MOUNTS_2);
    CHECK_STATUS(rdl_cgroup_walk(t.root, "cpu", visit, &v), RDL_FORMAT);
    CHECK_TEXT(v.text, "2 /sys/fs/cgroup/a/b\n2 /sys/fs/cgroup/a\n");
    tree_close(&t);
}

#ifdef RDL_FAULTS
RDL_TEST(each_missing_descriptor_is_a_failure_with_a_sentence)
{
    visits v = { 0 };

    for (long n = 1;; n++) {
        rdl_fault plan = { .os_at = n };
        rdl_status st;

        rdl_fault_use(&plan);
        st = rdl_cgroup_walk("", "memory", visit, &v);
        rdl_fault_use(NULL);
        if (!plan.fired)
            break;
        CHECK_STATUS(st, RDL_SYSTEM);
        CHECK_HAS(rdl_error_detail(), "/proc/self/");
        CHECK_HAS(rdl_error_detail(), "EMFILE");
    }
}
#endif
