/* Where ranks meet that no launcher has connected: an abstract name, which only
 * processes of one network namespace see, or a path in a folder that they share
 * (RADDLE_SOCKET). A path stays when its process is killed, so it is looked after:
 * who binds holds a lock on the folder, and replaces a socket that nobody answers. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BASE_MEETING_H
#define RDL_BASE_MEETING_H

#include "base/place.h"
#include "base/status.h"

#include <sys/socket.h>
#include <sys/un.h>

socklen_t rdl_meeting_address(const rdl_place *place,
                              struct sockaddr_un *address);

/* For sentences: the path, or the name. */
const char *rdl_meeting_text(const rdl_place *place);

/* Keeps others from binding there until *lock is closed; -1 for a name, which needs
 * none. RDL_AGAIN: another is at it. */
rdl_status rdl_meeting_lock(const rdl_place *place, int *lock);

/* Under the lock. A path is for this user alone (0600). RDL_AGAIN: somebody is
 * there. RDL_INVALID: something that is no socket is. */
rdl_status rdl_meeting_bind(const rdl_place *place, int socket);

/* Who has bound it, before the socket is closed. Nothing to do for a name. */
void rdl_meeting_remove(const rdl_place *place);

#endif
