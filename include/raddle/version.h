/* The version of the library: of this header, and of what is linked.
 *
 * Before 1.0 there is no binary promise: launcher, library and ranks compare a
 * hash of the shared layout when they meet and refuse each other with a
 * sentence if it differs. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RADDLE_VERSION_H
#define RADDLE_VERSION_H

#include <raddle/status.h>

#define RDL_VERSION_MAJOR 0
#define RDL_VERSION_MINOR 1
#define RDL_VERSION_PATCH 0
#define RDL_VERSION "0.1.0"

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the linked library, "0.1.0". Static. */
RDL_API const char *rdl_version(void);

#ifdef __cplusplus
}
#endif
#endif
