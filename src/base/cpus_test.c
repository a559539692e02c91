/* Sets of processors. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/cpus.h"

#include "base/fault.h"
#include "support/test.h"

#include <stdio.h>

/* The set as a list again. */
static const char *listed(rdl_cpus cpus, char text[256])
{
    int length = 0;

    text[0] = 0;
    for (int cpu = rdl_cpus_next(&cpus, 0); cpu >= 0;
         cpu = rdl_cpus_next(&cpus, cpu + 1))
        length += snprintf(text + length, 256 - (size_t)length, "%s%d",
                           length == 0 ? "" : " ", cpu);
    return text;
}

RDL_TEST(a_list_is_numbers_and_ranges)
{
    char text[256];

    CHECK_TEXT(listed(rdl_cpus_parse("0-3,8,10-11\n"), text),
               "0 1 2 3 8 10 11");
    CHECK_TEXT(listed(rdl_cpus_parse("1023-1025,8191\n"), text),
               "1023 1024 1025 8191");
    CHECK_TEXT(listed(rdl_cpus_parse("0"), text), "0");
    CHECK_TEXT(listed(rdl_cpus_parse("\n"), text), "");
}

RDL_TEST(what_is_no_list_is_read_as_far_as_it_is_one)
{
    rdl_cpus all = rdl_cpus_parse("0-18446744073709551615");
    char text[256];

    CHECK_INT(rdl_cpus_count(&all), RDL_CPUS_MOST);
    CHECK_TEXT(listed(rdl_cpus_parse(""), text), "");
    CHECK_TEXT(listed(rdl_cpus_parse("all"), text), "");
    CHECK_TEXT(listed(rdl_cpus_parse("-1"), text), "");
    CHECK_TEXT(listed(rdl_cpus_parse("3-1,7"), text), "7");
    CHECK_TEXT(listed(rdl_cpus_parse("2-,5"), text), "2");
    CHECK_TEXT(listed(rdl_cpus_parse("2,x,5"), text), "2");
    CHECK_TEXT(listed(rdl_cpus_parse("1,8192,99999999999999999999"), text), "1");
}

RDL_TEST(sets_are_cut_with_each_other)
{
    rdl_cpus a = rdl_cpus_parse("0-5,2000");
    rdl_cpus b = rdl_cpus_parse("4-9,2000");
    rdl_cpus kept = a;
    char text[256];

    rdl_cpus_keep(&kept, &b);
    CHECK_TEXT(listed(kept, text), "4 5 2000");
    rdl_cpus_remove(&a, &b);
    CHECK_TEXT(listed(a, text), "0 1 2 3");
    CHECK(rdl_cpus_has(&b, 2000) && !rdl_cpus_has(&a, 2000));
    rdl_cpus_add(&a, 7000);
    CHECK_INT(rdl_cpus_count(&a), 5);
}

RDL_TEST(the_allowed_ones_are_those_of_the_thread)
{
    rdl_cpus before = rdl_cpus_allowed();
    rdl_cpus one = { 0 };
    rdl_cpus now;

    CHECK(rdl_cpus_count(&before) >= 1);
    rdl_cpus_add(&one, rdl_cpus_next(&before, 0));
    CHECK_INT(sched_setaffinity(0, sizeof one.parts, one.parts), 0);
    now = rdl_cpus_allowed();
    CHECK_INT(rdl_cpus_count(&now), 1);
    CHECK_INT(rdl_cpus_next(&now, 0), rdl_cpus_next(&before, 0));
}

#ifdef RDL_FAULTS
RDL_TEST(if_they_cannot_be_known_there_are_none)
{
    rdl_fault plan = { .os_at = 1 };
    rdl_cpus cpus;

    rdl_fault_use(&plan);
    cpus = rdl_cpus_allowed();
    rdl_fault_use(NULL);
    CHECK_INT(rdl_cpus_count(&cpus), 0);
}
#endif
