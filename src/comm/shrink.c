/* Shrinking: the members of a group that are left agree on who they are.
 *
 * Each shows a vote, the set of those it takes for gone, in a text of its slot on
 * the group's own lane. A set is agreed when all who are not in it have shown it.
 * Who is gone stays gone, so a vote only grows; and it grows only when the set it
 * was can no longer be agreed: one who is not in it is gone without having shown
 * it, or has shown a set with somebody else. So whoever looks, now or later, finds
 * the same set agreed, also if some of those who showed it have died since
 * (docs/adr/0016). */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/bell.h"
#include "base/ranks.h"
#include "comm/call.h"
#include "comm/chain.h"
#include "comm/world.h"

#include <raddle/work.h>
#include <string.h>

#define WORDS (RDL_MAX_RANKS / 64)

typedef struct vote {
    uint64_t round; /* which shrinking of the group, from 1; 0: none yet */
    uint64_t gone[WORDS]; /* a bit for each member */
} vote;

typedef struct shrinking {
    rdl_lane *lane;
    int64_t timeout_ms;
    rdl_deadline deadline;
    vote mine;
    int missing; /* the first whose vote is another */
    uint64_t record;
    rdl_call_site site;
} shrinking;

/* --- votes ------------------------------------------------------------------ */

static bool is_in(const vote *v, int member)
{
    return v->gone[member / 64] >> (member % 64) & 1;
}

static void add(vote *v, int member)
{
    v->gone[member / 64] |= UINT64_C(1) << (member % 64);
}

static bool are_same(const vote *a, const vote *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* Adds other's to v; whether there was anything to add. */
static bool join(vote *v, const vote *other)
{
    uint64_t more = 0;

    for (int i = 0; i < WORDS; i++) {
        more |= other->gone[i] & ~v->gone[i];
        v->gone[i] |= other->gone[i];
    }
    return more != 0;
}

/* Of a vote, what the lane's members need. */
static size_t vote_bytes(const rdl_lane *lane)
{
    size_t words = ((size_t)lane->comm->size + 63) / 64;

    return offsetof(vote, gone) + words * sizeof(uint64_t);
}

/* Round 0 if the member has shown none. Texts of votes are not used again. */
static void read_vote(const rdl_lane *lane, int member, vote *out)
{
    rdl_slice *slice = lane->peers[member].slice;
    uint32_t tag, at = 0;
    rdl_slot *slot = rdl_table_find(slice, lane->key, &tag);

    memset(out, 0, sizeof *out);
    if (slot != NULL)
        /* Pairs with the store in show. */
        at = atomic_load_explicit(&slot->vote_text, memory_order_acquire);
    if (rdl_slice_read_text(slice, at, out, vote_bytes(lane)) != vote_bytes(lane))
        memset(out, 0, sizeof *out);
}

static rdl_status show(shrinking *s)
{
    rdl_lane *lane = s->lane;
    uint32_t at =
        rdl_shelf_put_text(&lane->world->shelf, &s->mine, vote_bytes(lane));

    if (at == 0)
        return rdl_fail(RDL_NO_MEMORY,
                        "shrink: no room in the arena to say who "
                        "is gone");
    /* Pairs with the acquire in read_vote; sequentially consistent for the
     * bells. */
    atomic_store_explicit(&lane->mine.slot->vote_text, at, memory_order_seq_cst);
    rdl_lane_ring(lane);
    return RDL_OK;
}

/* Goes on with the vote of a call that timed out, or shows the first: nobody is
 * gone. */
static rdl_status begin(shrinking *s)
{
    read_vote(s->lane, s->lane->comm->me, &s->mine);
    if (s->mine.round == s->lane->shrunk + 1)
        return RDL_OK;
    s->mine = (vote){ .round = s->lane->shrunk + 1 };
    return show(s);
}

/* --- agreeing --------------------------------------------------------------- */

static rdl_status fail_shrink(const shrinking *s, rdl_status status,
                              const char *what)
{
    char group[RDL_LANE_TEXT];

    rdl_lane_text(s->lane, group, sizeof group);
    return rdl_fail(status, "shrink of %s: %s", group, what);
}

/* Whether the member's vote needs no more waiting for: it is ours, or it has gone
 * on to a later shrinking, which it could not without ours. */
static bool has_agreed(const shrinking *s, int member, vote *theirs)
{
    read_vote(s->lane, member, theirs);
    return theirs->round > s->mine.round || are_same(theirs, &s->mine);
}

/* Looks at all votes; *grown says whether ours has become larger. */
static void look_at_votes(shrinking *s, bool *grown)
{
    s->missing = -1;
    *grown = false;
    for (int i = 0; i < s->lane->comm->size; i++) {
        vote theirs;

        if (i == s->lane->comm->me || is_in(&s->mine, i) ||
            has_agreed(s, i, &theirs))
            continue;
        if (theirs.round == s->mine.round && join(&s->mine, &theirs))
            *grown = true;
        else if (s->missing < 0)
            s->missing = i;
    }
}

/* Whether the one that is missing is gone, without a vote that will do: it is
 * looked at again, as it may have shown one before its end. */
static bool has_died(shrinking *s)
{
    char how[RDL_SENTENCE / 2];
    rdl_text text = { how, sizeof how };
    vote last;

    return rdl_lane_is_gone(s->lane, s->missing, &text) &&
           !has_agreed(s, s->missing, &last);
}

/* RDL_OK: agreed. RDL_AGAIN: not yet; *moved: look again before sleeping. */
static rdl_status advance(shrinking *s, bool *moved)
{
    look_at_votes(s, moved);
    if (!*moved && s->missing < 0)
        return RDL_OK;
    if (!*moved && has_died(s)) {
        add(&s->mine, s->missing);
        *moved = true;
    }
    if (!*moved)
        return RDL_AGAIN;
    if (is_in(&s->mine, s->lane->comm->me)) {
        RDL_TRY(rdl_world_check_active(s->lane->world)); /* they are right */
        return fail_shrink(s, RDL_PEER, "the others take this rank for gone");
    }
    RDL_TRY(show(s));
    return RDL_AGAIN;
}

static rdl_status time_out(shrinking *s)
{
    char what[RDL_SENTENCE / 2];
    rdl_text text = { what, sizeof what };
    int missing[RDL_MAX_RANKS], n = 0;
    vote theirs;

    for (int i = 0; i < s->lane->comm->size; i++)
        if (i != s->lane->comm->me && !is_in(&s->mine, i) &&
            !has_agreed(s, i, &theirs))
            missing[n++] = s->lane->comm->ranks[i];
    if (n == 0) /* it came in this very moment */
        missing[n++] = s->lane->comm->ranks[s->missing];
    rdl_text_add(&text, "timed out after %.3g s, waiting for ",
                 (double)s->timeout_ms / 1000);
    rdl_text_add_these_ranks(&text, missing, n);
    for (int i = 0; i < n; i++)
        rdl_chain_add_condition(&text, s->lane->world, missing[i]);
    return fail_shrink(s, RDL_TIMEOUT, what);
}

/* One announced look, and one sleep if there was nothing to see. */
static rdl_status doze(shrinking *s)
{
    rdl_slice *mine = rdl_world_slice(s->lane->world);
    uint32_t bell = rdl_bell_announce(mine);
    bool moved = false;
    rdl_status st = rdl_world_check_active(s->lane->world);

    if (st == RDL_OK)
        st = advance(s, &moved);
    if (st == RDL_AGAIN && !moved && rdl_deadline_passed(s->deadline))
        st = time_out(s);
    if (st == RDL_AGAIN && !moved && s->missing >= 0)
        rdl_recorder_wait(&s->lane->world->recorder, s->record,
                          s->lane->comm->ranks[s->missing]);
    if (st == RDL_AGAIN && !moved)
        rdl_bell_sleep(mine, bell,
                       rdl_deadline_left(s->deadline, RDL_SLEEP_MOST));
    rdl_bell_withdraw(mine);
    return st;
}

static rdl_status agree(shrinking *s)
{
    rdl_status st;

    if (s->lane->comm->size == 1)
        return RDL_OK;
    RDL_TRY(rdl_lane_prepare_until(s->lane, s->deadline));
    RDL_TRY(begin(s));
    do
        st = doze(s);
    while (st == RDL_AGAIN);
    return st;
}

/* --- the public call -------------------------------------------------------- */

static rdl_status open_rest(shrinking *s, rdl_group *out)
{
    const rdl_comm *comm = s->lane->comm;
    int ranks[RDL_MAX_RANKS], n = 0;

    for (int i = 0; i < comm->size; i++)
        if (!is_in(&s->mine, i))
            ranks[n++] = comm->ranks[i];
    RDL_TRY(rdl_registry_open_shrunk(s->lane, ranks, n, out));
    s->lane->shrunk++;
    rdl_lane_reported(s->lane); /* who shrinks a group knows that it has ended */
    return RDL_OK;
}

static rdl_status check_member(const rdl_lane *lane)
{
    char text[RDL_LANE_TEXT];

    if (lane->comm->me >= 0)
        return RDL_OK;
    rdl_lane_text(lane, text, sizeof text);
    return rdl_fail(RDL_INVALID, "shrink: rank %d is not in %s",
                    lane->world->rank, text);
}

static rdl_status shrink(shrinking *s, rdl_group group, rdl_group *out)
{
    rdl_status st;

    RDL_TRY(check_member(s->lane));
    if (atomic_exchange_explicit(&s->lane->shrinking, true, memory_order_acquire))
        return rdl_fail(RDL_STATE, "shrink: another thread of this rank is "
                                   "shrinking the group");
    /* Who still waits in a call on it is to come too. */
    st = rdl_call_revoke(s->lane->world, group, s->site);
    if (st == RDL_OK)
        st = agree(s);
    if (st == RDL_OK)
        st = open_rest(s, out);
    atomic_store_explicit(&s->lane->shrinking, false, memory_order_release);
    return st;
}

static uint64_t record(shrinking *s)
{
    rdl_world *world = s->lane->world;
    rdl_entry entry = { .lane = s->lane->key.low,
                        .site = rdl_texts_site(&world->texts, s->site),
                        .operation = RDL_RECORD_SHRINK,
                        .flags = RDL_RECORD_BLOCKS };

    return rdl_recorder_add(&world->recorder, &entry);
}

static rdl_status shrink_group(rdl_world *world, rdl_group group,
                               int64_t timeout_ms, rdl_group *out,
                               rdl_call_site site)
{
    rdl_call limit = { .timeout_ms = timeout_ms };
    shrinking s = { .site = site };
    uint64_t ticket = 0;
    rdl_status st;

    RDL_TRY(rdl_world_check(world));
    if (out == NULL)
        return rdl_fail(RDL_INVALID, "rdl_group_shrink: out is NULL");
    RDL_TRY(rdl_call_timeout(world, &limit, "shrink", &s.timeout_ms));
    s.deadline = rdl_deadline_after_ms(s.timeout_ms);
    RDL_TRY(rdl_registry_enter(world, group, &s.lane, &ticket));
    s.record = record(&s);
    st = shrink(&s, group, out);
    rdl_recorder_end(&world->recorder, s.record, st, true);
    rdl_lane_give_up_turn(s.lane, ticket);
    return st;
}

RDL_PUBLIC_CALL(rdl_group_shrink,
                shrink_group(world, group, timeout_ms, out, site),
                rdl_world *world, rdl_group group, int64_t timeout_ms,
                rdl_group *out)
