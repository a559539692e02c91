/* Meeting at an abstract socket, or through the launcher's. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/store.h"

#include "base/fault.h"
#include "base/meeting.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <raddle/version.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MS INT64_C(1000000)

static rdl_hello make_hello(const rdl_place *place, const rdl_process *self)
{
    rdl_hello hello = { .magic = RDL_MAGIC,
                        .layout = rdl_layout_hash(),
                        .job = place->job,
                        .size = (uint32_t)place->size,
                        .rank = (uint32_t)place->rank,
                        .started = self->started,
                        .pid_namespace = self->pid_namespace,
                        .pid = self->pid };

    snprintf(hello.version, sizeof hello.version, "%s", RDL_VERSION);
    return hello;
}

/* Says hello on socket and takes the arena. RDL_PEER: nobody is there any more. */
static rdl_status ask(int socket, const rdl_place *place, rdl_deadline deadline,
                      int *out)
{
    rdl_process self;
    rdl_hello hello;
    rdl_answer answer;
    int fd = -1;

    RDL_TRY(rdl_process_self(&self));
    hello = make_hello(place, &self);
    RDL_TRY(rdl_message_send(socket, &hello, sizeof hello, -1));
    RDL_TRY(rdl_message_await_answer(socket, &self, deadline));
    RDL_TRY(rdl_message_receive(socket, &answer, sizeof answer, &fd, deadline));
    if (rdl_answer_check(&answer) != RDL_OK || answer.status != RDL_OK ||
        fd < 0) {
        if (fd >= 0)
            close(fd);
        RDL_TRY(rdl_answer_check(&answer));
        if (answer.status == RDL_OK)
            return rdl_fail(RDL_FORMAT, "the rendezvous sent no arena");
        return rdl_fail((rdl_status)answer.status, "%s", answer.text);
    }
    *out = fd;
    return RDL_OK;
}

static bool socket_option_is(int fd, int option, int expected)
{
    int value = -1;
    socklen_t length = sizeof value;

    return getsockopt(fd, SOL_SOCKET, option, &value, &length) == 0 &&
           value == expected;
}

static rdl_status ask_launcher(const rdl_place *place, rdl_deadline deadline,
                               int *fd)
{
    rdl_status st;

    if (!socket_option_is(place->fd, SO_DOMAIN, AF_UNIX) ||
        !socket_option_is(place->fd, SO_TYPE, SOCK_SEQPACKET))
        return rdl_fail(RDL_INVALID,
                        "RADDLE_FD=%d is not the launcher's socket; was it "
                        "closed before the program started?",
                        place->fd);
    RDL_TRY(rdl_message_check_user(place->fd));
    st = ask(place->fd, place, deadline, fd);
    return st == RDL_PEER
               ? rdl_fail(RDL_PEER, "the launcher is gone (RADDLE_FD=%d)",
                          place->fd)
               : st;
}

/* --- without a launcher ---------------------------------------------------- */

static rdl_status make_socket(int *out)
{
    int fd = -1;

    if (!rdl_fault_os())
        fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return rdl_fail_errno(errno, "no socket for the rendezvous");
    *out = fd;
    return RDL_OK;
}

/* Becomes the keeper of the roster, with ourselves on it. */
static rdl_status keep(rdl_store *store, const rdl_place *place, int *out)
{
    rdl_process self;
    rdl_hello hello;
    rdl_status st;
    int fd;

    RDL_TRY(rdl_process_self(&self));
    RDL_TRY(rdl_roster_init(&store->roster, place->size));
    hello = make_hello(place, &self);
    st = rdl_roster_admit(&store->roster, &hello);
    if (st == RDL_OK) {
        fd = rdl_fault_os() ? -1
                            : fcntl(store->roster.arena.fd, F_DUPFD_CLOEXEC, 0);
        if (fd >= 0) {
            *out = fd;
            return RDL_OK;
        }
        st = rdl_fail_errno(errno, "cannot keep the arena");
    }
    rdl_roster_fini(&store->roster);
    return st;
}

/* Binds and listens, with the roster made first: whoever connects is answered.
 * RDL_AGAIN: somebody else is there. */
static rdl_status bind_and_keep(rdl_store *store, const rdl_place *place,
                                int socket, int *out)
{
    rdl_status st;

    RDL_TRY(rdl_meeting_bind(place, socket));
    st = keep(store, place, out);
    if (st == RDL_OK && (rdl_fault_os() || listen(socket, RDL_MAX_RANKS) != 0)) {
        st = rdl_fail_errno(errno, "cannot listen at the rendezvous");
        close(*out);
        rdl_roster_fini(&store->roster);
    }
    if (st != RDL_OK)
        rdl_meeting_remove(place);
    return st;
}

/* RDL_AGAIN: somebody else holds the place, or is about to. */
static rdl_status try_to_keep(rdl_store *store, const rdl_place *place, int *out)
{
    rdl_status st;
    int fd, lock;

    RDL_TRY(rdl_meeting_lock(place, &lock));
    st = make_socket(&fd);
    if (st == RDL_OK) {
        st = bind_and_keep(store, place, fd, out);
        if (st == RDL_OK)
            store->listener = fd;
        else
            close(fd);
    }
    if (lock >= 0)
        close(lock);
    return st;
}

#define CURE                                                                   \
    "give the job a name that others cannot guess (RADDLE_JOB, or the option " \
    "job)"

/* Whoever guesses the name can be there first, and could hand us an arena of its
 * own. */
static rdl_status check_holder(int socket, const rdl_place *place)
{
    rdl_status st = rdl_message_check_user(socket);
    char text[RDL_SENTENCE / 2];

    if (st != RDL_INVALID)
        return st;
    snprintf(text, sizeof text, "%s", rdl_error_detail());
    return rdl_fail(RDL_INVALID, "%s: it holds the name %s; " CURE, text,
                    rdl_meeting_text(place));
}

/* RDL_AGAIN: nobody is there, or not yet, or no longer. */
static rdl_status try_to_ask(const rdl_place *place, rdl_deadline deadline,
                             int *out)
{
    struct sockaddr_un address;
    socklen_t length = rdl_meeting_address(place, &address);
    rdl_status st;
    int fd, error;

    RDL_TRY(make_socket(&fd));
    error =
        rdl_fault_os() || connect(fd, (struct sockaddr *)&address, length) != 0
            ? errno
            : 0;
    if (error == 0) {
        st = check_holder(fd, place);
        if (st == RDL_OK)
            st = ask(fd, place, deadline, out);
        if (st == RDL_PEER)
            st = RDL_AGAIN;
    } else if (error == ECONNREFUSED || error == EAGAIN || error == ENOENT ||
               error == EINTR) {
        st = RDL_AGAIN;
    } else {
        st = rdl_fail_errno(error, "cannot connect to the rendezvous");
    }
    close(fd);
    return st;
}

rdl_status rdl_store_open(rdl_store *store, const rdl_place *place,
                          rdl_deadline deadline, int *fd)
{
    store->listener = -1;
    store->place = place;
    if (place->fd >= 0)
        return ask_launcher(place, deadline, fd);
    for (;;) {
        rdl_status st = try_to_keep(store, place, fd);

        if (st == RDL_AGAIN)
            st = try_to_ask(place, deadline, fd);
        if (st != RDL_AGAIN)
            return st;
        if (rdl_deadline_passed(deadline))
            return rdl_fail(RDL_TIMEOUT,
                            "rank %d of %d found nobody to answer at the "
                            "rendezvous %s, whose name somebody holds: it may "
                            "be another user; " CURE,
                            place->rank, place->size, rdl_meeting_text(place));
        rdl_sleep(MS / 2);
    }
}

/* --- keeping --------------------------------------------------------------- */

/* A rank says hello at once. Who does not is a stranger, or a rank that was not
 * let run: it finds the socket closed, and comes again. */
#define HELLO_MS 100

static void answer_one(rdl_store *store, int socket)
{
    rdl_hello hello;
    int fd = -1;
    rdl_status st = rdl_message_check_user(socket);

    if (st == RDL_OK)
        st = rdl_message_receive(socket, &hello, sizeof hello, &fd,
                                 rdl_deadline_after_ms(HELLO_MS));
    if (fd >= 0)
        close(fd);
    if (st == RDL_OK)
        st = rdl_roster_answer(&store->roster, &hello, socket);
    else if (st != RDL_TIMEOUT)
        st = rdl_roster_refuse(socket, NULL, st);
    (void)st; /* who does not take our answer is not there any more */
}

/* Between two looks at how far the job is, as strangers may come without end. */
#define MOST_AT_ONCE 64

static int take_connection(const rdl_store *store)
{
    return rdl_fault_os() ? -1
                          : accept4(store->listener, NULL, NULL, SOCK_CLOEXEC);
}

/* Why there was none: nobody is there, or our own limits. */
static rdl_status check_no_connection(void)
{
    if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
        return RDL_OK;
    return rdl_fail_errno(errno, "cannot take the connection of a rank");
}

rdl_status rdl_store_serve(rdl_store *store, rdl_time most)
{
    struct pollfd p = { .fd = store->listener, .events = POLLIN };

    if (store->listener < 0) {
        rdl_sleep(most);
        return RDL_OK;
    }
    if (poll(&p, 1, (int)((most + MS - 1) / MS)) <= 0)
        return RDL_OK;
    for (int i = 0; i < MOST_AT_ONCE; i++) {
        int socket = take_connection(store);

        if (socket < 0)
            return check_no_connection();
        answer_one(store, socket);
        close(socket);
    }
    return RDL_OK;
}

rdl_status rdl_store_check(const rdl_store *store)
{
    return store->listener < 0 ? RDL_OK : rdl_roster_check(&store->roster);
}

void rdl_store_close(rdl_store *store)
{
    if (store->listener < 0)
        return;
    rdl_meeting_remove(store->place);
    close(store->listener);
    rdl_roster_fini(&store->roster);
}
