/* The arithmetic that is not a matrix product. Compiled once for each kind of
 * processor: LLAMA_ISA is a suffix of the table's name. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "llama/kernels.h"

#include <float.h>
#include <math.h>
#include <string.h>

#ifndef LLAMA_ISA
#define LLAMA_ISA base
#endif

#if defined(__AVX512F__)
#define BYTES 64
#define NEIGHBOURS 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14
#elif defined(__AVX2__)
#define BYTES 32
#define NEIGHBOURS 1, 0, 3, 2, 5, 4, 7, 6
#else
#define BYTES 16
#define NEIGHBOURS 1, 0, 3, 2
#endif

#define LANES (BYTES / sizeof(float))
#define INLINE static inline __attribute__((always_inline))

typedef float vec __attribute__((vector_size(BYTES)));
typedef int32_t ivec __attribute__((vector_size(BYTES)));
typedef uint32_t uvec __attribute__((vector_size(BYTES)));
typedef float loose_vec
    __attribute__((vector_size(BYTES), aligned(4), may_alias));

INLINE vec load(const float *p)
{
    return *(const loose_vec *)p;
}

INLINE void store(float *p, vec x)
{
    *(loose_vec *)p = x;
}

/* The first most lanes, 0 in the others. */
INLINE vec load_part(const float *p, size_t most)
{
    vec x = { 0 };

    if (most >= LANES)
        return load(p);
    memcpy(&x, p, most * sizeof *p);
    return x;
}

INLINE void store_part(float *p, vec x, size_t most)
{
    if (most >= LANES)
        store(p, x);
    else
        memcpy(p, &x, most * sizeof *p);
}

INLINE vec all(float x)
{
    return (vec){ 0 } + x;
}

/* a where mask is set, else b. */
INLINE vec choose(ivec mask, vec a, vec b)
{
    return (vec)((mask & (ivec)a) | (~mask & (ivec)b));
}

INLINE float total(vec x)
{
    float lane[LANES];

    memcpy(lane, &x, sizeof lane);
    for (size_t width = LANES / 2; width > 0; width /= 2)
        for (size_t i = 0; i < width; i++)
            lane[i] += lane[i + width];
    return lane[0];
}

INLINE float highest(vec x)
{
    float lane[LANES];

    memcpy(lane, &x, sizeof lane);
    for (size_t width = LANES / 2; width > 0; width /= 2)
        for (size_t i = 0; i < width; i++)
            lane[i] = lane[i] > lane[i + width] ? lane[i] : lane[i + width];
    return lane[0];
}

/* For x up to 88, with a relative error below 1.5e-7; 0 below -87. NaN stays.
 * x = n ln 2 + r: 2^n is added to the exponent's bits, and e^r = 1 + r + r^2 p,
 * p fitted over |r| <= ln 2 / 2 to 1e-8. */
INLINE vec power_of_e(vec x)
{
    const float to_integer =
        12582912; /* 1.5 * 2^23: the fraction is rounded away */
    vec shifted = x * 1.44269504F + to_integer;
    vec n = shifted - to_integer;
    /* ln 2 in two parts, the first short enough for n times it to be exact. */
    vec r = x - n * 0.693359375F + n * 2.12194440e-4F;
    vec p = r * 1.3926213e-3F + 8.363203e-3F;
    vec e;

    p = p * r + 4.16665545e-2F;
    p = p * r + 0.166665768F;
    p = p * r + 0.5F;
    e = p * (r * r) + r + 1;
    e = (vec)((uvec)e + ((uvec)shifted << 23));
    return (vec)((ivec)e & ~(x < all(-87)));
}

/* ---- Norms ---- */

INLINE void norm_row(size_t n, const float *x, const float *weight,
                     float inverse, float *out)
{
    for (size_t i = 0; i < n; i += LANES)
        store_part(out + i,
                   load_part(x + i, n - i) * inverse *
                       load_part(weight + i, n - i),
                   n - i);
}

static void norm(size_t rows, size_t n, const float *x, const float *weight,
                 float epsilon, float *out, float *inverse)
{
    for (size_t row = 0; row < rows; row++, x += n, out += n) {
        vec squares = { 0 };

        for (size_t i = 0; i < n; i += LANES) {
            vec v = load_part(x + i, n - i);

            squares += v * v;
        }
        inverse[row] = 1 / sqrtf(total(squares) / (float)n + epsilon);
        norm_row(n, x, weight, inverse[row], out);
    }
}

static void norm_again(size_t rows, size_t n, const float *x,
                       const float *weight, const float *inverse, float *out)
{
    for (size_t row = 0; row < rows; row++)
        norm_row(n, x + row * n, weight, inverse[row], out + row * n);
}

static void norm_backward(size_t rows, size_t n, const float *x,
                          const float *weight, const float *inverse,
                          const float *dout, float *dx, float *dweight)
{
    for (size_t row = 0; row < rows; row++, x += n, dout += n, dx += n) {
        float turn = inverse[row], common;
        vec sum = { 0 };

        for (size_t i = 0; i < n; i += LANES)
            sum += load_part(dout + i, n - i) * load_part(weight + i, n - i) *
                   load_part(x + i, n - i);
        common = total(sum) * turn * turn * turn / (float)n;
        for (size_t i = 0; i < n; i += LANES) {
            vec v = load_part(x + i, n - i), d = load_part(dout + i, n - i);

            store_part(dweight + i,
                       load_part(dweight + i, n - i) + d * v * turn, n - i);
            store_part(dx + i,
                       load_part(dx + i, n - i) +
                           (d * load_part(weight + i, n - i) * turn - v * common),
                       n - i);
        }
    }
}

/* ---- The gate of the feed-forward part ---- */

INLINE vec sigmoid(vec x)
{
    vec minus = choose(x > all(-88), -x, all(88));

    return 1 / (1 + power_of_e(minus));
}

static void gate(size_t n, const float *a, const float *b, float *out)
{
    for (size_t i = 0; i < n; i += LANES) {
        vec x = load_part(a + i, n - i);

        store_part(out + i, x * sigmoid(x) * load_part(b + i, n - i), n - i);
    }
}

static void gate_backward(size_t n, const float *a, const float *b, float *dout,
                          float *db)
{
    for (size_t i = 0; i < n; i += LANES) {
        vec x = load_part(a + i, n - i), s = sigmoid(x);
        vec d = load_part(dout + i, n - i);

        store_part(db + i, d * (x * s), n - i);
        store_part(dout + i,
                   d * load_part(b + i, n - i) * (s * (1 + x * (1 - s))), n - i);
    }
}

/* ---- Heads ---- */

/* x * c + (its neighbour in the pair) * s */
INLINE void turn_head(size_t head, const float *c, const float *s,
                      float direction, float *x)
{
    if (head % LANES != 0) {
        for (size_t i = 0; i < head; i += 2) {
            float even = x[i], odd = x[i + 1];

            x[i] = even * c[i] + odd * (s[i] * direction);
            x[i + 1] = odd * c[i + 1] + even * (s[i + 1] * direction);
        }
        return;
    }
    for (size_t i = 0; i < head; i += LANES) {
        vec v = load(x + i);
        vec other = __builtin_shufflevector(v, v, NEIGHBOURS);

        store(x + i, v * load(c + i) + other * (load(s + i) * direction));
    }
}

static void turn(size_t rows, size_t heads, size_t head, const float *cosine,
                 const float *sine, float direction, float *x, size_t stride)
{
    for (size_t row = 0; row < rows; row++)
        for (size_t h = 0; h < heads; h++)
            turn_head(head, cosine + row * head, sine + row * head, direction,
                      x + row * stride + h * head);
}

INLINE void copy_head(size_t head, const float *from, float *to)
{
    if (head % LANES != 0)
        memcpy(to, from, head * sizeof *to);
    else
        for (size_t i = 0; i < head; i += LANES)
            store(to + i, load(from + i));
}

static void split(size_t rows, size_t heads, size_t head, const float *from,
                  size_t stride, float *to, size_t plane)
{
    for (size_t row = 0; row < rows; row++)
        for (size_t h = 0; h < heads; h++)
            copy_head(head, from + row * stride + h * head,
                      to + h * plane + row * head);
}

static void merge(size_t rows, size_t heads, size_t head, const float *from,
                  size_t plane, float *to, size_t stride)
{
    for (size_t row = 0; row < rows; row++)
        for (size_t h = 0; h < heads; h++)
            copy_head(head, from + h * plane + row * head,
                      to + row * stride + h * head);
}

/* ---- Softmax ---- */

/* The vectors of a row that hold a span: scores [first, last) around
 * [begin, end). */
typedef struct reach {
    size_t first, begin, end, last;
} reach;

INLINE reach reach_of(llama_span span, size_t column)
{
    size_t begin = span.begin - column, end = span.end - column;

    return (reach){ begin / LANES * LANES, begin, end,
                    (end + LANES - 1) / LANES * LANES };
}

/* What lies outside the span: so low that its power is 0 in the span's own
 * vectors, 0 at once in the others. */
INLINE void fence(const reach *r, size_t width, float *s)
{
    memset(s, 0, r->first * sizeof *s);
    for (size_t i = r->first; i < r->begin; i++)
        s[i] = -FLT_MAX;
    for (size_t i = r->end; i < r->last; i++)
        s[i] = -FLT_MAX;
    memset(s + r->last, 0, (LLAMA_PADDED(width) - r->last) * sizeof *s);
}

static void softmax(size_t rows, size_t column, size_t width,
                    const llama_span *spans, float *s, size_t stride,
                    float *log_sum, float *inverse)
{
    for (size_t row = 0; row < rows; row++, s += stride) {
        reach r = reach_of(spans[row], column);
        vec top = all(-FLT_MAX), sum = { 0 };
        float most, whole;

        fence(&r, width, s);
        for (size_t i = r.first; i < r.last; i += LANES) {
            vec v = load(s + i);

            top = choose(v > top, v, top);
        }
        most = highest(top);
        for (size_t i = r.first; i < r.last; i += LANES) {
            vec e = power_of_e(load(s + i) - most);

            sum += e;
            store(s + i, e);
        }
        whole = total(sum);
        log_sum[row] = most + logf(whole);
        inverse[row] = 1 / whole;
    }
}

static void softmax_backward(size_t rows, size_t column, size_t width,
                             const llama_span *spans, float *s, float *d,
                             size_t stride, const float *log_sum,
                             const float *delta)
{
    for (size_t row = 0; row < rows; row++, s += stride, d += stride) {
        reach r = reach_of(spans[row], column);

        fence(&r, width, s);
        memset(d, 0, r.first * sizeof *d);
        for (size_t i = r.first; i < r.last; i += LANES) {
            vec p = power_of_e(load(s + i) - log_sum[row]);

            store(s + i, p);
            store(d + i, p * (load(d + i) - delta[row]));
        }
        memset(d + r.last, 0, (LLAMA_PADDED(width) - r.last) * sizeof *d);
    }
}

static void scale_rows(size_t rows, size_t n, const float *factor, float *x,
                       size_t stride)
{
    for (size_t row = 0; row < rows; row++, x += stride)
        for (size_t i = 0; i < n; i += LANES)
            store_part(x + i, load_part(x + i, n - i) * factor[row], n - i);
}

static void dot_rows(size_t rows, size_t n, const float *a, const float *b,
                     size_t stride, float *out)
{
    for (size_t row = 0; row < rows; row++, a += stride, b += stride) {
        vec sum = { 0 };

        for (size_t i = 0; i < n; i += LANES)
            sum += load_part(a + i, n - i) * load_part(b + i, n - i);
        out[row] = total(sum);
    }
}

/* ---- The loss ---- */

static double cross_entropy(size_t n, float *logits, size_t label, float factor)
{
    float target = logits[label], most, whole;
    vec top = all(-FLT_MAX), sum = { 0 };
    size_t body = n / LANES * LANES;

    for (size_t i = 0; i < body; i += LANES) {
        vec v = load(logits + i);

        top = choose(v > top, v, top);
    }
    most = highest(top);
    for (size_t i = body; i < n; i++)
        most = logits[i] > most ? logits[i] : most;
    for (size_t i = 0; i < body; i += LANES) {
        vec e = power_of_e(load(logits + i) - most);

        sum += e;
        store(logits + i, e);
    }
    if (body < n) {
        vec low = all(-FLT_MAX);

        memcpy(&low, logits + body, (n - body) * sizeof *logits);
        low = power_of_e(low - most);
        sum += low;
        store_part(logits + body, low, n - body);
    }
    whole = total(sum);
    if (factor != 0) {
        float share = factor / whole;

        for (size_t i = 0; i < n; i += LANES)
            store_part(logits + i, load_part(logits + i, n - i) * share, n - i);
        logits[label] -= factor;
    }
    return (double)most + log((double)whole) - (double)target;
}

/* ---- Whole arrays: plain loops, which compilers vectorise ---- */

static void add(size_t n, const float *restrict x, float *restrict to)
{
    for (size_t i = 0; i < n; i++)
        to[i] += x[i];
}

static void scale(size_t n, float factor, float *x)
{
    for (size_t i = 0; i < n; i++)
        x[i] *= factor;
}

static bool all_finite(size_t n, const float *x)
{
    uint32_t bad = 0;

    for (size_t i = 0; i < n; i++) {
        uint32_t bits;

        memcpy(&bits, &x[i], sizeof bits);
        bad |= (bits & 0x7f800000) == 0x7f800000;
    }
    return bad == 0;
}

static void adamw(size_t n, const llama_adamw_step *step,
                  const float *restrict gradient, float *restrict moment1,
                  float *restrict moment2, float *restrict values)
{
    llama_adamw_step s = *step;

    for (size_t i = 0; i < n; i++) {
        float g = gradient[i];
        float first = s.beta1 * moment1[i] + (1 - s.beta1) * g;
        float second = s.beta2 * moment2[i] + (1 - s.beta2) * (g * g);

        moment1[i] = first;
        moment2[i] = second;
        values[i] = s.keep * values[i] -
                    s.rate * first / (sqrtf(second) * s.correct + s.epsilon);
    }
}

static void exponential(size_t n, const float *x, float *to)
{
    for (size_t i = 0; i < n; i += LANES)
        store_part(to + i, power_of_e(load_part(x + i, n - i)), n - i);
}

#define JOINED(a, b) a##b
#define TABLE(isa) JOINED(llama_kernels_, isa)
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

extern const llama_kernels TABLE(LLAMA_ISA);

const llama_kernels TABLE(LLAMA_ISA) = {
    .name = TEXT(LLAMA_ISA),
    .norm = norm,
    .norm_again = norm_again,
    .norm_backward = norm_backward,
    .gate = gate,
    .gate_backward = gate_backward,
    .turn = turn,
    .split = split,
    .merge = merge,
    .softmax = softmax,
    .softmax_backward = softmax_backward,
    .scale_rows = scale_rows,
    .dot_rows = dot_rows,
    .cross_entropy = cross_entropy,
    .add = add,
    .scale = scale,
    .finite = all_finite,
    .adamw = adamw,
    .exponential = exponential,
};
