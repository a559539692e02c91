/* Failing with a sentence, by public headers only. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LLAMA_ERROR_H
#define LLAMA_ERROR_H

#include "llama/llama.h"

/* Writes the sentence and answers status. The arguments may point into it. */
rdl_status llama_fail(llama_error *error, rdl_status status, const char *format,
                      ...) __attribute__((format(printf, 3, 4)));

/* Answers status; if it is a failure, the sentence becomes raddle's. */
rdl_status llama_pass_on(llama_error *error, rdl_status status);

#define LLAMA_TRY(call)                                                        \
    do {                                                                       \
        rdl_status llama_try_ = (call);                                        \
        if (llama_try_ != RDL_OK)                                              \
            return llama_try_;                                                 \
    } while (0)

/* As LLAMA_TRY, for a call of raddle's. Wants an `error` in scope. */
#define LLAMA_RADDLE(call) LLAMA_TRY(llama_pass_on(error, call))

#endif
