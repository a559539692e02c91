/* What groups can do. Every rank gives 10^rank, so the digits of a sum spell
 * who took part: 1010 came from ranks 1 and 3. A set of ranks is written as a
 * mask, bit r for rank r. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "first_light.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define CALLS 500    /* of each thread in show_two_names */
#define SHOWN_SUMS 6 /* on one line */

/* The sum that the ranks of mask must come to. */
static int64_t spelled(unsigned mask)
{
    int64_t sum = 0;

    for (int64_t power = 1; mask != 0; mask >>= 1, power *= 10)
        sum += (mask & 1U) != 0 ? power : 0;
    return sum;
}

static unsigned everyone(const demo *d)
{
    return (1U << d->size) - 1U;
}

static bool is_in(const demo *d, unsigned mask)
{
    return ((mask >> d->rank) & 1U) != 0;
}

static bool open_group(demo *d, unsigned mask, const char *name,
                       rdl_group *group)
{
    int ranks[MOST_RANKS], count = 0;

    for (int r = 0; r < d->size; r++)
        if (((mask >> r) & 1U) != 0)
            ranks[count++] = r;
    return ok(d, rdl_group_open(d->world, ranks, count, name, group));
}

/* Adds factor * 10^rank over the group, and checks the sum. */
static bool add_up(demo *d, rdl_group group, unsigned mask, int64_t factor,
                   int64_t *sum)
{
    int64_t mine = factor * spelled(1U << d->rank);
    int64_t expected = factor * spelled(mask);

    if (!ok(d, rdl_all_reduce(d->world, group, &mine, sum, 1, RDL_INT64,
                              RDL_SUM, NULL)))
        return false;
    if (*sum != expected)
        return fail(d, 1,
                    "a wrong sum: %" PRId64 " where the ranks spell %" PRId64,
                    *sum, expected);
    return true;
}

/* A group of mask's ranks, opened, used and closed. */
static bool meet_once(demo *d, unsigned mask, int64_t *sum)
{
    rdl_group group;

    return open_group(d, mask, NULL, &group) && add_up(d, group, mask, 1, sum) &&
           ok(d, rdl_group_close(d->world, group));
}

static bool is_shown(const demo *d, unsigned mask)
{
    int members = __builtin_popcount(mask);

    return members == 2 || members == 3 || mask == everyone(d);
}

/* The line of all groups with so many members: "11 101 110 1001 1010 1100". */
static void say_sums(const demo *d, const int64_t *found, int members,
                     const char *word)
{
    char line[24 * (SHOWN_SUMS + 1)] = "", title[24];
    size_t at = 0;
    int n = 0;

    for (unsigned mask = 1; mask <= everyone(d); mask++) {
        if (__builtin_popcount(mask) != members)
            continue;
        if (n < SHOWN_SUMS)
            at += (size_t)snprintf(line + at, sizeof line - at, " %" PRId64,
                                   found[mask]);
        n++;
    }
    snprintf(title, sizeof title, "%d %s%s", n, word, n > 1 ? "s" : "");
    if (n > 0)
        say(d, "  %-13s%s%s", title, line, n > SHOWN_SUMS ? " ..." : "");
    say_json(d, "{\"event\": \"sums\", \"of\": \"%s\", \"groups\": %d}", word,
             n);
}

static bool find_sums(demo *d, int64_t *found, size_t masks)
{
    for (unsigned mask = 1; mask < masks; mask++)
        if (is_in(d, mask) && is_shown(d, mask) &&
            !meet_once(d, mask, &found[mask]))
            return false;

    /* Rank 0 is not in every pair: it learns each sum from those who are. */
    return ok(d, rdl_all_reduce(d->world, RDL_WORLD, found, found, masks,
                                RDL_INT64, RDL_MAX, NULL));
}

bool show_sums(demo *d)
{
    size_t masks = (size_t)everyone(d) + 1;
    int64_t *found = calloc(masks, sizeof *found);

    if (found == NULL)
        return fail(d, 1, "out of memory");

    bool fine = find_sums(d, found, masks);

    if (fine) {
        say(d,
            "First light: %d rank%s. Each gives 10^rank; a sum spells who "
            "took part.",
            d->size, d->size > 1 ? "s" : "");
        say(d, "  %-13s %" PRId64, "the world", found[masks - 1]);
        say_json(d,
                 "{\"event\": \"world\", \"ranks\": %d, \"sum\": %" PRId64 "}",
                 d->size, found[masks - 1]);
        say_sums(d, found, 2, "pair");
        say_sums(d, found, 3, "triple");
    }
    free(found);
    return fine;
}

/* The lists of the thousand groups in turn: the world, pairs and triples. */
static unsigned next_mask(const demo *d, unsigned mask)
{
    do
        mask = mask >= everyone(d) ? 1U : mask + 1U;
    while (!is_shown(d, mask));
    return mask;
}

typedef bool (*visit)(demo *d, unsigned mask, int number, rdl_group *group);

static bool open_one(demo *d, unsigned mask, int number, rdl_group *group)
{
    char name[32];

    snprintf(name, sizeof name, "group %d", number);
    watch_dev_shm(d);
    return open_group(d, mask, name, group);
}

static bool use_one(demo *d, unsigned mask, int number, rdl_group *group)
{
    int64_t sum;

    (void)number;
    watch_dev_shm(d);
    return add_up(d, *group, mask, 1, &sum);
}

static bool close_one(demo *d, unsigned mask, int number, rdl_group *group)
{
    (void)mask;
    (void)number;
    return ok(d, rdl_group_close(d->world, *group));
}

/* Visits those of the thousand groups that this rank is in. */
static bool visit_all(demo *d, visit what, rdl_group *groups, double *seconds)
{
    unsigned mask = 0;
    double start = seconds_now();

    for (int i = 0; i < MANY_GROUPS; i++) {
        mask = next_mask(d, mask);
        if (is_in(d, mask) && !what(d, mask, i, &groups[i]))
            return false;
    }
    *seconds += seconds_now() - start;
    return true;
}

bool show_many_groups(demo *d)
{
    rdl_group groups[MANY_GROUPS];
    words number;
    double seconds = 0;

    if (!ok(d, rdl_barrier(d->world, RDL_WORLD, NULL)) ||
        !visit_all(d, open_one, groups, &seconds) ||
        !visit_all(d, use_one, groups, &seconds) || !take_account(d) ||
        !visit_all(d, close_one, groups, &seconds))
        return false;

    double each = 1e6 * seconds / MANY_GROUPS;

    say(d, "  %s groups opened, used and closed, all open at once: %.1f us each",
        grouped(MANY_GROUPS, &number), each);
    say_json(d,
             "{\"event\": \"groups\", \"opened\": %d, "
             "\"microseconds_each\": %.3f}",
             MANY_GROUPS, each);
    return true;
}

/* One of two threads of a rank, each with a trouble of its own. */
typedef struct caller {
    demo demo;
    int number;
} caller;

static void *call_many(void *arg)
{
    caller *c = arg;
    demo *d = &c->demo;
    rdl_group group;
    unsigned mask = everyone(d);
    int64_t sum;
    bool fine = open_group(d, mask, c->number == 0 ? "left" : "right", &group);

    for (int i = 0; fine && i < CALLS; i++)
        fine = add_up(d, group, mask, c->number + 1, &sum);
    if (fine)
        fine = ok(d, rdl_group_close(d->world, group));
    if (!fine) /* the other thread's peers wait for this rank no longer */
        rdl_world_abort(d->world, d->trouble.text);
    return NULL;
}

bool show_two_names(demo *d)
{
    caller callers[2] = { { .demo = *d, .number = 0 },
                          { .demo = *d, .number = 1 } };
    pthread_t threads[2];
    int started = 0;

    while (started < 2 && pthread_create(&threads[started], NULL, call_many,
                                         &callers[started]) == 0)
        started++;
    if (started < 2) {
        fail(d, 1, "no thread can be started");
        rdl_world_abort(d->world, d->trouble.text);
    }
    for (int t = 0; t < started; t++) {
        pthread_join(threads[t], NULL);
        if (callers[t].demo.trouble.status != 0)
            fail(d, 1, "thread %d: %.400s", t, callers[t].demo.trouble.text);
    }
    if (d->trouble.status != 0)
        return false;

    int64_t sum = spelled(everyone(d));

    say(d,
        "  one list under two names, from two threads at once: %d x %" PRId64
        " and %d x %" PRId64,
        CALLS, sum, CALLS, 2 * sum);
    say_json(d,
             "{\"event\": \"names\", \"calls\": %d, \"left\": %" PRId64
             ", \"right\": %" PRId64 "}",
             CALLS, sum, 2 * sum);
    return true;
}
