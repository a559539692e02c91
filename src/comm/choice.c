/* The table, and reading rules. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/choice.h"

#include "base/hash.h"
#include "base/text_file.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define ANY_BYTES SIZE_MAX
#define ANY_RANKS INT_MAX

/* With one_shot every rank reduces everything: n times the work for one wait less
 * (measured on two cores for 2, 4 and 8 ranks). streamed is never better than
 * blocked, and what is left where the staging is small. */
static const rdl_rule own[] = {
    { RDL_OP_ALL_REDUCE, 65536, 2, RDL_CORES_ANY, RDL_ONE_SHOT },
    { RDL_OP_ALL_REDUCE, 16384, 4, RDL_CORES_ANY, RDL_ONE_SHOT },
    { RDL_OP_ALL_REDUCE, 8192, ANY_RANKS, RDL_CORES_ANY, RDL_ONE_SHOT },
    { RDL_OP_ALL_REDUCE, ANY_BYTES, ANY_RANKS, RDL_CORES_ANY, RDL_TWO_PHASE },
    { RDL_OP_REDUCE, 65536, 2, RDL_CORES_ANY, RDL_ONE_SHOT },
    { RDL_OP_REDUCE, 16384, 4, RDL_CORES_ANY, RDL_ONE_SHOT },
    { RDL_OP_REDUCE, 8192, ANY_RANKS, RDL_CORES_ANY, RDL_ONE_SHOT },
    { RDL_OP_REDUCE, ANY_BYTES, ANY_RANKS, RDL_CORES_ANY, RDL_TWO_PHASE },
    { RDL_OP_REDUCE_SCATTER, ANY_BYTES, ANY_RANKS, RDL_CORES_ANY, RDL_BLOCKED },
    { RDL_OP_ALL_TO_ALL, ANY_BYTES, ANY_RANKS, RDL_CORES_ANY, RDL_BLOCKED },
    { RDL_OP_SCATTER, ANY_BYTES, ANY_RANKS, RDL_CORES_ANY, RDL_BLOCKED },
    { RDL_OP_REDUCE_SCATTER_V, ANY_BYTES, ANY_RANKS, RDL_CORES_ANY, RDL_BLOCKED },
    { RDL_OP_ALL_TO_ALL_V, ANY_BYTES, ANY_RANKS, RDL_CORES_ANY, RDL_BLOCKED },
};

#define OWN ((int)(sizeof own / sizeof *own))

static const char *const cores_names[] = {
    [RDL_CORES_ANY] = "*",
    [RDL_CORES_EACH] = "each",
    [RDL_CORES_SHARED] = "shared",
};

const char *rdl_algorithm_name(rdl_algorithm algorithm)
{
    static const char *const names[] = {
        [RDL_EMPTY] = "empty",         [RDL_ONE_SHOT] = "one_shot",
        [RDL_BLOCKED] = "blocked",     [RDL_STREAMED] = "streamed",
        [RDL_TWO_PHASE] = "two_phase",
    };

    return names[algorithm];
}

/* --- choosing -------------------------------------------------------------- */

static bool fits(const rdl_rule *rule, const rdl_shape *shape, rdl_cores cores)
{
    size_t bytes =
        shape->uneven != NULL ? shape->uneven->block_most : shape->bytes;

    return rule->operation == shape->operation && bytes <= rule->bytes_most &&
           shape->size <= rule->ranks_most &&
           (rule->cores == RDL_CORES_ANY || rule->cores == cores);
}

const rdl_rule *rdl_choices_rule(const rdl_choices *choices, int i)
{
    int before = choices != NULL ? choices->count : 0;

    if (i < before)
        return &choices->rules[i];
    return i - before < OWN ? &own[i - before] : NULL;
}

rdl_algorithm rdl_choose(const rdl_choices *choices, const rdl_shape *shape)
{
    rdl_cores cores = choices != NULL ? choices->cores : RDL_CORES_ANY;
    const rdl_rule *rule;

    for (int i = 0; (rule = rdl_choices_rule(choices, i)) != NULL; i++)
        if (fits(rule, shape, cores))
            return rule->algorithm;
    return RDL_EMPTY;
}

/* --- texts ----------------------------------------------------------------- */

void rdl_rule_text(const rdl_rule *rule, char text[RDL_RULE_TEXT])
{
    char bytes[24] = "*", ranks[16] = "*";

    if (rule->bytes_most != ANY_BYTES)
        snprintf(bytes, sizeof bytes, "%zu", rule->bytes_most);
    if (rule->ranks_most != ANY_RANKS)
        snprintf(ranks, sizeof ranks, "%d", rule->ranks_most);
    snprintf(text, RDL_RULE_TEXT, "%s:%s:%s:%s=%s",
             rdl_operation_name(rule->operation), bytes, ranks,
             cores_names[rule->cores], rdl_algorithm_name(rule->algorithm));
}

static bool is_any(const char *word)
{
    return word == NULL || word[0] == '\0' || strcmp(word, "*") == 0;
}

static bool read_bytes(const char *word, size_t *out)
{
    uint64_t n;
    const char *rest;

    *out = ANY_BYTES;
    if (is_any(word))
        return true;
    rest = rdl_parse_number(word, &n);
    if (rest == NULL || n > SIZE_MAX >> 20)
        return false;
    if (*rest == 'K' || *rest == 'M')
        n <<= *rest++ == 'K' ? 10 : 20;
    *out = n;
    return *rest == '\0';
}

static bool read_ranks(const char *word, int *out)
{
    uint64_t n;
    const char *rest;

    *out = ANY_RANKS;
    if (is_any(word))
        return true;
    rest = rdl_parse_number(word, &n);
    if (rest == NULL || *rest != '\0' || n < 2 || n > RDL_MAX_RANKS)
        return false;
    *out = (int)n;
    return true;
}

static bool read_cores(const char *word, rdl_cores *out)
{
    *out = RDL_CORES_ANY;
    if (is_any(word))
        return true;
    for (int i = RDL_CORES_EACH; i <= RDL_CORES_SHARED; i++)
        if (strcmp(word, cores_names[i]) == 0) {
            *out = (rdl_cores)i;
            return true;
        }
    return false;
}

static bool read_operation(const char *word, rdl_operation *out)
{
    for (int i = 0; i < OWN; i++)
        if (strcmp(word, rdl_operation_name(own[i].operation)) == 0) {
            *out = own[i].operation;
            return true;
        }
    return false;
}

/* Of the two ways that an operation with rules has. */
static bool read_algorithm(const char *word, rdl_rule *rule)
{
    bool whole = rule->operation == RDL_OP_ALL_REDUCE ||
                 rule->operation == RDL_OP_REDUCE;
    const rdl_algorithm ways[2] = { whole ? RDL_ONE_SHOT : RDL_BLOCKED,
                                    whole ? RDL_TWO_PHASE : RDL_STREAMED };

    for (int i = 0; i < 2; i++)
        if (word != NULL && strcmp(word, rdl_algorithm_name(ways[i])) == 0) {
            rule->algorithm = ways[i];
            return true;
        }
    return false;
}

/* --- reading --------------------------------------------------------------- */

static rdl_status refuse(const char *rule, const char *what)
{
    return rdl_fail(RDL_INVALID,
                    "RADDLE_ALGORITHM: '%.64s' %s, and a rule is "
                    "OPERATION[:BYTES[:RANKS[:CORES]]]=ALGORITHM",
                    rule, what);
}

static rdl_status read_rule(const char *text, rdl_rule *rule)
{
    char copy[RDL_RULE_TEXT], *key = copy, *way;
    const char *operation;

    snprintf(copy, sizeof copy, "%.95s", text);
    way = strchr(copy, '=');
    if (way != NULL)
        *way++ = '\0';
    operation = strsep(&key, ":");
    if (!read_operation(operation, &rule->operation))
        return refuse(text, "names no operation that has several ways "
                            "(all_reduce, reduce, reduce_scatter, all_to_all, "
                            "scatter, reduce_scatter_v, all_to_all_v)");
    if (!read_bytes(strsep(&key, ":"), &rule->bytes_most))
        return refuse(text, "has no size for BYTES, such as 4096 or 64K");
    if (!read_ranks(strsep(&key, ":"), &rule->ranks_most))
        return refuse(text, "has no number from 2 to 1024 for RANKS");
    if (!read_cores(strsep(&key, ":"), &rule->cores) || key != NULL)
        return refuse(text, "has none of each, shared, * for CORES");
    if (!read_algorithm(way, rule))
        return refuse(text, "has no ALGORITHM of that operation (one_shot or "
                            "two_phase for all_reduce and reduce, else blocked "
                            "or streamed)");
    return RDL_OK;
}

rdl_status rdl_choices_read(const char *text, rdl_choices *out)
{
    rdl_choices read = { .count = 0 };
    char copy[RDL_RULES_MOST * RDL_RULE_TEXT], *rest = copy, *word;

    if (text == NULL || text[0] == '\0') {
        *out = read;
        return RDL_OK;
    }
    if (strlen(text) >= sizeof copy)
        return refuse(text, "... is too long");
    memcpy(copy, text, strlen(text) + 1);
    while ((word = strsep(&rest, ",")) != NULL) {
        if (read.count == RDL_RULES_MOST)
            return refuse(word, "is one rule too many");
        RDL_TRY(read_rule(word, &read.rules[read.count]));
        read.count++;
    }
    *out = read;
    return RDL_OK;
}

uint32_t rdl_choices_hash(const rdl_choices *choices)
{
    uint64_t hash = 1;

    for (int i = 0; i < choices->count; i++) {
        const rdl_rule *r = &choices->rules[i];

        hash = rdl_hash_add(hash, r->operation);
        hash = rdl_hash_add(hash, r->bytes_most);
        hash = rdl_hash_add(hash, (uint64_t)r->ranks_most);
        hash = rdl_hash_add(hash, r->cores);
        hash = rdl_hash_add(hash, r->algorithm);
    }
    return choices->count > 0 ? (uint32_t)(hash >> 32) | 1 : 0;
}
