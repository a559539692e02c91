/* Fully sharded data parallel: when blocks become whole, and gradients blocks. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/fsdp.h"

#include "base/memory.h"
#include "base/status.h"
#include "comm/world.h"
#include "parallel/unit.h"

#include <raddle/collective.h>
#include <stdio.h>
#include <string.h>

/* --- sentences ------------------------------------------------------------- */

/* st with its sentence, and what was going on before it. */
rdl_status rdl_fsdp_explain(const rdl_fsdp *unit, const char *what,
                            rdl_status st)
{
    if (st == RDL_OK)
        return RDL_OK;
    return rdl_fail(st, "%s %s: %s", what, rdl_blocks_say(&unit->blocks).text,
                    rdl_error_detail());
}

rdl_status rdl_fsdp_no_memory(const rdl_fsdp *unit, const char *what,
                              size_t floats)
{
    return rdl_fail(RDL_NO_MEMORY, "no memory for %zu bytes: %s of %s",
                    floats * sizeof(float), what,
                    rdl_blocks_say(&unit->blocks).text);
}

/* Whether there is a unit that has a parameter i; says so if not. */
static bool exists(const rdl_fsdp *unit, int i)
{
    if (unit != NULL && i >= 0 && i < unit->blocks.count)
        return true;
    if (unit == NULL)
        rdl_say("the unit is NULL");
    else
        rdl_say("parameter %d is outside 0..%d", i, unit->blocks.count - 1);
    return false;
}

static const rdl_part *part(const rdl_fsdp *unit, int i)
{
    return &unit->blocks.parts[i];
}

/* --- groups ---------------------------------------------------------------- */

static rdl_status look_at_group(const rdl_fsdp *unit, rdl_group group,
                                const char *what, int *size, int *rank)
{
    RDL_TRY(rdl_group_size(unit->world, group, size));
    RDL_TRY(rdl_group_rank(unit->world, group, rank));
    if (*rank < 0)
        return rdl_fail(RDL_INVALID, "rank %d is not in the %s group",
                        rdl_world_rank(unit->world), what);
    return RDL_OK;
}

/* Gradients of a rank in both groups would be added twice. */
static rdl_status check_apart(const rdl_fsdp *unit)
{
    bool shares[RDL_MAX_RANKS] = { false };
    int me = rdl_world_rank(unit->world), rank;

    for (int i = 0; i < unit->size; i++) {
        RDL_TRY(rdl_group_world_rank(unit->world, unit->shard, i, &rank));
        shares[rank] = rank != me;
    }
    for (int i = 0; i < unit->replicas; i++) {
        RDL_TRY(rdl_group_world_rank(unit->world, unit->replicate, i, &rank));
        if (shares[rank])
            return rdl_fail(
                RDL_INVALID,
                "rank %d is in both the shard group of %d ranks and "
                "the replicate group of %d; they may have rank %d "
                "alone in common",
                rank, unit->size, unit->replicas, me);
    }
    return RDL_OK;
}

static rdl_status look_at_groups(rdl_fsdp *unit)
{
    int place;

    RDL_TRY(look_at_group(unit, unit->shard, "shard", &unit->size, &unit->rank));
    RDL_TRY(look_at_group(unit, unit->replicate, "replicate", &unit->replicas,
                          &place));
    return check_apart(unit);
}

static rdl_status find_least(const rdl_fsdp *unit, rdl_group group, int size,
                             int64_t *words)
{
    if (size == 1)
        return RDL_OK;
    return rdl_all_reduce(unit->world, group, words, words, 2, RDL_INT64,
                          RDL_MIN, &(rdl_call){ .caller = "fsdp.create" });
}

/* Whether all ranks mean the same unit; blocks of equal size alone do not say so.
 * The least and the greatest fingerprint of all shards and replicas, each with the
 * rank it is from, let every rank come to the same verdict. */
static rdl_status compare_units(const rdl_fsdp *unit)
{
    _Static_assert(RDL_MAX_RANKS <= 1 << 10, "a rank takes ten bits");
    int64_t word = (int64_t)(rdl_blocks_fingerprint(&unit->blocks) >> 11 << 10) |
                   rdl_world_rank(unit->world);
    int64_t least[2] = { word, -word };

    RDL_TRY(find_least(unit, unit->shard, unit->size, least));
    RDL_TRY(find_least(unit, unit->replicate, unit->replicas, least));
    if (least[0] >> 10 == -least[1] >> 10)
        return RDL_OK;
    return rdl_fail(RDL_MISMATCH,
                    "ranks %d and %d give parameters of other names or sizes",
                    (int)(least[0] & 1023), (int)(-least[1] & 1023));
}

/* --- life ------------------------------------------------------------------ */

static rdl_status make_blocks(rdl_fsdp *unit)
{
    size_t line = RDL_PART_ALIGN * sizeof(float);
    size_t block = (unit->blocks.block + RDL_PART_ALIGN - 1) / RDL_PART_ALIGN *
                   RDL_PART_ALIGN;

    unit->memory = rdl_calloc_for(&unit->world->purse,
                                  2 * block + RDL_PART_ALIGN, sizeof(float));
    if (unit->memory == NULL)
        return rdl_fsdp_no_memory(unit, "the shard", 2 * block);
    unit->values = (float *)(void *)((unsigned char *)unit->memory +
                                     (-(uintptr_t)unit->memory & (line - 1)));
    unit->sums = unit->values + block;
    return RDL_OK;
}

static rdl_status build(rdl_fsdp *unit, const rdl_parameter *parameters,
                        int count)
{
    RDL_TRY(look_at_groups(unit));
    rdl_charge(&unit->world->purse, unit);
    RDL_TRY(rdl_blocks_init(&unit->blocks, parameters, count, unit->size));
    rdl_blocks_charge(&unit->blocks, &unit->world->purse);
    RDL_TRY(make_blocks(unit));
    unit->pool = rdl_pool_create(&unit->world->purse);
    if (unit->pool == NULL)
        return rdl_fail(RDL_NO_MEMORY, "no memory for a unit");
    return rdl_fsdp_explain(unit, "the unit of", compare_units(unit));
}

rdl_status rdl_fsdp_create(rdl_world *world, rdl_group shard,
                           rdl_group replicate, const rdl_parameter *parameters,
                           int count, rdl_fsdp **out)
{
    rdl_fsdp *unit;
    rdl_status st;

    if (out == NULL)
        return rdl_fail(RDL_INVALID, "rdl_fsdp_create: out is NULL");
    unit = rdl_calloc(1, sizeof *unit);
    if (unit == NULL)
        return rdl_fail(RDL_NO_MEMORY, "no memory for a unit");
    unit->world = world;
    unit->shard = unit->sums_over = shard;
    unit->replicate = replicate;
    st = build(unit, parameters, count);
    if (st != RDL_OK) {
        rdl_fsdp_destroy(unit);
        return st;
    }
    *out = unit;
    return RDL_OK;
}

void rdl_fsdp_destroy(rdl_fsdp *unit)
{
    if (unit == NULL)
        return;
    rdl_fsdp_abandon(unit);
    if (unit->pool != NULL) {
        rdl_pool_give(unit->pool, unit->full);
        rdl_pool_give(unit->pool, unit->gradient);
        rdl_pool_leave(unit->pool);
    }
    rdl_blocks_fini(&unit->blocks);
    rdl_free(unit->memory);
    rdl_free(unit);
}

rdl_status rdl_fsdp_share(rdl_fsdp *unit, rdl_fsdp *with)
{
    if (unit == NULL || with == NULL)
        return rdl_fail(RDL_INVALID, "rdl_fsdp_share: %s is NULL",
                        unit ? "with" : "unit");
    if (unit->pool == with->pool)
        return RDL_OK;
    if (unit->full != NULL || unit->gradient != NULL)
        return rdl_fail(RDL_STATE, "rdl_fsdp_share: %s %s",
                        rdl_blocks_say(&unit->blocks).text,
                        unit->full ? "is gathered" : "has a gradient");
    rdl_pool_join(with->pool);
    rdl_pool_leave(unit->pool);
    unit->pool = with->pool;
    return RDL_OK;
}

rdl_pool *rdl_fsdp_pool(const rdl_fsdp *unit)
{
    return unit->pool;
}

void rdl_fsdp_sum_over(rdl_fsdp *unit, rdl_group lane)
{
    unit->sums_over = lane;
}

/* --- shards ---------------------------------------------------------------- */

void rdl_fsdp_rows(const rdl_fsdp *unit, int i, size_t *first_row, size_t *rows)
{
    size_t first = 0, n = 0;

    if (exists(unit, i))
        n = rdl_part_rows(part(unit, i), unit->rank, &first);
    if (first_row != NULL)
        *first_row = first;
    if (rows != NULL)
        *rows = n;
}

float *rdl_fsdp_shard(rdl_fsdp *unit, int i)
{
    return exists(unit, i) ? unit->values + part(unit, i)->in_block : NULL;
}

float *rdl_fsdp_shard_gradient(rdl_fsdp *unit, int i)
{
    return exists(unit, i) ? unit->sums + part(unit, i)->in_block : NULL;
}

void rdl_fsdp_zero(rdl_fsdp *unit)
{
    if (unit != NULL)
        memset(unit->sums, 0, unit->blocks.block * sizeof *unit->sums);
}

void rdl_fsdp_square(const rdl_fsdp *unit, double *square)
{
    double lanes[4] = { 0 }; /* four sums do not wait for one another */
    size_t n = unit ? unit->blocks.block : 0, i = 0;

    if (square == NULL)
        return;
    for (; i + 4 <= n; i += 4)
        for (size_t k = 0; k < 4; k++)
            lanes[k] += (double)unit->sums[i + k] * unit->sums[i + k];
    for (; i < n; i++)
        lanes[0] += (double)unit->sums[i] * unit->sums[i];
    *square = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

/* --- gathering ------------------------------------------------------------- */

/* Where blocks go to and come from while the whole, in buffer, is made of them;
 * NULL: no memory. */
float *rdl_fsdp_take_blocks(const rdl_fsdp *unit, float *buffer)
{
    if (unit->blocks.direct)
        return buffer;
    return rdl_pool_take(unit->pool, rdl_blocks_floats(&unit->blocks));
}

void rdl_fsdp_give_blocks(const rdl_fsdp *unit, float *blocks)
{
    if (!unit->blocks.direct)
        rdl_pool_give(unit->pool, blocks);
}

rdl_fsdp_label rdl_fsdp_label_of(const rdl_fsdp *unit, const char *what)
{
    rdl_fsdp_label l;

    snprintf(l.text, sizeof l.text, "fsdp.%s %s", what,
             unit->blocks.parts[0].name);
    return l;
}

static rdl_status gather_into(const rdl_fsdp *unit, float *full)
{
    float *blocks = rdl_fsdp_take_blocks(unit, full);
    rdl_fsdp_label l = rdl_fsdp_label_of(unit, "gather");
    rdl_status st;

    if (blocks == NULL)
        return rdl_fsdp_no_memory(unit, "the shards on their way",
                                  rdl_blocks_floats(&unit->blocks));
    st = rdl_all_gather(unit->world, unit->shard, unit->values, blocks,
                        unit->blocks.block, RDL_FLOAT32,
                        &(rdl_call){ .caller = l.text });
    if (st == RDL_OK && !unit->blocks.direct)
        rdl_blocks_unpack(&unit->blocks, blocks, full);
    rdl_fsdp_give_blocks(unit, blocks);
    return rdl_fsdp_explain(unit, "gathering", st);
}

rdl_status rdl_fsdp_gather(rdl_fsdp *unit)
{
    float *full;
    rdl_status st;

    if (unit == NULL)
        return rdl_fail(RDL_INVALID, "rdl_fsdp_gather: the unit is NULL");
    if (unit->ahead.coming)
        return rdl_fsdp_take_in(unit);
    if (!unit->gathered && unit->size > 1) {
        full = rdl_pool_take(unit->pool, unit->blocks.whole);
        if (full == NULL)
            return rdl_fsdp_no_memory(unit, "the whole", unit->blocks.whole);
        st = gather_into(unit, full);
        if (st != RDL_OK) {
            rdl_pool_give(unit->pool, full);
            return st;
        }
        unit->full = full;
    }
    unit->gathered = true;
    return RDL_OK;
}

const float *rdl_fsdp_full(const rdl_fsdp *unit, int i)
{
    if (!exists(unit, i) || !unit->gathered)
        return NULL;
    return (unit->size > 1 ? unit->full : unit->values) +
           part(unit, i)->in_whole;
}

void rdl_fsdp_free(rdl_fsdp *unit)
{
    if (unit == NULL)
        return;
    if (unit->ahead.coming) /* it was prefetched for nothing */
        (void)rdl_fsdp_take_in(unit);
    rdl_pool_give(unit->pool, unit->full);
    unit->full = NULL;
    unit->gathered = false;
}

/* --- gradients ------------------------------------------------------------- */

rdl_status rdl_fsdp_want_gradient(rdl_fsdp *unit)
{
    size_t whole = unit->blocks.whole;

    if (unit->gradient != NULL)
        return RDL_OK;
    unit->gradient = rdl_pool_take(unit->pool, whole);
    if (unit->gradient == NULL)
        return rdl_fsdp_no_memory(unit, "the whole gradient", whole);
    memset(unit->gradient, 0, whole * sizeof *unit->gradient);
    return RDL_OK;
}

float *rdl_fsdp_gradient(rdl_fsdp *unit, int i)
{
    if (!exists(unit, i) || rdl_fsdp_want_gradient(unit) != RDL_OK)
        return NULL;
    return unit->gradient + part(unit, i)->in_whole;
}

void rdl_fsdp_add(float *to, const float *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] += from[i];
}

/* mine, which is this rank's one of blocks, becomes the sum of everyone's. */
static rdl_status sum_up(const rdl_fsdp *unit, float *blocks, float *mine)
{
    size_t block = unit->blocks.block;
    rdl_fsdp_label l = rdl_fsdp_label_of(unit, "reduce");
    rdl_call call = { .caller = l.text };

    if (unit->size > 1)
        RDL_TRY(rdl_reduce_scatter(unit->world, unit->sums_over, blocks, mine,
                                   block, RDL_FLOAT32, RDL_SUM, &call));
    if (unit->replicas > 1)
        RDL_TRY(rdl_all_reduce(unit->world, unit->replicate, mine, mine, block,
                               RDL_FLOAT32, RDL_SUM, &call));
    return RDL_OK;
}

rdl_status rdl_fsdp_reduce(rdl_fsdp *unit)
{
    float *blocks, *mine;
    rdl_status st;

    if (unit == NULL)
        return rdl_fail(RDL_INVALID, "rdl_fsdp_reduce: the unit is NULL");
    RDL_TRY(rdl_fsdp_settle(unit));
    RDL_TRY(rdl_fsdp_want_gradient(unit));
    blocks = rdl_fsdp_take_blocks(unit, unit->gradient);
    if (blocks == NULL)
        return rdl_fsdp_no_memory(unit, "the gradient on its way",
                                  rdl_blocks_floats(&unit->blocks));
    if (!unit->blocks.direct)
        rdl_blocks_pack(&unit->blocks, unit->gradient, blocks);
    mine = blocks + (size_t)unit->rank * unit->blocks.block;
    st = sum_up(unit, blocks, mine);
    if (st == RDL_OK)
        rdl_fsdp_add(unit->sums, mine, unit->blocks.block);
    rdl_fsdp_give_blocks(unit, blocks);
    if (st != RDL_OK)
        return rdl_fsdp_explain(unit, "reducing the gradient of", st);
    rdl_pool_give(unit->pool, unit->gradient);
    unit->gradient = NULL;
    return RDL_OK;
}
