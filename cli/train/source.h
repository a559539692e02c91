/* Token files as a corpus sees them once: are they what they should be, and where
 * do their documents end? */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_CLI_TRAIN_SOURCE_H
#define RDL_CLI_TRAIN_SOURCE_H

#include "train/corpus.h"

typedef struct source_request {
    const char *path;
    int fd;
    source_kind kind; /* of tokens */
    int64_t bytes;
    int vocabulary;
} source_request;

/* Adds the documents of the newest source. */
bool source_scan(corpus *c, const source_request *request, trouble *t);

/* corpus.c: one of the newest source. */
bool corpus_add_document(corpus *c, int64_t first, int64_t ids, trouble *t);

#endif
