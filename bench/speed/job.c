/* Starting ranks of all kinds, and having them do things. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "job.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_MS 60000
#define ORDER_MS 120000
#define END_MS 5000
#define ARGUMENTS 24

const char *speed_peer_name(int peer)
{
    static const char *const names[] = {
#define X(number, text) #text,
        SPEED_PEER_MAP(X)
#undef X
    };

    return names[peer];
}

static void give_up(speed_job *job, const char *why)
{
    job->works = false;
    snprintf(job->why, sizeof job->why, "%.255s", why);
}

/* --- what is started ------------------------------------------------------- */

typedef struct line {
    const char *words[ARGUMENTS];
    int n;
    bool pinned;
    char program[PATH_MAX + 64];
    char ranks[16];
    char groups[16];
    char socket[64];
} line;

static void add(line *l, const char *word)
{
    if (l->n < ARGUMENTS - 1)
        l->words[l->n++] = word;
}

static void add_all(line *l, const char *const *words)
{
    for (; *words != NULL; words++)
        add(l, *words);
}

/* The folder of this program, without its last '/'. */
static void find_folder(char *folder, size_t bytes)
{
    ssize_t n = readlink("/proc/self/exe", folder, bytes - 1);
    char *slash;

    folder[n < 0 ? 0 : n] = '\0';
    slash = strrchr(folder, '/');
    if (slash != NULL)
        *slash = '\0';
}

/* The command stands elsewhere in a build than where it is installed. */
static void find_raddle(char *path, size_t bytes, const char *folder)
{
    snprintf(path, bytes, "%s/../cli/raddle", folder);
    if (access(path, X_OK) != 0)
        snprintf(path, bytes, "%s/../../bin/raddle", folder);
}

static void add_raddle(line *l, char *raddle, const char *self)
{
    static const char *const run[] = { "run", "-n", NULL };
    static const char *const rank[] = { "--rank", NULL };

    add(l, raddle);
    add_all(l, run);
    add(l, l->ranks);
    add(l, "--");
    add(l, self);
    add_all(l, rank);
    add(l, l->socket);
    add(l, l->groups);
    add(l, l->pinned ? "pinned" : "free");
}

/* Open MPI gives way to others only if it knows that it must, and is best when its
 * ranks stay where they are. */
static void add_open_mpi(line *l, bool crowded)
{
    static const char *const tight[] = { "--bind-to", "core:overload-allowed",
                                         "--map-by",  "core:OVERSUBSCRIBE",
                                         "--mca",     "mpi_yield_when_idle",
                                         "1",         NULL };

    add(l, "mpirun.openmpi");
    if (crowded)
        add_all(l, tight);
    else
        add(l, "--oversubscribe");
    add(l, "-np");
    add(l, l->ranks);
    add(l, l->program);
    add(l, l->socket);
}

static void add_mpich(line *l)
{
    add(l, "mpirun.mpich");
    add(l, "-np");
    add(l, l->ranks);
    add(l, l->program);
    add(l, l->socket);
}

static void add_gloo(line *l)
{
    add(l, l->program);
    add(l, l->socket);
    add(l, l->ranks);
}

/* Only in the child: what it is to become. */
static void become(line *l, speed_peer peer, bool crowded)
{
    char folder[PATH_MAX], raddle[PATH_MAX + 64], self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    self[n < 0 ? 0 : n] = '\0';
    find_folder(folder, sizeof folder);
    find_raddle(raddle, sizeof raddle, folder);
    if (peer == SPEED_RADDLE)
        add_raddle(l, raddle, self);
    else if (peer == SPEED_OPENMPI)
        add_open_mpi(l, crowded);
    else if (peer == SPEED_MPICH)
        add_mpich(l);
    else
        add_gloo(l);
    execvp(l->words[0], (char *const *)(uintptr_t)l->words);
    fprintf(stderr, "%s: %s\n", l->words[0], strerror(errno));
    _exit(127);
}

static void leave_the_terminal(int words)
{
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);

    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    (void)dup2(nothing, 0);
    (void)dup2(words, 1);
    (void)dup2(words, 2);
    (void)setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    (void)setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
}

/* --- its beginning --------------------------------------------------------- */

static int listen_at(const char *name)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    size_t n = strlen(name);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    memcpy(address.sun_path + 1, name, n);
    if (fd >= 0 &&
        bind(fd, (struct sockaddr *)&address,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)) == 0 &&
        listen(fd, SPEED_RANKS_MOST) == 0)
        return fd;
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

static bool is_ours(int fd)
{
    struct ucred who;
    socklen_t n = sizeof who;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 &&
           who.uid == geteuid();
}

/* The last line that the ranks printed. */
static void last_words(const speed_job *job, char text[200])
{
    char all[1024];
    off_t end = lseek(job->words, 0, SEEK_END);
    off_t from = end > (off_t)sizeof all - 1 ? end - (off_t)sizeof all + 1 : 0;
    ssize_t n = pread(job->words, all, sizeof all - 1, from);
    char *last;

    all[n < 0 ? 0 : n] = '\0';
    while (n > 0 && all[n - 1] == '\n')
        all[--n] = '\0';
    last = strrchr(all, '\n');
    snprintf(text, 200, "%.199s", last != NULL ? last + 1 : all);
}

static bool has_ended(const speed_job *job)
{
    siginfo_t info = { .si_pid = 0 };

    return waitid(P_PID, (id_t)job->pid, &info, WEXITED | WNOHANG | WNOWAIT) !=
               0 ||
           info.si_pid != 0;
}

/* One more rank; false: it did not come. */
static bool greet(speed_job *job)
{
    struct pollfd waits = { .fd = job->socket, .events = POLLIN };
    speed_answer hello = { .rank = -1 };
    int fd = -1;

    for (int ms = 0; fd < 0; ms += 100) {
        if (poll(&waits, 1, 100) > 0)
            fd = accept4(job->socket, NULL, NULL, SOCK_CLOEXEC);
        else if (ms > START_MS || has_ended(job))
            return false;
    }
    if (is_ours(fd) &&
        recv(fd, &hello, sizeof hello, 0) == (ssize_t)sizeof hello &&
        hello.rank >= 0 && hello.rank < job->ranks && job->fds[hello.rank] < 0) {
        job->fds[hello.rank] = fd;
        return true;
    }
    (void)close(fd);
    return false;
}

static void await_ranks(speed_job *job)
{
    char words[200];

    for (int i = 0; i < job->ranks; i++) {
        if (greet(job))
            continue;
        last_words(job, words);
        give_up(job, words[0] != '\0' ? words : "its ranks did not come");
        return;
    }
    job->works = true;
}

/* Whether the program of a peer was built. */
static bool is_there(line *l, speed_peer peer, speed_job *job)
{
    char folder[PATH_MAX], why[256];

    find_folder(folder, sizeof folder);
    snprintf(l->program, sizeof l->program, "%s/peers/%s", folder,
             speed_peer_name((int)peer));
    if (peer == SPEED_RADDLE || access(l->program, X_OK) == 0)
        return true;
    snprintf(why, sizeof why,
             "there is no program peers/%s beside this one: './dev peers' "
             "builds it where its package can be had",
             speed_peer_name((int)peer));
    give_up(job, why);
    return false;
}

void speed_job_start(speed_job *job, speed_peer peer, int ranks, int cores,
                     const speed_options *options)
{
    line l = { .pinned = options->pin };

    *job =
        (speed_job){ .peer = peer, .ranks = ranks, .socket = -1, .words = -1 };
    for (int i = 0; i < SPEED_RANKS_MOST; i++)
        job->fds[i] = -1;
    if (!is_there(&l, peer, job))
        return;
    snprintf(l.ranks, sizeof l.ranks, "%d", ranks);
    snprintf(l.groups, sizeof l.groups, "%d", options->groups);
    snprintf(l.socket, sizeof l.socket, "raddle-bench-%d-%s-%d", (int)getpid(),
             speed_peer_name((int)peer), ranks);
    job->socket = listen_at(l.socket);
    job->words = memfd_create("words", MFD_CLOEXEC);
    if (job->socket < 0 || job->words < 0) {
        give_up(job, strerror(errno));
        return;
    }
    job->pid = fork();
    if (job->pid == 0) {
        leave_the_terminal(job->words);
        become(&l, peer, ranks > cores);
    }
    if (job->pid > 0)
        await_ranks(job);
    else
        give_up(job, strerror(errno));
}

/* --- its work -------------------------------------------------------------- */

static speed_outcome lose(speed_job *job, int rank, char why[256])
{
    char words[200];

    last_words(job, words);
    snprintf(why, 256, "rank %d gave no answer; the last line: %.180s", rank,
             words);
    give_up(job, why);
    return SPEED_BROKEN;
}

static bool hear(int fd, speed_answer *answer)
{
    struct pollfd waits = { .fd = fd, .events = POLLIN };

    return poll(&waits, 1, ORDER_MS) == 1 &&
           recv(fd, answer, sizeof *answer, 0) == (ssize_t)sizeof *answer;
}

static void note(const speed_answer *answer, const speed_order *order,
                 double *us)
{
    for (int i = 0; us != NULL && i < order->blocks; i++)
        if (answer->us[i] > us[i])
            us[i] = answer->us[i];
}

speed_outcome speed_job_do(speed_job *job, const speed_order *order, double *us,
                           char why[256])
{
    speed_outcome worst = SPEED_DONE;
    speed_answer answer;

    for (int i = 0; us != NULL && i < order->blocks; i++)
        us[i] = 0;
    for (int i = 0; i < job->ranks; i++)
        if (send(job->fds[i], order, sizeof *order, MSG_NOSIGNAL) < 0)
            return lose(job, i, why);
    for (int i = 0; i < job->ranks; i++) {
        if (!hear(job->fds[i], &answer))
            return lose(job, i, why);
        note(&answer, order, us);
        if ((speed_outcome)answer.outcome > worst) {
            worst = (speed_outcome)answer.outcome;
            snprintf(why, 256, "%.255s", answer.text);
        }
    }
    if (worst == SPEED_BROKEN)
        give_up(job, why);
    return worst;
}

/* --- its end --------------------------------------------------------------- */

static void wait_for_end(const speed_job *job)
{
    int ms = 0;

    while (!has_ended(job) && ms < END_MS) {
        (void)usleep(10000);
        ms += 10;
    }
    (void)kill(-job->pid, SIGKILL);
    (void)waitpid(job->pid, NULL, 0);
}

void speed_job_end(speed_job *job)
{
    speed_order end = { .kind = SPEED_END };

    for (int i = 0; i < job->ranks; i++) {
        if (job->fds[i] < 0)
            continue;
        (void)send(job->fds[i], &end, sizeof end, MSG_NOSIGNAL);
        (void)close(job->fds[i]);
    }
    if (job->pid > 0)
        wait_for_end(job);
    if (job->socket >= 0)
        (void)close(job->socket);
    if (job->words >= 0)
        (void)close(job->words);
    job->works = false;
}
