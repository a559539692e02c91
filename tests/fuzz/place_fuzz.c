/* Environments: NAME=value, each ended by a 0, as a program is given them. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/place.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(condition)                                                        \
    ((condition) ? (void)0 : (fprintf(stderr, "%s\n", #condition), abort()))

/* The input of this run, with a 0 behind it. */
static char *text;
static size_t text_bytes;

static const char *look_up(const char *name)
{
    size_t n = strlen(name);

    for (size_t at = 0; at < text_bytes; at += strlen(text + at) + 1)
        if (strncmp(text + at, name, n) == 0 && text[at + n] == '=')
            return text + at + n + 1;
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    rdl_place place;
    rdl_status st;

    text = malloc(bytes + 1);
    MUST(text != NULL);
    memcpy(text, data, bytes);
    text[bytes] = 0;
    text_bytes = bytes;
    st = rdl_place_read(NULL, look_up, &place);
    if (st == RDL_OK) {
        MUST(place.size >= 1 && place.size <= RDL_MAX_RANKS);
        MUST(place.rank >= 0 && place.rank < place.size);
        MUST(place.start_timeout_ms > 0 && place.timeout_ms > 0);
        MUST(place.fd >= -1);
        MUST(rdl_check_name(place.check)[0] != '?');
        MUST(place.wait.spin >= 0 && place.wait.yields >= 0);
        MUST(place.staging_bytes == 0 ||
             (place.staging_bytes >= RDL_STAGING_LEAST &&
              place.staging_bytes <= RDL_STAGING_MOST));
        MUST(strlen(place.name) < sizeof place.name);
    } else {
        MUST(st == RDL_INVALID || st == RDL_UNSUPPORTED);
        MUST(rdl_error_detail()[0] != 0);
    }
    free(text);
    return 0;
}
