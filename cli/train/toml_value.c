/* Values: numbers, booleans, strings, and arrays of them. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/toml_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More than any number needs. */
#define WORD_MOST 128

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* --- numbers --------------------------------------------------------------- */

/* Digits with single underscores between them; returns what follows, or NULL. */
static const char *skip_digits(const char *s, const char *digits)
{
    if (*s == '\0' || strchr(digits, *s) == NULL)
        return NULL;
    while (*s != '\0' &&
           (strchr(digits, *s) != NULL ||
            (*s == '_' && s[1] != '\0' && strchr(digits, s[1]) != NULL)))
        s++;
    return s;
}

static bool is_prefixed_integer(const char *word, int *base)
{
    static const struct {
        char letter;
        int base;
        const char *digits;
    } bases[] = { { 'x', 16, "0123456789abcdefABCDEF" },
                  { 'o', 8, "01234567" },
                  { 'b', 2, "01" } };

    for (size_t i = 0; i < 3; i++)
        if (word[0] == '0' && word[1] == bases[i].letter) {
            const char *end = skip_digits(word + 2, bases[i].digits);

            *base = bases[i].base;
            return end != NULL && *end == '\0';
        }
    return false;
}

#define DECIMAL "0123456789"

/* The part of a decimal number before its point; NULL if it is none. */
static const char *skip_whole(const char *word)
{
    const char *s = word + (*word == '+' || *word == '-');

    if (*s == '0' && (is_digit(s[1]) || s[1] == '_'))
        return NULL; /* 010 could mean two things */
    return skip_digits(s, DECIMAL);
}

static bool is_float(const char *word)
{
    const char *s = word + (*word == '+' || *word == '-');

    if (strcmp(s, "inf") == 0 || strcmp(s, "nan") == 0)
        return true;
    s = skip_whole(word);
    if (s != NULL && *s == '.')
        s = skip_digits(s + 1, DECIMAL);
    if (s != NULL && (*s == 'e' || *s == 'E'))
        s = skip_digits(s + 1 + (s[1] == '+' || s[1] == '-'), DECIMAL);
    return s != NULL && *s == '\0';
}

static void drop_underscores(char *word)
{
    char *to = word;

    for (const char *from = word; *from != '\0'; from++)
        if (*from != '_')
            *to++ = *from;
    *to = '\0';
}

/* 1979-05-27, 07:32:00, and both together */
static bool is_date(const char *word)
{
    size_t n = strspn(word, DECIMAL);

    return (n == 4 && word[4] == '-') || (n == 2 && word[2] == ':');
}

static bool read_integer(toml_reader *r, const char *word, int base, text *out)
{
    const char *digits = base == 10 ? word : word + 2;
    long long value;

    errno = 0;
    value = strtoll(digits, NULL, base);
    if (errno != 0)
        return toml_wrong(r, "%s is beyond the integers of 64 bits", word);
    return text_print(out, "%lld", value) || trouble_memory(r->t);
}

static bool read_number(toml_reader *r, char *word, text *out, toml_kind *kind)
{
    const char *end = skip_whole(word);
    int base = 10;

    if ((end != NULL && *end == '\0') || is_prefixed_integer(word, &base)) {
        *kind = TOML_INTEGER;
        drop_underscores(word);
        return read_integer(r, word, base, out);
    }
    if (is_float(word)) {
        *kind = TOML_NUMBER;
        drop_underscores(word);
        return text_print(out, "%s", word) || trouble_memory(r->t);
    }
    if (is_date(word))
        return toml_wrong(r, "dates and times (%s) are not read here", word);
    return toml_wrong(r, "'%s' is no value; strings want quotes", word);
}

/* --- one value ------------------------------------------------------------- */

/* What numbers and booleans are made of, and words that someone has left without
 * quotes. */
static bool is_word(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           strchr("_+-.:/", c) != NULL;
}

static bool read_word(toml_reader *r, text *out, toml_kind *kind)
{
    char word[WORD_MOST];
    const char *from = r->at;
    size_t length;

    while (r->at < r->end && *r->at != '\0' && is_word(*r->at))
        r->at++;
    length = (size_t)(r->at - from);
    if (length == 0)
        return toml_wrong(r, "a value should stand here, and here is %s",
                          toml_show(r).text);
    if (length >= sizeof word)
        return toml_wrong(r, "'%.16s...' is no value; strings want quotes",
                          from);
    memcpy(word, from, length);
    word[length] = '\0';
    if (strcmp(word, "true") == 0 || strcmp(word, "false") == 0) {
        *kind = TOML_SWITCH;
        return text_add(out, word, length) || trouble_memory(r->t);
    }
    return read_number(r, word, out, kind);
}

static bool read_one(toml_reader *r, text *out, toml_kind *kind)
{
    char c = r->at < r->end ? *r->at : '\n';

    if (c == '"' || c == '\'') {
        *kind = TOML_TEXT;
        return toml_read_string(r, out);
    }
    if (c == '{')
        return toml_wrong(r, "inline tables ('{') are not read here");
    if (c == '[')
        return toml_wrong(r, "arrays in arrays are not read here");
    return read_word(r, out, kind);
}

/* Takes what out holds. */
static bool add_value(toml_reader *r, toml_entry *e, text *out)
{
    char **values;

    if ((e->count & (e->count + 1)) == 0) {
        values = realloc(e->values, (e->count + 1) * 2 * sizeof *values);
        if (values == NULL)
            return trouble_memory(r->t);
        e->values = values;
    }
    if (out->data == NULL && !text_add(out, "", 0))
        return trouble_memory(r->t);
    e->values[e->count++] = out->data;
    *out = (text){ .data = NULL };
    return true;
}

static bool read_item(toml_reader *r, toml_entry *e)
{
    text out = { .data = NULL };
    toml_kind kind = e->kind;
    bool fine = read_one(r, &out, &kind);

    if (fine && e->count > 0 && kind != e->kind)
        fine = toml_wrong(r,
                          "an array has values of one kind here, and this "
                          "one begins with %s and has %s",
                          toml_kind_text(e->kind), toml_kind_text(kind));
    e->kind = kind;
    fine = fine && add_value(r, e, &out);
    text_free(&out);
    return fine;
}

/* --- arrays ---------------------------------------------------------------- */

static void skip_lines(toml_reader *r)
{
    do {
        toml_skip_blanks(r);
        toml_skip_comment(r);
    } while (toml_take_newline(r));
}

static bool read_array(toml_reader *r, toml_entry *e)
{
    e->is_array = true;
    r->at++;
    for (;;) {
        skip_lines(r);
        if (r->at < r->end && *r->at == ']')
            break;
        if (!read_item(r, e))
            return false;
        skip_lines(r);
        if (r->at < r->end && *r->at == ',')
            r->at++;
        else if (r->at == r->end || *r->at != ']')
            return toml_wrong(r,
                              "an array goes on with ',' or ends with ']', "
                              "and here is %s",
                              toml_show(r).text);
    }
    r->at++;
    return true;
}

bool toml_read_value(toml_reader *r, toml_entry *e)
{
    if (r->at < r->end && *r->at == '[')
        return read_array(r, e);
    return read_item(r, e);
}
