/* Subcommands: `raddle NAME ARGUMENTS`. Each is one entry of the table in main.c,
 * which knows nothing else of them. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_CLI_COMMAND_H
#define RDL_CLI_COMMAND_H

/* Exit statuses of the command itself; what ranks end with is passed on. */
#define STATUS_FAILED 1
#define STATUS_USAGE 2

typedef struct command {
    const char *name;
    const char *summary;    /* the rest of its line in `raddle --help` */
    const char *help;       /* what `raddle NAME --help` prints, */
    int (*show_help)(void); /* or, if it is made from a table, what prints it */
    /* argv[0] is the name; returns the exit status. */
    int (*run)(const struct command *self, int argc, char **argv);
} command;

/* Prints help to standard output; returns the exit status. */
int command_show_help(const command *self);

/* Writes out what was printed; returns the exit status. */
int command_finish_output(void);

/* run.c */
extern const char run_help[];
int run_command(const command *self, int argc, char **argv);

/* dump.c */
extern const char dump_help[];
int dump_command(const command *self, int argc, char **argv);

/* bench.c */
extern const char bench_help[];
int bench_command(const command *self, int argc, char **argv);

#endif
