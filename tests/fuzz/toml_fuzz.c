/* Files of settings, which users write. Whatever they hold is read or refused with
 * a sentence that names a line of the file; what was read is set as flags are. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/flags.h"
#include "train/toml.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void must(bool condition)
{
    if (!condition)
        abort();
}

static void check_read(const toml *file)
{
    for (size_t i = 0; i < file->count; i++) {
        const toml_entry *e = &file->entries[i];

        must(e->key != NULL && e->line > 0);
        must(e->is_array || e->kind == TOML_TABLE || e->count == 1);
        for (size_t v = 0; v < e->count; v++)
            must(e->values[v] != NULL);
    }
}

static void check_refusal(const trouble *t)
{
    must(t->status == 2 && t->text[0] != '\0');
    must(strncmp(t->text, "file, line ", 11) == 0 ||
         strstr(t->text, "a file of settings may have") != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    trouble t = { .status = 0 }, defaults = { .status = 0 };
    train_options o;
    toml file;

    if (toml_read("file", (const char *)data, bytes, &file, &t)) {
        check_read(&file);
        toml_free(&file);
    } else {
        check_refusal(&t);
    }
    t = (trouble){ .status = 0 };
    must(options_init(&o, &defaults));
    if (!options_read_toml(&o, "file", (const char *)data, bytes, &t))
        check_refusal(&t);
    options_free(&o);
    return 0;
}
