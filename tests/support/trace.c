/* What a test may ask about what is left behind, and about its surroundings. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAMES_MOST 4096

static void append(rdl_test_names *names, const char *line)
{
    size_t used = strlen(names->text);
    size_t room = sizeof names->text - used;

    if (strlen(line) + sizeof "\n..." < room)
        sprintf(names->text + used, "%s\n", line);
    else if (used >= 4 && strcmp(names->text + used - 4, "...\n") != 0)
        snprintf(names->text + used, room, "...\n");
}

rdl_test_names rdl_test_list(const char *folder, const char *part)
{
    rdl_test_names names = { "" };
    struct dirent **entries;
    int n = scandir(folder, &entries, NULL, alphasort);

    for (int i = 0; i < n; i++) {
        const char *name = entries[i]->d_name;

        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
            strstr(name, part) != NULL)
            append(&names, name);
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
    return names;
}

const char *rdl_test_temp(void)
{
    const char *folder = getenv("TMPDIR");

    return folder != NULL && *folder != 0 ? folder : "/tmp";
}

static int count_entries(const char *folder)
{
    DIR *d = opendir(folder);
    int n = 0;

    CHECK(d != NULL);
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n - 2; /* . and .. */
}

int rdl_test_descriptors(void)
{
    return count_entries("/proc/self/fd") - 1; /* the folder's own */
}

int rdl_test_thread_count(void)
{
    return count_entries("/proc/self/task");
}

typedef struct process {
    int pid;
    int parent;
    char state;
    char name[64];
} process;

/* A process may end while we look; then there is none. */
static bool read_process(const char *pid, process *out)
{
    char path[300];
    FILE *f;
    int n;

    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    f = fopen(path, "r");
    if (f == NULL)
        return false;
    n = fscanf(f, "%d (%63[^)]) %c %d", &out->pid, out->name, &out->state,
               &out->parent);
    fclose(f);
    return n == 4;
}

static int read_processes(process *all, int most)
{
    DIR *d = opendir("/proc");
    struct dirent *e;
    int n = 0;

    CHECK(d != NULL);
    while (n < most && (e = readdir(d)) != NULL)
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9' &&
            read_process(e->d_name, &all[n]))
            n++;
    closedir(d);
    return n;
}

static void append_children(rdl_test_names *names, const process *all, int n,
                            int parent)
{
    char line[128];

    for (int i = 0; i < n; i++) {
        if (all[i].parent != parent)
            continue;
        snprintf(line, sizeof line, "%d %s %c", all[i].pid, all[i].name,
                 all[i].state);
        append(names, line);
        append_children(names, all, n, all[i].pid);
    }
}

rdl_test_names rdl_test_descendants(pid_t pid)
{
    rdl_test_names names = { "" };
    process *all = calloc(NAMES_MOST, sizeof *all);

    CHECK(all != NULL);
    append_children(&names, all, read_processes(all, NAMES_MOST), pid);
    free(all);
    return names;
}

bool rdl_test_soak(void)
{
    const char *soak = getenv("RADDLE_SOAK");

    return soak != NULL && strcmp(soak, "1") == 0;
}

bool rdl_test_emulated(void)
{
    return getenv("RADDLE_EMULATED") != NULL;
}

uint64_t rdl_test_seed(void)
{
    const char *seed = getenv("RADDLE_SEED");

    return seed != NULL ? strtoull(seed, NULL, 0) : 1;
}

/* A Weyl sequence through a mixing function of two multiplications. */
uint64_t rdl_test_random(uint64_t *state)
{
    uint64_t x = *state += 0x9E3779B97F4A7C15u;

    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}
