/* Finding the camps. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/verdict.h"

#include "base/hash.h"
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

void rdl_description_text(const rdl_description *d, char *buffer, size_t bytes)
{
    rdl_text text = { buffer, bytes };
    rdl_operation operation = (rdl_operation)d->operation;

    rdl_text_add(&text, "%s", rdl_operation_name(operation));
    if (operation == RDL_OP_BARRIER)
        return;
    rdl_text_add(&text, "(%" PRIu64 " %s", d->count, rdl_dtype_name(d->dtype));
    if (operation == RDL_OP_BROADCAST || operation == RDL_OP_REDUCE ||
        operation == RDL_OP_GATHER || operation == RDL_OP_SCATTER)
        rdl_text_add(&text, ", root %" PRId32, d->root);
    if (operation == RDL_OP_ALL_REDUCE || operation == RDL_OP_REDUCE ||
        operation == RDL_OP_REDUCE_SCATTER ||
        operation == RDL_OP_REDUCE_SCATTER_V)
        rdl_text_add(&text, ", %s", rdl_reduction_name(d->reduction));
    if (d->detail != 0)
        rdl_text_add(&text, " in all, list of counts %08" PRIx32,
                     (uint32_t)(d->detail >> 32));
    if (d->reduction == RDL_PREMUL_SUM)
        add_factor(&text, d);
    rdl_text_add(&text, ")");
}

/* Members that made the same call. */
typedef struct camp {
    uint64_t fingerprint;
    int size;
    int first;
} camp;

/* Fills camps in the order of their first members; returns how many. */
static int find_camps(const rdl_description *descriptions, int size, camp *camps)
{
    int n = 0;

    for (int i = 0; i < size; i++) {
        uint64_t fingerprint = rdl_fingerprint(&descriptions[i]);
        int c = 0;

        while (c < n && camps[c].fingerprint != fingerprint)
            c++;
        if (c == n)
            camps[n++] = (camp){ .fingerprint = fingerprint, .first = i };
        camps[c].size++;
    }
    return n;
}

static void add_members(rdl_text *text, const rdl_description *descriptions,
                        const int *ranks, int size, uint64_t fingerprint,
                        bool in_it)
{
    int some[RDL_MAX_RANKS], n = 0;

    for (int i = 0; i < size; i++)
        if ((rdl_fingerprint(&descriptions[i]) == fingerprint) == in_it)
            some[n++] = ranks[i];
    rdl_text_add_these_ranks(text, some, n);
}

#define CAMPS_SHOWN 4

rdl_status rdl_verdict(const rdl_description *descriptions, const int *ranks,
                       int size, const char *group, const rdl_sites *sites)
{
    camp camps[RDL_MAX_RANKS];
    int n = find_camps(descriptions, size, camps);
    char buffer[RDL_SENTENCE];
    rdl_text text = { buffer, sizeof buffer };
    const camp *majority = NULL;

    if (n == 1)
        return RDL_OK;
    rdl_text_add(&text, "mismatch in call #%" PRIu64 " on %s: ",
                 descriptions[0].number, group);
    for (int c = 0; c < n; c++)
        if (2 * camps[c].size > size)
            majority = &camps[c];
    if (majority != NULL)
        add_members(&text, descriptions, ranks, size, majority->fingerprint,
                    false);
    if (majority != NULL)
        rdl_text_add(&text, size - majority->size == 1 ? " differs from "
                                                       : " differ from ");
    if (majority != NULL)
        add_members(&text, descriptions, ranks, size, majority->fingerprint,
                    true);
    else
        rdl_text_add(&text, "no majority");
    for (int c = 0; c < n && c < CAMPS_SHOWN; c++) {
        char call[128];

        rdl_description_text(&descriptions[camps[c].first], call, sizeof call);
        rdl_text_add(&text, "; ");
        add_members(&text, descriptions, ranks, size, camps[c].fingerprint,
                    true);
        rdl_text_add(&text, ": %s", call);
        if (sites->show != NULL)
            sites->show(sites->arg, camps[c].first, &text);
    }
    if (n > CAMPS_SHOWN)
        rdl_text_add(&text, "; and %d more kinds of call", n - CAMPS_SHOWN);
    return rdl_fail(RDL_MISMATCH, "%s", buffer);
}
