/* What /proc shows of a process, in the command's eyes. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "look.h"

#include "support/test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void be_idle(int rank, int size, void *arg)
{
    (void)rank, (void)size, (void)arg;
    for (;;)
        pause();
}

RDL_TEST(a_process_is_seen_to_run_to_stop_and_to_be_gone)
{
    pid_t pid = rdl_test_start(0, 1, be_idle, NULL);
    siginfo_t info;
    int status;

    CHECK_INT(look_at(pid), LOOK_RUNNING);
    kill(pid, SIGSTOP);
    CHECK_INT(waitpid(pid, &status, WUNTRACED), pid);
    CHECK_INT(look_at(pid), LOOK_STOPPED);
    kill(pid, SIGCONT);
    CHECK_INT(waitpid(pid, &status, WCONTINUED), pid);
    CHECK_INT(look_at(pid), LOOK_RUNNING);
    kill(pid, SIGKILL);
    CHECK_INT(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    CHECK_INT(look_at(pid), LOOK_GONE); /* a zombie */
    CHECK_INT(rdl_test_wait(pid), 128 + SIGKILL);
    CHECK_INT(look_at(pid), LOOK_GONE);
}
