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

static bool run_once(const race_options *o, const race_arm *arm, bool compare,
                     int run, race_score *s)
{
    char job[64];
    race_setting setting = { .arm = arm,
                             .compare = compare,
                             .ranks = o->ranks,
                             .seed = o->seed * RACE_RUNS_MOST + (uint64_t)run,
                             .job = job };
    race_report report = { 0 };

    snprintf(job, sizeof job, "race-%d-%d-%d-%d", (int)getpid(),
             (int)(arm - race_arms), compare, run);
    if (!race_run(&setting, &report)) {
        fprintf(stderr, RACE_WHO ": %s: run %d: %s\n", arm->name, run,
                report.sentence);
        return false;
    }
    s->ends[report.end]++;
    s->total++;
    if (report.end == RACE_PASSED || report.end == RACE_WRONG)
        s->ms[s->n_ms++] = report.ms;
    if (s->sentence[0] == '\0')
        memcpy(s->sentence, report.sentence, sizeof s->sentence);
    return true;
}

/* Arm after arm in each round, so that what the machine does meanwhile meets all
 * of them. */
static bool run_all(const race_options *o, race_score scores[RACE_ARMS][2])
{
    for (int run = 0; run < o->runs; run++)
        for (int a = 0; a < RACE_ARMS; a++)
            for (int compare = 0; compare < 2; compare++)
                if (!run_once(o, &race_arms[a], compare, run,
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
    race_options o = { .runs = 28, .ranks = 4, .seed = 1 };
    int status = race_read_options(argc, argv, &o);

    if (status >= 0)
        return status;
    memset(scores, 0, sizeof scores);
    status = make_room(&o, scores) && run_all(&o, scores)
                 ? race_print(&o, scores)
                 : RACE_FAILED;
    free_room(scores);
    return status;
}
