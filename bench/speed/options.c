/* The command line. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "speed.h"

#include "comm/choice.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define BYTES_MOST (1024 * MIB)

static const char help[] =
    "Usage: raddle bench OPERATION ... [OPTIONS]\n"
    "       raddle bench [--full | --summary | --explain] [OPTIONS]\n"
    "\n"
    "Times collective calls: latency, bandwidth, and with --peers beside Open "
    "MPI,\n"
    "MPICH and gloo, which take turns with raddle in one run. Every result is\n"
    "looked at, before and after. Without an operation: the six that peers "
    "have.\n"
    "\n"
    "Operations: barrier all_reduce all_gather reduce_scatter all_to_all "
    "broadcast\n"
    "(these peers have), reduce gather scatter all_gather_v reduce_scatter_v\n"
    "all_to_all_v exchange\n"
    "\n"
    "What is measured:\n"
    "  --ranks LIST      numbers of ranks, 2 to 256; default 2,4\n"
    "  --bytes LIST      of a rank's input; default 8,4K,64K,1M,16M\n"
    "  --dtypes LIST     float32, bfloat16, ...; default float32\n"
    "  --groups N        the ranks in N groups of neighbours, all of which "
    "call at\n"
    "                    once; default 1\n"
    "  --mapped          buffers of rdl_mem_alloc\n"
    "  --fresh           inputs are written before every call, outside its "
    "time\n"
    "  --pin             raddle's ranks stay on a core each, as Open MPI's do\n"
    "  --peers           Open MPI, MPICH and gloo by turns with raddle\n"
    "  --turns N         of each, 1 to 99; default 7\n"
    "  --seconds N       begin no point after these; default: no limit\n"
    "  --full            2, 4 and 8 ranks, float32 and bfloat16, 8 B to 64 "
    "MiB\n"
    "  --summary         a fixed short set with peers, in 50 seconds, and of "
    "it "
    "the\n"
    "                    last line alone\n"
    "  --algorithm RULES rules before raddle's own, RADDLE_ALGORITHM of the "
    "ranks:\n"
    "                    OPERATION[:BYTES[:RANKS[:CORES]]]=ALGORITHM,...\n"
    "\n"
    "What is shown:\n"
    "  --explain         the table by which calls take an algorithm, and what "
    "calls\n"
    "                    of these sizes and ranks take; nothing is measured\n"
    "  --json            an object a line\n"
    "  -h, --help        this text\n"
    "\n"
    "Status: 0 if all results were right, 1 if not or if ranks failed, 2 for "
    "wrong\n"
    "usage. That a peer is not installed is said and is no failure.\n";

/* --- lists ----------------------------------------------------------------- */

/* Takes one word of a list; false if it is wrong. */
typedef bool (*take_word)(speed_options *o, const char *word);

static bool take_ranks(speed_options *o, const char *word)
{
    char *end;
    long n = strtol(word, &end, 10);

    if (*word == '\0' || *end != '\0' || n < 2 || n > SPEED_RANKS_MOST)
        return false;
    o->ranks[o->n_ranks++] = (int)n;
    return true;
}

static bool take_bytes(speed_options *o, const char *word)
{
    char *end;
    unsigned long long n;

    errno = 0;
    n = strtoull(word, &end, 10);
    if (*word < '0' || *word > '9' || errno != 0 || n > BYTES_MOST)
        return false;
    if (*end == 'K' || *end == 'M')
        n *= *end++ == 'K' ? KIB : MIB;
    if (*end != '\0' || n == 0 || n > BYTES_MOST)
        return false;
    o->bytes[o->n_bytes++] = n;
    return true;
}

static bool take_dtype(speed_options *o, const char *word)
{
    static const char *const names[] = {
#define X(number, text, ...) [RDL_##number] = #text,
        RDL_DTYPE_MAP(X)
#undef X
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], word) == 0) {
            o->dtypes[o->n_dtypes++] = (rdl_dtype)i;
            return true;
        }
    return false;
}

static bool read_list(const char *option, const char *text, const char *what,
                      take_word take, speed_options *o)
{
    char copy[256], *rest = copy, *word;
    int n = 0;

    snprintf(copy, sizeof copy, "%s", text);
    while ((word = strsep(&rest, ",")) != NULL) {
        if (n++ < SPEED_LIST_MOST && strlen(text) < sizeof copy && take(o, word))
            continue;
        fprintf(stderr, SPEED_WHO ": %s takes %s, and got '%.64s'\n", option,
                what, text);
        return false;
    }
    return true;
}

static bool read_number(const char *option, const char *text, long least,
                        long most, long *value)
{
    char *end;

    errno = 0;
    *value = strtol(text, &end, 10);
    if (errno == 0 && *text != '\0' && *end == '\0' && *value >= least &&
        *value <= most)
        return true;
    fprintf(stderr,
            SPEED_WHO ": %s takes a number from %ld to %ld, and got '%.64s'\n",
            option, least, most, text);
    return false;
}

/* --- options --------------------------------------------------------------- */

static void set_ranks(speed_options *o, int n, const int *ranks)
{
    o->n_ranks = n;
    memcpy(o->ranks, ranks, (size_t)n * sizeof *ranks);
}

static void set_bytes(speed_options *o, int n, const uint64_t *bytes)
{
    o->n_bytes = n;
    memcpy(o->bytes, bytes, (size_t)n * sizeof *bytes);
}

static void take_the_full_table(speed_options *o)
{
    set_ranks(o, 3, (int[]){ 2, 4, 8 });
    set_bytes(o, 7,
              (uint64_t[]){ 8, 256, 4 * KIB, 64 * KIB, MIB, 16 * MIB, 64 * MIB });
    o->n_dtypes = 2;
    o->dtypes[0] = RDL_FLOAT32;
    o->dtypes[1] = RDL_BFLOAT16;
}

static void take_the_summary(speed_options *o)
{
    set_ranks(o, 3, (int[]){ 2, 4, 8 });
    set_bytes(o, 3, (uint64_t[]){ 8, 64 * KIB, MIB });
    o->peers = true;
    o->summary = true;
    o->turn_ms = 3;
    o->seconds = 46;
}

static bool take_list(int c, speed_options *o)
{
    switch (c) {
    case 'n':
        o->n_ranks = 0;
        return read_list("--ranks", optarg, "numbers from 2 to 256", take_ranks,
                         o);
    case 'b':
        o->n_bytes = 0;
        return read_list("--bytes", optarg, "sizes such as 8, 64K or 16M",
                         take_bytes, o);
    default:
        o->n_dtypes = 0;
        return read_list("--dtypes", optarg, "names such as float32,bfloat16",
                         take_dtype, o);
    }
}

static bool take_number(int c, speed_options *o)
{
    long value = 0;

    switch (c) {
    case 't':
        if (!read_number("--turns", optarg, 1, SPEED_TURNS_MOST, &value))
            return false;
        o->turns = (int)value;
        return true;
    case 'g':
        if (!read_number("--groups", optarg, 1, SPEED_RANKS_MOST / 2, &value))
            return false;
        o->groups = (int)value;
        return true;
    default:
        if (!read_number("--seconds", optarg, 1, 86400, &value))
            return false;
        o->seconds = (double)value;
        return true;
    }
}

/* Ranks inherit them, and the driver explains by them. */
static bool take_rules(const char *text)
{
    rdl_choices choices;

    if (rdl_choices_read(text, &choices) == RDL_OK)
        return setenv("RADDLE_ALGORITHM", text, 1) == 0;
    fprintf(stderr, SPEED_WHO ": --algorithm: %s\n", rdl_error_detail());
    return false;
}

static bool refuse(int c, const char *given)
{
    if (c == ':')
        fprintf(stderr, SPEED_WHO ": '%s' needs a value\n", given);
    else
        fprintf(stderr,
                SPEED_WHO ": there is no option '%s'; 'raddle bench all_reduce "
                          "--help' lists all\n",
                given);
    return false;
}

static bool take_option(int c, const char *given, speed_options *o)
{
    switch (c) {
    case 'a':
        return take_rules(optarg);
    case 'F':
        take_the_full_table(o);
        return true;
    case 'S':
        take_the_summary(o);
        return true;
    case 'm':
    case 'f':
    case 'p':
    case 'P':
    case 'j':
    case 'e':
        o->mapped |= c == 'm';
        o->fresh |= c == 'f';
        o->peers |= c == 'p';
        o->pin |= c == 'P';
        o->json |= c == 'j';
        o->explain |= c == 'e';
        return true;
    case 'n':
    case 'b':
    case 'd':
        return take_list(c, o);
    case 't':
    case 'g':
    case 's':
        return take_number(c, o);
    default:
        return refuse(c, given);
    }
}

static bool take_operation(speed_options *o, const char *word)
{
    for (int i = 0; i < SPEED_OPERATIONS; i++)
        if (strcmp(speed_operation_name(i), word) == 0) {
            o->operations[i] = true;
            return true;
        }
    fprintf(stderr, SPEED_WHO ": there is no operation '%.64s'\n", word);
    return false;
}

/* What fits together. */
static bool fits(const speed_options *o)
{
    for (int i = 0; i < o->n_ranks; i++) {
        if (o->ranks[i] % o->groups == 0 && o->ranks[i] / o->groups >= 2)
            continue;
        fprintf(stderr,
                SPEED_WHO ": %d ranks are not %d groups of one size, of two or "
                          "more\n",
                o->ranks[i], o->groups);
        return false;
    }
    if (o->groups == 1 || !o->peers)
        return true;
    fprintf(stderr, SPEED_WHO ": --groups is without --peers: groups at once "
                              "are raddle's alone\n");
    return false;
}

static speed_options defaults(void)
{
    speed_options o = { .turns = 7, .groups = 1, .turn_ms = 5 };

    set_ranks(&o, 2, (int[]){ 2, 4 });
    set_bytes(&o, 5, (uint64_t[]){ 8, 4 * KIB, 64 * KIB, MIB, 16 * MIB });
    o.n_dtypes = 1;
    o.dtypes[0] = RDL_FLOAT32;
    return o;
}

int speed_read_options(int argc, char **argv, speed_options *o)
{
    static const struct option known[] = {
        { "ranks", required_argument, NULL, 'n' },
        { "bytes", required_argument, NULL, 'b' },
        { "dtypes", required_argument, NULL, 'd' },
        { "groups", required_argument, NULL, 'g' },
        { "mapped", no_argument, NULL, 'm' },
        { "fresh", no_argument, NULL, 'f' },
        { "algorithm", required_argument, NULL, 'a' },
        { "peers", no_argument, NULL, 'p' },
        { "pin", no_argument, NULL, 'P' },
        { "turns", required_argument, NULL, 't' },
        { "seconds", required_argument, NULL, 's' },
        { "full", no_argument, NULL, 'F' },
        { "summary", no_argument, NULL, 'S' },
        { "explain", no_argument, NULL, 'e' },
        { "json", no_argument, NULL, 'j' },
        { "help", no_argument, NULL, 'h' },
        { 0 },
    };
    int c;

    *o = defaults();
    opterr = 0;
    while ((c = getopt_long(argc, argv, ":h", known, NULL)) != -1) {
        if (c == 'h') {
            fputs(help, stdout);
            return fflush(stdout) == 0 ? 0 : SPEED_FAILED;
        }
        if (!take_option(c, argv[optind - 1], o))
            return SPEED_USAGE;
    }
    for (int i = optind; i < argc; i++)
        if (!take_operation(o, argv[i]))
            return SPEED_USAGE;
    for (int i = 0; i < SPEED_PEER_OPERATIONS && optind == argc; i++)
        o->operations[i] = true;
    return fits(o) ? -1 : SPEED_USAGE;
}
