/* Finding documents. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/corpus.h"

#include "command.h"
#include "train/source.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOK 8192 /* a 0 in this much makes a file binary */

typedef struct finder {
    corpus *c;
    const corpus_request *request;
    trouble *t;
} finder;

static bool cannot(finder *f, const char *what, const char *path)
{
    return trouble_note(f->t, STATUS_USAGE, "cannot %s '%s': %s", what, path,
                        strerror(errno));
}

/* --- files ----------------------------------------------------------------- */

static bool ends_with(const char *path, const char *end)
{
    size_t a = strlen(path), b = strlen(end);

    return a >= b && strcmp(path + a - b, end) == 0;
}

static source_kind kind_of(const char *path, const char *token_type)
{
    if (!ends_with(path, ".bin"))
        return SOURCE_BYTES;
    if (strcmp(token_type, "auto") == 0)
        return ends_with(path, ".u32.bin") || ends_with(path, ".uint32.bin")
                   ? SOURCE_UINT32
                   : SOURCE_UINT16;
    return strcmp(token_type, "uint32") == 0 ? SOURCE_UINT32 : SOURCE_UINT16;
}

/* Room for one more where n are. */
static bool grow(void **items, int64_t n, size_t bytes, trouble *t)
{
    void *more;

    if ((n & (n + 1)) != 0)
        return true;
    more = realloc(*items, (size_t)(n + 1) * 2 * bytes);
    if (more == NULL)
        return trouble_memory(t);
    *items = more;
    return true;
}

static bool add_source(finder *f, const char *path, source_kind kind)
{
    corpus *c = f->c;
    void *items = c->sources;
    bool fine = grow(&items, c->n_sources, sizeof *c->sources, f->t);

    c->sources = items;
    if (!fine)
        return false;
    c->sources[c->n_sources++] =
        (data_source){ .path = (int64_t)c->paths.used, .kind = kind };
    return text_add(&c->paths, path, strlen(path) + 1) || trouble_memory(f->t);
}

bool corpus_add_document(corpus *c, int64_t first, int64_t ids, trouble *t)
{
    void *items = c->documents;
    bool fine = grow(&items, c->n_documents, sizeof *c->documents, t);

    c->documents = items;
    if (!fine)
        return false;
    c->documents[c->n_documents++] = (document){ .source = c->n_sources - 1,
                                                 .first = first,
                                                 .ids = ids,
                                                 .start = c->tokens };
    c->tokens += ids - 1;
    return true;
}

static bool add_text(finder *f, const char *path, int64_t bytes)
{
    if (f->request->vocabulary <= CORPUS_EOS)
        return trouble_note(f->t, STATUS_USAGE,
                            "'%s' is text, which wants a vocabulary of %d, and "
                            "the model's has %d",
                            path, CORPUS_EOS + 1, f->request->vocabulary);
    return add_source(f, path, SOURCE_BYTES) &&
           corpus_add_document(f->c, 0, bytes + 2, f->t);
}

/* Whether the file begins like text. On failure errno is set. */
static bool looks_binary(int fd, bool *binary)
{
    char head[LOOK];
    ssize_t n = pread(fd, head, sizeof head, 0);

    if (n < 0)
        return false;
    *binary = memchr(head, '\0', (size_t)n) != NULL;
    return true;
}

/* Found in a folder, so it may be left out. */
static bool add_found(finder *f, const char *path, int fd, int64_t bytes)
{
    bool binary = false;

    if (!looks_binary(fd, &binary))
        return cannot(f, "read", path);
    if (bytes > 0 && !binary && !ends_with(path, ".bin"))
        return add_text(f, path, bytes);
    if (bytes == 0)
        f->c->empty++;
    else
        f->c->binary++;
    return true;
}

static bool add_named(finder *f, const char *path, int fd, int64_t bytes)
{
    source_kind kind = kind_of(path, f->request->token_type);

    if (bytes == 0)
        return trouble_note(f->t, STATUS_USAGE, "'%s' is empty", path);
    if (kind == SOURCE_BYTES)
        return add_text(f, path, bytes);
    return add_source(f, path, kind) &&
           source_scan(f->c,
                       &(source_request){ .path = path,
                                          .fd = fd,
                                          .kind = kind,
                                          .bytes = bytes,
                                          .vocabulary = f->request->vocabulary },
                       f->t);
}

static bool add_file(finder *f, const char *path, bool named)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    bool fine;

    if (fd < 0)
        return cannot(f, "read", path);
    if (fstat(fd, &st) != 0)
        fine = cannot(f, "read", path);
    else
        fine = named ? add_named(f, path, fd, st.st_size)
                     : add_found(f, path, fd, st.st_size);
    close(fd);
    return fine;
}

/* --- folders --------------------------------------------------------------- */

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* By bytes, whatever the locale. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static bool add_folder(finder *f, const char *folder);

/* Links to files are followed, links to folders are not: they may lead round. */
static bool add_entry(finder *f, const char *path)
{
    struct stat st;
    bool is_link;

    if (lstat(path, &st) != 0)
        return cannot(f, "look at", path);
    is_link = S_ISLNK(st.st_mode);
    if (is_link && stat(path, &st) != 0)
        st.st_mode = S_IFLNK; /* it leads nowhere */
    if (S_ISREG(st.st_mode))
        return add_file(f, path, false);
    if (S_ISDIR(st.st_mode) && !is_link)
        return add_folder(f, path);
    f->c->odd++;
    return true;
}

static bool add_joined(finder *f, const char *folder, const char *name)
{
    const char *slash = folder[strlen(folder) - 1] == '/' ? "" : "/";
    char *path = NULL;
    bool fine;

    if (asprintf(&path, "%s%s%s", folder, slash, name) < 0)
        return trouble_memory(f->t);
    fine = add_entry(f, path);
    free(path);
    return fine;
}

static bool add_folder(finder *f, const char *folder)
{
    struct dirent **entries;
    int n = scandir(folder, &entries, is_visible, by_name);
    bool fine = true;

    if (n < 0)
        return cannot(f, "read", folder);
    for (int i = 0; i < n; i++) {
        fine = fine && add_joined(f, folder, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return fine;
}

static bool add_path(finder *f, const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return cannot(f, "read", path);
    if (S_ISDIR(st.st_mode))
        return add_folder(f, path);
    if (S_ISREG(st.st_mode))
        return add_file(f, path, true);
    return trouble_note(f->t, STATUS_USAGE,
                        "'%s' is neither a file nor a folder", path);
}

bool corpus_find(corpus *c, const corpus_request *request, trouble *t)
{
    finder f = { .c = c, .request = request, .t = t };
    const word_list *paths = request->paths;

    *c = (corpus){ .fd = -1 };
    if (paths->count == 0)
        return trouble_note(t, STATUS_USAGE,
                            "what shall be trained on? --data PATH names files "
                            "or folders of text, or files of tokens");
    for (size_t i = 0; i < paths->count; i++)
        if (!add_path(&f, paths->items[i]))
            return false;
    if (c->tokens == 0)
        return trouble_note(t, STATUS_USAGE,
                            "there is no data in '%s'%s: left out %" PRId64
                            " binary files, %" PRId64 " empty ones, %" PRId64
                            " neither file nor folder",
                            paths->items[0],
                            paths->count > 1 ? " and the others" : "",
                            c->binary, c->empty, c->odd);
    return true;
}

bool corpus_check_rows(const corpus *c, int64_t length, trouble *t)
{
    if (c->tokens >= length)
        return true;
    return trouble_note(t, STATUS_USAGE,
                        "the data has %" PRId64
                        " tokens, and one row takes %" PRId64
                        ": add data, or make rows shorter (--seq)",
                        c->tokens, length);
}

void corpus_free(corpus *c)
{
    if (c->fd >= 0)
        close(c->fd);
    text_free(&c->paths);
    free(c->sources);
    free(c->documents);
    *c = (corpus){ .fd = -1 };
}

/* --- to bytes and back ----------------------------------------------------- */

#define NUMBERS 7

bool corpus_pack(const corpus *c, text *out, trouble *t)
{
    const int64_t numbers[NUMBERS] = { (int64_t)c->paths.used,
                                       c->n_sources,
                                       c->n_documents,
                                       c->tokens,
                                       c->binary,
                                       c->empty,
                                       c->odd };

    if (text_add(out, (const char *)numbers, sizeof numbers) &&
        text_add(out, (const char *)c->sources,
                 (size_t)c->n_sources * sizeof *c->sources) &&
        text_add(out, (const char *)c->documents,
                 (size_t)c->n_documents * sizeof *c->documents) &&
        text_add(out, c->paths.data, c->paths.used))
        return true;
    return trouble_memory(t);
}

static void *copy_of(const char **from, int64_t n, size_t bytes)
{
    void *copy = calloc((size_t)n, bytes);

    if (copy != NULL)
        memcpy(copy, *from, (size_t)n * bytes);
    *from += (size_t)n * bytes;
    return copy;
}

/* The bytes come from corpus_pack of another rank of the same job. */
bool corpus_unpack(corpus *c, const char *bytes, size_t count, trouble *t)
{
    const char *at = bytes + NUMBERS * sizeof(int64_t);
    int64_t n[NUMBERS];

    *c = (corpus){ .fd = -1 };
    memcpy(n, bytes, sizeof n);
    c->n_sources = n[1];
    c->n_documents = n[2];
    c->tokens = n[3];
    c->binary = n[4];
    c->empty = n[5];
    c->odd = n[6];
    c->sources = copy_of(&at, n[1], sizeof *c->sources);
    c->documents = copy_of(&at, n[2], sizeof *c->documents);
    if (c->sources == NULL || c->documents == NULL ||
        !text_add(&c->paths, at, (size_t)n[0]) || at + n[0] != bytes + count)
        return trouble_memory(t);
    return true;
}
