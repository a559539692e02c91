/* Finding programs, and saying what is wrong with those that cannot be run. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What exec searches without PATH. */
#define PATH_DEFAULT "/bin:/usr/bin"

/* 0, or the error with which exec would refuse path; EISDIR for a folder. */
static int refusal(const char *path)
{
    struct stat s;

    if (stat(path, &s) != 0)
        return errno;
    if (S_ISDIR(s.st_mode))
        return EISDIR;
    if (!S_ISREG(s.st_mode))
        return EACCES;
    return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

static void explain(const char *path, int error, char *why, size_t bytes)
{
    if (error == ENOENT)
        snprintf(why, bytes, "there is no program '%s'", path);
    else if (error == EISDIR)
        snprintf(why, bytes, "'%s' is a directory, not a program", path);
    else if (error == EACCES && access(path, F_OK) == 0)
        snprintf(why, bytes,
                 "'%s' may not be executed; is it a program, and has it the "
                 "right to be (chmod +x)?",
                 path);
    else
        snprintf(why, bytes, "'%s' cannot be run: %s (%s)", path,
                 strerror(error), strerrorname_np(error));
}

/* "DIRECTORY/NAME"; an empty directory is the current one. */
static char *join(const char *directory, size_t length, const char *name)
{
    size_t bytes = length + strlen(name) + 3;
    char *path = malloc(bytes);

    if (path != NULL)
        snprintf(path, bytes, "%.*s/%s", length > 0 ? (int)length : 1,
                 length > 0 ? directory : ".", name);
    return path;
}

static void explain_search(const char *name, int error, char *why, size_t bytes)
{
    if (error == ENOMEM)
        snprintf(why, bytes, "out of memory while looking for '%s'", name);
    else if (error != ENOENT)
        snprintf(why, bytes,
                 "the '%s' in PATH may not be executed; has it the right to be "
                 "(chmod +x)?",
                 name);
    else if (refusal(name) == 0)
        snprintf(why, bytes,
                 "there is no program '%s' in PATH; for the one in this folder "
                 "write './%s'",
                 name, name);
    else
        snprintf(why, bytes, "there is no program '%s' in PATH", name);
}

/* As exec does, goes on past what may not be executed, and tells of it at the
 * end if nothing else is found. */
static char *search(const char *name, char *why, size_t bytes)
{
    const char *rest = getenv("PATH");
    int worst = ENOENT;

    if (rest == NULL)
        rest = PATH_DEFAULT;
    for (;;) {
        size_t length = strcspn(rest, ":");
        char *path = join(rest, length, name);
        int error = path != NULL ? refusal(path) : ENOMEM;

        if (error == 0)
            return path;
        free(path);
        if (error == EACCES || error == ENOMEM)
            worst = error;
        if (rest[length] == '\0')
            break;
        rest += length + 1;
    }
    explain_search(name, worst, why, bytes);
    return NULL;
}

char *program_find(const char *name, char *why, size_t bytes)
{
    char *path;
    int error;

    if (*name == '\0') {
        snprintf(why, bytes, "the program's name is empty");
        return NULL;
    }
    if (strchr(name, '/') == NULL)
        return search(name, why, bytes);
    error = refusal(name);
    path = error == 0 ? strdup(name) : NULL;
    if (path == NULL)
        explain(name, error != 0 ? error : ENOMEM, why, bytes);
    return path;
}
