/* Keeping each text once. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/texts.h"

#include "comm/module.h"

#include <string.h>

void rdl_texts_init(rdl_texts *texts, rdl_shelf *shelf)
{
    texts->shelf = shelf;
    pthread_mutex_init(&texts->lock, NULL);
}

void rdl_texts_fini(rdl_texts *texts)
{
    if (texts->shelf == NULL)
        return;
    pthread_mutex_destroy(&texts->lock);
    rdl_map_fini(&texts->known);
}

static rdl_key key_of(const char *text, size_t bytes)
{
    return (rdl_key){ rdl_hash_bytes(3, text, bytes),
                      rdl_hash_bytes(4, text, bytes) | 2 };
}

/* Under the lock. */
static uint32_t put(rdl_texts *texts, const char *text, size_t bytes)
{
    rdl_key key = key_of(text, bytes);
    rdl_pair *known = rdl_map_get(&texts->known, key);
    uint32_t at;

    if (known != NULL)
        return (uint32_t)known->first;
    if (texts->known.live >= RDL_TEXTS_MOST)
        return 0;
    at = rdl_shelf_put_text(texts->shelf, text, bytes);
    /* Without memory for the map the text is there, but found by nobody else. */
    if (at != 0 && rdl_map_put(&texts->known, key, (rdl_pair){ at, 0 }) != RDL_OK)
        return at;
    return at;
}

uint32_t rdl_texts_put(rdl_texts *texts, const char *text)
{
    size_t bytes;
    uint32_t at;

    if (texts->shelf == NULL || text == NULL || text[0] == 0)
        return 0;
    bytes = strlen(text);
    if (bytes > RDL_TEXT_LONGEST) {
        text += bytes - RDL_TEXT_LONGEST;
        bytes = RDL_TEXT_LONGEST;
    }
    pthread_mutex_lock(&texts->lock);
    at = put(texts, text, bytes);
    pthread_mutex_unlock(&texts->lock);
    return at;
}

static uint32_t first_sight(rdl_texts *texts, rdl_site_entry *entry,
                            const char *site, const void *address)
{
    char place[RDL_TEXT_LONGEST + 1];
    uint32_t at;

    if (site == NULL)
        rdl_module_place(address, place, sizeof place);
    at = rdl_texts_put(texts, site ? site : place);
    pthread_mutex_lock(&texts->lock); /* one writer at a time */
    atomic_store_explicit(&entry->address, 0, memory_order_relaxed);
    atomic_store_explicit(&entry->offset, at, memory_order_release);
    atomic_store_explicit(&entry->address,
                          (uintptr_t)(site ? (const void *)site : address),
                          memory_order_release);
    pthread_mutex_unlock(&texts->lock);
    return at;
}

uint32_t rdl_texts_site(rdl_texts *texts, const char *site, const void *address)
{
    uintptr_t key = (uintptr_t)(site ? (const void *)site : address);
    rdl_site_entry *entry;
    uint32_t at;

    if (texts->shelf == NULL || key == 0)
        return 0;
    entry = &texts->sites[(key >> 2 ^ key >> 10) % RDL_SITES_CACHED];
    if (atomic_load_explicit(&entry->address, memory_order_acquire) == key) {
        at = atomic_load_explicit(&entry->offset, memory_order_acquire);
        if (atomic_load_explicit(&entry->address, memory_order_relaxed) == key)
            return at;
    }
    return first_sight(texts, entry, site, address);
}
