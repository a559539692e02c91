/* Telling a trace of a collective that begins. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_COMM_TRACE_H
#define RDL_COMM_TRACE_H

#include "comm/lane.h"

#include <raddle/collective.h>
#include <raddle/trace.h>
#include <stddef.h>

/* trace is the world's, and not NULL. caller may be NULL. */
void rdl_trace_call(const rdl_trace *trace, const rdl_lane *lane,
                    const char *operation, rdl_dtype dtype, size_t count,
                    const char *caller, const char *stream);

#endif
