/* `raddle train`: everything that can be checked is, and then this process is a
 * rank, or starts the ranks. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/train.h"

#include "launcher.h"
#include "say.h"
#include "train/flags.h"
#include "train/job.h"
#include "train/tensors.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GRACE_MS 5000

int train_show_help(void)
{
    if (flags_print_help(stdout) && fflush(stdout) == 0)
        return 0;
    say(TRAIN, "cannot write to standard output: %s", strerror(errno));
    return STATUS_FAILED;
}

/* --- as a rank ------------------------------------------------------------- */

/* What the environment says, as rdl_world_open reads it: 0 ranks if nothing. */
typedef struct place {
    int rank;
    int size;
} place;

static int number_of(const char *name)
{
    const char *value = getenv(name);
    long n = value != NULL ? strtol(value, NULL, 10) : 0;

    /* What is wrong with it is said when the world is opened. */
    return n >= 0 && n <= RDL_MAX_RANKS ? (int)n : 0;
}

static bool is_set(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && *value != '\0';
}

static place find_place(void)
{
    if (is_set("RADDLE_FD"))
        return (place){ number_of("RADDLE_RANK"),
                        number_of("RADDLE_WORLD_SIZE") };
    if (is_set("RANK") && is_set("WORLD_SIZE"))
        return (place){ number_of("RANK"), number_of("WORLD_SIZE") };
    return (place){ .size = 0 };
}

/* --- before there are ranks ------------------------------------------------ */

static bool check_data(const train_options *o, const train_plan *p, trouble *t)
{
    corpus_request request = { .paths = &o->data,
                               .token_type = o->token_type,
                               .vocabulary = p->config->vocab };
    corpus c;
    bool fine =
        corpus_find(&c, &request, t) && corpus_check_rows(&c, p->length, t);

    corpus_free(&c);
    return fine;
}

static bool check_blas(trouble *t)
{
    llama_error error = { { 0 } };
    llama_blas *blas = NULL;

    if (llama_blas_open(&blas, &error) != RDL_OK)
        return trouble_note(t, STATUS_FAILED, "%s", error.text);
    llama_blas_close(blas);
    return true;
}

/* Whatever would make every rank fail, once. */
static bool check_all(const train_options *o, const train_plan *p, trouble *t)
{
    return check_data(o, p, t) &&
           (o->export_to == NULL || tensor_folder_check(o->export_to, t)) &&
           check_blas(t);
}

/* This very program, with the same arguments, once for each rank. */
static int start_ranks(int ranks, int argc, char **argv)
{
    run_options run = { .who = TRAIN,
                        .ranks = ranks,
                        .grace_ms = GRACE_MS,
                        .prefix = PREFIX_OTHERS };
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    char **again = calloc((size_t)argc + 2, sizeof *again);
    char name[] = "raddle";
    int status = STATUS_FAILED;

    if (n < 0 || again == NULL) {
        say(TRAIN, "cannot start ranks: %s", strerror(errno));
    } else {
        path[n] = '\0';
        again[0] = name;
        memcpy(again + 1, argv, (size_t)argc * sizeof *again);
        run.path = path;
        run.argv = again;
        status = launch(&run);
    }
    free(again);
    return status;
}

/* --- the command ----------------------------------------------------------- */

static int refuse(const trouble *t, const place *here)
{
    if (here->rank == 0)
        say(TRAIN, "%s", t->text);
    return t->status;
}

static int run(const train_options *o, int argc, char **argv)
{
    place here = find_place();
    trouble t = { .status = 0 };
    train_plan p;

    if (!plan_make(&p, o, here.size, &t))
        return refuse(&t, &here);
    if (here.size > 0)
        return job_run(o, &p);
    if (!check_all(o, &p, &t))
        return refuse(&t, &here);
    return p.ranks == 1 ? job_run(o, &p) : start_ranks(p.ranks, argc, argv);
}

int train_command(const command *self, int argc, char **argv)
{
    place here = find_place();
    trouble t = { .status = 0 };
    train_options o;
    bool help = false;
    int status;

    (void)self;
    if (!options_init(&o, &t) || !options_read(&o, argc, argv, &help, &t))
        status = refuse(&t, &here);
    else
        status = help ? train_show_help() : run(&o, argc, argv);
    options_free(&o);
    return status;
}
