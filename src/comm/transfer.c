/* Send and receive. The way from one member to another is a lane of two, on which
 * a transfer is a broadcast from the first; so it has an order of its own, and
 * both ends compare what they think it is. A batch drives its transfers together,
 * those of one way one after another. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/bell.h"
#include "base/memory.h"
#include "comm/call.h"
#include "comm/trace.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* One transfer of a batch, with the way it goes. */
typedef struct leg {
    const rdl_transfer *transfer;
    rdl_lane *lane; /* NULL: to or from this rank itself */
    bool begun;
    bool ended;
    rdl_request request;
    rdl_run run;
    rdl_limit limit;
    const char *caller;
} leg;

/* All legs; those of one lane stand together, in the order in which they came. */
typedef struct batch {
    rdl_world *world;
    leg *legs;
    int count;
    rdl_status first; /* failure, */
    char *cause;      /* with its sentence */
} batch;

static bool sends(const rdl_transfer *t)
{
    return t->send != NULL || (t->receive == NULL && !t->receives);
}

static rdl_status check(const rdl_transfer *t, int i)
{
    rdl_arguments a = { .operation = RDL_OP_SEND_RECV, .dtype = t->dtype };

    RDL_TRY(rdl_call_check_types(&a));
    if (t->count > SIZE_MAX / 4 / rdl_dtype_bytes(t->dtype))
        return rdl_fail(RDL_INVALID,
                        "send_recv: transfer %d of %zu elements: the size "
                        "overflows",
                        i, t->count);
    if (t->send != NULL && t->receive != NULL)
        return rdl_fail(RDL_INVALID,
                        "send_recv: transfer %d has both send and receive set",
                        i);
    if (t->count > 0 && (sends(t) ? t->send == NULL : t->receive == NULL))
        return rdl_fail(RDL_INVALID,
                        "send_recv: the buffer of transfer %d is NULL and %zu "
                        "elements are wanted",
                        i, t->count);
    return RDL_OK;
}

static void fill_leg(leg *l, int64_t timeout_ms)
{
    const rdl_transfer *t = l->transfer;

    l->limit = (rdl_limit){ .timeout_ms = timeout_ms,
                            .operation = rdl_operation_name(RDL_OP_SEND_RECV) };
    l->request = (rdl_request){
        .shape = { .operation = RDL_OP_SEND_RECV,
                   .me = sends(t) ? 0 : 1,
                   .size = 2,
                   .root = 0,
                   .bytes = t->count * rdl_dtype_bytes(t->dtype) },
        .name = RDL_OP_SEND_RECV,
        .count = t->count,
        .dtype = t->dtype,
        .input = t->send,
        .output = t->receive,
    };
}

/* --- to oneself ------------------------------------------------------------ */

/* The k-th send to oneself meets the k-th receive from oneself. */
static rdl_status copy_own(batch *b)
{
    int s = 0, r = 0;

    for (;; s++, r++) {
        const rdl_transfer *from, *to;

        while (s < b->count &&
               (b->legs[s].lane != NULL || !sends(b->legs[s].transfer)))
            s++;
        while (r < b->count &&
               (b->legs[r].lane != NULL || sends(b->legs[r].transfer)))
            r++;
        if (s == b->count && r == b->count)
            return RDL_OK;
        if (s == b->count || r == b->count)
            return rdl_fail(
                RDL_INVALID,
                "send_recv: rank %d %s itself without the other half "
                "in the same batch",
                b->world->rank, s == b->count ? "receives from" : "sends to");
        from = b->legs[s].transfer;
        to = b->legs[r].transfer;
        if (from->count != to->count || from->dtype != to->dtype)
            return rdl_fail(RDL_INVALID,
                            "send_recv: rank %d sends itself %zu elements and "
                            "expects %zu, or of another dtype",
                            b->world->rank, from->count, to->count);
        if (from->count > 0)
            memmove(to->receive, from->send,
                    from->count * rdl_dtype_bytes(from->dtype));
        b->legs[s].ended = b->legs[r].ended = true;
    }
}

/* --- together -------------------------------------------------------------- */

static int by_lane(const void *a, const void *b)
{
    const leg *x = a, *y = b;
    uint32_t left = x->lane ? x->lane->index : 0;
    uint32_t right = y->lane ? y->lane->index : 0;

    if (left != right)
        return left < right ? -1 : 1;
    return x->transfer < y->transfer ? -1 : x->transfer > y->transfer;
}

/* The first leg of each lane, for what is done once for a lane. */
static bool leads(const batch *b, int i)
{
    return b->legs[i].lane != NULL &&
           (i == 0 || b->legs[i - 1].lane != b->legs[i].lane);
}

/* In the order of their indices, so that two batches cannot lock each other out. */
static void lock_lanes(batch *b)
{
    for (int i = 0; i < b->count; i++)
        if (leads(b, i))
            pthread_mutex_lock(&b->legs[i].lane->lock);
}

static void unlock_lanes(batch *b)
{
    for (int i = 0; i < b->count; i++)
        if (leads(b, i))
            pthread_mutex_unlock(&b->legs[i].lane->lock);
}

static void note_failure(batch *b, rdl_status st)
{
    if (b->first != RDL_OK)
        return;
    b->first = st;
    b->cause = rdl_copy_text(rdl_error_detail(), strlen(rdl_error_detail()));
}

static void end_leg(batch *b, leg *l, rdl_status st)
{
    if (l->begun)
        rdl_run_end(&l->run);
    l->ended = true;
    if (st == RDL_OK)
        rdl_call_count(b->world);
    else
        note_failure(b, st);
}

static rdl_status begin_leg(leg *l)
{
    RDL_TRY(rdl_lane_state(l->lane));
    RDL_TRY(rdl_lane_prepare(l->lane));
    l->lane->number++;
    if (__builtin_expect(l->lane->world->trace != NULL, 0))
        rdl_trace_call(l->lane->world->trace, l->lane,
                       sends(l->transfer) ? "send" : "receive",
                       l->transfer->dtype, l->transfer->count, l->caller);
    rdl_run_begin(&l->run, l->lane, &l->request);
    l->begun = true;
    return RDL_OK;
}

/* The leg of i's lane whose turn it is, if that is leg i. */
static bool has_turn(const batch *b, int i)
{
    const leg *l = &b->legs[i];

    return l->lane != NULL && !l->ended &&
           (i == 0 || b->legs[i - 1].lane != l->lane || b->legs[i - 1].ended);
}

/* Moves every leg as far as it goes. Returns how many are left; *moved says
 * whether one ended. */
static int advance_all(batch *b, bool *moved)
{
    int left = 0;

    *moved = false;
    for (int i = 0; i < b->count; i++) {
        leg *l = &b->legs[i];
        rdl_status st = RDL_OK;

        if (!has_turn(b, i)) {
            left += l->lane != NULL && !l->ended;
            continue;
        }
        if (!l->begun)
            st = begin_leg(l);
        if (st == RDL_OK)
            st = rdl_run_advance(&l->run);
        if (st == RDL_AGAIN) {
            left++;
            continue;
        }
        end_leg(b, l, st);
        *moved = true;
    }
    return left;
}

static bool any_arrived(batch *b)
{
    for (int i = 0; i < b->count; i++)
        if (has_turn(b, i) && b->legs[i].begun &&
            rdl_lane_arrived(b->legs[i].lane, b->legs[i].run.peer))
            return true;
    return false;
}

/* Ends the legs that need not wait any more, and says until when to sleep. */
static bool look_at_all(batch *b, rdl_time *sleep)
{
    bool ended = false;

    *sleep = RDL_SLEEP_MOST;
    for (int i = 0; i < b->count; i++) {
        leg *l = &b->legs[i];
        rdl_status st;

        if (!has_turn(b, i) || !l->begun)
            continue;
        st = rdl_lane_look(l->lane, l->run.peer, &l->limit);
        *sleep = rdl_deadline_left(l->limit.deadline, *sleep);
        if (st != RDL_OK) {
            end_leg(b, l, st);
            ended = true;
        }
    }
    return ended;
}

static void wait_for_any(batch *b)
{
    rdl_slice *mine = b->world->shelf.slice;
    rdl_time sleep;
    uint32_t bell;

    for (int i = 0; i < 32; i++) {
        if (any_arrived(b))
            return;
        sched_yield();
    }
    bell = rdl_bell_announce(mine);
    if (!any_arrived(b) && !look_at_all(b, &sleep))
        rdl_bell_sleep(mine, bell, sleep);
    rdl_bell_withdraw(mine);
}

static void run_all(batch *b)
{
    bool moved;

    lock_lanes(b);
    while (advance_all(b, &moved) > 0)
        if (!moved)
            wait_for_any(b);
    unlock_lanes(b);
}

static rdl_status fill_batch(batch *b, rdl_group group,
                             const rdl_transfer *transfers,
                             const rdl_call *call, int64_t timeout_ms)
{
    for (int i = 0; i < b->count; i++) {
        leg *l = &b->legs[i];

        RDL_TRY(check(&transfers[i], i));
        l->transfer = &transfers[i];
        RDL_TRY(rdl_registry_pair(b->world, group, transfers[i].peer,
                                  sends(&transfers[i]), &l->lane));
        fill_leg(l, timeout_ms);
        l->caller = call ? call->caller : NULL;
    }
    return RDL_OK;
}

rdl_status rdl_exchange(rdl_world *world, rdl_group group,
                        const rdl_transfer *transfers, int count,
                        const rdl_call *call)
{
    batch b = { .world = world, .count = count };
    int64_t timeout_ms;
    rdl_status st;

    RDL_TRY(rdl_world_check(world));
    if (count < 0 || (count > 0 && transfers == NULL))
        return rdl_fail(RDL_INVALID, "send_recv: %d transfers at %p", count,
                        (const void *)transfers);
    RDL_TRY(rdl_call_timeout(world, call, "send_recv", &timeout_ms));
    b.legs = rdl_calloc((size_t)count + 1, sizeof *b.legs);
    if (b.legs == NULL)
        return rdl_fail(RDL_NO_MEMORY, "send_recv: no memory for %d transfers",
                        count);
    st = fill_batch(&b, group, transfers, call, timeout_ms);
    if (st == RDL_OK)
        st = copy_own(&b);
    if (st == RDL_OK) {
        qsort(b.legs, (size_t)count, sizeof *b.legs, by_lane);
        run_all(&b);
        st = b.first;
        if (st != RDL_OK)
            rdl_say("%s", b.cause ? b.cause : "a transfer failed");
    }
    rdl_free(b.cause);
    rdl_free(b.legs);
    return st;
}

rdl_status rdl_send(rdl_world *world, rdl_group group, const void *buffer,
                    size_t count, rdl_dtype dtype, int peer,
                    const rdl_call *call)
{
    rdl_transfer t = {
        .peer = peer, .send = buffer, .count = count, .dtype = dtype
    };

    return rdl_exchange(world, group, &t, 1, call);
}

rdl_status rdl_receive(rdl_world *world, rdl_group group, void *buffer,
                       size_t count, rdl_dtype dtype, int peer,
                       const rdl_call *call)
{
    rdl_transfer t = { .peer = peer,
                       .receive = buffer,
                       .receives = true,
                       .count = count,
                       .dtype = dtype };

    return rdl_exchange(world, group, &t, 1, call);
}
