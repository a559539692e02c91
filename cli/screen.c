/* Rows, sorted by how much they tell; a sentence of the library; hints. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "screen.h"

#include "look.h"
#include "stacks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define ROWS_MOST 16
#define STACKS_MS 800 /* for all of them */
#define STACK_LINES 64
#define STATE_MOST 96
#define CALL_MOST 800

/* How much a row tells: those that fit are shown, most telling first. */
typedef enum kind {
    KIND_FIRST,   /* the failure that is reported */
    KIND_DUMPING, /* crashed */
    KIND_STOPPED,
    KIND_CUT_OFF, /* runs, and cannot join */
    KIND_FAILED,  /* ended badly, after the first */
    KIND_RUNNING,
    KIND_ABSENT, /* not started */
    KIND_LEFT,   /* closed its world, and runs on */
    KIND_DONE,
    KINDS
} kind;

/* For those that did not fit. */
static const char *const kind_words[KINDS] = {
    [KIND_FIRST] = "failed first",  [KIND_DUMPING] = "writing their core",
    [KIND_STOPPED] = "stopped",     [KIND_CUT_OFF] = "without their socket",
    [KIND_FAILED] = "failed later", [KIND_RUNNING] = "running",
    [KIND_ABSENT] = "not started",  [KIND_LEFT] = "out of the job",
    [KIND_DONE] = "ended with 0",
};

typedef struct row {
    int rank;
    kind kind;
    long long pid; /* of the process that joined, else of the rank; 0: none */
    char state[STATE_MOST];
    char call[CALL_MOST]; /* the last one; "": none */
} row;

/* --- rows ------------------------------------------------------------------ */

static void fill_ended(const keeper *k, row *r)
{
    int status = k->ranks[r->rank].wait_status;

    r->kind = code_of_ending(status) == 0 ? KIND_DONE : KIND_FAILED;
    describe_ending(r->state, status);
}

static void fill_member(row *r, const rdl_member *m)
{
    const char *text = "running";

    r->kind = KIND_RUNNING;
    if (m->state == RDL_MEMBER_LEFT) {
        r->kind = KIND_LEFT;
        text = "running, has closed its world";
    } else if (m->state == RDL_MEMBER_DEAD) {
        text = "its process in the job has ended";
    } else if (m->state == RDL_MEMBER_ABSENT && m->closed) {
        r->kind = KIND_CUT_OFF;
        text = "running, has closed its socket and cannot join";
    } else if (m->state == RDL_MEMBER_ABSENT) {
        text = "running, has not joined";
    }
    snprintf(r->state, sizeof r->state, "%s", text);
}

static void fill_running(row *r, const rdl_member *m)
{
    switch (look_at((pid_t)r->pid)) {
    case LOOK_STOPPED:
        r->kind = KIND_STOPPED;
        snprintf(r->state, sizeof r->state, "stopped");
        return;
    case LOOK_DUMPING:
        r->kind = KIND_DUMPING;
        snprintf(r->state, sizeof r->state, "crashed, writing its core");
        return;
    case LOOK_GONE:
    case LOOK_RUNNING:
        break;
    }
    fill_member(r, m);
}

/* What it does, or did, and for how long. */
static void describe_progress(const rdl_last *l, char *text, size_t bytes)
{
    switch (l->state) {
    case RDL_LAST_ISSUED:
        snprintf(text, bytes, "behind others for %.1f s", l->seconds);
        return;
    case RDL_LAST_WAITING:
        snprintf(text, bytes, "waiting for rank %d for %.1f s", l->peer,
                 l->seconds);
        return;
    case RDL_LAST_ENDED:
        if (l->status == RDL_OK)
            snprintf(text, bytes, "done %.1f s ago", l->seconds);
        else
            snprintf(text, bytes, "failed %.1f s ago (%s)", l->seconds,
                     rdl_status_name(l->status));
        return;
    case RDL_LAST_RUNNING:
    case RDL_LAST_NONE:
        snprintf(text, bytes, "under way for %.1f s", l->seconds);
        return;
    }
}

static void fill_call(const keeper *k, row *r)
{
    char number[32] = "", progress[80] = "";
    rdl_last l;

    if (rdl_job_last(k->job, r->rank, &l) != RDL_OK || l.state == RDL_LAST_NONE)
        return;
    if (l.number > 0)
        snprintf(number, sizeof number, " #%llu", (unsigned long long)l.number);
    describe_progress(&l, progress, sizeof progress);
    snprintf(r->call, sizeof r->call, "%s%s%s%s, %s%s%s", l.call, number,
             l.group[0] ? " on " : "", l.group, progress, l.site[0] ? "; " : "",
             l.site);
}

static row make_row(const keeper *k, int rank)
{
    row r = { .rank = rank, .kind = KIND_ABSENT, .state = "not started" };
    rdl_member m = { .state = RDL_MEMBER_ABSENT };

    if (rdl_job_member(k->job, rank, &m) != RDL_OK)
        m.state = RDL_MEMBER_ABSENT;
    r.pid = m.pid != 0 ? (long long)m.pid : (long long)k->ranks[rank].pid;
    if (k->ranks[rank].ended)
        fill_ended(k, &r);
    else if (k->ranks[rank].pid != 0)
        fill_running(&r, &m);
    if (rank == k->first.rank)
        r.kind = KIND_FIRST;
    fill_call(k, &r);
    return r;
}

static int compare_rows(const void *a, const void *b)
{
    const row *x = a, *y = b;

    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static row *make_rows(const keeper *k)
{
    row *rows = calloc((size_t)k->options->ranks, sizeof *rows);

    if (rows == NULL)
        return NULL;
    for (int rank = 0; rank < k->options->ranks; rank++)
        rows[rank] = make_row(k, rank);
    qsort(rows, (size_t)k->options->ranks, sizeof *rows, compare_rows);
    return rows;
}

static void print_row(FILE *to, const row *r, int width)
{
    char pid[24] = "-";

    if (r->pid != 0)
        snprintf(pid, sizeof pid, "%lld", r->pid);
    if (r->call[0] != '\0')
        fprintf(to, "  %4d  %8s  %-*s  %s\n", r->rank, pid, width, r->state,
                r->call);
    else
        fprintf(to, "  %4d  %8s  %s\n", r->rank, pid, r->state);
}

/* Of the column of states; 0: there is no column behind it. */
static int width_of_states(const row *rows, int count)
{
    int width = (int)strlen("state");
    bool calls = false;

    for (int i = 0; i < count; i++) {
        int length = (int)strlen(rows[i].state);

        width = length > width ? length : width;
        calls |= rows[i].call[0] != '\0';
    }
    return calls ? width : 0;
}

static void print_rest(FILE *to, const row *rows, int count)
{
    int of_kind[KINDS] = { 0 };
    const char *between = ": ";

    for (int i = 0; i < count; i++)
        of_kind[rows[i].kind]++;
    fprintf(to, "  and %d more ranks", count);
    for (int i = 0; i < KINDS; i++)
        if (of_kind[i] > 0) {
            fprintf(to, "%s%d %s", between, of_kind[i], kind_words[i]);
            between = ", ";
        }
    fprintf(to, "\n");
}

static void print_rows(FILE *to, const row *rows, int count)
{
    /* One row more takes no more than the line that would stand for it. */
    int shown = count <= ROWS_MOST + 1 ? count : ROWS_MOST;
    int width = width_of_states(rows, shown);

    fprintf(to, "  rank   process  %-*s%s\n", width, "state",
            width > 0 ? "  last call" : "");
    for (int i = 0; i < shown; i++)
        print_row(to, &rows[i], width);
    if (shown < count)
        print_rest(to, rows + shown, count - shown);
}

/* Of those that are still there; rows are in the order of what they tell. */
static void print_stacks(FILE *to, const row *rows, int count)
{
    stacks_limit limit = { .end = clock_ms() + STACKS_MS, .lines = STACK_LINES };

    for (int i = 0; i < count; i++)
        if (rows[i].kind == KIND_STOPPED || rows[i].kind == KIND_CUT_OFF ||
            rows[i].kind == KIND_RUNNING)
            stacks_print(to, rows[i].rank, (pid_t)rows[i].pid, &limit);
}

/* --- what is wrong --------------------------------------------------------- */

/* What to try; NULL: nothing that would be more than a guess. */
static const char *hint_for_status(rdl_status status)
{
    switch (status) {
    case RDL_MISMATCH:
        return "compare what the ranks that differ call at that place: a "
               "branch "
               "that not all take,\n  or counts that depend on the rank";
    case RDL_TIMEOUT:
        return "see above what it waited for was doing; if that was only slow, "
               "raise\n  RADDLE_TIMEOUT (RADDLE_START_TIMEOUT while the job "
               "starts), or the call's limit";
    case RDL_NO_MEMORY:
        return "give the job more memory, or each rank less staging "
               "(staging_bytes of its host)";
    default:
        return NULL;
    }
}

static const char *hint_for_signal(int number)
{
    switch (number) {
    case SIGKILL:
        return "somebody, or the kernel for want of memory, killed it: see the "
               "kernel's log (dmesg)\n  and the memory limit of its cgroup";
    case SIGBUS:
        return "memory that it had could not be had: a file that was cut, or a "
               "full /dev/shm";
    case SIGSEGV:
    case SIGABRT:
    case SIGFPE:
    case SIGILL:
        return "what it printed before tells more, or its core (ulimit -c "
               "unlimited; coredumpctl)";
    default:
        return NULL;
    }
}

static const row *find_kind(const row *rows, int count, kind wanted)
{
    for (int i = 0; i < count; i++)
        if (rows[i].kind == wanted)
            return &rows[i];
    return NULL;
}

static bool any_called(const row *rows, int count)
{
    for (int i = 0; i < count; i++)
        if (rows[i].call[0] != '\0')
            return true;
    return false;
}

static const char *find_hint(const keeper *k, const row *rows, rdl_status status)
{
    const rank_state *r = &k->ranks[k->first.rank];
    const char *hint = NULL;

    if (k->first.by_member)
        return "let each program close its world (rdl_world_close), or say why "
               "it cannot go on\n  (rdl_world_abort), before it ends";
    if (r->ended && WIFSIGNALED(r->wait_status))
        hint = hint_for_signal(WTERMSIG(r->wait_status));
    else if (status == RDL_MISMATCH && !any_called(rows, k->options->ranks))
        hint = "give all ranks the same environment (RADDLE_CHECK, "
               "RADDLE_ALGORITHM, the number of ranks)\n  and raddle of one "
               "version, and each a rank of its own";
    else
        hint = hint_for_status(status);
    return hint != NULL ? hint : "what it printed before tells more";
}

static void print_hint(FILE *to, const keeper *k, const row *rows,
                       rdl_status status)
{
    const row *stopped = find_kind(rows, k->options->ranks, KIND_STOPPED);

    if (status == RDL_TIMEOUT && stopped != NULL)
        fprintf(to,
                "  to try: rank %d was stopped, by a signal or a debugger: let "
                "it go on (kill -CONT)\n",
                stopped->rank);
    else
        fprintf(to, "  to try: %s\n", find_hint(k, rows, status));
}

/* The bytes are a rank's. */
static void print_clean(FILE *to, const char *text)
{
    for (; *text != 0; text++)
        fputc((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text, to);
}

/* --- the screen ------------------------------------------------------------ */

static void print_head(FILE *to, const keeper *k)
{
    if (k->first.rank < 0)
        fprintf(to, "%s: SIGQUIT came; the ranks are:\n", k->options->who);
    else
        fprintf(to, "%s: rank %d failed: %s; %.1f s later the ranks are:\n",
                k->options->who, k->first.rank, k->first.text,
                (double)(clock_ms() - k->trouble_at) / 1000);
}

static void print_screen(FILE *to, const keeper *k, const row *rows)
{
    rdl_failure verdict;

    if (rdl_job_failure(k->job, RDL_ANY_RANK, &verdict) != RDL_OK)
        verdict = (rdl_failure){ .status = RDL_OK };
    print_head(to, k);
    print_rows(to, rows, k->options->ranks);
    if (verdict.status == RDL_MISMATCH || verdict.status == RDL_TIMEOUT ||
        k->first.rank < 0)
        print_stacks(to, rows, k->options->ranks);
    if (verdict.sentence[0] != 0) {
        fprintf(to, "  verdict: ");
        print_clean(to, verdict.sentence);
        fprintf(to, "\n");
    }
    if (k->first.rank >= 0)
        print_hint(to, k, rows, verdict.status);
}

static void show(keeper *k)
{
    row *rows = make_rows(k);
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);

    if (rows != NULL && to != NULL)
        print_screen(to, k, rows);
    if (to != NULL && fclose(to) == 0 && rows != NULL)
        output_lines(k->out, text, bytes);
    free(text);
    free(rows);
}

static void record(keeper *k)
{
    char why[SAY_MOST];

    if (k->recording != NULL && !recording_write(k->recording, why, sizeof why))
        say(k->options->who, "%s", why);
}

void screen_show(keeper *k)
{
    if (k->screen_shown || (k->first.rank < 0 && k->ended_by != SIGQUIT))
        return;
    k->screen_shown = true;
    /* Of one rank that failed the last line tells all. */
    if (k->options->ranks > 1 || k->first.rank < 0)
        show(k);
    record(k);
}
