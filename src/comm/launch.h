/* A job as the launcher's calls see it: its ranks' seats, and a roster for each of
 * its lives. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_COMM_LAUNCH_H
#define RDL_COMM_LAUNCH_H

#include "base/roster.h"

#include <raddle/launch.h>

/* A rank's program may open a world, close it, and open another: each is a life,
 * with an arena of its own. */
typedef struct rdl_life {
    rdl_roster roster;
    int *watches; /* a pidfd for each member that joined; -1 */
    struct rdl_life *next;
    int number;
} rdl_life;

typedef struct rdl_seat {
    int ours;   /* the launcher's end of the rank's socket; -1: closed */
    int theirs; /* the rank's; -1: given away */
    int lives;  /* how many its processes have asked for */
    rdl_member member;
    rdl_life *present;       /* the newest it was admitted to */
    char reason[RDL_REASON]; /* why it gave up, for member */
    char ended[sizeof((rdl_obituary *)NULL)->text]; /* how; "" while it runs */
} rdl_seat;

struct rdl_job {
    int size;
    int poll_fd;
    rdl_life *lives;
    rdl_seat *seats;
};

#endif
