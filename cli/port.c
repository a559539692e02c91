/* The port of the ranks' own rendezvous. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "port.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* Addresses of both kinds begin with the family and the port. */
typedef union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} address;

static bool is_set(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && *value != '\0';
}

/* Binds to all addresses of the family, without listening. Only then is the socket
 * marked as one that may be shared: the kernel gives nobody a port of its choice that
 * is bound, but two launchers that ask for one with the mark might get the same. */
static bool bind_to_free(int fd, int family)
{
    const int on = 1, off = 0;
    address a = { .any.sa_family = (sa_family_t)family };
    socklen_t bytes = family == AF_INET6 ? sizeof a.v6 : sizeof a.v4;

    if (family == AF_INET6 &&
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) != 0)
        return false;
    return bind(fd, &a.any, bytes) == 0 &&
           setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0;
}

/* Of IPv6 and IPv4 at once where there is IPv6. */
static int hold_free_port(void)
{
    static const int families[] = { AF_INET6, AF_INET };

    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        int fd = socket(families[i], SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (fd >= 0 && bind_to_free(fd, families[i]))
            return fd;
        if (fd >= 0)
            close(fd);
    }
    return -1;
}

static bool set_port(int fd)
{
    address a = { .any.sa_family = AF_UNSPEC };
    socklen_t bytes = sizeof a;
    char text[16];

    if (getsockname(fd, &a.any, &bytes) != 0)
        return false;
    snprintf(text, sizeof text, "%d",
             ntohs(a.any.sa_family == AF_INET6 ? a.v6.sin6_port : a.v4.sin_port));
    return setenv("MASTER_PORT", text, 1) == 0;
}

/* In a rank of another job, what is set is where that job meets; and there is no
 * agent of torchrun for ours, so rank 0 must make the store. */
static void forget_outer_job(void)
{
    if (!is_set("RANK"))
        return;
    unsetenv("MASTER_ADDR");
    unsetenv("MASTER_PORT");
    unsetenv("TORCHELASTIC_USE_AGENT_STORE");
}

int port_offer(void)
{
    int fd;

    forget_outer_job();
    if (!is_set("MASTER_ADDR"))
        setenv("MASTER_ADDR", "127.0.0.1", 1);
    if (is_set("MASTER_PORT"))
        return -1;
    fd = hold_free_port();
    if (fd >= 0 && set_port(fd))
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}
