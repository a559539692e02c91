/* The screen: when a rank has failed, what each rank is doing, what the library
 * says is wrong, and what to try. One for each job. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_CLI_SCREEN_H
#define RDL_CLI_SCREEN_H

#include "state.h"

/* Prints it, if it was not printed before and tells more than the last line of
 * the command will: there are several ranks and one has failed, or the user sent
 * SIGQUIT. */
void screen_show(keeper *k);

#endif
