/* Growing by doubling. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_LEAST 64

static bool make_room(text *t, size_t more)
{
    size_t room = t->room > 0 ? t->room : ROOM_LEAST;
    char *data;

    while (room < t->used + more + 1)
        room *= 2;
    if (room == t->room)
        return true;
    data = realloc(t->data, room);
    if (data == NULL)
        return false;
    t->data = data;
    t->room = room;
    return true;
}

bool text_add(text *t, const char *bytes, size_t count)
{
    if (!make_room(t, count))
        return false;
    if (count > 0)
        memcpy(t->data + t->used, bytes, count);
    t->used += count;
    t->data[t->used] = '\0';
    return true;
}

bool text_print(text *t, const char *format, ...)
{
    va_list args, again;
    int bytes;

    va_start(args, format);
    va_copy(again, args);
    bytes = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (bytes >= 0 && make_room(t, (size_t)bytes)) {
        vsnprintf(t->data + t->used, t->room - t->used, format, again);
        t->used += (size_t)bytes;
    } else {
        bytes = -1;
    }
    va_end(again);
    return bytes >= 0;
}

void text_free(text *t)
{
    free(t->data);
    *t = (text){ .data = NULL };
}
