/* Logs: what each rank prints, byte for byte, in two files of a folder, rank-N.out
 * and rank-N.err.
 *
 * The files are made before anything is started, and none may be there: one run's
 * lines never stand behind another's. When one cannot be written any more, all end
 * there, so that none has a gap.
 *
 * Threads: one at a time. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_CLI_LOGS_H
#define RDL_CLI_LOGS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct logs logs;

/* Makes the folder, with those that it is in, and the files. NULL: why (bytes
 * long) holds the sentence, and there is no file. */
logs *logs_open(const char *folder, int ranks, char *why, size_t bytes);
/* NULL is allowed. */
void logs_close(logs *l);

/* Removes the files: no rank was started. NULL is allowed. */
void logs_discard(logs *l);

/* Adds what rank wrote, to standard error or else to standard output. */
void logs_write(logs *l, int rank, bool to_stderr, const char *data,
                size_t count);

/* True if something went wrong that was not told yet: text then holds it. At the
 * end, with finished, it is also seen whether the files are still there. */
bool logs_trouble(logs *l, bool finished, char *text, size_t bytes);

#endif
