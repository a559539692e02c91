/* Failing with a sentence: what every function that can fail ends with.
 *
 * The sentence is one buffer for each thread (an exception to "no mutable
 * globals": it is per thread, so two ranks never share it). */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BASE_STATUS_H
#define RDL_BASE_STATUS_H

#include <raddle/status.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* Longest sentence, its end included; longer ones are cut. */
#define RDL_SENTENCE 1024

#define RDL_PRINTF(at, first) __attribute__((format(printf, at, first)))

/* rdl_fail(status, format, ...) sets the sentence and is status. The arguments may
 * point into the present sentence. It is a macro so that compilers see what comes
 * back. */
#define rdl_fail(status, ...) (rdl_say(__VA_ARGS__), (rdl_status)(status))

/* As rdl_fail, with ": Text of error (NAME)" behind the sentence; RDL_SYSTEM but
 * for ENOMEM, which is RDL_NO_MEMORY. */
#define rdl_fail_errno(error, ...)                                             \
    (rdl_say_errno(error, __VA_ARGS__) ? RDL_NO_MEMORY : RDL_SYSTEM)

/* The sentence alone. */
void rdl_say(const char *format, ...) RDL_PRINTF(1, 2);

/* Returns whether it was ENOMEM. */
bool rdl_say_errno(int error, const char *format, ...) RDL_PRINTF(2, 3);

#define RDL_TRY(call)                                                          \
    do {                                                                       \
        rdl_status rdl_try_ = (call);                                          \
        if (rdl_try_ != RDL_OK)                                                \
            return rdl_try_;                                                   \
    } while (0)

/* A state only a bug of ours can reach. */
#define rdl_assert(condition)                                                  \
    ((condition) ? (void)0 : rdl_assert_failed(#condition, __FILE__, __LINE__))
_Noreturn void rdl_assert_failed(const char *what, const char *file, int line);

#endif
