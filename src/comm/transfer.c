/* Send and receive. The way from one member to another is a lane of two, on which
 * a transfer is a broadcast from the first; so it has an order of its own, and
 * both ends compare what they think it is. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/memory.h"
#include "comm/batch.h"
#include "comm/call.h"

#include <string.h>

static bool sends(const rdl_transfer *t)
{
    return t->send != NULL || (t->receive == NULL && !t->receives);
}

static const char *name_of(const rdl_transfer *t)
{
    return sends(t) ? "send" : "receive";
}

static rdl_status check_buffers(const rdl_transfer *t)
{
    if (t->send != NULL && t->receive != NULL)
        return rdl_fail(RDL_INVALID,
                        "a transfer has both send and receive set");
    if (t->count > 0 && t->send == NULL && t->receive == NULL)
        return rdl_fail(RDL_INVALID,
                        "%s: the buffer is NULL and %zu elements are wanted",
                        name_of(t), t->count);
    return RDL_OK;
}

static rdl_status check(const rdl_transfer *t, const rdl_call *call)
{
    size_t element = rdl_dtype_bytes(t->dtype);

    if (element == 0)
        return rdl_fail(RDL_INVALID, "%s: %d is no dtype", name_of(t),
                        (int)t->dtype);
    if (t->count > SIZE_MAX / 4 / element)
        return rdl_fail(RDL_INVALID,
                        "%s: %zu elements of %zu bytes: the size overflows",
                        name_of(t), t->count, element);
    if (call != NULL && call->factor != 0)
        return rdl_fail(RDL_INVALID,
                        "%s: a factor of %g, which only premul_sum takes",
                        name_of(t), call->factor);
    return check_buffers(t);
}

/* What the transfers of a call share. */
typedef struct common {
    const char *caller;
    int64_t timeout_ms;
    uint32_t site;
} common;

/* One operation on the way to or from peer. */
static rdl_status add_op(rdl_batch *b, rdl_group group, const rdl_transfer *t,
                         const rdl_arguments *a, const common *c)
{
    uint64_t ticket = 0;
    rdl_lane *lane = NULL;
    rdl_status st;

    RDL_TRY(rdl_batch_reserve(b));
    RDL_TRY(
        rdl_registry_pair(b->world, group, t->peer, sends(t), &lane, &ticket));
    st = rdl_op_init(rdl_batch_next(b), lane, ticket, a, c->timeout_ms,
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
        size_t bytes = from->count * rdl_dtype_bytes(from->dtype);
        rdl_arguments a = { .operation = RDL_OP_SEND_RECV,
                            .input_bytes = bytes,
                            .output_bytes = bytes,
                            .input = from->send,
                            .output = to->receive,
                            .count = from->count,
                            .dtype = from->dtype,
                            .site = c->site };

        if (from->count != to->count || from->dtype != to->dtype)
            return rdl_fail(RDL_INVALID,
                            "exchange: a rank sends itself %zu elements and "
                            "expects %zu, or of another dtype",
                            from->count, to->count);
        RDL_TRY(add_op(b, group, from, &a, c));
        s = next_own(transfers, count, me, true, s + 1);
        r = next_own(transfers, count, me, false, r + 1);
    }
    if (s < count || r < count)
        return rdl_fail(RDL_INVALID,
                        "exchange: a rank %s itself without the other half in "
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
        size_t bytes = t->count * rdl_dtype_bytes(t->dtype);
        rdl_arguments a = { .operation = RDL_OP_SEND_RECV,
                            .input_bytes = t->send ? bytes : 0,
                            .output_bytes = t->receive ? bytes : 0,
                            .input = t->send,
                            .output = t->receive,
                            .count = t->count,
                            .dtype = t->dtype,
                            .site = c->site };

        if (t->peer != me)
            RDL_TRY(add_op(b, group, t, &a, c));
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

    RDL_TRY(rdl_call_timeout(b->world, call, "exchange", &c.timeout_ms));
    RDL_TRY(rdl_group_rank(b->world, group, &me));
    for (int i = 0; i < count; i++)
        RDL_TRY(check(&transfers[i], call));
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
        return rdl_fail(RDL_INVALID, "exchange: %d transfers at %p", count,
                        (const void *)transfers);
    if (call != NULL && call->batch != NULL && (call->stream || call->work))
        return rdl_fail(RDL_INVALID,
                        "exchange: transfers in a batch have no stream or work "
                        "of their own: rdl_batch_end has");
    if (call != NULL && call->batch != NULL) {
        RDL_TRY(rdl_batch_check(call->batch, world));
        return add_all(call->batch, group, transfers, count, call, site);
    }
    RDL_TRY(rdl_batch_begin(world, &batch));
    st = add_all(batch, group, transfers, count, call, site);
    if (st == RDL_OK)
        return rdl_batch_end(batch, call);
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

/* --- who sends ------------------------------------------------------------- */

typedef enum sender { SENDER_SILENT, SENDER_SENDS, SENDER_GONE } sender;

/* Whether a send has begun on the way that no receive was made for, or none can come
 * any more, and why. The caller has the way's turn. */
static rdl_status look_at_way(rdl_lane *way, rdl_text *why, sender *is)
{
    int other = way->comm->size - 1 - way->comm->me;
    rdl_status st = rdl_lane_prepare(way);
    bool lost;

    if (st == RDL_AGAIN)
        return RDL_OK;
    RDL_TRY(st);
    if (rdl_lane_is_ahead(way, other)) {
        *is = SENDER_SENDS;
        return RDL_OK;
    }
    lost = rdl_lane_state(way) != RDL_OK;
    if (lost)
        rdl_text_add(why, "%s", rdl_error_detail());
    else
        lost = rdl_lane_is_gone(way, other, why);
    /* It may have sent before its end. */
    if (lost)
        *is = rdl_lane_is_ahead(way, other) ? SENDER_SENDS : SENDER_GONE;
    return RDL_OK;
}

static rdl_status look_at_sender(rdl_world *world, rdl_group group, int peer,
                                 rdl_text *why, sender *is)
{
    rdl_lane *way = NULL;
    uint64_t ticket = 0;
    rdl_status st = RDL_OK;

    *is = SENDER_SILENT;
    RDL_TRY(rdl_registry_pair(world, group, peer, false, &way, &ticket));
    /* Else a receive from it is pending, and its next send is for that. */
    if (rdl_turns_is(&way->turns, ticket))
        st = look_at_way(way, why, is);
    rdl_lane_give_up_turn(way, ticket);
    return st;
}

static rdl_status check_probe(rdl_world *world, rdl_group group, int after,
                              const int *peer, int *me, int *size)
{
    RDL_TRY(rdl_world_check(world));
    if (peer == NULL)
        return rdl_fail(RDL_INVALID, "probe: peer is NULL");
    RDL_TRY(rdl_group_rank(world, group, me));
    RDL_TRY(rdl_group_size(world, group, size));
    if (*me < 0)
        return rdl_fail(RDL_INVALID, "probe: rank %d is not in the group",
                        world->rank);
    if (after < -1 || after >= *size)
        return rdl_fail(RDL_INVALID, "probe: after is %d, outside -1..%d",
                        after, *size - 1);
    return RDL_OK;
}

rdl_status rdl_probe(rdl_world *world, rdl_group group, int after, int *peer)
{
    int me = -1, size = 0, n_gone = 0;
    char first[RDL_SENTENCE / 2] = "";

    RDL_TRY(check_probe(world, group, after, peer, &me, &size));
    for (int i = 1; i <= size; i++) {
        char buffer[RDL_SENTENCE / 2] = "";
        rdl_text why = { buffer, sizeof buffer };
        int other = (after + i) % size;
        sender is;

        if (other == me)
            continue;
        RDL_TRY(look_at_sender(world, group, other, &why, &is));
        if (is == SENDER_SENDS) {
            *peer = other;
            return RDL_OK;
        }
        if (is == SENDER_GONE && n_gone++ == 0)
            memcpy(first, buffer, sizeof first);
    }
    if (n_gone > 0 && n_gone == size - 1)
        return rdl_fail(RDL_PEER, "probe: nobody is left who could send: %s",
                        first);
    *peer = -1;
    return RDL_OK;
}
