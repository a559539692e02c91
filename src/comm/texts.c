/* Keeping each text once. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/texts.h"

#include "comm/module.h"

#include <stdio.h>
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
                            rdl_call_site site, uintptr_t key)
{
    char place[RDL_TEXT_LONGEST + 1];
    uint32_t at;

    if (site.text == NULL)
        rdl_module_place(site.address, place, sizeof place);
    at = rdl_texts_put(texts, site.text ? site.text : place);
    pthread_mutex_lock(&texts->lock); /* one writer at a time */
    atomic_store_explicit(&entry->address, 0, memory_order_relaxed);
    atomic_store_explicit(&entry->offset, at, memory_order_release);
    atomic_store_explicit(&entry->address, key, memory_order_release);
    pthread_mutex_unlock(&texts->lock);
    return at;
}

static uintptr_t address_of(rdl_call_site site)
{
    return (uintptr_t)(site.text ? (const void *)site.text : site.address);
}

uint32_t rdl_texts_site(rdl_texts *texts, rdl_call_site site)
{
    uintptr_t key = address_of(site);
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
    return first_sight(texts, entry, site, key);
}

static rdl_key key_of_pair(rdl_call_site site, const char *caller)
{
    size_t bytes = strlen(caller);
    uint64_t address = address_of(site);

    return (rdl_key){ rdl_hash_bytes(address, caller, bytes),
                      rdl_hash_bytes(~address, caller, bytes) | 2 };
}

static uint32_t put_pair(rdl_texts *texts, rdl_key key, rdl_call_site site,
                         const char *caller)
{
    char text[2 * RDL_TEXT_LONGEST];
    uint32_t at, alone = rdl_texts_site(texts, site);
    size_t n =
        rdl_slice_read_text(texts->shelf->slice, alone, text, RDL_TEXT_LONGEST);

    snprintf(text + n, sizeof text - n, "%s(%.*s)", n > 0 ? " " : "",
             RDL_TEXT_LONGEST / 2, caller);
    at = rdl_texts_put(texts, text);
    pthread_mutex_lock(&texts->lock);
    /* Without memory it is put together again next time. */
    if (at != 0 && texts->known.live < RDL_TEXTS_MOST)
        (void)rdl_map_put(&texts->known, key, (rdl_pair){ at, 0 });
    pthread_mutex_unlock(&texts->lock);
    return at != 0 ? at : alone;
}

uint32_t rdl_texts_site_of(rdl_texts *texts, rdl_call_site site,
                           const char *caller)
{
    rdl_pair *known;
    uint32_t at = 0;
    rdl_key key;

    if (texts->shelf == NULL || caller == NULL || caller[0] == 0)
        return rdl_texts_site(texts, site);
    key = key_of_pair(site, caller);
    pthread_mutex_lock(&texts->lock);
    known = rdl_map_get(&texts->known, key);
    if (known != NULL)
        at = (uint32_t)known->first;
    pthread_mutex_unlock(&texts->lock);
    return at != 0 ? at : put_pair(texts, key, site, caller);
}
