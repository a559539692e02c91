/* Plain and streaming copies. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/copy.h"

#include <stdint.h>
#include <string.h>

#if defined(__SANITIZE_THREAD__)
#define PLAIN_ONLY
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PLAIN_ONLY
#endif
#endif

#define LINE 64

#if defined(__x86_64__) && !defined(PLAIN_ONLY)
#include <emmintrin.h>

/* to: on a line's border. */
static void stream_line(char *to, const char *from)
{
    for (int i = 0; i < LINE; i += (int)sizeof(__m128i)) {
        __m128i x = _mm_loadu_si128((const __m128i *)(const void *)(from + i));

        _mm_stream_si128((__m128i *)(void *)(to + i), x);
    }
}

/* Lines that are written in part would be read all the same: those are plain. */
static void stream(char *to, const char *from, size_t bytes)
{
    size_t head = -(uintptr_t)to % LINE;
    size_t at = head < bytes ? head : bytes;

    memcpy(to, from, at);
    for (; bytes - at >= LINE; at += LINE)
        stream_line(to + at, from + at);
    memcpy(to + at, from + at, bytes - at);
}

void rdl_copy_settle(void)
{
    _mm_sfence();
}
#else
static void stream(char *to, const char *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

void rdl_copy_settle(void)
{
}
#endif

void rdl_copy(void *to, const void *from, size_t bytes, bool streaming)
{
    if (bytes == 0)
        return;
    if (streaming)
        stream(to, from, bytes);
    else
        memcpy(to, from, bytes);
}
