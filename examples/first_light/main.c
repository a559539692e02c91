/* first_light: what `./dev demo` runs on four ranks. It shows what groups can
 * do, what they take, and trains a language model of byte pairs on real text,
 * each rank on its own part.
 *
 *     raddle run -n 4 -- first_light [--steps N] [--every N] [--json] [PATH...]
 */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "first_light.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_STEPS 10000000L

static const char usage[] =
    "usage: raddle run -n RANKS -- first_light [FLAG...] [PATH...]\n"
    "  PATH...    text files, or folders of them (default: this folder)\n"
    "  --steps N  steps of the training (default 1000)\n"
    "  --every N  print each N-th step (default: the first 10, then each "
    "50th)\n"
    "  --json     one JSON object a line\n";

static bool read_number(demo *d, const char *flag, const char *word, long *out)
{
    char *end = NULL;
    long value = word != NULL ? strtol(word, &end, 10) : 0;

    if (word == NULL || end == word || *end != '\0' || value < 1 ||
        value > MOST_STEPS)
        return fail(d, 2, "%s wants a number from 1 to %ld, not '%s'", flag,
                    MOST_STEPS, word != NULL ? word : "");
    *out = value;
    return true;
}

/* Paths move to the front of argv. */
static bool read_arguments(demo *d, int argc, char **argv)
{
    bool flags = true;

    d->paths = argv;
    for (int i = 1; i < argc; i++) {
        if (!flags || argv[i][0] != '-')
            d->paths[d->n_paths++] = argv[i];
        else if (strcmp(argv[i], "--") == 0)
            flags = false;
        else if (strcmp(argv[i], "--help") == 0)
            d->help = true;
        else if (strcmp(argv[i], "--json") == 0)
            d->json = true;
        else if (strcmp(argv[i], "--steps") == 0 ||
                 strcmp(argv[i], "--every") == 0) {
            long *out = argv[i][2] == 's' ? &d->steps : &d->every;

            if (!read_number(d, argv[i], argv[i + 1], out))
                return false;
            i++;
        } else
            return fail(d, 2,
                        "there is no flag '%s': --steps N, --every N, --json, "
                        "--help",
                        argv[i]);
    }
    return true;
}

static bool check_size(demo *d)
{
    if (d->size > MOST_RANKS)
        return fail_alike(d, 2, "%d ranks are too many: digits for %d fit",
                          d->size, MOST_RANKS);
    return true;
}

static bool last_words(demo *d)
{
    words many, peak;

    if (!find_peak(d))
        return false;
    say_gap(d);
    say(d,
        "Shown: %s groups at once and a model trained on %d rank%s, with %s "
        "in /dev/shm.",
        grouped(MANY_GROUPS, &many), d->size, d->size > 1 ? "s" : "",
        scaled_bytes((double)d->dev_shm_peak, &peak));
    say(d, "Next:  ./dev demo PATH...   the same on text of yours");
    say(d, "       ./dev check          all tests");
    say(d, "       ./dev raddle run -n 2 -- "
           "build/release/examples/01_hello_ranks");
    return true;
}

static bool run(demo *d, int argc, char **argv)
{
    read_arguments(d, argc, argv);
    if (!agree(d) || !check_size(d))
        return false;
    if (d->help) {
        if (d->rank == 0)
            fputs(usage, stdout);
        return true;
    }
    if (!list_text(d) || !show_sums(d) || !show_many_groups(d) ||
        !show_two_names(d))
        return false;
    say_gap(d);
    if (!show_account(d))
        return false;
    say_gap(d);
    return count_pairs(d) && train(d) && last_words(d);
}

/* Leaves the world; returns the exit status. */
static int finish(demo *d)
{
    trouble *t = &d->trouble;

    if (t->status != 0 && (!t->shared || d->rank == 0))
        fprintf(stderr, "first_light: %s\n", t->text);
    if (t->shared && d->rank != 0) /* ends when rank 0 leaves, having spoken */
        ok(d, rdl_barrier(d->world, RDL_WORLD, NULL));
    else if (t->status != 0 && !t->shared)
        rdl_world_abort(d->world, t->text);

    rdl_status closed = rdl_world_close(d->world);

    if (t->status == 0 && !ok(d, closed))
        fprintf(stderr, "first_light: %s\n", t->text);
    free(d->text.paths);
    free(d->text.sizes);
    free(d->counts);
    free(d->totals);
    return t->status;
}

int main(int argc, char **argv)
{
    demo d = { .steps = 1000, .before = look_around() };

    setvbuf(stdout, NULL, _IOLBF, 0); /* also into a pipe: steps are watched */
    if (rdl_world_open(NULL, &d.world) != RDL_OK) {
        fprintf(stderr, "first_light: %s\n", rdl_error_detail());
        return 1;
    }
    d.rank = rdl_world_rank(d.world);
    d.size = rdl_world_size(d.world);
    run(&d, argc, argv);
    return finish(&d);
}
