/* A public call between its function and the runner: arguments as they came,
 * checked in one place. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_COMM_CALL_H
#define RDL_COMM_CALL_H

#include "comm/op.h"
#include "comm/world.h"

#include <raddle/collective.h>

/* Checks the arguments, takes the lane's turn, and runs to the end. */
rdl_status rdl_call_run(rdl_world *world, rdl_group group,
                        const rdl_arguments *arguments, const rdl_call *options,
                        rdl_call_site site);

/* Both forms of a public call that has a site (raddle/site.h), which are one but
 * for that: the function's name, its parameters, and an expression of them and of
 * `site` that is the answer. The name in parentheses is not the header's macro. */
#define RDL_PUBLIC_CALL(name, answer, ...)                                     \
    rdl_status name##_at(__VA_ARGS__, const char *site_text)                   \
    {                                                                          \
        rdl_call_site site = RDL_CALL_SITE(site_text);                         \
                                                                               \
        return answer;                                                         \
    }                                                                          \
    rdl_status(name)(__VA_ARGS__)                                              \
    {                                                                          \
        rdl_call_site site = RDL_CALL_SITE(NULL);                              \
                                                                               \
        return answer;                                                         \
    }

/* rdl_group_revoke, from that site. */
rdl_status rdl_call_revoke(rdl_world *world, rdl_group group,
                           rdl_call_site site);

/* Parts of it that others need too. */
rdl_status rdl_call_check_types(const rdl_arguments *arguments);
rdl_status rdl_call_timeout(const rdl_world *world, const rdl_call *options,
                            const char *name, int64_t *timeout_ms);

#endif
