/* Looking through the process' modules. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/module.h"

#include "base/ranks.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define BUILD_BYTES 4 /* of the id: enough to tell builds apart */

typedef struct search {
    uintptr_t address;
    uintptr_t base;
    char name[128];
    unsigned char build[BUILD_BYTES];
    bool has_build;
} search;

static size_t aligned(size_t bytes)
{
    return (bytes + 3) & ~(size_t)3;
}

/* Through the notes of one segment, for the linker's build id. */
static void read_notes(search *s, const unsigned char *notes, size_t bytes)
{
    ElfW(Nhdr) note;
    size_t at = 0;

    while (at + sizeof note <= bytes) {
        size_t name = at + sizeof note, data;

        memcpy(&note, notes + at, sizeof note);
        data = name + aligned(note.n_namesz);
        if (data + note.n_descsz > bytes)
            return;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
            memcmp(notes + name, "GNU", 4) == 0 &&
            note.n_descsz >= sizeof s->build) {
            memcpy(s->build, notes + data, sizeof s->build);
            s->has_build = true;
        }
        at = data + aligned(note.n_descsz);
    }
}

static bool holds(const struct dl_phdr_info *module, uintptr_t address)
{
    for (int i = 0; i < module->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &module->dlpi_phdr[i];

        if (p->p_type == PT_LOAD &&
            address - (module->dlpi_addr + p->p_vaddr) < p->p_memsz)
            return true;
    }
    return false;
}

static int look_at(struct dl_phdr_info *module, size_t bytes, void *arg)
{
    search *s = arg;
    const char *name = module->dlpi_name;

    (void)bytes;
    if (!holds(module, s->address))
        return 0;
    s->base = module->dlpi_addr;
    /* The program itself comes without a name. */
    snprintf(s->name, sizeof s->name, "%s",
             name[0] != 0 ? name : program_invocation_name);
    for (int i = 0; i < module->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &module->dlpi_phdr[i];

        if (p->p_type == PT_NOTE)
            read_notes(s,
                       (const unsigned char *)(uintptr_t)(module->dlpi_addr +
                                                          p->p_vaddr),
                       p->p_memsz);
    }
    return 1;
}

void rdl_module_place(const void *address, char *buffer, size_t bytes)
{
    search s = { .address = (uintptr_t)address - 1 };
    rdl_text text = { buffer, bytes };
    const char *slash;

    if (dl_iterate_phdr(look_at, &s) == 0) {
        rdl_text_add(&text, "address %p", address);
        return;
    }
    slash = strrchr(s.name, '/');
    rdl_text_add(&text, "%s+0x%" PRIxPTR, slash ? slash + 1 : s.name,
                 s.address - s.base);
    if (s.has_build)
        rdl_text_add(&text, " [build %02x%02x%02x%02x]", s.build[0], s.build[1],
                     s.build[2], s.build[3]);
}
