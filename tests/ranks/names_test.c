/* Names, addresses, interfaces and ports that mean nothing to a job on one host (cases
 * H05, H06 a): it needs none of them, and runs to its right result. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/run.h"
#include "support/worlds.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct surroundings {
    const char *address; /* MASTER_ADDR; NULL: not set */
    const char *port;
    const char *interface; /* for other libraries; NULL: not set */
} surroundings;

static void set(const char *name, const char *value)
{
    CHECK_INT(value ? setenv(name, value, 1) : unsetenv(name), 0);
}

static void set_number(const char *name, int value)
{
    char text[16];

    snprintf(text, sizeof text, "%d", value);
    set(name, text);
}

/* A rank as torchrun would start it. */
static void sum_digits(int rank, int size, void *arg)
{
    const surroundings *s = arg;
    int64_t mine = rdl_digit(rank), sum = 0;
    rdl_world *world;

    set("MASTER_ADDR", s->address);
    set("MASTER_PORT", s->port);
    set("GLOO_SOCKET_IFNAME", s->interface);
    set("NCCL_SOCKET_IFNAME", s->interface);
    set_number("RANK", rank);
    set_number("WORLD_SIZE", size);
    set("TORCHELASTIC_RUN_ID", NULL);
    CHECK_OK(rdl_world_open(NULL, &world));
    CHECK_OK(rdl_all_reduce(world, RDL_WORLD, &mine, &sum, 1, RDL_INT64,
                            RDL_SUM, NULL));
    CHECK_INT(sum, (rdl_digit(size) - 1) / 9);
    CHECK_OK(rdl_world_close(world));
}

/* With a job's name of this test's own. */
static void run(int size, surroundings *s)
{
    char job[64];

    snprintf(job, sizeof job, "names-%d", (int)getpid());
    set("RADDLE_JOB", job);
    rdl_test_processes(size, sum_digits, s);
}

/* H05 a */
RDL_TEST(a_host_whose_name_nobody_knows_runs_a_job)
{
    static const char name[] = "nobody-knows-this-name";
    surroundings s = { .port = "29500" };

    if (unshare(CLONE_NEWUTS) != 0)
        SKIP("no host name of our own: %s", strerror(errno));
    CHECK_INT(sethostname(name, strlen(name)), 0);
    run(2, &s);
    s.address = name;
    run(2, &s);
}

/* H05 b, c, and less: not even lo is up, so that no address of any family is there. */
RDL_TEST(a_host_without_any_address_runs_a_job)
{
    static const char *const addresses[] = { "localhost", "127.0.0.1", "::1" };
    surroundings s = { .port = "29500" };

    if (unshare(CLONE_NEWNET) != 0)
        SKIP("no network of our own: %s", strerror(errno));
    for (int i = 0; i < 3; i++) {
        s.address = addresses[i];
        run(2, &s);
    }
}

/* H05 d */
RDL_TEST(an_interface_that_is_not_there_is_not_asked_for)
{
    surroundings s = { "127.0.0.1", "29500", "no-such-interface0" };

    run(2, &s);
}

/* H05 e */
RDL_TEST(an_address_that_has_no_answer_is_only_a_name)
{
    surroundings s = { .address = "no-such-host.invalid", .port = "29500" };

    run(2, &s);
}

static int listen_somewhere(char port[16])
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    socklen_t bytes = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(fd >= 0);
    CHECK_INT(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    CHECK_INT(listen(fd, 8), 0);
    CHECK_INT(getsockname(fd, (struct sockaddr *)&at, &bytes), 0);
    snprintf(port, 16, "%d", ntohs(at.sin_port));
    return fd;
}

/* H06 a */
RDL_TEST(a_port_that_another_listens_at_is_no_hindrance)
{
    char port[16];
    int fd = listen_somewhere(port);
    surroundings s = { .address = "127.0.0.1", .port = port };
    struct pollfd caller = { .fd = fd, .events = POLLIN };

    run(4, &s);
    CHECK_INT(poll(&caller, 1, 0), 0); /* nobody has called there */
    close(fd);
}
