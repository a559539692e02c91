/* Hashing: 64 bits at a time, for keys and fingerprints. Not for secrets. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BASE_HASH_H
#define RDL_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* A bijection that spreads every bit (the finaliser of Steele, Lea and Flood's
 * SplitMix64, 2014). */
static inline uint64_t rdl_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* hash, continued by value. */
static inline uint64_t rdl_hash_add(uint64_t hash, uint64_t value)
{
    return rdl_mix(hash * UINT64_C(0x9e3779b97f4a7c15) + value + 1);
}

/* hash, continued by the bytes and their number. */
static inline uint64_t rdl_hash_bytes(uint64_t hash, const void *data,
                                      size_t bytes)
{
    const unsigned char *p = (const unsigned char *)data;

    for (size_t i = 0; i < bytes; i++)
        hash = rdl_hash_add(hash, p[i]);
    return rdl_hash_add(hash, bytes);
}

/* 128 bits that stand for something. */
typedef struct rdl_key {
    uint64_t low;
    uint64_t high;
} rdl_key;

#endif
