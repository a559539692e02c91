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

/* Sets the sentence and returns status. Arguments may point into the present
 * sentence. */
rdl_status rdl_fail(rdl_status status, const char *format, ...)
    RDL_PRINTF(2, 3);

/* As rdl_fail, with ": Text of error (NAME)" behind it; RDL_SYSTEM but for
 * ENOMEM, which is RDL_NO_MEMORY. */
rdl_status rdl_fail_errno(int error, const char *format, ...) RDL_PRINTF(2, 3);

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
