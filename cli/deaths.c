/* Who has ended, and which of them was the first to fail. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "command.h"
#include "state.h"

#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>

static int rank_of_pid(const keeper *k, pid_t pid)
{
    for (int r = 0; r < k->options->ranks; r++)
        if (k->ranks[r].pid == pid && !k->ranks[r].ended)
            return r;
    return -1;
}

/* Others than ranks are orphans that became our children. */
static void note_end(keeper *k, pid_t pid, int wait_status)
{
    int rank = rank_of_pid(k, pid);

    if (rank < 0)
        return;
    k->ranks[rank].ended = true;
    k->ranks[rank].wait_status = wait_status;
    k->running--;
    k->batch[k->batch_count++] = rank;
    /* If it never became its program, the report says why. */
    if (rank == k->started - 1 && k->report >= 0)
        keeper_take_report(k);
}

static void reap(keeper *k)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        if (!WIFSTOPPED(status)) /* one that could not be held for its stack */
            note_end(k, pid, status);
    k->childless = pid < 0 && errno == ECHILD;
}

/* How likely an end is the cause and not the consequence. Who has heard of another
 * rank's failure may have ended for that. A signal is told first: what goes with a killed process is
 * seen by others before it can be reaped. The kernel keeps the first SIGCHLD of
 * several, which tells who was first to end. */
static int weight(const keeper *k, int rank)
{
    const rank_state *r = &k->ranks[rank];

    if (code_of_ending(r->wait_status) == 0)
        return 0;
    return 1 + 4 * (keeper_is_echo(k, rank) ? 0 : 1) +
           2 * (WIFSIGNALED(r->wait_status) ? 1 : 0) +
           (r->pid == k->first_dead ? 1 : 0);
}

/* The first to fail of those that ended in this round, or -1. */
static int first_of_batch(const keeper *k)
{
    int best = -1, most = 0;

    for (int i = 0; i < k->batch_count; i++) {
        int rank = k->batch[i], w = weight(k, rank);

        if (w > most || (w == most && w > 0 && rank < best)) {
            best = rank;
            most = w;
        }
    }
    return best;
}

static void tell_job(keeper *k, int rank)
{
    char text[ENDING_MOST];

    describe_ending(text, k->ranks[rank].wait_status);
    rdl_job_rank_ended(k->job, rank, text);
}

static void note_failed_end(keeper *k, int rank)
{
    first_failure f = { .rank = rank,
                        .code = code_of_ending(k->ranks[rank].wait_status) };

    describe_ending(f.text, k->ranks[rank].wait_status);
    keeper_note_failure(k, &f);
    tell_job(k, rank);
}

/* A process of rank took part in the job and is no longer in it, or, if the rank
 * is gone, ought not to be: its end was not an orderly one, whatever the status. */
static void check_member(keeper *k, int rank, bool gone)
{
    first_failure f = { .rank = rank, .code = STATUS_FAILED, .by_member = true };
    rdl_member m;

    if (rdl_job_member(k->job, rank, &m) != RDL_OK)
        return;
    if (m.state == RDL_MEMBER_DEAD && m.reason != NULL)
        snprintf(f.text, sizeof f.text, "it gave up: %s", m.reason);
    else if (m.state == RDL_MEMBER_DEAD || (m.state == RDL_MEMBER_JOINED &&
                                            gone && m.pid == k->ranks[rank].pid))
        snprintf(f.text, sizeof f.text,
                 "its process %lld ended without closing its world",
                 (long long)m.pid);
    else if (m.state == RDL_MEMBER_JOINED && gone)
        snprintf(f.text, sizeof f.text,
                 "it ended before its process %lld, which was still in the job",
                 (long long)m.pid);
    else
        return;
    keeper_note_failure(k, &f);
}

static void serve(keeper *k)
{
    if (k->job_failed || rdl_job_serve(k->job) == RDL_OK)
        return;
    k->job_failed = true;
    output_say(k->out, k->options->who, "cannot serve the job any more: %s",
               rdl_error_detail());
    keeper_fail(k, STATUS_FAILED);
}

/* A process of many threads that is killed takes a while to end, and its peers may
 * have been told that it is dying and ended before it. Who was told of nothing is
 * the first. */
static bool may_precede_its_cause(const keeper *k, int first)
{
    return first >= 0 && k->phase == RUNNING &&
           !WIFSIGNALED(k->ranks[first].wait_status) && keeper_is_echo(k, first);
}

#define ECHO_AHEAD (INT64_C(50000000)) /* ns */

void deaths_take(keeper *k)
{
    int first;

    k->batch_count = 0;
    reap(k);
    first = first_of_batch(k);
    if (may_precede_its_cause(k, first)) {
        nanosleep(&(struct timespec){ .tv_nsec = ECHO_AHEAD }, NULL);
        reap(k);
        first = first_of_batch(k);
    }
    /* Its peers are told of the cause before they are told of anything else. */
    if (first >= 0)
        note_failed_end(k, first);
    for (int i = 0; i < k->batch_count; i++)
        if (k->batch[i] != first && weight(k, k->batch[i]) > 0)
            note_failed_end(k, k->batch[i]);
    /* What a process said before it ended may still be unread. */
    if (k->batch_count > 0)
        serve(k);
    for (int i = 0; i < k->batch_count; i++)
        if (weight(k, k->batch[i]) == 0) {
            check_member(k, k->batch[i], true);
            tell_job(k, k->batch[i]);
        }
    k->first_dead = 0;
}

void members_take(keeper *k)
{
    serve(k);
    if (k->phase != RUNNING)
        return;
    /* Of several that ended those first that had not heard of a failure yet. */
    for (int echoes = 0; echoes < 2; echoes++)
        for (int r = 0; r < k->started; r++) {
            rdl_member m;

            if (!k->ranks[r].ended && rdl_job_member(k->job, r, &m) == RDL_OK &&
                m.echoes == (echoes == 1))
                check_member(k, r, false);
        }
}
