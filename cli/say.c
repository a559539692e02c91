/* Sentences on standard error, and words for how a process ended. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "say.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static size_t bytes_printed(int printed, size_t room)
{
    if (printed < 0)
        return 0;
    return (size_t)printed < room ? (size_t)printed : room - 1;
}

size_t say_into(char *text, const char *who, const char *format, va_list args)
{
    /* One byte less, for the newline. */
    size_t room = SAY_MOST - 1;
    size_t used = bytes_printed(snprintf(text, room, "%s: ", who), room);

    used += bytes_printed(vsnprintf(text + used, room - used, format, args),
                          room - used);
    for (size_t i = 0; i < used; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
            text[i] = '?';
    text[used] = '\n';
    return used + 1;
}

void say(const char *who, const char *format, ...)
{
    char text[SAY_MOST];
    va_list args;
    size_t bytes;

    va_start(args, format);
    bytes = say_into(text, who, format, args);
    va_end(args);
    /* There is nobody left to tell if this fails. */
    if (write(STDERR_FILENO, text, bytes) < 0)
        return;
}

const char *signal_text(int number)
{
    const char *text = sigdescr_np(number);

    return text != NULL ? text : "unknown signal";
}

void describe_ending(char *text, int wait_status)
{
    if (WIFSIGNALED(wait_status))
        snprintf(text, ENDING_MOST, "killed by signal %d (%s)",
                 WTERMSIG(wait_status), signal_text(WTERMSIG(wait_status)));
    else
        snprintf(text, ENDING_MOST, "exit status %d", WEXITSTATUS(wait_status));
}

int code_of_ending(int wait_status)
{
    if (WIFSIGNALED(wait_status))
        return 128 + WTERMSIG(wait_status);
    return WEXITSTATUS(wait_status);
}
