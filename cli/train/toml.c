/* A reader that goes over the text once, and a look at all keys afterwards. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/toml.h"

#include "command.h"
#include "train/text.h"
#include "train/toml_reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *toml_kind_text(toml_kind kind)
{
    static const char *const texts[] = {
        [TOML_TEXT] = "a string",   [TOML_INTEGER] = "an integer",
        [TOML_NUMBER] = "a number", [TOML_SWITCH] = "true or false",
        [TOML_TABLE] = "a table",
    };

    return texts[kind];
}

bool toml_wrong(toml_reader *r, const char *format, ...)
{
    char what[TROUBLE_MOST - 256];
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return trouble_note(r->t, STATUS_USAGE, "%s, line %d: %s", r->name, r->line,
                        what);
}

toml_shown toml_show(const toml_reader *r)
{
    toml_shown s;
    unsigned char c = r->at < r->end ? (unsigned char)*r->at : '\n';

    if (r->at == r->end)
        snprintf(s.text, sizeof s.text, "the end of the file");
    else if (c == '\n' || c == '\r')
        snprintf(s.text, sizeof s.text, "the end of the line");
    else if (c > ' ' && c < 0x7f)
        snprintf(s.text, sizeof s.text, "'%c'", c);
    else
        snprintf(s.text, sizeof s.text, "the byte 0x%02x", c);
    return s;
}

void toml_skip_blanks(toml_reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t'))
        r->at++;
}

void toml_skip_comment(toml_reader *r)
{
    if (r->at < r->end && *r->at == '#')
        while (r->at < r->end && *r->at != '\n' && *r->at != '\r')
            r->at++;
}

bool toml_take_newline(toml_reader *r)
{
    if (r->at < r->end && *r->at == '\r')
        r->at++;
    if (r->at == r->end || *r->at != '\n')
        return false;
    r->at++;
    r->line++;
    return true;
}

/* --- keys ------------------------------------------------------------------ */

static bool is_bare(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '_' || c == '-';
}

static bool read_key_part(toml_reader *r, text *key)
{
    const char *from = r->at;

    if (r->at < r->end && (*r->at == '"' || *r->at == '\''))
        return toml_read_string(r, key);
    while (r->at < r->end && is_bare(*r->at))
        r->at++;
    if (r->at == from)
        return toml_wrong(r,
                          "a key begins with a letter, a digit, '_', '-' or "
                          "a quote, and here is %s",
                          toml_show(r).text);
    return text_add(key, from, (size_t)(r->at - from)) || trouble_memory(r->t);
}

/* Adds a dotted key to what key holds. */
static bool read_key(toml_reader *r, text *key)
{
    for (;;) {
        if (key->used > 0 && !text_add(key, ".", 1))
            return trouble_memory(r->t);
        toml_skip_blanks(r);
        if (!read_key_part(r, key))
            return false;
        toml_skip_blanks(r);
        if (r->at == r->end || *r->at != '.')
            return true;
        r->at++;
    }
}

/* --- lines ----------------------------------------------------------------- */

static toml_entry *add_entry(toml_reader *r, const char *key, toml_kind kind)
{
    toml *out = r->out;
    toml_entry *e;

    if ((out->count & (out->count + 1)) == 0) {
        size_t room = (out->count + 1) * 2;
        toml_entry *more = realloc(out->entries, room * sizeof *more);

        if (more == NULL) {
            trouble_memory(r->t);
            return NULL;
        }
        out->entries = more;
    }
    e = &out->entries[out->count];
    *e = (toml_entry){ .key = strdup(key), .line = r->line, .kind = kind };
    if (e->key == NULL) {
        trouble_memory(r->t);
        return NULL;
    }
    out->count++;
    return e;
}

static bool read_table(toml_reader *r)
{
    r->at++;
    if (r->at < r->end && *r->at == '[')
        return toml_wrong(r, "arrays of tables ('[[') are not read here");
    r->table.used = 0;
    if (!read_key(r, &r->table))
        return false;
    if (r->at == r->end || *r->at != ']')
        return toml_wrong(r, "the name of a table ends with ']', and here is %s",
                          toml_show(r).text);
    r->at++;
    return add_entry(r, r->table.data, TOML_TABLE) != NULL;
}

static bool read_pair(toml_reader *r)
{
    text key = { .data = NULL };
    bool fine = text_add(&key, r->table.data != NULL ? r->table.data : "",
                         r->table.used) ||
                trouble_memory(r->t);
    toml_entry *e = NULL;

    fine = fine && read_key(r, &key);
    if (fine && (r->at == r->end || *r->at != '='))
        fine = toml_wrong(r, "a key wants '=' behind it, and here is %s",
                          toml_show(r).text);
    if (fine)
        e = add_entry(r, key.data, TOML_TEXT);
    text_free(&key);
    if (e == NULL)
        return false;
    r->at++;
    toml_skip_blanks(r);
    return toml_read_value(r, e);
}

static bool end_line(toml_reader *r)
{
    toml_skip_blanks(r);
    toml_skip_comment(r);
    if (r->at == r->end || toml_take_newline(r))
        return true;
    return toml_wrong(r, "the line should end here, and here is %s",
                      toml_show(r).text);
}

static bool read_lines(toml_reader *r)
{
    while (r->at < r->end) {
        bool fine = true;

        toml_skip_blanks(r);
        if (r->at < r->end && *r->at == '[')
            fine = read_table(r);
        else if (r->at < r->end && strchr("#\r\n", *r->at) == NULL)
            fine = read_pair(r);
        if (!fine || !end_line(r))
            return false;
    }
    return true;
}

/* --- the whole ------------------------------------------------------------- */

/* Like strcmp, but a dot comes before all else, so that "a.b" follows "a". */
static int compare_keys(const void *left, const void *right)
{
    const toml_entry *l = left, *r = right;
    const char *a = l->key, *b = r->key;

    for (; *a == *b && *a != '\0'; a++)
        b++;
    if (*a == *b)
        return l->line - r->line;
    if (*a == '.' || *b == '.')
        return *a == '.' ? (*b == '\0' ? 1 : -1) : (*a == '\0' ? -1 : 1);
    return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
}

static bool check_neighbours(toml_reader *r, const toml_entry *a,
                             const toml_entry *b)
{
    size_t length = strlen(a->key);

    r->line = b->line > a->line ? b->line : a->line;
    if (strcmp(a->key, b->key) == 0)
        return toml_wrong(r, "'%s' has been set before, in line %d", b->key,
                          b->line > a->line ? a->line : b->line);
    if (a->kind != TOML_TABLE && strncmp(a->key, b->key, length) == 0 &&
        b->key[length] == '.')
        return toml_wrong(r,
                          "'%s' is both a value (line %d) and a table of "
                          "'%s' (line %d)",
                          a->key, a->line, b->key, b->line);
    return true;
}

/* No key twice, and none that is a value and has keys below it. */
static bool check_keys(toml_reader *r)
{
    size_t n = r->out->count;
    toml_entry *sorted = calloc(n + 1, sizeof *sorted);
    bool fine = true;

    if (sorted == NULL)
        return trouble_memory(r->t);
    if (n > 0)
        memcpy(sorted, r->out->entries, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, compare_keys);
    for (size_t i = 1; fine && i < n; i++)
        fine = check_neighbours(r, &sorted[i - 1], &sorted[i]);
    free(sorted);
    return fine;
}

bool toml_read(const char *name, const char *bytes, size_t count, toml *out,
               trouble *t)
{
    toml_reader r = { .name = name,
                      .at = bytes,
                      .end = bytes + count,
                      .line = 1,
                      .out = out,
                      .t = t };
    bool fine;

    *out = (toml){ .count = 0 };
    if (count > TOML_MOST_BYTES)
        return trouble_note(t, STATUS_USAGE,
                            "%s has %zu bytes, and a file of settings may have "
                            "%zu",
                            name, count, TOML_MOST_BYTES);
    fine = toml_check_bytes(&r) && read_lines(&r) && check_keys(&r);
    text_free(&r.table);
    if (!fine)
        toml_free(out);
    return fine;
}

void toml_free(toml *file)
{
    for (size_t i = 0; i < file->count; i++) {
        toml_entry *e = &file->entries[i];

        for (size_t v = 0; v < e->count; v++)
            free(e->values[v]);
        free(e->values);
        free(e->key);
    }
    free(file->entries);
    *file = (toml){ .count = 0 };
}
