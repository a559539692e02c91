/* Lines of JSON. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/test.h"

#include "train/json.h"

#include <math.h>

RDL_TEST(members_stand_between_commas)
{
    const int64_t shape[] = { 2, 3 };
    text line = { .data = NULL };

    json_open(&line, NULL);
    json_integer(&line, "a", -1);
    json_open(&line, "b");
    json_integers(&line, "c", shape, 2);
    json_integers(&line, "d", shape, 0);
    json_close(&line);
    json_open(&line, "e");
    json_close(&line);
    json_text(&line, "f", "x");
    json_close(&line);
    CHECK_TEXT(line.data,
               "{\"a\": -1, \"b\": {\"c\": [2, 3], \"d\": []}, \"e\": "
               "{}, \"f\": \"x\"}");
    text_free(&line);
}

RDL_TEST(texts_are_escaped)
{
    text line = { .data = NULL };

    json_open(&line, NULL);
    json_text(&line, "a", "\"\\\n\x01\xc3\xa9{");
    json_integer(&line, "b", 1);
    json_close(&line);
    CHECK_TEXT(line.data,
               "{\"a\": \"\\\"\\\\\\u000a\\u0001\xc3\xa9{\", \"b\": 1}");
    text_free(&line);
}

RDL_TEST(numbers_have_the_digits_that_tell_them_apart)
{
    text line = { .data = NULL };

    json_open(&line, NULL);
    json_number(&line, "a", 0.1);
    json_number(&line, "b", 0.1 + 0.2);
    json_number(&line, "c", 8);
    json_number(&line, "d", NAN);
    json_number(&line, "e", -INFINITY);
    json_close(&line);
    CHECK_TEXT(line.data, "{\"a\": 0.1, \"b\": 0.30000000000000004, \"c\": 8, "
                          "\"d\": null, \"e\": null}");
    text_free(&line);
}
