/* Ranks with a world each, for tests: as threads that share one host object, so
 * that a race detector sees them, or as processes.
 *
 * The body gets an open world and must leave it open; it is closed after. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_SUPPORT_WORLDS_H
#define RDL_SUPPORT_WORLDS_H

#include "support/test.h"

#include <raddle/collective.h>
#include <raddle/group.h>
#include <raddle/host.h>
#include <raddle/world.h>

typedef void (*rdl_world_body)(rdl_world *world, void *arg);

/* How the ranks of a test are made; zero is the default of every field. */
typedef struct rdl_test_job {
    int size;
    bool processes;
    size_t staging_bytes;
    bool last_is_short; /* the last rank has the least staging, on a host of its own */
    int groups;
    int records;
    int64_t timeout_ms; /* 0: 20 s, so that a hang fails the test with a sentence */
    rdl_check check;
    bool keeps_failures; /* close may report a failure: the body expects it */
} rdl_test_job;

void rdl_test_worlds(const rdl_test_job *job, rdl_world_body body, void *arg);

/* 10^rank */
int64_t rdl_digit(int rank);

/* The sum of everyone's digit over the group, which must be expected. */
void rdl_check_digits(rdl_world *world, rdl_group group, int64_t expected);

#endif
