/* Rows, sorted by how much they tell; a sentence of the library; hints. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "screen.h"

#include "look.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define ROWS_MOST 16
#define STATE_MOST 96

/* How much a row tells: those that fit are shown, most telling first. */
typedef enum kind {
    KIND_FIRST,   /* the failure that is reported */
    KIND_DUMPING, /* crashed */
    KIND_STOPPED,
    KIND_FAILED, /* ended badly, after the first */
    KIND_RUNNING,
    KIND_ABSENT, /* not started */
    KIND_LEFT,   /* closed its world, and runs on */
    KIND_DONE,
    KINDS
} kind;

/* For those that did not fit. */
static const char *const kind_words[KINDS] = {
    [KIND_FIRST] = "failed first",  [KIND_DUMPING] = "writing their core",
    [KIND_STOPPED] = "stopped",     [KIND_FAILED] = "failed later",
    [KIND_RUNNING] = "running",     [KIND_ABSENT] = "not started",
    [KIND_LEFT] = "out of the job", [KIND_DONE] = "ended with 0",
};

typedef struct row {
    int rank;
    kind kind;
    long long pid; /* of the process that joined, else of the rank; 0: none */
    char state[STATE_MOST];
} row;

/* --- rows ------------------------------------------------------------------ */

static void fill_ended(const keeper *k, row *r)
{
    int status = k->ranks[r->rank].wait_status;

    r->kind = code_of_ending(status) == 0 ? KIND_DONE : KIND_FAILED;
    describe_ending(r->state, status);
}

static void fill_running(row *r, const rdl_member *m)
{
    switch (look_at((pid_t)r->pid)) {
    case LOOK_STOPPED:
        r->kind = KIND_STOPPED;
        snprintf(r->state, sizeof r->state, "stopped (a signal, or a debugger)");
        return;
    case LOOK_DUMPING:
        r->kind = KIND_DUMPING;
        snprintf(r->state, sizeof r->state, "crashed, writing its core");
        return;
    case LOOK_GONE:
    case LOOK_RUNNING:
        break;
    }
    r->kind = m->state == RDL_MEMBER_LEFT ? KIND_LEFT : KIND_RUNNING;
    if (m->state == RDL_MEMBER_LEFT)
        snprintf(r->state, sizeof r->state, "running, has closed its world");
    else if (m->state == RDL_MEMBER_DEAD)
        snprintf(r->state, sizeof r->state, "its process in the job has ended");
    else if (m->state == RDL_MEMBER_ABSENT)
        snprintf(r->state, sizeof r->state, "running, has not joined");
    else
        snprintf(r->state, sizeof r->state, "running");
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

static void print_row(FILE *to, const row *r)
{
    char pid[24] = "-";

    if (r->pid != 0)
        snprintf(pid, sizeof pid, "%lld", r->pid);
    fprintf(to, "  %4d  %8s  %s\n", r->rank, pid, r->state);
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

    fprintf(to, "  rank   process  state\n");
    for (int i = 0; i < shown; i++)
        print_row(to, &rows[i]);
    if (shown < count)
        print_rest(to, rows + shown, count - shown);
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
        return "see above what the ranks it waited for were doing; if they "
               "were "
               "only slow, raise\n  RADDLE_TIMEOUT (seconds), or the call's "
               "own "
               "limit";
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

static const char *find_hint(const keeper *k, rdl_status status)
{
    const rank_state *r = &k->ranks[k->first.rank];
    const char *hint = NULL;

    if (k->first.by_member)
        return "let each program close its world (rdl_world_close), or say why "
               "it cannot go on\n  (rdl_world_abort), before it ends";
    if (r->ended && WIFSIGNALED(r->wait_status))
        hint = hint_for_signal(WTERMSIG(r->wait_status));
    else
        hint = hint_for_status(status);
    return hint != NULL ? hint : "what it printed before tells more";
}

/* The bytes are a rank's. */
static void print_clean(FILE *to, const char *text)
{
    for (; *text != 0; text++)
        fputc((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text, to);
}

/* --- the screen ------------------------------------------------------------ */

static void print_screen(FILE *to, const keeper *k, const row *rows)
{
    rdl_failure verdict;

    if (rdl_job_failure(k->job, RDL_ANY_RANK, &verdict) != RDL_OK)
        verdict = (rdl_failure){ .status = RDL_OK };
    fprintf(to, "%s: rank %d failed: %s; %.1f s later the ranks are:\n",
            k->options->who, k->first.rank, k->first.text,
            (double)(clock_ms() - k->trouble_at) / 1000);
    print_rows(to, rows, k->options->ranks);
    if (verdict.sentence[0] != 0) {
        fprintf(to, "  verdict: ");
        print_clean(to, verdict.sentence);
        fprintf(to, "\n");
    }
    fprintf(to, "  to try: %s\n", find_hint(k, verdict.status));
}

void screen_show(keeper *k)
{
    row *rows;
    char *text = NULL;
    size_t bytes = 0;
    FILE *to;

    if (k->screen_shown || k->first.rank < 0)
        return;
    k->screen_shown = true;
    if (k->options->ranks == 1)
        return;
    rows = make_rows(k);
    to = open_memstream(&text, &bytes);
    if (rows != NULL && to != NULL)
        print_screen(to, k, rows);
    if (to != NULL && fclose(to) == 0 && rows != NULL)
        output_lines(k->out, text, bytes);
    free(text);
    free(rows);
}
