/* Flags: one table from which the command line, TOML files, --help and the man
 * page's list are made.
 *
 * A flag has a long name, torchtitan's where it has one ("training.steps"), and
 * often a short one ("steps"). '-' and '_' in names are the same. On the command
 * line both are written with "--" in front and a value behind, "--steps 10" or
 * "--steps=10"; in a file both are keys, the long ones in a table, [training]
 * steps = 10. A switch takes no value and can be turned off with "no_" in front of
 * its last word: --no-fsdp, --section.no_flag. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_CLI_TRAIN_FLAGS_H
#define RDL_CLI_TRAIN_FLAGS_H

#include "train/options.h"
#include "train/trouble.h"

#include <stdio.h>

typedef enum flag_kind {
    FLAG_INTEGER, /* least .. most */
    FLAG_NUMBER,
    FLAG_SWITCH,
    FLAG_TEXT,   /* not empty */
    FLAG_PATHS,  /* one or more; adds up when repeated */
    FLAG_CHOICE, /* one of words */
    FLAG_FIXED,  /* of torchtitan: only words are done, none but the default */
    FLAG_RENAMED /* of torchtitan's older versions: words is the present name */
} flag_kind;

typedef struct flag {
    const char *name;
    const char *brief; /* NULL: none */
    flag_kind kind;
    size_t offset;        /* in train_options */
    const char *value;    /* what stands for its value in help */
    const char *standard; /* its default as one would type it; NULL: none */
    const char *words;    /* separated by blanks */
    double least;
    double most;
    const char *help; /* what it does; of FLAG_FIXED: what is missing */
} flag;

/* Ended by one without a name. */
extern const flag flags[];

/* The flag of that name (without dashes in front), long or short; NULL if there is
 * none. *off: the name turns a switch off. */
const flag *flag_find(const char *name, bool *off);

/* Whether it stands alone, without a value. */
bool flag_is_switch(const flag *f);

/* Whether word is one of those in words. */
bool flag_has_word(const char *words, const char *word);

/* Sets it from its value as typed. who names it in sentences: "--steps", or
 * "FILE, line 3: training.steps". */
bool flag_set(const flag *f, train_options *o, const char *who,
              const char *value, trouble *t);

/* Notes that there is no flag of that name, with the nearest one. before: "--" or
 * "". */
bool flag_refuse(const char *who, const char *before, const char *name,
                 trouble *t);

/* Everything as the table says. False without memory. */
bool options_init(train_options *o, trouble *t);
void options_free(train_options *o);

/* Reads a whole command line over what o holds, and before it the file that it
 * names. argv[0] is skipped. *help: it asked for help, and nothing else counts. */
bool options_read(train_options *o, int argc, char **argv, bool *help,
                  trouble *t);

/* The settings of a file's text over what o holds. */
bool options_read_toml(train_options *o, const char *name, const char *text,
                       size_t bytes, trouble *t);

/* --help, and the same list as the man page has it. */
bool flags_print_help(FILE *to);
bool flags_print_page(FILE *to);

#endif
