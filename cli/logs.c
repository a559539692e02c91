/* Two files a rank. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "logs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define FILE_MOST 32 /* "/rank-1023.out" */

struct logs {
    char *folder;
    int *fds; /* of rank r 2r for its output, 2r + 1 for its errors; -1 */
    size_t count;
    int error;     /* with which all ended; 0: they go on */
    size_t failed; /* the file that met it */
    bool told;
};

/* --- names ----------------------------------------------------------------- */

static void name_file(const logs *l, size_t index, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/rank-%zu.%s", l->folder, index / 2,
             index % 2 == 0 ? "out" : "err");
}

/* --- making ---------------------------------------------------------------- */

/* The part of path before its end or a slash there; false: it is no such place. */
static bool take_part(const char *path, size_t at, char part[PATH_MAX])
{
    if (path[at] != '/' && path[at] != '\0')
        return false;
    memcpy(part, path, at);
    part[at] = '\0';
    return true;
}

/* mkdir -p; true if path is a folder in the end. */
static bool make_folders(const char *path)
{
    char part[PATH_MAX];
    int error = ENOTDIR;
    struct stat is;

    errno = ENAMETOOLONG;
    if (strlen(path) >= sizeof part - FILE_MOST)
        return false;
    for (size_t at = 1; path[at - 1] != '\0'; at++)
        if (take_part(path, at, part) && mkdir(part, 0777) != 0 &&
            errno != EEXIST)
            error = errno;
    if (stat(path, &is) == 0 && S_ISDIR(is.st_mode))
        return true;
    errno = error;
    return false;
}

/* Empty files find a place where their bytes would not. */
static bool has_room(const char *folder)
{
    struct statvfs fs;

    if (statvfs(folder, &fs) != 0 || fs.f_blocks == 0)
        return true;
    errno = ENOSPC;
    return (geteuid() == 0 ? fs.f_bfree : fs.f_bavail) > 0;
}

static bool open_files(logs *l)
{
    char path[PATH_MAX];

    for (size_t i = 0; i < l->count; i++) {
        name_file(l, i, path);
        l->fds[i] =
            open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
        if (l->fds[i] < 0)
            return false;
    }
    return true;
}

/* Those that we have made. */
void logs_discard(logs *l)
{
    char path[PATH_MAX];

    for (size_t i = 0; l != NULL && i < l->count && l->fds[i] >= 0; i++) {
        name_file(l, i, path);
        unlink(path);
    }
}

static logs *make(const char *folder, int ranks)
{
    logs *l = calloc(1, sizeof *l);

    if (l == NULL)
        return NULL;
    l->count = (size_t)ranks * 2;
    l->folder = strdup(folder);
    l->fds = malloc(l->count * sizeof *l->fds);
    for (size_t i = 0; l->fds != NULL && i < l->count; i++)
        l->fds[i] = -1;
    if (l->folder != NULL && l->fds != NULL)
        return l;
    logs_close(l);
    return NULL;
}

static void explain(const char *folder, int error, char *why, size_t bytes)
{
    if (error == EEXIST)
        snprintf(why, bytes,
                 "'%.200s' holds the logs of an earlier run (rank-N.out, "
                 "rank-N.err); "
                 "remove them, or name another folder",
                 folder);
    else
        snprintf(why, bytes, "cannot write logs into '%.200s': %s (%s)", folder,
                 strerror(error), strerrorname_np(error));
}

logs *logs_open(const char *folder, int ranks, char *why, size_t bytes)
{
    logs *l = make(folder, ranks);

    if (l != NULL && make_folders(folder) && has_room(folder) && open_files(l))
        return l;
    explain(folder, errno, why, bytes);
    logs_discard(l);
    logs_close(l);
    return NULL;
}

void logs_close(logs *l)
{
    if (l == NULL)
        return;
    for (size_t i = 0; l->fds != NULL && i < l->count; i++)
        if (l->fds[i] >= 0)
            close(l->fds[i]);
    free(l->fds);
    free(l->folder);
    free(l);
}

/* --- writing --------------------------------------------------------------- */

void logs_write(logs *l, int rank, bool to_stderr, const char *data,
                size_t count)
{
    size_t index = (size_t)rank * 2 + (to_stderr ? 1 : 0);

    while (l->error == 0 && count > 0) {
        ssize_t n = write(l->fds[index], data, count);

        if (n > 0) {
            data += n;
            count -= (size_t)n;
        } else if (n == 0 || errno != EINTR) {
            l->error = n == 0 ? EIO : errno;
            l->failed = index;
        }
    }
}

/* Files that were removed take what is written, and nobody finds it. */
static size_t count_removed(const logs *l)
{
    size_t removed = 0;
    struct stat is;

    for (size_t i = 0; i < l->count; i++)
        if (fstat(l->fds[i], &is) == 0 && is.st_nlink == 0)
            removed++;
    return removed;
}

bool logs_trouble(logs *l, bool finished, char *text, size_t bytes)
{
    char path[PATH_MAX];
    size_t removed;

    if (l == NULL || l->told)
        return false;
    removed = finished ? count_removed(l) : 0;
    l->told = l->error != 0 || removed > 0;
    name_file(l, l->failed, path);
    if (l->error != 0)
        snprintf(text, bytes,
                 "cannot write '%s' any more: %s (%s); the logs of all ranks "
                 "end here, and the job goes on",
                 path, strerror(l->error), strerrorname_np(l->error));
    else if (removed > 0)
        snprintf(text, bytes,
                 "%zu of %zu logs in '%s' were removed while the job ran, and "
                 "are lost",
                 removed, l->count, l->folder);
    return l->told;
}
