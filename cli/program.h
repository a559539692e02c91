/* Which file a program's name means, by the rules of exec. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_CLI_PROGRAM_H
#define RDL_CLI_PROGRAM_H

#include <stddef.h>

/* The path of the file that name stands for: itself if it holds a '/', else the
 * first executable of that name in PATH. The caller frees it. NULL if there is
 * none that may be executed: why (bytes long) then holds the sentence. */
char *program_find(const char *name, char *why, size_t bytes);

#endif
