/* Holding threads, and asking libdw for their frames. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "stacks.h"

#include "keeper.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef RDL_UNWIND
#include <elfutils/libdwfl.h>
#endif

#define THREADS_MOST 4 /* of one process */
#define FRAMES_MOST 16 /* of one thread */
#define HOLD_MS 200    /* until a thread has to stop */

static bool is_spent(const stacks_limit *limit)
{
    return limit->lines <= 0 || clock_ms() >= limit->end;
}

/* The threads of pid, itself first; returns how many list holds. */
static int list_threads(pid_t pid, pid_t list[THREADS_MOST])
{
    char path[64];
    const struct dirent *d;
    int count = 1;
    DIR *folder;

    list[0] = pid;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    folder = opendir(path);
    while (folder != NULL && count < THREADS_MOST &&
           (d = readdir(folder)) != NULL)
        if (atoi(d->d_name) > 0 && atoi(d->d_name) != pid)
            list[count++] = atoi(d->d_name);
    if (folder != NULL)
        closedir(folder);
    return count;
}

/* --- what the kernel says -------------------------------------------------- */

static void read_word(pid_t pid, pid_t thread, const char *name, char word[64])
{
    char path[96];
    FILE *file;

    word[0] = '\0';
    snprintf(path, sizeof path, "/proc/%d/task/%d/%s", (int)pid, (int)thread,
             name);
    file = fopen(path, "re");
    if (file == NULL)
        return;
    if (fscanf(file, "%63s", word) != 1)
        word[0] = '\0';
    fclose(file);
}

/* "0" is the channel of a thread that runs, or of all on kernels that hide it. */
static void print_channel(FILE *to, pid_t pid, pid_t thread)
{
    char channel[64], call[64];

    read_word(pid, thread, "wchan", channel);
    read_word(pid, thread, "syscall", call);
    fprintf(to, "    thread %d: ", (int)thread);
    if (strcmp(call, "running") == 0)
        fprintf(to, "running\n");
    else if (channel[0] == '\0' || strcmp(channel, "0") == 0)
        fprintf(to, "not told by this kernel%s%s\n",
                call[0] ? "; system call " : "", call);
    else
        fprintf(to, "%s%s%s\n", channel, call[0] ? ", system call " : "", call);
}

static void print_channels(FILE *to, int rank, pid_t pid, const char *why,
                           stacks_limit *limit)
{
    pid_t threads[THREADS_MOST];
    int count = list_threads(pid, threads);

    fprintf(to, "  rank %d, where the kernel has it (no stack: %s):\n", rank,
            why);
    limit->lines--;
    for (int i = 0; i < count && !is_spent(limit); i++, limit->lines--)
        print_channel(to, pid, threads[i]);
}

/* --- stacks ---------------------------------------------------------------- */

#ifdef RDL_UNWIND

/* Ends of processes stay for who counts them: only stops are asked for. */
static bool has_stopped(pid_t thread)
{
    siginfo_t info = { .si_pid = 0 };

    return waitid(P_PID, (id_t)thread, &info, WSTOPPED | WNOHANG | __WALL) == 0 &&
           info.si_pid == thread;
}

/* A thread that the kernel does not let stop stays traced until it does. */
static bool hold(pid_t thread)
{
    int64_t end = clock_ms() + HOLD_MS;

    if (ptrace(PTRACE_SEIZE, thread, NULL, NULL) != 0)
        return false;
    ptrace(PTRACE_INTERRUPT, thread, NULL, NULL);
    while (!has_stopped(thread)) {
        if (clock_ms() >= end) {
            errno = ETIMEDOUT;
            return false;
        }
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    }
    return true;
}

static void let_go(pid_t thread)
{
    ptrace(PTRACE_DETACH, thread, NULL, NULL);
}

/* Debug information beside the program is not looked for: that may take long, or
 * ask servers. */
static int find_no_debuginfo(Dwfl_Module *module, void **data, const char *name,
                             Dwarf_Addr base, const char *file,
                             const char *link, GElf_Word crc, char **found)
{
    (void)module, (void)data, (void)name, (void)base;
    (void)file, (void)link, (void)crc, (void)found;
    return -1;
}

typedef struct frames {
    FILE *to;
    stacks_limit *limit;
    int count;
} frames;

static int print_frame(Dwfl_Frame *frame, void *arg)
{
    frames *f = arg;
    const char *name = NULL, *file = NULL;
    Dwfl_Module *module;
    Dwarf_Addr pc;
    bool is_call;

    if (!dwfl_frame_pc(frame, &pc, &is_call))
        return DWARF_CB_ABORT;
    /* What called is before where it goes on. */
    if (!is_call)
        pc--;
    module = dwfl_addrmodule(dwfl_thread_dwfl(dwfl_frame_thread(frame)), pc);
    if (module != NULL) {
        name = dwfl_module_addrname(module, pc);
        dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, &file, NULL);
    }
    file = file != NULL ? basename(file) : "?";
    fprintf(f->to, "    #%-2d %s (%s)\n", f->count, name ? name : "?", file);
    f->limit->lines--;
    return ++f->count < FRAMES_MOST && !is_spent(f->limit) ? DWARF_CB_OK
                                                           : DWARF_CB_ABORT;
}

static void print_thread(FILE *to, Dwfl *dwfl, pid_t thread, bool is_main,
                         stacks_limit *limit)
{
    frames f = { .to = to, .limit = limit };

    if (!is_main) {
        fprintf(to, "    thread %d:\n", (int)thread);
        limit->lines--;
    }
    dwfl_getthread_frames(dwfl, thread, print_frame, &f);
    if (f.count == 0) {
        fprintf(to, "    no frame: %s\n", dwfl_errmsg(-1));
        limit->lines--;
    }
}

/* What is mapped where in pid; NULL: it cannot be told. */
static Dwfl *open_process(pid_t pid)
{
    static const Dwfl_Callbacks callbacks = {
        .find_elf = dwfl_linux_proc_find_elf,
        .find_debuginfo = find_no_debuginfo,
    };
    Dwfl *dwfl = dwfl_begin(&callbacks);

    if (dwfl == NULL)
        return NULL;
    if (dwfl_linux_proc_report(dwfl, pid) == 0 &&
        dwfl_report_end(dwfl, NULL, NULL) == 0 &&
        dwfl_linux_proc_attach(dwfl, pid, true) == 0)
        return dwfl;
    dwfl_end(dwfl);
    return NULL;
}

/* The first thread is held. */
static void print_threads(FILE *to, Dwfl *dwfl, pid_t pid, stacks_limit *limit)
{
    pid_t threads[THREADS_MOST];
    int count = list_threads(pid, threads);

    print_thread(to, dwfl, pid, true, limit);
    for (int i = 1; i < count && !is_spent(limit); i++)
        if (hold(threads[i])) {
            print_thread(to, dwfl, threads[i], false, limit);
            let_go(threads[i]);
        }
}

void stacks_print(FILE *to, int rank, pid_t pid, stacks_limit *limit)
{
    Dwfl *dwfl;

    if (is_spent(limit))
        return;
    if (!hold(pid)) {
        print_channels(to, rank, pid, strerror(errno), limit);
        return;
    }
    dwfl = open_process(pid);
    if (dwfl != NULL) {
        fprintf(to, "  rank %d, its stack:\n", rank);
        limit->lines--;
        print_threads(to, dwfl, pid, limit);
        dwfl_end(dwfl);
    } else {
        print_channels(to, rank, pid, dwfl_errmsg(-1), limit);
    }
    let_go(pid);
}

#else

void stacks_print(FILE *to, int rank, pid_t pid, stacks_limit *limit)
{
    if (!is_spent(limit))
        print_channels(to, rank, pid, "raddle was built without libdw", limit);
}

#endif
