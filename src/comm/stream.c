/* Streams and events. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/stream.h"

#include "base/memory.h"
#include "comm/call.h"
#include "comm/world.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

rdl_status rdl_wait_limit(const rdl_world *world, int64_t timeout_ms,
                          rdl_limit *limit)
{
    if (timeout_ms < 0)
        return rdl_fail(RDL_INVALID, "a limit of %" PRId64 " ms is negative",
                        timeout_ms);
    limit->timeout_ms = timeout_ms ? timeout_ms : world->timeout_ms;
    limit->deadline = rdl_deadline_after_ms(limit->timeout_ms);
    return RDL_OK;
}

/* --- streams --------------------------------------------------------------- */

rdl_status rdl_stream_create(rdl_world *world, const char *name,
                             rdl_stream **out)
{
    rdl_stream *stream;
    rdl_status st;

    RDL_TRY(rdl_world_check(world));
    if (out == NULL)
        return rdl_fail(RDL_INVALID, "rdl_stream_create: out is NULL");
    if (name == NULL)
        name = "stream";
    if (strlen(name) > RDL_NAME_MOST)
        return rdl_fail(RDL_INVALID,
                        "the stream's name '%.20s...' has %zu bytes; %d is the "
                        "most",
                        name, strlen(name), RDL_NAME_MOST);
    stream = rdl_calloc_for(&world->purse, 1, sizeof *stream);
    if (stream == NULL)
        return rdl_fail(RDL_NO_MEMORY, "no memory for a stream");
    stream->world = world;
    stream->name = rdl_copy_text_for(&world->purse, name, strlen(name));
    stream->text = rdl_texts_put(&world->texts, name);
    st = stream->name ? rdl_queue_create(&world->purse, &stream->queue)
                      : rdl_fail(RDL_NO_MEMORY, "no memory for a name");
    if (st != RDL_OK) {
        rdl_free(stream->name);
        rdl_free(stream);
        return st;
    }
    pthread_mutex_lock(&world->lock);
    stream->number = ++world->last_stream;
    stream->next = world->streams;
    world->streams = stream;
    pthread_mutex_unlock(&world->lock);
    atomic_fetch_add_explicit(&world->n_streams, 1, memory_order_relaxed);
    *out = stream;
    return RDL_OK;
}

/* Off the world's list. Under its lock. */
static void unlist(rdl_world *world, rdl_stream *stream)
{
    rdl_stream **link = &world->streams;

    while (*link != stream)
        link = &(*link)->next;
    *link = stream->next;
    atomic_fetch_sub_explicit(&world->n_streams, 1, memory_order_relaxed);
}

/* The program is about to hear st of the stream. */
static rdl_status tell(rdl_stream *stream, rdl_status st)
{
    if (st != RDL_OK && rdl_queue_has_told(stream->queue))
        rdl_registry_stream_reported(stream->world, stream->number);
    return st;
}

/* Waits for the work and ends the thread. */
static rdl_status end_thread(rdl_world *world, rdl_stream *stream)
{
    pthread_mutex_lock(&world->lock);
    unlist(world, stream);
    pthread_mutex_unlock(&world->lock);
    return rdl_queue_destroy(stream->queue);
}

rdl_status rdl_stream_destroy(rdl_stream *stream)
{
    rdl_status st = RDL_OK;

    if (stream == NULL)
        return RDL_OK;
    if (stream->world != NULL) {
        RDL_TRY(rdl_world_check(stream->world));
        if (rdl_queue_is_mine(stream->queue))
            return rdl_fail(RDL_STATE, "stream '%s' cannot destroy itself",
                            stream->name);
        st = end_thread(stream->world, stream);
        if (st != RDL_OK)
            rdl_registry_stream_reported(stream->world, stream->number);
    }
    rdl_free(stream->name);
    rdl_free(stream);
    return st;
}

static rdl_status check(const rdl_stream *stream)
{
    if (stream == NULL)
        return rdl_fail(RDL_INVALID,
                        "the stream is NULL, which is this thread");
    if (stream->world == NULL)
        return rdl_fail(RDL_INVALID, "the world of stream '%s' was closed",
                        stream->name);
    return rdl_world_check(stream->world);
}

rdl_status rdl_stream_check(const rdl_stream *stream, const rdl_world *world)
{
    RDL_TRY(check(stream));
    if (stream->world != world)
        return rdl_fail(RDL_INVALID,
                        "stream '%s' belongs to another world: rank "
                        "%d's, not rank %d's",
                        stream->name, stream->world->rank, world->rank);
    return RDL_OK;
}

/* What a caller gave to be run, or copied. */
typedef struct errand {
    rdl_stream *stream;
    rdl_stream_function function;
    void *arg;
    void *target;
    const void *source;
    size_t bytes;
    rdl_pins pins; /* of source and target, where they are the heap's */
} errand;

static rdl_status run_errand(void *arg, rdl_status failed)
{
    errand *e = arg;
    rdl_status st = RDL_OK;

    if (failed == RDL_OK && e->function != NULL)
        st = e->function(e->arg);
    if (st > RDL_BUG) /* no status at all */
        st = RDL_INVALID;
    else if (failed == RDL_OK && e->bytes > 0)
        memcpy(e->target, e->source, e->bytes);
    if (st != RDL_OK)
        rdl_say("a function on stream '%s' answered %s", e->stream->name,
                rdl_status_name(st));
    rdl_heap_unpin(&e->stream->world->heap, &e->pins);
    rdl_free(e);
    return st;
}

static rdl_status pin(rdl_heap *heap, errand *e)
{
    RDL_TRY(rdl_heap_pin(heap, &e->pins, 0, e->source, e->bytes,
                         "rdl_stream_copy"));
    return rdl_heap_pin(heap, &e->pins, 1, e->target, e->bytes,
                        "rdl_stream_copy");
}

static rdl_status add_errand(rdl_stream *stream, errand like)
{
    errand *e = rdl_calloc_for(&stream->world->purse, 1, sizeof *e);
    rdl_status st;

    if (e == NULL)
        return rdl_fail(RDL_NO_MEMORY, "no memory for a stream's work");
    *e = like;
    e->stream = stream;
    st = pin(&stream->world->heap, e);
    if (st == RDL_OK)
        st = rdl_queue_add(stream->queue, run_errand, e, true);
    if (st != RDL_OK) {
        rdl_heap_unpin(&stream->world->heap, &e->pins);
        rdl_free(e);
    }
    return st;
}

rdl_status rdl_stream_call(rdl_stream *stream, rdl_stream_function function,
                           void *arg)
{
    RDL_TRY(check(stream));
    if (function == NULL)
        return rdl_fail(RDL_INVALID, "rdl_stream_call: the function is NULL");
    return add_errand(stream, (errand){ .function = function, .arg = arg });
}

rdl_status rdl_stream_copy(rdl_stream *stream, void *target, const void *source,
                           size_t bytes)
{
    RDL_TRY(check(stream));
    if (bytes > 0 && (target == NULL || source == NULL))
        return rdl_fail(RDL_INVALID, "rdl_stream_copy: %zu bytes from %p to %p",
                        bytes, source, target);
    return add_errand(
        stream, (errand){ .target = target, .source = source, .bytes = bytes });
}

/* Others see what the program waits for, and that it was told of a failure. */
static rdl_status wait_for(rdl_stream *stream, rdl_deadline deadline,
                           rdl_call_site site)
{
    rdl_pause pause = { .world = stream->world,
                        .site = site,
                        .operation = RDL_RECORD_SYNCHRONIZE,
                        .stream = stream->text };
    rdl_status st = rdl_queue_query(stream->queue);

    if (st == RDL_OK)
        return RDL_OK;
    rdl_pause_sleep(&pause);
    if (st == RDL_AGAIN)
        st = rdl_queue_wait(stream->queue, deadline);
    return rdl_pause_end(&pause, tell(stream, st));
}

static rdl_status synchronize(rdl_stream *stream, int64_t timeout_ms,
                              rdl_call_site site)
{
    rdl_limit limit = { 0 };

    RDL_TRY(check(stream));
    RDL_TRY(rdl_wait_limit(stream->world, timeout_ms, &limit));
    if (rdl_queue_is_mine(stream->queue))
        return rdl_fail(RDL_STATE, "stream '%s' cannot wait for itself",
                        stream->name);
    return wait_for(stream, limit.deadline, site);
}

RDL_PUBLIC_CALL(rdl_stream_synchronize, synchronize(stream, timeout_ms, site),
                rdl_stream *stream, int64_t timeout_ms)

rdl_status rdl_stream_query(rdl_stream *stream)
{
    RDL_TRY(check(stream));
    return tell(stream, rdl_queue_query(stream->queue));
}

/* The cause goes with it: other ranks know nothing of this stream. */
static rdl_status run_task(void *arg, rdl_status failed)
{
    char cause[RDL_SENTENCE / 4 * 3];

    snprintf(cause, sizeof cause, "%s", rdl_error_detail());
    if (failed != RDL_OK)
        rdl_say("passed over, because its stream on rank %d had failed: %s",
                ((rdl_task *)arg)->world->rank, cause);
    return rdl_task_run(arg, failed);
}

rdl_status rdl_stream_add_task(rdl_stream *stream, rdl_task *task)
{
    return rdl_queue_add(stream->queue, run_task, task, true);
}

/* --- events ---------------------------------------------------------------- */

struct rdl_event {
    rdl_world *world;     /* NULL: it was closed */
    rdl_event *next;      /* of the world; under its lock */
    pthread_mutex_t lock; /* protects all below */
    pthread_cond_t changed;
    uint64_t recorded; /* how often it was recorded */
    uint32_t stream;   /* the text of the last one's name */
    uint64_t reached;  /* the latest of these that a stream has passed */
    int pending;       /* pieces of work of streams that will touch it */
};

rdl_status rdl_event_create(rdl_world *world, rdl_event **out)
{
    pthread_condattr_t attributes;
    rdl_event *event;

    RDL_TRY(rdl_world_check(world));
    if (out == NULL)
        return rdl_fail(RDL_INVALID, "rdl_event_create: out is NULL");
    event = rdl_calloc_for(&world->purse, 1, sizeof *event);
    if (event == NULL)
        return rdl_fail(RDL_NO_MEMORY, "no memory for an event");
    event->world = world;
    pthread_mutex_init(&event->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&event->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_lock(&world->lock);
    event->next = world->events;
    world->events = event;
    pthread_mutex_unlock(&world->lock);
    *out = event;
    return RDL_OK;
}

static void unlist_event(rdl_event *event)
{
    rdl_event **link = &event->world->events;

    pthread_mutex_lock(&event->world->lock);
    while (*link != event)
        link = &(*link)->next;
    *link = event->next;
    pthread_mutex_unlock(&event->world->lock);
}

rdl_status rdl_event_destroy(rdl_event *event)
{
    int pending;

    if (event == NULL)
        return RDL_OK;
    if (event->world != NULL)
        RDL_TRY(rdl_world_check(event->world));
    pthread_mutex_lock(&event->lock);
    pending = event->pending;
    pthread_mutex_unlock(&event->lock);
    if (pending > 0)
        return rdl_fail(RDL_STATE,
                        "%d piece%s of work of streams %s yet to record the "
                        "event or to wait for it",
                        pending, pending == 1 ? "" : "s",
                        pending == 1 ? "has" : "have");
    if (event->world != NULL)
        unlist_event(event);
    pthread_cond_destroy(&event->changed);
    pthread_mutex_destroy(&event->lock);
    rdl_free(event);
    return RDL_OK;
}

/* One record or wait, on its way through a stream. */
typedef struct mark {
    rdl_event *event;
    uint64_t number;
} mark;

static void touch(rdl_event *event, int by)
{
    pthread_mutex_lock(&event->lock);
    event->pending += by;
    pthread_mutex_unlock(&event->lock);
}

static rdl_status await_number(rdl_event *event, uint64_t number,
                               const rdl_limit *limit)
{
    struct timespec until = { .tv_sec = limit->deadline / 1000000000,
                              .tv_nsec = limit->deadline % 1000000000 };
    rdl_status st = RDL_OK;

    pthread_mutex_lock(&event->lock);
    while (event->reached < number && st == RDL_OK)
        if (limit->deadline == RDL_NEVER)
            pthread_cond_wait(&event->changed, &event->lock);
        else if (pthread_cond_timedwait(&event->changed, &event->lock,
                                        &until) == ETIMEDOUT &&
                 event->reached < number)
            st = rdl_fail(RDL_TIMEOUT,
                          "an event that was recorded has not been reached by "
                          "its stream after %.3g s",
                          (double)limit->timeout_ms / 1000);
    pthread_mutex_unlock(&event->lock);
    return st;
}

/* `touched` marks end with it, in one step: whoever sees the number reached
 * may destroy the event at once. */
static void reach(rdl_event *event, uint64_t number, int touched)
{
    pthread_mutex_lock(&event->lock);
    if (event->reached < number)
        event->reached = number;
    event->pending -= touched;
    pthread_cond_broadcast(&event->changed);
    pthread_mutex_unlock(&event->lock);
}

/* Also on a stream that has failed: who waits for the point need not hang. */
static rdl_status run_record(void *arg, rdl_status failed)
{
    mark m = *(mark *)arg;

    (void)failed;
    rdl_free(arg);
    reach(m.event, m.number, 1);
    return RDL_OK;
}

static rdl_status run_wait(void *arg, rdl_status failed)
{
    mark m = *(mark *)arg;
    rdl_limit limit = { 0 };
    rdl_status st = RDL_OK;

    rdl_free(arg);
    if (failed == RDL_OK)
        st = rdl_wait_limit(m.event->world, 0, &limit);
    if (failed == RDL_OK && st == RDL_OK)
        st = await_number(m.event, m.number, &limit);
    touch(m.event, -1);
    return st;
}

static rdl_status add_mark(rdl_stream *stream, rdl_event *event,
                           uint64_t number, rdl_queue_function function)
{
    mark *m = rdl_calloc_for(&stream->world->purse, 1, sizeof *m);
    rdl_status st;

    if (m == NULL)
        return rdl_fail(RDL_NO_MEMORY, "no memory for an event's mark");
    *m = (mark){ event, number };
    touch(event, 1);
    st = rdl_queue_add(stream->queue, function, m, true);
    if (st != RDL_OK) {
        touch(event, -1);
        rdl_free(m);
    }
    return st;
}

static rdl_status check_event(const rdl_event *event, const rdl_stream *stream)
{
    if (event == NULL)
        return rdl_fail(RDL_INVALID, "the event is NULL");
    if (event->world == NULL)
        return rdl_fail(RDL_INVALID, "the event's world was closed");
    RDL_TRY(rdl_world_check(event->world));
    return stream != NULL ? rdl_stream_check(stream, event->world) : RDL_OK;
}

rdl_status rdl_event_record(rdl_event *event, rdl_stream *stream)
{
    uint64_t number;

    RDL_TRY(check_event(event, stream));
#ifdef RDL_MUTANT_RECORD /* race tests must catch this build */
    stream = NULL;
#endif
    pthread_mutex_lock(&event->lock);
    number = ++event->recorded;
    event->stream = stream != NULL ? stream->text : 0;
    pthread_mutex_unlock(&event->lock);
    if (stream != NULL)
        return add_mark(stream, event, number, run_record);
    reach(event, number, 0);
    return RDL_OK;
}

/* On the program's own thread. */
static rdl_status await_event(rdl_event *event, int64_t timeout_ms,
                              rdl_call_site site)
{
    rdl_pause pause = { .world = event->world,
                        .site = site,
                        .operation = RDL_RECORD_SYNCHRONIZE };
    rdl_limit limit = { 0 };
    uint64_t number;
    bool reached;

    RDL_TRY(rdl_wait_limit(event->world, timeout_ms, &limit));
    pthread_mutex_lock(&event->lock);
    number = event->recorded;
    reached = event->reached >= number;
    pause.stream = event->stream;
    pthread_mutex_unlock(&event->lock);
    if (!reached)
        rdl_pause_sleep(&pause);
    return rdl_pause_end(&pause, await_number(event, number, &limit));
}

static uint64_t latest(rdl_event *event)
{
    uint64_t number;

    pthread_mutex_lock(&event->lock);
    number = event->recorded;
    pthread_mutex_unlock(&event->lock);
    return number;
}

rdl_status rdl_event_wait(rdl_event *event, rdl_stream *stream)
{
    RDL_TRY(check_event(event, stream));
    if (stream != NULL)
        return add_mark(stream, event, latest(event), run_wait);
    return await_event(event, 0, RDL_CALL_SITE(NULL));
}

static rdl_status synchronize_event(rdl_event *event, int64_t timeout_ms,
                                    rdl_call_site site)
{
    RDL_TRY(check_event(event, NULL));
    return await_event(event, timeout_ms, site);
}

RDL_PUBLIC_CALL(rdl_event_synchronize,
                synchronize_event(event, timeout_ms, site), rdl_event *event,
                int64_t timeout_ms)

rdl_status rdl_event_query(rdl_event *event)
{
    bool over;

    RDL_TRY(check_event(event, NULL));
    pthread_mutex_lock(&event->lock);
    over = event->reached >= event->recorded;
    pthread_mutex_unlock(&event->lock);
    return over ? RDL_OK : RDL_AGAIN;
}

/* --- the end of the world --------------------------------------------------- */

rdl_status rdl_streams_close(rdl_world *world)
{
    rdl_status first = RDL_OK;

    while (world->streams != NULL) {
        rdl_stream *stream = world->streams;
        bool told = rdl_queue_has_told(stream->queue);
        rdl_status st = end_thread(world, stream);

        stream->world = NULL;
        rdl_charge(NULL, stream->name); /* they outlive the world's purse */
        rdl_charge(NULL, stream);
        stream->queue = NULL;
        if (first == RDL_OK && !told)
            first = st;
    }
    for (rdl_event *event = world->events; event != NULL; event = event->next) {
        event->world = NULL;
        rdl_charge(NULL, event);
    }
    return first;
}
