/* Worlds: one rank's place among all ranks of a job. A rank is this object and
 * never the process, so several ranks may live in one process, each on a thread
 * of its own.
 *
 * Threads: open and close a world from one thread at a time; everything else may
 * be called from any thread.
 * Ownership: the caller of rdl_world_open owns the world and closes it.
 * Fork: a forked child of a rank is no rank. Every call on its parent's world
 * answers RDL_STATE there; rdl_world_close frees the child's copy and tells the
 * peers nothing. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RADDLE_WORLD_H
#define RADDLE_WORLD_H

#include <raddle/host.h>
#include <raddle/status.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rdl_world rdl_world;
typedef struct rdl_stream rdl_stream; /* raddle/stream.h */

#define RDL_MAX_RANKS 1024

/* Whether the members of a group compare their calls, before anything moves. */
typedef enum rdl_check {
    RDL_CHECK_DEFAULT, /* RADDLE_CHECK in the environment; without it, ON */
    RDL_CHECK_ON,      /* each call is compared */
    RDL_CHECK_STRICT,  /* and none returns before all members were compared */
    RDL_CHECK_OFF /* calls that differ give wrong data, or wait to the limit */
} rdl_check;

/* Zero is the default of every field. */
typedef struct rdl_world_options {
    rdl_host *host;  /* NULL: a host of its own; kept until close */
    int rank;        /* 0..size-1; read only when size is not 0 */
    int size;        /* 1..RDL_MAX_RANKS; 0: read the environment */
    const char *job; /* ranks of one user and one job meet. NULL or "": those
                              of this host object; without one, "raddle". Read
                              only when size is not 0 */
    int64_t start_timeout_ms; /* until all ranks have joined; 0: 60,000, or
                              RADDLE_START_TIMEOUT in seconds */
    int64_t timeout_ms; /* for each operation; 0: 300,000, or RADDLE_TIMEOUT
                              in seconds */
    rdl_check check;    /* the same on all ranks */
    int works; /* that are done and nobody has asked for: so many results are
                  kept, 1 to 65,536; 0: 1,024 (raddle/work.h) */
} rdl_world_options;

/* Joins the job and waits until all ranks have joined. options may be NULL.
 *
 * With size 0 the place comes from the environment: RADDLE_FD, RADDLE_RANK and
 * RADDLE_WORLD_SIZE as `raddle run` sets them; else RANK and WORLD_SIZE as
 * torchrun sets them, with MASTER_ADDR, MASTER_PORT, TORCHELASTIC_RUN_ID,
 * TORCHELASTIC_RESTART_COUNT and RADDLE_JOB naming the job (all that are set
 * must be equal on its ranks) and LOCAL_WORLD_SIZE checked; else what mpirun or
 * srun set (raddle-environment(7)); else this is a world of one. A world of one opens no socket and maps no arena.
 *
 * RDL_INVALID: options or environment are wrong. RDL_MISMATCH: the ranks
 * disagree about size, rank, version or check. RDL_TIMEOUT: not all joined in time
 * ("3 of 4 joined, missing rank 3"). RDL_PEER: a rank left while starting.
 * RDL_UNSUPPORTED: ranks on more than one host. RDL_NO_MEMORY, RDL_SYSTEM,
 * RDL_FORMAT. On failure *out is untouched and nothing is left behind. */
RDL_CALL rdl_status rdl_world_open(const rdl_world_options *options,
                                   rdl_world **out);

/* Leaves the job and frees the world and its groups, always; NULL is allowed.
 * Does not wait for other ranks; one that still needs this rank gets RDL_PEER. Waits
 * for this rank's pending works and for its streams: their operations end by their
 * limits at the latest, functions on streams by themselves.
 * Returns RDL_OK, or the first failure of a stream or a group that no call has
 * reported. No other thread may be inside a call on this world. */
RDL_API rdl_status rdl_world_close(rdl_world *world);

/* Tells the others that this rank leaves, as rdl_world_close does, and neither waits nor
 * frees: for the end of a process whose other threads may be inside calls on this
 * world. These go on, as far as the others still take part. */
RDL_API void rdl_world_leave(rdl_world *world);

/* Says that this rank has failed: every wait for it, present and later, ends
 * with RDL_PEER and reason (NULL: none) on the other ranks. Later calls of this
 * rank end with RDL_STATE, and so does one under way that hears of it from the
 * others. Close the world after. */
RDL_API void rdl_world_abort(rdl_world *world, const char *reason);

/* This rank, and the number of ranks; -1 for NULL. */
RDL_API int rdl_world_rank(const rdl_world *world);
RDL_API int rdl_world_size(const rdl_world *world);

#ifdef __cplusplus
}
#endif
#endif
