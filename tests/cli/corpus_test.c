/* Documents in files and folders, and rows of their tokens. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/test.h"

#include "train/corpus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A folder of its own for the test, which is the working directory. */
static void enter_folder(void)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/corpus_test.XXXXXX", rdl_test_temp());
    CHECK(mkdtemp(path) != NULL);
    CHECK(chdir(path) == 0);
}

static void leave_folder(void)
{
    char here[4096], command[8192];

    CHECK(getcwd(here, sizeof here) != NULL);
    CHECK(chdir("/") == 0);
    snprintf(command, sizeof command, "rm -rf '%s'", here);
    CHECK(system(command) == 0); /* NOLINT: a path of ours */
}

static void write_bytes(const char *path, const void *bytes, size_t count)
{
    FILE *f = fopen(path, "w");

    CHECK(f != NULL);
    CHECK(fwrite(bytes, 1, count, f) == count);
    CHECK(fclose(f) == 0);
}

static void write_text(const char *path, const char *content)
{
    write_bytes(path, content, strlen(content));
}

/* path may be several, with blanks between them. */
static bool find(corpus *c, const char *typed, const char *type, trouble *t)
{
    char copy[256], *items[16];
    word_list paths = { .items = items };
    corpus_request request = { .paths = &paths,
                               .token_type = type,
                               .vocabulary = 2048 };

    snprintf(copy, sizeof copy, "%s", typed);
    for (char *w = strtok(copy, " "); w != NULL; w = strtok(NULL, " "))
        items[paths.count++] = w;
    *t = (trouble){ .status = 0 };
    return corpus_find(c, &request, t);
}

static void must_find(corpus *c, const char *typed)
{
    trouble t;

    if (!find(c, typed, "auto", &t))
        RDL_TEST_FAIL("%s: %s", typed, t.text);
}

static void check_refused(const char *typed, const char *sentence)
{
    corpus c;
    trouble t;

    CHECK(!find(&c, typed, "auto", &t));
    CHECK_TEXT(t.text, sentence);
    CHECK_INT(t.status, 2);
    corpus_free(&c);
}

/* "2002>97@0 97>98@1 " */
static const char *show_row(corpus *c, int64_t row, int64_t length, char *out,
                            size_t bytes)
{
    int32_t tokens[64], labels[64], positions[64];
    trouble t = { .status = 0 };
    size_t used = 0;

    if (!corpus_read_row(c, row, length, tokens, labels, positions, &t))
        RDL_TEST_FAIL("%s", t.text);
    for (int64_t i = 0; i < length; i++)
        used += (size_t)snprintf(out + used, bytes - used, "%d>%d@%d ",
                                 tokens[i], labels[i], positions[i]);
    return out;
}

#define CHECK_ROW(c, row, length, expected)                                    \
    do {                                                                       \
        char out_[1024];                                                       \
                                                                               \
        CHECK_TEXT(show_row(c, row, length, out_, sizeof out_), expected);     \
    } while (0)

RDL_TEST(documents_are_packed_between_their_marks)
{
    corpus c;

    enter_folder();
    write_text("a", "ab");
    write_text("b", "\xff");
    must_find(&c, "a b");
    CHECK_INT(c.n_documents, 2);
    CHECK_INT(c.tokens, 3 + 2);
    CHECK_ROW(&c, 0, 5, "2002>97@0 97>98@1 98>2003@2 2002>255@0 255>2003@1 ");
    /* A row that begins inside a document counts from there. */
    CHECK_ROW(&c, 0, 2, "2002>97@0 97>98@1 ");
    CHECK_ROW(&c, 1, 2, "98>2003@0 2002>255@0 ");
    /* The fifth token is in no row; counting goes on at the first. */
    CHECK_ROW(&c, 2, 2, "2002>97@0 97>98@1 ");
    CHECK_ROW(&c, 5, 2, "98>2003@0 2002>255@0 ");
    corpus_free(&c);
    leave_folder();
}

RDL_TEST(folders_are_read_in_the_order_of_names)
{
    corpus c;

    enter_folder();
    CHECK(mkdir("f", 0777) == 0 && mkdir("f/b", 0777) == 0);
    CHECK(mkdir("f/.git", 0777) == 0);
    write_text("f/c", "3");
    write_text("f/b/x", "2");
    write_text("f/a", "1");
    write_text("f/.hidden", "4");
    write_text("f/.git/x", "5");
    write_text("f/empty", "");
    write_bytes("f/binary", "x\0y", 3);
    write_text("f/tokens.bin", "xx");
    CHECK(symlink("a", "f/link") == 0);
    CHECK(symlink(".", "f/loop") == 0);
    CHECK(symlink("nowhere", "f/lost") == 0);
    must_find(&c, "f/");
    CHECK_INT(c.n_documents, 4);
    CHECK_INT(c.binary, 2);
    CHECK_INT(c.empty, 1);
    CHECK_INT(c.odd, 2);
    CHECK_ROW(&c, 0, 8,
              "2002>49@0 49>2003@1 2002>50@0 50>2003@1 2002>51@0 51>2003@1 "
              "2002>49@0 49>2003@1 ");
    corpus_free(&c);
    /* Named, a file is text whatever it holds. */
    must_find(&c, "f/binary f/c");
    CHECK_ROW(&c, 0, 6,
              "2002>120@0 120>0@1 0>121@2 121>2003@3 2002>51@0 51>2003@1 ");
    corpus_free(&c);
    leave_folder();
}

RDL_TEST(token_files_are_cut_where_documents_end)
{
    static const uint16_t narrow[] = { 5, 6, 2003, 2003, 7, 8, 9 };
    static const uint32_t wide[] = { 1, 2, 3 };
    corpus c;
    trouble t;

    enter_folder();
    write_bytes("a.bin", narrow, sizeof narrow);
    write_bytes("b.u32.bin", wide, sizeof wide);
    must_find(&c, "a.bin b.u32.bin");
    CHECK_INT(c.n_documents, 3);
    CHECK_ROW(&c, 0, 6, "5>6@0 6>2003@1 7>8@0 8>9@1 1>2@0 2>3@1 ");
    CHECK_ROW(&c, 1, 2, "7>8@0 8>9@1 ");
    corpus_free(&c);
    CHECK(find(&c, "b.u32.bin", "uint16", &t));
    CHECK_ROW(&c, 0, 5, "1>0@0 0>2@1 2>0@2 0>3@3 3>0@4 ");
    corpus_free(&c);
    leave_folder();
}

RDL_TEST(wrong_data_is_refused_with_a_sentence)
{
    static const uint16_t narrow[] = { 5, 6, 2048 };

    enter_folder();
    CHECK(mkdir("none", 0777) == 0);
    write_text("empty", "");
    write_text("odd.bin", "xyz");
    write_text("one.bin", "xy");
    write_bytes("beyond.bin", narrow, sizeof narrow);
    check_refused("", "what shall be trained on? --data PATH names files or "
                      "folders of text, or files of tokens");
    check_refused("missing",
                  "cannot read 'missing': No such file or directory");
    check_refused("empty", "'empty' is empty");
    check_refused("none",
                  "there is no data in 'none': left out 0 binary files, "
                  "0 empty ones, 0 neither file nor folder");
    check_refused("/dev/null", "'/dev/null' is neither a file nor a folder");
    check_refused("odd.bin",
                  "'odd.bin' has 3 bytes, which are not whole tokens "
                  "of 2 bytes (uint16; --token-type)");
    check_refused("one.bin", "'one.bin' has one token; an input and its label "
                             "are two");
    check_refused("beyond.bin", "token 2 of 'beyond.bin' (counted from 0, at "
                                "byte 4) is 2048, and the vocabulary ends at "
                                "2047; its tokens were read as uint16 "
                                "(--token-type)");
    leave_folder();
}

RDL_TEST(a_file_that_may_not_be_read_is_refused)
{
    bool is_root = geteuid() == 0; /* who may read everything */

    enter_folder();
    write_text("a", "x");
    CHECK(chmod("a", 0) == 0 && chmod(".", 0755) == 0);
    CHECK(!is_root || seteuid(65534) == 0);
    check_refused("a", "cannot read 'a': Permission denied");
    CHECK(!is_root || seteuid(0) == 0);
    leave_folder();
}

RDL_TEST(a_file_that_becomes_shorter_is_noticed)
{
    int32_t room[3][8];
    trouble t = { .status = 0 };
    corpus c;

    enter_folder();
    write_text("a", "0123456789");
    must_find(&c, "a");
    CHECK(truncate("a", 4) == 0);
    CHECK(corpus_read_row(&c, 0, 4, room[0], room[1], room[2], &t));
    CHECK(!corpus_read_row(&c, 1, 4, room[0], room[1], room[2], &t));
    CHECK_TEXT(t.text,
               "cannot read 'a': it is shorter than it was when training "
               "began");
    corpus_free(&c);
    leave_folder();
}

RDL_TEST(what_is_packed_comes_out_the_same)
{
    trouble t = { .status = 0 };
    text bytes = { .data = NULL };
    corpus c, copy;

    enter_folder();
    write_text("a", "ab");
    write_text("b", "c");
    must_find(&c, "a b");
    CHECK(corpus_pack(&c, &bytes, &t));
    CHECK(corpus_unpack(&copy, bytes.data, bytes.used, &t));
    CHECK_INT(copy.tokens, 5);
    CHECK_ROW(&copy, 1, 2, "98>2003@0 2002>99@0 ");
    corpus_free(&c);
    corpus_free(&copy);
    text_free(&bytes);
    leave_folder();
}
