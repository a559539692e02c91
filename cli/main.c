/* The raddle command: a table of subcommands. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "command.h"
#include "nearest.h"
#include "say.h"
#include "train/train.h"

#include <errno.h>
#include <raddle/version.h>
#include <stdio.h>
#include <string.h>

static int version_command(const command *self, int argc, char **argv);
static int help_command(const command *self, int argc, char **argv);

static const char version_help[] =
    "Usage: raddle version\n"
    "\n"
    "Prints the version of the library that the command runs with.\n";

static const char help_help[] =
    "Usage: raddle help [COMMAND]\n"
    "\n"
    "Prints what COMMAND does and its options, or the list of commands.\n";

static const command commands[] = {
    { "run", "start the ranks of a program and explain the first failure",
      run_help, NULL, run_command },
    { "train", "train a small Llama, context parallel and sharded", NULL,
      train_show_help, train_command },
    { "dump", "show what the ranks of a running job did last", dump_help, NULL,
      dump_command },
    { "bench", "run a benchmark, or list them", bench_help, NULL, bench_command },
    { "version", "print the version", version_help, NULL, version_command },
    { "help", "explain a command", help_help, NULL, help_command },
};

#define COMMANDS (sizeof commands / sizeof commands[0])

int command_finish_output(void)
{
    if (fflush(stdout) == 0)
        return 0;
    say("raddle", "cannot write to standard output: %s (%s)", strerror(errno),
        strerrorname_np(errno));
    return STATUS_FAILED;
}

int command_show_help(const command *self)
{
    if (self->show_help != NULL)
        return self->show_help();
    fputs(self->help, stdout);
    return command_finish_output();
}

static int show_commands(void)
{
    printf("Usage: raddle COMMAND [ARGUMENTS]\n"
           "\n"
           "Runs SPMD programs on one machine.\n"
           "\n"
           "Commands:\n");
    for (size_t i = 0; i < COMMANDS; i++)
        printf("  %-9s %s\n", commands[i].name, commands[i].summary);
    printf("\n"
           "Options:\n"
           "  -h, --help     print this text\n"
           "      --version  print the version\n"
           "\n"
           "'raddle help COMMAND' explains one of them. Wrong usage ends with "
           "status 2.\n");
    return command_finish_output();
}

static const command *find_command(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static int refuse_command(const char *who, const char *name)
{
    const char *known[COMMANDS + 1] = { NULL };

    for (size_t i = 0; i < COMMANDS; i++)
        known[i] = commands[i].name;
    say(who,
        "there is no command '%s'; the nearest is '%s', and 'raddle --help' "
        "lists all",
        name, nearest_word(name, known));
    return STATUS_USAGE;
}

static int refuse_option(const char *option)
{
    static const char *const known[] = { "--help", "--version", "-h", NULL };

    say("raddle",
        "there is no option '%s'; the nearest is '%s', and 'raddle --help' "
        "lists all",
        option, nearest_word(option, known));
    return STATUS_USAGE;
}

static int version_command(const command *self, int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--help") == 0)
        return command_show_help(self);
    if (argc > 1) {
        say("raddle version", "takes no arguments, and got '%s'", argv[1]);
        return STATUS_USAGE;
    }
    printf("raddle %s\n", rdl_version());
    return command_finish_output();
}

static int help_command(const command *self, int argc, char **argv)
{
    const command *asked;

    if (argc < 2)
        return show_commands();
    if (argc > 2) {
        say("raddle help", "takes one command, and got '%s' after '%s'",
            argv[2], argv[1]);
        return STATUS_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0)
        return command_show_help(self);
    asked = find_command(argv[1]);
    return asked != NULL ? command_show_help(asked)
                         : refuse_command("raddle help", argv[1]);
}

int main(int argc, char **argv)
{
    const command *asked;

    if (argc < 2) {
        say("raddle", "which command? 'raddle --help' lists them");
        return STATUS_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return show_commands();
    if (strcmp(argv[1], "--version") == 0)
        return version_command(find_command("version"), argc - 1, argv + 1);
    if (argv[1][0] == '-')
        return refuse_option(argv[1]);
    asked = find_command(argv[1]);
    if (asked == NULL)
        return refuse_command("raddle", argv[1]);
    return asked->run(asked, argc - 1, argv + 1);
}
