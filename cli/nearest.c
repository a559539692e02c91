/* Edit distance: letters put in, left out, replaced, or two swapped. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "nearest.h"

#include <ctype.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>

/* What lies beyond is not compared. */
#define WORD_MOST 63

/* A wrong letter costs two, one in the wrong case one. */
#define EDIT 2
#define CASE 1

static int min_int(int a, int b)
{
    return a < b ? a : b;
}

static int replace_cost(char a, char b)
{
    if (a == b)
        return 0;
    if (tolower((unsigned char)a) == tolower((unsigned char)b))
        return CASE;
    return EDIT;
}

static int distance(const char *a, const char *b)
{
    int rows = (int)strnlen(a, WORD_MOST), columns = (int)strnlen(b, WORD_MOST);
    int d[WORD_MOST + 1][WORD_MOST + 1];

    for (int i = 0; i <= rows; i++)
        d[i][0] = i * EDIT;
    for (int j = 0; j <= columns; j++)
        d[0][j] = j * EDIT;
    for (int i = 1; i <= rows; i++)
        for (int j = 1; j <= columns; j++) {
            int best = d[i - 1][j - 1] + replace_cost(a[i - 1], b[j - 1]);

            best = min_int(best, d[i - 1][j] + EDIT);
            best = min_int(best, d[i][j - 1] + EDIT);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = min_int(best, d[i - 2][j - 2] + EDIT);
            d[i][j] = best;
        }
    return d[rows][columns];
}

const char *nearest_word(const char *word, const char *const *known)
{
    const char *best = known[0];
    int least = INT_MAX;

    for (; *known != NULL; known++) {
        int far = distance(word, *known);

        if (far < least) {
            least = far;
            best = *known;
        }
    }
    return best;
}
