/* Every table of kernels that this processor can run, against plain loops in
 * double precision, at sizes that fill vectors and that do not. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "llama/kernels.h"
#include "support/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Fills all of an array. */
#define FILL(x, seed, most) fill(x, sizeof(x) / sizeof *(x), seed, most)

#define ROWS 5
#define MOST 70

static const size_t sizes[] = { 1, 2, 7, 15, 16, 17, 31, 32, 48, 67 };

#define SIZES (sizeof sizes / sizeof sizes[0])

/* Numbers around 0, about most in size, the same for the same seed. */
static void fill(float *x, size_t count, uint64_t seed, double most)
{
    uint64_t state = seed;

    for (size_t i = 0; i < count; i++)
        x[i] = (float)(((double)(rdl_test_random(&state) >> 11) /
                            4503599627370496.0 -
                        1) *
                       most);
}

typedef void check(const llama_kernels *k, size_t n);

static void for_every_table(check *body)
{
    for (int i = 0; llama_kernels_at(i) != NULL; i++)
        for (size_t at = 0; at < SIZES; at++)
            body(llama_kernels_at(i), sizes[at]);
}

RDL_TEST(the_plain_table_is_always_there)
{
    int last = 0;

    while (llama_kernels_at(last + 1) != NULL)
        last++;
    CHECK_TEXT(llama_kernels_at(last)->name, "base");
}

RDL_TEST(powers_of_e_are_right_to_two_units_in_the_last_place)
{
    for (int table = 0; llama_kernels_at(table) != NULL; table++)
        for (int i = -870000; i <= 880000; i += 7) {
            float x = (float)i / 10000, e;
            double exact = exp((double)x);

            llama_kernels_at(table)->exponential(1, &x, &e);
            CHECK_NEAR(e, exact, 1.5e-7 * exact);
        }
}

RDL_TEST(powers_of_e_are_the_same_bits_in_every_table)
{
    float x[999], first[999], other[999];

    FILL(x, 3, 80);
    llama_kernels_at(0)->exponential(999, x, first);
    for (int i = 1; llama_kernels_at(i) != NULL; i++) {
        llama_kernels_at(i)->exponential(999, x, other);
        CHECK(rdl_test_same_bits(first, other, sizeof first));
    }
}

RDL_TEST(what_is_far_below_is_zero_and_what_is_not_a_number_stays)
{
    const float x[] = { -88, -1e30F, -INFINITY, NAN };
    float e[4];

    for (int i = 0; llama_kernels_at(i) != NULL; i++) {
        llama_kernels_at(i)->exponential(4, x, e);
        CHECK(e[0] == 0 && e[1] == 0 && e[2] == 0);
        CHECK(isnan(e[3]));
    }
}

static void check_norm(const llama_kernels *k, size_t n)
{
    float x[ROWS * MOST], w[MOST], d[ROWS * MOST], out[ROWS * MOST];
    float again[ROWS * MOST], dx[ROWS * MOST], dw[MOST], inverse[ROWS];
    double dw_exact[MOST] = { 0 };

    FILL(x, n, 2);
    FILL(w, n + 1, 1);
    FILL(d, n + 2, 1);
    FILL(dx, n + 3, 1);
    memset(dw, 0, sizeof dw);
    k->norm(ROWS, n, x, w, 1e-5F, out, inverse);
    k->norm_again(ROWS, n, x, w, inverse, again);
    CHECK(rdl_test_same_bits(out, again, ROWS * n * sizeof *out));
    memset(again, 0, sizeof again);
    k->norm_backward(ROWS, n, x, w, inverse, d, again, dw);
    for (size_t row = 0; row < ROWS; row++) {
        double square = 0, sum = 0, turn;

        for (size_t i = 0; i < n; i++) {
            double v = x[row * n + i];

            square += v * v;
            sum += v * w[i] * d[row * n + i];
        }
        turn = 1 / sqrt(square / (double)n + 1e-5);
        for (size_t i = 0; i < n; i++) {
            double v = x[row * n + i], g = d[row * n + i];

            CHECK_NEAR(out[row * n + i], v * turn * w[i], 1e-6);
            CHECK_NEAR(again[row * n + i],
                       g * w[i] * turn - v * sum * turn * turn * turn / (double)n,
                       2e-5);
            dw_exact[i] += g * v * turn;
        }
    }
    for (size_t i = 0; i < n; i++)
        CHECK_NEAR(dw[i], dw_exact[i], 2e-6);
}

RDL_TEST(norms_are_right)
{
    for_every_table(check_norm);
}

static void check_gate(const llama_kernels *k, size_t n)
{
    float a[MOST], b[MOST], d[MOST], out[MOST], da[MOST], db[MOST];

    FILL(a, n, 9);
    FILL(b, n + 1, 2);
    FILL(d, n + 2, 2);
    a[0] = -200;
    memcpy(da, d, sizeof da);
    k->gate(n, a, b, out);
    k->gate_backward(n, a, b, da, db);
    for (size_t i = 0; i < n; i++) {
        double s = 1 / (1 + exp(-(double)a[i])), x = a[i];

        CHECK_NEAR(out[i], x * s * b[i], 4e-6);
        CHECK_NEAR(db[i], d[i] * x * s, 4e-6);
        CHECK_NEAR(da[i], d[i] * b[i] * (s + x * s * (1 - s)), 4e-6);
    }
}

RDL_TEST(the_gate_is_right)
{
    for_every_table(check_gate);
}

static void check_turn(const llama_kernels *k, size_t n)
{
    float x[ROWS * 2 * MOST], y[ROWS * 2 * MOST], c[ROWS * MOST], s[ROWS * MOST];

    if (n % 2 != 0)
        return;
    FILL(x, n, 1);
    memcpy(y, x, sizeof y);
    for (size_t i = 0; i < ROWS * n; i += 2) {
        c[i] = c[i + 1] = cosf((float)i);
        s[i + 1] = sinf((float)i);
        s[i] = -s[i + 1];
    }
    k->turn(ROWS, 2, n, c, s, 1, y, 2 * n);
    for (size_t row = 0; row < ROWS; row++)
        for (size_t i = 0; i < 2 * n; i += 2) {
            size_t at = row * 2 * n + i, angle = row * n + i % n;
            double even = x[at], odd = x[at + 1];

            CHECK_NEAR(y[at], even * c[angle] - odd * s[angle + 1], 1e-6);
            CHECK_NEAR(y[at + 1], even * s[angle + 1] + odd * c[angle], 1e-6);
        }
    k->turn(ROWS, 2, n, c, s, -1, y, 2 * n);
    for (size_t i = 0; i < ROWS * 2 * n; i++)
        CHECK_NEAR(y[i], x[i], 1e-6);
}

RDL_TEST(pairs_turn_and_turn_back)
{
    for_every_table(check_turn);
}

static void check_split(const llama_kernels *k, size_t n)
{
    float x[ROWS * 3 * MOST], planes[3 * ROWS * MOST], y[ROWS * 3 * MOST];

    FILL(x, n, 1);
    k->split(ROWS, 3, n, x, 3 * n, planes, ROWS * n);
    for (size_t row = 0; row < ROWS; row++)
        for (size_t h = 0; h < 3; h++)
            CHECK(rdl_test_same_bits(planes + (h * ROWS + row) * n,
                                     x + (row * 3 + h) * n, n * sizeof *x));
    k->merge(ROWS, 3, n, planes, ROWS * n, y, 3 * n);
    CHECK(rdl_test_same_bits(x, y, ROWS * 3 * n * sizeof *x));
}

RDL_TEST(heads_part_and_come_together)
{
    for_every_table(check_split);
}

/* Spans of all kinds in a row of n that begins with column 32. */
static llama_span span_of(size_t row, size_t n)
{
    uint32_t begin = (uint32_t)(row * n / 7), end = (uint32_t)(n - row * n / 9);

    if (end <= begin)
        end = begin + 1;
    return (llama_span){ 32 + begin, 32 + end };
}

static void check_softmax(const llama_kernels *k, size_t n)
{
    enum { STRIDE = 80 };
    float s[ROWS * STRIDE], scores[ROWS * STRIDE], d[ROWS * STRIDE];
    float dscores[ROWS * STRIDE], log_sum[ROWS], inverse[ROWS], delta[ROWS];
    llama_span spans[ROWS];

    for (size_t row = 0; row < ROWS; row++)
        spans[row] = span_of(row, n);
    FILL(scores, n, 30);
    FILL(d, n + 1, 1);
    FILL(delta, n + 2, 1);
    memcpy(s, scores, sizeof s);
    memcpy(dscores, d, sizeof d);
    k->softmax(ROWS, 32, n, spans, s, STRIDE, log_sum, inverse);
    for (size_t row = 0; row < ROWS; row++) {
        double sum = 0;

        for (size_t i = spans[row].begin - 32; i < spans[row].end - 32; i++)
            sum += exp((double)scores[row * STRIDE + i]);
        CHECK_NEAR(log_sum[row], log(sum), 4e-6);
        for (size_t i = 0; i < n; i++) {
            bool seen = i + 32 >= spans[row].begin && i + 32 < spans[row].end;
            double p = seen ? exp((double)scores[row * STRIDE + i]) / sum : 0;

            CHECK_NEAR(s[row * STRIDE + i] * inverse[row], p, 1e-6);
        }
    }
    memcpy(s, scores, sizeof s);
    k->softmax_backward(ROWS, 32, n, spans, s, dscores, STRIDE, log_sum, delta);
    for (size_t row = 0; row < ROWS; row++)
        for (size_t i = 0; i < n; i++) {
            bool seen = i + 32 >= spans[row].begin && i + 32 < spans[row].end;
            size_t at = row * STRIDE + i;
            double p = exp((double)scores[at] - log_sum[row]);

            p = seen ? p : 0;
            CHECK_NEAR(s[at], p, 4e-6);
            CHECK_NEAR(dscores[at], p * ((double)d[at] - delta[row]), 1e-5);
        }
}

RDL_TEST(a_row_of_attention_sees_its_span_alone)
{
    for_every_table(check_softmax);
}

static void check_rows(const llama_kernels *k, size_t n)
{
    float a[ROWS * MOST], b[ROWS * MOST], out[ROWS], factor[ROWS];

    FILL(a, n, 1);
    FILL(b, n + 1, 1);
    FILL(factor, n + 2, 1);
    k->dot_rows(ROWS, n, a, b, MOST, out);
    for (size_t row = 0; row < ROWS; row++) {
        double sum = 0;

        for (size_t i = 0; i < n; i++)
            sum += (double)a[row * MOST + i] * (double)b[row * MOST + i];
        CHECK_NEAR(out[row], sum, 3e-6);
    }
    memcpy(b, a, sizeof b);
    k->scale_rows(ROWS, n, factor, b, MOST);
    for (size_t i = 0; i < ROWS * MOST; i++)
        CHECK(b[i] == (i % MOST < n ? a[i] * factor[i / MOST] : a[i]));
}

RDL_TEST(rows_are_scaled_and_multiplied)
{
    for_every_table(check_rows);
}

static void check_loss(const llama_kernels *k, size_t n)
{
    float x[MOST], y[MOST];
    size_t label = n / 3;
    double sum = 0, loss;

    FILL(x, n, 20);
    memcpy(y, x, sizeof y);
    for (size_t i = 0; i < n; i++)
        sum += exp((double)x[i]);
    loss = log(sum) - x[label];
    CHECK_NEAR(k->cross_entropy(n, y, label, 0.25F), loss, 4e-6);
    for (size_t i = 0; i < n; i++)
        CHECK_NEAR(y[i], 0.25 * (exp((double)x[i]) / sum - (i == label)), 1e-6);
    CHECK_NEAR(k->cross_entropy(n, x, label, 0), loss, 4e-6);
}

RDL_TEST(the_loss_and_its_gradient_are_right)
{
    for_every_table(check_loss);
}

static void check_whole(const llama_kernels *k, size_t n)
{
    float x[MOST], y[MOST], z[MOST], g[MOST], m[MOST], v[MOST];
    llama_adamw_step s = { 0.99F, 0.9F, 0.95F, 1e-2F, 1.5F, 1e-8F };

    FILL(x, n, 1);
    FILL(y, n + 1, 1);
    memcpy(z, y, sizeof z);
    k->add(n, x, z);
    for (size_t i = 0; i < n; i++)
        CHECK(z[i] == y[i] + x[i]);
    k->scale(n, 0.3F, z);
    for (size_t i = 0; i < n; i++)
        CHECK(z[i] == (y[i] + x[i]) * 0.3F);
    FILL(g, n + 2, 1);
    FILL(m, n + 3, 1);
    for (size_t i = 0; i < n; i++)
        v[i] = m[i] * m[i];
    memcpy(z, m, sizeof z);
    k->adamw(n, &s, g, m, v, x);
    for (size_t i = 0; i < n; i++) {
        double first = 0.9 * z[i] + 0.1 * g[i];
        double second = 0.95 * z[i] * z[i] + 0.05 * g[i] * g[i];

        CHECK_NEAR(m[i], first, 1e-6);
        CHECK_NEAR(v[i], second, 1e-6);
    }
}

RDL_TEST(whole_arrays_are_right)
{
    for_every_table(check_whole);
}

static void check_finite(const llama_kernels *k, size_t n)
{
    static const float bad[] = { INFINITY, -INFINITY, NAN };
    float x[MOST];

    FILL(x, n, 3e38);
    CHECK(k->finite(n, x));
    for (size_t i = 0; i < n; i++) {
        float kept = x[i];

        x[i] = bad[i % 3];
        CHECK(!k->finite(n, x));
        x[i] = kept;
    }
    CHECK(k->finite(0, x));
}

RDL_TEST(one_number_that_is_not_finite_is_found)
{
    for_every_table(check_finite);
}
