/* 16-bit floating point against a reference that knows no bits: tests/support. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/half.h"

#include "support/test.h"
#include "support/values.h"

#include <math.h>

typedef struct half {
    rdl_dtype dtype;
    uint16_t infinity;
    float (*widen)(uint16_t x);
    uint16_t (*narrow)(float x);
} half;

static const half halves[] = {
    { RDL_FLOAT16, RDL_FLOAT16_INFINITY, rdl_float16_widen, rdl_float16_narrow },
    { RDL_BFLOAT16, RDL_BFLOAT16_INFINITY, rdl_bfloat16_widen,
      rdl_bfloat16_narrow },
};

static void check_narrow(const half *h, uint32_t bits)
{
    float x = rdl_float32_from_bits(bits);
    uint16_t expected;

    rdl_test_put(&expected, h->dtype, (double)x);
    if (h->narrow(x) != expected)
        RDL_TEST_FAIL("%s of %a (bits %08x): %04x, not %04x",
                      rdl_test_dtype_name(h->dtype), (double)x, bits,
                      h->narrow(x), expected);
}

RDL_TEST(every_16_bit_float_is_the_number_that_it_stands_for)
{
    for (int i = 0; i < 2; i++)
        for (int bits = 0; bits <= UINT16_MAX; bits++) {
            const half *h = &halves[i];
            uint16_t x = (uint16_t)bits;
            double wide = (double)h->widen(x);
            double expected = rdl_test_get(&x, h->dtype);

            CHECK_NEAR(wide, expected, 0);
            CHECK((signbit(wide) != 0) == (bits >> 15) || isnan(wide));
            CHECK_INT(isnan(wide) != 0, (bits & 0x7fff) > h->infinity);
            CHECK_INT(h->narrow(h->widen(x)), isnan(wide) ? 0xffff : bits);
        }
}

/* Around each number, and around the middle between it and the next. */
RDL_TEST(narrowing_is_to_nearest_and_of_two_to_the_even)
{
    for (int i = 0; i < 2; i++)
        for (int bits = 0; bits <= UINT16_MAX; bits++) {
            const half *h = &halves[i];
            float x = h->widen((uint16_t)bits);
            float next = h->widen((uint16_t)(bits + 1));
            uint32_t at = rdl_float32_bits(x);
            uint32_t middle =
                rdl_float32_bits((float)(((double)x + (double)next) / 2));

            for (uint32_t d = 0; d < 5; d++) {
                check_narrow(h, at + d - 2);
                check_narrow(h, middle + d - 2);
            }
        }
}

RDL_TEST(narrowing_equals_the_reference)
{
    uint64_t state = rdl_test_seed();

    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 300000; k++)
            check_narrow(&halves[i], (uint32_t)rdl_test_random(&state));
}

/* Every 11th, with a seed that says where to begin. */
RDL_TEST(narrowing_equals_the_reference_wherever_one_looks)
{
    if (!rdl_test_soak())
        SKIP("400 million numbers are for RADDLE_SOAK=1");
    for (int i = 0; i < 2; i++)
        for (uint64_t bits = rdl_test_seed() % 11; bits <= UINT32_MAX;
             bits += 11)
            check_narrow(&halves[i], (uint32_t)bits);
}

RDL_TEST(known_16_bit_floats_have_their_bits)
{
    CHECK_INT(rdl_float16_narrow(1.0f), 0x3c00);
    CHECK_INT(rdl_float16_narrow(-2.0f), 0xc000);
    CHECK_INT(rdl_float16_narrow(60000.0f), 0x7b53);
    CHECK_INT(rdl_float16_narrow(65519.996f), 0x7bff);
    CHECK_INT(rdl_float16_narrow(65520.0f), 0x7c00);
    CHECK_INT(rdl_float16_narrow(INFINITY), 0x7c00);
    CHECK_INT(rdl_float16_narrow(0x1p-24f), 0x0001);
    CHECK_INT(rdl_float16_narrow(0x1p-25f), 0x0000);
    CHECK_INT(rdl_float16_narrow(0x1.8p-24f), 0x0002);
    CHECK_INT(rdl_float16_narrow(-0x1.ffep-15f), 0x8400);
    CHECK_INT(rdl_float16_narrow(-0.0f), 0x8000);
    CHECK_INT(rdl_bfloat16_narrow(1.0f), 0x3f80);
    CHECK_INT(rdl_bfloat16_narrow(263.0f), 0x4384);
    CHECK_INT(rdl_bfloat16_narrow(257.0f), 0x4380);
    CHECK_INT(rdl_bfloat16_narrow(3.4e38f), 0x7f80);
    CHECK_INT(rdl_bfloat16_narrow(-0x1p-149f), 0x8000);
    CHECK_INT(rdl_bfloat16_narrow(0x1.8p-133f), 0x0002);
    CHECK(rdl_float16_widen(0x34cd) == 0.300048828125f);
    CHECK(rdl_bfloat16_widen(0x3e9a) == 0.30078125f);
}
