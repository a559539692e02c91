/* Messages with a descriptor. No call here waits inside the kernel: an end that
 * takes nothing, or a message that another reader took, holds nobody up. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/message.h"

#include "base/fault.h"
#include "base/layout.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The kernel may fit two descriptors in. */
typedef union control_room {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
} control_room;

rdl_status rdl_message_send(int socket, const void *message, size_t bytes,
                            int fd)
{
    struct iovec part = { .iov_base = (void *)(uintptr_t)message,
                          .iov_len = bytes };
    control_room control = { { 0 } };
    struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1 };
    ssize_t sent = -1;

    if (fd >= 0) {
        struct cmsghdr *c;

        header.msg_control = control.bytes;
        header.msg_controllen = sizeof control.bytes;
        c = CMSG_FIRSTHDR(&header);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(c), &fd, sizeof fd);
    }
    if (!rdl_fault_os())
        do
            sent = sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
        while (sent < 0 && errno == EINTR);
    if (sent == (ssize_t)bytes)
        return RDL_OK;
    if (sent >= 0)
        return rdl_fail(RDL_SYSTEM, "sent %zd of %zu bytes of a message", sent,
                        bytes);
    if (errno == EPIPE || errno == ECONNRESET)
        return rdl_fail(RDL_PEER, "the other end of the rendezvous is closed");
    return rdl_fail_errno(errno, "cannot send to the rendezvous");
}

/* The descriptor that came along, or -1; further ones are closed and counted. */
static int take_descriptor(struct msghdr *header, int *more)
{
    int first = -1, fd;

    *more = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c != NULL;
         c = CMSG_NXTHDR(header, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t at = 0; CMSG_LEN(at + sizeof fd) <= c->cmsg_len;
             at += sizeof fd) {
            memcpy(&fd, CMSG_DATA(c) + at, sizeof fd);
            if (first < 0) {
                first = fd;
            } else {
                close(fd);
                ++*more;
            }
        }
    }
    return first;
}

/* What is wrong with a message that came with these flags and descriptors. */
static rdl_status check_received(size_t got, size_t bytes, int flags, int fd,
                                 int more)
{
    if (got != bytes || (flags & MSG_TRUNC) != 0)
        return rdl_fail(RDL_FORMAT,
                        "a message of %zu bytes%s where %zu were expected: the "
                        "other end is no raddle of this version",
                        got, flags & MSG_TRUNC ? " and more" : "", bytes);
    if (more > 0)
        return rdl_fail(RDL_FORMAT,
                        "a message with more than one descriptor: the other "
                        "end is no raddle of this version");
    /* The kernel could not give us the descriptor: our limit is met. */
    if ((flags & MSG_CTRUNC) != 0 && fd < 0)
        return rdl_fail_errno(EMFILE, "cannot take the arena's descriptor");
    return RDL_OK;
}

static rdl_status wait_readable(int socket, rdl_deadline deadline)
{
    struct pollfd p = { .fd = socket, .events = POLLIN };

    for (;;) {
        rdl_time left = rdl_deadline_left(deadline, 1000000000);
        int n = poll(&p, 1, (int)((left + 999999) / 1000000));

        if (n > 0)
            return RDL_OK;
        if (n < 0 && errno != EINTR)
            return rdl_fail_errno(errno, "cannot wait for the rendezvous");
        if (rdl_deadline_passed(deadline))
            return rdl_fail(RDL_TIMEOUT, "no answer from the rendezvous");
    }
}

rdl_status rdl_message_receive(int socket, void *message, size_t bytes, int *fd,
                               rdl_deadline deadline)
{
    struct iovec part = { .iov_base = message, .iov_len = bytes };
    control_room control = { { 0 } };
    struct msghdr header = { .msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes };
    ssize_t got;
    rdl_status st;
    int more;

    do {
        RDL_TRY(wait_readable(socket, deadline));
        got = rdl_fault_os()
                  ? -1
                  : recvmsg(socket, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
        /* Another process that has this socket may have taken the message. */
    } while (got < 0 && (errno == EINTR || errno == EAGAIN));
    if (got < 0 && errno != ECONNRESET)
        return rdl_fail_errno(errno, "cannot receive from the rendezvous");
    if (got < 0)
        return rdl_fail(RDL_PEER, "the other end of the rendezvous is closed");
    *fd = take_descriptor(&header, &more);
    if (got == 0)
        st = rdl_fail(RDL_PEER, "the other end of the rendezvous is closed");
    else
        st = check_received((size_t)got, bytes, header.msg_flags, *fd, more);
    if (st != RDL_OK && *fd >= 0) {
        close(*fd);
        *fd = -1;
    }
    return st;
}

rdl_answer rdl_answer_make(const rdl_hello *hello, rdl_status status)
{
    rdl_answer answer = { .magic = RDL_MAGIC, .status = (uint32_t)status };

    if (hello != NULL) {
        answer.pid = hello->pid;
        answer.started = hello->started;
        answer.pid_namespace = hello->pid_namespace;
    }
    if (status != RDL_OK)
        snprintf(answer.text, sizeof answer.text, "%s", rdl_error_detail());
    return answer;
}

/* Whether the next message is an answer that another living process waits for. */
static bool is_anothers(int socket, const rdl_process *self)
{
    rdl_answer answer;
    rdl_process other;

    /* Without room for a descriptor none is taken by looking. */
    if (recv(socket, &answer, sizeof answer, MSG_PEEK | MSG_DONTWAIT) !=
            (ssize_t)sizeof answer ||
        rdl_answer_check(&answer) != RDL_OK || answer.pid == 0)
        return false;
    other = (rdl_process){ answer.pid, answer.started, answer.pid_namespace };
    return (other.pid != self->pid || other.started != self->started) &&
           rdl_process_liveness(self, &other) != RDL_DEAD;
}

rdl_status rdl_message_await_answer(int socket, const rdl_process *self,
                                    rdl_deadline deadline)
{
    for (;;) {
        RDL_TRY(wait_readable(socket, deadline));
        if (!is_anothers(socket, self))
            return RDL_OK;
        if (rdl_deadline_passed(deadline))
            return rdl_fail(RDL_TIMEOUT, "another process that shares our "
                                         "socket to the rendezvous does not "
                                         "take its answer");
        rdl_sleep(INT64_C(500000));
    }
}

rdl_status rdl_message_check_user(int socket)
{
    struct ucred other;
    socklen_t length = sizeof other;

    if (rdl_fault_os() ||
        getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &length) != 0)
        return rdl_fail_errno(errno, "cannot ask who is at the other end");
    if (other.uid != geteuid())
        return rdl_fail(RDL_INVALID,
                        "the other end of the rendezvous belongs "
                        "to user %u, not to us (%u)",
                        other.uid, geteuid());
    return RDL_OK;
}

rdl_status rdl_hello_check(const rdl_hello *hello)
{
    if (hello->magic != RDL_MAGIC)
        return rdl_fail(RDL_FORMAT, "a hello with magic %016" PRIx64,
                        hello->magic);
    if (memchr(hello->version, 0, sizeof hello->version) == NULL)
        return rdl_fail(RDL_FORMAT, "a hello whose version does not end");
    return RDL_OK;
}

rdl_status rdl_answer_check(const rdl_answer *answer)
{
    if (answer->magic != RDL_MAGIC || answer->status > RDL_BUG ||
        answer->status == RDL_AGAIN ||
        memchr(answer->text, 0, sizeof answer->text) == NULL)
        return rdl_fail(RDL_FORMAT, "what answers at the rendezvous is no "
                                    "raddle of this version");
    return RDL_OK;
}
