/* The processes below this one, as /proc shows them: who they are, and how to
 * be rid of all of them.
 *
 * The caller is a child subreaper, so whoever loses its parent becomes its
 * direct child; killing and reaping direct children until there is none leaves
 * nothing, however deep it was or whatever session it moved to. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_CLI_CHILDREN_H
#define RDL_CLI_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct pid_list {
    pid_t *pid;
    size_t count;
    size_t room;
} pid_list;

void pid_list_free(pid_list *list);

/* Fills list (zero before) with the direct children, zombies included. False if
 * they cannot be told: no /proc, or no memory. Free it either way. */
bool children_list(pid_list *list);

/* Fills list (zero before) with all processes below process of. */
bool descendants_list(pid_t of, pid_list *list);

/* Sends SIGKILL to each direct child that is not in except (NULL: none).
 * Returns how many there were, zombies included; -1 if they cannot be told. */
int children_kill(const pid_list *except);

/* Sends the signal to every process below this one; with outside_group only to
 * those of other process groups. What is started meanwhile may be missed. */
void descendants_signal(int number, bool outside_group);

#endif
