/* Which vectors there are, and their names. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/isa.h"

#include "support/test.h"

RDL_TEST(the_plain_code_always_runs_and_so_does_the_best)
{
    CHECK(rdl_isa_runs(RDL_ISA_BASE));
    CHECK(rdl_isa_runs(rdl_isa_best()));
    for (rdl_isa isa = rdl_isa_best() + 1; isa < RDL_ISAS; isa++)
        CHECK(!rdl_isa_runs(isa));
}

RDL_TEST(what_runs_is_found_by_its_name)
{
    for (rdl_isa isa = RDL_ISA_BASE; isa < RDL_ISAS; isa++) {
        rdl_isa found = RDL_ISAS;

        if (rdl_isa_runs(isa)) {
            CHECK_OK(rdl_isa_find(rdl_isa_name(isa), &found));
            CHECK_INT(found, isa);
        } else {
            CHECK_STATUS(rdl_isa_find(rdl_isa_name(isa), &found),
                         RDL_UNSUPPORTED);
            CHECK_INT(found, RDL_ISAS);
        }
    }
}

RDL_TEST(a_name_that_is_none_is_refused_with_those_that_are)
{
    static const char *const wrong[] = { "", "AVX2", "avx", "avx5121", "0" };

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        rdl_isa found = RDL_ISAS;

        CHECK_STATUS(rdl_isa_find(wrong[i], &found), RDL_INVALID);
        CHECK_INT(found, RDL_ISAS);
    }
    CHECK_STATUS(rdl_isa_find("sse", &(rdl_isa){ 0 }), RDL_INVALID);
    CHECK_TEXT(rdl_error_detail(), "'sse' is none of base, avx2, avx512");
}
