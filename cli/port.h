/* Where ranks may meet over TCP by means of their own, as PyTorch's do: rank 0
 * listens at a port that all know. The library needs none of it. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_CLI_PORT_H
#define RDL_CLI_PORT_H

/* Sets MASTER_ADDR and MASTER_PORT for what this process starts from here on. What
 * the user has set stays. Else the port is a free one that nobody listens at: while
 * the descriptor that is returned is open, no other program is given it or can bind
 * it, but for one that asks for this very number with SO_REUSEADDR, as rank 0's
 * store does. -1: nothing is held, since the user has set a port, or since this
 * process may make no socket of TCP; then MASTER_PORT is not set. */
int port_offer(void);

#endif
