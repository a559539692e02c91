/* Sets of processors. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/cpus.h"

#include "base/fault.h"
#include "base/text_file.h"

#define PARTS (RDL_CPUS_MOST / CPU_SETSIZE)

static size_t bit(int cpu)
{
    return (size_t)cpu % CPU_SETSIZE;
}

void rdl_cpus_add(rdl_cpus *cpus, int cpu)
{
    CPU_SET(bit(cpu), &cpus->parts[cpu / CPU_SETSIZE]);
}

void rdl_cpus_remove(rdl_cpus *cpus, const rdl_cpus *others)
{
    for (int i = 0; i < PARTS; i++) {
        cpu_set_t both;

        CPU_AND(&both, &cpus->parts[i], &others->parts[i]);
        CPU_XOR(&cpus->parts[i], &cpus->parts[i], &both);
    }
}

void rdl_cpus_join(rdl_cpus *cpus, const rdl_cpus *others)
{
    for (int i = 0; i < PARTS; i++)
        CPU_OR(&cpus->parts[i], &cpus->parts[i], &others->parts[i]);
}

void rdl_cpus_keep(rdl_cpus *cpus, const rdl_cpus *others)
{
    for (int i = 0; i < PARTS; i++)
        CPU_AND(&cpus->parts[i], &cpus->parts[i], &others->parts[i]);
}

bool rdl_cpus_has(const rdl_cpus *cpus, int cpu)
{
    return CPU_ISSET(bit(cpu), &cpus->parts[cpu / CPU_SETSIZE]) != 0;
}

int rdl_cpus_count(const rdl_cpus *cpus)
{
    int count = 0;

    for (int i = 0; i < PARTS; i++)
        count += CPU_COUNT(&cpus->parts[i]);
    return count;
}

int rdl_cpus_next(const rdl_cpus *cpus, int cpu)
{
    for (; cpu < RDL_CPUS_MOST; cpu++)
        if (rdl_cpus_has(cpus, cpu))
            return cpu;
    return -1;
}

rdl_cpus rdl_cpus_parse(const char *text)
{
    rdl_cpus cpus = { 0 };

    for (;;) {
        uint64_t first;
        uint64_t last;

        text = rdl_parse_number(text, &first);
        if (text == NULL)
            return cpus;
        last = first;
        if (*text == '-')
            text = rdl_parse_number(text + 1, &last);
        for (; first <= last && first < RDL_CPUS_MOST; first++)
            rdl_cpus_add(&cpus, (int)first);
        if (text == NULL || *text != ',')
            return cpus;
        text++;
    }
}

rdl_cpus rdl_cpus_allowed(void)
{
    rdl_cpus cpus = { 0 };

    if (rdl_fault_os() ||
        sched_getaffinity(0, sizeof cpus.parts, cpus.parts) != 0)
        return (rdl_cpus){ 0 };
    return cpus;
}

void rdl_cpus_move(const rdl_cpus *allowed, int cpu)
{
    rdl_cpus there = { 0 };

    rdl_cpus_add(&there, cpu);
    if (sched_setaffinity(0, sizeof there.parts, there.parts) == 0)
        (void)sched_setaffinity(0, sizeof allowed->parts, allowed->parts);
}
