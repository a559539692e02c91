/* Children and descendants, read from /proc. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "children.h"

#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

/* One line of the process table. */
typedef struct process {
    pid_t pid;
    pid_t parent;
    pid_t group;
    unsigned long long start; /* tells it from a later one of the same number */
    bool below;               /* us */
} process;

typedef struct process_table {
    process *entry;
    size_t count;
    size_t room;
} process_table;

/* Room for one more in an array that grows. */
static void *grow(void *array, size_t count, size_t *room, size_t bytes)
{
    void *larger;

    if (count < *room)
        return array;
    larger = realloc(array, (*room * 2 + 64) * bytes);
    if (larger != NULL)
        *room = *room * 2 + 64;
    return larger;
}

static bool pid_list_add(pid_list *list, pid_t pid)
{
    pid_t *larger = grow(list->pid, list->count, &list->room, sizeof pid);

    if (larger == NULL)
        return false;
    list->pid = larger;
    list->pid[list->count++] = pid;
    return true;
}

void pid_list_free(pid_list *list)
{
    free(list->pid);
    *list = (pid_list){ 0 };
}

static bool pid_list_has(const pid_list *list, pid_t pid)
{
    if (list != NULL)
        for (size_t i = 0; i < list->count; i++)
            if (list->pid[i] == pid)
                return true;
    return false;
}

/* The command's name in the middle may hold anything, ')' included. */
static bool read_process(const char *pid, process *out)
{
    char path[64], line[1024];
    FILE *file;
    size_t bytes;
    const char *after;

    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    file = fopen(path, "re");
    if (file == NULL)
        return false;
    bytes = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[bytes] = '\0';
    after = strrchr(line, ')');
    *out = (process){ .pid = (pid_t)atol(pid) };
    return after != NULL &&
           sscanf(after,
                  ") %*c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d "
                  "%*d %*d %*d %*d %llu",
                  &out->parent, &out->group, &out->start) == 3;
}

static bool process_table_add(process_table *table, const char *pid)
{
    process *larger =
        grow(table->entry, table->count, &table->room, sizeof *table->entry);

    if (larger == NULL)
        return false;
    table->entry = larger;
    /* One that cannot be read has ended meanwhile. */
    if (read_process(pid, &table->entry[table->count]))
        table->count++;
    return true;
}

static bool process_table_read(process_table *table)
{
    DIR *folder = opendir("/proc");
    const struct dirent *d;
    bool complete = folder != NULL;

    while (complete && (d = readdir(folder)) != NULL)
        if (isdigit((unsigned char)d->d_name[0]))
            complete = process_table_add(table, d->d_name);
    if (folder != NULL)
        closedir(folder);
    return complete && table->count > 0;
}

/* For kernels that do not list children. */
static bool children_by_parent(pid_list *list)
{
    process_table table = { 0 };
    pid_t self = getpid();
    bool complete = process_table_read(&table);

    for (size_t i = 0; complete && i < table.count; i++)
        if (table.entry[i].parent == self)
            complete = pid_list_add(list, table.entry[i].pid);
    free(table.entry);
    return complete;
}

/* Orphans may be given to any thread of ours. We alone reap, so no entry goes
 * while the list is read, and what is read is complete. */
static bool children_of_thread(pid_list *list, const char *thread)
{
    char path[64];
    FILE *file;
    int pid;
    bool complete = true;

    snprintf(path, sizeof path, "/proc/self/task/%.20s/children", thread);
    file = fopen(path, "re");
    if (file == NULL)
        return false;
    while (complete && fscanf(file, "%d", &pid) == 1)
        complete = pid_list_add(list, pid);
    fclose(file);
    return complete;
}

bool children_list(pid_list *list)
{
    DIR *threads = opendir("/proc/self/task");
    const struct dirent *d;
    bool complete = threads != NULL;

    while (complete && (d = readdir(threads)) != NULL)
        if (isdigit((unsigned char)d->d_name[0]))
            complete = children_of_thread(list, d->d_name);
    if (threads != NULL)
        closedir(threads);
    if (complete)
        return true;
    list->count = 0;
    return children_by_parent(list);
}

int children_kill(const pid_list *except)
{
    pid_list list = { 0 };
    int count = 0;

    if (!children_list(&list))
        count = -1;
    for (size_t i = 0; count >= 0 && i < list.count; i++)
        if (!pid_list_has(except, list.pid[i])) {
            kill(list.pid[i], SIGKILL);
            count++;
        }
    pid_list_free(&list);
    return count;
}

/* Parents may stand anywhere in the table, so it is gone through until nobody
 * new is found. */
static void mark_descendants(process_table *table, pid_t of)
{
    pid_list below = { 0 };
    bool found = pid_list_add(&below, of);

    while (found) {
        found = false;
        for (size_t i = 0; i < table->count; i++) {
            process *p = &table->entry[i];

            if (!p->below && pid_list_has(&below, p->parent))
                found |= p->below = pid_list_add(&below, p->pid);
        }
    }
    pid_list_free(&below);
}

bool descendants_list(pid_t of, pid_list *list)
{
    process_table table = { 0 };
    bool complete = process_table_read(&table);

    if (complete)
        mark_descendants(&table, of);
    for (size_t i = 0; complete && i < table.count; i++)
        if (table.entry[i].below)
            complete = pid_list_add(list, table.entry[i].pid);
    free(table.entry);
    return complete;
}

/* The number may belong to another process by now, unless it is our child. So:
 * take hold of whoever has it, and see whether it is still the same. */
static void signal_same(const process *p, int number)
{
    int fd = pidfd_open(p->pid, 0);
    char pid[24];
    process now;

    if (fd < 0)
        return;
    snprintf(pid, sizeof pid, "%d", (int)p->pid);
    if (read_process(pid, &now) && now.start == p->start)
        pidfd_send_signal(fd, number, NULL, 0);
    close(fd);
}

void descendants_signal(int number, bool outside_group)
{
    process_table table = { 0 };
    pid_t group = getpgrp();

    if (process_table_read(&table)) {
        mark_descendants(&table, getpid());
        for (size_t i = 0; i < table.count; i++)
            if (table.entry[i].below &&
                !(outside_group && table.entry[i].group == group))
                signal_same(&table.entry[i], number);
    }
    free(table.entry);
}
