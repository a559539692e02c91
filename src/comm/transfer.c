/* Send and receive. The way from one member to another is a lane of two, on which
 * a transfer is a broadcast from the first; so it has an order of its own, and
 * both ends compare what they think it is. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/memory.h"
#include "comm/batch.h"
#include "comm/call.h"

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
    if (t->count > 0 && t->send == NULL && t->receive == NULL)
        return rdl_fail(RDL_INVALID,
                        "send_recv: the buffer of transfer %d is NULL and %zu "
                        "elements are wanted",
                        i, t->count);
    return RDL_OK;
}

/* What the transfers of a call share. */
typedef struct common {
    const char *caller;
    int64_t timeout_ms;
    uint32_t site;
} common;

/* One operation on the way to or from peer. */
static rdl_status add_op(rdl_batch *b, rdl_group group, const rdl_transfer *t,
                         const rdl_arguments *a, size_t bytes, const common *c)
{
    uint64_t ticket = 0;
    rdl_lane *lane = NULL;
    rdl_status st;

    RDL_TRY(rdl_batch_reserve(b));
    RDL_TRY(
        rdl_registry_pair(b->world, group, t->peer, sends(t), &lane, &ticket));
    st = rdl_op_init(rdl_batch_next(b), lane, ticket, a, bytes, c->timeout_ms,
                     c->caller);
    if (st == RDL_OK)
        rdl_batch_add(b);
    else
        rdl_lane_give_up_turn(lane, ticket);
    return st;
}

/* --- to oneself ------------------------------------------------------------ */

/* The next transfer with this rank itself that does what is asked, from i on. */
static int next_own(const rdl_transfer *transfers, int count, int me, bool send,
                    int i)
{
    while (i < count && (transfers[i].peer != me || sends(&transfers[i]) != send))
        i++;
    return i;
}

/* The k-th send to oneself meets the k-th receive from oneself: together they are
 * one operation in a group of one, which is a copy. */
static rdl_status add_own(rdl_batch *b, rdl_group group,
                          const rdl_transfer *transfers, int count, int me,
                          const common *c)
{
    int s = next_own(transfers, count, me, true, 0);
    int r = next_own(transfers, count, me, false, 0);

    while (s < count && r < count) {
        const rdl_transfer *from = &transfers[s], *to = &transfers[r];
        rdl_arguments a = { .operation = RDL_OP_SEND_RECV,
                            .input = from->send,
                            .output = to->receive,
                            .count = from->count,
                            .dtype = from->dtype,
                            .site = c->site };

        if (from->count != to->count || from->dtype != to->dtype)
            return rdl_fail(RDL_INVALID,
                            "send_recv: a rank sends itself %zu elements and "
                            "expects %zu, or of another dtype",
                            from->count, to->count);
        RDL_TRY(add_op(b, group, from, &a,
                       from->count * rdl_dtype_bytes(from->dtype), c));
        s = next_own(transfers, count, me, true, s + 1);
        r = next_own(transfers, count, me, false, r + 1);
    }
    if (s < count || r < count)
        return rdl_fail(RDL_INVALID,
                        "send_recv: a rank %s itself without the other half in "
                        "the same batch",
                        s < count ? "sends to" : "receives from");
    return RDL_OK;
}

/* --- all of them ----------------------------------------------------------- */

static rdl_status add_others(rdl_batch *b, rdl_group group,
                             const rdl_transfer *transfers, int count, int me,
                             const common *c)
{
    for (int i = 0; i < count; i++) {
        const rdl_transfer *t = &transfers[i];
        rdl_arguments a = { .operation = RDL_OP_SEND_RECV,
                            .input = t->send,
                            .output = t->receive,
                            .count = t->count,
                            .dtype = t->dtype,
                            .site = c->site };

        if (t->peer != me)
            RDL_TRY(add_op(b, group, t, &a, 0, c));
    }
    return RDL_OK;
}

static rdl_status add_all(rdl_batch *b, rdl_group group,
                          const rdl_transfer *transfers, int count,
                          const rdl_call *call, rdl_call_site site)
{
    common c = { .caller = call ? call->caller : NULL };
    int me = -1, before = b->count;
    rdl_status st;

    RDL_TRY(rdl_call_timeout(b->world, call, "send_recv", &c.timeout_ms));
    RDL_TRY(rdl_group_rank(b->world, group, &me));
    for (int i = 0; i < count; i++)
        RDL_TRY(check(&transfers[i], i));
    c.site = rdl_texts_site_of(&b->world->texts, site, c.caller);
    st = me < 0 ? RDL_OK : add_own(b, group, transfers, count, me, &c);
    if (st == RDL_OK)
        st = add_others(b, group, transfers, count, me, &c);
    if (st != RDL_OK)
        rdl_batch_cut(b, before); /* all or none */
    return st;
}

static rdl_status exchange(rdl_world *world, rdl_group group,
                           const rdl_transfer *transfers, int count,
                           const rdl_call *call, rdl_call_site site)
{
    rdl_batch *batch = NULL;
    rdl_status st;

    RDL_TRY(rdl_world_check(world));
    if (count < 0 || (count > 0 && transfers == NULL))
        return rdl_fail(RDL_INVALID, "send_recv: %d transfers at %p", count,
                        (const void *)transfers);
    if (call != NULL && call->batch != NULL && (call->stream || call->work))
        return rdl_fail(
            RDL_INVALID,
            "send_recv: transfers in a batch have no stream or work "
            "of their own: rdl_batch_end has");
    if (call != NULL && call->batch != NULL) {
        RDL_TRY(rdl_batch_check(call->batch, world));
        return add_all(call->batch, group, transfers, count, call, site);
    }
    RDL_TRY(rdl_batch_begin(world, &batch));
    st = add_all(batch, group, transfers, count, call, site);
    if (st == RDL_OK)
        return rdl_batch_finish(batch, call, NULL);
    rdl_batch_fini(batch);
    rdl_free(batch);
    return st;
}

RDL_PUBLIC_CALL(rdl_exchange,
                exchange(world, group, transfers, count, call, site),
                rdl_world *world, rdl_group group,
                const rdl_transfer *transfers, int count, const rdl_call *call)

/* The answer of one transfer. */
#define EXCHANGE(...)                                                          \
    exchange(world, group, &(rdl_transfer){ __VA_ARGS__ }, 1, call, site)

RDL_PUBLIC_CALL(rdl_send,
                EXCHANGE(.peer = peer, .send = buffer, .count = count,
                         .dtype = dtype),
                rdl_world *world, rdl_group group, const void *buffer,
                size_t count, rdl_dtype dtype, int peer, const rdl_call *call)

RDL_PUBLIC_CALL(rdl_receive,
                EXCHANGE(.peer = peer, .receive = buffer, .receives = true,
                         .count = count, .dtype = dtype),
                rdl_world *world, rdl_group group, void *buffer, size_t count,
                rdl_dtype dtype, int peer, const rdl_call *call)
