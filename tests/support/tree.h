/* A folder of files that stands for / in a test: what the kernel would show on
 * another machine.
 *
 *     test_tree t = tree_open();
 *     tree_put(&t, "/proc/self/cgroup", "0::/a\n");
 *     ... read below t.root ...
 *     tree_close(&t); */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_SUPPORT_TREE_H
#define RDL_SUPPORT_TREE_H

#include "support/test.h"

#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct test_tree {
    char root[256];
} test_tree;

static inline test_tree tree_open(void)
{
    test_tree t;
    int length = snprintf(t.root, sizeof t.root, "%s/raddle-tree-XXXXXX",
                          rdl_test_temp());

    CHECK(length > 0 && (size_t)length < sizeof t.root);
    CHECK(mkdtemp(t.root) != NULL);
    return t;
}

/* Writes the file, and makes the folders it is in. */
static inline void tree_put(const test_tree *t, const char *path,
                            const char *text)
{
    char full[PATH_MAX];
    FILE *file;

    snprintf(full, sizeof full, "%s%s", t->root, path);
    for (char *slash = strchr(full + strlen(t->root) + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = 0;
        (void)mkdir(full, 0700);
        *slash = '/';
    }
    file = fopen(full, "w");
    CHECK(file != NULL);
    CHECK(fputs(text, file) >= 0);
    CHECK_INT(fclose(file), 0);
}

static inline int tree_remove_one(const char *path, const struct stat *st,
                                  int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static inline void tree_close(const test_tree *t)
{
    CHECK_INT(nftw(t->root, tree_remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

#endif
