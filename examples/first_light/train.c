/* The main job: a language model of byte pairs, trained by all ranks together.
 *
 * Row a of 256 logits says which byte follows byte a. The loss is the mean of
 * -log softmax over all pairs, so its least value is known beforehand: the
 * entropy of a byte given the one before it, counted from the same text. Each
 * rank knows only the pairs of its own part; the sum of the ranks' gradients is
 * the gradient of the whole, and all take the same step. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "first_light.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A row's gradient is divided by the row's pairs: its mean loss then has a
 * second derivative, diag(p) - p p', of at most 1/2, and a step under 4 can not
 * raise it. */
#define STEP 3.9

/* What rounding may add to a loss that no longer falls. */
#define ROUNDING 1e-12

typedef struct model {
    double *logits;
    double *gradient;
    int64_t own_row[BYTES];   /* pairs that begin with a: of this rank, */
    int64_t total_row[BYTES]; /* and of all */
} model;

static void sum_rows(const int64_t *counts, int64_t *rows)
{
    for (size_t a = 0; a < BYTES; a++)
        for (size_t b = 0; b < BYTES; b++)
            rows[a] += counts[a * BYTES + b];
}

/* In nats for each pair. */
static double entropy(const int64_t *counts, const int64_t *rows, int64_t pairs)
{
    double sum = 0;

    for (size_t a = 0; a < BYTES; a++)
        for (size_t i = a * BYTES; i < (a + 1) * BYTES; i++)
            if (counts[i] > 0)
                sum += (double)counts[i] *
                       log((double)rows[a] / (double)counts[i]);
    return sum / (double)pairs;
}

/* Of n pairs: their gradient n p - counts; returns their loss. p of the largest
 * logit is 1 / (1 + rest): log1p keeps its digits when the rest is small. */
static double row_gradient(const double *logits, const int64_t *counts,
                           int64_t n, double *gradient)
{
    size_t top = 0;
    double rest = 0, loss = 0;

    for (size_t b = 1; b < BYTES; b++)
        top = logits[b] > logits[top] ? b : top;
    for (size_t b = 0; b < BYTES; b++) {
        gradient[b] = exp(logits[b] - logits[top]);
        rest += b != top ? gradient[b] : 0;
    }
    double scale = (double)n / (1 + rest), log_sum = log1p(rest);

    for (size_t b = 0; b < BYTES; b++) {
        double count = (double)counts[b];

        gradient[b] = gradient[b] * scale - count;
        if (counts[b] > 0)
            loss += count * (logits[top] - logits[b] + log_sum);
    }
    return loss;
}

/* The gradient and the loss of this rank's part. */
static double own_gradient(const demo *d, model *m)
{
    double loss = 0;

    memset(m->gradient, 0, CELLS * sizeof *m->gradient);
    for (size_t a = 0; a < BYTES; a++)
        if (m->own_row[a] > 0)
            loss += row_gradient(m->logits + a * BYTES, d->counts + a * BYTES,
                                 m->own_row[a], m->gradient + a * BYTES);
    return loss;
}

static void step_down(model *m)
{
    for (size_t a = 0; a < BYTES; a++) {
        if (m->total_row[a] == 0)
            continue;
        double rate = STEP / (double)m->total_row[a];

        for (size_t i = a * BYTES; i < (a + 1) * BYTES; i++)
            m->logits[i] -= rate * m->gradient[i];
    }
}

/* The loss comes from before the step. */
static bool one_step(demo *d, model *m, double *loss)
{
    *loss = own_gradient(d, m);
    if (!ok(d, rdl_all_reduce(d->world, RDL_WORLD, m->gradient, m->gradient,
                              CELLS, RDL_FLOAT64, RDL_SUM, NULL)) ||
        !ok(d, rdl_all_reduce(d->world, RDL_WORLD, loss, loss, 1, RDL_FLOAT64,
                              RDL_SUM, NULL)))
        return false;
    *loss /= (double)d->text.pairs;
    step_down(m);
    return true;
}

static bool is_printed(const demo *d, long step)
{
    if (step == 1 || step == d->steps)
        return true;
    if (d->every > 0)
        return step % d->every == 0;
    return step <= 10 || step % 50 == 0;
}

static double bits(double nats)
{
    return nats / log(2);
}

static void say_step(const demo *d, long step, double loss, double seconds)
{
    double rate = (double)d->text.bytes * (double)step / seconds;
    double left = seconds / (double)step * (double)(d->steps - step);
    words a, b, c;

    say(d, "  %7s %12.6f %12.6f %12s/s %12s", grouped(step, &a), loss,
        bits(loss), scaled_bytes(rate, &b), duration(left, &c));
    say_json(d,
             "{\"event\": \"step\", \"step\": %ld, \"loss\": %.17g, "
             "\"bits_per_byte\": %.17g, \"bytes_per_second\": %.0f, "
             "\"seconds_left\": %.3f}",
             step, loss, bits(loss), rate, left);
}

static bool take_steps(demo *d, model *m, double *loss)
{
    double start = seconds_now(), before = INFINITY;

    for (long step = 1; step <= d->steps; step++) {
        if (!one_step(d, m, loss))
            return false;
        if (!(*loss <= before + ROUNDING)) /* also when it is no number */
            return fail_alike(d, 1,
                              "the loss rose from %.9f to %.9f at step %ld",
                              before, *loss, step);
        before = *loss;
        watch_dev_shm(d);
        if (is_printed(d, step))
            say_step(d, step, *loss, seconds_now() - start);
    }
    return true;
}

/* Whether every rank holds the same logits: the least and the most that any
 * rank has are then its own. */
static bool compare_ranks(demo *d, model *m)
{
    static const rdl_reduction ends[] = { RDL_MIN, RDL_MAX };

    for (int end = 0; end < 2; end++) {
        if (!ok(d, rdl_all_reduce(d->world, RDL_WORLD, m->logits, m->gradient,
                                  CELLS, RDL_FLOAT64, ends[end], NULL)))
            return false;
        for (size_t i = 0; i < CELLS; i++)
            if (m->logits[i] != m->gradient[i])
                return fail(d, 1, "this rank's logits are not the others'");
    }
    return true;
}

static bool say_end(demo *d, const model *m, double loss)
{
    double least = entropy(d->totals, m->total_row, d->text.pairs);

    if (loss < least * (1 - ROUNDING) - ROUNDING)
        return fail_alike(d, 1, "the loss %.9f is under the entropy %.9f", loss,
                          least);
    say(d, "  counted %12.6f %12.6f   the entropy, which is the least", least,
        bits(least));
    if (least > 0)
        say(d, "  The loss never rose, and ended %.2f %% above the entropy.",
            100 * (loss / least - 1));
    else
        say(d, "  The loss never rose.");
    say_json(d,
             "{\"event\": \"end\", \"loss\": %.17g, \"entropy\": %.17g, "
             "\"pairs\": %lld}",
             loss, least, (long long)d->text.pairs);
    return true;
}

bool train(demo *d)
{
    model m = { .logits = calloc(CELLS, sizeof(double)),
                .gradient = calloc(CELLS, sizeof(double)) };
    double loss = 0;
    words a;
    bool fine =
        (m.logits != NULL && m.gradient != NULL) || fail(d, 1, "out of memory");

    if (fine) {
        sum_rows(d->counts, m.own_row);
        sum_rows(d->totals, m.total_row);
        say(d, "Training 256 x 256 logits on it, %s steps of gradient descent",
            grouped(d->steps, &a));
        say(d, "  %7s %12s %12s %14s %12s", "step", "nats/byte", "bits/byte",
            "text", "time left");
    }
    fine = fine && take_steps(d, &m, &loss) && compare_ranks(d, &m) &&
           say_end(d, &m, loss);
    free(m.logits);
    free(m.gradient);
    return fine;
}
