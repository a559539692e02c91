/* The documents: which files they are, decided by rank 0 for all, and the byte
 * pairs of each rank's part of them. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "first_light.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOK 8192          /* a NUL byte in this much makes a file binary */
#define PIECE (256 * 1024) /* read at once */

static bool cannot(demo *d, const char *what, const char *path)
{
    return fail(d, 2, "cannot %s '%s': %s", what, path, strerror(errno));
}

static bool add_document(demo *d, const char *path, int64_t bytes)
{
    corpus *t = &d->text;
    size_t length = strlen(path) + 1;
    char *paths = realloc(t->paths, (size_t)t->path_bytes + length);

    if (paths == NULL)
        return fail(d, 1, "out of memory");
    t->paths = paths;

    int64_t *sizes =
        realloc(t->sizes, ((size_t)t->documents + 1) * sizeof *sizes);

    if (sizes == NULL)
        return fail(d, 1, "out of memory");
    t->sizes = sizes;
    memcpy(t->paths + t->path_bytes, path, length);
    t->path_bytes += (int64_t)length;
    t->sizes[t->documents++] = bytes;
    t->bytes += bytes;
    t->pairs += bytes - 1;
    return true;
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

/* A file given by name is taken or is an error; one found in a folder may be
 * skipped, and is counted then. What cannot be read is an error in any case. */
static bool add_open_file(demo *d, const char *path, int fd, bool named)
{
    struct stat st;
    bool binary = false;

    if (fstat(fd, &st) != 0 || (!named && !looks_binary(fd, &binary)))
        return cannot(d, "read", path);
    if (named && st.st_size < 2)
        return fail(d, 2, "'%s' %s; a pair of bytes wants two", path,
                    st.st_size == 0 ? "is empty" : "has one byte");
    if (st.st_size >= 2 && !binary)
        return add_document(d, path, st.st_size);
    if (binary)
        d->text.binary++;
    else
        d->text.tiny++;
    return true;
}

static bool add_file(demo *d, const char *path, bool named)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return cannot(d, "read", path);

    bool fine = add_open_file(d, path, fd, named);

    close(fd);
    return fine;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* By bytes, whatever the locale. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static bool add_folder(demo *d, const char *folder);

static bool add_entry(demo *d, const char *folder, const char *name)
{
    struct stat st;
    char *path = NULL;
    bool fine, link;
    const char *slash = folder[strlen(folder) - 1] == '/' ? "" : "/";

    if (asprintf(&path, "%s%s%s", folder, slash, name) < 0)
        return fail(d, 1, "out of memory");
    fine = lstat(path, &st) == 0;
    if (!fine)
        cannot(d, "look at", path);
    link = fine && S_ISLNK(st.st_mode);
    if (link && stat(path, &st) != 0)
        st.st_mode = S_IFLNK; /* it leads nowhere */
    if (fine && S_ISREG(st.st_mode))
        fine = add_file(d, path, false);
    else if (fine && S_ISDIR(st.st_mode) && !link)
        fine = add_folder(d, path);
    else
        d->text.odd++;
    free(path);
    return fine;
}

static bool add_folder(demo *d, const char *folder)
{
    struct dirent **entries;
    int n = scandir(folder, &entries, is_visible, by_name);
    bool fine = true;

    if (n < 0)
        return cannot(d, "read", folder);
    for (int i = 0; i < n; i++) {
        fine = fine && add_entry(d, folder, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return fine;
}

static bool add_path(demo *d, const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return cannot(d, "read", path);
    if (S_ISDIR(st.st_mode))
        return add_folder(d, path);
    if (S_ISREG(st.st_mode))
        return add_file(d, path, true);
    return fail(d, 2, "'%s' is neither a file nor a folder", path);
}

static bool find_documents(demo *d)
{
    const corpus *t = &d->text;

    if (d->n_paths == 0 && !add_path(d, "."))
        return false;
    for (int i = 0; i < d->n_paths; i++)
        if (!add_path(d, d->paths[i]))
            return false;
    if (t->documents == 0)
        return fail(d, 2,
                    "there is no text in '%s'%s: skipped %" PRId64
                    " binary files, %" PRId64
                    " shorter than two bytes, %" PRId64 " not regular",
                    d->n_paths > 0 ? d->paths[0] : ".",
                    d->n_paths > 1 ? " and the others" : "", t->binary, t->tiny,
                    t->odd);
    return true;
}

/* Rank 0's list goes to all: looking again, another rank might see another. */
static bool share_list(demo *d)
{
    corpus *t = &d->text;
    int64_t numbers[] = { t->documents, t->bytes, t->pairs, t->path_bytes };

    if (!ok(d,
            rdl_broadcast(d->world, RDL_WORLD, numbers, 4, RDL_INT64, 0, NULL)))
        return false;
    if (d->rank != 0) {
        t->documents = numbers[0];
        t->bytes = numbers[1];
        t->pairs = numbers[2];
        t->path_bytes = numbers[3];
        t->paths = malloc((size_t)t->path_bytes);
        t->sizes = calloc((size_t)t->documents, sizeof *t->sizes);
        if (t->paths == NULL || t->sizes == NULL)
            return fail(d, 1, "out of memory");
    }
    return ok(d, rdl_broadcast(d->world, RDL_WORLD, t->paths,
                               (size_t)t->path_bytes, RDL_UINT8, 0, NULL)) &&
           ok(d, rdl_broadcast(d->world, RDL_WORLD, t->sizes,
                               (size_t)t->documents, RDL_INT64, 0, NULL));
}

bool list_text(demo *d)
{
    if (d->rank == 0)
        find_documents(d);
    return agree(d) && share_list(d);
}

/* A rank's pairs of one document: those that begin at first .. end-1, for which
 * the bytes first .. end are read. */
typedef struct part {
    const char *path;
    int64_t bytes;
    int64_t first;
    int64_t end;
} part;

static bool changed(demo *d, const part *p)
{
    return fail(d, 1, "'%s' has changed: it had %" PRId64 " bytes a moment ago",
                p->path, p->bytes);
}

static void count_piece(int64_t *counts, const unsigned char *piece, size_t n)
{
    for (size_t i = 0; i + 1 < n; i++)
        counts[piece[i] * (size_t)BYTES + piece[i + 1]]++;
}

/* Reads piece by piece; each but the last gives its last byte to the next. */
static bool count_part(demo *d, const part *p, int fd, unsigned char *piece)
{
    struct stat st;

    for (int64_t at = p->first; at < p->end;) {
        int64_t want = p->end + 1 - at < PIECE ? p->end + 1 - at : PIECE;
        ssize_t n = pread(fd, piece, (size_t)want, at);

        if (n < 0)
            return cannot(d, "read", p->path);
        if (n < 2)
            return changed(d, p);
        count_piece(d->counts, piece, (size_t)n);
        at += n - 1;
    }
    if (fstat(fd, &st) != 0)
        return cannot(d, "read", p->path);
    return st.st_size == p->bytes || changed(d, p);
}

static bool count_document(demo *d, const part *p, unsigned char *piece)
{
    int fd = open(p->path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return fail(d, 1, "'%s' has changed: it cannot be read any more: %s",
                    p->path, strerror(errno));

    bool fine = count_part(d, p, fd, piece);

    close(fd);
    return fine;
}

static bool count_own_parts(demo *d, unsigned char *piece)
{
    const char *path = d->text.paths;

    for (int64_t i = 0; i < d->text.documents; i++) {
        int64_t pairs = d->text.sizes[i] - 1;
        part p = { .path = path,
                   .bytes = d->text.sizes[i],
                   .first = pairs * d->rank / d->size,
                   .end = pairs * (d->rank + 1) / d->size };

        if (!count_document(d, &p, piece))
            return false;
        path += strlen(path) + 1;
    }
    return true;
}

/* Every pair of every document, counted by one rank and no other? */
static bool check_totals(demo *d)
{
    int64_t counted = 0;

    for (size_t i = 0; i < CELLS; i++)
        counted += d->totals[i];
    if (counted != d->text.pairs)
        return fail_alike(
            d, 1, "%" PRId64 " pairs were counted, and there are %" PRId64,
            counted, d->text.pairs);
    return true;
}

static void say_text(const demo *d)
{
    const corpus *t = &d->text;
    words a, b, c;

    say(d, "Text: %s document%s, %s bytes, %s byte pairs, each counted once",
        grouped(t->documents, &a), t->documents > 1 ? "s" : "",
        grouped(t->bytes, &b), grouped(t->pairs, &c));
    if (t->binary + t->tiny + t->odd > 0)
        say(d,
            "  skipped %" PRId64 " binary, %" PRId64
            " shorter than two bytes, %" PRId64 " not regular files",
            t->binary, t->tiny, t->odd);
    say_json(d,
             "{\"event\": \"text\", \"documents\": %" PRId64
             ", \"bytes\": %" PRId64 ", \"pairs\": %" PRId64
             ", \"skipped_binary\": %" PRId64 ", \"skipped_tiny\": %" PRId64
             ", \"skipped_odd\": %" PRId64 "}",
             t->documents, t->bytes, t->pairs, t->binary, t->tiny, t->odd);
}

bool count_pairs(demo *d)
{
    unsigned char *piece = malloc(PIECE);

    d->counts = calloc(CELLS, sizeof *d->counts);
    d->totals = calloc(CELLS, sizeof *d->totals);
    if (piece == NULL || d->counts == NULL || d->totals == NULL)
        fail(d, 1, "out of memory");
    else
        count_own_parts(d, piece);
    free(piece);
    if (!agree(d) ||
        !ok(d, rdl_all_reduce(d->world, RDL_WORLD, d->counts, d->totals, CELLS,
                              RDL_INT64, RDL_SUM, NULL)) ||
        !check_totals(d))
        return false;
    say_text(d);
    return true;
}
