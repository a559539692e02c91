/* The command line. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "options.h"

#include "race.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

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
    "With --train the ranks train a small llama, all on the world: one stream\n"
    "gathers parameters, one sums gradients, and keys and values are "
    "exchanged on\n"
    "that of the computing. Losses and norms must be, bit for bit, those of "
    "one\n"
    "stream.\n"
    "\n"
    "Options:\n"
    "  --train      train, rather than make calls alone\n"
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

static bool read_number(const char *text, const char *option, long long least,
                        long long most, long long *value)
{
    char *end;

    errno = 0;
    *value = strtoll(text, &end, 10);
    if (errno == 0 && *text != '\0' && *end == '\0' && *value >= least &&
        *value <= most)
        return true;
    fprintf(stderr,
            RACE_WHO ": %s takes a number from %lld to %lld, and got '%s'\n",
            option, least, most, text);
    return false;
}

/* One option that getopt_long has found; false: it is wrong, and that was said. */
static bool take_option(int c, const char *given, race_options *o)
{
    long long value = 0;

    switch (c) {
    case 'r':
        if (!read_number(optarg, "--runs", 1, RACE_RUNS_MOST, &value))
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
    case 't':
        o->train = true;
        return true;
    case 'j':
        o->json = true;
        return true;
    case ':':
        fprintf(stderr, RACE_WHO ": '%s' needs a value\n", given);
        return false;
    default:
        fprintf(stderr,
                RACE_WHO
                ": there is no option '%s'; 'raddle bench race --help' "
                "lists all\n",
                given);
        return false;
    }
}

int race_read_options(int argc, char **argv, race_options *o)
{
    static const struct option known[] = {
        { "runs", required_argument, NULL, 'r' },
        { "ranks", required_argument, NULL, 'n' },
        { "seed", required_argument, NULL, 's' },
        { "train", no_argument, NULL, 't' },
        { "json", no_argument, NULL, 'j' },
        { "help", no_argument, NULL, 'h' },
        { 0 },
    };
    int c;

    opterr = 0;
    while ((c = getopt_long(argc, argv, "+:h", known, NULL)) != -1) {
        if (c == 'h') {
            fputs(help, stdout);
            return fflush(stdout) == 0 ? 0 : RACE_FAILED;
        }
        if (!take_option(c, argv[optind - 1], o))
            return RACE_USAGE;
    }
    if (optind == argc)
        return -1;
    fprintf(stderr, RACE_WHO ": takes no arguments, and got '%s'\n",
            argv[optind]);
    return RACE_USAGE;
}
