/* Texts that records name: call sites and streams, each once in the slice. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_COMM_TEXTS_H
#define RDL_COMM_TEXTS_H

#include "base/map.h"
#include "base/slice.h"

#include <pthread.h>

#define RDL_TEXTS_MOST 4096  /* distinct ones; more are not recorded */
#define RDL_TEXT_LONGEST 191 /* bytes; the end of a longer one */
#define RDL_SITES_CACHED 256

/* From an address to its text's offset: key, offset, key again. An address keeps
 * its text, so an entry that is read while it changes is a miss, never a wrong
 * answer. */
typedef struct rdl_site_entry {
    _Atomic uintptr_t address;
    _Atomic uint32_t offset;
} rdl_site_entry;

typedef struct rdl_texts {
    rdl_shelf *shelf;     /* NULL: nothing is kept */
    pthread_mutex_t lock; /* protects known */
    rdl_map known;        /* hash of the text -> offset */
    rdl_site_entry sites[RDL_SITES_CACHED];
} rdl_texts;

void rdl_texts_init(rdl_texts *texts, rdl_shelf *shelf);
void rdl_texts_fini(rdl_texts *texts);

/* Its offset in the slice; 0: none, or no room. */
uint32_t rdl_texts_put(rdl_texts *texts, const char *text);

/* Where the program makes a call: "train.c:120", a text that stays as it is while
 * the world lives. NULL: the call returns to address, whose module and offset are
 * the text. Neither: it is not known. */
typedef struct rdl_call_site {
    const char *text;
    const void *address;
} rdl_call_site;

/* Of a public function: the text that it was given, or whom it returns to. */
#define RDL_CALL_SITE(text)                                                    \
    ((rdl_call_site){ (text), __builtin_return_address(0) })

uint32_t rdl_texts_site(rdl_texts *texts, rdl_call_site site);

/* The same with who makes the call in parentheses: "fsdp.c:210 (fsdp.gather w1)". A
 * caller's text may change from call to call, so it is read; NULL: there is none. */
uint32_t rdl_texts_site_of(rdl_texts *texts, rdl_call_site site,
                           const char *caller);

#endif
