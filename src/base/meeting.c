/* Binding names and paths. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/meeting.h"

#include "base/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_path(const rdl_place *place)
{
    return place->path[0] != 0;
}

const char *rdl_meeting_text(const rdl_place *place)
{
    return is_path(place) ? place->path : place->name;
}

socklen_t rdl_meeting_address(const rdl_place *place,
                              struct sockaddr_un *address)
{
    const char *text = rdl_meeting_text(place);
    size_t n = strlen(text), at = is_path(place) ? 0 : 1;

    *address = (struct sockaddr_un){ .sun_family = AF_UNIX };
    memcpy(address->sun_path + at, text, n);
    /* A path is ended by a 0, an abstract name by its length. */
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);
}

rdl_status rdl_meeting_lock(const rdl_place *place, int *lock)
{
    char folder[sizeof place->path];
    rdl_status st;

    *lock = -1;
    if (!is_path(place))
        return RDL_OK;
    snprintf(folder, sizeof folder, "%s", place->path);
    strrchr(folder, '/')[1] = 0;
    if (!rdl_fault_os())
        *lock = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*lock < 0)
        return rdl_fail_errno(
            errno, "RADDLE_SOCKET='%s': cannot open its folder", place->path);
    if (!rdl_fault_os() && flock(*lock, LOCK_EX | LOCK_NB) == 0)
        return RDL_OK;
    st = errno == EWOULDBLOCK || errno == EINTR
             ? RDL_AGAIN
             : rdl_fail_errno(errno,
                              "RADDLE_SOCKET='%s': cannot lock its folder",
                              place->path);
    close(*lock);
    *lock = -1;
    return st;
}

/* Whether what is at the path is a socket of a process that has gone. RDL_AGAIN:
 * it is not. */
static rdl_status check_stale(const rdl_place *place)
{
    struct sockaddr_un address;
    socklen_t length = rdl_meeting_address(place, &address);
    struct stat is;
    int fd, error;

    if (lstat(place->path, &is) != 0)
        return errno == ENOENT
                   ? RDL_OK
                   : rdl_fail_errno(errno, "RADDLE_SOCKET='%s'", place->path);
    if (!S_ISSOCK(is.st_mode))
        return rdl_fail(RDL_INVALID,
                        "RADDLE_SOCKET='%s' is there already, and is no socket",
                        place->path);
    fd = rdl_fault_os()
             ? -1
             : socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return rdl_fail_errno(errno, "no socket for the rendezvous");
    error = connect(fd, (struct sockaddr *)&address, length) != 0 ? errno : 0;
    close(fd);
    return error == ECONNREFUSED ? RDL_OK : RDL_AGAIN;
}

/* The mode that the file gets is the socket's. */
static int bind_mine(const rdl_place *place, int socket)
{
    struct sockaddr_un address;
    socklen_t length = rdl_meeting_address(place, &address);

    if (rdl_fault_os() || (is_path(place) && fchmod(socket, 0600) != 0))
        return -1;
    return bind(socket, (struct sockaddr *)&address, length);
}

rdl_status rdl_meeting_bind(const rdl_place *place, int socket)
{
    if (bind_mine(place, socket) == 0)
        return RDL_OK;
    if (errno != EADDRINUSE)
        return rdl_fail_errno(errno, "cannot bind the rendezvous %s",
                              rdl_meeting_text(place));
    if (!is_path(place))
        return RDL_AGAIN;
    RDL_TRY(check_stale(place));
    if (unlink(place->path) != 0 && errno != ENOENT)
        return rdl_fail_errno(errno,
                              "RADDLE_SOCKET='%s' is left of a job that "
                              "has gone, and cannot be removed",
                              place->path);
    return bind_mine(place, socket) == 0
               ? RDL_OK
               : rdl_fail_errno(errno, "cannot bind the rendezvous %s",
                                place->path);
}

void rdl_meeting_remove(const rdl_place *place)
{
    if (is_path(place))
        unlink(place->path);
}
