/* Finding the camps. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/verdict.h"

#include "base/hash.h"
#include "base/ranks.h"
#include "comm/plan.h"

#include <inttypes.h>
#include <raddle/collective.h>
#include <stdio.h>
#include <stdlib.h>

uint64_t rdl_fingerprint(const rdl_description *d)
{
    uint64_t kind = (uint64_t)d->operation << 16 | (uint64_t)d->dtype << 8 |
                    (uint64_t)d->reduction;
    uint64_t hash = rdl_hash_add(kind + 1, d->count);

    hash = rdl_hash_add(hash, (uint64_t)(int64_t)d->root);
    hash = rdl_hash_add(hash, d->detail);
    hash = rdl_hash_add(hash, d->number);
    if (d->reduction == RDL_PREMUL_SUM)
        hash = rdl_hash_bytes(hash, &d->factor, sizeof d->factor);
    return hash ? hash : 1;
}

const char *rdl_dtype_name(unsigned dtype)
{
    static const char *const names[] = {
#define X(name, text, bytes, type) [RDL_##name] = #text,
        RDL_DTYPE_MAP(X)
#undef X
    };

    return dtype < sizeof names / sizeof *names ? names[dtype] : "?";
}

const char *rdl_reduction_name(unsigned reduction)
{
    static const char *const names[] = {
#define X(name, text) [RDL_##name] = #text,
        RDL_REDUCTION_MAP(X)
#undef X
    };

    return reduction < sizeof names / sizeof *names ? names[reduction] : "?";
}

/* With as many digits as tell it from every other of its type. */
static void add_factor(rdl_text *text, const rdl_description *d)
{
    bool narrow = d->dtype != RDL_FLOAT64;
    char digits[40];

    for (int n = 6; n <= 17; n++) {
        double read;

        snprintf(digits, sizeof digits, "%.*g", n, d->factor);
        read = strtod(digits, NULL);
        if (read == d->factor || (narrow && (float)read == (float)d->factor))
            break;
    }
    rdl_text_add(text, " by %s", digits);
}

static void add_counts(rdl_text *text, const uint64_t *counts, int shown,
                       int size)
{
    rdl_text_add(text, "[");
    for (int i = 0; i < shown && i < RDL_COUNTS_SHOWN; i++)
        rdl_text_add(text, "%s%" PRIu64, i ? "," : "", counts[i]);
    rdl_text_add(text, size > shown || size > RDL_COUNTS_SHOWN ? ",...]" : "]");
}

static bool has_root(rdl_operation operation)
{
    return operation == RDL_OP_BROADCAST || operation == RDL_OP_REDUCE ||
           operation == RDL_OP_GATHER || operation == RDL_OP_SCATTER;
}

static const char *name_of(const rdl_description *d)
{
    if (d->operation == RDL_OP_SEND_RECV)
        return d->receives ? "receive" : "send";
    return rdl_operation_name((rdl_operation)d->operation);
}

/* "4 int64 in all, counts [0,3,1,0]" */
static void add_size(rdl_text *text, const rdl_description *d,
                     const rdl_counts *counts)
{
    /* There each pair has a count of its own. */
    if (d->operation != RDL_OP_ALL_TO_ALL_V)
        rdl_text_add(text, "%" PRIu64 " ", d->count);
    rdl_text_add(text, "%s", rdl_dtype_name(d->dtype));
    if (d->detail == 0)
        return;
    rdl_text_add(text, " in all");
    if (counts == NULL || counts->shown == 0)
        return;
    rdl_text_add(text, ", counts ");
    add_counts(text, counts->counts, counts->shown, counts->size);
}

void rdl_description_text(const rdl_description *d, const rdl_counts *counts,
                          char *buffer, size_t bytes)
{
    rdl_text text = { buffer, bytes };
    rdl_operation operation = (rdl_operation)d->operation;

    rdl_text_add(&text, "%s", name_of(d));
    if (operation == RDL_OP_BARRIER)
        return;
    rdl_text_add(&text, "(");
    add_size(&text, d, counts);
    if (has_root(operation))
        rdl_text_add(&text, ", root %" PRId32, d->root);
    if (rdl_operation_reduces(operation))
        rdl_text_add(&text, ", %s", rdl_reduction_name(d->reduction));
    if (d->reduction == RDL_PREMUL_SUM)
        add_factor(&text, d);
    rdl_text_add(&text, ")");
}

/* --- camps: members that made the same call --------------------------------- */

typedef struct camp {
    uint64_t fingerprint;
    int size;
    int first;
} camp;

/* Fills camps in the order of their first members; returns how many. */
static int find_camps(const rdl_published *p, camp *camps)
{
    int n = 0;

    for (int i = 0; i < p->size; i++) {
        uint64_t fingerprint = rdl_fingerprint(&p->calls[i]);
        int c = 0;

        while (c < n && camps[c].fingerprint != fingerprint)
            c++;
        if (c == n)
            camps[n++] = (camp){ .fingerprint = fingerprint, .first = i };
        camps[c].size++;
    }
    return n;
}

static void add_members(rdl_text *text, const rdl_published *p,
                        uint64_t fingerprint, bool in_it)
{
    int some[RDL_MAX_RANKS], n = 0;

    for (int i = 0; i < p->size; i++)
        if ((rdl_fingerprint(&p->calls[i]) == fingerprint) == in_it)
            some[n++] = p->ranks[i];
    rdl_text_add_these_ranks(text, some, n);
}

static const camp *find_majority(const camp *camps, int n, int size)
{
    for (int c = 0; c < n; c++)
        if (2 * camps[c].size > size)
            return &camps[c];
    return NULL;
}

/* "rank 1 differs from ranks 0,2"; nothing of a transfer, which has two ends. */
static void add_blame(rdl_text *text, const rdl_published *p,
                      const camp *majority)
{
    if (majority == NULL) {
        if (p->calls[0].operation != RDL_OP_SEND_RECV)
            rdl_text_add(text, "no majority; ");
        return;
    }
    add_members(text, p, majority->fingerprint, false);
    rdl_text_add(text, p->size - majority->size == 1 ? " differs from "
                                                     : " differ from ");
    add_members(text, p, majority->fingerprint, true);
    rdl_text_add(text, "; ");
}

static void add_site(rdl_text *text, const rdl_published *p, int member)
{
    if (p->show_site != NULL)
        p->show_site(p->arg, member, text);
}

/* "ranks 0,2: all_reduce(8 float32, sum) at train.c:120" */
static void add_camp(rdl_text *text, const rdl_published *p, const camp *which,
                     bool with_number)
{
    const rdl_description *d = &p->calls[which->first];
    rdl_counts counts = { .shown = 0 };
    char call[512];

    if (d->detail != 0 && p->read_counts != NULL)
        p->read_counts(p->arg, which->first, &counts);
    rdl_description_text(d, &counts, call, sizeof call);
    add_members(text, p, which->fingerprint, true);
    if (with_number)
        rdl_text_add(text, " at call #%" PRIu64, d->number);
    rdl_text_add(text, ": %s", call);
    add_site(text, p, which->first);
}

/* Whether all are at the same call of the group, whatever it is. */
static bool are_together(const rdl_published *p)
{
    for (int i = 1; i < p->size; i++)
        if (p->calls[i].number != p->calls[0].number)
            return false;
    return true;
}

#define CAMPS_SHOWN 4

rdl_status rdl_verdict(const rdl_published *p)
{
    camp camps[RDL_MAX_RANKS];
    int n = find_camps(p, camps);
    char buffer[RDL_SENTENCE];
    rdl_text text = { buffer, sizeof buffer };
    bool together = are_together(p);

    if (n == 1)
        return RDL_OK;
    if (together)
        rdl_text_add(&text, "mismatch in call #%" PRIu64 " on %s: ",
                     p->calls[0].number, p->group);
    else
        rdl_text_add(&text, "mismatch: calls out of order on %s: ", p->group);
    add_blame(&text, p, find_majority(camps, n, p->size));
    for (int c = 0; c < n && c < CAMPS_SHOWN; c++) {
        rdl_text_add(&text, c ? "; " : "");
        add_camp(&text, p, &camps[c], !together);
    }
    if (n > CAMPS_SHOWN)
        rdl_text_add(&text, "; and %d more kinds of call", n - CAMPS_SHOWN);
    return rdl_fail(RDL_MISMATCH, "%s", buffer);
}

/* --- pairs ------------------------------------------------------------------ */

static uint64_t entry(const uint64_t *table, int size, int row, int column)
{
    return table[(size_t)row * 2 * (size_t)size + (size_t)column];
}

/* "rank 0: all_to_all_v(sends [1,2], expects [1,0])" */
static void add_row(rdl_text *text, const uint64_t *table,
                    const rdl_published *p, int member)
{
    const uint64_t *row = table + (size_t)member * 2 * (size_t)p->size;
    int shown = p->size < RDL_COUNTS_SHOWN ? p->size : RDL_COUNTS_SHOWN;

    rdl_text_add(text, "; rank %d: all_to_all_v(%s, sends ", p->ranks[member],
                 rdl_dtype_name(p->calls[member].dtype));
    add_counts(text, row, shown, p->size);
    rdl_text_add(text, ", expects ");
    add_counts(text, row + p->size, shown, p->size);
    rdl_text_add(text, ")");
    add_site(text, p, member);
}

rdl_status rdl_verdict_on_pairs(const uint64_t *table, const rdl_published *p)
{
    char buffer[RDL_SENTENCE];
    rdl_text text = { buffer, sizeof buffer };
    int differ = 0, from = 0, to = 0;

    for (int i = 0; i < p->size; i++)
        for (int j = 0; j < p->size; j++)
            if (entry(table, p->size, i, j) !=
                    entry(table, p->size, j, p->size + i) &&
                differ++ == 0) {
                from = i;
                to = j;
            }
    if (differ == 0)
        return RDL_OK;
    rdl_text_add(&text,
                 "mismatch in call #%" PRIu64 " on %s: all_to_all_v: rank %d "
                 "sends %" PRIu64
                 " elements to rank %d, which expects %" PRIu64,
                 p->calls[0].number, p->group, p->ranks[from],
                 entry(table, p->size, from, to), p->ranks[to],
                 entry(table, p->size, to, p->size + from));
    add_row(&text, table, p, from);
    if (to != from)
        add_row(&text, table, p, to);
    if (differ > 1)
        rdl_text_add(&text, "; and %d more pair%s differ%s", differ - 1,
                     differ == 2 ? "" : "s", differ == 2 ? "s" : "");
    return rdl_fail(RDL_MISMATCH, "%s", buffer);
}
