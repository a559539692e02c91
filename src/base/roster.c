/* Who may join, and what the others are told. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/roster.h"

#include "base/memory.h"
#include "base/ranks.h"

#include <inttypes.h>
#include <raddle/version.h>
#include <string.h>
#include <unistd.h>

rdl_status rdl_roster_init(rdl_roster *roster, int size)
{
    rdl_status st;
    int fd;

    *roster = (rdl_roster){ .size = size };
    RDL_TRY(rdl_process_self(&roster->self));
    roster->members = rdl_calloc((size_t)size, sizeof *roster->members);
    if (roster->members == NULL)
        return rdl_fail(RDL_NO_MEMORY, "no memory for a roster of %d ranks",
                        size);
    st = rdl_arena_make(size, &fd);
    if (st == RDL_OK) {
        st = rdl_arena_map(&roster->arena, fd);
        if (st == RDL_OK)
            return RDL_OK;
        close(fd);
    }
    rdl_free(roster->members);
    return st;
}

void rdl_roster_fini(rdl_roster *roster)
{
    rdl_arena_unmap(&roster->arena);
    rdl_free(roster->members);
}

/* The job cannot succeed any more: all who have joined are told. */
static rdl_status fail_all(rdl_roster *roster, rdl_status status)
{
    rdl_arena_fail_start(&roster->arena, status, rdl_error_detail());
    return status;
}

static rdl_status check_layout(const rdl_hello *hello)
{
    if (hello->layout == rdl_layout_hash() &&
        strcmp(hello->version, RDL_VERSION) == 0)
        return RDL_OK;
    return rdl_fail(RDL_MISMATCH,
                    "rank %" PRIu32 " uses raddle %s (layout %016" PRIx64
                    ") and who keeps the job uses %s (layout %016" PRIx64
                    "): all must use one version",
                    hello->rank, hello->version, hello->layout, RDL_VERSION,
                    rdl_layout_hash());
}

/* Then another rank is missing, most likely: nobody waits for it until the limit. A
 * job that runs goes on without the newcomer. */
static rdl_status claim_twice(rdl_roster *roster, const rdl_process *member,
                              const rdl_hello *hello)
{
    rdl_status st = rdl_fail(RDL_MISMATCH,
                             "two claim to be rank %" PRIu32
                             ": process %" PRIu32 " and process %" PRIu32,
                             hello->rank, member->pid, hello->pid);

    return rdl_arena_joined(&roster->arena) < roster->size ? fail_all(roster, st)
                                                           : st;
}

static rdl_status check_place(rdl_roster *roster, const rdl_hello *hello)
{
    rdl_process *member;

    if (hello->size != (uint32_t)roster->size)
        return fail_all(
            roster,
            rdl_fail(RDL_MISMATCH,
                     "the world has %d ranks for who keeps the job and "
                     "%" PRIu32 " for rank %" PRIu32 " (process %" PRIu32 ")",
                     roster->size, hello->size, hello->rank, hello->pid));
    if (hello->rank >= (uint32_t)roster->size)
        return rdl_fail(RDL_INVALID, "rank %" PRIu32 " is outside 0..%d",
                        hello->rank, roster->size - 1);
    member = &roster->members[hello->rank];
    return member->pid != 0 ? claim_twice(roster, member, hello) : RDL_OK;
}

rdl_status rdl_roster_admit(rdl_roster *roster, const rdl_hello *hello)
{
    rdl_status st;

    RDL_TRY(rdl_hello_check(hello));
    st = check_layout(hello);
    if (st != RDL_OK)
        return fail_all(roster, st);
    RDL_TRY(check_place(roster, hello));
    /* Before it comes: then it has where to say what goes wrong. */
    st = rdl_arena_reserve_state(&roster->arena, (int)hello->rank);
    if (st != RDL_OK)
        return fail_all(roster, st);
    roster->members[hello->rank] =
        (rdl_process){ .pid = hello->pid,
                       .started = hello->started,
                       .pid_namespace = hello->pid_namespace };
    return RDL_OK;
}

rdl_status rdl_roster_refuse(int socket, const rdl_hello *hello,
                             rdl_status status)
{
    rdl_answer answer = rdl_answer_make(hello, status);

    return rdl_message_send(socket, &answer, sizeof answer, -1);
}

rdl_status rdl_roster_answer(rdl_roster *roster, const rdl_hello *hello,
                             int socket)
{
    rdl_answer answer = rdl_answer_make(hello, RDL_OK);
    rdl_status st = rdl_roster_admit(roster, hello);

    if (st != RDL_OK)
        return rdl_roster_refuse(socket, hello, st);
    st = rdl_message_send(socket, &answer, sizeof answer, roster->arena.fd);
    if (st != RDL_OK) /* it never got the arena, so the place is free again */
        roster->members[hello->rank] = (rdl_process){ 0 };
    return st;
}

bool rdl_arena_has_joined(const rdl_arena *arena, int rank)
{
    /* Pairs with the release of who joined: its slice is filled. */
    return atomic_load_explicit(&rdl_arena_slice(arena, rank)->state,
                                memory_order_acquire) != RDL_SLICE_EMPTY;
}

rdl_status rdl_roster_check(const rdl_roster *roster)
{
    for (int rank = 0; rank < roster->size; rank++) {
        const rdl_process *member = &roster->members[rank];

        if (member->pid != 0 && !rdl_arena_has_joined(&roster->arena, rank) &&
            rdl_process_liveness(&roster->self, member) == RDL_DEAD)
            return rdl_fail(RDL_PEER,
                            "rank %d (process %" PRIu32 ") is gone while the "
                            "job starts",
                            rank, member->pid);
    }
    return RDL_OK;
}

int rdl_arena_joined(const rdl_arena *arena)
{
    int n = 0;

    for (int rank = 0; rank < arena->size; rank++)
        n += rdl_arena_has_joined(arena, rank);
    return n;
}

void rdl_arena_missing(const rdl_arena *arena, char *buffer, size_t bytes)
{
    rdl_text text = { buffer, bytes };
    int missing[RDL_MAX_RANKS], n = 0;

    for (int rank = 0; rank < arena->size; rank++)
        if (!rdl_arena_has_joined(arena, rank))
            missing[n++] = rank;
    rdl_text_add(&text, "%d of %d joined, missing ", arena->size - n,
                 arena->size);
    rdl_text_add_these_ranks(&text, missing, n);
}
