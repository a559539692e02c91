/* The table of flags as text. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/flags.h"

#include "train/text.h"

#include <string.h>

#define COLUMNS 79

static const char above[] =
    "Usage: raddle train --data PATH... [FLAGS]\n"
    "\n"
    "Trains a small Llama on this machine's processors: context parallel, "
    "fully\n"
    "sharded, replicated, or all three, on as many ranks as asked for. It "
    "starts "
    "the\n"
    "ranks itself, unless raddle run or torchrun has started it as one.\n"
    "\n"
    "Flags are torchtitan's, with shorter names beside them; '-' and '_' are "
    "the\n"
    "same, and so are '--flag VALUE' and '--flag=VALUE'. In a file given by "
    "--config\n"
    "each is a key, either of its names.\n"
    "\n";

static const char between[] =
    "\n"
    "Flags of torchtitan that this version knows, and of which it does no more "
    "than\n"
    "what is said here:\n";

static const char below[] =
    "\n"
    "Exit status: 0 when all steps are done, 2 for what is wrong with flags, "
    "files or\n"
    "the layout (found before anything is computed), 1 for anything else; of a "
    "job\n"
    "with several ranks, that of the first one that failed.\n";

/* Words of from behind first columns; lines are no longer than COLUMNS, and all
 * but the first are indented. */
static bool add_wrapped(text *t, const char *from, size_t first, size_t indent)
{
    size_t column = first;
    bool begins = true;

    for (;;) {
        size_t n = strcspn(from, " ");
        bool fine = true;

        if (!begins && column + 1 + n > COLUMNS) {
            fine = text_print(t, "\n%*s", (int)indent, "");
            column = indent;
        } else if (!begins) {
            fine = text_add(t, " ", 1);
            column++;
        }
        if (!fine || !text_add(t, from, n))
            return false;
        column += n;
        begins = false;
        if (from[n] == '\0')
            return text_add(t, "\n", 1);
        from += n + 1;
    }
}

static bool is_on(const flag *f)
{
    return f->kind == FLAG_SWITCH && strcmp(f->standard, "true") == 0;
}

/* Of a switch that is on, the name that turns it off. */
static void add_names(text *t, const flag *f, const char *quote)
{
    const char *names[] = { f->brief, f->name };
    bool first = true;

    for (size_t i = 0; i < 2; i++) {
        if (names[i] == NULL)
            continue;
        text_print(t, "%s%s--%s%s%s%s%s", first ? "" : ", ", quote,
                   is_on(f) ? "no-" : "", names[i], f->value != NULL ? " " : "",
                   f->value != NULL ? f->value : "", quote);
        first = false;
    }
}

static void add_help(text *t, const flag *f)
{
    text_print(t, "%s", f->help);
    if (f->kind == FLAG_CHOICE) {
        text_print(t, "; one of");
        for (const char *w = f->words; *w != '\0'; w += strspn(w, " ")) {
            size_t n = strcspn(w, " ");

            text_print(t, "%s %.*s", w == f->words ? "" : ",", (int)n, w);
            w += n;
        }
    }
    if (f->kind != FLAG_SWITCH && f->standard != NULL)
        text_print(t, "; default: %s", f->standard);
}

static bool print_one(FILE *to, const flag *f, bool page)
{
    text out = { .data = NULL }, words = { .data = NULL };
    bool fine;

    if (page) {
        text_print(&words, "- ");
        add_names(&words, f, "`");
        text_print(&words, ": ");
        add_help(&words, f);
        fine = words.data != NULL && add_wrapped(&out, words.data, 0, 2);
    } else {
        text_print(&out, "  ");
        add_names(&out, f, "");
        text_print(&out, "\n      ");
        add_help(&words, f);
        fine = words.data != NULL && add_wrapped(&out, words.data, 6, 6);
    }
    fine = fine && fputs(out.data, to) >= 0;
    text_free(&out);
    text_free(&words);
    return fine;
}

static bool print_known(FILE *to, bool page)
{
    for (const flag *f = flags; f->name != NULL; f++)
        if (f->kind != FLAG_FIXED && f->kind != FLAG_RENAMED &&
            !print_one(to, f, page))
            return false;
    return true;
}

static bool print_fixed(FILE *to, bool page)
{
    for (const flag *f = flags; f->name != NULL; f++)
        if (f->kind == FLAG_FIXED && !print_one(to, f, page))
            return false;
    return true;
}

bool flags_print_help(FILE *to)
{
    return fputs(above, to) >= 0 && print_known(to, false) &&
           fputs("  -h, --help\n      print this text\n", to) >= 0 &&
           fputs(between, to) >= 0 && print_fixed(to, false) &&
           fputs(below, to) >= 0;
}

bool flags_print_page(FILE *to)
{
    return print_known(to, true) && fputs("\n", to) >= 0 &&
           print_fixed(to, true);
}
