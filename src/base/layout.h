/* What the ranks of one host share, byte for byte: the arena.
 *
 *     header     who we are, obituaries         written by its maker
 *     slice 0    all that rank 0 publishes      written by rank 0
 *     slice 1    ...
 *
 *     slice      state · bell
 *                table      key -> slot, for peers that look a group up
 *                slots      one for each lane this rank uses
 *                texts      rank lists, names, call sites and sentences
 *                records    what this rank did last
 *                staging    data on its way to peers
 *     heap 0     what rank 0's program takes     taken and written by rank 0
 *     heap 1     ...
 *
 * The file is sparse: every region has its greatest size, and each rank reserves
 * what it uses of its own. It holds no pointers. One word is written by peers:
 * the bell, whose value means nothing (base/bell.h).
 *
 * The slot protocol is docs/adr/0006; base/slot.h implements it. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_BASE_LAYOUT_H
#define RDL_BASE_LAYOUT_H

#include "base/cpus.h"

#include <raddle/group.h>
#include <raddle/host.h>
#include <raddle/world.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define RDL_CACHE_LINE 64
#define RDL_PAGE 4096
#define RDL_MAGIC UINT64_C(0x31656c6464617200) /* "\0raddle1" */

/* --- a slot: what one rank publishes on one lane --------------------------- */

#define RDL_LINES 8   /* a ring: phase q uses line q % RDL_LINES */
#define RDL_INLINE 48 /* bytes of data that fit a line */
#define RDL_SEQUENCE_BITS 40

/* --- a nook: a piece of staging that a lane keeps for small operations ------- */

#define RDL_SMALL ((size_t)4096) /* bytes of an input that is small */
#define RDL_NOOK_PARTS 4         /* of RDL_SMALL, used in turn */
#define RDL_NOOK_BYTES (RDL_NOOK_PARTS * RDL_SMALL)
#define RDL_NOOKS_MOST 64 /* of a rank; behind the staging that is leased */

/* One phase of one rank: payload and fingerprint first, word last. */
typedef struct rdl_line {
    unsigned char payload[RDL_INLINE];
    uint64_t fingerprint;
    _Atomic uint64_t word; /* tag << RDL_SEQUENCE_BITS | sequence */
} rdl_line;

/* The call a line belongs to, for verdicts. Written with the line. */
typedef struct rdl_description {
    uint64_t count;
    uint64_t number; /* of the call on its lane, from 1 */
    int32_t root;
    uint8_t operation;
    uint8_t dtype;
    uint8_t reduction;
    uint8_t receives; /* of a transfer: this is its receiving end */
    double factor;    /* as the reduction uses it; 0: none */
    uint64_t site;
    uint64_t detail; /* hash of a list of counts that all must share; else 0 */
} rdl_description;

typedef struct rdl_slot {
    _Alignas(RDL_CACHE_LINE) rdl_line lines[RDL_LINES];
    rdl_description descriptions[RDL_LINES];
    /* The control line, which peers read in every call and which seldom changes. */
    _Alignas(RDL_CACHE_LINE) _Atomic uint64_t key[2]; /* of list and name */
    _Atomic uint32_t tag;        /* the slot's generation, 24 bits; 0: free */
    _Atomic uint32_t cause;      /* the revoke word: 0, or a failure's status */
    _Atomic uint32_t list_text;  /* offset in texts of rank list and name */
    _Atomic uint32_t cause_text; /* of the failure's sentence; 0: none */
    _Atomic uint64_t name;       /* hash of the name alone */
    uint64_t last_tag;           /* the owner's, also while the slot is free */
    _Atomic uint32_t counts_text; /* of the present call's list of counts */
    _Atomic uint32_t vote_text;   /* who is gone, of a group that shrinks */
    /* The last phase whose readings are done; it changes in every call. */
    _Alignas(RDL_CACHE_LINE) _Atomic uint64_t passed;
} rdl_slot;

/* --- a record: one call, as the rank that made it saw it ------------------- */

#define RDL_RECORDS 2048 /* of each rank, if nothing else is said */
/* Their number is a power of two, RDL_RECORDS_MOST at most. */

/* Record n is place (n - 1) % records. base/recorder.h says what the words hold;
 * they are words so that a peer that reads too late reads no half of one. */
typedef struct rdl_record {
    _Alignas(RDL_CACHE_LINE) _Atomic uint64_t words[8];
} rdl_record;

/* --- a slice --------------------------------------------------------------- */

#define RDL_TABLE_PLACES (2 * RDL_GROUPS_MOST)
#define RDL_TEXTS_BYTES ((size_t)16 << 20) /* 4,096 lists of 1,024 ranks */
#define RDL_REASON 448

/* What a rank's memory in the arena is for. */
typedef enum rdl_purpose {
    RDL_FOR_STATE, /* with the table */
    RDL_FOR_SLOTS,
    RDL_FOR_TEXTS,
    RDL_FOR_RECORDS,
    RDL_FOR_STAGING,
    RDL_FOR_HEAP,
    RDL_PURPOSES
} rdl_purpose;

typedef enum rdl_slice_state {
    RDL_SLICE_EMPTY,
    RDL_SLICE_JOINED,
    RDL_SLICE_LEFT,  /* closed its world */
    RDL_SLICE_FAILED /* gave up, with failure and reason */
} rdl_slice_state;

typedef struct rdl_slice {
    _Alignas(RDL_CACHE_LINE) _Atomic uint32_t state; /* rdl_slice_state */
    uint32_t failure; /* status; this and reason are written before state */
    uint32_t pid;     /* this and what follows is written before JOINED */
    uint32_t records; /* places of its ring of records; 0: it keeps none */
    uint32_t check;   /* rdl_check, the same on all ranks */
    uint32_t aborted; /* failed by the program's wish; before state */
    uint32_t rules;   /* of its rules for algorithms; the same on all ranks */
    uint64_t started; /* the process' start time, in clock ticks */
    uint64_t pid_namespace; /* pids of another namespace mean nothing here */
    uint64_t ticks_then; /* the records' counter, and the clock, as this rank */
    int64_t time_then;   /* joined: base/ticks.h */
    _Alignas(RDL_CACHE_LINE) _Atomic uint32_t sleepers; /* threads of this rank */
    _Atomic int32_t cpu; /* where one of them ran last, as far as known, + 1 */
    _Alignas(RDL_CACHE_LINE) _Atomic uint32_t bell;     /* written by anyone */
    _Alignas(RDL_CACHE_LINE) _Atomic uint64_t recorded; /* the newest's number */
    _Alignas(RDL_CACHE_LINE) char reason[RDL_REASON];
    rdl_cpus cpus;                        /* on which this rank may run */
    _Atomic uint64_t taken[RDL_PURPOSES]; /* bytes; for the account */
} rdl_slice;

#define RDL_TABLE_AT ((size_t)RDL_PAGE)
#define RDL_SLOTS_AT (RDL_TABLE_AT + RDL_TABLE_PLACES * sizeof(uint32_t))
#define RDL_TEXTS_AT (RDL_SLOTS_AT + RDL_GROUPS_MOST * sizeof(rdl_slot))
#define RDL_RECORDS_AT (RDL_TEXTS_AT + RDL_TEXTS_BYTES)
#define RDL_STAGING_AT (RDL_RECORDS_AT + RDL_RECORDS_MOST * sizeof(rdl_record))
#define RDL_SLICE_BYTES                                                        \
    (((RDL_STAGING_AT + RDL_STAGING_MOST) + 0x1fffff) & ~(size_t)0x1fffff)

/* --- the heaps, behind all slices ------------------------------------------ */

/* Address space that nobody pays for until it is taken: of one rank, and of all
 * ranks of a job together. A race detector has shadows for little. */
#ifdef __SANITIZE_THREAD__
#define RDL_HEAP_MOST ((size_t)1 << 30)
#define RDL_HEAPS_MOST ((size_t)8 << 30)
#else
#define RDL_HEAP_MOST ((size_t)64 << 30)
#define RDL_HEAPS_MOST ((size_t)512 << 30)
#endif
#define RDL_HEAP_ALIGN ((size_t)2 << 20)

/* --- the header ------------------------------------------------------------ */

/* What a launcher knows of a rank's end. Written by the launcher only: text,
 * then gone. */
typedef struct rdl_obituary {
    _Alignas(RDL_CACHE_LINE) _Atomic uint32_t gone;
    char text[RDL_CACHE_LINE - sizeof(uint32_t)];
} rdl_obituary;

typedef struct rdl_header {
    uint64_t magic;
    uint64_t layout; /* rdl_layout_hash() */
    uint64_t slice_bytes;
    uint64_t heap_bytes; /* of each rank; 0: the file has no heaps */
    uint32_t size;
    uint32_t maker_pid;
    uint64_t maker_started;
    uint64_t maker_namespace;
    _Atomic uint32_t failed; /* status of a failed start; reason is before it */
    char reason[RDL_REASON];
    _Alignas(RDL_PAGE) rdl_obituary obituaries[RDL_MAX_RANKS];
} rdl_header;

#define RDL_HEADER_BYTES (((sizeof(rdl_header)) + 0x1fffff) & ~(size_t)0x1fffff)

_Static_assert(sizeof(rdl_line) == RDL_CACHE_LINE,
               "data, fingerprint and sequence travel in one cache line");
_Static_assert(sizeof(rdl_description) == 48, "shared: its layout is fixed");
_Static_assert(sizeof(rdl_slot) == 1024 &&
                   offsetof(rdl_slot, key) == 1024 - 2 * RDL_CACHE_LINE,
               "shared: its layout is fixed");
_Static_assert(sizeof(rdl_record) == RDL_CACHE_LINE, "a line a record");
_Static_assert(sizeof(rdl_slice) <= RDL_PAGE, "the slice begins with one page");
_Static_assert(sizeof(rdl_cpus) == RDL_CPUS_MOST / 8,
               "shared: a bit a processor");
_Static_assert(sizeof(rdl_obituary) == RDL_CACHE_LINE, "one line a rank");
_Static_assert((RDL_LINES & (RDL_LINES - 1)) == 0, "lines are found by a mask");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2,
               "a lock that an atomic hides would be private to a process");
_Static_assert(sizeof(_Atomic uint64_t) == 8 && sizeof(_Atomic uint32_t) == 4,
               "atomics have the size of what they hold");

/* One number for all of the above; ranks and launcher compare it. Never 0. */
uint64_t rdl_layout_hash(void);

#endif
