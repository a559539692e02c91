/* First values. Each element's is a function of the seed, the parameter's name and
 * the element's place in the whole parameter, so that a rank can make its rows
 * alone and the layout does not matter. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "llama/model.h"

#include <math.h>

/* Every bit of x reaches every bit of the result: two rounds of multiplying by an
 * odd constant and folding. */
static uint64_t mix(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93;
    return x ^ x >> 32;
}

static uint64_t key_of(uint64_t seed, const char *name)
{
    uint64_t key = mix(seed + 0x9e3779b97f4a7c15);

    for (; *name != 0; name++)
        key = mix(key ^ (unsigned char)*name) + 0x9e3779b97f4a7c15;
    return key;
}

/* Normal, deviation 1, from two uniform numbers of one element. try: drawn again
 * that often. */
static double normal(uint64_t key, uint64_t element, uint64_t try)
{
    uint64_t bits = mix(key ^ mix(element * 64 + try));
    double radius = ((double)(bits >> 32) + 0.5) / 4294967296.0;
    double angle = (double)(uint32_t)bits / 4294967296.0;

    return sqrt(-2 * log(radius)) * cos(2 * 3.14159265358979323846 * angle);
}

static float draw(const llama_spread *spread, uint64_t key, uint64_t element)
{
    double x = 0;

    if (spread->deviation == 0)
        return 1;
    /* The loop ends: no cut is below two deviations. */
    for (uint64_t try = 0; try < 64; try++) {
        x = normal(key, element, try) * spread->deviation;
        if (spread->cut == 0 || fabs(x) <= spread->cut)
            break;
    }
    return (float)x;
}

void llama_fill(llama *m)
{
    for (int i = 0; i < m->slot_count; i++) {
        const llama_slot *slot = &m->slots[i];
        uint64_t key = key_of(m->o.seed, slot->name);
        llama_parameter p;
        uint64_t first;

        llama_parameter_at(m, i, &p);
        first = (uint64_t)p.first_row * p.columns;
        for (size_t at = 0; at < p.rows * p.columns; at++)
            p.values[at] = draw(&slot->spread, key, first + at);
    }
}
