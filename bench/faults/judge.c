/* What a rank was told, and whether that is what it must be told. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "faults.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS 1000000
/* What a machine with work of its own may take more, beside the time that ranks were
 * seen to wait for a core. */
#define SLACK_MS 150
#define MISMATCH_MS 50
#define DEATH_MS 1000
#define TIMEOUT_MS (FAULTS_LIMIT_MS + 1000)
/* How a wait that had an end in a peer's failure tells of that. */
#define INNER ", after its call had failed: "

/* What a sentence says, and of whom. */
typedef struct saying {
    faults_verdict verdict;
    unsigned ranks; /* bits */
} saying;

/* --- sentences ------------------------------------------------------------- */

/* "rank 3" or "ranks 0,2-4" or "3", at the beginning; where it ends in *end. */
static unsigned read_ranks(const char *text, const char **end)
{
    unsigned ranks = 0;
    char *next;

    text += strncmp(text, "rank", 4) == 0 ? 4 : 0;
    text += *text == 's';
    text += *text == ' ';
    for (;;) {
        long first = strtol(text, &next, 10), last = first;

        if (next == text)
            break;
        if (*next == '-')
            last = strtol(next + 1, &next, 10);
        for (long i = first; i <= last && i >= 0 && i < 32; i++)
            ranks |= 1U << i;
        text = next;
        if (*text != ',')
            break;
        text++;
    }
    *end = text;
    return ranks;
}

/* The last "rank(s) N" in text after which `what` follows. */
static bool find_of(const char *text, const char *what, unsigned *ranks)
{
    bool found = false;

    for (const char *at = strstr(text, "rank"); at != NULL;
         at = strstr(at + 1, "rank")) {
        const char *end;
        unsigned some = read_ranks(at, &end);

        if (some == 0 || strncmp(end, what, strlen(what)) != 0)
            continue;
        *ranks = some;
        found = true;
    }
    return found;
}

/* "rank 1 sends 2 elements to rank 3": both, who are shown and not accused; 0 if the
 * sentence is not of that kind. */
static unsigned read_pair(const char *text)
{
    const char *pair = strstr(text, ": all_to_all_v: rank "), *to, *end;

    to = pair != NULL ? strstr(pair, " elements to rank ") : NULL;
    if (to == NULL)
        return 0;
    return read_ranks(strstr(pair, "rank "), &end) |
           read_ranks(strstr(to, "rank "), &end);
}

static saying read_mismatch(const char *text)
{
    saying s = { FAULTS_CULPRIT, 0 };

    if (find_of(text, " differs from ", &s.ranks) ||
        find_of(text, " differ from ", &s.ranks))
        return s;
    return (saying){ FAULTS_CAMPS, read_pair(text) };
}

static saying read_timeout(const char *text)
{
    saying s = { FAULTS_UNCLEAR, 0 };

    if (strstr(text, ": a cycle, in which ") != NULL)
        s.verdict = FAULTS_CYCLE;
    else if (find_of(text, " is stopped", &s.ranks))
        s.verdict = FAULTS_STOPPED;
    else if (find_of(text, " is in no call", &s.ranks) ||
             find_of(text, " was late", &s.ranks) ||
             find_of(text, " has made no call at all", &s.ranks))
        s.verdict = FAULTS_ABSENT;
    return s;
}

static saying read_death(const char *text)
{
    saying s = { FAULTS_UNCLEAR, 0 };

    if (find_of(text, " is gone: ", &s.ranks) ||
        find_of(text, " gave up: ", &s.ranks) ||
        find_of(text, " closed its world", &s.ranks))
        s.verdict = FAULTS_DEAD;
    return s;
}

static saying read_sentence(const char *text)
{
    const char *at;

    while ((at = strstr(text, INNER)) != NULL)
        text = at + strlen(INNER);
    if (strstr(text, "mismatch in call #") != NULL ||
        strstr(text, "mismatch: calls out of order") != NULL)
        return read_mismatch(text);
    if (strstr(text, "timed out after ") != NULL)
        return read_timeout(text);
    return read_death(text);
}

/* --- marks ----------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static void mark(faults_marks *marks,
                                                       int *figure,
                                                       const char *format, ...)
{
    va_list list;

    *figure = 1;
    if (marks->why[0] != '\0')
        return;
    va_start(list, format);
    vsnprintf(marks->why, sizeof marks->why, format, list);
    va_end(list);
}

/* The one that does not get to tell anything. */
static bool is_lost(const faults_program *p, int rank)
{
    if (rank != p->culprit)
        return false;
    return p->verdict == FAULTS_DEAD || p->kind == FAULTS_STOP_KIND ||
           p->kind == FAULTS_NEVER_KIND;
}

static bool accuses(faults_verdict verdict)
{
    return verdict == FAULTS_CULPRIT || verdict == FAULTS_DEAD ||
           verdict == FAULTS_STOPPED || verdict == FAULTS_ABSENT;
}

static void judge_saying(const faults_program *p, int rank,
                         const faults_report *r, faults_marks *marks)
{
    saying s = read_sentence(r->sentence);

    bool of_others = s.verdict == FAULTS_CAMPS
                         ? s.ranks != 0 && (s.ranks & p->faulty) == 0
                         : accuses(s.verdict) && s.ranks != p->faulty;

    if (s.verdict != p->verdict || of_others)
        mark(marks, &marks->wrong_verdict,
             "rank %d: expected %s of rank %d, got %s: %s: %s", rank,
             faults_verdict_names[p->verdict], p->culprit,
             faults_verdict_names[s.verdict], rdl_status_name(r->status),
             r->sentence);
    if (accuses(s.verdict) && (s.ranks & ~p->faulty) != 0)
        mark(marks, &marks->innocent_named, "rank %d names an innocent: %s",
             rank, r->sentence);
}

/* A rank that heard of it from one that has left has RDL_PEER. */
static void judge_status(const faults_program *p, int rank,
                         const faults_report *r, faults_marks *marks)
{
    rdl_status wanted = RDL_PEER;

    if (p->verdict == FAULTS_CULPRIT || p->verdict == FAULTS_CAMPS)
        wanted = RDL_MISMATCH;
    else if (p->verdict != FAULTS_DEAD)
        wanted = RDL_TIMEOUT;
    if (r->status != wanted && r->status != RDL_PEER)
        mark(marks, &marks->wrong_status, "rank %d got %s and not %s: %s", rank,
             rdl_status_name(r->status), rdl_status_name(wanted), r->sentence);
}

/* --- time ------------------------------------------------------------------ */

/* When what the verdict is about was complete: a fault of its own moment, or the
 * last rank's coming to the step. */
static int64_t moment_of(const faults_program *p, const faults_end *end)
{
    int64_t last = end->report[p->culprit].fault;

    for (int i = 0; i < p->ranks && end->report[p->culprit].fault == 0; i++) {
        const faults_report *r = &end->report[i];
        int64_t at = r->passed != 0 ? r->passed : r->entered;

        last = at > last ? at : last;
    }
    return last;
}

/* All that ranks have waited for a core: one that is late makes others late. */
static int64_t starved_ms(const faults_program *p, const faults_end *end)
{
    int64_t sum = 0;

    for (int i = 0; i < p->ranks; i++)
        sum += end->report[i].starved / MS;
    return sum;
}

static int64_t limit_ms(const faults_program *p, const faults_report *r)
{
    switch (r->status) {
    case RDL_MISMATCH:
        return MISMATCH_MS;
    case RDL_TIMEOUT:
        return TIMEOUT_MS;
    default: /* of one that left when it was told itself */
        return p->verdict == FAULTS_DEAD || p->verdict == FAULTS_CULPRIT ||
                       p->verdict == FAULTS_CAMPS
                   ? DEATH_MS
                   : TIMEOUT_MS;
    }
}

static void judge_time(const faults_program *p, const faults_end *end, int rank,
                       faults_marks *marks)
{
    const faults_report *r = &end->report[rank];
    int64_t moment = moment_of(p, end);
    int64_t since = r->entered > moment ? r->entered : moment;
    int64_t took = (r->ended - since) / MS;
    int64_t most = limit_ms(p, r) + SLACK_MS + starved_ms(p, end);
    double ms = (double)(r->ended - moment) / MS;

    marks->ms = ms > marks->ms ? ms : marks->ms;
    if (took > most)
        mark(marks, &marks->late, "rank %d was told after %lld ms, not %lld: %s",
             rank, (long long)took, (long long)most, r->sentence);
}

/* --- strict ---------------------------------------------------------------- */

/* No call that differs, or is differed from, may have said that all is well. */
static void judge_step(const faults_program *p, int rank,
                       const faults_report *r, bool strict, faults_marks *marks)
{
    bool differs = p->verdict == FAULTS_CULPRIT || p->verdict == FAULTS_CAMPS;

    if (strict && differs && r->succeeded)
        mark(marks, &marks->wrong_verdict,
             "rank %d's call of step %d succeeded, and then, in step %d: %s",
             rank, p->at, r->step, r->sentence);
}

/* --- a run ----------------------------------------------------------------- */

static void judge_rank(const faults_program *p, const faults_end *end, int rank,
                       bool strict, faults_marks *marks)
{
    const faults_report *r = &end->report[rank];

    if (r->wrong)
        mark(marks, &marks->wrong_verdict, "rank %d: %s", rank, r->sentence);
    else if (p->verdict == FAULTS_NONE && r->told)
        mark(marks, &marks->wrong_verdict, "rank %d: expected none, got: %s",
             rank, r->sentence);
    else if (p->verdict == FAULTS_NONE && !r->right)
        mark(marks, &marks->wrong_status, "rank %d came to no end", rank);
    else if (p->verdict != FAULTS_NONE && !is_lost(p, rank) && !r->told)
        mark(marks, &marks->wrong_verdict, "rank %d was told nothing", rank);
    if (!r->told || p->verdict == FAULTS_NONE || is_lost(p, rank))
        return;
    judge_saying(p, rank, r, marks);
    judge_status(p, rank, r, marks);
    judge_step(p, rank, r, strict, marks);
    judge_time(p, end, rank, marks);
}

static int wanted_status(const faults_program *p)
{
    switch (p->kind) {
    case FAULTS_KILL_KIND:
        return 128 + 9;
    case FAULTS_EXIT_KIND:
        /* A process that ends with 0 in the midst of a job has failed. */
        return p->variant == 0 ? 1 : FAULTS_EXITED;
    case FAULTS_ERROR_KIND:
        return FAULTS_ERROR;
    default:
        return p->verdict == FAULTS_NONE ? 0 : FAULTS_HEARD;
    }
}

static void judge_launcher(const faults_program *p, const faults_end *end,
                           faults_marks *marks)
{
    int wanted = wanted_status(p);

    if (end->status != wanted)
        mark(marks, &marks->wrong_status, "the launcher's status is %d, not %d",
             end->status, wanted);
    if (p->verdict == FAULTS_DEAD && end->first != p->culprit)
        mark(marks, &marks->wrong_status,
             "the launcher says that rank %d failed first, not %d", end->first,
             p->culprit);
    if ((end->first >= 0) != (p->verdict != FAULTS_NONE))
        mark(marks, &marks->wrong_status,
             "the launcher says that rank %d failed first", end->first);
    if (end->left > 0)
        mark(marks, &marks->left_behind, "%d processes are left", end->left);
}

void faults_judge(const faults_program *program, const faults_end *end,
                  bool strict, faults_marks *marks)
{
    *marks = (faults_marks){ .ms = -1 };
    for (int i = 0; i < program->ranks; i++)
        judge_rank(program, end, i, strict, marks);
    judge_launcher(program, end, marks);
}
