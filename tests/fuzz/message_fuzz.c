/* What comes over a rendezvous: hellos to a roster, answers to a rank.
 *
 * Input: a byte for the number of ranks; then messages, each a byte of flags and
 * up to a hello's length of bytes. Flags put right what the fuzzer would not
 * guess. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/roster.h"

#include <raddle/version.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MUST(condition)                                                        \
    ((condition) ? (void)0 : (fprintf(stderr, "%s\n", #condition), abort()))

enum { RIGHT_MAGIC = 1, RIGHT_VERSION = 2, RIGHT_SIZE = 4, RIGHT_RANK = 8 };

static void put_right(rdl_hello *hello, unsigned flags, int size)
{
    if (flags & RIGHT_MAGIC)
        hello->magic = RDL_MAGIC;
    if (flags & RIGHT_VERSION) {
        hello->layout = rdl_layout_hash();
        memset(hello->version, 0, sizeof hello->version);
        snprintf(hello->version, sizeof hello->version, "%s", RDL_VERSION);
    }
    if (flags & RIGHT_SIZE)
        hello->size = (uint32_t)size;
    if (flags & RIGHT_RANK)
        hello->rank %= (uint32_t)size;
    if (hello->pid == 0) /* nobody has it */
        hello->pid = 1;
}

static void say_hello(rdl_roster *roster, const rdl_hello *hello)
{
    bool was_there = hello->rank < (uint32_t)roster->size &&
                     roster->members[hello->rank].pid != 0;
    rdl_status st = rdl_roster_admit(roster, hello);

    if (st == RDL_OK) {
        MUST(hello->magic == RDL_MAGIC && hello->layout == rdl_layout_hash());
        MUST(hello->size == (uint32_t)roster->size);
        MUST(hello->rank < (uint32_t)roster->size && !was_there);
        MUST(roster->members[hello->rank].pid == hello->pid);
    } else {
        MUST(st == RDL_FORMAT || st == RDL_MISMATCH || st == RDL_INVALID);
        MUST(rdl_error_detail()[0] != 0);
    }
}

/* The same bytes as a message where an answer is expected. */
static void receive_answer(const uint8_t *data, size_t bytes)
{
    rdl_answer answer;
    rdl_status st;
    int pair[2], fd = -1;

    MUST(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
    MUST(send(pair[0], data, bytes, 0) == (ssize_t)bytes);
    close(pair[0]);
    st = rdl_message_receive(pair[1], &answer, sizeof answer, &fd,
                             rdl_deadline_after_ms(1000));
    MUST(fd == -1);
    if (st == RDL_OK && rdl_answer_check(&answer) == RDL_OK)
        MUST(strlen(answer.text) < sizeof answer.text);
    else
        MUST(rdl_error_detail()[0] != 0);
    close(pair[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    rdl_roster roster;
    int size;

    if (bytes < 2)
        return 0;
    receive_answer(data, bytes);
    size = 1 + data[0] % 8;
    MUST(rdl_roster_init(&roster, size) == RDL_OK);
    for (size_t at = 1; at < bytes;) {
        unsigned flags = data[at++];
        rdl_hello hello = { 0 };
        size_t n = bytes - at < sizeof hello ? bytes - at : sizeof hello;

        memcpy(&hello, data + at, n);
        at += n;
        put_right(&hello, flags, size);
        say_hello(&roster, &hello);
    }
    rdl_roster_fini(&roster);
    return 0;
}
