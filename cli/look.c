/* Two lines of /proc/PID/status. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "look.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static look look_of_letter(char letter)
{
    switch (letter) {
    case 'T':
    case 't':
        return LOOK_STOPPED;
    case 'Z':
    case 'X':
        return LOOK_GONE;
    default:
        return LOOK_RUNNING;
    }
}

look look_at(pid_t pid)
{
    char path[64], line[256], letter;
    look found = LOOK_RUNNING;
    int dumping;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    file = fopen(path, "re");
    if (file == NULL)
        return errno == ENOENT ? LOOK_GONE : LOOK_RUNNING;
    while (fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "State: %c", &letter) == 1)
            found = look_of_letter(letter);
        if (sscanf(line, "CoreDumping: %d", &dumping) == 1 && dumping != 0)
            found = LOOK_DUMPING;
    }
    fclose(file);
    return found;
}
