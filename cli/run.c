/* `raddle run`: its arguments, checked before anything is started. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "run.h"

#include "command.h"
#include "launcher.h"
#include "nearest.h"
#include "program.h"
#include "say.h"

#include <errno.h>
#include <getopt.h>
#include <raddle/world.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUN "raddle run"
#define GRACE_DEFAULT_MS 5000
#define GRACE_MOST_S 86400

#define TEXT_OF_(x) #x
#define TEXT_OF(x) TEXT_OF_(x)
#define RANKS_MOST_TEXT TEXT_OF(RDL_MAX_RANKS)

const char run_help[] =
    "Usage: raddle run -n RANKS [OPTIONS] [--] PROGRAM [ARGUMENTS]\n"
    "\n"
    "Starts PROGRAM once for each rank, on this machine, and waits for all. "
    "What\n"
    "ranks print comes out line by line, each line whole and with its rank in\n"
    "front. When a rank fails, the others are ended and the first one to fail "
    "is\n"
    "named. Nothing that the ranks started is left running.\n"
    "\n"
    "Options:\n"
    "  -n, --ranks RANKS    how many ranks, 1 to " RANKS_MOST_TEXT
    "; required\n"
    "      --grace SECONDS  from asking ranks to end (SIGTERM) to ending them\n"
    "                       (SIGKILL), 0 to 86400, decimals allowed; default "
    "5\n"
    "      --dump FILE      when a rank has failed, write what all did last to "
    "FILE,\n"
    "                       an object a line\n"
    "      --log-dir DIR    also write what each rank prints to DIR/rank-N.out "
    "and\n"
    "                       DIR/rank-N.err, which must not be there; DIR is "
    "made\n"
    "      --no-prefix      print lines as they are, without the rank\n"
    "  -h, --help           print this text\n"
    "\n"
    "Options after PROGRAM are the program's own.\n"
    "\n"
    "Each rank's environment has RADDLE_RANK, RADDLE_WORLD_SIZE and RADDLE_FD, "
    "and\n"
    "RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE as torchrun sets them; "
    "so are\n"
    "MASTER_ADDR and MASTER_PORT, if they are not set, with a free port that "
    "is "
    "kept\n"
    "for rank 0.\n"
    "Rank 0 reads the standard input of raddle run, the others an empty one. "
    "Of\n"
    "open files, ranks inherit standard input, output and error only.\n"
    "\n"
    "After the first failure the other ranks have 2 seconds to end by "
    "themselves;\n"
    "then come SIGTERM, the grace period, and SIGKILL. SIGINT, SIGTERM, SIGHUP "
    "and\n"
    "SIGQUIT sent to raddle run are passed on to the ranks, and SIGKILL "
    "follows\n"
    "after the grace period; SIGINT while the job is being ended cuts it "
    "short.\n"
    "\n"
    "Exit status: 0 if every rank's was 0; else that of the first rank that "
    "failed,\n"
    "128 + N if signal N killed it or ended raddle run, 2 for wrong usage "
    "(nothing\n"
    "was started), 1 for anything else that went wrong.\n";

/* getopt's codes of options that have no letter. */
enum { OPTION_GRACE = 256, OPTION_DUMP, OPTION_LOG_DIR, OPTION_NO_PREFIX };

static const struct option long_options[] = {
    { "ranks", required_argument, NULL, 'n' },
    { "grace", required_argument, NULL, OPTION_GRACE },
    { "dump", required_argument, NULL, OPTION_DUMP },
    { "log-dir", required_argument, NULL, OPTION_LOG_DIR },
    { "no-prefix", no_argument, NULL, OPTION_NO_PREFIX },
    { "help", no_argument, NULL, 'h' },
    { NULL, 0, NULL, 0 },
};

static const char *const option_names[] = {
    "--ranks", "--grace", "--dump", "--log-dir", "--no-prefix",
    "--help",  "-n",      "-h",     NULL
};

#define SEE_HELP "'raddle run --help' explains"

static bool parse_ranks(const char *text, int *ranks)
{
    char *end;
    long n;

    errno = 0;
    n = strtol(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 || n < 1 ||
        n > RDL_MAX_RANKS) {
        say(RUN,
            "-n takes a number of ranks from 1 to %d, and got '%s'; " SEE_HELP,
            RDL_MAX_RANKS, text);
        return false;
    }
    *ranks = (int)n;
    return true;
}

static bool parse_grace(const char *text, int64_t *ms)
{
    char *end;
    double seconds = strtod(text, &end);

    /* Digits and a point only: strtod also reads "inf", "0x1" and "1e3". */
    if (text[strspn(text, "0123456789.")] != '\0' || end == text ||
        *end != '\0' || seconds > GRACE_MOST_S) {
        say(RUN, "--grace takes seconds from 0 to %d, and got '%s'; " SEE_HELP,
            GRACE_MOST_S, text);
        return false;
    }
    *ms = (int64_t)(seconds * 1000);
    return true;
}

static bool parse_name(const char *option, const char *kind, const char *text,
                       const char **name)
{
    if (*text == '\0') {
        say(RUN, "%s takes a %s, and got an empty name; " SEE_HELP, option,
            kind);
        return false;
    }
    *name = text;
    return true;
}

/* getopt answers '?' and tells by optopt: 0 for a long option that is not known,
 * the code of a known one that was given a value it does not take, else a letter
 * that is not known. */
static void refuse_option(char **argv)
{
    char given[64] = { '-', (char)optopt, '\0' };
    bool has_value = optopt == 'h' || optopt == OPTION_NO_PREFIX;

    if (optopt == 0 || has_value)
        snprintf(given, sizeof given, "%.*s",
                 (int)strcspn(argv[optind - 1], "="), argv[optind - 1]);
    if (has_value)
        say(RUN, "%s takes no value; " SEE_HELP, given);
    else
        say(RUN, "there is no option '%s'; the nearest is '%s', and " SEE_HELP,
            given, nearest_word(given, option_names));
}

/* What parse_options found. */
typedef enum parsed { PARSED_RUN, PARSED_HELP, PARSED_WRONG } parsed;

static parsed parse_options(run_options *o, int argc, char **argv)
{
    int option;

    opterr = 0;
    optind = 1;
    while ((option = getopt_long(argc, argv, "+:n:h", long_options, NULL)) != -1)
        switch (option) {
        case 'n':
            if (!parse_ranks(optarg, &o->ranks))
                return PARSED_WRONG;
            break;
        case OPTION_GRACE:
            if (!parse_grace(optarg, &o->grace_ms))
                return PARSED_WRONG;
            break;
        case OPTION_LOG_DIR:
            if (!parse_name("--log-dir", "folder", optarg, &o->log_dir))
                return PARSED_WRONG;
            break;
        case OPTION_DUMP:
            if (!parse_name("--dump", "file", optarg, &o->dump))
                return PARSED_WRONG;
            break;
        case OPTION_NO_PREFIX:
            o->prefix = PREFIX_NONE;
            break;
        case 'h':
            return PARSED_HELP;
        case ':':
            say(RUN, "%s wants a value behind it; " SEE_HELP, argv[optind - 1]);
            return PARSED_WRONG;
        default:
            refuse_option(argv);
            return PARSED_WRONG;
        }
    return PARSED_RUN;
}

/* The arguments that are no options: the program and its own. */
static bool take_program(run_options *o, char **rest)
{
    char why[SAY_MOST];

    if (o->ranks == 0) {
        say(RUN, "how many ranks? -n takes a number from 1 to %d; " SEE_HELP,
            RDL_MAX_RANKS);
        return false;
    }
    if (rest[0] == NULL) {
        say(RUN, "which program? It follows the options; " SEE_HELP);
        return false;
    }
    o->argv = rest;
    o->path = program_find(rest[0], why, sizeof why);
    if (o->path == NULL)
        say(RUN, "%s", why);
    return o->path != NULL;
}

int run_command(const command *self, int argc, char **argv)
{
    run_options o = { .who = RUN, .grace_ms = GRACE_DEFAULT_MS };
    int status;

    switch (parse_options(&o, argc, argv)) {
    case PARSED_HELP:
        return command_show_help(self);
    case PARSED_WRONG:
        return STATUS_USAGE;
    case PARSED_RUN:
        break;
    }
    if (!take_program(&o, argv + optind))
        return STATUS_USAGE;
    status = launch(&o);
    free(o.path);
    return status;
}
