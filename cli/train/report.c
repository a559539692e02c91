/* Lines of metrics, of JSON, and of progress. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/report.h"

#include "command.h"
#include "say.h"
#include "train/account.h"
#include "train/json.h"
#include "train/train.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define CLEAR_LINE "\r\x1b[K"

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

digits digits_of(int64_t n)
{
    char plain[24];
    digits out;
    size_t length = (size_t)snprintf(plain, sizeof plain, "%" PRId64, n);
    size_t at = 0;

    for (size_t i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0 && plain[i - 1] != '-')
            out.text[at++] = ',';
        out.text[at++] = plain[i];
    }
    out.text[at] = '\0';
    return out;
}

/* --- progress -------------------------------------------------------------- */

void report_open(report *r, bool json, bool speaks)
{
    const char *kind = getenv("TERM");

    *r = (report){ .speaks = speaks, .json = json };
    r->has_progress = speaks && isatty(STDERR_FILENO) &&
                      (kind == NULL || strcmp(kind, "dumb") != 0);
}

static void clear_progress(report *r)
{
    if (r->progress_shown)
        fputs(CLEAR_LINE, stderr);
    r->progress_shown = false;
    fflush(stderr);
}

void report_close(report *r)
{
    clear_progress(r);
}

void report_say(report *r, const char *format, ...)
{
    char sentence[SAY_MOST - 64];
    va_list args;

    if (!r->speaks)
        return;
    clear_progress(r);
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    say(TRAIN, "%s", sentence);
}

void report_start(report *r)
{
    r->started_ns = r->logged_ns = now_ns();
}

/* "2 min 5 s left"; nothing is known of the first step. */
static void time_left(const report *r, int64_t step, int64_t steps, char *out,
                      size_t bytes)
{
    double elapsed = (double)(now_ns() - r->started_ns) / 1e9;
    double left = elapsed / (double)(step - 1) * (double)(steps - step + 1);

    if (step == 1)
        *out = '\0';
    else if (left < 100)
        snprintf(out, bytes, ", %.0f s left", left);
    else if (left < 6000)
        snprintf(out, bytes, ", %.0f min left", left / 60);
    else
        snprintf(out, bytes, ", %.1f h left", left / 3600);
}

void report_progress(report *r, int64_t step, int64_t steps)
{
    char left[64];

    if (!r->has_progress)
        return;
    time_left(r, step, steps, left, sizeof left);
    /* Whoever speaks next, should this process be killed, begins at the margin. */
    fprintf(stderr, CLEAR_LINE "step %" PRId64 " of %" PRId64 "%s\r", step,
            steps, left);
    fflush(stderr);
    r->progress_shown = true;
}

/* --- metrics --------------------------------------------------------------- */

typedef struct speed {
    double seconds; /* since the last line */
    double tokens_per_s;
    double tps;    /* of one rank */
    double tflops; /* likewise */
    double mfu;
    double memory; /* bytes, at most so far */
    double memory_percent;
} speed;

static speed measure(const report *r, const step_report *s, int64_t now)
{
    struct rusage use;
    double machine =
        (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    speed v = { .seconds = (double)(now - r->logged_ns) / 1e9 };

    v.tokens_per_s = (double)(s->tokens * r->steps_since) / v.seconds;
    v.tps = v.tokens_per_s / s->ranks;
    v.tflops = s->flops_per_token * v.tps / 1e12;
    v.mfu = s->peak > 0 ? 100 * s->flops_per_token * v.tps / s->peak : 0;
    getrusage(RUSAGE_SELF, &use);
    v.memory = (double)use.ru_maxrss * 1024;
    v.memory_percent = machine > 0 ? 100 * v.memory / machine : 0;
    return v;
}

/* Torchtitan's line. */
static void print_metrics(const step_report *s, const speed *v)
{
    printf("step: %2" PRId64 "  loss: %8.5f  grad_norm: %7.4f  memory: "
           "%5.2fGiB(%.2f%%)  tps: %s  tflops: %.2f  mfu: %.2f%%\n",
           s->step, s->loss, s->norm, v->memory / 1073741824, v->memory_percent,
           digits_of((int64_t)(v->tps + 0.5)).text, v->tflops, v->mfu);
}

static void print_json(const step_report *s, const speed *v)
{
    text line = { .data = NULL };

    json_open(&line, NULL);
    json_integer(&line, "step", s->step);
    json_number(&line, "loss", s->loss);
    json_number(&line, "loss_max", s->loss_most);
    json_number(&line, "grad_norm", s->norm);
    json_number(&line, "learning_rate", s->learning_rate);
    json_integer(&line, "valid_tokens", (int64_t)s->valid_tokens);
    json_number(&line, "seconds", v->seconds);
    json_number(&line, "tokens_per_s", v->tokens_per_s);
    json_number(&line, "tokens_per_s_rank", v->tps);
    json_number(&line, "tflops", v->tflops);
    json_number(&line, "mfu_percent", v->mfu);
    json_integer(&line, "memory_bytes", (int64_t)v->memory);
    json_close(&line);
    if (line.data != NULL)
        puts(line.data);
    text_free(&line);
}

static bool finish_line(trouble *t)
{
    if (fflush(stdout) == 0)
        return true;
    return trouble_note(t, STATUS_FAILED, "cannot write to standard output: %s",
                        strerror(errno));
}

static void watch_shm(report *r)
{
    int64_t bytes = account_shm_bytes();

    if (bytes > r->shm_peak)
        r->shm_peak = bytes;
}

bool report_step(report *r, const step_report *s, bool show, trouble *t)
{
    int64_t now = now_ns();
    speed v;

    r->steps_since++;
    watch_shm(r);
    if (!show)
        return true;
    v = measure(r, s, now);
    r->logged_ns = now;
    r->steps_since = 0;
    if (!r->speaks)
        return true;
    clear_progress(r);
    if (r->json)
        print_json(s, &v);
    else
        print_metrics(s, &v);
    return finish_line(t);
}

/* --- the account ----------------------------------------------------------- */

static void print_spent(text *line, const char *name, const int64_t *spent)
{
    json_open(line, name);
#define X(number, key, words) json_integer(line, #key, spent[SPENT_##number]);
    SPENT_MAP(X)
#undef X
    json_close(line);
}

static void print_account(const account *a)
{
    text line = { .data = NULL };

    json_open(&line, NULL);
    json_open(&line, "account");
    json_integer(&line, "groups_opened", a->groups_opened);
    json_integer(&line, "communicators", a->communicators);
    json_integer(&line, "arena_bytes_per_rank", a->arena_rank);
    json_integer(&line, "arena_bytes_total", a->arena_total);
    json_integer(&line, "dev_shm_peak_bytes", a->shm_peak);
    json_integer(&line, "collectives", a->collectives);
    print_spent(&line, "bytes_per_rank", a->rank);
    print_spent(&line, "bytes_total", a->all);
    json_close(&line);
    json_close(&line);
    if (line.data != NULL)
        puts(line.data);
    text_free(&line);
}

static void say_account(report *r, const account *a, const step_report *last)
{
    double seconds = (double)(now_ns() - r->started_ns) / 1e9;

    report_say(
        r,
        "%" PRId64 " steps of %s tokens in %.1f s; a rank opened %" PRId64
        " groups on %" PRId64 " communicator%s, made %s collectives and "
        "holds %.2f MiB of arena (%.2f MiB all ranks); at most %" PRId64
        " bytes of /dev/shm",
        last->steps, digits_of(last->tokens).text, seconds, a->groups_opened,
        a->communicators, a->communicators == 1 ? "" : "s",
        digits_of(a->collectives).text, (double)a->arena_rank / 1048576,
        (double)a->arena_total / 1048576, a->shm_peak);
}

/* What is taken, for what. */
static void say_spent(report *r, const account *a)
{
    static const char *const names[] = {
#define X(number, key, words) words,
        SPENT_MAP(X)
#undef X
    };
    char line[SAY_MOST / 2] = "";
    size_t at = 0;

    for (int i = 0; i < SPENT_KINDS && at < sizeof line; i++)
        if (a->all[i] > 0)
            at += (size_t)snprintf(line + at, sizeof line - at, "%s%s %s (%s)",
                                   at > 0 ? ", " : "", names[i],
                                   digits_of(a->rank[i]).text,
                                   digits_of(a->all[i]).text);
    report_say(r, "bytes of a rank (of all): %s", line);
}

void report_hidden(report *r, int64_t took, int64_t waited)
{
    double hidden = took > waited ? (double)(took - waited) : 0;

    if (!r->speaks || r->json || took <= 0)
        return;
    report_say(r,
               "on rank 0 gathers and reductions on streams took %.2f s, of "
               "which %.0f %% was hidden behind computing and the exchanges of "
               "context parallelism",
               (double)took / 1e9, 100 * hidden / (double)took);
}

bool report_account(report *r, rdl_world *world, const step_report *last,
                    trouble *t)
{
    account a;

    if (!account_take(&a, world, r->shm_peak, t))
        return false;
    if (!r->speaks)
        return true;
    if (!r->json) {
        say_account(r, &a, last);
        say_spent(r, &a);
        return true;
    }
    print_account(&a);
    return finish_line(t);
}
