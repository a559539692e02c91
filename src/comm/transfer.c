/* Send and receive. The way from one member to another is a lane of two, on which
 * a transfer is a broadcast from the first; so it has an order of its own, and
 * both ends compare what they think it is. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/memory.h"
#include "comm/call.h"

#include <string.h>

/* The transfers of a batch that go to or come from another rank. */
typedef struct batch {
    rdl_op *ops;
    int count;
    rdl_status *statuses;
    char **sentences;
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
    if (t->count > 0 && t->send == NULL && t->receive == NULL)
        return rdl_fail(RDL_INVALID,
                        "send_recv: the buffer of transfer %d is NULL and %zu "
                        "elements are wanted",
                        i, t->count);
    return RDL_OK;
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

/* The k-th send to oneself meets the k-th receive from oneself. */
static rdl_status copy_own(const rdl_transfer *transfers, int count, int me,
                           bool really)
{
    int s = next_own(transfers, count, me, true, 0);
    int r = next_own(transfers, count, me, false, 0);

    while (s < count && r < count) {
        const rdl_transfer *from = &transfers[s], *to = &transfers[r];

        if (from->count != to->count || from->dtype != to->dtype)
            return rdl_fail(RDL_INVALID,
                            "send_recv: a rank sends itself %zu elements and "
                            "expects %zu, or of another dtype",
                            from->count, to->count);
        if (really && from->count > 0)
            memmove(to->receive, from->send,
                    from->count * rdl_dtype_bytes(from->dtype));
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

/* --- to others ------------------------------------------------------------- */

static rdl_status add_op(batch *b, rdl_world *world, rdl_group group,
                         const rdl_transfer *t, int64_t timeout_ms,
                         const char *caller)
{
    rdl_arguments a = { .operation = RDL_OP_SEND_RECV,
                        .input = t->send,
                        .output = t->receive,
                        .count = t->count,
                        .dtype = t->dtype };
    uint64_t ticket = 0;
    rdl_lane *lane = NULL;

    RDL_TRY(rdl_registry_pair(world, group, t->peer, sends(t), &lane, &ticket));
    if (lane == NULL)
        return RDL_OK;
    return rdl_op_init(&b->ops[b->count++], lane, ticket, &a, 0, timeout_ms,
                       caller);
}

static rdl_status make_batch(batch *b, int count)
{
    size_t n = (size_t)count + 1;

    b->ops = rdl_calloc(n, sizeof *b->ops);
    b->statuses = rdl_calloc(n, sizeof *b->statuses);
    b->sentences = rdl_calloc(n, sizeof *b->sentences);
    return b->ops && b->statuses && b->sentences
               ? RDL_OK
               : rdl_fail(RDL_NO_MEMORY,
                          "send_recv: no memory for %d transfers", count);
}

static void free_batch(batch *b)
{
    for (int i = 0; i < b->count; i++)
        rdl_free(b->sentences[i]);
    rdl_free(b->ops);
    rdl_free(b->statuses);
    rdl_free(b->sentences);
}

/* Nothing was begun: the tickets go back. */
static void give_up(batch *b)
{
    for (int i = 0; i < b->count; i++)
        rdl_lane_give_up_turn(b->ops[i].lane, b->ops[i].ticket);
}

static rdl_status first_failure(const batch *b)
{
    for (int i = 0; i < b->count; i++)
        if (b->statuses[i] != RDL_OK)
            return rdl_fail(b->statuses[i], "%s",
                            b->sentences[i]
                                ? b->sentences[i]
                                : "a transfer has failed; there was "
                                  "no memory to note how");
    return RDL_OK;
}

static rdl_status run_batch(batch *b, rdl_world *world, rdl_group group,
                            const rdl_transfer *transfers, int count,
                            const rdl_call *call)
{
    const char *caller = call ? call->caller : NULL;
    int64_t timeout_ms = 0;
    rdl_status st = RDL_OK;
    int me = -1;

    RDL_TRY(rdl_call_timeout(world, call, "send_recv", &timeout_ms));
    RDL_TRY(rdl_group_rank(world, group, &me));
    for (int i = 0; i < count; i++)
        RDL_TRY(check(&transfers[i], i));
    RDL_TRY(copy_own(transfers, count, me, false));
    RDL_TRY(make_batch(b, count));
    for (int i = 0; i < count && st == RDL_OK; i++)
        st = add_op(b, world, group, &transfers[i], timeout_ms, caller);
    if (st != RDL_OK) {
        give_up(b);
        return st;
    }
    rdl_op_run_together(world, b->ops, b->count, b->statuses, b->sentences);
    (void)copy_own(transfers, count, me, true); /* it was checked before */
    return first_failure(b);
}

rdl_status rdl_exchange(rdl_world *world, rdl_group group,
                        const rdl_transfer *transfers, int count,
                        const rdl_call *call)
{
    batch b = { 0 };
    rdl_status st;

    RDL_TRY(rdl_world_check(world));
    if (count < 0 || (count > 0 && transfers == NULL))
        return rdl_fail(RDL_INVALID, "send_recv: %d transfers at %p", count,
                        (const void *)transfers);
    st = run_batch(&b, world, group, transfers, count, call);
    free_batch(&b);
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
