/* One run: the launcher with its ranks, a watch over it, and what it printed. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "faults.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WHO "raddle bench faults"
/* All limits inside have passed by then: start, operation, the launcher's. */
#define WATCH_MS (30000 + 5 * FAULTS_LIMIT_MS)
#define OUTPUT_MOST ((size_t)1 << 18)
#define MARK "RADDLE_FAULTS_MARK"
#define TEXT_MOST 96

typedef struct child {
    pid_t pid;
    int pidfd;
    int pipe; /* what it prints */
    size_t bytes;
    char mark[TEXT_MOST]; /* in the environment of all that is started */
} child;

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* --- starting -------------------------------------------------------------- */

/* Ours but for the mode, and the mark. NULL: no memory. */
static char **make_environment(const faults_setting *s, char *mark)
{
    size_t n = 0, kept = 0;
    char **all;

    while (environ[n] != NULL)
        n++;
    all = calloc(n + 3, sizeof *all);
    if (all == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++)
        if (strncmp(environ[i], "RADDLE_CHECK=", 13) != 0)
            all[kept++] = environ[i];
    all[kept++] = mark;
    all[kept] = s->strict ? "RADDLE_CHECK=strict" : "RADDLE_CHECK=1";
    return all;
}

static int spawn(const faults_setting *s, int ranks, int out, char *mark,
                 pid_t *pid)
{
    char n[16], seed[32], run[16];
    const char *arguments[] = {
        s->raddle, "run",   "-n",    n,        "--grace",
        "0.5",     "--",    s->self, "--rank", "--seed",
        seed,      "--run", run,     "--only", faults_kind_names[s->kind],
        NULL
    };
    char **environment = make_environment(s, mark);
    posix_spawn_file_actions_t files;
    int error;

    if (environment == NULL)
        return ENOMEM;
    snprintf(n, sizeof n, "%d", ranks);
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)s->seed);
    snprintf(run, sizeof run, "%d", s->run);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, out, 1);
    posix_spawn_file_actions_adddup2(&files, out, 2);
    error = posix_spawn(pid, s->raddle, &files, NULL,
                        (char *const *)(uintptr_t)arguments, environment);
    posix_spawn_file_actions_destroy(&files);
    free(environment);
    return error;
}

static bool start(const faults_setting *s, int ranks, child *c)
{
    int pipes[2], error;

    snprintf(c->mark, sizeof c->mark, MARK "=%d.%s.%d.%d", (int)getpid(),
             faults_kind_names[s->kind], s->run, s->strict);
    if (pipe2(pipes, O_CLOEXEC | O_NONBLOCK) != 0) {
        fprintf(stderr, WHO ": no pipe: %s\n", strerror(errno));
        return false;
    }
    /* Only our end may not block: the launcher's is not ours to choose. */
    fcntl(pipes[1], F_SETFL, 0);
    error = spawn(s, ranks, pipes[1], c->mark, &c->pid);
    close(pipes[1]);
    c->pipe = pipes[0];
    c->pidfd = error == 0 ? (int)syscall(SYS_pidfd_open, c->pid, 0) : -1;
    if (c->pidfd >= 0)
        return true;
    fprintf(stderr, WHO ": cannot start '%s': %s\n", s->raddle,
            strerror(error != 0 ? error : errno));
    if (error == 0) {
        kill(c->pid, SIGKILL);
        waitpid(c->pid, NULL, 0);
    }
    close(c->pipe);
    return false;
}

/* --- watching -------------------------------------------------------------- */

/* What is there now. */
static void drain(child *c, char *output)
{
    char lost[4096];

    for (;;) {
        bool room = c->bytes + 1 < OUTPUT_MOST;
        ssize_t n =
            room ? read(c->pipe, output + c->bytes, OUTPUT_MOST - 1 - c->bytes)
                 : read(c->pipe, lost, sizeof lost);

        if (n <= 0)
            return;
        c->bytes += room ? (size_t)n : 0;
    }
}

/* Until the launcher has ended; one that hangs is killed. A process that it left
 * may hold the pipe, so that its end is not waited for. */
static int watch(child *c, char *output)
{
    double limit = now_ms() + WATCH_MS;
    bool killed = false;
    int status;

    for (;;) {
        struct pollfd p[2] = { { .fd = c->pidfd, .events = POLLIN },
                               { .fd = c->pipe, .events = POLLIN } };

        poll(p, p[1].fd >= 0 ? 2 : 1, 200);
        drain(c, output);
        if ((p[0].revents & POLLIN) != 0)
            break;
        if ((p[1].revents & (POLLHUP | POLLERR)) != 0)
            poll(p, 1, 200);
        if (!killed && now_ms() > limit) {
            kill(c->pid, SIGKILL);
            killed = true;
        }
    }
    waitpid(c->pid, &status, 0);
    drain(c, output);
    return killed || !WIFEXITED(status) ? -1 : WEXITSTATUS(status);
}

/* --- what is left ---------------------------------------------------------- */

/* Whether the process has the mark; not one that has ended. */
static bool has_mark(const char *pid, const char *mark)
{
    size_t bytes = 0, length = strlen(mark) + 1;
    static const size_t most = (size_t)1 << 17;
    char path[TEXT_MOST], *text = malloc(most);
    bool found = false;
    FILE *f;

    snprintf(path, sizeof path, "/proc/%.20s/environ", pid);
    f = fopen(path, "r");
    if (f != NULL && text != NULL)
        bytes = fread(text, 1, most, f);
    if (bytes > 0)
        found = memmem(text, bytes, mark, length) != NULL;
    if (f != NULL)
        fclose(f);
    free(text);
    return found;
}

/* Ends them too, lest the next run meets them. */
static int count_left(const char *mark)
{
    DIR *folder = opendir("/proc");
    const struct dirent *e;
    int left = 0;

    while (folder != NULL && (e = readdir(folder)) != NULL) {
        if (e->d_name[0] < '1' || e->d_name[0] > '9' ||
            !has_mark(e->d_name, mark))
            continue;
        kill((pid_t)atoi(e->d_name), SIGKILL);
        left++;
    }
    if (folder != NULL)
        closedir(folder);
    return left;
}

/* --- what was said --------------------------------------------------------- */

static void read_verdict(const char *line, faults_report *r)
{
    long long passed, entered, ended, starved;
    int status, step, succeeded, at = 0;

    if (r->told ||
        sscanf(line, "%d %d %d %lld %lld %lld %lld %n", &status, &step,
               &succeeded, &passed, &entered, &ended, &starved, &at) != 7)
        return;
    r->told = true;
    r->status = (rdl_status)status;
    r->step = step;
    r->succeeded = succeeded != 0;
    r->passed = passed;
    r->entered = entered;
    r->ended = ended;
    r->starved = starved;
    snprintf(r->sentence, sizeof r->sentence, "%s", line + at);
}

static void read_report(const char *line, faults_report *r)
{
    if (strcmp(line, "@right") == 0)
        r->right = true;
    else if (strncmp(line, "@fault ", 7) == 0)
        r->fault = atoll(line + 7);
    else if (strncmp(line, "@verdict ", 9) == 0)
        read_verdict(line + 9, r);
    else if (strncmp(line, "@wrong ", 7) == 0) {
        r->wrong = true;
        snprintf(r->sentence, sizeof r->sentence, "%s", line + 7);
    }
}

static void read_line(const char *line, faults_end *end)
{
    int rank, at = 0;

    if (sscanf(line, "[%d] %n", &rank, &at) == 1 && at > 0) {
        if (rank >= 0 && rank < FAULTS_RANKS_MOST)
            read_report(line + at, &end->report[rank]);
    } else if (sscanf(line, "raddle run: rank %d failed firs%n", &rank, &at) ==
                   1 &&
               at > 0) {
        end->first = rank;
    }
}

static void read_output(faults_end *end)
{
    char *copy = strdup(end->output), *rest = copy, *line;

    while (rest != NULL && (line = strsep(&rest, "\n")) != NULL)
        read_line(line, end);
    free(copy);
}

bool faults_run(const faults_setting *setting, faults_end *end)
{
    child c = { .pid = 0 };
    double begun = now_ms();
    faults_program *program = malloc(sizeof *program);
    bool good = program != NULL;

    memset(end, 0, sizeof *end);
    end->first = -1;
    end->output = calloc(1, OUTPUT_MOST);
    if (good)
        faults_make(program, setting->seed, setting->run, setting->kind);
    good = good && end->output != NULL && start(setting, program->ranks, &c);
    free(program);
    if (!good)
        return false;
    end->status = watch(&c, end->output);
    end->ms = now_ms() - begun;
    end->left = count_left(c.mark);
    close(c.pipe);
    close(c.pidfd);
    read_output(end);
    return true;
}
