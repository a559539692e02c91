/* The shapes that have a name, and what follows from a shape. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "llama/error.h"

#include <limits.h>
#include <math.h>
#include <string.h>

static const llama_config presets[] = {
    {
        .name = "llama3-debug",
        .dim = 256,
        .layers = 6,
        .heads = 16,
        .kv_heads = 16,
        .head_dim = 16,
        .hidden = 768,
        .vocab = 2048,
        .norm_epsilon = 1e-5,
        .rope_theta = 500000,
        .rope_factor = 8,
        .rope_low = 1,
        .rope_high = 4,
        .rope_context = 8192,
    },
    {
        .name = "llama3-tiny",
        .dim = 32,
        .layers = 2,
        .heads = 4,
        .kv_heads = 2,
        .head_dim = 8,
        .hidden = 48,
        .vocab = 67,
        .norm_epsilon = 1e-5,
        .rope_theta = 500000,
        .rope_factor = 8,
        .rope_low = 1,
        .rope_high = 4,
        .rope_context = 8192,
    },
};

#define PRESETS (sizeof presets / sizeof presets[0])

const llama_config *llama_config_at(int i)
{
    return i >= 0 && (size_t)i < PRESETS ? &presets[i] : NULL;
}

const llama_config *llama_config_named(const char *name)
{
    if (strcmp(name, "llama3_debugmodel") == 0 ||
        strcmp(name, "debugmodel") == 0)
        return &presets[0];
    for (size_t i = 0; i < PRESETS; i++)
        if (strcmp(presets[i].name, name) == 0)
            return &presets[i];
    return NULL;
}

static rdl_status check_rope(const llama_config *c, llama_error *error)
{
    if (!(c->rope_theta > 1))
        return llama_fail(error, RDL_INVALID,
                          "model: rope theta %g is not above 1", c->rope_theta);
    if (c->rope_factor == 1)
        return RDL_OK;
    if (!(c->rope_factor > 0) || !(c->rope_low > 0) ||
        !(c->rope_high > c->rope_low) || c->rope_context < 1)
        return llama_fail(
            error, RDL_INVALID,
            "model: rope scaling by %g wants 0 < low < high and a context, and "
            "has low %g, high %g, context %d",
            c->rope_factor, c->rope_low, c->rope_high, c->rope_context);
    return RDL_OK;
}

rdl_status llama_config_check(const llama_config *c, llama_error *error)
{
    const struct {
        const char *name;
        int value;
    } sizes[] = {
        { "dim", c->dim },           { "layers", c->layers },
        { "heads", c->heads },       { "kv_heads", c->kv_heads },
        { "head_dim", c->head_dim }, { "hidden", c->hidden },
        { "vocab", c->vocab },
    };

    /* So that products of two sizes fit the integers of a BLAS. */
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (sizes[i].value < 1 || sizes[i].value > 1 << 20)
            return llama_fail(error, RDL_INVALID,
                              "model: %s is %d and must be 1..%d",
                              sizes[i].name, sizes[i].value, 1 << 20);
    if (c->heads % c->kv_heads != 0)
        return llama_fail(error, RDL_INVALID,
                          "model: %d kv_heads do not divide %d heads",
                          c->kv_heads, c->heads);
    if (c->head_dim % 2 != 0)
        return llama_fail(error, RDL_INVALID,
                          "model: head_dim %d is odd, and turns in pairs",
                          c->head_dim);
    if (c->heads > INT_MAX / 2 / c->head_dim)
        return llama_fail(error, RDL_INVALID,
                          "model: %d heads of %d are too wide", c->heads,
                          c->head_dim);
    if (!(c->norm_epsilon >= 0))
        return llama_fail(error, RDL_INVALID,
                          "model: norm_epsilon %g is negative", c->norm_epsilon);
    return check_rope(c, error);
}

static uint64_t layer_parameters(const llama_config *c)
{
    uint64_t dim = (uint64_t)c->dim, head = (uint64_t)c->head_dim;
    uint64_t q = dim * (uint64_t)c->heads * head;
    uint64_t kv = dim * (uint64_t)c->kv_heads * head;

    return 2 * q + 2 * kv + 3 * dim * (uint64_t)c->hidden + 2 * dim;
}

uint64_t llama_parameter_count(const llama_config *c)
{
    uint64_t dim = (uint64_t)c->dim;

    return 2 * (uint64_t)c->vocab * dim +
           (uint64_t)c->layers * layer_parameters(c) + dim;
}

uint64_t llama_flops_per_token(const llama_config *c, size_t length)
{
    uint64_t embedding = (uint64_t)c->vocab * (uint64_t)c->dim;
    uint64_t attention = (uint64_t)c->layers * (uint64_t)c->heads * 2 *
                         (uint64_t)c->head_dim * length;

    return 6 * (llama_parameter_count(c) - embedding) + 6 * attention;
}

float llama_rope_frequency(const llama_config *c, int i)
{
    double pi = 3.14159265358979323846;
    double f = pow(c->rope_theta, -2.0 * i / c->head_dim);
    double wave = 2 * pi / f;
    double between;

    if (c->rope_factor == 1 || wave < c->rope_context / c->rope_high)
        return (float)f;
    if (wave > c->rope_context / c->rope_low)
        return (float)(f / c->rope_factor);
    between =
        (c->rope_context / wave - c->rope_low) / (c->rope_high - c->rope_low);
    return (float)((1 - between) * f / c->rope_factor + between * f);
}
