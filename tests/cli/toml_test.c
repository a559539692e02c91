/* Files of settings: what is read of TOML, and what is said of the rest. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/test.h"

#include "train/text.h"
#include "train/toml.h"

#include <string.h>

/* "KEY=VALUE" a line, arrays with blanks between their values; or the sentence. */
static const char *read(const char *file, text *out, trouble *t)
{
    toml read;

    *out = (text){ .data = NULL };
    *t = (trouble){ .status = 0 };
    CHECK(text_add(out, "", 0));
    if (!toml_read("file", file, strlen(file), &read, t)) {
        CHECK_INT(read.count, 0);
        CHECK_INT(t->status, 2);
        return t->text;
    }
    CHECK_INT(t->status, 0);
    for (size_t i = 0; i < read.count; i++) {
        const toml_entry *e = &read.entries[i];

        if (e->kind == TOML_TABLE)
            continue;
        text_print(out, "%s%s", e->key, e->is_array ? "[]=" : "=");
        for (size_t v = 0; v < e->count; v++)
            text_print(out, "%s%s", v > 0 ? " " : "", e->values[v]);
        text_print(out, ":%d:%s\n", e->line, toml_kind_text(e->kind));
    }
    toml_free(&read);
    return out->data;
}

#define CHECK_READ(file, expected)                                             \
    do {                                                                       \
        text out_;                                                             \
        trouble t_;                                                            \
                                                                               \
        CHECK_TEXT(read(file, &out_, &t_), expected);                          \
        text_free(&out_);                                                      \
    } while (0)

RDL_TEST(values_of_every_kind_are_read)
{
    CHECK_READ("", "");
    CHECK_READ("# nothing", "");
    CHECK_READ("a = 1", "a=1:1:an integer\n");
    CHECK_READ("a=-1_000\nb = +7\nc = 0", "a=-1000:1:an integer\n"
                                          "b=7:2:an integer\n"
                                          "c=0:3:an integer\n");
    CHECK_READ("a = 0xff\nb = 0o17\nc = 0b1_01", "a=255:1:an integer\n"
                                                 "b=15:2:an integer\n"
                                                 "c=5:3:an integer\n");
    CHECK_READ("a = 8e-4\nb = 1.5\nc = -1_0.2_5E+3\nd = inf",
               "a=8e-4:1:a number\nb=1.5:2:a number\n"
               "c=-10.25E+3:3:a number\nd=inf:4:a number\n");
    CHECK_READ("a = true # yes\nb = false",
               "a=true:1:true or false\nb=false:2:true or false\n");
    CHECK_READ("a = \"x # y\"\nb = 'C:\\x'\nc = ''", "a=x # y:1:a string\n"
                                                     "b=C:\\x:2:a string\n"
                                                     "c=:3:a string\n");
    CHECK_READ("a = \"\\\"\\\\\\u00e9\\U0001F600\\u20aC\"",
               "a=\"\\\xc3\xa9\xf0\x9f\x98\x80\xe2\x82\xac:1:a string\n");
    CHECK_READ("a = -9223372036854775808", "a=-9223372036854775808:1:an "
                                           "integer\n");
}

RDL_TEST(tables_and_dotted_keys_make_one_name)
{
    CHECK_READ("a = 1\n[t]\na = 2\nb.c = 3\n[ t . u ]\n\"d e\" = 4\n'f'.g=5",
               "a=1:1:an integer\nt.a=2:3:an integer\nt.b.c=3:4:an integer\n"
               "t.u.d e=4:6:an integer\nt.u.f.g=5:7:an integer\n");
    CHECK_READ("[a.b]\n[a]\nc = 1", "a.c=1:3:an integer\n");
}

RDL_TEST(arrays_may_span_lines)
{
    CHECK_READ("a = []", "a[]=:1:a string\n");
    CHECK_READ("a = [ \"x\", 'y' ]", "a[]=x y:1:a string\n");
    CHECK_READ("a = [ # first\n  1,\n\n  2, # second\n]\nb = 3",
               "a[]=1 2:1:an integer\nb=3:6:an integer\n");
}

RDL_TEST(ends_of_lines_may_be_those_of_windows)
{
    CHECK_READ("\xef\xbb\xbf"
               "a = 1\r\n# x\r\n\r\nb = [1,\r\n2]\r\n",
               "a=1:1:an integer\nb[]=1 2:4:an integer\n");
}

RDL_TEST(what_is_wrong_is_said_with_its_line)
{
    CHECK_READ("a = 1\nb", "file, line 2: a key wants '=' behind it, and here "
                           "is the end of the file");
    CHECK_READ("a = 1\n\n= 2", "file, line 3: a key begins with a letter, a "
                               "digit, '_', '-' or a quote, and here is '='");
    CHECK_READ("a = \n", "file, line 1: a value should stand here, and here is "
                         "the end of the line");
    CHECK_READ("a = 1 2", "file, line 1: the line should end here, and here is "
                          "'2'");
    CHECK_READ("[a\n", "file, line 1: the name of a table ends with ']', and "
                       "here is the end of the line");
    CHECK_READ("a = \"x\ny\"", "file, line 1: a string ends with \", and here "
                               "is the end of the line");
    CHECK_READ("a = \"\\q\"",
               "file, line 1: a backslash in a string is followed "
               "by one of btnfr\"\\uU, and here is 'q'; '...' "
               "takes backslashes as they are");
    CHECK_READ("a = \"\\u00g0\"",
               "file, line 1: \\u wants 4 hexadecimal digits, "
               "and here is 'g'");
    CHECK_READ("a = \"\\ud800\"", "file, line 1: 0xd800 is no character that a "
                                  "string may hold");
    CHECK_READ("a = llama", "file, line 1: 'llama' is no value; strings want "
                            "quotes");
    CHECK_READ("a = 010",
               "file, line 1: '010' is no value; strings want quotes");
    CHECK_READ("a = 1__0", "file, line 1: '1__0' is no value; strings want "
                           "quotes");
    CHECK_READ("a = 1.", "file, line 1: '1.' is no value; strings want quotes");
    CHECK_READ("a = 9223372036854775808",
               "file, line 1: 9223372036854775808 is "
               "beyond the integers of 64 bits");
    CHECK_READ("a = [1, \"x\"]",
               "file, line 1: an array has values of one kind "
               "here, and this one begins with an integer "
               "and has a string");
    CHECK_READ("a = [1\n2]", "file, line 2: an array goes on with ',' or ends "
                             "with ']', and here is '2'");
    CHECK_READ("a = [1,",
               "file, line 1: a value should stand here, and here is "
               "the end of the file");
    CHECK_READ("\na = \x01", "file, line 2: the control character 0x01 stands "
                             "here");
    CHECK_READ("a = '\xff'", "file, line 1: 0xff begins no character of UTF-8");
    CHECK_READ("a = 1\rb = 2",
               "file, line 1: the control character 0x0d stands "
               "here");
}

RDL_TEST(what_is_not_read_is_refused_by_name)
{
    CHECK_READ("a = 1979-05-27",
               "file, line 1: dates and times (1979-05-27) are "
               "not read here");
    CHECK_READ("a = 07:32:00",
               "file, line 1: dates and times (07:32:00) are not "
               "read here");
    CHECK_READ("a = {b = 1}", "file, line 1: inline tables ('{') are not read "
                              "here");
    CHECK_READ("a = [[1]]", "file, line 1: arrays in arrays are not read here");
    CHECK_READ("[[a]]", "file, line 1: arrays of tables ('[[') are not read "
                        "here");
    CHECK_READ("a = \"\"\"x\"\"\"", "file, line 1: strings over several lines "
                                    "(\"\"\") are not read here");
}

RDL_TEST(a_key_is_set_once)
{
    CHECK_READ("a = 1\nb = 2\na = 3",
               "file, line 3: 'a' has been set before, in "
               "line 1");
    CHECK_READ("[a]\n[b]\n[a]",
               "file, line 3: 'a' has been set before, in line "
               "1");
    CHECK_READ("a.b = 1\n[a]\nb = 2",
               "file, line 3: 'a.b' has been set before, "
               "in line 1");
    CHECK_READ("a-b = 1\na.b = 2\na = 3", "file, line 3: 'a' is both a value "
                                          "(line 3) and a table of 'a.b' (line "
                                          "2)");
}

RDL_TEST(a_file_may_not_be_endless)
{
    static char file[TOML_MOST_BYTES + 1];
    trouble t = { .status = 0 };
    toml read;

    memset(file, '\n', sizeof file);
    CHECK(!toml_read("file", file, sizeof file, &read, &t));
    CHECK_HAS(t.text, "1048577 bytes");
    t = (trouble){ .status = 0 };
    CHECK(toml_read("file", file, sizeof file - 1, &read, &t));
    toml_free(&read);
}
