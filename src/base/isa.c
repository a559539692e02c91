/* Asking the processor. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/isa.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

static const char *const names[RDL_ISAS] = {
    [RDL_ISA_BASE] = "base",
    [RDL_ISA_AVX2] = "avx2",
    [RDL_ISA_AVX512] = "avx512",
};

const char *rdl_isa_name(rdl_isa isa)
{
    return names[isa];
}

#if defined(__x86_64__)
/* Not every compiler's __builtin_cpu_supports knows the name. */
static bool has_f16c(void)
{
    unsigned a, b, c, d;

    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

/* The builtin also asks whether the system saves the registers. */
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && has_f16c();
}

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}

bool rdl_isa_runs(rdl_isa isa)
{
    __builtin_cpu_init();
    return isa == RDL_ISA_BASE ||
           (has_avx2() && (isa == RDL_ISA_AVX2 || has_avx512()));
}
#else
bool rdl_isa_runs(rdl_isa isa)
{
    return isa == RDL_ISA_BASE;
}
#endif

rdl_isa rdl_isa_best(void)
{
    rdl_isa best = RDL_ISA_BASE;

    for (rdl_isa isa = RDL_ISA_BASE; isa < RDL_ISAS; isa++)
        if (rdl_isa_runs(isa))
            best = isa;
    return best;
}

rdl_status rdl_isa_find(const char *name, rdl_isa *out)
{
    for (rdl_isa isa = RDL_ISA_BASE; isa < RDL_ISAS; isa++) {
        if (strcmp(name, names[isa]) != 0)
            continue;
        if (!rdl_isa_runs(isa))
            return rdl_fail(RDL_UNSUPPORTED,
                            "this processor has no %s: %s is its widest", name,
                            names[rdl_isa_best()]);
        *out = isa;
        return RDL_OK;
    }
    return rdl_fail(RDL_INVALID, "'%.64s' is none of base, avx2, avx512", name);
}
