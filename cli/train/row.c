/* Reading rows: a row is pieces of documents, one after another. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/corpus.h"

#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Where a row's pieces go. */
typedef struct row {
    int32_t *tokens;
    int32_t *labels;
    int32_t *positions;
} row;

static const char *path_of(const corpus *c, int64_t source)
{
    return c->paths.data + c->sources[source].path;
}

static bool open_source(corpus *c, int64_t source, trouble *t)
{
    if (c->fd >= 0 && c->open_source == source)
        return true;
    if (c->fd >= 0)
        close(c->fd);
    c->open_source = source;
    c->fd = open(path_of(c, source), O_RDONLY | O_CLOEXEC);
    return c->fd >= 0 || trouble_note(t, STATUS_FAILED, "cannot read '%s': %s",
                                      path_of(c, source), strerror(errno));
}

static bool read_bytes(corpus *c, int64_t source, int64_t at, void *to,
                       size_t bytes, trouble *t)
{
    char *next = to;

    if (!open_source(c, source, t))
        return false;
    while (bytes > 0) {
        ssize_t n = pread(c->fd, next, bytes, (off_t)at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return trouble_note(t, STATUS_FAILED, "cannot read '%s': %s",
                                path_of(c, source),
                                n < 0 ? strerror(errno)
                                      : "it is shorter than it was when "
                                        "training began");
        next += n;
        at += n;
        bytes -= (size_t)n;
    }
    return true;
}

/* Ids [from, from + count) of a text: id 0 is BOS, id i the byte i - 1, and the
 * last is EOS. ids has room for count. */
static bool read_text_ids(corpus *c, const document *d, int64_t from,
                          int64_t count, int32_t *ids, trouble *t)
{
    bool begins = from == 0, ends = from + count == d->ids;
    int64_t bytes = count - begins - ends;
    /* Widened in place, from the back. */
    unsigned char *raw = (unsigned char *)(ids + begins);

    if (bytes > 0 &&
        !read_bytes(c, d->source, from - 1 + begins, raw, (size_t)bytes, t))
        return false;
    for (int64_t i = bytes - 1; i >= 0; i--)
        ids[begins + i] = raw[i];
    if (begins)
        ids[0] = CORPUS_BOS;
    if (ends)
        ids[count - 1] = CORPUS_EOS;
    return true;
}

static bool read_token_ids(corpus *c, const document *d, int64_t from,
                           int64_t count, int32_t *ids, trouble *t)
{
    int64_t width = c->sources[d->source].kind == SOURCE_UINT32 ? 4 : 2;
    unsigned char *raw = (unsigned char *)ids;

    if (!read_bytes(c, d->source, (d->first + from) * width, raw,
                    (size_t)(count * width), t))
        return false;
    if (width == 2)
        for (int64_t i = count - 1; i >= 0; i--) {
            uint16_t id;

            memcpy(&id, raw + i * 2, sizeof id);
            ids[i] = id;
        }
    return true;
}

/* count inputs of d, from the one at from on, and their labels. ids has room for
 * one more than count. */
static bool read_piece(corpus *c, const document *d, int64_t from,
                       int64_t count, int32_t *ids, row to, trouble *t)
{
    bool is_text = c->sources[d->source].kind == SOURCE_BYTES;
    bool fine = is_text ? read_text_ids(c, d, from, count + 1, ids, t)
                        : read_token_ids(c, d, from, count + 1, ids, t);

    if (!fine)
        return false;
    memcpy(to.tokens, ids, (size_t)count * sizeof *ids);
    memcpy(to.labels, ids + 1, (size_t)count * sizeof *ids);
    for (int64_t i = 0; i < count; i++)
        to.positions[i] = (int32_t)i;
    return true;
}

/* The document that holds the input number token. */
static const document *find_document(const corpus *c, int64_t token)
{
    int64_t low = 0, high = c->n_documents;

    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;

        if (c->documents[middle].start <= token)
            low = middle;
        else
            high = middle;
    }
    return &c->documents[low];
}

static bool read_pieces(corpus *c, int64_t token, int64_t length, int32_t *ids,
                        row to, trouble *t)
{
    const document *d = find_document(c, token);

    for (int64_t done = 0; done < length; d++) {
        int64_t from = token + done - d->start;
        int64_t count = d->ids - 1 - from;

        if (count > length - done)
            count = length - done;
        if (!read_piece(c, d, from, count, ids,
                        (row){ to.tokens + done, to.labels + done,
                               to.positions + done },
                        t))
            return false;
        done += count;
    }
    return true;
}

bool corpus_read_row(corpus *c, int64_t number, int64_t length, int32_t *tokens,
                     int32_t *labels, int32_t *positions, trouble *t)
{
    int64_t rows = c->tokens / length;
    int32_t *ids = calloc((size_t)length + 1, sizeof *ids);
    row to = { tokens, labels, positions };
    bool fine;

    if (ids == NULL)
        return trouble_memory(t);
    fine = read_pieces(c, number % rows * length, length, ids, to, t);
    free(ids);
    return fine;
}
