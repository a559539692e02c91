/* The recording: a file for what all ranks did last, written when one has failed. It
 * is opened before anything is started, so that a name that will not do is told at
 * once. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_CLI_RECORDING_H
#define RDL_CLI_RECORDING_H

#include <stdbool.h>
#include <stddef.h>

typedef struct recording recording;

/* What is in the file stays until it is written. NULL: why (bytes long) holds the
 * sentence. */
recording *recording_open(const char *path, char *why, size_t bytes);

/* Writes what the ranks of the jobs of this very process did last, an object a line.
 * False: why holds the sentence. */
bool recording_write(recording *r, char *why, size_t bytes);

/* A file that was made for nothing is removed. NULL is allowed. */
void recording_close(recording *r);

#endif
