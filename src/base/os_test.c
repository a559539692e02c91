/* What the system tells of other processes. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/os.h"

#include "support/test.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void be_idle(int rank, int size, void *arg)
{
    (void)rank, (void)size, (void)arg;
    for (;;)
        pause();
}

/* The child as others know it: read from within. */
static void describe_self(int rank, int size, void *arg)
{
    int *fds = arg;
    rdl_process self;

    CHECK_OK(rdl_process_self(&self));
    CHECK_INT(write(fds[1], &self, sizeof self), (int)sizeof self);
    be_idle(rank, size, arg);
}

static rdl_process start_idler(void)
{
    rdl_process child;
    int fds[2];

    if (rdl_test_emulated())
        SKIP("the emulator has its own /proc/self/stat");
    CHECK_INT(pipe(fds), 0);
    rdl_test_start(0, 1, describe_self, fds);
    CHECK_INT(read(fds[0], &child, sizeof child), (int)sizeof child);
    close(fds[0]);
    close(fds[1]);
    return child;
}

RDL_TEST(a_process_is_seen_to_stop_and_to_go_on)
{
    rdl_process self, child = start_idler();
    pid_t pid = (pid_t)child.pid;
    int status;

    CHECK_OK(rdl_process_self(&self));
    CHECK_INT(rdl_process_condition(&self, &child), RDL_GOES_ON);
    kill(pid, SIGSTOP);
    CHECK_INT(waitpid(pid, &status, WUNTRACED), pid);
    CHECK_INT(rdl_process_condition(&self, &child), RDL_STOPPED);
    CHECK_INT(rdl_process_liveness(&self, &child), RDL_ALIVE);
    kill(pid, SIGCONT);
    CHECK_INT(waitpid(pid, &status, WCONTINUED), pid);
    CHECK_INT(rdl_process_condition(&self, &child), RDL_GOES_ON);
    kill(pid, SIGKILL);
    CHECK_INT(rdl_test_wait(pid), 128 + SIGKILL);
    CHECK_INT(rdl_process_condition(&self, &child), RDL_GOES_ON);
}

/* Numbers of another namespace, or of a process before it, are not looked at. */
RDL_TEST(a_process_that_is_not_that_one_says_nothing_of_it)
{
    rdl_process self, child = start_idler(), other = child;
    int status;

    CHECK_OK(rdl_process_self(&self));
    kill((pid_t)child.pid, SIGSTOP);
    CHECK_INT(waitpid((pid_t)child.pid, &status, WUNTRACED), (pid_t)child.pid);
    other.pid_namespace++;
    CHECK_INT(rdl_process_condition(&self, &other), RDL_GOES_ON);
    other = child;
    other.started++;
    CHECK_INT(rdl_process_condition(&self, &other), RDL_GOES_ON);
    CHECK_INT(rdl_process_condition(&self, &self), RDL_GOES_ON);
    kill((pid_t)child.pid, SIGKILL);
    CHECK_INT(rdl_test_wait((pid_t)child.pid), 128 + SIGKILL);
}

/* --- a core ---------------------------------------------------------------- */

#define CORE_BYTES ((size_t)192 << 20)

static void crash(int rank, int size, void *arg)
{
    int *fds = arg;
    struct rlimit limit;
    unsigned char *memory = malloc(CORE_BYTES);
    rdl_process self;

    (void)rank, (void)size;
    CHECK(memory != NULL);
    memset(memory, 1, CORE_BYTES);
    CHECK_INT(getrlimit(RLIMIT_CORE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    CHECK_INT(setrlimit(RLIMIT_CORE, &limit), 0);
    CHECK_OK(rdl_process_self(&self));
    CHECK_INT(write(fds[1], &self, sizeof self), (int)sizeof self);
    signal(SIGABRT, SIG_DFL);
    abort();
}

/* Whether it was seen to write its core before it was gone. */
static bool was_seen_dumping(const rdl_process *child)
{
    rdl_process self;
    int status;

    CHECK_OK(rdl_process_self(&self));
    for (;;) {
        rdl_condition is = rdl_process_condition(&self, child);

        if (waitpid((pid_t)child->pid, &status, WNOHANG) != 0)
            return false;
        if (is == RDL_DUMPING)
            return true;
    }
}

RDL_TEST(a_process_is_seen_to_write_its_core)
{
    char folder[128];
    rdl_process child;
    int fds[2], status;
    bool seen;

    snprintf(folder, sizeof folder, "%s/raddle-core-XXXXXX", rdl_test_temp());
    CHECK(mkdtemp(folder) != NULL);
    CHECK_INT(chdir(folder), 0);
    CHECK_INT(pipe(fds), 0);
    rdl_test_start(0, 1, crash, fds);
    CHECK_INT(read(fds[0], &child, sizeof child), (int)sizeof child);
    seen = was_seen_dumping(&child);
    if (seen)
        CHECK_INT(waitpid((pid_t)child.pid, &status, 0), (pid_t)child.pid);
    unlink("core");
    CHECK_INT(chdir("/"), 0);
    rmdir(folder);
    if (!seen)
        SKIP("no core is written here, or too fast to be seen");
}
