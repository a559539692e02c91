/* Finding the groups: /proc/self/cgroup says which they are, and
 * /proc/self/mountinfo where they can be seen. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/cgroup.h"

#include "base/fault.h"
#include "base/text_file.h"

#include <errno.h>
#include <string.h>

/* The longest line that is looked at: of those about control groups each holds
 * two paths at most. */
#define LINE_MOST (2 * RDL_PATH_MOST)

/* The group of this process in one hierarchy. */
typedef struct place {
    char path[RDL_PATH_MOST];   /* as in /proc/self/cgroup; "": there is none */
    char folder[RDL_PATH_MOST]; /* where it can be seen; "": nowhere so far */
    size_t top;  /* the bytes of folder that are the mount point */
    bool inside; /* path is in what is mounted there */
} place;

typedef struct search {
    const char *controller;
    place places[2]; /* [version - 1] */
} search;

typedef void (*line_reader)(search *s, char *line);

static rdl_status each_line(search *s, const char *root, const char *name,
                            line_reader reader)
{
    char line[LINE_MOST];
    bool whole = true; /* line begins where a line of the file does */
    FILE *file;

    snprintf(line, sizeof line, "%s%s", root, name);
    file = rdl_fault_os() ? NULL : fopen(line, "re");
    if (file == NULL)
        return rdl_is_shortage(errno)
                   ? rdl_fail_errno(errno, "%s%s cannot be opened", root, name)
                   : RDL_OK;
    while (fgets(line, sizeof line, file) != NULL) {
        char *end = strchr(line, '\n');

        if (end != NULL)
            *end = 0;
        if (whole && end != NULL)
            reader(s, line);
        whole = end != NULL;
    }
    fclose(file);
    return RDL_OK;
}

/* Whether word is in list, whose words have commas between them. */
static bool has_word(const char *list, const char *word)
{
    size_t length = strlen(word);

    for (;;) {
        size_t next = strcspn(list, ",");

        if (next == length && memcmp(list, word, length) == 0)
            return true;
        if (list[next] == 0)
            return false;
        list += next + 1;
    }
}

static void copy_path(char to[RDL_PATH_MOST], const char *path)
{
    size_t length = strlen(path);

    if (length < RDL_PATH_MOST)
        memcpy(to, path, length + 1);
}

/* "4:cpu,cpuacct:/a/b" for version 1, "0::/a/b" for version 2. */
static void read_path(search *s, char *line)
{
    const char *number = strsep(&line, ":");
    const char *controllers = strsep(&line, ":");

    if (line == NULL)
        return;
    if (has_word(controllers, s->controller))
        copy_path(s->places[0].path, line);
    else if (strcmp(number, "0") == 0 && controllers[0] == 0)
        copy_path(s->places[1].path, line);
}

static bool is_octal(const char *digits)
{
    return digits[0] >= '0' && digits[0] <= '3' && digits[1] >= '0' &&
           digits[1] <= '7' && digits[2] >= '0' && digits[2] <= '7';
}

/* The kernel writes a space as \040, and so on. */
static void unescape(char *text)
{
    char *to = text;

    while (*text != 0) {
        if (text[0] == '\\' && is_octal(text + 1)) {
            *to++ = (char)((text[1] - '0') * 64 + (text[2] - '0') * 8 +
                           (text[3] - '0'));
            text += 4;
        } else {
            *to++ = *text++;
        }
    }
    *to = 0;
}

static bool goes_up(const char *path)
{
    const char *dots = strstr(path, "/..");

    while (dots != NULL && dots[3] != '/' && dots[3] != 0)
        dots = strstr(dots + 1, "/..");
    return dots != NULL;
}

/* What is left of path below mounted, the part of the tree that a mount shows;
 * NULL when path is elsewhere. */
static const char *path_below(const char *path, const char *mounted)
{
    size_t length = strlen(mounted);

    if (length == 1)
        length = 0; /* "/": all of it */
    if (goes_up(path) || strncmp(path, mounted, length) != 0)
        return NULL;
    path += length;
    if (path[0] != '/' && path[0] != 0)
        return NULL;
    return path[0] == '/' && path[1] == 0 ? "" : path;
}

/* The first mount that shows our group is kept, else the first of all. */
static void add_mount(place *p, const char *mounted, const char *point)
{
    const char *below = path_below(p->path, mounted);
    int length;

    if (p->path[0] == 0 || p->inside || (p->folder[0] != 0 && below == NULL))
        return;
    length = snprintf(p->folder, sizeof p->folder, "%s%s", point,
                      below == NULL ? "" : below);
    if (length < 0 || (size_t)length >= sizeof p->folder) {
        p->folder[0] = 0;
        return;
    }
    p->top = strlen(point);
    p->inside = below != NULL;
}

/* "32 31 0:29 MOUNTED POINT rw,relatime shared:4 - cgroup SOURCE rw,cpu". */
static void read_mount(search *s, char *line)
{
    char *fields[5];
    char *tail;
    const char *type;

    for (int i = 0; i < 5; i++) {
        fields[i] = strsep(&line, " ");
        if (line == NULL)
            return;
    }
    tail = strstr(line, " - ");
    if (tail == NULL)
        return;
    tail += 3;
    type = strsep(&tail, " ");
    (void)strsep(&tail, " ");
    if (tail == NULL)
        return;
    unescape(fields[3]);
    unescape(fields[4]);
    if (strcmp(type, "cgroup2") == 0)
        add_mount(&s->places[1], fields[3], fields[4]);
    else if (strcmp(type, "cgroup") == 0 && has_word(tail, s->controller))
        add_mount(&s->places[0], fields[3], fields[4]);
}

static rdl_status walk_up(place *p, rdl_cgroup group, rdl_cgroup_visit visit,
                          void *arg)
{
    size_t length = strlen(p->folder);

    group.folder = p->folder;
    while (length != 0) {
        RDL_TRY(visit(&group, arg));
        if (length <= p->top)
            break;
        while (length > p->top && p->folder[length - 1] != '/')
            length--;
        while (length > p->top && p->folder[length - 1] == '/')
            length--;
        p->folder[length] = 0;
    }
    return RDL_OK;
}

rdl_status rdl_cgroup_walk(const char *root, const char *controller,
                           rdl_cgroup_visit visit, void *arg)
{
    search s = { .controller = controller };

    RDL_TRY(each_line(&s, root, "/proc/self/cgroup", read_path));
    RDL_TRY(each_line(&s, root, "/proc/self/mountinfo", read_mount));
    for (int i = 0; i < 2; i++) {
        rdl_cgroup group = { .version = i + 1, .root = root };

        RDL_TRY(walk_up(&s.places[i], group, visit, arg));
    }
    return RDL_OK;
}
