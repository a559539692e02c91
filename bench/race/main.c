/* `raddle bench race`: several streams drive one communicator. With the fence of
 * raddle's lanes all ends well; with what device libraries do, it does not. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "options.h"
#include "race.h"
#include "table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const race_arm race_arms[RACE_ARMS] = {
#define X(number, text, unfenced, opens, uses, streams, delays, gate)          \
    { text, unfenced, opens, uses, streams, delays, RACE_##gate },
    RACE_ARM_MAP(X)
#undef X
};

/* What all runs are made with. */
typedef struct series {
    race_options o;
    llama_blas *blas;   /* NULL: nothing is trained */
    race_course wanted; /* what must come of training */
} series;

static void note_course(race_score *s, const race_course *course)
{
    if (s->course.steps == 0)
        s->course = *course;
    else
        s->strays += !race_same_course(&s->course, course);
}

static void note(race_score *s, const race_report *report)
{
    s->ends[report->end]++;
    s->total++;
    if (report->end == RACE_PASSED || report->end == RACE_WRONG)
        s->ms[s->n_ms++] = report->ms;
    if (report->course.steps == RACE_STEPS)
        note_course(s, &report->course);
    if (s->sentence[0] == '\0')
        memcpy(s->sentence, report->sentence, sizeof s->sentence);
}

static bool run_once(const series *all, const race_arm *arm, bool compare,
                     int run, race_score *s)
{
    const race_options *o = &all->o;
    char job[64];
    race_setting setting = { .arm = arm,
                             .compare = compare,
                             .ranks = o->ranks,
                             .seed = o->seed * RACE_RUNS_MOST + (uint64_t)run,
                             .job = job,
                             .blas = all->blas,
                             .wanted = &all->wanted };
    race_report report = { 0 };

    snprintf(job, sizeof job, "race-%d-%d-%d-%d", (int)getpid(),
             (int)(arm - race_arms), compare, run);
    if (!race_run(&setting, &report)) {
        fprintf(stderr, RACE_WHO ": %s: run %d: %s\n", arm->name, run,
                report.sentence);
        return false;
    }
    note(s, &report);
    return true;
}

/* What must come of training: raddle as it is, one stream, and nothing delayed. */
static bool train_first(series *all)
{
    static const race_arm plain = { .name = "training", .streams = 1 };
    char job[64];
    race_setting setting = { .arm = &plain,
                             .compare = true,
                             .ranks = all->o.ranks,
                             .job = job,
                             .blas = all->blas };
    race_report report = { 0 };

    snprintf(job, sizeof job, "race-%d", (int)getpid());
    if (race_run(&setting, &report) && report.end == RACE_PASSED) {
        all->wanted = report.course;
        return true;
    }
    fprintf(stderr, RACE_WHO ": training on one stream: %s\n", report.sentence);
    return false;
}

/* Opened once, as each rank is a copy of this process. */
static bool prepare(series *all)
{
    llama_error error = { "" };

    if (!all->o.train)
        return true;
    if (llama_blas_open(&all->blas, &error) == RDL_OK)
        return train_first(all);
    fprintf(stderr, RACE_WHO ": %s\n", error.text);
    return false;
}

/* Arm after arm in each round, so that what the machine does meanwhile meets all
 * of them. */
static bool run_all(const series *all, race_score scores[RACE_ARMS][2])
{
    for (int run = 0; run < all->o.runs; run++)
        for (int a = 0; a < RACE_ARMS; a++)
            for (int compare = 0; compare < 2; compare++)
                if (!run_once(all, &race_arms[a], compare, run,
                              &scores[a][compare]))
                    return false;
    return true;
}

static bool make_room(const race_options *o, race_score scores[RACE_ARMS][2])
{
    bool good = true;

    for (int a = 0; a < RACE_ARMS; a++)
        for (int compare = 0; compare < 2; compare++) {
            race_score *s = &scores[a][compare];

            s->ms = calloc((size_t)o->runs, sizeof *s->ms);
            good &= s->ms != NULL;
        }
    if (!good)
        fprintf(stderr, RACE_WHO ": no memory\n");
    return good;
}

static void free_room(race_score scores[RACE_ARMS][2])
{
    for (int a = 0; a < RACE_ARMS; a++)
        for (int compare = 0; compare < 2; compare++)
            free(scores[a][compare].ms);
}

int main(int argc, char **argv)
{
    race_score scores[RACE_ARMS][2];
    series all = { .o = { .runs = 28, .ranks = 4, .seed = 1 } };
    int status = race_read_options(argc, argv, &all.o);

    if (status >= 0)
        return status;
    memset(scores, 0, sizeof scores);
    status = RACE_FAILED;
    if (make_room(&all.o, scores) && prepare(&all) && run_all(&all, scores))
        status = race_print(&all.o, scores);
    free_room(scores);
    llama_blas_close(all.blas);
    return status;
}
