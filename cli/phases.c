/* The phases of a job: from running, through whatever goes wrong, until nothing
 * is left of it. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "children.h"
#include "command.h"
#include "screen.h"
#include "state.h"

#include <signal.h>
#include <stdio.h>

/* For ranks to fail by themselves, having been told of the first failure. */
#define FAILING_MS 2000
/* When ranks that still run are shown: most of those that only echo the failure
 * have ended by then, and none has been asked to. */
#define SCREEN_MS 1000
/* After that long nobody can be said to be reading what we write, if nothing
 * was taken for a while. */
#define OUTPUT_MS 9000
#define OUTPUT_IDLE_MS 1000
#define TICK_MS 100

static void enter(keeper *k, phase next, int64_t ms)
{
    k->phase = next;
    k->deadline = clock_ms() + ms;
}

/* Counts whom we end: all that run at that moment, but for the one who failed. */
static void note_cut_short(keeper *k)
{
    if (k->cut_short_known)
        return;
    k->cut_short_known = true;
    k->cut_short = k->running;
    if (k->first.rank >= 0 && !k->ranks[k->first.rank].ended)
        k->cut_short--;
}

static void end_ranks(keeper *k, int number, bool outside_group)
{
    note_cut_short(k);
    enter(k, ENDING, k->options->grace_ms);
    descendants_signal(number, outside_group);
}

static void kill_ranks(keeper *k)
{
    note_cut_short(k);
    enter(k, KILLING, KILL_WAIT_MS);
}

bool keeper_is_echo(const keeper *k, int rank)
{
    rdl_failure f;
    rdl_member m;

    return rdl_job_failure(k->job, rank, &f) == RDL_OK && f.status == RDL_PEER &&
           !(rdl_job_member(k->job, rank, &m) == RDL_OK && m.reason != NULL);
}

/* While ranks end by themselves. The rank's own end tells more than that a process of
 * it was lost. And who leaves its world and then ends may be seen to end after one
 * that was told of the leaving. */
static bool tells_more(const keeper *k, const first_failure *failure)
{
    if (k->phase != FAILING || k->first.rank < 0)
        return false;
    if (k->first.rank == failure->rank)
        return k->first.by_member && !failure->by_member;
    return keeper_is_echo(k, k->first.rank) && !keeper_is_echo(k, failure->rank);
}

void keeper_note_failure(keeper *k, const first_failure *failure)
{
    if (k->phase != RUNNING && !tells_more(k, failure))
        return;
    k->first = *failure;
    if (k->phase != RUNNING)
        return;
    k->trouble_at = clock_ms();
    enter(k, FAILING, FAILING_MS);
}

void keeper_fail(keeper *k, int code)
{
    if (k->own_code == 0)
        k->own_code = code;
    k->trouble_at = clock_ms();
    if (k->phase < KILLING)
        kill_ranks(k);
}

void keeper_orphaned(keeper *k)
{
    k->launcher_gone = true;
    if (k->phase < KILLING)
        kill_ranks(k);
}

void phases_order(keeper *k, int number, bool in_group)
{
    if (k->phase == RUNNING) {
        k->ended_by = number;
        k->trouble_at = clock_ms();
        screen_show(k); /* if it was SIGQUIT, while they still run */
        end_ranks(k, ending_signals_for_ranks(k->ends->signals, number),
                  in_group);
    } else if (k->phase < KILLING && number == SIGINT) {
        screen_show(k);
        kill_ranks(k);
    } else if (k->phase == FAILING) {
        screen_show(k);
        end_ranks(k, SIGTERM, in_group && number == SIGTERM);
    } else if (k->phase > KILLING) {
        if (k->first.rank < 0 && k->own_code == 0)
            k->ended_by = number;
        k->hurry = true;
    }
}

/* Those listed, and those we know in case there is no list. */
static void kill_children(keeper *k)
{
    if (k->childless || children_kill(NULL) >= 0)
        return;
    for (int r = 0; r < k->started; r++)
        if (!k->ranks[r].ended)
            kill(k->ranks[r].pid, SIGKILL);
}

static void kill_until_childless(keeper *k)
{
    kill_children(k);
    if (!k->childless && clock_ms() < k->deadline)
        return;
    if (!k->childless && !k->launcher_gone)
        output_say(
            k->out, k->options->who,
            "some processes could not be ended within %d s and are left to "
            "the system",
            KILL_WAIT_MS / 1000);
    k->written_at = clock_ms();
    k->phase = EMPTYING;
}

/* Whether to wait for those who read our output. After a job that went well, as
 * long as they like. */
static bool is_patient(keeper *k)
{
    int64_t now = clock_ms();

    if (k->launcher_gone || k->hurry)
        return false;
    if (output_written(k->out) != k->written) {
        k->written = output_written(k->out);
        k->written_at = now;
    }
    if (k->trouble_at == 0)
        return true;
    return now < k->written_at + OUTPUT_IDLE_MS ||
           now < k->trouble_at + OUTPUT_MS;
}

static void say_verdict(keeper *k)
{
    char others[128] = "";

    if (k->verdict_said || k->launcher_gone)
        return;
    k->verdict_said = true;
    keeper_say_log_trouble(k, true);
    screen_show(k);
    if (k->cut_short > 0)
        snprintf(others, sizeof others,
                 "; %d other%s still running and %s ended", k->cut_short,
                 k->cut_short == 1 ? " was" : "s were",
                 k->cut_short == 1 ? "was" : "were");
    if (k->first.rank >= 0)
        output_say(k->out, k->options->who, "rank %d failed first: %s%s",
                   k->first.rank, k->first.text, others);
    else if (k->ended_by != 0 && k->own_code == 0)
        output_say(k->out, k->options->who,
                   "ended by signal %d (%s); %d of %d ranks were still running",
                   k->ended_by, signal_text(k->ended_by), k->cut_short,
                   k->options->ranks);
}

/* Nobody is left to print anything. */
static void empty_pipes(keeper *k)
{
    output_finish(k->out);
    if (output_all_heard(k->out))
        say_verdict(k);
    if (!output_done(k->out) && is_patient(k))
        return;
    say_verdict(k);
    k->phase = LEAVING;
    if (k->launcher_gone || !output_report(k->out, k->options->who))
        return;
    if (k->trouble_at == 0)
        k->trouble_at = clock_ms();
    if (k->own_code == 0)
        k->own_code = STATUS_FAILED;
}

static void advance_failing(keeper *k)
{
    int64_t now = clock_ms();

    if (now >= k->trouble_at + SCREEN_MS)
        screen_show(k);
    if (now >= k->deadline)
        end_ranks(k, SIGTERM, false);
}

/* RUNNING or FAILING. */
static void advance_running(keeper *k)
{
    if (k->started < k->options->ranks && k->report < 0)
        keeper_start_next(k);
    if (k->phase >= ENDING)
        return;
    if (k->started == k->options->ranks && k->report < 0 && k->running == 0)
        kill_ranks(k); /* what the ranks have left behind */
    else if (k->phase == FAILING)
        advance_failing(k);
}

void phases_advance(keeper *k)
{
    if (k->phase <= FAILING)
        advance_running(k);
    if (k->phase == ENDING && (k->childless || clock_ms() >= k->deadline))
        kill_ranks(k);
    if (k->phase == KILLING)
        kill_until_childless(k);
    if (k->phase == EMPTYING)
        empty_pipes(k);
    if (k->phase == LEAVING && (output_done(k->out) || !is_patient(k)))
        k->phase = GONE;
}

int phases_wait_ms(const keeper *k)
{
    int64_t next = k->phase == FAILING && !k->screen_shown
                       ? k->trouble_at + SCREEN_MS
                       : k->deadline;
    int64_t left = next - clock_ms();

    if (k->phase == RUNNING)
        return -1;
    if (k->phase >= KILLING)
        return TICK_MS;
    return left > 0 ? (int)left : 0;
}

int phases_exit_code(const keeper *k)
{
    if (k->first.rank >= 0)
        return k->first.code;
    if (k->ended_by != 0)
        return 128 + k->ended_by;
    return k->own_code;
}
