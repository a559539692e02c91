/* Sentences for the user: one line on standard error that begins with who says
 * it, "raddle run: ...", written at once.
 *
 * What users typed may stand in a sentence: control characters in it are shown
 * as '?', so that it stays one line. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_CLI_SAY_H
#define RDL_CLI_SAY_H

#include <stdarg.h>
#include <stddef.h>

/* Longest sentence, its newline included; longer ones are cut. */
#define SAY_MOST 4096

#define SAY_PRINTF(nth, first) __attribute__((format(printf, nth, first)))

void say(const char *who, const char *format, ...) SAY_PRINTF(2, 3);

/* The same line into text (SAY_MOST bytes), not ended by 0. Returns its bytes. */
size_t say_into(char *text, const char *who, const char *format, va_list args)
    SAY_PRINTF(3, 0);

/* "exit status 7" or "killed by signal 9 (Killed)", from a status of waitpid. */
#define ENDING_MOST 64
void describe_ending(char *text, int wait_status);

/* What a shell would make of it: the exit status, or 128 + the signal. */
int code_of_ending(int wait_status);

/* "Interrupt"; for a number without a name "unknown signal". */
const char *signal_text(int number);

#endif
