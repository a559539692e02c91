/* Messages with a descriptor. */
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
            sent = sendmsg(socket, &header, MSG_NOSIGNAL);
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

static int take_descriptor(struct msghdr *header)
{
    int fd = -1;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c != NULL;
         c = CMSG_NXTHDR(header, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
            c->cmsg_len >= CMSG_LEN(sizeof fd))
            memcpy(&fd, CMSG_DATA(c), sizeof fd);
    return fd;
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
    ssize_t got = -1;

    RDL_TRY(wait_readable(socket, deadline));
    if (!rdl_fault_os())
        do
            got = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
        while (got < 0 && errno == EINTR);
    if (got == 0 || (got < 0 && errno == ECONNRESET))
        return rdl_fail(RDL_PEER, "the other end of the rendezvous is closed");
    if (got < 0)
        return rdl_fail_errno(errno, "cannot receive from the rendezvous");
    *fd = take_descriptor(&header);
    if (got == (ssize_t)bytes && (header.msg_flags & MSG_TRUNC) == 0) {
        if ((header.msg_flags & MSG_CTRUNC) == 0)
            return RDL_OK;
        if (*fd >= 0)
            close(*fd);
        /* The kernel could not give us the descriptor: our limit is met. */
        return rdl_fail_errno(EMFILE, "cannot take the arena's descriptor");
    }
    if (*fd >= 0)
        close(*fd);
    return rdl_fail(RDL_FORMAT,
                    "a message of %zd bytes where %zu were expected: the other "
                    "end is no raddle of this version",
                    got, bytes);
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
        memchr(answer->text, 0, sizeof answer->text) == NULL)
        return rdl_fail(RDL_FORMAT, "what answers at the rendezvous is no "
                                    "raddle of this version");
    return RDL_OK;
}
