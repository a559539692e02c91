/* Statuses: what a call answers, named by what the caller can do about it, and
 * the sentence that goes with each failure.
 *
 * Threads: the sentence belongs to the calling thread; every call that fails
 * replaces it. Nothing here blocks, allocates or fails. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RADDLE_STATUS_H
#define RADDLE_STATUS_H

#if defined(__GNUC__)
#define RDL_API __attribute__((visibility("default")))
#define RDL_CALL RDL_API __attribute__((warn_unused_result))
#else
#define RDL_API
#define RDL_CALL RDL_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define RDL_STATUS_MAP(X)                                                      \
    X(OK, "success")                                                           \
    X(AGAIN, "not finished yet; call again")                                   \
    X(INVALID, "an argument is wrong; nothing was changed")                    \
    X(STATE, "not allowed in the object's present state")                      \
    X(MISMATCH, "the ranks did not make the same call")                        \
    X(UNSUPPORTED, "this build, transport or machine cannot do it")            \
    X(NO_MEMORY, "out of memory")                                              \
    X(TIMEOUT, "the deadline passed")                                          \
    X(PEER, "another rank failed or left")                                     \
    X(REVOKED, "the group was revoked")                                        \
    X(FORMAT, "data read from outside is not well formed")                     \
    X(SYSTEM, "the operating system reported an error")                        \
    X(BUG, "raddle broke one of its own rules; please report it")

typedef enum rdl_status {
#define X(name, text) RDL_##name,
    RDL_STATUS_MAP(X)
#undef X
} rdl_status;

/* "RDL_TIMEOUT"; for a number that is no status "RDL_?". Never NULL; static. */
RDL_API const char *rdl_status_name(rdl_status status);

/* The text beside the name above, "the deadline passed". Never NULL; static. */
RDL_API const char *rdl_status_text(rdl_status status);

/* The sentence of the last call that failed on this thread, with the numbers in
 * it; "" before the first. Never NULL. Valid until the next raddle call on this
 * thread. */
RDL_API const char *rdl_error_detail(void);

#ifdef __cplusplus
}
#endif
#endif
