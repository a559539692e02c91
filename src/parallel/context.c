/* Context parallelism: which tokens are whose, and moving between a rank's part
 * and the whole sequence.
 *
 * As the collectives see it, the chunks stand rank by rank: 0, 2n-1, 1, 2n-2, ...
 * Gathered, they are brought into order where they stand; to be scattered, they
 * are copied out of order, because the caller's gradient is not ours to shuffle. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <raddle/context.h>

#include "base/memory.h"
#include "base/status.h"
#include "comm/world.h"

#include <raddle/collective.h>
#include <string.h>

/* Floats that change places at a time when a sequence is brought into order: two
 * such strips stand in the innermost cache. */
#define STRIP 1024

/* --- chunks ---------------------------------------------------------------- */

/* A sequence as its group sees it. */
typedef struct sequence {
    int size;     /* ranks */
    size_t chunk; /* floats of one of its 2 * size chunks */
    size_t part;  /* floats of one rank's part */
} sequence;

static size_t chunks_of(int size)
{
    return size == 1 ? 1 : 2 * (size_t)size;
}

static rdl_status check_length(int size, size_t length)
{
    if (length % chunks_of(size) == 0)
        return RDL_OK;
    return rdl_fail(
        RDL_INVALID,
        "a sequence of %zu tokens does not divide into 2 chunks for "
        "each of %d ranks: %zu would, or fewer ranks",
        length, size, (length / chunks_of(size) + 1) * chunks_of(size));
}

/* Which chunk stands at this place when they stand rank by rank. */
static size_t chunk_at(size_t place, int size)
{
    return place % 2 == 0 ? place / 2 : 2 * (size_t)size - 1 - place / 2;
}

/* Where this chunk stands when they stand rank by rank. */
static size_t place_of(size_t chunk, int size)
{
    size_t n = (size_t)size;

    return chunk < n ? 2 * chunk : 2 * (2 * n - 1 - chunk) + 1;
}

rdl_status rdl_context_indices(int rank, int size, size_t length,
                               size_t *indices)
{
    size_t chunk;

    if (size < 1 || rank < 0 || rank >= size)
        return rdl_fail(RDL_INVALID, "rank %d is outside 0..%d", rank, size - 1);
    RDL_TRY(check_length(size, length));
    if (indices == NULL && length > 0)
        return rdl_fail(RDL_INVALID, "rdl_context_indices: indices is NULL");
    chunk = length / chunks_of(size);
    for (size_t i = 0; i < chunk; i++)
        indices[i] = (size_t)rank * chunk + i;
    for (size_t i = 0; i < chunk && size > 1; i++)
        indices[chunk + i] = chunk_at(2 * (size_t)rank + 1, size) * chunk + i;
    return RDL_OK;
}

static rdl_status describe(rdl_world *world, rdl_group group, size_t length,
                           size_t columns, sequence *out)
{
    size_t whole, bytes;
    int size;

    RDL_TRY(rdl_group_size(world, group, &size));
    RDL_TRY(check_length(size, length));
    if (__builtin_mul_overflow(length, columns, &whole) ||
        __builtin_mul_overflow(whole, sizeof(float), &bytes))
        return rdl_fail(RDL_INVALID,
                        "%zu tokens of %zu floats: the size overflows", length,
                        columns);
    *out = (sequence){ .size = size,
                       .chunk = whole / chunks_of(size),
                       .part = whole / (size_t)size };
    return RDL_OK;
}

/* --- gathering ------------------------------------------------------------- */

/* Moves [at, + count) of every chunk from where it stands to where it belongs.
 * The permutation is a set of rings; each is turned by one place, and done is
 * whoever has been moved already. */
static void order_strip(float *whole, const sequence *s, size_t at, size_t count)
{
    float kept[STRIP];
    bool done[2 * RDL_MAX_RANKS] = { false };
    size_t bytes = count * sizeof *kept;

    for (size_t start = 0; start < chunks_of(s->size); start++) {
        size_t to = start, from = place_of(to, s->size);

        if (done[start] || from == start)
            continue;
        memcpy(kept, whole + start * s->chunk + at, bytes);
        for (; from != start; to = from, from = place_of(to, s->size)) {
            memcpy(whole + to * s->chunk + at, whole + from * s->chunk + at,
                   bytes);
            done[to] = true;
        }
        memcpy(whole + to * s->chunk + at, kept, bytes);
        done[to] = true;
    }
}

rdl_status rdl_context_gather(rdl_world *world, rdl_group group,
                              const float *local, float *whole, size_t length,
                              size_t columns)
{
    sequence s;

    RDL_TRY(describe(world, group, length, columns, &s));
    RDL_TRY(rdl_all_gather(world, group, local, whole, s.part, RDL_FLOAT32,
                           &(rdl_call){ .caller = "context.gather" }));
    if (s.size == 1)
        return RDL_OK;
    for (size_t at = 0; at < s.chunk; at += STRIP)
        order_strip(whole, &s, at, s.chunk - at < STRIP ? s.chunk - at : STRIP);
    return RDL_OK;
}

/* --- scattering ------------------------------------------------------------ */

static rdl_status scatter_in_order(rdl_world *world, rdl_group group,
                                   const float *whole, float *local,
                                   const sequence *s)
{
    size_t bytes = s->part * (size_t)s->size * sizeof *whole;
    float *ranks = NULL;
    rdl_status st;

    if (bytes > 0) {
        ranks = rdl_realloc_for(&world->purse, NULL, bytes);
        if (ranks == NULL)
            return rdl_fail(RDL_NO_MEMORY,
                            "no memory to scatter a sequence of %zu bytes",
                            bytes);
    }
    for (size_t place = 0; place < chunks_of(s->size) && bytes > 0; place++)
        memcpy(ranks + place * s->chunk,
               whole + chunk_at(place, s->size) * s->chunk,
               s->chunk * sizeof *whole);
    st = rdl_reduce_scatter(world, group, ranks, local, s->part, RDL_FLOAT32,
                            RDL_SUM, &(rdl_call){ .caller = "context.scatter" });
    rdl_free(ranks);
    return st;
}

rdl_status rdl_context_scatter(rdl_world *world, rdl_group group,
                               const float *whole, float *local, size_t length,
                               size_t columns)
{
    sequence s;

    RDL_TRY(describe(world, group, length, columns, &s));
    if (whole == NULL && s.part > 0)
        return rdl_fail(RDL_INVALID,
                        "rdl_context_scatter: whole is NULL and %zu tokens of "
                        "%zu floats are wanted",
                        length, columns);
    if (s.size == 1)
        return rdl_reduce_scatter(world, group, whole, local, s.part,
                                  RDL_FLOAT32, RDL_SUM,
                                  &(rdl_call){ .caller = "context.scatter" });
    return scatter_in_order(world, group, whole, local, &s);
}
