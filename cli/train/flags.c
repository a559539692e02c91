/* Finding and setting one flag. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/flags.h"

#include "command.h"
#include "nearest.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLAGS_MOST 256

/* --- names ----------------------------------------------------------------- */

static char dashed(char c)
{
    return c == '_' ? '-' : c;
}

static bool same_name(const char *a, const char *b)
{
    for (; dashed(*a) == dashed(*b); a++, b++)
        if (*a == '\0')
            return true;
    return false;
}

static const flag *find_plain(const char *name)
{
    for (const flag *f = flags; f->name != NULL; f++)
        if (same_name(name, f->name) ||
            (f->brief != NULL && same_name(name, f->brief)))
            return f;
    return NULL;
}

const flag *flag_find(const char *name, bool *off)
{
    const flag *f = find_plain(name);
    const char *dot = strrchr(name, '.');
    const char *last = dot != NULL ? dot + 1 : name;
    char without[128];

    *off = false;
    if (f != NULL || strncmp(last, "no", 2) != 0 || dashed(last[2]) != '-' ||
        strlen(name) >= sizeof without)
        return f;
    snprintf(without, sizeof without, "%.*s%s", (int)(last - name), name,
             last + 3);
    f = find_plain(without);
    *off = true;
    return f != NULL && flag_is_switch(f) ? f : NULL;
}

bool flag_has_word(const char *words, const char *word)
{
    size_t length = strlen(word);

    for (const char *w = words; *w != '\0'; w += strspn(w, " ")) {
        size_t n = strcspn(w, " ");

        if (n == length && memcmp(w, word, n) == 0)
            return true;
        w += n;
    }
    return false;
}

bool flag_is_switch(const flag *f)
{
    return f->kind == FLAG_SWITCH ||
           (f->kind == FLAG_FIXED && (flag_has_word(f->words, "true") ||
                                      flag_has_word(f->words, "false")));
}

bool flag_refuse(const char *who, const char *before, const char *name,
                 trouble *t)
{
    const char *known[FLAGS_MOST + 1];
    size_t n = 0;

    for (const flag *f = flags; f->name != NULL && n < FLAGS_MOST - 1; f++) {
        if (f->kind == FLAG_RENAMED)
            continue;
        known[n++] = f->name;
        if (f->brief != NULL)
            known[n++] = f->brief;
    }
    known[n] = NULL;
    return trouble_note(t, STATUS_USAGE,
                        "%sthere is no flag '%s%s'; the nearest is '%s%s', and "
                        "'raddle train --help' lists all",
                        who, before, name, before, nearest_word(name, known));
}

/* --- values ---------------------------------------------------------------- */

static bool set_integer(const flag *f, int64_t *to, const char *who,
                        const char *value, trouble *t)
{
    char *end;
    long long n;

    errno = 0;
    n = strtoll(value, &end, 10);
    if (end == value || *end != '\0' || errno != 0 || (double)n < f->least ||
        (double)n > f->most)
        return trouble_note(t, STATUS_USAGE,
                            "%s takes an integer from %.0f to %.0f, and got "
                            "'%s'",
                            who, f->least, f->most, value);
    *to = n;
    return true;
}

static bool set_number(const flag *f, double *to, const char *who,
                       const char *value, trouble *t)
{
    char *end;
    double n = strtod(value, &end);

    if (end == value || *end != '\0' || !isfinite(n) || n < f->least ||
        n > f->most)
        return trouble_note(t, STATUS_USAGE,
                            "%s takes a number from %g to %g, and got '%s'",
                            who, f->least, f->most, value);
    *to = n;
    return true;
}

static bool set_switch(bool *to, const char *who, const char *value, trouble *t)
{
    *to = strcmp(value, "true") == 0;
    if (!*to && strcmp(value, "false") != 0)
        return trouble_note(t, STATUS_USAGE,
                            "%s takes true or false, and got '%s'", who, value);
    return true;
}

static bool set_text(char **to, const char *who, const char *value, trouble *t)
{
    char *copy;

    if (*value == '\0')
        return trouble_note(t, STATUS_USAGE, "%s got an empty text", who);
    copy = strdup(value);
    if (copy == NULL)
        return trouble_memory(t);
    free(*to);
    *to = copy;
    return true;
}

static bool add_path(word_list *to, const char *who, const char *value,
                     trouble *t)
{
    char **items = realloc(to->items, (to->count + 1) * sizeof *items);

    if (items == NULL)
        return trouble_memory(t);
    to->items = items;
    items[to->count] = NULL;
    if (!set_text(&items[to->count], who, value, t))
        return false;
    to->count++;
    return true;
}

/* "none selective full" to "none, selective, full" */
static const char *list_words(const char *from, char *to, size_t bytes)
{
    size_t n = 0;

    for (; *from != '\0' && n + 3 < bytes; from++) {
        if (*from == ' ')
            to[n++] = ',';
        to[n++] = *from;
    }
    to[n] = '\0';
    return to;
}

static bool set_choice(const flag *f, char **to, const char *who,
                       const char *value, trouble *t)
{
    char list[128];

    if (flag_has_word(f->words, value))
        return set_text(to, who, value, t);
    return trouble_note(t, STATUS_USAGE, "%s takes one of %s, and got '%s'",
                        who, list_words(f->words, list, sizeof list), value);
}

static bool check_fixed(const flag *f, const char *who, const char *value,
                        trouble *t)
{
    char list[128];

    if (strcmp(f->words, "*") == 0 || flag_has_word(f->words, value))
        return true;
    if (*f->words == '\0')
        return trouble_note(t, STATUS_USAGE, "%s: %s", who, f->help);
    return trouble_note(t, STATUS_USAGE, "%s got '%s', and may be %s: %s", who,
                        value, list_words(f->words, list, sizeof list), f->help);
}

bool flag_set(const flag *f, train_options *o, const char *who,
              const char *value, trouble *t)
{
    void *to = (char *)o + f->offset;

    switch (f->kind) {
    case FLAG_INTEGER:
        return set_integer(f, to, who, value, t);
    case FLAG_NUMBER:
        return set_number(f, to, who, value, t);
    case FLAG_SWITCH:
        return set_switch(to, who, value, t);
    case FLAG_TEXT:
        return set_text(to, who, value, t);
    case FLAG_PATHS:
        return add_path(to, who, value, t);
    case FLAG_CHOICE:
        return set_choice(f, to, who, value, t);
    case FLAG_FIXED:
        return check_fixed(f, who, value, t);
    case FLAG_RENAMED:
        break;
    }
    return trouble_note(t, STATUS_USAGE,
                        "%s is a name of older versions; it is now %s", who,
                        f->words);
}

/* --- all of them ----------------------------------------------------------- */

bool options_init(train_options *o, trouble *t)
{
    *o = (train_options){ .model = NULL };
    for (const flag *f = flags; f->name != NULL; f++) {
        if (f->standard != NULL && !flag_set(f, o, f->name, f->standard, t))
            return false;
        if (f->kind == FLAG_INTEGER && f->standard == NULL)
            *(int64_t *)(void *)((char *)o + f->offset) = -1;
    }
    return true;
}

static void free_words(word_list *w)
{
    for (size_t i = 0; i < w->count; i++)
        free(w->items[i]);
    free(w->items);
    *w = (word_list){ .count = 0 };
}

void options_free(train_options *o)
{
    for (const flag *f = flags; f->name != NULL; f++) {
        void *at = (char *)o + f->offset;

        if (f->kind == FLAG_TEXT || f->kind == FLAG_CHOICE) {
            free(*(char **)at);
            *(char **)at = NULL;
        } else if (f->kind == FLAG_PATHS) {
            free_words(at);
        }
    }
}
