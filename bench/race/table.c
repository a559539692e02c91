/* The table, or its JSON, and the gates. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "table.h"

#include <stdio.h>
#include <stdlib.h>

#define RUNS_JUDGED 6 /* with fewer, an arm that must fail may be lucky */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* part of the sorted times; there is one at least. */
static double quantile(const race_score *s, double part)
{
    return s->ms[(int)(part * (double)(s->n_ms - 1) + 0.5)];
}

static bool holds(const race_arm *arm, const race_score *s)
{
    int failed = s->total - s->ends[RACE_PASSED];

    if (arm->gate == RACE_PASSES)
        return failed == 0;
    return arm->gate == RACE_REPORTED || s->total < RUNS_JUDGED ||
           3 * failed >= s->total;
}

/* So many digits that the bits come back. */
static void print_losses(const race_course *course)
{
    printf(",\"losses\":[");
    for (int i = 0; i < course->steps; i++)
        printf("%s%.17g", i > 0 ? "," : "", course->losses[i]);
    printf("]");
}

static void print_json(const race_options *o, const race_arm *arm, bool compare,
                       const race_score *s)
{
    printf("{\"arm\":\"%s\",\"compare\":%s,\"passed\":%d,\"total\":%d,"
           "\"wrong\":%d,\"mismatch\":%d,\"timeout\":%d,\"ms\":",
           arm->name, compare ? "true" : "false", s->ends[RACE_PASSED], s->total,
           s->ends[RACE_WRONG], s->ends[RACE_MISMATCH], s->ends[RACE_TIMEOUT]);
    if (s->n_ms > 0)
        printf("[%.3f,%.3f,%.3f]", quantile(s, 0.25), quantile(s, 0.5),
               quantile(s, 0.75));
    else
        printf("null");
    if (o->train)
        print_losses(&s->course);
    printf(",\"holds\":%s}\n", holds(arm, s) ? "true" : "false");
}

static void print_head(const race_options *o)
{
    printf("%d ranks, %d streams, %d %s, delays up to %d us, limit %d ms, "
           "seed %llu\n\n",
           o->ranks, RACE_STREAMS, o->train ? RACE_STEPS : RACE_CALLS,
           o->train ? "steps of training" : "calls", RACE_DELAY_US,
           RACE_LIMIT_MS, (unsigned long long)o->seed);
    printf("%-16s  %-12s  %-9s %6s %9s %8s  %s\n", "arm", "fingerprints",
           "passed", "wrong", "mismatch", "timeout", "ms: quartiles");
}

static void print_row(const race_arm *arm, bool compare, const race_score *s)
{
    char passed[32];

    snprintf(passed, sizeof passed, "%d of %d", s->ends[RACE_PASSED], s->total);
    printf("%-16s  %-12s  %-9s %6d %9d %8d", arm->name, compare ? "on" : "off",
           passed, s->ends[RACE_WRONG], s->ends[RACE_MISMATCH],
           s->ends[RACE_TIMEOUT]);
    if (s->n_ms > 0)
        printf("  %.1f %.1f %.1f", quantile(s, 0.25), quantile(s, 0.5),
               quantile(s, 0.75));
    printf("%s\n", holds(arm, s) ? "" : "  <- not as it must be");
}

static void print_sentences(race_score scores[RACE_ARMS][2])
{
    printf("\n");
    for (int a = 0; a < RACE_ARMS; a++)
        for (int compare = 1; compare >= 0; compare--)
            if (scores[a][compare].sentence[0] != '\0')
                printf("%s, fingerprints %s: %s\n", race_arms[a].name,
                       compare ? "on" : "off", scores[a][compare].sentence);
}

/* Whether fenced and one-stream training had the same losses, in every run. */
static bool has_one_course(race_score scores[RACE_ARMS][2])
{
    const race_course *first = &scores[RACE_ONE][1].course;
    bool same = first->steps == RACE_STEPS;

    for (int compare = 0; compare < 2; compare++) {
        const race_score *one = &scores[RACE_ONE][compare];
        const race_score *fenced = &scores[RACE_FENCED][compare];

        same &= one->strays == 0 && race_same_course(&one->course, first);
        same &= fenced->strays == 0 && race_same_course(&fenced->course, first);
    }
    return same;
}

static void print_verdict(race_score scores[RACE_ARMS][2])
{
    const race_course *course = &scores[RACE_FENCED][1].course;

    if (!has_one_course(scores)) {
        printf("fenced training has other losses than one-stream training\n");
        return;
    }
    printf("fenced training has the losses of one-stream training, bit for "
           "bit:");
    for (int i = 0; i < course->steps; i++)
        printf(" %.7g", course->losses[i]);
    printf("\n");
}

int race_print(const race_options *o, race_score scores[RACE_ARMS][2])
{
    bool good = true;

    if (!o->json)
        print_head(o);
    for (int a = 0; a < RACE_ARMS; a++)
        for (int compare = 1; compare >= 0; compare--) {
            race_score *s = &scores[a][compare];

            qsort(s->ms, (size_t)s->n_ms, sizeof *s->ms, by_size);
            if (o->json)
                print_json(o, &race_arms[a], compare, s);
            else
                print_row(&race_arms[a], compare, s);
            good &= holds(&race_arms[a], s);
        }
    if (!o->json)
        print_sentences(scores);
    if (o->train && !o->json)
        print_verdict(scores);
    good &= !o->train || has_one_course(scores);
    return fflush(stdout) == 0 && good ? 0 : RACE_FAILED;
}
