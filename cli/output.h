/* What ranks print: two pipes for each rank, and from them whole lines to our
 * own standard output and error.
 *
 * A line is written by one write and with its rank in front. One without an end
 * gets it when its rank closes the pipe; one longer than OUTPUT_LINE_MOST is
 * passed on in pieces, each a line. If our standard output or error takes nothing
 * for a while, what waits is kept up to a bound, and then ranks wait as they would
 * without us: writing never blocks the caller. When its reader has gone, the pipes
 * that lead there are closed, and ranks learn of it as they would without us. If
 * writing fails in another way, what cannot be written is counted and lost.
 *
 * Threads: one at a time. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_CLI_OUTPUT_H
#define RDL_CLI_OUTPUT_H

#include "logs.h"
#include "run.h"
#include "say.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

#define OUTPUT_LINE_MOST 65536

typedef struct output output;

/* For this many ranks; NULL with errno set if there is no memory. */
output *output_open(int ranks, run_prefix prefix);
void output_close(output *o);

/* What ranks print from now on goes there too, which stays the caller's. */
void output_log(output *o, logs *l);

/* Makes the two pipes of rank; with PREFIX_OTHERS rank 0 gets copies of our own
 * descriptors instead, and what it writes passes us by. The caller gives their ends to the rank and then
 * closes them. 0, or an error number; then there are none. */
int output_add(output *o, int rank, int *stdout_end, int *stderr_end);

/* What to poll for: fills at most output_poll_most entries, returns how many. */
size_t output_poll_most(const output *o);
size_t output_poll(output *o, struct pollfd *polled);

/* Moves what polled (the entries that output_poll filled) says can be moved. */
void output_move(output *o, const struct pollfd *polled, size_t count);

/* No process of the job is left: reads what is still in the pipes, as far as
 * there is room, and closes those that are empty. */
void output_finish(output *o);

/* No pipe is open and nothing waits to be written. */
bool output_done(const output *o);

/* No pipe is open whose lines would come behind what output_say says now. */
bool output_all_heard(const output *o);

/* How many bytes were written so far; tells whether anybody takes them. */
size_t output_written(const output *o);

/* A sentence of our own, behind the lines of ranks that came before it. */
void output_say(output *o, const char *who, const char *format, ...)
    SAY_PRINTF(3, 4);

/* The same for lines that are whole already; if there is no room, nothing. */
void output_lines(output *o, const char *lines, size_t bytes);

/* Gives up what was not written yet, and says what was lost in all, leaving aside
 * what nobody wants to read; true if something was. */
bool output_report(output *o, const char *who);

#endif
