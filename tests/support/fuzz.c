/* main() of a fuzz target that is built as an ordinary test: gives it each file
 * of the named folders once. A crash becomes a regression test by adding the
 * file. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define INPUT_MOST ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* A copy of exactly its length, so that a read past its end is seen. */
static int run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t *room = malloc(INPUT_MOST);
    uint8_t *data;
    size_t bytes;

    if (f == NULL || room == NULL) {
        perror(path);
        free(room);
        if (f != NULL)
            fclose(f);
        return 1;
    }
    bytes = fread(room, 1, INPUT_MOST, f);
    fclose(f);
    data = realloc(room, bytes > 0 ? bytes : 1);
    printf("%s: %zu bytes\n", path, bytes);
    fflush(stdout); /* a crash shows after its file */
    LLVMFuzzerTestOneInput(data, bytes);
    free(data);
    return 0;
}

static int run_folder(const char *folder)
{
    struct dirent **entries;
    int n = scandir(folder, &entries, NULL, alphasort);
    int failed = 0;
    char path[4096];

    if (n < 0) {
        perror(folder);
        return 1;
    }
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.')
            failed |= run_file(path);
        free(entries[i]);
    }
    free(entries);
    return failed;
}

int main(int argc, char **argv)
{
    int failed = argc < 2;

    for (int i = 1; i < argc; i++)
        failed |= run_folder(argv[i]);
    return failed;
}
