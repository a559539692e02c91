/* Ghosts against an array. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/ghosts.h"

#include "base/fault.h"
#include "support/test.h"

#define MOST ((UINT64_C(1) << 40) - 1)

static rdl_key key_of(uint64_t i)
{
    return (rdl_key){ rdl_hash_bytes(1, &i, sizeof i),
                      rdl_hash_bytes(2, &i, sizeof i) | 2 };
}

static void check(const rdl_ghosts *ghosts, uint64_t i, uint64_t sequence,
                  uint64_t number)
{
    rdl_ghost g = { 0 };

    CHECK(rdl_ghosts_get(ghosts, key_of(i), &g));
    CHECK_INT(g.sequence, sequence);
    CHECK_INT(g.number, number);
}

RDL_TEST(of_none_there_is_none)
{
    rdl_ghosts ghosts = { 0 };
    rdl_ghost g;

    CHECK(!rdl_ghosts_get(&ghosts, key_of(1), &g));
    rdl_ghosts_fini(&ghosts);
}

RDL_TEST(what_was_put_last_is_there_with_all_its_bits)
{
    rdl_ghosts ghosts = { 0 };

    CHECK_OK(rdl_ghosts_put(&ghosts, key_of(1), (rdl_ghost){ MOST, 1 }));
    CHECK_OK(rdl_ghosts_put(&ghosts, key_of(2), (rdl_ghost){ 1, MOST }));
    check(&ghosts, 1, MOST, 1);
    check(&ghosts, 2, 1, MOST);
    CHECK_OK(rdl_ghosts_put(&ghosts, key_of(1),
                            (rdl_ghost){ 0x1234567890, 0x0987654321 }));
    check(&ghosts, 1, 0x1234567890, 0x0987654321);
    check(&ghosts, 2, 1, MOST);
    rdl_ghosts_fini(&ghosts);
}

RDL_TEST(keys_that_share_one_half_are_told_apart)
{
    rdl_ghosts ghosts = { 0 };
    rdl_ghost g;

    for (uint64_t i = 0; i < 100; i++)
        CHECK_OK(rdl_ghosts_put(&ghosts, (rdl_key){ 7, i << 2 | 2 },
                                (rdl_ghost){ i, 2 * i }));
    for (uint64_t i = 0; i < 100; i++) {
        CHECK(rdl_ghosts_get(&ghosts, (rdl_key){ 7, i << 2 | 2 }, &g));
        CHECK_INT(g.sequence, i);
        CHECK_INT(g.number, 2 * i);
    }
    CHECK(!rdl_ghosts_get(&ghosts, (rdl_key){ 7, 1 }, &g));
    rdl_ghosts_fini(&ghosts);
}

RDL_TEST(a_hundred_thousand_take_less_than_32_bytes_each)
{
    enum { N = 100000 };
    rdl_purse purse = { 0 };
    rdl_ghosts ghosts = { .purse = &purse };

    for (uint64_t i = 0; i < N; i++)
        CHECK_OK(rdl_ghosts_put(&ghosts, key_of(i), (rdl_ghost){ i, i / 2 }));
    for (uint64_t i = 0; i < N; i++)
        check(&ghosts, i, i, i / 2);
    CHECK(rdl_purse_bytes(&purse) <= 32 * N);
    rdl_ghosts_fini(&ghosts);
    CHECK_INT(rdl_purse_bytes(&purse), 0);
}

#ifdef RDL_FAULTS
RDL_TEST(without_memory_they_stay_as_they_were)
{
    rdl_fault refuse = { .memory_at = 1, .onward = true };
    rdl_ghosts ghosts = { 0 };
    rdl_ghost g;
    uint64_t i = 0;

    rdl_fault_use(&refuse);
    CHECK_STATUS(rdl_ghosts_put(&ghosts, key_of(0), (rdl_ghost){ 1, 1 }),
                 RDL_NO_MEMORY);
    rdl_fault_use(NULL);
    CHECK_OK(rdl_ghosts_put(&ghosts, key_of(0), (rdl_ghost){ 1, 1 }));
    rdl_fault_use(&refuse);
    while (rdl_ghosts_put(&ghosts, key_of(++i), (rdl_ghost){ 2, 2 }) == RDL_OK)
        continue;
    rdl_fault_use(NULL);
    CHECK(!rdl_ghosts_get(&ghosts, key_of(i), &g));
    check(&ghosts, 0, 1, 1);
    rdl_ghosts_fini(&ghosts);
}
#endif
