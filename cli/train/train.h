/* `raddle train`. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_CLI_TRAIN_TRAIN_H
#define RDL_CLI_TRAIN_TRAIN_H

#include "command.h"

/* Who says the sentences of all that belongs to this command. */
#define TRAIN "raddle train"

int train_command(const command *self, int argc, char **argv);
int train_show_help(void);

#endif
