/* Following the waits. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/chain.h"

#include "base/recorder.h"
#include "base/status.h"
#include "comm/peek.h"
#include "comm/plan.h"
#include "comm/world.h"

#include <raddle/status.h>
#include <stdlib.h>
#include <string.h>

#define LINKS_SHOWN 8

/* Why a rank does not come to a lane. */
typedef enum hold {
    HOLD_NONE,    /* its program is in no call */
    HOLD_FAILED,  /* likewise, since a call of it failed */
    HOLD_WAITS,   /* it waits for another rank, by entry */
    HOLD_RUNS,    /* it is in that very call, and awake */
    HOLD_QUEUED,  /* it has issued the call, which is behind something */
    HOLD_PAUSED,  /* its program's thread is in a wait, for we know not what */
    HOLD_UNKNOWN, /* it keeps no records */
} hold;

typedef struct finding {
    hold hold;
    rdl_entry entry;
    rdl_entry last; /* the newest of all; number 0: none */
    char failure[RDL_SENTENCE / 2];
} finding;

/* The wait that is to be explained, in ticks. */
typedef struct window {
    uint64_t since;
    uint64_t now;
} window;

/* It waits for a rank, or has waited for it until it ended, in whichever way. */
static bool waits(const rdl_entry *e)
{
    return e->peer >= 0 &&
           (e->state == RDL_RECORD_WAITING || e->state == RDL_RECORD_ENDED);
}

/* It was done a good while ago, and its program went on: what it waited for is no
 * reason for anything now. One that failed keeps its peers waiting ever after. */
static bool is_past(const rdl_entry *e, const window *w)
{
    return e->state == RDL_RECORD_ENDED && e->status == RDL_OK &&
           e->ticks + e->took + (w->now - w->since) / 8 < w->now;
}

/* For how much of the window the call was under way. */
static uint64_t overlap(const rdl_entry *e, const window *w)
{
    uint64_t from = e->ticks > w->since ? e->ticks : w->since;
    uint64_t to = e->state == RDL_RECORD_ENDED ? e->ticks + e->took : w->now;

    to = to < w->now ? to : w->now;
    return to > from ? to - from : 0;
}

/* Of the records that are wanted, the one that was under way longest. */
typedef bool (*wanted)(const rdl_entry *e, uint64_t what);

static uint64_t search(rdl_slice *slice, const window *w, wanted want,
                       uint64_t what, rdl_entry *out)
{
    uint64_t oldest = rdl_records_oldest(slice), most = 0;
    rdl_entry e;

    for (uint64_t n = rdl_records_newest(slice); n >= oldest && n > 0; n--) {
        uint64_t time;

        if (!rdl_records_read(slice, n, &e) || is_past(&e, w) || !want(&e, what))
            continue;
        time = overlap(&e, w);
        if (time > most) {
            most = time;
            *out = e;
        }
    }
    return most;
}

static bool is_on_lane(const rdl_entry *e, uint64_t lane)
{
    return e->lane == lane && e->operation < RDL_RECORD_AWAIT &&
           e->state != RDL_RECORD_ENDED;
}

static bool waits_on_lane(const rdl_entry *e, uint64_t lane)
{
    return e->lane == lane && waits(e);
}

static bool waits_on_stream(const rdl_entry *e, uint64_t stream)
{
    return e->stream == stream && waits(e);
}

/* The program's own thread is in it, or was until it ended. */
static bool blocks(const rdl_entry *e, uint64_t unused)
{
    (void)unused;
    return (e->flags & RDL_RECORD_BLOCKS) != 0 &&
           (e->state != RDL_RECORD_ENDED || waits(e) ||
            e->operation >= RDL_RECORD_AWAIT);
}

/* The oldest call under way that was issued before *e, on its stream or on its
 * lane; false: there is none. */
static bool find_older(rdl_slice *slice, const rdl_entry *e, bool on_stream,
                       rdl_entry *out)
{
    for (uint64_t n = rdl_records_oldest(slice); n < e->number; n++) {
        rdl_entry older;

        if (!rdl_records_read(slice, n, &older) ||
            older.state == RDL_RECORD_ENDED ||
            (on_stream ? older.stream != e->stream : older.lane != e->lane))
            continue;
        *out = older;
        return true;
    }
    return false;
}

/* A call that is issued and has not begun is behind one of its stream, or of its
 * lane; and that one perhaps behind another. */
static bool find_ahead(rdl_slice *slice, const window *w, rdl_entry e,
                       rdl_entry *out)
{
    while (!waits(&e)) {
        if ((e.stream != 0 &&
             search(slice, w, waits_on_stream, e.stream, out) > 0) ||
            search(slice, w, waits_on_lane, e.lane, out) > 0)
            return true;
        if (!(e.stream != 0 && find_older(slice, &e, true, &e)) &&
            !find_older(slice, &e, false, &e))
            return false;
    }
    *out = e;
    return true;
}

/* What the thread that is blocked by *e really waits for, into *e. */
static hold resolve(rdl_slice *slice, const window *w, rdl_entry *e)
{
    rdl_entry of;

    if (e->operation == RDL_RECORD_AWAIT) {
        if (!rdl_records_read(slice, e->count, &of) ||
            (of.state == RDL_RECORD_ENDED && !waits(&of)))
            return HOLD_PAUSED;
        *e = of;
    }
    if (waits(e))
        return HOLD_WAITS;
    if (e->state == RDL_RECORD_RUNNING)
        return HOLD_RUNS;
    if (find_ahead(slice, w, *e, e))
        return HOLD_WAITS;
    return e->operation < RDL_RECORD_AWAIT ? HOLD_QUEUED : HOLD_PAUSED;
}

static bool keeps_records(rdl_slice *slice)
{
    return atomic_load_explicit(&slice->state, memory_order_acquire) !=
               RDL_SLICE_EMPTY &&
           slice->records != 0;
}

/* The newest that can be read; number 0: there is none. */
static rdl_entry find_last(rdl_slice *slice)
{
    rdl_entry e = { .number = 0 };
    uint64_t n = rdl_records_newest(slice);

    for (int tries = 0; tries < 4 && n > 0; tries++, n--)
        if (rdl_records_read(slice, n, &e))
            return e;
    return (rdl_entry){ .number = 0 };
}

/* Is it there? Else, or if it has only just come, what has kept it for the better part
 * of the wait? False: nothing has. */
static bool find_reason(rdl_slice *slice, const window *w, uint64_t lane,
                        rdl_entry *out)
{
    uint64_t half = (w->now - w->since) / 2;
    uint64_t there = search(slice, w, is_on_lane, lane, out);
    rdl_entry e;

    if (there < half && search(slice, w, blocks, 0, &e) >= half)
        *out = e;
    else
        return there > 0;
    return true;
}

static finding find(rdl_slice *slice, const window *w, uint64_t lane)
{
    finding f = { .hold = HOLD_UNKNOWN };

    if (!keeps_records(slice))
        return f;
    f.last = f.entry = find_last(slice);
    f.hold = HOLD_NONE;
    if (find_reason(slice, w, lane, &f.entry))
        f.hold = resolve(slice, w, &f.entry);
    /* Who was waited for in vain by that one is gone. */
    if ((f.hold == HOLD_NONE ||
         (f.hold == HOLD_WAITS && f.entry.state == RDL_RECORD_ENDED &&
          f.entry.status == RDL_PEER)) &&
        rdl_peek_failure(slice, f.failure, sizeof f.failure))
        f.hold = HOLD_FAILED;
    return f;
}

/* --- words ----------------------------------------------------------------- */

typedef struct chain {
    const rdl_arena *arena;
    rdl_slice *asker;
    int size;                       /* links */
    int ranks[RDL_MAX_RANKS];       /* who waits, from the one we wait for on */
    rdl_entry entries[LINKS_SHOWN]; /* and in what: of the first ones */
} chain;

static rdl_slice *slice_of(const chain *c, int rank)
{
    return rdl_arena_slice(c->arena, rank);
}

static void add_name(rdl_text *text, const chain *c, int rank,
                     const rdl_entry *e)
{
    char call[RDL_PEEK_TEXT + 64];

    rdl_peek_call(slice_of(c, rank), c->asker, e, c->arena->size, call,
                  sizeof call);
    rdl_text_add(text, "%s", call);
}

static void add_call(rdl_text *text, const chain *c, int rank,
                     const rdl_entry *e)
{
    add_name(text, c, rank, e);
    rdl_peek_site(text, slice_of(c, rank), e->site);
}

static void add_queued(rdl_text *text, const chain *c, int rank,
                       const rdl_entry *e)
{
    rdl_slice *slice = slice_of(c, rank);
    char stream[RDL_PEEK_TEXT];
    rdl_entry older;

    rdl_text_add(text, "; rank %d has issued ", rank);
    add_name(text, c, rank, e);
    rdl_peek_text(slice, e->stream, stream, sizeof stream);
    if (e->stream != 0)
        rdl_text_add(text, " on stream '%s'", stream);
    rdl_peek_site(text, slice, e->site);
    rdl_text_add(text, ", which has not begun");
    if (e->stream != 0 && !find_older(slice, e, false, &older))
        rdl_text_add(text, ": the stream is at other work");
}

static void add_links(rdl_text *text, const chain *c, int last)
{
    for (int i = 0; i < c->size && i < LINKS_SHOWN; i++) {
        int next = i + 1 < c->size ? c->ranks[i + 1] : last;

        rdl_text_add(text,
                     i == 0 ? "rank %d waits for rank %d in "
                            : ", rank %d for rank %d in ",
                     c->ranks[i], next);
        add_call(text, c, c->ranks[i], &c->entries[i]);
    }
    if (c->size > LINKS_SHOWN)
        rdl_text_add(text, ", and so on through %d more ranks",
                     c->size - LINKS_SHOWN);
}

static void add_age(rdl_text *text, const chain *c, int rank, uint64_t ticks)
{
    rdl_slice *slice = slice_of(c, rank);
    rdl_instant then = { slice->ticks_then, slice->time_then };
    rdl_instant now = rdl_instant_now(rdl_ticks_are_even());
    double age = (double)(now.time - rdl_ticks_time(ticks, then, now)) / 1e9;

    rdl_text_add(text, "%.3g s ago", age > 0 ? age : 0);
}

static void add_absent(rdl_text *text, const chain *c, int rank,
                       const rdl_entry *last)
{
    if (last->number == 0) {
        rdl_text_add(text, "; rank %d has made no call at all", rank);
        return;
    }
    rdl_text_add(text,
                 last->state != RDL_RECORD_ENDED &&
                         (last->flags & RDL_RECORD_BLOCKS) != 0
                     ? "; rank %d was late, and is in "
                     : "; rank %d is in no call: its last was ",
                 rank);
    add_call(text, c, rank, last);
    if (last->state != RDL_RECORD_ENDED) {
        rdl_text_add(text, ", ");
        add_age(text, c, rank, last->ticks);
        return;
    }
    if (last->status == RDL_OK)
        rdl_text_add(text, ", ");
    else
        rdl_text_add(text, ", which failed (%s) ",
                     rdl_status_name((rdl_status)last->status));
    add_age(text, c, rank, last->ticks + last->took);
}

static void add_end(rdl_text *text, const chain *c, int rank, const finding *f)
{
    switch (f->hold) {
    case HOLD_RUNS:
        rdl_text_add(text, "; rank %d is in ", rank);
        add_call(text, c, rank, &f->entry);
        break;
    case HOLD_QUEUED:
        add_queued(text, c, rank, &f->entry);
        break;
    case HOLD_PAUSED:
        rdl_text_add(text,
                     f->entry.state == RDL_RECORD_ENDED ? "; rank %d was in "
                                                        : "; rank %d is in ",
                     rank);
        add_call(text, c, rank, &f->entry);
        break;
    case HOLD_NONE:
        add_absent(text, c, rank, &f->last);
        break;
    case HOLD_FAILED:
        rdl_text_add(text, "; rank %d waits no more" RDL_AFTER_FAILURE "%s",
                     rank, f->failure);
        break;
    case HOLD_WAITS:
    case HOLD_UNKNOWN:
        break;
    }
}

/* The links as far as there is room, and the end, which must not be cut. */
static void add_links_and(rdl_text *text, const chain *c, int last,
                          const char *end)
{
    size_t need = strlen(end);
    rdl_text links = { text->at, text->left > need ? text->left - need : 1 };

    add_links(&links, c, last);
    text->left -= (size_t)(links.at - text->at);
    text->at = links.at;
    rdl_text_add(text, "%s", end);
}

static int place_of(const chain *c, int rank)
{
    for (int i = 0; i < c->size; i++)
        if (c->ranks[i] == rank)
            return i;
    return -1;
}

static int compare(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* From `first` of the chain's ranks on it is a circle; the ones before lead to it.
 * first -1: we ourselves are in it. */
static void add_cycle(rdl_text *text, const chain *c, int me, int first)
{
    char words[RDL_PEEK_TEXT];
    rdl_text end = { words, sizeof words };
    int in_it[RDL_MAX_RANKS], n = 0;
    int back = first < 0 ? me : c->ranks[first];

    if (first < 0)
        in_it[n++] = me;
    for (int i = first < 0 ? 0 : first; i < c->size; i++)
        in_it[n++] = c->ranks[i];
    rdl_text_add(&end, ": a cycle, in which ");
    qsort(in_it, (size_t)n, sizeof *in_it, compare);
    rdl_text_add_these_ranks(&end, in_it, n);
    rdl_text_add(&end, " wait for each other");
    rdl_text_add(text, "; ");
    add_links_and(text, c, back, words);
}

static rdl_condition condition(const rdl_world *world, int rank)
{
    const rdl_slice *slice = rdl_arena_slice(&world->mapping->arena, rank);
    rdl_process process = { slice->pid, slice->started, slice->pid_namespace };

    return rdl_process_condition(&world->self, &process);
}

/* Whatever it waits for: it would not go on. */
static bool is_held(const rdl_world *world, int rank)
{
    return condition(world, rank) != RDL_GOES_ON;
}

void rdl_chain_add_condition(rdl_text *text, const rdl_world *world, int rank)
{
    switch (condition(world, rank)) {
    case RDL_STOPPED:
        rdl_text_add(text, "; rank %d is stopped (SIGSTOP or a debugger)", rank);
        break;
    case RDL_DUMPING:
        rdl_text_add(text, "; rank %d has crashed and is writing its core",
                     rank);
        break;
    case RDL_GOES_ON:
        break;
    }
}

/* The chain ends at that rank. */
static void end_chain(rdl_text *text, const chain *c, const rdl_world *world,
                      int rank, const finding *f)
{
    char words[RDL_SENTENCE / 8 * 5] = "";
    rdl_text end = { words, sizeof words };

    if (c->size > 0)
        rdl_chain_add_condition(&end, world, rank);
    /* If it is ourselves and we are in no such call, it has just ended. */
    if (!is_held(world, rank) && (c->size > 0 || rank != world->rank))
        add_end(&end, c, rank, f);
    if (c->size > 0)
        rdl_text_add(text, "; ");
    if (c->size > 0)
        add_links_and(text, c, rank, words);
    else
        rdl_text_add(text, "%s", words);
}

static void add_link(chain *c, int rank, const rdl_entry *entry)
{
    if (c->size < LINKS_SHOWN)
        c->entries[c->size] = *entry;
    c->ranks[c->size++] = rank;
}

/* Who waits for us keeps us waiting only if our program stands in that call. */
static bool closes_here(const chain *c, int me, int rank, const finding *f)
{
    return rank == me && c->size > 0 && f->hold == HOLD_WAITS &&
           f->entry.peer == c->ranks[0];
}

bool rdl_chain_has_issued(const rdl_world *world, int peer, uint64_t lane)
{
    rdl_slice *slice = rdl_arena_slice(&world->mapping->arena, peer);
    window w = { 0, rdl_ticks(rdl_ticks_are_even()) };
    rdl_entry e;

    return keeps_records(slice) && search(slice, &w, is_on_lane, lane, &e) > 0;
}

void rdl_chain_add(rdl_text *text, const rdl_world *world, int peer,
                   uint64_t lane, uint64_t since)
{
    const rdl_arena *arena = &world->mapping->arena;
    chain c = { .arena = arena, .asker = world->slice };
    window w = { since, rdl_ticks(rdl_ticks_are_even()) };

    for (;;) {
        finding f = find(slice_of(&c, peer), &w, lane);
        bool here = closes_here(&c, world->rank, peer, &f);

        if (here || place_of(&c, peer) >= 0) {
            add_cycle(text, &c, world->rank, here ? -1 : place_of(&c, peer));
            return;
        }
        if (is_held(world, peer) || f.hold != HOLD_WAITS ||
            f.entry.peer >= arena->size) {
            end_chain(text, &c, world, peer, &f);
            return;
        }
        add_link(&c, peer, &f.entry);
        peer = f.entry.peer;
        lane = f.entry.lane;
    }
}

bool rdl_chain_add_batch(rdl_text *text, const rdl_world *world, uint64_t record)
{
    rdl_slice *slice = rdl_world_slice(world);
    rdl_entry mine, ahead;
    const char *name;

    if (!rdl_records_read(slice, record, &mine) ||
        !find_older(slice, &mine, false, &ahead) ||
        (ahead.flags & RDL_RECORD_BATCHED) == 0)
        return false;
    name = rdl_operation_name((rdl_operation)ahead.operation);
    if (ahead.operation == RDL_OP_SEND_RECV)
        name = ahead.flags & RDL_RECORD_SENDS ? "send" : "receive";
    rdl_text_add(text, ": %s", name);
    rdl_peek_site(text, slice, ahead.site);
    rdl_text_add(text, " is in a batch that has not been ended");
    return true;
}
