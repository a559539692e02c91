/* `raddle bench race`: several streams drive one communicator. With the fence of
 * raddle's lanes all ends well; with what device libraries do, it does not. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "race.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WHO "raddle bench race"
#define FAILED 1
#define USAGE 2
#define RUNS_MOST 1000
#define RUNS_JUDGED 6 /* with fewer, an arm that must fail may be lucky */

static const char help[] =
    "Usage: raddle bench race [OPTIONS]\n"
    "\n"
    "Three streams of each rank issue all_gathers and reduce_scatters on one\n"
    "communicator, in an order that is equal on all ranks; each is delayed by "
    "a\n"
    "random amount of work. Every result is looked at. The arms:\n"
    "\n"
    "  unfenced          a call takes its place when it starts on its stream, "
    "as\n"
    "                    device libraries do\n"
    "  fenced            raddle: it takes its place when it is issued\n"
    "  own-communicator  unfenced, and each stream has a lane of its own\n"
    "  created-unused    unfenced; these lanes are opened and not used\n"
    "  one-stream        unfenced, and one stream issues all\n"
    "  deterministic     unfenced, and nothing is delayed\n"
    "\n"
    "each with fingerprints and without. fenced, own-communicator and "
    "one-stream\n"
    "must pass every run; unfenced and created-unused must fail in a third of "
    "the\n"
    "runs at least, if there are 6 or more.\n"
    "\n"
    "Options:\n"
    "  --runs N     runs of each arm, in fresh processes, 1 to 1000; default "
    "28\n"
    "  --ranks N    ranks, 2 to 16; default 4\n"
    "  --seed N     of the delays and calls; default 1\n"
    "  --json       an object a line\n"
    "  -h, --help   print this text\n"
    "\n"
    "Status: 0 if all that must pass passes and what must fail fails, 1 if not,"
    "\n"
    "2 for wrong usage.\n";

typedef struct options {
    int runs;
    int ranks;
    uint64_t seed;
    bool json;
} options;

/* Of one arm, with fingerprints or without. */
typedef struct score {
    int ends[RACE_BROKEN];
    int total;
    double *ms; /* of the runs that came to their end */
    int n_ms;
    char sentence[sizeof((race_report *)0)->sentence]; /* the first failure's */
} score;

static const race_arm arms[] = {
#define X(number, text, unfenced, opens, uses, streams, delays, gate)          \
    { text, unfenced, opens, uses, streams, delays, RACE_##gate },
    RACE_ARM_MAP(X)
#undef X
};

/* --- options --------------------------------------------------------------- */

static bool read_number(const char *text, const char *option, long long least,
                        long long most, long long *value)
{
    char *end;

    errno = 0;
    *value = strtoll(text, &end, 10);
    if (errno == 0 && *text != '\0' && *end == '\0' && *value >= least &&
        *value <= most)
        return true;
    fprintf(stderr, WHO ": %s takes a number from %lld to %lld, and got '%s'\n",
            option, least, most, text);
    return false;
}

/* One option that getopt_long has found; false: it is wrong, and that was said. */
static bool take_option(int c, const char *given, options *o)
{
    long long value = 0;

    switch (c) {
    case 'r':
        if (!read_number(optarg, "--runs", 1, RUNS_MOST, &value))
            return false;
        o->runs = (int)value;
        return true;
    case 'n':
        if (!read_number(optarg, "--ranks", 2, RACE_RANKS_MOST, &value))
            return false;
        o->ranks = (int)value;
        return true;
    case 's':
        if (!read_number(optarg, "--seed", 0, 1000000000, &value))
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
                WHO ": there is no option '%s'; 'raddle bench race --help' "
                    "lists all\n",
                given);
        return false;
    }
}

/* -1: go on; else the exit status. */
static int read_options(int argc, char **argv, options *o)
{
    static const struct option known[] = {
        { "runs", required_argument, NULL, 'r' },
        { "ranks", required_argument, NULL, 'n' },
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

/* --- runs ------------------------------------------------------------------ */

static bool run_once(const options *o, const race_arm *arm, bool compare,
                     int run, score *s)
{
    char job[64];
    race_setting setting = { .arm = arm,
                             .compare = compare,
                             .ranks = o->ranks,
                             .seed = o->seed * RUNS_MOST + (uint64_t)run,
                             .job = job };
    race_report report = { 0 };

    snprintf(job, sizeof job, "race-%d-%d-%d-%d", (int)getpid(),
             (int)(arm - arms), compare, run);
    if (!race_run(&setting, &report)) {
        fprintf(stderr, WHO ": %s: run %d: %s\n", arm->name, run,
                report.sentence);
        return false;
    }
    s->ends[report.end]++;
    s->total++;
    if (report.end == RACE_PASSED || report.end == RACE_WRONG)
        s->ms[s->n_ms++] = report.ms;
    if (s->sentence[0] == '\0')
        memcpy(s->sentence, report.sentence, sizeof s->sentence);
    return true;
}

/* Arm after arm in each round, so that what the machine does meanwhile meets all
 * of them. */
static bool run_all(const options *o, score scores[RACE_ARMS][2])
{
    for (int run = 0; run < o->runs; run++)
        for (int a = 0; a < RACE_ARMS; a++)
            for (int compare = 0; compare < 2; compare++)
                if (!run_once(o, &arms[a], compare, run, &scores[a][compare]))
                    return false;
    return true;
}

/* --- the table ------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* part of the sorted times; there is one at least. */
static double quantile(const score *s, double part)
{
    return s->ms[(int)(part * (double)(s->n_ms - 1) + 0.5)];
}

static bool holds(const race_arm *arm, const score *s)
{
    int failed = s->total - s->ends[RACE_PASSED];

    if (arm->gate == RACE_PASSES)
        return failed == 0;
    return arm->gate == RACE_REPORTED || s->total < RUNS_JUDGED ||
           3 * failed >= s->total;
}

static void print_json(const race_arm *arm, bool compare, const score *s)
{
    printf("{\"arm\":\"%s\",\"compare\":%s,\"passed\":%d,\"total\":%d,"
           "\"wrong\":%d,\"mismatch\":%d,\"timeout\":%d,\"ms\":",
           arm->name, compare ? "true" : "false", s->ends[RACE_PASSED], s->total,
           s->ends[RACE_WRONG], s->ends[RACE_MISMATCH], s->ends[RACE_TIMEOUT]);
    if (s->n_ms > 0)
        printf("[%.3f,%.3f,%.3f]", quantile(s, 0.25), quantile(s, 0.5),
               quantile(s, 0.75));
    else
        printf("null");
    printf(",\"holds\":%s}\n", holds(arm, s) ? "true" : "false");
}

static void print_head(const options *o)
{
    printf("%d ranks, %d streams, %d calls, delays up to %d us, limit %d ms, "
           "seed %llu\n\n",
           o->ranks, RACE_STREAMS, RACE_CALLS, RACE_DELAY_US, RACE_LIMIT_MS,
           (unsigned long long)o->seed);
    printf("%-16s  %-12s  %-9s %6s %9s %8s  %s\n", "arm", "fingerprints",
           "passed", "wrong", "mismatch", "timeout", "ms: quartiles");
}

static void print_row(const race_arm *arm, bool compare, const score *s)
{
    char passed[32];

    snprintf(passed, sizeof passed, "%d of %d", s->ends[RACE_PASSED], s->total);
    printf("%-16s  %-12s  %-9s %6d %9d %8d", arm->name, compare ? "on" : "off",
           passed, s->ends[RACE_WRONG], s->ends[RACE_MISMATCH],
           s->ends[RACE_TIMEOUT]);
    if (s->n_ms > 0)
        printf("  %.1f %.1f %.1f", quantile(s, 0.25), quantile(s, 0.5),
               quantile(s, 0.75));
    printf("%s\n", holds(arm, s) ? "" : "  <- not as it must be");
}

static void print_sentences(score scores[RACE_ARMS][2])
{
    printf("\n");
    for (int a = 0; a < RACE_ARMS; a++)
        for (int compare = 1; compare >= 0; compare--)
            if (scores[a][compare].sentence[0] != '\0')
                printf("%s, fingerprints %s: %s\n", arms[a].name,
                       compare ? "on" : "off", scores[a][compare].sentence);
}

/* The exit status. */
static int report(const options *o, score scores[RACE_ARMS][2])
{
    bool good = true;

    if (!o->json)
        print_head(o);
    for (int a = 0; a < RACE_ARMS; a++)
        for (int compare = 1; compare >= 0; compare--) {
            score *s = &scores[a][compare];

            qsort(s->ms, (size_t)s->n_ms, sizeof *s->ms, by_size);
            (o->json ? print_json : print_row)(&arms[a], compare, s);
            good &= holds(&arms[a], s);
        }
    if (!o->json)
        print_sentences(scores);
    return fflush(stdout) == 0 && good ? 0 : FAILED;
}

static bool make_room(const options *o, score scores[RACE_ARMS][2])
{
    bool good = true;

    for (int a = 0; a < RACE_ARMS; a++)
        for (int compare = 0; compare < 2; compare++) {
            score *s = &scores[a][compare];

            s->ms = calloc((size_t)o->runs, sizeof *s->ms);
            good &= s->ms != NULL;
        }
    if (!good)
        fprintf(stderr, WHO ": no memory\n");
    return good;
}

static void free_room(score scores[RACE_ARMS][2])
{
    for (int a = 0; a < RACE_ARMS; a++)
        for (int compare = 0; compare < 2; compare++)
            free(scores[a][compare].ms);
}

int main(int argc, char **argv)
{
    score scores[RACE_ARMS][2];
    options o = { .runs = 28, .ranks = 4, .seed = 1 };
    int status = read_options(argc, argv, &o);

    if (status >= 0)
        return status;
    memset(scores, 0, sizeof scores);
    status = make_room(&o, scores) && run_all(&o, scores) ? report(&o, scores)
                                                          : FAILED;
    free_room(scores);
    return status;
}
