/* `raddle dump`: its arguments, and whose memory is read. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "children.h"
#include "command.h"
#include "nearest.h"
#include "records.h"
#include "say.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>

#define DUMP "raddle dump"
#define SEE_HELP "'raddle dump --help' explains"
#define LAST_DEFAULT 20

const char dump_help[] =
    "Usage: raddle dump [OPTIONS] PID\n"
    "\n"
    "Shows what the ranks of a running job did last, and what each waits for, "
    "without\n"
    "asking them: they may be stopped, or dead as long as the job is not. PID "
    "is a\n"
    "process of the job: of a rank, or of who started it. All of its ranks "
    "are shown.\n"
    "\n"
    "Options:\n"
    "      --last N     the last N calls of each rank; default 20\n"
    "      --rank R     rank R alone\n"
    "      --json       an object a line, for each rank and for each call\n"
    "  -h, --help       print this text\n"
    "\n"
    "Exit status: 0, 2 for wrong usage, 1 if PID is no such process or may "
    "not be\n"
    "looked at.\n";

enum { OPTION_LAST = 256, OPTION_RANK, OPTION_JSON };

static const struct option long_options[] = {
    { "last", required_argument, NULL, OPTION_LAST },
    { "rank", required_argument, NULL, OPTION_RANK },
    { "json", no_argument, NULL, OPTION_JSON },
    { "help", no_argument, NULL, 'h' },
    { NULL, 0, NULL, 0 },
};

static const char *const option_names[] = { "--last", "--rank", "--json",
                                            "--help", "-h",     NULL };

/* A number in words of the user, for that option or argument. */
static bool parse(const char *what, const char *given, long least, long most,
                  long *out)
{
    char *end;

    errno = 0;
    *out = strtol(given, &end, 10);
    if (*given >= '0' && *given <= '9' && *end == '\0' && errno == 0 &&
        *out >= least && *out <= most)
        return true;
    say(DUMP, "%s is a number from %ld to %ld, and not '%s'; " SEE_HELP, what,
        least, most, given);
    return false;
}

typedef enum parsed { PARSED_DUMP, PARSED_HELP, PARSED_WRONG } parsed;

static parsed refuse_option(int option, char **argv)
{
    if (option == ':')
        say(DUMP, "%s wants a value behind it; " SEE_HELP, argv[optind - 1]);
    else
        say(DUMP, "there is no option '%s'; the nearest is '%s', and " SEE_HELP,
            argv[optind - 1], nearest_word(argv[optind - 1], option_names));
    return PARSED_WRONG;
}

static parsed parse_options(records_options *o, int argc, char **argv)
{
    long number;
    int option;

    opterr = 0;
    optind = 1;
    while ((option = getopt_long(argc, argv, ":h", long_options, NULL)) != -1)
        switch (option) {
        case OPTION_LAST:
            if (!parse("--last", optarg, 1, LONG_MAX, &number))
                return PARSED_WRONG;
            o->last = (uint64_t)number;
            break;
        case OPTION_RANK:
            if (!parse("--rank", optarg, 0, RDL_MAX_RANKS - 1, &number))
                return PARSED_WRONG;
            o->rank = (int)number;
            break;
        case OPTION_JSON:
            o->json = true;
            break;
        case 'h':
            return PARSED_HELP;
        default:
            return refuse_option(option, argv);
        }
    return PARSED_DUMP;
}

/* Who started a job may hold nothing of it itself: then one of the processes below
 * does. */
static rdl_status open_below(pid_t pid, rdl_dump **dump)
{
    rdl_status st = rdl_dump_open(pid, dump), below = RDL_STATE;
    pid_list list = { 0 };

    if (st == RDL_STATE && descendants_list(pid, &list))
        for (size_t i = 0; i < list.count && below != RDL_OK; i++)
            below = rdl_dump_open(list.pid[i], dump);
    pid_list_free(&list);
    if (st != RDL_STATE || below == RDL_OK)
        return st == RDL_STATE ? RDL_OK : st;
    return rdl_dump_open(pid, dump); /* for its sentence */
}

static int show(pid_t pid, const records_options *options)
{
    rdl_dump *dump = NULL;
    int size = 0;

    if (open_below(pid, &dump) != RDL_OK) {
        say(DUMP, "%s", rdl_error_detail());
        return STATUS_FAILED;
    }
    for (int job = 0; job < rdl_dump_jobs(dump); job++)
        if (rdl_dump_size(dump, job) > size)
            size = rdl_dump_size(dump, job);
    if (options->rank >= size) {
        say(DUMP, "there is no rank %d: the job's ranks are 0 to %d",
            options->rank, size - 1);
        rdl_dump_close(dump);
        return STATUS_USAGE;
    }
    for (int job = 0; job < rdl_dump_jobs(dump); job++)
        records_print(stdout, dump, job, options);
    rdl_dump_close(dump);
    return command_finish_output();
}

int dump_command(const command *self, int argc, char **argv)
{
    records_options options = { .last = LAST_DEFAULT, .rank = -1 };
    long pid;

    switch (parse_options(&options, argc, argv)) {
    case PARSED_HELP:
        return command_show_help(self);
    case PARSED_WRONG:
        return STATUS_USAGE;
    case PARSED_DUMP:
        break;
    }
    if (argc - optind != 1) {
        say(DUMP, "which process? One process id is wanted, and %d are given; " SEE_HELP,
            argc - optind);
        return STATUS_USAGE;
    }
    if (!parse("the process id", argv[optind], 1, INT_MAX, &pid))
        return STATUS_USAGE;
    return show((pid_t)pid, &options);
}
