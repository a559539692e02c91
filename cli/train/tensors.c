/* Header, data, name. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/tensors.h"

#include "command.h"
#include "train/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "safetensors files are little-endian, and data is written as it lies"
#endif

#define ELEMENT_BYTES 4
#define ALIGNMENT 8

struct tensor_file {
    int fd;
    char *path;
    char *partial; /* its name until then */
    bool is_named; /* the file system wanted a name at once */
    int64_t left;  /* bytes that are still to come */
};

static bool cannot(const tensor_file *f, const char *what, trouble *t)
{
    return trouble_note(t, STATUS_FAILED, "cannot %s '%s': %s", what, f->path,
                        strerror(errno));
}

static int64_t bytes_of(const tensor *x)
{
    int64_t bytes = ELEMENT_BYTES;

    for (int i = 0; i < x->dims; i++)
        bytes *= x->shape[i];
    return bytes;
}

/* In front: its length in 8 bytes; behind: blanks up to a multiple of 8. */
static bool make_header(text *out, const tensor *tensors, size_t count)
{
    int64_t offsets[2] = { 0, 0 };
    uint64_t bytes = 0;

    text_add(out, (const char *)&bytes, sizeof bytes);
    json_open(out, NULL);
    json_open(out, "__metadata__");
    json_text(out, "format", "pt");
    json_close(out);
    for (size_t i = 0; i < count; i++) {
        const tensor *x = &tensors[i];

        offsets[0] = offsets[1];
        offsets[1] += bytes_of(x);
        json_open(out, x->name);
        json_text(out, "dtype", x->type == TENSOR_F32 ? "F32" : "I32");
        json_integers(out, "shape", x->shape, (size_t)x->dims);
        json_integers(out, "data_offsets", offsets, 2);
        json_close(out);
    }
    json_close(out);
    while (out->used % ALIGNMENT != 0)
        if (!text_add(out, " ", 1))
            return false;
    bytes = out->used - sizeof bytes;
    memcpy(out->data, &bytes, sizeof bytes);
    return true;
}

static bool write_header(tensor_file *f, const tensor *tensors, size_t count,
                         trouble *t)
{
    text header = { .data = NULL };
    bool fine = text_print(&header, "%*s", (int)(count * 256), "");

    /* There is memory for all that comes. */
    header.used = 0;
    fine = (fine && make_header(&header, tensors, count)) || trouble_memory(t);
    f->left = (int64_t)header.used;
    fine = fine && tensor_file_write(f, header.data, header.used, t);
    text_free(&header);
    for (size_t i = 0; i < count; i++)
        f->left += bytes_of(&tensors[i]);
    return fine;
}

static bool name_file(tensor_file *f, const char *folder, const char *name,
                      trouble *t)
{
    if (asprintf(&f->path, "%s/%s", folder, name) < 0)
        f->path = NULL;
    if (asprintf(&f->partial, "%s/.%s.partial", folder, name) < 0)
        f->partial = NULL;
    if (f->path != NULL && f->partial != NULL)
        return true;
    trouble_memory(t);
    return false;
}

/* Without a name, where the file system can do that: nothing is left then,
 * whatever happens. */
static bool open_file(tensor_file *f, const char *folder, trouble *t)
{
    f->fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    if (f->fd >= 0)
        return true;
    f->fd = open(f->partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    f->is_named = f->fd >= 0;
    return f->is_named || cannot(f, "write", t);
}

bool tensor_file_create(const char *folder, const char *name,
                        const tensor *tensors, size_t count, tensor_file **out,
                        trouble *t)
{
    tensor_file *f = calloc(1, sizeof *f);

    if (f == NULL)
        return trouble_memory(t);
    f->fd = -1;
    if (name_file(f, folder, name, t) && open_file(f, folder, t) &&
        write_header(f, tensors, count, t)) {
        *out = f;
        return true;
    }
    tensor_file_drop(f);
    return false;
}

bool tensor_file_write(tensor_file *f, const void *data, size_t bytes,
                       trouble *t)
{
    const char *from = data;

    f->left -= (int64_t)bytes;
    while (bytes > 0) {
        ssize_t n = write(f->fd, from, bytes);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return cannot(f, "write", t);
        from += n;
        bytes -= (size_t)n;
    }
    return true;
}

/* The name of an unnamed file must be a new one; renaming replaces. */
static bool give_name(tensor_file *f, trouble *t)
{
    char own[32];

    snprintf(own, sizeof own, "/proc/self/fd/%d", f->fd);
    if (!f->is_named) {
        if (unlink(f->partial) != 0 && errno != ENOENT)
            return cannot(f, "write", t);
        if (linkat(AT_FDCWD, own, AT_FDCWD, f->partial, AT_SYMLINK_FOLLOW) != 0)
            return cannot(f, "write", t);
        f->is_named = true;
    }
    if (rename(f->partial, f->path) != 0)
        return cannot(f, "write", t);
    f->is_named = false;
    return true;
}

bool tensor_file_finish(tensor_file *f, trouble *t)
{
    bool fine = f->left == 0 ||
                trouble_note(t, STATUS_FAILED, "'%s' is %lld bytes short",
                             f->path, (long long)f->left);

    fine = fine && (fsync(f->fd) == 0 || cannot(f, "write", t));
    fine = fine && give_name(f, t);
    tensor_file_drop(f);
    return fine;
}

void tensor_file_drop(tensor_file *f)
{
    if (f == NULL)
        return;
    if (f->fd >= 0)
        close(f->fd);
    if (f->is_named && f->partial != NULL)
        unlink(f->partial);
    free(f->path);
    free(f->partial);
    free(f);
}

bool tensor_folder_check(const char *folder, trouble *t)
{
    struct stat s;

    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return trouble_note(t, STATUS_USAGE, "cannot make the folder '%s': %s",
                            folder, strerror(errno));
    if (stat(folder, &s) == 0 && !S_ISDIR(s.st_mode))
        return trouble_note(t, STATUS_USAGE, "'%s' is not a folder", folder);
    if (access(folder, W_OK | X_OK) != 0)
        return trouble_note(t, STATUS_USAGE, "cannot write to '%s': %s", folder,
                            strerror(errno));
    return true;
}
