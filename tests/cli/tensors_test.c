/* Files of tensors: whole, or not there. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/test.h"

#include "train/tensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void enter_folder(void)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/tensors_test.XXXXXX", rdl_test_temp());
    CHECK(mkdtemp(path) != NULL);
    CHECK(chdir(path) == 0);
}

static void leave_folder(void)
{
    char here[4096];

    CHECK(getcwd(here, sizeof here) != NULL);
    CHECK(chdir("/") == 0);
    CHECK(rmdir(here) == 0); /* so nothing else was left in it */
}

static const tensor pair[] = {
    { "a.weight", TENSOR_F32, 2, { 2, 3 } },
    { "b", TENSOR_I32, 1, { 2 } },
};
static const float values[] = { 1, 2, 3, 4, 5, 6 };
static const int32_t numbers[] = { 7, -8 };

RDL_TEST(a_file_is_a_header_and_data)
{
    static const char header[] =
        "{\"__metadata__\": {\"format\": \"pt\"}, \"a.weight\": {\"dtype\": "
        "\"F32\", \"shape\": [2, 3], \"data_offsets\": [0, 24]}, \"b\": "
        "{\"dtype\": \"I32\", \"shape\": [2], \"data_offsets\": [24, 32]}}";
    const unsigned char *expected = (const unsigned char *)values;
    trouble t = { .status = 0 };
    unsigned char bytes[4096];
    tensor_file *f;
    uint64_t length;
    size_t n;
    FILE *from;

    enter_folder();
    CHECK(tensor_file_create(".", "x", pair, 2, &f, &t));
    CHECK(tensor_file_write(f, values, sizeof values, &t));
    CHECK(tensor_file_write(f, numbers, sizeof numbers, &t));
    CHECK(tensor_file_finish(f, &t));
    from = fopen("x", "r");
    CHECK(from != NULL);
    n = fread(bytes, 1, sizeof bytes, from);
    fclose(from);
    memcpy(&length, bytes, sizeof length);
    CHECK_INT(length % 8, 0);
    CHECK_INT(n, 8 + length + sizeof values + sizeof numbers);
    CHECK(length >= strlen(header) && length < strlen(header) + 8);
    CHECK(memcmp(bytes + 8, header, strlen(header)) == 0);
    CHECK(memcmp(bytes + 8 + length, expected, sizeof values) == 0);
    CHECK(memcmp(bytes + 8 + length + sizeof values, numbers, sizeof numbers) ==
          0);
    CHECK(unlink("x") == 0);
    leave_folder();
}

RDL_TEST(what_is_not_finished_leaves_nothing)
{
    trouble t = { .status = 0 };
    tensor_file *f;

    enter_folder();
    CHECK(tensor_file_create(".", "x", pair, 2, &f, &t));
    CHECK(tensor_file_write(f, values, sizeof values, &t));
    tensor_file_drop(f);
    CHECK(tensor_file_create(".", "x", pair, 2, &f, &t));
    CHECK(tensor_file_write(f, values, sizeof values, &t));
    CHECK(!tensor_file_finish(f, &t));
    CHECK_TEXT(t.text, "'./x' is 8 bytes short");
    leave_folder();
}

RDL_TEST(a_finished_file_replaces_an_older_one)
{
    trouble t = { .status = 0 };
    tensor_file *f;

    enter_folder();
    for (int i = 0; i < 2; i++) {
        CHECK(tensor_file_create(".", "x", pair, 2, &f, &t));
        CHECK(tensor_file_write(f, values, sizeof values, &t));
        CHECK(tensor_file_write(f, numbers, sizeof numbers, &t));
        CHECK(tensor_file_finish(f, &t));
    }
    CHECK(unlink("x") == 0);
    leave_folder();
}

RDL_TEST(folders_are_made_and_checked)
{
    trouble t = { .status = 0 };

    enter_folder();
    CHECK(tensor_folder_check("new", &t));
    CHECK(tensor_folder_check("new", &t));
    CHECK(rmdir("new") == 0);
    CHECK(!tensor_folder_check("no/where", &t));
    CHECK_TEXT(t.text, "cannot make the folder 'no/where': No such file or "
                       "directory");
    t = (trouble){ .status = 0 };
    CHECK(!tensor_folder_check("/dev/null", &t));
    CHECK_TEXT(t.text, "'/dev/null' is not a folder");
    leave_folder();
}
