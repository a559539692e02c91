/* `raddle bench`: finds the program of a benchmark and becomes it. They look
 * inside the library and so are programs of their own, linked with its inside. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "command.h"
#include "nearest.h"
#include "say.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BENCH "raddle bench"
#define ARGUMENTS_MOST 64

const char bench_help[] =
    "Usage: raddle bench\n"
    "       raddle bench OPERATION ... [OPTIONS]\n"
    "       raddle bench --full | --summary | --explain | --peers [OPTIONS]\n"
    "       raddle bench NAME [OPTIONS]\n"
    "\n"
    "Lists the benchmarks there are; times operations, such as all_reduce; or "
    "runs\n"
    "the benchmark NAME. 'raddle bench all_reduce --help' and 'raddle bench "
    "NAME\n"
    "--help' say what is measured, and the options.\n";

typedef struct benchmark {
    const char *name;
    const char *summary;
} benchmark;

static const benchmark benchmarks[] = {
    { "race", "several streams drive one communicator, with the fence and "
              "without" },
    { "deaths",
      "how soon all ranks hear of a death, or of a call that differs" },
    { "faults", "random programs with a fault each, and what ranks are told of "
                "it" },
    { "recorder", "what comparing and recording calls costs" },
    { "fence", "what the fence and the streams cost, and what they hide" },
};

#define BENCHMARKS (sizeof benchmarks / sizeof benchmarks[0])

static const char *const operations[] = {
    "barrier",      "all_reduce",   "all_gather", "reduce_scatter",
    "all_to_all",   "broadcast",    "reduce",     "gather",
    "scatter",      "all_gather_v", "exchange",   "reduce_scatter_v",
    "all_to_all_v",
};

#define OPERATIONS (sizeof operations / sizeof operations[0])

/* Where they are, from the folder of the command: in a build and installed. */
static const char *const folders[] = { "../bench", "../libexec/raddle" };

static int list_benchmarks(void)
{
    printf("Benchmarks:\n");
    for (size_t i = 0; i < BENCHMARKS; i++)
        printf("  %-9s %s\n", benchmarks[i].name, benchmarks[i].summary);
    printf("\nOperations, which 'raddle bench OPERATION ...' times:\n");
    for (size_t i = 0; i < OPERATIONS; i++)
        printf("%s%s", i % 5 == 0 ? i == 0 ? "  " : "\n  " : " ", operations[i]);
    printf("\n");
    return command_finish_output();
}

static bool is_benchmark(const char *name)
{
    for (size_t i = 0; i < BENCHMARKS; i++)
        if (strcmp(benchmarks[i].name, name) == 0)
            return true;
    return false;
}

static bool is_operation(const char *name)
{
    for (size_t i = 0; i < OPERATIONS; i++)
        if (strcmp(operations[i], name) == 0)
            return true;
    return false;
}

static int refuse(const char *name)
{
    const char *known[BENCHMARKS + OPERATIONS + 1] = { NULL };

    for (size_t i = 0; i < BENCHMARKS; i++)
        known[i] = benchmarks[i].name;
    memcpy(known + BENCHMARKS, operations, sizeof operations);
    say(BENCH,
        "there is no benchmark or operation '%s'; the nearest is '%s', and "
        "'raddle bench' "
        "lists all",
        name, nearest_word(name, known));
    return STATUS_USAGE;
}

/* The folder of this command's file, without its last '/'. */
static bool find_folder(char *folder, size_t bytes)
{
    ssize_t n = readlink("/proc/self/exe", folder, bytes - 1);
    char *slash;

    if (n < 0)
        return false;
    folder[n] = '\0';
    slash = strrchr(folder, '/');
    if (slash != NULL)
        *slash = '\0';
    return slash != NULL;
}

/* Returns only if there is no such program, or it cannot be run. */
static int become(char **argv)
{
    char folder[PATH_MAX], path[PATH_MAX + 64];

    if (!find_folder(folder, sizeof folder)) {
        say(BENCH, "cannot tell where this command is: %s (%s)",
            strerror(errno), strerrorname_np(errno));
        return STATUS_FAILED;
    }
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, sizeof path, "%s/%s/%s", folder, folders[i], argv[0]);
        execv(path, argv);
        if (errno != ENOENT && errno != ENOTDIR) {
            say(BENCH, "'%s' cannot be run: %s (%s)", path, strerror(errno),
                strerrorname_np(errno));
            return STATUS_FAILED;
        }
    }
    say(BENCH,
        "there is no program '%s' in '%s/%s'; was raddle built without its "
        "benchmarks (RADDLE_TESTS)?",
        argv[0], folder, folders[1]);
    return STATUS_FAILED;
}

/* Operations and options are those of one program. */
static int become_speed(int argc, char **argv)
{
    char *all[ARGUMENTS_MOST + 1] = { (char[]){ "speed" } };

    if (argc > ARGUMENTS_MOST) {
        say(BENCH, "takes at most %d arguments, and got %d", ARGUMENTS_MOST - 1,
            argc - 1);
        return STATUS_USAGE;
    }
    memcpy(all + 1, argv + 1, (size_t)(argc - 1) * sizeof *argv);
    return become(all);
}

int bench_command(const command *self, int argc, char **argv)
{
    if (argc < 2)
        return list_benchmarks();
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return command_show_help(self);
    if (argv[1][0] == '-' || is_operation(argv[1]))
        return become_speed(argc, argv);
    return is_benchmark(argv[1]) ? become(argv + 1) : refuse(argv[1]);
}
