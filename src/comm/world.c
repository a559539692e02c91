/* Worlds: joining, leaving, and what ranks tell each other by it. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/world.h"
#include "comm/seats.h"

#include "base/bell.h"
#include "base/memory.h"
#include "base/store.h"
#include "base/topology.h"
#include "comm/stream.h"

#include <inttypes.h>
#include <raddle/version.h>
#include <stdlib.h>
#include <unistd.h>

#define MS INT64_C(1000000)
/* So many second levels all results together must fill to be stored past them. */
#define STREAMED_L2S 16

const char *rdl_version(void)
{
    return RDL_VERSION;
}

rdl_status rdl_world_check(const rdl_world *world)
{
    if (world == NULL)
        return rdl_fail(RDL_INVALID, "the world is NULL");
    if (!rdl_fork_mark_holds(world->host->mark))
        return rdl_fail(
            RDL_STATE,
            "used after fork: this world belongs to process %" PRIu32
            " and a forked child (%d) is no rank of it",
            world->self.pid, (int)getpid());
    return RDL_OK;
}

int rdl_world_rank(const rdl_world *world)
{
    return world ? world->rank : -1;
}

int rdl_world_size(const rdl_world *world)
{
    return world ? world->size : -1;
}

/* --- joining --------------------------------------------------------------- */

static rdl_slice *own_slice(const rdl_world *world)
{
    return rdl_arena_slice(&world->mapping->arena, world->rank);
}

static void set_state(rdl_world *world, rdl_slice_state state)
{
    /* Sequentially consistent for the bells; pairs with the waiters' loads. */
    atomic_store_explicit(&own_slice(world)->state, state, memory_order_seq_cst);
    for (int rank = 0; rank < world->size; rank++)
        if (rank != world->rank)
            rdl_bell_ring(rdl_arena_slice(&world->mapping->arena, rank));
}

static void give_up(rdl_world *world, rdl_status failure, const char *reason)
{
    rdl_slice *slice = own_slice(world);

    slice->failure = (uint32_t)failure;
    snprintf(slice->reason, sizeof slice->reason, "%s", reason);
    for (char *c = slice->reason; *c != 0; c++)
        if ((unsigned char)*c < ' ') /* sentences are one line */
            *c = ' ';
    set_state(world, RDL_SLICE_FAILED);
}

static bool has_given_up(const rdl_world *world)
{
    return atomic_load_explicit(&own_slice(world)->state,
                                memory_order_relaxed) == RDL_SLICE_FAILED;
}

static bool is_dead(const rdl_world *world, uint32_t pid, uint64_t started,
                    uint64_t pid_namespace)
{
    rdl_process process = { pid, started, pid_namespace };

    return rdl_process_liveness(&world->self, &process) == RDL_DEAD;
}

static rdl_status repeat_failure(const rdl_slice *slice, int rank)
{
    char reason[RDL_REASON];
    rdl_status failure = rdl_slice_read_failure(slice, reason);

    if (slice->aborted != 0) /* what a program says is no sentence of ours */
        return rdl_fail(failure, "rank %d gave up while the job starts: %s",
                        rank, reason);
    return rdl_fail(failure, "%s", reason);
}

/* One rank that has come: is it still there? */
static rdl_status check_member(const rdl_world *world, int rank, bool slow)
{
    const rdl_arena *arena = &world->mapping->arena;
    const rdl_slice *slice = rdl_arena_slice(arena, rank);
    const rdl_obituary *o = &arena->header->obituaries[rank];
    uint32_t state = atomic_load_explicit(&slice->state, memory_order_acquire);

    if (state == RDL_SLICE_FAILED)
        return repeat_failure(slice, rank);
    /* Who has left had seen everybody join. */
    if (state == RDL_SLICE_LEFT)
        return RDL_OK;
    if (atomic_load_explicit(&o->gone, memory_order_acquire) != 0)
        return rdl_fail(RDL_PEER, "rank %d is gone while the job starts: %s",
                        rank, o->text);
    /* Looked at again after the death: it may have left in good order between. */
    if (slow && state == RDL_SLICE_JOINED &&
        is_dead(world, slice->pid, slice->started, slice->pid_namespace) &&
        atomic_load_explicit(&slice->state, memory_order_acquire) == state)
        return rdl_fail(RDL_PEER,
                        "rank %d (process %" PRIu32 ") is gone while "
                        "the job starts",
                        rank, slice->pid);
    return RDL_OK;
}

/* Whether the start may still succeed. Who was looked at before is looked at again
 * now and then: with many ranks looking at all of them costs more than it tells. */
static rdl_status check_start(const rdl_world *world, int first, int turn)
{
    const rdl_header *h = world->mapping->arena.header;
    /* Pairs with the release in rdl_arena_fail_start. */
    uint32_t failed = atomic_load_explicit(&h->failed, memory_order_acquire);
    int all = world->size <= 64 || turn % 16 == 15;

    if (failed != RDL_OK)
        return rdl_fail((rdl_status)failed, "%s", h->reason);
    for (int rank = all ? 0 : first; rank < world->size; rank++) {
        /* Of the living one is asked each time; that reads a file. */
        RDL_TRY(check_member(world, rank, rank == turn % world->size));
        if (!all)
            break;
    }
    if (turn % 32 == 31 &&
        is_dead(world, h->maker_pid, h->maker_started, h->maker_namespace) &&
        rdl_arena_joined(&world->mapping->arena) < world->size)
        return rdl_fail(RDL_PEER,
                        "process %" PRIu32 ", which kept the job, is "
                        "gone while it starts",
                        h->maker_pid);
    return RDL_OK;
}

static rdl_status wait_for_all(rdl_world *world, rdl_store *store,
                               const rdl_place *place, rdl_deadline deadline)
{
    const rdl_arena *arena = &world->mapping->arena;
    rdl_time nap = 5 * MS + world->size * (MS / 20);
    int first = 0; /* all before it have joined */

    for (int turn = 0;; turn++) {
        char missing[RDL_SENTENCE / 2];
        rdl_status st = check_start(world, first, turn);

        if (st == RDL_OK && turn % 32 == 31)
            st = rdl_store_check(store);
        /* Looked at after the deaths: once all have joined, a process may end. A
         * rank that gave up counts as joined, and ends the start for all. */
        while (first < world->size && rdl_arena_has_joined(arena, first))
            first++;
        if (first == world->size)
            return check_start(world, 0, 15);
        RDL_TRY(st);
        if (rdl_deadline_passed(deadline)) {
            rdl_arena_missing(arena, missing, sizeof missing);
            return rdl_fail(RDL_TIMEOUT, "%s after %.3g s", missing,
                            (double)place->start_timeout_ms / 1000);
        }
        RDL_TRY(rdl_store_serve(store, turn < 20 ? MS / 2 : nap));
    }
}

static void fill_slice(rdl_world *world, rdl_check check)
{
    rdl_slice *slice = own_slice(world);

    slice->pid = world->self.pid;
    slice->check = (uint32_t)check;
    slice->rules = rdl_choices_hash(&world->choices);
    slice->cpus = rdl_cpus_allowed();
    slice->started = world->self.started;
    slice->pid_namespace = world->self.pid_namespace;
}

/* A rank that compares and one that does not would come to different ends. All
 * see the same, so all say the same. */
static rdl_status agree_on_check(rdl_world *world)
{
    const rdl_arena *arena = &world->mapping->arena;
    rdl_check first = (rdl_check)rdl_arena_slice(arena, 0)->check;

    for (int rank = 1; rank < world->size; rank++) {
        rdl_check other = (rdl_check)rdl_arena_slice(arena, rank)->check;

        if (other != first)
            return rdl_fail(RDL_MISMATCH,
                            "rank 0 checks calls by '%s' and rank %d by '%s': "
                            "RADDLE_CHECK, or rdl_world_options.check, must be "
                            "the same on all ranks",
                            rdl_check_name(first), rank, rdl_check_name(other));
    }
    return RDL_OK;
}

/* Plans must be equal on all members. */
static rdl_status agree_on_rules(rdl_world *world)
{
    const rdl_arena *arena = &world->mapping->arena;
    uint32_t first = rdl_arena_slice(arena, 0)->rules;

    for (int rank = 1; rank < world->size; rank++)
        if (rdl_arena_slice(arena, rank)->rules != first)
            return rdl_fail(RDL_MISMATCH,
                            "ranks 0 and %d have other rules for algorithms: "
                            "RADDLE_ALGORITHM must be the same on all ranks",
                            rank);
    return RDL_OK;
}

/* What stays in the second level of cache is stored there: ranks of one core share
 * it. Behind it is a third level, of which nobody knows how much is ours, so that
 * the results of all ranks must be many times the second (adr/0019). */
static void choose_stores(rdl_world *world, int cores)
{
    size_t l2 = rdl_topology_l2_bytes(), size = (size_t)world->size;
    size_t here = (size + (size_t)cores - 1) / (size_t)cores;
    size_t mine = l2 / here, share = l2 * STREAMED_L2S / size;

    world->streams_from = mine > share ? mine : share;
}

/* What counts are the cores that all ranks have together: a launcher may have given
 * each rank one of its own. */
static rdl_status choose_patience(rdl_world *world)
{
    rdl_cpus all = { 0 };
    int cores;

    for (int rank = 0; rank < world->size; rank++)
        rdl_cpus_join(&all,
                      &rdl_arena_slice(&world->mapping->arena, rank)->cpus);
    RDL_TRY(rdl_topology_usable_cores_at("", &all, &cores));
    world->choices.cores =
        world->size <= cores ? RDL_CORES_EACH : RDL_CORES_SHARED;
    world->cores = cores;
    choose_stores(world, cores);
    if (!world->patience.given)
        world->patience = rdl_patience_of(world->size, cores);
    rdl_seats_take(world);
    return RDL_OK;
}

/* Takes the slice, shows it, waits for the others. */
static rdl_status take_slice(rdl_world *world, rdl_store *store,
                             const rdl_place *place, rdl_deadline deadline)
{
    rdl_status st;

    RDL_TRY(rdl_shelf_init(&world->shelf, &world->mapping->arena, world->rank,
                           world->host->staging_bytes, world->host->groups,
                           world->host->records, &world->purse));
    world->slice = world->shelf.slice;
    fill_slice(world, place->check);
    rdl_recorder_init(&world->recorder, world->slice, world->shelf.records);
    rdl_texts_init(&world->texts, &world->shelf);
    set_state(world, RDL_SLICE_JOINED);
    st = wait_for_all(world, store, place, deadline);
    if (st == RDL_OK)
        st = agree_on_check(world);
    if (st == RDL_OK)
        st = agree_on_rules(world);
    if (st == RDL_OK)
        st = choose_patience(world);
    if (st != RDL_OK) {
        rdl_texts_fini(&world->texts);
        rdl_shelf_fini(&world->shelf);
    }
    return st;
}

/* With the arena mapped. */
static rdl_status take_part(rdl_world *world, rdl_store *store,
                            const rdl_place *place, rdl_deadline deadline)
{
    const rdl_arena *arena = &world->mapping->arena;
    rdl_status st;

    if (arena->size != world->size)
        return rdl_fail(RDL_FORMAT, "an arena of %d ranks for a world of %d",
                        arena->size, world->size);
    st = take_slice(world, store, place, deadline);
    if (st != RDL_OK)
        give_up(world, st, rdl_error_detail());
    return st;
}

static void tell_unmapped(const rdl_world *world, int fd, rdl_status failure)
{
    char reason[RDL_REASON];

    snprintf(reason, sizeof reason, "rank %d: %s", world->rank,
             rdl_error_detail());
    rdl_arena_write_failure(fd, world->rank, failure, reason);
}

/* Takes fd. */
static rdl_status map_arena(rdl_world *world, int fd)
{
    rdl_status st = rdl_host_map(world->host, fd, &world->mapping);

    if (st == RDL_OK)
        return RDL_OK;
    /* Its own limits, or the machine's; else it is no arena. */
    if (st == RDL_NO_MEMORY || st == RDL_SYSTEM)
        tell_unmapped(world, fd, st);
    close(fd);
    return st;
}

static rdl_status join(rdl_world *world, const rdl_place *place)
{
    rdl_deadline deadline = rdl_deadline_after_ms(place->start_timeout_ms);
    rdl_store store;
    rdl_status st;
    int fd;

    RDL_TRY(rdl_store_open(&store, place, deadline, &fd));
    st = map_arena(world, fd);
    if (st == RDL_OK) {
        st = take_part(world, &store, place, deadline);
        if (st != RDL_OK)
            rdl_host_unmap(world->host, world->mapping);
    }
    /* Who keeps the roster tells those who wait why it goes. */
    if (st != RDL_OK && store.listener >= 0)
        rdl_arena_fail_start(&store.roster.arena, st, rdl_error_detail());
    rdl_store_close(&store);
    if (st != RDL_OK)
        world->mapping = NULL;
    return st;
}

static uint32_t make_id(const rdl_world *world)
{
    uint64_t hash =
        rdl_hash_add((uint64_t)rdl_now(), (uint64_t)(uintptr_t)world);

    return (uint32_t)(hash >> 32) | 1;
}

static void leave(rdl_world *world)
{
    if (world->mapping == NULL) {
        rdl_heap_fini(&world->heap);
        return;
    }
    /* Who gave up leaves its reason to those who wait for it later. */
    if (!has_given_up(world))
        set_state(world, RDL_SLICE_LEFT);
    rdl_texts_fini(&world->texts);
    rdl_shelf_fini(&world->shelf);
    rdl_heap_fini(&world->heap);
    rdl_host_unmap(world->host, world->mapping);
}

/* A world of one has no slice, but threads that wait for turns sleep on a bell. */
static rdl_status be_alone(rdl_world *world)
{
    world->alone = rdl_calloc_lines_for(&world->purse, sizeof *world->alone);
    if (world->alone == NULL)
        return rdl_fail(RDL_NO_MEMORY, "no memory for a world of one");
    world->slice = world->alone;
    return RDL_OK;
}

static rdl_status start(rdl_world *world, const rdl_place *place)
{
    rdl_status st;

    RDL_TRY(rdl_process_self(&world->self));
    RDL_TRY(rdl_choices_read(getenv("RADDLE_ALGORITHM"), &world->choices));
    world->rank = place->rank;
    world->size = place->size;
    world->timeout_ms = place->timeout_ms;
    world->isa = place->isa;
    world->patience = place->wait;
    world->uncompared = place->check == RDL_CHECK_OFF;
    world->strict = place->check == RDL_CHECK_STRICT;
    world->id = make_id(world);
    world->comms.purse = world->lanes.purse = world->ghosts.purse =
        world->texts.known.purse = &world->purse;
    st = rdl_registry_init(world);
    if (st == RDL_OK)
        st = world->size > 1 ? join(world, place) : be_alone(world);
    if (st != RDL_OK)
        rdl_registry_fini(world);
    else
        rdl_heap_init(&world->heap,
                      world->mapping ? &world->mapping->arena : NULL,
                      world->rank, &world->purse);
    return st;
}

static const char *environment(const char *name)
{
    return getenv(name);
}

rdl_status rdl_world_open(const rdl_world_options *options, rdl_world **out)
{
    rdl_host *host = options ? options->host : NULL;
    rdl_host_options own = { 0 };
    rdl_place place;
    rdl_world *world;
    rdl_status st;

    if (out == NULL)
        return rdl_fail(RDL_INVALID, "rdl_world_open: out is NULL");
    if (host != NULL && !rdl_fork_mark_holds(host->mark))
        return rdl_fail(RDL_STATE, "used after fork: the host object was made "
                                   "by this process' parent");
    if (options != NULL &&
        (options->works < 0 || options->works > RDL_TASKS_MOST))
        return rdl_fail(RDL_INVALID, "works %d is outside 1..%d (or 0)",
                        options->works, RDL_TASKS_MOST);
    RDL_TRY(rdl_place_read(options, environment, &place));
    own.staging_bytes = place.staging_bytes;
    world = rdl_calloc(1, sizeof *world);
    if (world == NULL)
        return rdl_fail(RDL_NO_MEMORY, "no memory for a world");
    rdl_charge(&world->purse, world);
    if (host == NULL)
        st = rdl_host_create(&own, &host);
    else
        st = (rdl_host_hold(host), RDL_OK);
    if (st == RDL_OK) {
        world->host = host;
        pthread_mutex_init(&world->lock, NULL);
        rdl_tasks_init(&world->tasks, options ? options->works : 0);
        st = start(world, &place);
        if (st == RDL_OK) {
            rdl_helper_join(world);
            *out = world;
            return RDL_OK;
        }
        rdl_tasks_fini(&world->tasks);
        pthread_mutex_destroy(&world->lock);
        rdl_host_release(host);
    }
    rdl_free(world);
    return st;
}

/* --- leaving --------------------------------------------------------------- */

/* In a forked child: its copies, without a lock that a thread of the parent may
 * have held, and without a word to the peers. */
static rdl_status close_in_child(rdl_world *world)
{
    if (world->mapping != NULL) {
        rdl_texts_fini(&world->texts);
        rdl_shelf_fini(&world->shelf);
        rdl_host_forget(world->host, world->mapping);
    }
    rdl_heap_forget(&world->heap);
    rdl_registry_fini(world);
    rdl_tasks_fini(&world->tasks);
    if (--world->host->users == 0)
        rdl_host_free(world->host);
    rdl_free(world->alone);
    rdl_free(world);
    return RDL_OK;
}

rdl_status rdl_world_close(rdl_world *world)
{
    rdl_host *host;
    rdl_status st;

    if (world == NULL)
        return RDL_OK;
    if (!rdl_fork_mark_holds(world->host->mark))
        return close_in_child(world);
    st = rdl_streams_close(world);
    rdl_tasks_finish(world);
    rdl_helper_leave(world);
    /* Who gave up is why others have failed, and need not be told. */
    if (st == RDL_OK && (world->mapping == NULL || !has_given_up(world)))
        st = rdl_registry_unreported(world);
    leave(world);
    rdl_registry_fini(world);
    rdl_tasks_fini(&world->tasks);
    host = world->host;
    pthread_mutex_destroy(&world->lock);
    rdl_free(world->alone);
    rdl_free(world);
    rdl_host_release(host);
    return st;
}

void rdl_world_leave(rdl_world *world)
{
    if (rdl_world_check(world) != RDL_OK || world->mapping == NULL)
        return;
    pthread_mutex_lock(&world->lock);
    if (!has_given_up(world))
        set_state(world, RDL_SLICE_LEFT);
    pthread_mutex_unlock(&world->lock);
}

void rdl_world_abort(rdl_world *world, const char *reason)
{
    if (rdl_world_check(world) != RDL_OK || world->mapping == NULL)
        return;
    pthread_mutex_lock(&world->lock);
    if (!has_given_up(world)) { /* the first reason stays */
        own_slice(world)->aborted = 1;
        give_up(world, RDL_PEER,
                reason && reason[0] ? reason : "no reason given");
    }
    pthread_mutex_unlock(&world->lock);
}
