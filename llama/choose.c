/* Which of the tables of kernels this processor can run. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "llama/kernels.h"

#if defined(__x86_64__)
extern const llama_kernels llama_kernels_avx512;
extern const llama_kernels llama_kernels_avx2;
#endif
extern const llama_kernels llama_kernels_base;

typedef struct choice {
    const llama_kernels *table;
    bool possible;
} choice;

const llama_kernels *llama_kernels_at(int i)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
#endif
    const choice choices[] = {
#if defined(__x86_64__)
        { &llama_kernels_avx512, __builtin_cpu_supports("avx512f") &&
                                     __builtin_cpu_supports("avx512bw") &&
                                     __builtin_cpu_supports("avx512dq") &&
                                     __builtin_cpu_supports("avx512vl") },
        { &llama_kernels_avx2, __builtin_cpu_supports("avx2") },
#endif
        { &llama_kernels_base, true },
    };

    for (size_t at = 0; at < sizeof choices / sizeof choices[0]; at++)
        if (choices[at].possible && i-- == 0)
            return choices[at].table;
    return NULL;
}
