/* Reading a rank's place. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/place.h"

#include "base/hash.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define START_TIMEOUT_MS 60000
#define TIMEOUT_MS 300000

/* A whole number and nothing else; *found says whether the variable is there. */
static rdl_status read_int(rdl_environment environment, const char *name,
                           int *out, bool *found)
{
    const char *text = environment(name);
    char *end;
    long value;

    *found = text != NULL && text[0] != 0;
    if (!*found)
        return RDL_OK;
    errno = 0;
    value = strtol(text, &end, 10);
    if (*end != 0 || end == text)
        return rdl_fail(RDL_INVALID, "%s='%.64s' is not a whole number", name,
                        text);
    if (errno != 0 || value < INT32_MIN || value > INT32_MAX)
        return rdl_fail(RDL_INVALID, "%s='%.64s' is outside %d..%d", name, text,
                        INT32_MIN, INT32_MAX);
    *out = (int)value;
    return RDL_OK;
}

static rdl_status read_seconds(rdl_environment environment, const char *name,
                               int64_t option_ms, int64_t fallback_ms,
                               int64_t *out)
{
    const char *text = environment(name);
    char *end;
    double seconds;

    *out = option_ms != 0 ? option_ms : fallback_ms;
    if (option_ms < 0)
        return rdl_fail(RDL_INVALID, "a limit of %" PRId64 " ms is negative",
                        option_ms);
    if (option_ms != 0 || text == NULL || text[0] == 0)
        return RDL_OK;
    seconds = strtod(text, &end);
    if (*end != 0 || end == text || !(seconds > 0) || seconds > 1e9)
        return rdl_fail(RDL_INVALID,
                        "%s='%.64s' is not a number of seconds above 0", name,
                        text);
    *out = (int64_t)ceil(seconds * 1000);
    return RDL_OK;
}

static const char *const checks[] = {
    [RDL_CHECK_ON] = "1",
    [RDL_CHECK_STRICT] = "strict",
    [RDL_CHECK_OFF] = "0",
};

#define N_CHECKS (sizeof checks / sizeof *checks)

const char *rdl_check_name(rdl_check check)
{
    return check > RDL_CHECK_DEFAULT && (size_t)check < N_CHECKS ? checks[check]
                                                                 : "?";
}

static rdl_status read_check(rdl_environment environment, rdl_check option,
                             rdl_check *out)
{
    const char *text = environment("RADDLE_CHECK");

    *out = option != RDL_CHECK_DEFAULT ? option : RDL_CHECK_ON;
    if ((size_t)option >= N_CHECKS)
        return rdl_fail(RDL_INVALID, "%d is no rdl_check", (int)option);
    if (option != RDL_CHECK_DEFAULT || text == NULL || text[0] == 0)
        return RDL_OK;
    for (size_t i = RDL_CHECK_ON; i < N_CHECKS; i++)
        if (strcmp(text, checks[i]) == 0) {
            *out = (rdl_check)i;
            return RDL_OK;
        }
    return rdl_fail(RDL_INVALID, "RADDLE_CHECK='%.64s' is none of 0, 1, strict",
                    text);
}

static rdl_status read_isa(rdl_environment environment, rdl_isa *out)
{
    const char *text = environment("RADDLE_ISA");
    rdl_status st;

    *out = rdl_isa_best();
    if (text == NULL || text[0] == 0)
        return RDL_OK;
    st = rdl_isa_find(text, out);
    return st == RDL_OK ? RDL_OK
                        : rdl_fail(st, "RADDLE_ISA: %s", rdl_error_detail());
}

/* The same limits as rdl_host_options.staging_bytes has. */
static rdl_status read_staging(rdl_environment environment, size_t *out)
{
    const char *text = environment("RADDLE_STAGING");
    int bytes;
    bool found;

    RDL_TRY(read_int(environment, "RADDLE_STAGING", &bytes, &found));
    if (!found)
        return RDL_OK;
    if (bytes < (int)RDL_STAGING_LEAST)
        return rdl_fail(
            RDL_INVALID,
            "RADDLE_STAGING='%.64s' is too little: a rank needs %zu "
            "bytes of staging",
            text, RDL_STAGING_LEAST);
    if (bytes > (int)RDL_STAGING_MOST)
        return rdl_fail(
            RDL_INVALID,
            "RADDLE_STAGING='%.64s' is too much: a rank has at most "
            "%zu bytes of staging",
            text, RDL_STAGING_MOST);
    *out = (size_t)bytes;
    return RDL_OK;
}

static rdl_status check_numbers(const rdl_place *place, const char *rank_name,
                                const char *size_name)
{
    if (place->size < 1 || place->size > RDL_MAX_RANKS)
        return rdl_fail(RDL_INVALID, "%s %d is outside 1..%d", size_name,
                        place->size, RDL_MAX_RANKS);
    if (place->rank < 0 || place->rank >= place->size)
        return rdl_fail(RDL_INVALID, "%s %d is outside 0..%d (%s is %d)",
                        rank_name, place->rank, place->size - 1, size_name,
                        place->size);
    return RDL_OK;
}

/* Both or neither; *found says which. */
static rdl_status read_pair(rdl_environment environment, const char *rank_name,
                            const char *size_name, rdl_place *place, bool *found)
{
    bool rank, size;

    RDL_TRY(read_int(environment, rank_name, &place->rank, &rank));
    RDL_TRY(read_int(environment, size_name, &place->size, &size));
    *found = rank && size;
    if (rank != size)
        return rdl_fail(RDL_INVALID, "%s is set and %s is not",
                        rank ? rank_name : size_name,
                        rank ? size_name : rank_name);
    return *found ? check_numbers(place, rank_name, size_name) : RDL_OK;
}

static rdl_status from_raddle_run(rdl_environment environment, rdl_place *place,
                                  bool *found)
{
    bool pair;

    RDL_TRY(read_int(environment, "RADDLE_FD", &place->fd, found));
    if (!*found) {
        place->fd = -1;
        return RDL_OK;
    }
    if (place->fd < 0)
        return rdl_fail(RDL_INVALID, "RADDLE_FD=%d is no descriptor", place->fd);
    RDL_TRY(read_pair(environment, "RADDLE_RANK", "RADDLE_WORLD_SIZE", place,
                      &pair));
    return pair ? RDL_OK
                : rdl_fail(RDL_INVALID, "RADDLE_FD is set and RADDLE_RANK and "
                                        "RADDLE_WORLD_SIZE are not");
}

static void name_job(rdl_place *place, uint64_t hash)
{
    place->job = hash;
    snprintf(place->name, sizeof place->name, "raddle-%u-%016" PRIx64,
             (unsigned)geteuid(), hash);
}

/* Adds what these variables say to the hash; one that is not set is as one that is
 * empty. The list ends with NULL. */
static uint64_t hash_variables(rdl_environment environment, uint64_t hash,
                               const char *const *names)
{
    for (; *names != NULL; names++) {
        const char *value = environment(*names);

        hash =
            rdl_hash_bytes(hash, value ? value : "", value ? strlen(value) : 0);
    }
    return hash;
}

/* --- launchers of others --------------------------------------------------- */

/* What a launcher gives its ranks. A name that a launcher does not have is NULL. */
typedef struct family {
    const char *rank;
    const char *size;
    const char *size_else; /* if size is not set */
    const char *needs;     /* without it the others mean something else */
    const char *local;     /* ranks on this host */
    const char *hosts;
    const char *const *job; /* name it */
    uint64_t seed;          /* of its jobs' names */
} family;

static const char *const torchrun_job[] = { "RADDLE_JOB",
                                            "MASTER_ADDR",
                                            "MASTER_PORT",
                                            "TORCHELASTIC_RUN_ID",
                                            "TORCHELASTIC_RESTART_COUNT",
                                            NULL };
static const char *const other_job[] = { "RADDLE_JOB", "PMIX_NAMESPACE",
                                         "SLURM_JOB_ID", "SLURM_STEP_ID", NULL };

/* In the order in which they count: the inner launcher before one that may have
 * started it. */
static const family families[] = {
    { .rank = "RANK",
      .size = "WORLD_SIZE",
      .local = "LOCAL_WORLD_SIZE",
      .job = torchrun_job,
      .seed = 1 },
    { .rank = "OMPI_COMM_WORLD_RANK",
      .size = "OMPI_COMM_WORLD_SIZE",
      .local = "OMPI_COMM_WORLD_LOCAL_SIZE",
      .job = other_job,
      .seed = 3 },
    { .rank = "PMI_RANK",
      .size = "PMI_SIZE",
      .local = "MPI_LOCALNRANKS",
      .job = other_job,
      .seed = 3 },
    /* A batch script has a rank and a number of tasks too, and is alone. */
    { .rank = "SLURM_PROCID",
      .size = "SLURM_STEP_NUM_TASKS",
      .size_else = "SLURM_NTASKS",
      .needs = "SLURM_STEP_ID",
      .hosts = "SLURM_STEP_NUM_NODES",
      .job = other_job,
      .seed = 3 },
};

#define FAMILIES (sizeof families / sizeof *families)

static bool is_set(rdl_environment environment, const char *name)
{
    const char *text = name ? environment(name) : NULL;

    return text != NULL && text[0] != 0;
}

static const char *size_name(rdl_environment environment, const family *f)
{
    return f->size_else != NULL && !is_set(environment, f->size) ? f->size_else
                                                                 : f->size;
}

static rdl_status check_host(rdl_environment environment, const family *f,
                             const rdl_place *place)
{
    int here = place->size, hosts = 1;
    bool found;

    if (f->local != NULL)
        RDL_TRY(read_int(environment, f->local, &here, &found));
    if (f->hosts != NULL)
        RDL_TRY(read_int(environment, f->hosts, &hosts, &found));
    if (here != place->size)
        return rdl_fail(
            RDL_UNSUPPORTED,
            "the world has %d ranks and %d of them are on this host "
            "(%s): this version joins ranks of one host only",
            place->size, here, f->local);
    if (hosts != 1)
        return rdl_fail(RDL_UNSUPPORTED,
                        "the world's %d ranks are on %d hosts (%s): this "
                        "version joins ranks of one host only",
                        place->size, hosts, f->hosts);
    return RDL_OK;
}

/* Rank and size alone. */
static rdl_status read_family(rdl_environment environment, const family *f,
                              rdl_place *place, bool *found)
{
    *found = false;
    if (f->needs != NULL && !is_set(environment, f->needs))
        return RDL_OK;
    return read_pair(environment, f->rank, size_name(environment, f), place,
                     found);
}

/* What an outer launcher says of a process that started several is not looked at:
 * it is a world of one there. */
static rdl_status check_agreement(rdl_environment environment, const family *f,
                                  const rdl_place *place, const family *other)
{
    rdl_place theirs = { .rank = 0 };
    bool found;

    RDL_TRY(read_family(environment, other, &theirs, &found));
    if (!found || theirs.size == 1 ||
        (theirs.rank == place->rank && theirs.size == place->size))
        return RDL_OK;
    return rdl_fail(RDL_INVALID,
                    "%s=%d of %s=%d contradicts %s=%d of %s=%d; unset those "
                    "that do not count",
                    f->rank, place->rank, size_name(environment, f),
                    place->size, other->rank, theirs.rank,
                    size_name(environment, other), theirs.size);
}

/* PMIx gives a rank and no size. */
static rdl_status check_pmix(rdl_environment environment, const family *f,
                             const rdl_place *place)
{
    bool found;
    int rank;

    RDL_TRY(read_int(environment, "PMIX_RANK", &rank, &found));
    return !found || place->size == 1 || rank == place->rank
               ? RDL_OK
               : rdl_fail(RDL_INVALID,
                          "%s=%d contradicts PMIX_RANK=%d; unset the one that "
                          "does not count",
                          f->rank, place->rank, rank);
}

/* torchrun's ranks are its own, whoever started torchrun; RANK and WORLD_SIZE alone
 * were set by hand, often from the other launcher's. */
static rdl_status check_others(rdl_environment environment, size_t chosen,
                               const rdl_place *place)
{
    if (chosen == 0 && is_set(environment, "TORCHELASTIC_RUN_ID"))
        return RDL_OK;
    for (size_t i = chosen + 1; i < FAMILIES; i++)
        RDL_TRY(check_agreement(environment, &families[chosen], place,
                                &families[i]));
    return check_pmix(environment, &families[chosen], place);
}

static rdl_status from_launcher(rdl_environment environment, rdl_place *place,
                                bool *found)
{
    size_t i = 0;

    for (*found = false; i < FAMILIES; i++) {
        RDL_TRY(read_family(environment, &families[i], place, found));
        if (*found)
            break;
    }
    if (!*found)
        return RDL_OK;
    RDL_TRY(check_others(environment, i, place));
    RDL_TRY(check_host(environment, &families[i], place));
    name_job(place,
             hash_variables(environment, families[i].seed, families[i].job));
    return RDL_OK;
}

static rdl_status from_environment(rdl_environment environment, rdl_place *place)
{
    bool found;

    RDL_TRY(from_raddle_run(environment, place, &found));
    if (!found)
        RDL_TRY(from_launcher(environment, place, &found));
    if (!found) {
        place->rank = 0;
        place->size = 1;
    }
    return RDL_OK;
}

static rdl_status from_options(const rdl_world_options *options,
                               rdl_place *place)
{
    uint64_t hash = 2;

    place->rank = options->rank;
    place->size = options->size;
    RDL_TRY(check_numbers(place, "rank", "size"));
    if (options->job != NULL && options->job[0] != 0)
        hash = rdl_hash_bytes(hash, options->job, strlen(options->job));
    else if (options->host != NULL)
        hash = rdl_hash_add(rdl_hash_add(hash, (uint64_t)getpid()),
                            (uint64_t)(uintptr_t)options->host);
    else
        hash = rdl_hash_bytes(hash, "raddle", 6);
    name_job(place, hash);
    return RDL_OK;
}

static rdl_status read_path(rdl_environment environment, rdl_place *place)
{
    const char *path = environment("RADDLE_SOCKET");

    if (path == NULL || path[0] == 0 || place->fd >= 0)
        return RDL_OK;
    if (path[0] != '/' || strlen(path) >= sizeof place->path)
        return rdl_fail(
            RDL_INVALID,
            "RADDLE_SOCKET='%.120s' is not a path from / of at most "
            "%zu bytes",
            path, sizeof place->path - 1);
    snprintf(place->path, sizeof place->path, "%s", path);
    return RDL_OK;
}

rdl_status rdl_place_read(const rdl_world_options *options,
                          rdl_environment environment, rdl_place *out)
{
    static const rdl_world_options none = { 0 };
    rdl_place place = { .fd = -1 };

    if (options == NULL)
        options = &none;
    RDL_TRY(options->size != 0 ? from_options(options, &place)
                               : from_environment(environment, &place));
    RDL_TRY(read_path(environment, &place));
    RDL_TRY(read_seconds(environment, "RADDLE_START_TIMEOUT",
                         options->start_timeout_ms, START_TIMEOUT_MS,
                         &place.start_timeout_ms));
    RDL_TRY(read_seconds(environment, "RADDLE_TIMEOUT", options->timeout_ms,
                         TIMEOUT_MS, &place.timeout_ms));
    RDL_TRY(read_check(environment, options->check, &place.check));
    RDL_TRY(read_isa(environment, &place.isa));
    RDL_TRY(rdl_patience_read(environment("RADDLE_WAIT"), &place.wait));
    RDL_TRY(read_staging(environment, &place.staging_bytes));
    *out = place;
    return RDL_OK;
}
