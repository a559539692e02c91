/* The learning rate: up over the warm-up, level, then down. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "llama/llama.h"

#include <math.h>

llama_schedule llama_schedule_defaults(int steps)
{
    return (llama_schedule){
        .learning_rate = 8e-4,
        .steps = steps,
        .warmup = 2,
        .decay_ratio = 0.8,
        .decay = LLAMA_LINEAR,
    };
}

llama_adamw llama_adamw_defaults(void)
{
    return (llama_adamw){
        .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8, .weight_decay = 0.1
    };
}

/* What is left of the rate at this part (0..1) of the way down. */
static double left_at(llama_decay decay, double part)
{
    if (decay == LLAMA_SQRT)
        return 1 - sqrt(part);
    if (decay == LLAMA_COSINE)
        return 0.5 * (1 + cos(3.14159265358979323846 * part));
    return 1 - part;
}

double llama_learning_rate(const llama_schedule *s, int step)
{
    int warmup = s->warmup < s->steps ? s->warmup : s->steps;
    int down = s->steps - warmup, level;
    double left;

    if (s->decay_ratio >= 0 && s->decay_ratio * s->steps < down)
        down = (int)lround(s->decay_ratio * s->steps);
    /* One more than are left, so that the last step's rate is not 0. */
    level = s->steps + 1 - warmup - down;
    if (step < warmup)
        return s->learning_rate * (step + 1) / warmup;
    if (step < warmup + level || down == 0)
        return s->learning_rate;
    left =
        left_at(s->decay, fmin(1, (double)(step + 1 - warmup - level) / down));
    return s->learning_rate * (s->min_factor + (1 - s->min_factor) * left);
}
