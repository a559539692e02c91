/* One pass over a token file. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/source.h"

#include "command.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PIECE ((size_t)1 << 16) /* tokens read at once */

typedef struct scan {
    corpus *c;
    const source_request *r;
    int64_t at;    /* the next token */
    int64_t first; /* of the present document */
    trouble *t;
} scan;

static size_t width_of(source_kind kind)
{
    return kind == SOURCE_UINT32 ? 4 : 2;
}

/* A document of one id has no input, and is none. */
static bool end_document(scan *s)
{
    int64_t ids = s->at - s->first;
    bool fine = ids < 2 || corpus_add_document(s->c, s->first, ids, s->t);

    s->first = s->at;
    return fine;
}

static uint32_t token_at(const unsigned char *bytes, source_kind kind)
{
    uint32_t wide;
    uint16_t narrow;

    if (kind == SOURCE_UINT32) {
        memcpy(&wide, bytes, sizeof wide);
        return wide;
    }
    memcpy(&narrow, bytes, sizeof narrow);
    return narrow;
}

static bool take_piece(scan *s, const unsigned char *bytes, size_t count)
{
    size_t width = width_of(s->r->kind);

    for (size_t i = 0; i < count; i++) {
        uint32_t token = token_at(bytes + i * width, s->r->kind);

        if (token >= (uint32_t)s->r->vocabulary)
            return trouble_note(
                s->t, STATUS_USAGE,
                "token %" PRId64 " of '%s' (counted from 0, at byte %" PRId64
                ") is %" PRIu32 ", and the vocabulary ends at %d; its tokens "
                "were read as uint%zu (--token-type)",
                s->at, s->r->path, s->at * (int64_t)width, token,
                s->r->vocabulary - 1, width * 8);
        s->at++;
        if (token == CORPUS_EOS && !end_document(s))
            return false;
    }
    return true;
}

static bool check_length(const source_request *r, trouble *t)
{
    int64_t width = (int64_t)width_of(r->kind);

    if (r->bytes % width != 0)
        return trouble_note(t, STATUS_USAGE,
                            "'%s' has %" PRId64 " bytes, which are not whole "
                            "tokens of %" PRId64 " bytes (uint%" PRId64
                            "; --token-type)",
                            r->path, r->bytes, width, width * 8);
    if (r->bytes < 2 * width)
        return trouble_note(
            t, STATUS_USAGE,
            "'%s' has one token; an input and its label are two", r->path);
    return true;
}

static bool scan_pieces(scan *s, unsigned char *room)
{
    size_t width = width_of(s->r->kind);

    while (s->at < s->r->bytes / (int64_t)width) {
        ssize_t n = pread(s->r->fd, room, PIECE * width,
                          (off_t)(s->at * (int64_t)width));

        if (n < (ssize_t)width)
            return trouble_note(
                s->t, STATUS_USAGE, "cannot read '%s': %s", s->r->path,
                n < 0 ? strerror(errno) : "it has become shorter");
        if (!take_piece(s, room, (size_t)n / width))
            return false;
    }
    return end_document(s);
}

bool source_scan(corpus *c, const source_request *request, trouble *t)
{
    scan s = { .c = c, .r = request, .t = t };
    unsigned char *room;
    bool fine;

    if (!check_length(request, t))
        return false;
    room = malloc(PIECE * width_of(request->kind));
    fine = room != NULL ? scan_pieces(&s, room) : trouble_memory(t);
    free(room);
    return fine;
}
