/* The rendezvous by hand. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/puppet.h"

#include "base/layout.h"

#include <errno.h>
#include <raddle/version.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PATIENCE_MS 20000

static const char *no_environment(const char *name)
{
    (void)name;
    return NULL;
}

rdl_place rdl_puppet_place(const char *job, int rank, int size)
{
    rdl_world_options options = { .rank = rank, .size = size, .job = job };
    rdl_place place;

    CHECK_OK(rdl_place_read(&options, no_environment, &place));
    return place;
}

rdl_hello rdl_puppet_hello(const char *job, int rank, int size)
{
    rdl_hello hello = { .magic = RDL_MAGIC,
                        .layout = rdl_layout_hash(),
                        .version = RDL_VERSION,
                        .job = rdl_puppet_place(job, 0, 2).job,
                        .size = (uint32_t)size,
                        .rank = (uint32_t)rank };
    rdl_process self;

    CHECK_OK(rdl_process_self(&self));
    hello.pid = self.pid;
    hello.started = self.started;
    hello.pid_namespace = self.pid_namespace;
    return hello;
}

static socklen_t address_of(const char *job, struct sockaddr_un *address)
{
    rdl_place place = rdl_puppet_place(job, 0, 2);

    *address = (struct sockaddr_un){ .sun_family = AF_UNIX };
    memcpy(address->sun_path + 1, place.name, strlen(place.name));
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                       strlen(place.name));
}

int rdl_puppet_connect(const char *job)
{
    rdl_deadline deadline = rdl_deadline_after_ms(PATIENCE_MS);
    struct sockaddr_un address;
    socklen_t length = address_of(job, &address);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    CHECK(fd >= 0);
    while (connect(fd, (struct sockaddr *)&address, length) != 0) {
        CHECK_INT(errno, ECONNREFUSED);
        CHECK(!rdl_deadline_passed(deadline));
        usleep(1000);
    }
    return fd;
}

int rdl_puppet_listen(const char *job)
{
    struct sockaddr_un address;
    socklen_t length = address_of(job, &address);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    CHECK(fd >= 0);
    CHECK_INT(bind(fd, (struct sockaddr *)&address, length), 0);
    CHECK_INT(listen(fd, 64), 0);
    return fd;
}

int rdl_puppet_accept(int listener, rdl_hello *hello)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    int none;

    CHECK(fd >= 0);
    CHECK_OK(rdl_message_receive(fd, hello, sizeof *hello, &none,
                                 rdl_deadline_after_ms(PATIENCE_MS)));
    CHECK_INT(none, -1);
    return fd;
}

rdl_answer rdl_puppet_ask(const char *job, const rdl_hello *hello, int *fd)
{
    int socket = rdl_puppet_connect(job), came;
    rdl_answer answer;

    CHECK_OK(rdl_message_send(socket, hello, sizeof *hello, -1));
    CHECK_OK(rdl_message_receive(socket, &answer, sizeof answer, &came,
                                 rdl_deadline_after_ms(PATIENCE_MS)));
    close(socket);
    if (fd != NULL)
        *fd = came;
    else if (came >= 0)
        close(came);
    return answer;
}

rdl_arena rdl_puppet_join(const char *job, int rank, int size)
{
    rdl_hello hello = rdl_puppet_hello(job, rank, size);
    rdl_arena arena;
    int fd;
    rdl_answer answer = rdl_puppet_ask(job, &hello, &fd);

    CHECK_TEXT(answer.text, "");
    CHECK_INT(answer.status, RDL_OK);
    CHECK_OK(rdl_arena_map(&arena, fd));
    return arena;
}

void rdl_puppet_show(rdl_arena *arena, int rank, rdl_slice_state state,
                     rdl_status failure, const char *reason)
{
    rdl_slice *slice = rdl_arena_slice(arena, rank);
    rdl_process self;

    CHECK_OK(rdl_process_self(&self));
    slice->pid = self.pid;
    slice->started = self.started;
    slice->pid_namespace = self.pid_namespace;
    slice->cpus = rdl_cpus_allowed();
    slice->check = RDL_CHECK_ON;
    slice->failure = (uint32_t)failure;
    snprintf(slice->reason, sizeof slice->reason, "%s", reason);
    atomic_store_explicit(&slice->state, (uint32_t)state, memory_order_seq_cst);
}

void rdl_puppet_await(const rdl_arena *arena, int rank, rdl_slice_state state)
{
    rdl_deadline deadline = rdl_deadline_after_ms(PATIENCE_MS);

    while (atomic_load_explicit(&rdl_arena_slice(arena, rank)->state,
                                memory_order_acquire) != (uint32_t)state) {
        CHECK(!rdl_deadline_passed(deadline));
        usleep(500);
    }
}

bool rdl_puppet_name_is_held(const char *job)
{
    rdl_place place = rdl_puppet_place(job, 0, 2);
    FILE *f = fopen("/proc/net/unix", "r");
    char line[512];
    bool held = false;

    CHECK(f != NULL);
    while (fgets(line, sizeof line, f) != NULL)
        held |= strstr(line, place.name) != NULL;
    fclose(f);
    return held;
}
