/* A rank's place: who it is, how many there are, and where they meet; from the
 * options of rdl_world_open or from the environment of a launcher. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BASE_PLACE_H
#define RDL_BASE_PLACE_H

#include "base/isa.h"
#include "base/patience.h"
#include "base/status.h"

#include <raddle/world.h>
#include <stdint.h>

#define RDL_PLACE_PATH 108 /* of sockaddr_un, the 0 included */

typedef struct rdl_place {
    int rank;
    int size;
    int fd;        /* the launcher's socket, not ours to close; -1: none */
    uint64_t job;  /* hash of all that names the job */
    char name[96]; /* the abstract socket's, without its leading 0 */
    char path[RDL_PLACE_PATH]; /* a socket's instead; "": none */
    int64_t start_timeout_ms;
    int64_t timeout_ms;
    rdl_check check; /* never RDL_CHECK_DEFAULT */
    rdl_isa isa;     /* of the arithmetic; one that runs */
    rdl_patience wait;
    size_t staging_bytes; /* of a host that the world makes; 0: not said */
} rdl_place;

/* How the environment is asked: getenv, or a test's own. */
typedef const char *(*rdl_environment)(const char *name);

/* As RADDLE_CHECK says it: "1", "strict", "0". Static. */
const char *rdl_check_name(rdl_check check);

/* options may be NULL. RDL_INVALID, RDL_UNSUPPORTED. */
rdl_status rdl_place_read(const rdl_world_options *options,
                          rdl_environment environment, rdl_place *out);

#endif
