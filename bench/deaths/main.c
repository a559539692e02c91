/* `raddle bench deaths`: how long after the death of a rank, or a call that differs,
 * the last of the others hears of it, and whether all hear of it at one call. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "deaths.h"

#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHO "raddle bench deaths"
#define FAILED 1
#define USAGE 2
#define ROUNDS_MOST 1000

static const char help[] =
    "Usage: raddle bench deaths [OPTIONS]\n"
    "\n"
    "Ranks make small and large collectives on two groups. One of them is "
    "killed\n"
    "(SIGKILL) at a random moment, under raddle run and under variables as "
    "torchrun\n"
    "sets them; or it makes a call that differs. Says how long after that the "
    "last\n"
    "of the others has the error, and whether all have it at the same call.\n"
    "\n"
    "Options:\n"
    "  --rounds N   of each kind, 1 to 1000; default 20\n"
    "  --ranks N    3 to 16; default 8\n"
    "  --cores N    cores that all of them share, 1 to 64; default 2\n"
    "  --seed N     of calls, ranks and moments; default 1\n"
    "  --json       an object a line\n"
    "  -h, --help   print this text\n"
    "\n"
    "Status: 0 if the medians are at most 20 ms and 100 ms after a death, no "
    "round\n"
    "takes more than 50 ms after a call that differs, and all ranks agree; 1 "
    "if not,\n"
    "2 for wrong usage.\n";

typedef struct options {
    int rounds;
    int ranks;
    int cores;
    uint64_t seed;
    bool json;
} options;

static const deaths_arm arms[] = {
#define X(name, launched, kills, median, worst)                                \
    { name, launched, kills, median, worst },
    DEATHS_ARM_MAP(X)
#undef X
};

#define ARMS (sizeof arms / sizeof *arms)

/* Of one arm. */
typedef struct score {
    double ms[ROUNDS_MOST];
    int rounds;
    int disagreed;
    char sentence[600]; /* of the first round that disagreed */
} score;

/* --- options --------------------------------------------------------------- */

static bool read_number(const char *option, long long least, long long most,
                        long long *value)
{
    char *end;

    errno = 0;
    *value = strtoll(optarg, &end, 10);
    if (errno == 0 && *optarg != '\0' && *end == '\0' && *value >= least &&
        *value <= most)
        return true;
    fprintf(stderr, WHO ": %s takes a number from %lld to %lld, and got '%s'\n",
            option, least, most, optarg);
    return false;
}

static bool read_int(const char *option, int least, int most, int *out)
{
    long long value;

    if (!read_number(option, least, most, &value))
        return false;
    *out = (int)value;
    return true;
}

/* One option that getopt_long has found; false: it is wrong, and that was said. */
static bool take_option(int c, const char *given, options *o)
{
    long long value;

    switch (c) {
    case 'r':
        return read_int("--rounds", 1, ROUNDS_MOST, &o->rounds);
    case 'n':
        return read_int("--ranks", 3, DEATHS_RANKS_MOST, &o->ranks);
    case 'c':
        return read_int("--cores", 1, 64, &o->cores);
    case 's':
        if (!read_number("--seed", 0, 1000000000, &value))
            return false;
        o->seed = (uint64_t)value;
        return true;
    case 'j':
        o->json = true;
        return true;
    case ':':
        fprintf(stderr, WHO ": '%s' needs a value\n", given);
        return false;
    default:
        fprintf(stderr,
                WHO ": there is no option '%s'; 'raddle bench deaths --help' "
                    "lists all\n",
                given);
        return false;
    }
}

/* -1: go on; else the exit status. */
static int read_options(int argc, char **argv, options *o)
{
    static const struct option known[] = {
        { "rounds", required_argument, NULL, 'r' },
        { "ranks", required_argument, NULL, 'n' },
        { "cores", required_argument, NULL, 'c' },
        { "seed", required_argument, NULL, 's' },
        { "json", no_argument, NULL, 'j' },
        { "help", no_argument, NULL, 'h' },
        { 0 },
    };
    int c;

    opterr = 0;
    while ((c = getopt_long(argc, argv, "+:h", known, NULL)) != -1) {
        if (c == 'h') {
            fputs(help, stdout);
            return fflush(stdout) == 0 ? 0 : FAILED;
        }
        if (!take_option(c, argv[optind - 1], o))
            return USAGE;
    }
    if (optind == argc)
        return -1;
    fprintf(stderr, WHO ": takes no arguments, and got '%s'\n", argv[optind]);
    return USAGE;
}

/* --- rounds ---------------------------------------------------------------- */

/* The first so many of the cores that we may use; all processes inherit them. */
static void keep_cores(int most)
{
    cpu_set_t allowed;
    int kept = 0;

    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return;
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && ++kept > most)
            CPU_CLR(cpu, &allowed);
    sched_setaffinity(0, sizeof allowed, &allowed);
}

static bool run_once(const options *o, size_t arm, int number, score *s)
{
    deaths_round round = { .arm = &arms[arm],
                           .ranks = o->ranks,
                           .seed = o->seed * ROUNDS_MOST + (uint64_t)number };
    deaths_result result;

    if (!deaths_run(&round, &result)) {
        fprintf(stderr, WHO ": %s, round %d: %s\n", arms[arm].name, number,
                result.sentence);
        return false;
    }
    s->ms[s->rounds++] = result.ms;
    s->disagreed += !result.agreed;
    if (!result.agreed && s->sentence[0] == '\0')
        memcpy(s->sentence, result.sentence, sizeof s->sentence);
    return true;
}

/* Arm after arm, so that what the machine does meanwhile meets all of them. */
static bool run_all(const options *o, score scores[ARMS])
{
    for (int number = 0; number < o->rounds; number++)
        for (size_t arm = 0; arm < ARMS; arm++)
            if (!run_once(o, arm, number, &scores[arm]))
                return false;
    return true;
}

/* --- the table ------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* part of the sorted times. */
static double quantile(const score *s, double part)
{
    return s->ms[(int)(part * (double)(s->rounds - 1) + 0.5)];
}

static bool holds(const deaths_arm *arm, const score *s)
{
    return s->disagreed == 0 &&
           (arm->median_ms == 0 || quantile(s, 0.5) <= arm->median_ms) &&
           (arm->worst_ms == 0 || quantile(s, 1) <= arm->worst_ms);
}

static void print_json(const options *o, const deaths_arm *arm, const score *s)
{
    printf("{\"arm\":\"%s\",\"ranks\":%d,\"cores\":%d,\"rounds\":%d,"
           "\"disagreed\":%d,\"ms\":[%.3f,%.3f,%.3f,%.3f],\"holds\":%s}\n",
           arm->name, o->ranks, o->cores, s->rounds, s->disagreed,
           quantile(s, 0.25), quantile(s, 0.5), quantile(s, 0.75),
           quantile(s, 1), holds(arm, s) ? "true" : "false");
}

static void print_head(const options *o)
{
    printf("%d ranks on %d cores, %d rounds each, seed %llu; milliseconds to "
           "the last error\n\n%-17s %9s %8s %8s %8s %8s\n",
           o->ranks, o->cores, o->rounds, (unsigned long long)o->seed, "arm",
           "disagreed", "quartile", "median", "quartile", "most");
}

static void print_row(const options *o, const deaths_arm *arm, const score *s)
{
    (void)o;
    printf("%-17s %9d %8.2f %8.2f %8.2f %8.2f%s\n", arm->name, s->disagreed,
           quantile(s, 0.25), quantile(s, 0.5), quantile(s, 0.75),
           quantile(s, 1), holds(arm, s) ? "" : "  <- not as it must be");
}

/* The exit status. */
static int report(const options *o, score scores[ARMS])
{
    bool good = true;

    if (!o->json)
        print_head(o);
    for (size_t arm = 0; arm < ARMS; arm++) {
        score *s = &scores[arm];

        qsort(s->ms, (size_t)s->rounds, sizeof *s->ms, by_size);
        (o->json ? print_json : print_row)(o, &arms[arm], s);
        good &= holds(&arms[arm], s);
    }
    for (size_t arm = 0; arm < ARMS && !o->json; arm++)
        if (scores[arm].sentence[0] != '\0')
            printf("\n%s: %s\n", arms[arm].name, scores[arm].sentence);
    return fflush(stdout) == 0 && good ? 0 : FAILED;
}

int main(int argc, char **argv)
{
    options o = { .rounds = 20, .ranks = 8, .cores = 2, .seed = 1 };
    score *scores;
    int status;

    if (argc == 3 && strcmp(argv[1], DEATHS_RANK) == 0)
        deaths_rank(argv[2]);
    status = read_options(argc, argv, &o);
    if (status >= 0)
        return status;
    scores = calloc(ARMS, sizeof *scores);
    if (scores == NULL) {
        fprintf(stderr, WHO ": no memory\n");
        return FAILED;
    }
    keep_cores(o.cores);
    status = run_all(&o, scores) ? report(&o, scores) : FAILED;
    free(scores);
    return status;
}
