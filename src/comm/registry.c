/* The group registry: from list and name to lane, without a message.
 *
 * A lane that is closed keeps its slot and its sequence, dormant, so that opening
 * it again goes on with the next number; nobody needs to agree on that. Only when
 * no slot is free is a dormant one given back: once every other member has passed
 * its last operation, or has no entry for the key (it then passed it too, and
 * gave its slot back first). What stays is a ghost, the sequence alone. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/memory.h"
#include "base/ranks.h"
#include "comm/nook.h"
#include "comm/world.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* --- keys ------------------------------------------------------------------ */

static rdl_key list_key(const int *ranks, int count)
{
    rdl_key key = { 3, 4 };

    for (int i = 0; i < count; i++) {
        key.low = rdl_hash_add(key.low, (uint64_t)ranks[i]);
        key.high = rdl_hash_add(key.high, (uint64_t)ranks[i]);
    }
    return (rdl_key){ key.low, key.high | 2 }; /* never empty or removed */
}

static rdl_key lane_key(rdl_key list, const char *name)
{
    size_t n = strlen(name);

    return (rdl_key){ rdl_hash_bytes(list.low, name, n),
                      rdl_hash_bytes(list.high, name, n) | 2 };
}

/* --- communicators --------------------------------------------------------- */

static rdl_comm *find_comm(rdl_world *world, rdl_key key)
{
    rdl_pair *pair = rdl_map_get(&world->comms, key);

    return pair ? (rdl_comm *)(uintptr_t)pair->first : NULL;
}

/* What the account calls a communicator. */
static uint32_t counts(const rdl_comm *comm)
{
    return comm->size > 1 && comm->me >= 0;
}

static rdl_status make_comm(rdl_world *world, rdl_key key, const int *ranks,
                            int count, rdl_comm **out)
{
    rdl_comm *comm = rdl_calloc_for(
        &world->purse, 1, sizeof *comm + (size_t)count * sizeof *ranks);
    rdl_status st;

    if (comm == NULL)
        return rdl_fail(RDL_NO_MEMORY, "no memory for a list of %d ranks",
                        count);
    comm->key = key;
    comm->size = count;
    comm->me = -1;
    for (int i = 0; i < count; i++) {
        comm->ranks[i] = ranks[i];
        if (ranks[i] == world->rank)
            comm->me = i;
    }
    st = rdl_map_put(&world->comms, key,
                     (rdl_pair){ (uint64_t)(uintptr_t)comm, 0 });
    if (st != RDL_OK) {
        rdl_free(comm);
        return st;
    }
    world->n_comms += counts(comm);
    *out = comm;
    return RDL_OK;
}

static void drop_comm(rdl_world *world, rdl_comm *comm)
{
    if (comm == NULL || comm->lanes > 0)
        return;
    rdl_map_remove(&world->comms, comm->key);
    world->n_comms -= counts(comm);
    rdl_free(comm);
}

/* --- lanes: memory --------------------------------------------------------- */

static rdl_status add_chunk(rdl_world *world)
{
    uint32_t chunk = world->n_lanes / RDL_LANES_IN_CHUNK;
    rdl_lane *lanes;

    if (chunk == RDL_LANE_CHUNKS)
        return rdl_fail(RDL_NO_MEMORY, "%d groups are open: no more handles",
                        RDL_LANE_CHUNKS * RDL_LANES_IN_CHUNK);
    lanes = rdl_calloc_for(&world->purse, RDL_LANES_IN_CHUNK, sizeof *lanes);
    if (lanes == NULL)
        return rdl_fail(RDL_NO_MEMORY, "no memory for %d groups",
                        RDL_LANES_IN_CHUNK);
    for (uint32_t i = RDL_LANES_IN_CHUNK; i-- > 0;) {
        rdl_lane *lane = &lanes[i];

        lane->world = world;
        lane->index = world->n_lanes + i;
        atomic_init(&lane->generation, 1);
        rdl_turns_init(&lane->turns, &world->purse);
        pthread_mutex_init(&lane->failing, NULL);
        lane->next = world->free_lanes;
        world->free_lanes = lane;
    }
    world->n_lanes += RDL_LANES_IN_CHUNK;
    /* Pairs with the acquire in lane_at. */
    atomic_store_explicit(&world->chunks[chunk], lanes, memory_order_release);
    return RDL_OK;
}

static rdl_lane *lane_at(rdl_world *world, uint32_t index)
{
    rdl_lane *lanes;

    if (index >= RDL_LANE_CHUNKS * RDL_LANES_IN_CHUNK)
        return NULL;
    lanes = atomic_load_explicit(&world->chunks[index / RDL_LANES_IN_CHUNK],
                                 memory_order_acquire);
    return lanes ? &lanes[index % RDL_LANES_IN_CHUNK] : NULL;
}

/* Frees what a lane holds and makes its memory fit for another. */
static void clear_lane(rdl_world *world, rdl_lane *lane)
{
    if (lane->comm != NULL) {
        lane->comm->lanes--;
        drop_comm(world, lane->comm);
    }
    rdl_free(lane->name);
    rdl_free(lane->title);
    rdl_free(lane->pairs);
    rdl_free(lane->peers);
    rdl_free(lane->cause);
    lane->comm = NULL;
    lane->name = NULL;
    lane->title = NULL;
    lane->pairs = NULL;
    lane->peers = NULL;
    lane->cause = NULL;
    lane->mine = (rdl_slot_ref){ 0 };
    lane->sequence = 0;
    lane->settled = 0;
    lane->number = 0;
    lane->nook_uses = 0;
    atomic_store_explicit(&lane->failure, RDL_OK, memory_order_relaxed);
    atomic_store_explicit(&lane->reported, false, memory_order_relaxed);
    atomic_store_explicit(&lane->stream, 0, memory_order_relaxed);
    atomic_store_explicit(&lane->prepared, false, memory_order_relaxed);
    lane->shrunk = 0;
    lane->next = world->free_lanes;
    world->free_lanes = lane;
}

/* --- dormant lanes --------------------------------------------------------- */

static void fall_asleep(rdl_world *world, rdl_lane *lane)
{
    lane->next = NULL;
    lane->previous = world->dormant_last;
    if (world->dormant_last != NULL)
        world->dormant_last->next = lane;
    else
        world->dormant_first = lane;
    world->dormant_last = lane;
}

static void wake_up(rdl_world *world, rdl_lane *lane)
{
    if (lane->previous != NULL)
        lane->previous->next = lane->next;
    else
        world->dormant_first = lane->next;
    if (lane->next != NULL)
        lane->next->previous = lane->previous;
    else
        world->dormant_last = lane->previous;
    lane->next = lane->previous = NULL;
}

#ifdef RDL_MUTANT_SWEEP /* tests must catch this build */
#define MUST_HAVE_PASSED(sequence) ((sequence)*0)
#else
#define MUST_HAVE_PASSED(sequence) (sequence)
#endif

/* Whether the other member no longer needs what our slot says. */
static bool has_passed(const rdl_lane *lane, int member)
{
    rdl_slice *slice = rdl_arena_slice(&lane->world->mapping->arena,
                                       lane->comm->ranks[member]);
    uint32_t tag;
    rdl_slot *slot = rdl_table_find(slice, lane->key, &tag);

    /* In the world it may not have come yet; elsewhere nobody goes on without it. */
    if (slot == NULL)
        return lane->index != 0;
    /* Pairs with the release at the end of each operation. A slot given back in
     * this very moment reads 0 and is looked at again next time. */
    return atomic_load_explicit(&slot->passed, memory_order_acquire) >=
           MUST_HAVE_PASSED(lane->sequence);
}

/* Whether it reads nothing any more, as far as one sees without asking the system. */
static bool has_gone(const rdl_lane *lane, int member)
{
    const rdl_arena *arena = &lane->world->mapping->arena;
    int rank = lane->comm->ranks[member];
    uint32_t state = atomic_load_explicit(&rdl_arena_slice(arena, rank)->state,
                                          memory_order_acquire);

    return state == RDL_SLICE_LEFT || state == RDL_SLICE_FAILED ||
           atomic_load_explicit(&arena->header->obituaries[rank].gone,
                                memory_order_acquire) != 0;
}

bool rdl_registry_all_passed(const rdl_lane *lane)
{
    /* A failed lane has no operation that everybody passed. */
    if (atomic_load_explicit(&lane->failure, memory_order_relaxed) != RDL_OK)
        return false;
    for (int i = 0; i < lane->comm->size; i++)
        if (i != lane->comm->me && !has_passed(lane, i) && !has_gone(lane, i))
            return false;
    return true;
}

/* Gives a dormant lane's slot back if that is possible. */
static bool dissolve(rdl_world *world, rdl_lane *lane)
{
    /* The world's stays: calls run ahead there, so that a member without a slot may
     * have come and gone, or not have come (adr/0020). */
    if (lane->index == 0 || !rdl_registry_all_passed(lane))
        return false;
    if (rdl_ghosts_put(&world->ghosts, lane->key,
                       (rdl_ghost){ lane->sequence, lane->number }) != RDL_OK)
        return false;
    rdl_shelf_give_slot(&world->shelf, &lane->mine);
    rdl_nook_give(lane);
    world->n_slots--;
    wake_up(world, lane);
    rdl_map_remove(&world->lanes, lane->key);
    clear_lane(world, lane);
    return true;
}

/* Looks for a slot to take back, the longest unused first. */
static bool sweep(rdl_world *world)
{
    for (rdl_lane *lane = world->dormant_first, *next; lane != NULL;
         lane = next) {
        uint64_t ticket;
        bool done;

        next = lane->next;
        if (!rdl_turns_try(&lane->turns, &ticket))
            continue; /* a stale handle is being looked at */
        done = dissolve(world, lane);
        rdl_turns_pass(&lane->turns, ticket);
        if (done)
            return true;
    }
    return false;
}

/* Whether a slot comes back without us: of a closed group whose other members have yet
 * to pass its last operation. */
static bool may_come(const rdl_world *world)
{
    for (const rdl_lane *lane = world->dormant_first; lane != NULL;
         lane = lane->next)
        if (atomic_load_explicit(&lane->failure, memory_order_relaxed) == RDL_OK)
            return true;
    return false;
}

/* The list and the name, as peers read them: counts, ranks of 16 bits, bytes. */
static size_t write_list(const rdl_lane *lane, void *buffer)
{
    uint32_t counts[2] = { (uint32_t)lane->comm->size,
                           (uint32_t)strlen(lane->name) };
    unsigned char *at = buffer;

    memcpy(at, counts, sizeof counts);
    at += sizeof counts;
    for (int i = 0; i < lane->comm->size; i++, at += sizeof(uint16_t)) {
        uint16_t rank = (uint16_t)lane->comm->ranks[i];

        memcpy(at, &rank, sizeof rank);
    }
    memcpy(at, lane->name, counts[1]);
    return (size_t)(at - (unsigned char *)buffer) + counts[1];
}

static rdl_status no_slot(const rdl_world *world)
{
    return rdl_fail(RDL_NO_MEMORY,
                    "this rank has %" PRIu32 " groups in use, which is its "
                    "limit (or that of their lists)%s: close some, or raise "
                    "rdl_host_options.groups",
                    world->n_slots,
                    may_come(world) ? ", and of those that are closed other "
                                      "members are still in the last call"
                                    : "");
}

static rdl_status take_slot(rdl_world *world, rdl_lane *lane)
{
    unsigned char list[8 + 2 * RDL_MAX_RANKS + RDL_NAME_MOST];
    size_t bytes = write_list(lane, list);
    uint64_t name = rdl_hash_bytes(5, lane->name, strlen(lane->name));
    rdl_status st;

    do
        st = rdl_shelf_take_slot(&world->shelf, lane->key, name, list, bytes,
                                 &lane->mine);
    while (st == RDL_AGAIN && sweep(world));
    return st == RDL_AGAIN && !may_come(world) ? no_slot(world) : st;
}

rdl_status rdl_registry_no_slot(rdl_world *world)
{
    rdl_status st;

    pthread_mutex_lock(&world->lock);
    st = no_slot(world);
    pthread_mutex_unlock(&world->lock);
    return st;
}

rdl_status rdl_registry_give_slot(rdl_world *world, rdl_lane *lane)
{
    rdl_ghost ghost;
    rdl_status st;

    pthread_mutex_lock(&world->lock);
    st = take_slot(world, lane);
    if (st == RDL_OK) {
        world->n_slots++;
        if (rdl_ghosts_get(&world->ghosts, lane->key, &ghost)) {
            lane->sequence = lane->settled = ghost.sequence;
            lane->number = ghost.number;
            atomic_store_explicit(&lane->mine.slot->passed, lane->sequence,
                                  memory_order_release);
        }
    }
    pthread_mutex_unlock(&world->lock);
    return st;
}

/* --- opening and closing --------------------------------------------------- */

static rdl_lane *find_lane(rdl_world *world, rdl_key key)
{
    rdl_pair *pair = rdl_map_get(&world->lanes, key);

    return pair ? (rdl_lane *)(uintptr_t)pair->first : NULL;
}

/* A new lane that refers to comm, in the map. */
static rdl_status make_lane(rdl_world *world, rdl_comm *comm, rdl_key key,
                            const char *name, rdl_lane **out)
{
    rdl_lane *lane;
    rdl_status st;

    if (world->free_lanes == NULL)
        RDL_TRY(add_chunk(world));
    lane = world->free_lanes;
    world->free_lanes = lane->next;
    lane->next = NULL;
    lane->comm = comm;
    comm->lanes++;
    lane->key = key;
    lane->name = rdl_copy_text_for(&world->purse, name, strlen(name));
    st = lane->name ? rdl_map_put(&world->lanes, key,
                                  (rdl_pair){ (uint64_t)(uintptr_t)lane, 0 })
                    : rdl_fail(RDL_NO_MEMORY, "no memory for a name");
    if (st != RDL_OK) {
        clear_lane(world, lane);
        return st;
    }
    *out = lane;
    return RDL_OK;
}

static rdl_status open_lane(rdl_world *world, const int *ranks, int count,
                            const char *name, rdl_lane **out)
{
    rdl_key list = list_key(ranks, count);
    rdl_key key = lane_key(list, name);
    rdl_lane *lane = find_lane(world, key);
    rdl_comm *comm;
    rdl_status st;

    if (lane == NULL) {
        comm = find_comm(world, list);
        if (comm == NULL)
            RDL_TRY(make_comm(world, list, ranks, count, &comm));
        /* On failure the last lane's end has dropped comm with it, unless no
         * lane was had at all. */
        st = make_lane(world, comm, key, name, &lane);
        if (st != RDL_OK) {
            drop_comm(world, find_comm(world, list));
            return st;
        }
    } else if (lane->openings == 0) {
        wake_up(world, lane);
    }
    if (lane->openings++ == 0)
        world->n_open++;
    world->n_openings++;
    *out = lane;
    return RDL_OK;
}

static rdl_status check_list(const rdl_world *world, const int *ranks, int count)
{
    uint64_t seen[RDL_MAX_RANKS / 64] = { 0 };

    if (ranks == NULL || count < 1)
        return rdl_fail(RDL_INVALID, "a group wants at least one rank, not %d",
                        ranks ? count : 0);
    for (int i = 0; i < count; i++) {
        int rank = ranks[i];

        if (rank < 0 || rank >= world->size)
            return rdl_fail(RDL_INVALID,
                            "rank %d, at place %d of %d, is "
                            "outside 0..%d",
                            rank, i, count, world->size - 1);
        if (seen[rank / 64] >> (rank % 64) & 1)
            return rdl_fail(RDL_INVALID,
                            "rank %d stands twice in the list, "
                            "again at place %d of %d",
                            rank, i, count);
        seen[rank / 64] |= UINT64_C(1) << (rank % 64);
    }
    return RDL_OK;
}

/* Under the world's lock. */
static rdl_group handle_of(const rdl_lane *lane)
{
    return (rdl_group){ .index = lane->index,
                        .generation = atomic_load_explicit(
                            &lane->generation, memory_order_relaxed),
                        .world = lane->world->id };
}

rdl_status rdl_group_open(rdl_world *world, const int *ranks, int count,
                          const char *name, rdl_group *out)
{
    rdl_lane *lane;
    rdl_status st;

    RDL_TRY(rdl_world_check(world));
    if (out == NULL)
        return rdl_fail(RDL_INVALID, "rdl_group_open: out is NULL");
    RDL_TRY(check_list(world, ranks, count));
    if (name == NULL)
        name = "";
    if (strlen(name) > RDL_NAME_MOST)
        return rdl_fail(RDL_INVALID,
                        "the name '%.20s...' has %zu bytes; %d is "
                        "the most",
                        name, strlen(name), RDL_NAME_MOST);
    pthread_mutex_lock(&world->lock);
    st = open_lane(world, ranks, count, name, &lane);
    if (st == RDL_OK)
        *out = handle_of(lane);
    pthread_mutex_unlock(&world->lock);
    return st;
}

/* --- groups of those who are left ------------------------------------------- */

/* The same on all of them, and of no other group or shrinking. */
static void name_shrunk(const rdl_lane *from, char name[RDL_NAME_MOST + 1])
{
    snprintf(name, RDL_NAME_MOST + 1, "\2%016" PRIx64 "%016" PRIx64 "%08" PRIx32,
             from->key.low, from->key.high, from->shrunk);
}

static void title_shrunk(const rdl_lane *from, rdl_lane *lane)
{
    char title[RDL_LANE_TEXT], group[RDL_LANE_TEXT];
    rdl_text text = { title, sizeof title };

    rdl_lane_text(from, group, sizeof group);
    rdl_text_add(&text, "%s shrunk to [", group);
    rdl_text_add_ranks(&text, lane->comm->ranks, lane->comm->size);
    rdl_text_add(&text, "]");
    /* Without memory for it the message is a little less clear. */
    lane->title = rdl_copy_text_for(&lane->world->purse, title, strlen(title));
}

rdl_status rdl_registry_open_shrunk(rdl_lane *from, const int *ranks, int count,
                                    rdl_group *out)
{
    rdl_world *world = from->world;
    char name[RDL_NAME_MOST + 1];
    rdl_lane *lane;
    rdl_status st;

    name_shrunk(from, name);
    pthread_mutex_lock(&world->lock);
    st = open_lane(world, ranks, count, name, &lane);
    if (st == RDL_OK && lane->title == NULL)
        title_shrunk(from, lane);
    if (st == RDL_OK)
        *out = handle_of(lane);
    pthread_mutex_unlock(&world->lock);
    return st;
}

static bool is_world(rdl_group group)
{
    return group.index == 0 && group.generation == 0 && group.world == 0;
}

static rdl_status stale(rdl_group group)
{
    return rdl_fail(RDL_INVALID,
                    "the group's handle (%" PRIu32 ".%" PRIu32 ") is "
                    "not open: it was closed",
                    group.index, group.generation);
}

static rdl_status find_handle(rdl_world *world, rdl_group group, rdl_lane **out)
{
    RDL_TRY(rdl_world_check(world));
    if (!is_world(group) && group.world != world->id)
        return rdl_fail(RDL_INVALID,
                        "the group's handle (%" PRIu32 ".%" PRIu32
                        ") belongs to another world or to one that was closed: "
                        "its groups were destroyed with it",
                        group.index, group.generation);
    *out = lane_at(world, group.index);
    return *out ? RDL_OK : stale(group);
}

/* By who has a ticket, or under the world's lock. */
static bool means(const rdl_lane *lane, rdl_group group)
{
    return is_world(group) ||
           atomic_load_explicit(&lane->generation, memory_order_relaxed) ==
               group.generation;
}

rdl_status rdl_registry_enter(rdl_world *world, rdl_group group, rdl_lane **out,
                              uint64_t *ticket)
{
    rdl_lane *lane;

    RDL_TRY(find_handle(world, group, &lane));
    RDL_TRY(rdl_world_check_active(world));
    *ticket = rdl_turns_take(&lane->turns);
    if (!means(lane, group)) {
        rdl_lane_give_up_turn(lane, *ticket);
        return stale(group);
    }
    *out = lane;
    return RDL_OK;
}

/* The first failure if nobody has heard of it. */
static rdl_status last_word(rdl_lane *lane)
{
    rdl_status st;

    if (atomic_load_explicit(&lane->reported, memory_order_relaxed))
        return RDL_OK;
    st = rdl_lane_state(lane);
    rdl_lane_reported(lane);
    return st;
}

static void close_lane(rdl_world *world, rdl_lane *lane)
{
    if (lane->openings > 1) {
        lane->openings--;
        return;
    }
    lane->openings = 0;
    world->n_open--;
    atomic_fetch_add_explicit(&lane->generation, 1, memory_order_relaxed);
    if (lane->mine.slot != NULL) {
        fall_asleep(world, lane);
    } else {
        rdl_map_remove(&world->lanes, lane->key);
        clear_lane(world, lane);
    }
}

/* --- pairs: a lane from one member to another, for send and receive ---------- */

static rdl_lane **pair_place(rdl_lane *lane, int peer, bool sends)
{
    return &lane->pairs[2 * peer + sends];
}

/* The same on both ends, and on no other group or lane. */
static void name_pair(const rdl_lane *lane, char name[RDL_NAME_MOST + 1])
{
    snprintf(name, RDL_NAME_MOST + 1, "\1%016" PRIx64 "%016" PRIx64,
             lane->key.low, lane->key.high);
}

static rdl_status open_pair(rdl_world *world, rdl_lane *lane, int peer,
                            bool sends, rdl_lane **out)
{
    int me = world->rank, other = lane->comm->ranks[peer];
    int ranks[2] = { sends ? me : other, sends ? other : me };
    int count = me == other ? 1 : 2;
    char name[RDL_NAME_MOST + 1], title[RDL_LANE_TEXT], group[RDL_LANE_TEXT / 2];

    name_pair(lane, name);
    RDL_TRY(open_lane(world, ranks, count, name, out));
    world->n_openings--; /* it is nobody's rdl_group_open */
    if ((*out)->title == NULL) {
        rdl_lane_text(lane, group, sizeof group);
        snprintf(title, sizeof title, "the way from rank %d to rank %d in %s",
                 ranks[0], ranks[1], group);
        /* Without memory for it the message is a little less clear. */
        (*out)->title = rdl_copy_text_for(&world->purse, title, strlen(title));
    }
    return RDL_OK;
}

static rdl_status find_pair(rdl_world *world, rdl_lane *lane, int peer,
                            bool sends, rdl_lane **out)
{
    rdl_lane **place;

    if (lane->pairs == NULL)
        lane->pairs = rdl_calloc_for(
            &world->purse, 2 * (size_t)lane->comm->size, sizeof *lane->pairs);
    if (lane->pairs == NULL)
        return rdl_fail(RDL_NO_MEMORY, "no memory for %d pairs",
                        lane->comm->size);
    place = pair_place(lane, peer, sends);
    if (*place == NULL)
        RDL_TRY(open_pair(world, lane, peer, sends, place));
    *out = *place;
    return RDL_OK;
}

static rdl_status check_pair(rdl_lane *lane, int peer, bool sends)
{
    const char *name = sends ? "send" : "receive";
    char text[RDL_LANE_TEXT];

    rdl_lane_text(lane, text, sizeof text);
    if (lane->comm->me < 0)
        return rdl_fail(RDL_INVALID, "%s: rank %d is not in %s", name,
                        lane->world->rank, text);
    if (peer < 0 || peer >= lane->comm->size)
        return rdl_fail(RDL_INVALID,
                        "%s: peer %d is outside the group ranks 0..%d of %s",
                        name, peer, lane->comm->size - 1, text);
    return RDL_OK;
}

rdl_status rdl_registry_pair(rdl_world *world, rdl_group group, int peer,
                             bool sends, rdl_lane **out, uint64_t *ticket)
{
    rdl_lane *lane;
    rdl_status st;

    RDL_TRY(find_handle(world, group, &lane));
    pthread_mutex_lock(&world->lock);
    st = means(lane, group) ? check_pair(lane, peer, sends) : stale(group);
    if (st == RDL_OK)
        st = find_pair(world, lane, peer, sends, out);
    if (st == RDL_OK) /* now, so that it stays open */
        *ticket = rdl_turns_take(&(*out)->turns);
    pthread_mutex_unlock(&world->lock);
    return st;
}

/* The world's lock is not held while they are revoked: a lane that is prepared takes
 * it under the lock that revoking takes. Their tickets keep the ways open. */
void rdl_registry_revoke_pairs(rdl_lane *lane,
                               void (*revoke)(rdl_lane *way, uint32_t site),
                               uint32_t site)
{
    rdl_lane *ways[2 * RDL_MAX_RANKS];
    uint64_t tickets[2 * RDL_MAX_RANKS];
    int n = 0;

    pthread_mutex_lock(&lane->world->lock);
    for (int i = 0; lane->pairs != NULL && i < 2 * lane->comm->size; i++) {
        if (lane->pairs[i] == NULL)
            continue;
        ways[n] = lane->pairs[i];
        tickets[n++] = rdl_turns_take(&lane->pairs[i]->turns);
    }
    pthread_mutex_unlock(&lane->world->lock);
    for (int i = 0; i < n; i++) {
        revoke(ways[i], site);
        rdl_lane_give_up_turn(ways[i], tickets[i]);
    }
}

/* The turn of who holds it. */
static void pass_held(rdl_lane *lane)
{
    rdl_turns_pass(&lane->turns, atomic_load_explicit(&lane->turns.turn,
                                                      memory_order_relaxed));
}

/* Whether no thread is inside one of them; we have their turns then. */
static bool hold_pairs(const rdl_lane *lane)
{
    int n = lane->pairs ? 2 * lane->comm->size : 0;

    for (int i = 0; i < n; i++) {
        uint64_t ticket;

        if (lane->pairs[i] == NULL ||
            rdl_turns_try(&lane->pairs[i]->turns, &ticket))
            continue;
        while (i-- > 0)
            if (lane->pairs[i] != NULL)
                pass_held(lane->pairs[i]);
        return false;
    }
    return true;
}

static rdl_status close_pairs(rdl_world *world, rdl_lane *lane)
{
    int n = lane->pairs ? 2 * lane->comm->size : 0;
    rdl_status first = RDL_OK;

    for (int i = 0; i < n; i++) {
        if (lane->pairs[i] == NULL)
            continue;
        if (first == RDL_OK)
            first = last_word(lane->pairs[i]);
        close_lane(world, lane->pairs[i]);
        pass_held(lane->pairs[i]);
    }
    rdl_free(lane->pairs);
    lane->pairs = NULL;
    return first;
}

/* With the lane's turn, under the world's lock. */
static rdl_status close_group(rdl_world *world, rdl_lane *lane, rdl_group group)
{
    rdl_status pairs, own;

    /* The world's own opening ends with the world. */
    if (!means(lane, group) || (lane->index == 0 && lane->openings == 1))
        return stale(group);
    if (lane->openings > 1) {
        close_lane(world, lane);
        return RDL_OK;
    }
    if (!hold_pairs(lane))
        return rdl_fail(RDL_STATE,
                        "the group is in use: a transfer is pending");
    pairs = close_pairs(world, lane);
    own = last_word(lane); /* last: its sentence counts */
    close_lane(world, lane);
    return own != RDL_OK ? own : pairs;
}

rdl_status rdl_group_close(rdl_world *world, rdl_group group)
{
    uint64_t ticket;
    rdl_lane *lane;
    rdl_status st;

    RDL_TRY(find_handle(world, group, &lane));
    if (is_world(group))
        return RDL_OK;
    if (!rdl_turns_try(&lane->turns, &ticket))
        return rdl_fail(RDL_STATE, "the group is in use: a call or a pending "
                                   "operation is inside");
    if (means(lane, group)) /* what the others found, if we have not asked yet */
        rdl_lane_hear(lane);
    pthread_mutex_lock(&world->lock);
    st = close_group(world, lane, group);
    pthread_mutex_unlock(&world->lock);
    rdl_lane_pass_turn(lane, ticket);
    return st;
}

/* --- the whole ------------------------------------------------------------- */

rdl_status rdl_registry_init(rdl_world *world)
{
    int ranks[RDL_MAX_RANKS];
    rdl_lane *lane;

    for (int i = 0; i < world->size; i++)
        ranks[i] = i;
    RDL_TRY(open_lane(world, ranks, world->size, "", &lane));
    rdl_assert(lane->index == 0);
    world->n_openings = 0; /* the world itself is nobody's opening */
    return RDL_OK;
}

void rdl_registry_fini(rdl_world *world)
{
    for (uint32_t i = 0; i < world->n_lanes; i++) {
        rdl_lane *lane = lane_at(world, i);

        clear_lane(world, lane);
        rdl_turns_fini(&lane->turns);
        pthread_mutex_destroy(&lane->failing);
    }
    for (uint32_t c = 0; c < world->n_lanes / RDL_LANES_IN_CHUNK; c++)
        rdl_free(atomic_load_explicit(&world->chunks[c], memory_order_relaxed));
    rdl_map_fini(&world->comms);
    rdl_map_fini(&world->lanes);
    rdl_ghosts_fini(&world->ghosts);
}

rdl_status rdl_registry_unreported(rdl_world *world)
{
    for (uint32_t i = 0; i < world->n_lanes; i++) {
        rdl_lane *lane = lane_at(world, i);

        if (lane->openings > 0)
            rdl_lane_hear(lane);
        RDL_TRY(last_word(lane));
    }
    return RDL_OK;
}

void rdl_registry_stream_reported(rdl_world *world, uint64_t stream)
{
    pthread_mutex_lock(&world->lock);
    for (uint32_t i = 0; i < world->n_lanes; i++) {
        rdl_lane *lane = lane_at(world, i);

        if (atomic_load_explicit(&lane->stream, memory_order_relaxed) == stream &&
            atomic_load_explicit(&lane->failure, memory_order_relaxed) != RDL_OK)
            rdl_lane_reported(lane);
    }
    pthread_mutex_unlock(&world->lock);
}

/* --- questions ------------------------------------------------------------- */

/* The lane of an open handle, with the world's lock held: a question must not
 * wait for an operation. */
static rdl_status ask(rdl_world *world, rdl_group group, const void *out,
                      rdl_lane **lane)
{
    if (out == NULL)
        return rdl_fail(RDL_INVALID, "where the answer should go is NULL");
    RDL_TRY(find_handle(world, group, lane));
    pthread_mutex_lock(&world->lock);
    if (means(*lane, group))
        return RDL_OK;
    pthread_mutex_unlock(&world->lock);
    return stale(group);
}

rdl_status rdl_group_size(rdl_world *world, rdl_group group, int *size)
{
    rdl_lane *lane;

    RDL_TRY(ask(world, group, size, &lane));
    *size = lane->comm->size;
    pthread_mutex_unlock(&world->lock);
    return RDL_OK;
}

rdl_status rdl_group_rank(rdl_world *world, rdl_group group, int *rank)
{
    rdl_lane *lane;

    RDL_TRY(ask(world, group, rank, &lane));
    *rank = lane->comm->me;
    pthread_mutex_unlock(&world->lock);
    return RDL_OK;
}

static int place_of(const rdl_comm *comm, int world_rank)
{
    for (int i = 0; i < comm->size; i++)
        if (comm->ranks[i] == world_rank)
            return i;
    return -1;
}

rdl_status rdl_group_rank_of(rdl_world *world, rdl_group group, int world_rank,
                             int *group_rank)
{
    rdl_lane *lane;
    char text[RDL_LANE_TEXT];
    int place;

    RDL_TRY(ask(world, group, group_rank, &lane));
    place = place_of(lane->comm, world_rank);
    rdl_lane_text(lane, text, sizeof text);
    pthread_mutex_unlock(&world->lock);
    if (place < 0)
        return rdl_fail(RDL_INVALID, "rank %d is not in %s", world_rank, text);
    *group_rank = place;
    return RDL_OK;
}

rdl_status rdl_group_world_rank(rdl_world *world, rdl_group group,
                                int group_rank, int *world_rank)
{
    rdl_lane *lane;
    rdl_status st = RDL_OK;
    char text[RDL_LANE_TEXT];

    RDL_TRY(ask(world, group, world_rank, &lane));
    if (group_rank >= 0 && group_rank < lane->comm->size) {
        *world_rank = lane->comm->ranks[group_rank];
    } else {
        rdl_lane_text(lane, text, sizeof text);
        st = rdl_fail(RDL_INVALID, "group rank %d is outside 0..%d of %s",
                      group_rank, lane->comm->size - 1, text);
    }
    pthread_mutex_unlock(&world->lock);
    return st;
}
