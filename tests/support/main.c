/* main() of every test program:
 *
 *     program          every body, each in a forked process, and a summary
 *     program NAME     one body, in this process (for ctest and for a debugger)
 *     program --list   the names */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/run.h"
#include "support/test.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TIMEOUT_S 60
#define TICK_MS 2

/* Filled by constructors before main and only read after. */
static rdl_test *tests;

void rdl_test_add(rdl_test *test)
{
    rdl_test **end = &tests;

    while (*end != NULL)
        end = &(*end)->next;
    *end = test;
}

/* The body returned; whatever it started must be gone. */
static void check_no_children(void)
{
    int state;

    if (waitpid(-1, &state, WNOHANG) < 0 && errno == ECHILD)
        return;
    RDL_TEST_FAIL("the body passed but left child processes:\n%s",
                  rdl_test_descendants(getpid()).text);
}

static int run_here(const char *name)
{
    for (const rdl_test *t = tests; t != NULL; t = t->next)
        if (strcmp(t->name, name) == 0) {
            t->body();
            check_no_children();
            return 0;
        }
    fprintf(stderr, "no test is named %s; --list shows all\n", name);
    return 2;
}

static int list_names(void)
{
    for (const rdl_test *t = tests; t != NULL; t = t->next)
        puts(t->name);
    return 0;
}

/* In a process group of its own, so that what it forked can be ended with it. */
static pid_t start(const rdl_test *t, int output)
{
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    exit(run_here(t->name));
}

static int wait_or_kill(pid_t pid)
{
    struct timespec tick = { .tv_nsec = TICK_MS * 1000000 };
    int state;

    for (int ms = 0; ms < TIMEOUT_S * 1000; ms += TICK_MS) {
        if (waitpid(pid, &state, WNOHANG) == pid)
            return WIFSIGNALED(state) ? 128 + WTERMSIG(state)
                                      : WEXITSTATUS(state);
        nanosleep(&tick, NULL);
    }
    kill(-pid, SIGKILL);
    waitpid(pid, &state, 0);
    return -1;
}

static void copy_output(int from)
{
    char buffer[4096];
    ssize_t n;

    lseek(from, 0, SEEK_SET);
    while ((n = read(from, buffer, sizeof buffer)) > 0)
        fwrite(buffer, 1, (size_t)n, stdout);
}

/* Returns the status; says how it went, with the output unless it passed. */
static int run_apart(const rdl_test *t)
{
    int output = memfd_create(t->name, MFD_CLOEXEC);
    pid_t pid = start(t, output);
    int status = pid < 0 ? RDL_TEST_FAILED : wait_or_kill(pid);

    if (status == 0)
        printf("passed   %s\n", t->name);
    else if (status == RDL_TEST_SKIPPED)
        printf("skipped  %s\n", t->name);
    else if (status < 0)
        printf("FAILED   %s: no end after %d s\n", t->name, TIMEOUT_S);
    else if (status > 128)
        printf("FAILED   %s: signal %d, %s\n", t->name, status - 128,
               strsignal(status - 128));
    else
        printf("FAILED   %s: exit status %d\n", t->name, status);
    if (status != 0)
        copy_output(output);
    close(output);
    return status;
}

static int run_all(void)
{
    int passed = 0, failed = 0, skipped = 0;

    for (const rdl_test *t = tests; t != NULL; t = t->next) {
        int status = run_apart(t);

        passed += status == 0;
        skipped += status == RDL_TEST_SKIPPED;
        failed += status != 0 && status != RDL_TEST_SKIPPED;
    }
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed != 0;
}

int main(int argc, char **argv)
{
    if (argc == 1)
        return run_all();
    if (argc == 2)
        return strcmp(argv[1], "--list") == 0 ? list_names() : run_here(argv[1]);
    fprintf(stderr, "usage: %s [NAME | --list]\n", argv[0]);
    return 2;
}
