/* The port that raddle run offers to ranks that meet by means of their own. One body
 * is a program for scripts, which start it as ranks. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "port.h"

#include "support/test.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef IP_LOCAL_PORT_RANGE
#define IP_LOCAL_PORT_RANGE 51 /* Linux 6.3 */
#endif

static void start_from_nothing(void)
{
    unsetenv("MASTER_ADDR");
    unsetenv("MASTER_PORT");
    unsetenv("RANK");
}

static int number_in(const char *name)
{
    const char *text = getenv(name);

    CHECK(text != NULL);
    return atoi(text);
}

static struct sockaddr_in local(int port)
{
    struct sockaddr_in a = { .sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port) };

    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return a;
}

/* As a store does: all addresses of both families, or of IPv4. The socket, or -1 with
 * errno set. */
static int listen_at(int port, bool share)
{
    struct sockaddr_in6 all = { .sin6_family = AF_INET6,
                                .sin6_port = htons((uint16_t)port) };
    struct sockaddr_in v4 = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)port) };
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), on = share;
    bool both = fd >= 0;

    if (!both)
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if ((both ? bind(fd, (struct sockaddr *)&all, sizeof all)
              : bind(fd, (struct sockaddr *)&v4, sizeof v4)) == 0 &&
        listen(fd, 64) == 0)
        return fd;
    close(fd);
    return -1;
}

static int hold(void)
{
    int fd;

    start_from_nothing();
    fd = port_offer();
    if (fd < 0)
        SKIP("no socket of TCP may be made here");
    return fd;
}

/* Whether a socket that may have any port, but only of this range, gets one. */
static bool is_given_a_port(int from, int to)
{
    uint32_t range = (uint32_t)to << 16 | (uint32_t)from;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    struct sockaddr_in any = local(0);
    bool given;

    CHECK(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (setsockopt(fd, IPPROTO_IP, IP_LOCAL_PORT_RANGE, &range, sizeof range) !=
        0) {
        close(fd);
        SKIP("the kernel lets no socket say of which ports it takes one");
    }
    given = bind(fd, (struct sockaddr *)&any, sizeof any) == 0;
    close(fd);
    return given;
}

RDL_TEST(a_held_port_is_refused_to_whoever_wants_it_alone)
{
    int held = hold(), port = number_in("MASTER_PORT");

    CHECK_TEXT(getenv("MASTER_ADDR"), "127.0.0.1");
    CHECK(port >= 1024);
    CHECK_INT(listen_at(port, false), -1);
    CHECK_INT(errno, EADDRINUSE);
    close(held);
}

RDL_TEST(a_held_port_is_given_to_nobody_who_takes_any)
{
    int held = hold(), port = number_in("MASTER_PORT");

    CHECK(!is_given_a_port(port, port));
    close(held);
    CHECK(is_given_a_port(port, port));
}

RDL_TEST(nobody_listens_at_a_held_port)
{
    int held = hold(), fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = local(number_in("MASTER_PORT"));

    CHECK_INT(connect(fd, (struct sockaddr *)&a, sizeof a), -1);
    CHECK_INT(errno, ECONNREFUSED);
    close(fd);
    close(held);
}

/* A program may leave its group and make another one. */
RDL_TEST(a_store_listens_at_a_held_port_alone_and_again)
{
    int held = hold(), port = number_in("MASTER_PORT");

    for (int life = 0; life < 3; life++) {
        int store = listen_at(port, true);

        CHECK(store >= 0);
        CHECK_INT(listen_at(port, true), -1);
        CHECK_INT(errno, EADDRINUSE);
        close(store);
    }
    close(held);
}

RDL_TEST(ports_that_are_held_at_once_differ)
{
    enum { MANY = 64 };
    int held[MANY], ports[MANY];

    for (int i = 0; i < MANY; i++) {
        held[i] = hold();
        ports[i] = number_in("MASTER_PORT");
        for (int j = 0; j < i; j++)
            CHECK(ports[j] != ports[i]);
    }
    for (int i = 0; i < MANY; i++)
        close(held[i]);
}

RDL_TEST(what_the_user_has_set_stays)
{
    int held;

    start_from_nothing();
    setenv("MASTER_PORT", "29500", 1);
    CHECK_INT(port_offer(), -1);
    CHECK_TEXT(getenv("MASTER_PORT"), "29500");
    CHECK_TEXT(getenv("MASTER_ADDR"), "127.0.0.1");
    setenv("MASTER_ADDR", "localhost", 1);
    setenv("MASTER_PORT", "", 1);
    held = port_offer();
    CHECK_TEXT(getenv("MASTER_ADDR"), "localhost");
    close(held);
}

RDL_TEST(the_port_of_an_outer_job_is_not_taken_for_the_users)
{
    int held;

    setenv("RANK", "1", 1);
    setenv("MASTER_ADDR", "far.example", 1);
    setenv("MASTER_PORT", "29500", 1);
    setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
    held = port_offer();
    CHECK_TEXT(getenv("MASTER_ADDR"), "127.0.0.1");
    CHECK(held < 0 || number_in("MASTER_PORT") != 29500);
    CHECK(getenv("TORCHELASTIC_USE_AGENT_STORE") == NULL);
    close(held);
}

/* The digits of who has connected, in the order of ranks. */
static long serve(int listener, int size)
{
    long digits = 1;

    for (int i = 1; i < size; i++) {
        int fd = accept(listener, NULL, NULL);
        long digit;

        CHECK(fd >= 0);
        CHECK_INT(recv(fd, &digit, sizeof digit, MSG_WAITALL), sizeof digit);
        digits += digit;
        close(fd);
    }
    return digits;
}

/* Until rank 0 listens, as a store's clients do. */
static void send_digit(int port, int rank)
{
    struct sockaddr_in a = local(port);
    long digit = 1;
    int fd;

    for (int i = 0; i < rank; i++)
        digit *= 10;
    for (int tries = 0;; tries++) {
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        CHECK(fd >= 0);
        if (connect(fd, (struct sockaddr *)&a, sizeof a) == 0)
            break;
        close(fd);
        CHECK(errno == ECONNREFUSED && tries < 3000);
        usleep(10 * 1000);
    }
    CHECK_INT(write(fd, &digit, sizeof digit), sizeof digit);
    close(fd);
}

/* A rank of raddle run; alone it is a job of one. Rank 0 prints the digits. */
RDL_TEST(rank_0_listens_and_the_others_connect)
{
    int held = -1, rank, size;

    if (getenv("RADDLE_FD") == NULL) {
        held = hold();
        setenv("RANK", "0", 1);
        setenv("WORLD_SIZE", "1", 1);
    }
    rank = number_in("RANK");
    size = number_in("WORLD_SIZE");
    if (rank == 0) {
        int listener = listen_at(number_in("MASTER_PORT"), true);

        CHECK(listener >= 0);
        printf("%ld\n", serve(listener, size));
        close(listener);
    } else {
        send_digit(number_in("MASTER_PORT"), rank);
    }
    if (held >= 0)
        close(held);
}
