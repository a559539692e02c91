/* What the keeper knows, for its parts: keeper.c hears of things, phases.c
 * decides what is to be done, deaths.c finds out who ended and who failed first. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_CLI_STATE_H
#define RDL_CLI_STATE_H

#include "keeper.h"
#include "logs.h"
#include "output.h"
#include "recording.h"
#include "say.h"

#include <poll.h>
#include <raddle/launch.h>
#include <sys/resource.h>

typedef struct rank_state {
    pid_t pid; /* 0: not started */
    bool ended;
    int wait_status;
} rank_state;

/* A job passes through these in order, and may leave some out. */
typedef enum phase {
    RUNNING,
    FAILING,  /* a rank has failed; the others are given time to see it */
    ENDING,   /* they were asked to end */
    KILLING,  /* whoever is left is being killed */
    EMPTYING, /* no process is left; what they printed is passed on */
    LEAVING,  /* so is what we had to say about it */
    GONE
} phase;

/* The failure that is reported. */
typedef struct first_failure {
    int rank; /* -1: none */
    int code;
    bool by_member; /* a process behind the rank's own; that one may tell more */
    char text[ENDING_MOST + 64];
} first_failure;

typedef struct keeper {
    const run_options *options;
    const keeper_ends *ends;
    rdl_job *job;
    bool job_failed; /* rdl_job_serve did; it is not asked again */
    output *out;
    logs *logs;           /* NULL: none are wanted */
    recording *recording; /* likewise */
    int signal_fd;
    int port_fd; /* holds the port of the ranks' own rendezvous; -1: none */
    struct pollfd *polled;
    struct rlimit descriptors; /* as ranks get it back */

    rank_state *ranks;
    int *batch; /* those that ended in this round */
    int batch_count;
    pid_t first_dead; /* whose SIGCHLD came first in this round; 0: none */
    int started;
    int running;
    bool childless; /* waitpid said so */
    int report;     /* from the rank that is being started; -1: none is */

    phase phase;
    int64_t deadline;   /* of the phase */
    int64_t trouble_at; /* when it began to go wrong */
    first_failure first;
    int ended_by;  /* the signal that the user sent; 0: none */
    int own_code;  /* something of ours failed; 0: nothing */
    int cut_short; /* ranks that were running when we began to end them */
    bool cut_short_known;
    bool screen_shown;
    bool verdict_said;
    sigset_t echo_due; /* signals that the launcher will tell of once more */
    bool launcher_gone;
    bool hurry; /* what is not taken at once is not worth waiting for */

    size_t written; /* output_written when somebody last took something */
    int64_t written_at;
} keeper;

/* deaths.c */

/* Reaps whoever has ended, tells the job, and notes the first failure. */
void deaths_take(keeper *k);

/* Serves the job, and notes processes that left it without a word. */
void members_take(keeper *k);

/* keeper.c */

/* Starts the next rank, of which there is one. */
void keeper_start_next(keeper *k);

/* Says what became of the logs, if something did that was not said yet. */
void keeper_say_log_trouble(keeper *k, bool finished);

/* Reads how the start of a rank went. */
void keeper_take_report(keeper *k);

/* phases.c */

/* A rank failed, if none has before. */
void keeper_note_failure(keeper *k, const first_failure *failure);

/* Whether the rank has heard that another one failed, and has not said itself that it
 * gives up. */
bool keeper_is_echo(const keeper *k, int rank);

/* Something of ours failed, and was said: the job ends at once with code. */
void keeper_fail(keeper *k, int code);

/* The launcher has died: the job ends at once. */
void keeper_orphaned(keeper *k);

/* The user sent this signal. in_group: the ranks of our process group have had
 * it as well. */
void phases_order(keeper *k, int number, bool in_group);

/* Does what the time or the state of things calls for. */
void phases_advance(keeper *k);

/* How long nothing is to be done, for poll. */
int phases_wait_ms(const keeper *k);

/* Of the command, in the end. */
int phases_exit_code(const keeper *k);

#endif
