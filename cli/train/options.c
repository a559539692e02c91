/* Command lines and files of settings, flag by flag. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/options.h"

#include "command.h"
#include "train/flags.h"
#include "train/toml.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUBCOMMAND "activation-checkpoint:"
#define NAME_MOST 128
#define SEE_HELP "'raddle train --help' explains"

/* --- files ----------------------------------------------------------------- */

static bool fits(const flag *f, const toml_entry *e)
{
    switch (f->kind) {
    case FLAG_INTEGER:
        return e->kind == TOML_INTEGER;
    case FLAG_NUMBER:
        return e->kind == TOML_INTEGER || e->kind == TOML_NUMBER;
    case FLAG_SWITCH:
        return e->kind == TOML_SWITCH;
    case FLAG_FIXED:
    case FLAG_RENAMED:
        return true;
    default:
        return e->kind == TOML_TEXT;
    }
}

static const char *wanted(const flag *f)
{
    switch (f->kind) {
    case FLAG_INTEGER:
        return "an integer";
    case FLAG_NUMBER:
        return "a number";
    case FLAG_SWITCH:
        return "true or false";
    case FLAG_PATHS:
        return "a string or an array of strings";
    default:
        return "a string";
    }
}

/* The value as the command line would have it; a switch by its negative name is
 * turned over. */
static const char *value_text(const toml_entry *e, size_t i, bool off)
{
    if (!off)
        return e->values[i];
    return strcmp(e->values[i], "true") == 0 ? "false" : "true";
}

static bool take_entry(train_options *o, const char *name, const toml_entry *e,
                       trouble *t)
{
    char who[1024];
    bool off;
    const flag *f = flag_find(e->key, &off);

    if (f == NULL) {
        snprintf(who, sizeof who, "%s, line %d: ", name, e->line);
        return flag_refuse(who, "", e->key, t);
    }
    snprintf(who, sizeof who, "%s, line %d: %s", name, e->line, e->key);
    if (strcmp(f->name, "config") == 0)
        return trouble_note(t, STATUS_USAGE,
                            "%s: a file of settings cannot name another", who);
    if (!fits(f, e) || (e->is_array && f->kind != FLAG_PATHS))
        return trouble_note(t, STATUS_USAGE, "%s takes %s, and got %s%s", who,
                            wanted(f), e->is_array ? "an array of: " : "",
                            toml_kind_text(e->kind));
    for (size_t i = 0; i < e->count; i++)
        if (!flag_set(f, o, who, value_text(e, i, off), t))
            return false;
    return true;
}

bool options_read_toml(train_options *o, const char *name, const char *text,
                       size_t bytes, trouble *t)
{
    toml file;
    bool fine = toml_read(name, text, bytes, &file, t);

    if (!fine)
        return false;
    for (size_t i = 0; fine && i < file.count; i++)
        if (file.entries[i].kind != TOML_TABLE)
            fine = take_entry(o, name, &file.entries[i], t);
    toml_free(&file);
    return fine;
}

/* The whole of a file, up to more than is allowed. */
static char *read_file(const char *path, size_t *bytes, trouble *t)
{
    FILE *f = fopen(path, "rbe");
    char *data = f != NULL ? malloc(TOML_MOST_BYTES + 1) : NULL;

    if (data != NULL) {
        *bytes = fread(data, 1, TOML_MOST_BYTES + 1, f);
        if (ferror(f)) {
            int error = errno;

            free(data);
            data = NULL;
            errno = error;
        }
    }
    if (data == NULL)
        trouble_note(t, STATUS_USAGE, "cannot read the settings in '%s': %s",
                     path, strerror(errno));
    if (f != NULL)
        fclose(f);
    return data;
}

static bool read_config(train_options *o, const char *path, trouble *t)
{
    size_t bytes = 0;
    char *data = read_file(path, &bytes, t);
    bool fine = data != NULL && options_read_toml(o, path, data, bytes, t);

    free(data);
    return fine;
}

/* --- command lines --------------------------------------------------------- */

typedef struct line {
    train_options *o;
    char **at;      /* the next argument, NULL after the last */
    bool has_paths; /* the line names data, so the file's is forgotten */
    trouble *t;
} line;

/* What a value cannot be, unless it is behind a '='. */
static bool is_flag(const char *argument)
{
    return argument == NULL || strncmp(argument, "--", 2) == 0 ||
           strncmp(argument, SUBCOMMAND, sizeof SUBCOMMAND - 1) == 0;
}

static void forget_paths(line *l)
{
    word_list *data = &l->o->data;

    if (!l->has_paths)
        while (data->count > 0)
            free(data->items[--data->count]);
    l->has_paths = true;
}

/* --data takes what follows, up to the next flag. */
static bool take_paths(line *l, const flag *f, const char *who)
{
    while (!is_flag(*l->at))
        if (!flag_set(f, l->o, who, *l->at++, l->t))
            return false;
    return true;
}

static bool take_switch(line *l, const flag *f, const char *who,
                        const char *value, bool off)
{
    if (off && value != NULL)
        return trouble_note(l->t, STATUS_USAGE, "%s takes no value; " SEE_HELP,
                            who);
    if (value == NULL)
        value = off ? "false" : "true";
    return flag_set(f, l->o, who, value, l->t);
}

static bool take_flag(line *l, const char *argument)
{
    const char *equals = strchr(argument, '=');
    const char *value = equals != NULL ? equals + 1 : NULL;
    size_t length =
        equals != NULL ? (size_t)(equals - argument) : strlen(argument);
    char who[NAME_MOST];
    const flag *f;
    bool off;

    if (length >= sizeof who)
        return trouble_note(
            l->t, STATUS_USAGE,
            "there is no flag '%.64s...'; 'raddle train --help' "
            "lists all",
            argument);
    snprintf(who, sizeof who, "%.*s", (int)length, argument);
    f = flag_find(who + 2, &off);
    if (f == NULL)
        return flag_refuse("", "--", who + 2, l->t);
    if (f->kind == FLAG_RENAMED)
        return flag_set(f, l->o, who, "", l->t);
    if (flag_is_switch(f))
        return take_switch(l, f, who, value, off);
    if (f->kind == FLAG_PATHS)
        forget_paths(l);
    if (value == NULL && is_flag(*l->at))
        return trouble_note(l->t, STATUS_USAGE,
                            "%s wants a value behind it; " SEE_HELP, who);
    if (!flag_set(f, l->o, who, value != NULL ? value : *l->at++, l->t))
        return false;
    return f->kind != FLAG_PATHS || value != NULL || take_paths(l, f, who);
}

static bool take_subcommand(line *l, const char *argument)
{
    const char *word = argument + sizeof SUBCOMMAND - 1;
    bool off;

    if (strcmp(word, "memory-budget") == 0)
        return trouble_note(l->t, STATUS_USAGE,
                            "%s: a memory budget is not in this version; there "
                            "are none, selective and full",
                            argument);
    return flag_set(flag_find("ac", &off), l->o, "activation-checkpoint", word,
                    l->t);
}

static bool take_argument(line *l)
{
    const char *argument = *l->at++;

    if (strncmp(argument, SUBCOMMAND, sizeof SUBCOMMAND - 1) == 0)
        return take_subcommand(l, argument);
    if (strncmp(argument, "--", 2) == 0 && argument[2] != '\0')
        return take_flag(l, argument);
    return trouble_note(l->t, STATUS_USAGE,
                        "'%s' is no flag; data is named with --data PATH, and "
                        "'raddle train --help' lists all flags",
                        argument);
}

/* Of the last --config, before anything is set. */
static const char *config_of(char **argv)
{
    const char *path = NULL;

    for (; *argv != NULL; argv++) {
        if (strncmp(*argv, "--config=", 9) == 0)
            path = *argv + 9;
        else if (strcmp(*argv, "--config") == 0 && !is_flag(argv[1]))
            path = argv[1];
    }
    return path;
}

/* torchtitan's --config names a model. */
static bool is_file(const char *config)
{
    return strpbrk(config, "./") != NULL || access(config, F_OK) == 0;
}

bool options_read(train_options *o, int argc, char **argv, bool *help,
                  trouble *t)
{
    line l = { .o = o, .at = argv + (argc > 0), .t = t };
    const char *config = config_of(l.at);

    *help = false;
    for (char **a = l.at; *a != NULL; a++)
        if (strcmp(*a, "--help") == 0 || strcmp(*a, "-h") == 0)
            return *help = true;
    if (config != NULL && is_file(config) && !read_config(o, config, t))
        return false;
    while (*l.at != NULL)
        if (!take_argument(&l))
            return false;
    if (o->config == NULL || is_file(o->config))
        return true;
    free(o->model);
    o->model = o->config;
    o->config = NULL;
    return true;
}
