/* The launcher's side: a socket and a roster for each life of the job. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/launch.h"

#include "base/fault.h"
#include "base/memory.h"
#include "base/slice.h"
#include "base/slot.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What an event is about: a hello from rank, or the end of a process of it. */
enum { HELLO, END };

static uint64_t event_key(int kind, int rank, int number)
{
    return (uint64_t)kind << 62 | (uint64_t)(uint32_t)number << 16 |
           (uint64_t)(uint32_t)rank;
}

/* --- making ---------------------------------------------------------------- */

static rdl_status watch(rdl_job *job, int fd, uint64_t key)
{
    struct epoll_event event = { .events = EPOLLIN, .data = { .u64 = key } };

    if (rdl_fault_os() ||
        epoll_ctl(job->poll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
        return rdl_fail_errno(errno, "job: cannot watch a descriptor");
    return RDL_OK;
}

static rdl_status fill_seat(rdl_job *job, int rank)
{
    rdl_seat *s = &job->seats[rank];
    int pair[2];

    if (rdl_fault_os() ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return rdl_fail_errno(errno, "job: no socket for rank %d of %d", rank,
                              job->size);
    s->ours = pair[0];
    s->theirs = pair[1];
    return watch(job, s->ours, event_key(HELLO, rank, 0));
}

static rdl_status fill_job(rdl_job *job)
{
    job->seats = rdl_calloc((size_t)job->size, sizeof *job->seats);
    if (job->seats == NULL)
        return rdl_fail(RDL_NO_MEMORY, "job: no memory for %d ranks", job->size);
    for (int rank = 0; rank < job->size; rank++)
        job->seats[rank].ours = job->seats[rank].theirs = -1;
    job->poll_fd = rdl_fault_os() ? -1 : epoll_create1(EPOLL_CLOEXEC);
    if (job->poll_fd < 0)
        return rdl_fail_errno(errno, "job: no epoll descriptor");
    for (int rank = 0; rank < job->size; rank++)
        RDL_TRY(fill_seat(job, rank));
    return RDL_OK;
}

rdl_status rdl_job_create(int size, rdl_job **out)
{
    rdl_job *job;
    rdl_status st;

    if (out == NULL)
        return rdl_fail(RDL_INVALID, "rdl_job_create: out is NULL");
    if (size < 1 || size > RDL_MAX_RANKS)
        return rdl_fail(RDL_INVALID, "a job of %d ranks is outside 1..%d", size,
                        RDL_MAX_RANKS);
    job = rdl_calloc(1, sizeof *job);
    if (job == NULL)
        return rdl_fail(RDL_NO_MEMORY, "no memory for a job");
    job->size = size;
    job->poll_fd = -1;
    st = fill_job(job);
    if (st != RDL_OK) {
        rdl_job_destroy(job);
        return st;
    }
    *out = job;
    return RDL_OK;
}

static void close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

static void free_life(rdl_life *l)
{
    for (int rank = 0; rank < l->roster.size; rank++)
        close_fd(l->watches[rank]);
    rdl_free(l->watches);
    rdl_roster_fini(&l->roster);
    rdl_free(l);
}

void rdl_job_destroy(rdl_job *job)
{
    if (job == NULL)
        return;
    while (job->lives != NULL) {
        rdl_life *l = job->lives;

        job->lives = l->next;
        free_life(l);
    }
    for (int rank = 0; job->seats != NULL && rank < job->size; rank++) {
        close_fd(job->seats[rank].ours);
        close_fd(job->seats[rank].theirs);
    }
    close_fd(job->poll_fd);
    rdl_free(job->seats);
    rdl_free(job);
}

int rdl_job_rank_fd(const rdl_job *job, int rank)
{
    return job != NULL && rank >= 0 && rank < job->size ? job->seats[rank].theirs
                                                        : -1;
}

void rdl_job_started(rdl_job *job, int rank)
{
    if (job == NULL || rank < 0 || rank >= job->size)
        return;
    close_fd(job->seats[rank].theirs);
    job->seats[rank].theirs = -1;
}

int rdl_job_poll_fd(const rdl_job *job)
{
    return job ? job->poll_fd : -1;
}

/* --- lives ----------------------------------------------------------------- */

static rdl_status make_life(rdl_job *job, int number, rdl_life **out)
{
    rdl_life *l = rdl_calloc(1, sizeof *l);
    rdl_status st;

    if (l == NULL)
        return rdl_fail(RDL_NO_MEMORY, "job: no memory for a life");
    l->number = number;
    l->watches = rdl_calloc((size_t)job->size, sizeof *l->watches);
    st = l->watches ? rdl_roster_init(&l->roster, job->size)
                    : rdl_fail(RDL_NO_MEMORY, "job: no memory for a life");
    if (st != RDL_OK) {
        rdl_free(l->watches);
        rdl_free(l);
        return st;
    }
    for (int rank = 0; rank < job->size; rank++) {
        l->watches[rank] = -1;
        if (job->seats[rank].ended[0] != 0) /* it will never join this one */
            rdl_arena_bury(&l->roster.arena, rank, job->seats[rank].ended);
    }
    l->next = job->lives;
    job->lives = l;
    *out = l;
    return RDL_OK;
}

static rdl_status find_life(rdl_job *job, int number, rdl_life **out)
{
    for (rdl_life *l = job->lives; l != NULL; l = l->next)
        if (l->number == number) {
            *out = l;
            return RDL_OK;
        }
    return make_life(job, number, out);
}

static uint32_t slice_state(const rdl_life *l, int rank)
{
    return atomic_load_explicit(&rdl_arena_slice(&l->roster.arena, rank)->state,
                                memory_order_acquire);
}

/* Lives that every rank has gone beyond need the launcher no more. */
static void drop_old_lives(rdl_job *job)
{
    rdl_life **link = &job->lives;

    while (*link != NULL) {
        rdl_life *l = *link;
        bool old = true;

        for (int rank = 0; rank < job->size; rank++)
            old &= job->seats[rank].lives > l->number &&
                   job->seats[rank].present != l;
        if (old) {
            *link = l->next;
            free_life(l);
        } else {
            link = &l->next;
        }
    }
}

/* --- hello ----------------------------------------------------------------- */

/* One process at a time is a rank: the one before must have left or ended. */
static rdl_status check_newcomer(const rdl_seat *s, const rdl_hello *hello,
                                 int rank)
{
    rdl_process self, before;

    if (s->present == NULL || s->member.pid == (int64_t)hello->pid)
        return RDL_OK;
    before = s->present->roster.members[rank];
    if (slice_state(s->present, rank) == RDL_SLICE_LEFT ||
        s->member.state == RDL_MEMBER_DEAD)
        return RDL_OK;
    RDL_TRY(rdl_process_self(&self));
    if (rdl_process_liveness(&self, &before) == RDL_DEAD)
        return RDL_OK;
    return rdl_fail(RDL_MISMATCH,
                    "rank %d is taken by process %" PRIu32 "; process %" PRIu32
                    " cannot be it too",
                    rank, before.pid, hello->pid);
}

static rdl_status check_hello(const rdl_seat *s, const rdl_hello *hello,
                              int rank)
{
    RDL_TRY(rdl_hello_check(hello));
    if (hello->rank != (uint32_t)rank)
        return rdl_fail(RDL_MISMATCH,
                        "the launcher's socket of rank %d is used "
                        "by rank %" PRIu32 " (RADDLE_RANK was changed)",
                        rank, hello->rank);
    return check_newcomer(s, hello, rank);
}

/* The process may not be our child, so the end of it is watched for. */
static void watch_process(rdl_job *job, rdl_life *l, int rank)
{
    int fd = (int)syscall(SYS_pidfd_open, (pid_t)l->roster.members[rank].pid, 0);

    close_fd(l->watches[rank]);
    l->watches[rank] = fd;
    if (fd >= 0 && watch(job, fd, event_key(END, rank, l->number)) != RDL_OK) {
        close_fd(fd); /* its peers notice by themselves, a little later */
        l->watches[rank] = -1;
    }
}

static rdl_status admit(rdl_job *job, int rank, const rdl_hello *hello)
{
    rdl_seat *s = &job->seats[rank];
    rdl_life *l = NULL;

    RDL_TRY(check_hello(s, hello, rank));
    RDL_TRY(find_life(job, s->lives, &l));
    RDL_TRY(rdl_roster_admit(&l->roster, hello));
    s->lives++;
    s->present = l;
    s->member = (rdl_member){ .state = RDL_MEMBER_JOINED, .pid = hello->pid };
    watch_process(job, l, rank);
    return RDL_OK;
}

static void answer_hello(rdl_job *job, int rank, const rdl_hello *hello)
{
    rdl_seat *s = &job->seats[rank];
    rdl_answer welcome = rdl_answer_make(hello, RDL_OK);
    rdl_status st = admit(job, rank, hello);

    if (st == RDL_OK)
        st = rdl_message_send(s->ours, &welcome, sizeof welcome,
                              s->present->roster.arena.fd);
    else
        st = rdl_roster_refuse(s->ours, hello, st);
    (void)st; /* who does not take our answer has ended, and that is noticed */
}

static void serve_hello(rdl_job *job, int rank)
{
    rdl_seat *s = &job->seats[rank];
    rdl_hello hello;
    rdl_status st;
    int fd = -1;

    st = rdl_message_receive(s->ours, &hello, sizeof hello, &fd,
                             rdl_deadline_after_ms(0));
    close_fd(fd);
    if (st == RDL_PEER) { /* no process of this rank has the socket any more */
        close_fd(s->ours);
        s->ours = -1;
        s->member.closed = true;
        return;
    }
    if (st == RDL_OK)
        answer_hello(job, rank, &hello);
    else
        st = rdl_roster_refuse(s->ours, NULL, st);
    (void)st;
    drop_old_lives(job);
}

/* --- ends ------------------------------------------------------------------ */

/* Whether one of the rank's groups had failed: then it heard of a failure, and is
 * not likely to be the cause. */
static bool has_heard(const rdl_life *l, int rank)
{
    rdl_slice *slice = rdl_arena_slice(&l->roster.arena, rank);

    for (uint32_t place = 0; place < RDL_TABLE_PLACES; place++) {
        rdl_slot *slot = rdl_table_at(slice, place);

        if (slot != NULL && rdl_slot_cause(slot) != 0)
            return true;
    }
    return false;
}

static void describe_end(const rdl_life *l, int rank, uint32_t state,
                         char *text, size_t bytes)
{
    const rdl_slice *slice = rdl_arena_slice(&l->roster.arena, rank);

    char reason[RDL_REASON];

    if (state == RDL_SLICE_FAILED) {
        rdl_slice_read_failure(slice, reason);
        snprintf(text, bytes, "gave up: %.*s", (int)bytes - 10, reason);
    } else {
        snprintf(text, bytes,
                 "its process %" PRIu32 " ended without closing its world",
                 l->roster.members[rank].pid);
    }
}

static void process_ended(rdl_job *job, int rank, int number)
{
    rdl_seat *s = &job->seats[rank];
    uint32_t state;
    char text[sizeof((rdl_obituary *)NULL)->text];
    rdl_life *l = job->lives;

    while (l != NULL && l->number != number)
        l = l->next;
    if (l == NULL)
        return;
    close_fd(l->watches[rank]);
    l->watches[rank] = -1;
    state = slice_state(l, rank);
    if (s->present == l) {
        s->member.state =
            state == RDL_SLICE_LEFT ? RDL_MEMBER_LEFT : RDL_MEMBER_DEAD;
        s->member.echoes = state == RDL_SLICE_JOINED && has_heard(l, rank);
        if (state == RDL_SLICE_FAILED) {
            rdl_slice_read_failure(rdl_arena_slice(&l->roster.arena, rank),
                                   s->reason);
            s->member.reason = s->reason;
        }
    }
    if (state == RDL_SLICE_LEFT)
        return;
    describe_end(l, rank, state, text, sizeof text);
    rdl_arena_bury(&l->roster.arena, rank, text);
}

rdl_status rdl_job_serve(rdl_job *job)
{
    struct epoll_event events[32];
    int n;

    if (job == NULL)
        return rdl_fail(RDL_INVALID, "rdl_job_serve: job is NULL");
    do {
        n = epoll_wait(job->poll_fd, events, 32, 0);
        if (n < 0 && errno != EINTR)
            return rdl_fail_errno(errno, "job: cannot wait for events");
        for (int i = 0; i < n; i++) {
            uint64_t key = events[i].data.u64;
            int rank = (int)(key & 0xffff);
            int number = (int)(key >> 16 & 0x7fffffff);

            if (key >> 62 == HELLO && job->seats[rank].ours >= 0)
                serve_hello(job, rank);
            else if (key >> 62 == END)
                process_ended(job, rank, number);
        }
    } while (n == 32);
    return RDL_OK;
}

void rdl_job_rank_ended(rdl_job *job, int rank, const char *text)
{
    rdl_seat *s;

    if (job == NULL || rank < 0 || rank >= job->size)
        return;
    s = &job->seats[rank];
    snprintf(s->ended, sizeof s->ended, "%s",
             text && text[0] ? text : "it ended");
    /* The life it was in, and those it will never join. */
    for (rdl_life *l = job->lives; l != NULL; l = l->next)
        if (l->number >= s->lives ||
            (l == s->present && slice_state(l, rank) != RDL_SLICE_LEFT))
            rdl_arena_bury(&l->roster.arena, rank, s->ended);
}

rdl_status rdl_job_member(const rdl_job *job, int rank, rdl_member *out)
{
    const rdl_seat *s;

    if (job == NULL || out == NULL || rank < 0 || rank >= job->size)
        return rdl_fail(RDL_INVALID,
                        "rdl_job_member: no job, no place for the "
                        "answer, or rank %d outside 0..%d",
                        rank, job ? job->size - 1 : -1);
    s = &job->seats[rank];
    *out = s->member;
    if (out->state != RDL_MEMBER_JOINED)
        return RDL_OK;
    /* Since the last event. */
    if (slice_state(s->present, rank) == RDL_SLICE_LEFT)
        out->state = RDL_MEMBER_LEFT;
    if (slice_state(s->present, rank) == RDL_SLICE_FAILED)
        out->reason = rdl_arena_slice(&s->present->roster.arena, rank)->reason;
    return RDL_OK;
}
