/* One file, once. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "recording.h"

#include "records.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct recording {
    FILE *to;
    bool made; /* by us: it was not there */
    bool written;
    char path[]; /* as the user gave it */
};

static bool open_file(recording *r)
{
    int fd = open(r->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

    r->made = fd >= 0;
    if (fd < 0 && errno == EEXIST)
        fd = open(r->path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    r->to = fdopen(fd, "w");
    if (r->to == NULL)
        close(fd);
    return r->to != NULL;
}

static void tell(const recording *r, char *why, size_t bytes)
{
    snprintf(why, bytes, "cannot write the recording '%s': %s (%s)", r->path,
             strerror(errno), strerrorname_np(errno));
}

recording *recording_open(const char *path, char *why, size_t bytes)
{
    recording *r = calloc(1, sizeof *r + strlen(path) + 1);

    if (r == NULL) {
        snprintf(why, bytes, "no memory for a recording");
        return NULL;
    }
    strcpy(r->path, path);
    if (open_file(r))
        return r;
    tell(r, why, bytes);
    free(r);
    return NULL;
}

static bool print(recording *r, const rdl_dump *dump)
{
    records_options options = { .json = true, .last = UINT64_MAX, .rank = -1 };

    if (ftruncate(fileno(r->to), 0) != 0 && errno != EINVAL) /* no plain file */
        return false;
    for (int job = 0; job < rdl_dump_jobs(dump); job++)
        records_print(r->to, dump, job, &options);
    return fflush(r->to) == 0 && !ferror(r->to);
}

bool recording_write(recording *r, char *why, size_t bytes)
{
    rdl_dump *dump = NULL;
    bool good;

    if (rdl_dump_open(getpid(), &dump) != RDL_OK) {
        snprintf(why, bytes, "nothing to record in '%s': %s", r->path,
                 rdl_error_detail());
        return false;
    }
    r->written = true;
    good = print(r, dump);
    if (!good)
        tell(r, why, bytes);
    rdl_dump_close(dump);
    return good;
}

void recording_close(recording *r)
{
    if (r == NULL)
        return;
    fclose(r->to);
    if (r->made && !r->written)
        unlink(r->path);
    free(r);
}
