/* Counting what a process has. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/left.h"

#include <stdio.h>
#include <string.h>

static long mapped_kib(void)
{
    FILE *f = fopen("/proc/self/smaps", "r");
    bool arena = false;
    char line[512];
    long sum = 0, kib = 0;

    CHECK(f != NULL);
    while (fgets(line, sizeof line, f) != NULL) {
        if (strstr(line, "memfd:raddle") != NULL)
            arena = true;
        sscanf(line, "Size: %ld kB", &kib);
        if (strncmp(line, "VmFlags:", 8) != 0)
            continue;
        if (arena || strstr(line, " wf") != NULL)
            sum += kib;
        arena = false;
    }
    fclose(f);
    return sum;
}

rdl_test_left rdl_test_left_now(void)
{
    return (rdl_test_left){ .descriptors = rdl_test_descriptors(),
                            .mapped_kib = mapped_kib() };
}

void rdl_test_nothing_left(const rdl_test_left *before)
{
    rdl_test_left now = rdl_test_left_now();

    CHECK_INT(now.descriptors, before->descriptors);
    CHECK_INT(now.mapped_kib, before->mapped_kib);
}
