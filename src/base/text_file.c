/* Reading the kernel's small files. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/text_file.h"

#include "base/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

bool rdl_is_shortage(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM;
}

static size_t read_all(int fd, char *to, size_t bytes)
{
    size_t have = 0;

    while (have < bytes) {
        ssize_t got = read(fd, to + have, bytes - have);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        have += (size_t)got;
    }
    return have;
}

rdl_status rdl_read_text(char *text, size_t bytes, const char *root,
                         const char *format, ...)
{
    char path[RDL_PATH_MOST];
    size_t head = strlen(root);
    va_list args;
    int length;
    int fd;

    text[0] = 0;
    if (head >= sizeof path)
        return RDL_OK;
    memcpy(path, root, head);
    va_start(args, format);
    length = vsnprintf(path + head, sizeof path - head, format, args);
    va_end(args);
    if (length < 0 || (size_t)length >= sizeof path - head)
        return RDL_OK;
    fd = rdl_fault_os() ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return rdl_is_shortage(errno)
                   ? rdl_fail_errno(errno, "%s cannot be opened", path)
                   : RDL_OK;
    text[read_all(fd, text, bytes - 1)] = 0;
    close(fd);
    return RDL_OK;
}

const char *rdl_parse_number(const char *text, uint64_t *out)
{
    uint64_t number = 0;

    while (*text == ' ' || *text == '\t')
        text++;
    if (*text < '0' || *text > '9')
        return NULL;
    for (; *text >= '0' && *text <= '9'; text++) {
        uint64_t digit = (uint64_t)(*text - '0');

        if (number > (UINT64_MAX - digit) / 10)
            return NULL;
        number = number * 10 + digit;
    }
    *out = number;
    return text;
}
