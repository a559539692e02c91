/* The data: documents of token ids, in files.
 *
 * A text file is one document: its bytes are the ids, between BOS and EOS. A file
 * of tokens (NAME.bin) has ids of 16 or 32 bits, little-endian; each EOS in it ends
 * a document. Of a document of n ids the first n - 1 are inputs, and the last n - 1
 * their labels. Documents follow one another without a gap, and what lies between
 * two multiples of a length is a row of that length.
 *
 * Files in folders come in the order of their names' bytes, each folder where its
 * name stands. Of what is found in folders, and only there, names that begin with a
 * dot, files that are no text (a 0 in their first 8,192 bytes), and empty files are
 * left out; the last two are counted. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_CLI_TRAIN_CORPUS_H
#define RDL_CLI_TRAIN_CORPUS_H

#include "train/options.h"
#include "train/text.h"
#include "train/trouble.h"

#include <stdint.h>

#define CORPUS_BOS 2002
#define CORPUS_EOS 2003

typedef enum source_kind {
    SOURCE_BYTES,
    SOURCE_UINT16,
    SOURCE_UINT32
} source_kind;

typedef struct data_source {
    int64_t path; /* where it begins in paths */
    int64_t kind;
} data_source;

typedef struct document {
    int64_t source;
    int64_t first; /* of its ids, in the file; a text's BOS is 0 */
    int64_t ids;   /* 2 or more */
    int64_t start; /* of its inputs, among all inputs */
} document;

typedef struct corpus {
    text paths;
    data_source *sources;
    document *documents;
    int64_t n_sources;
    int64_t n_documents;
    int64_t tokens; /* inputs of all documents */
    int64_t binary; /* files left out: no text, */
    int64_t empty;  /* without a byte, */
    int64_t odd;    /* neither file nor folder */

    /* For reading: the source that is open. */
    int64_t open_source;
    int fd; /* -1: none */
} corpus;

typedef struct corpus_request {
    const word_list *paths;
    const char *token_type; /* as in options */
    int vocabulary;
} corpus_request;

/* Finds all documents, and looks at every token of token files. Free it in any
 * case. */
bool corpus_find(corpus *c, const corpus_request *request, trouble *t);
void corpus_free(corpus *c);

/* Whether there is a row of that length at all. */
bool corpus_check_rows(const corpus *c, int64_t length, trouble *t);

/* To bytes and back, for ranks that shall not look for themselves: between two
 * looks a file may have changed. */
bool corpus_pack(const corpus *c, text *out, trouble *t);
bool corpus_unpack(corpus *c, const char *bytes, size_t count, trouble *t);

/* Row number row (counted around the end of the data) of length tokens: length
 * inputs, labels and positions. A position is counted from the start of the row or
 * of the token's document, whichever comes later. */
bool corpus_read_row(corpus *c, int64_t row, int64_t length, int32_t *tokens,
                     int32_t *labels, int32_t *positions, trouble *t);

#endif
