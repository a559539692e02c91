/* A rendezvous at which somebody says something wrong, or nothing: each side
 * against a puppet that plays the other. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/left.h"
#include "support/puppet.h"
#include "support/worlds.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define LONG_MS 60000

static void name_job(char job[64])
{
    snprintf(job, 64, "meet-%d", (int)getpid());
}

static void open_in_vain(const rdl_world_options *options, rdl_status status,
                         const char *sentence)
{
    rdl_world *world = NULL;

    CHECK_STATUS(rdl_world_open(options, &world), status);
    CHECK_HAS(rdl_error_detail(), sentence);
    CHECK(world == NULL);
}

static void join_two(int rank, const char *job)
{
    rdl_world_options options = {
        .rank = rank, .size = 2, .job = job, .start_timeout_ms = LONG_MS
    };
    rdl_world *world;

    CHECK_OK(rdl_world_open(&options, &world));
    rdl_check_digits(world, RDL_WORLD, 11);
    CHECK_OK(rdl_world_close(world));
}

/* Sends what may not be a hello, with n descriptors along. */
static void send_bytes(int socket, const void *bytes, size_t n_bytes, int n)
{
    union {
        char bytes[CMSG_SPACE(8 * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec part = { (void *)(uintptr_t)bytes, n_bytes };
    struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1 };
    int fds[8] = { 0 };

    if (n > 0) {
        struct cmsghdr *c;

        memset(&control, 0, sizeof control);
        header.msg_control = control.bytes;
        header.msg_controllen = CMSG_SPACE((size_t)n * sizeof(int));
        c = CMSG_FIRSTHDR(&header);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN((size_t)n * sizeof(int));
        memcpy(CMSG_DATA(c), fds, (size_t)n * sizeof(int));
    }
    CHECK_INT(sendmsg(socket, &header, MSG_NOSIGNAL), n_bytes);
}

/* --- hellos, to a rank that keeps the job ---------------------------------- */

static rdl_answer say(const char *job, const void *bytes, size_t n, int fds)
{
    int socket = rdl_puppet_connect(job), came;
    rdl_answer answer;

    send_bytes(socket, bytes, n, fds);
    CHECK_OK(rdl_message_receive(socket, &answer, sizeof answer, &came,
                                 rdl_deadline_after_ms(LONG_MS)));
    CHECK_INT(came, -1);
    close(socket);
    CHECK_OK(rdl_answer_check(&answer));
    return answer;
}

static void say_wrong_hellos(const char *job)
{
    rdl_hello right = rdl_puppet_hello(job, 1, 2), hello = right;
    unsigned char much[2 * sizeof hello] = { 0 };
    rdl_answer answer;

    hello.magic++;
    answer = say(job, &hello, sizeof hello, 0);
    CHECK_INT(answer.status, RDL_FORMAT);
    CHECK_HAS(answer.text, "magic");
    hello = right;
    memset(hello.version, 'v', sizeof hello.version);
    answer = say(job, &hello, sizeof hello, 0);
    CHECK_INT(answer.status, RDL_FORMAT);
    CHECK_HAS(answer.text, "version");
    hello = right;
    hello.rank = 2;
    answer = say(job, &hello, sizeof hello, 0);
    CHECK_INT(answer.status, RDL_INVALID);
    CHECK_HAS(answer.text, "rank 2 is outside 0..1");
    hello.rank = UINT32_MAX;
    answer = say(job, &hello, sizeof hello, 0);
    CHECK_INT(answer.status, RDL_INVALID);
    answer = say(job, &right, sizeof right / 2, 0);
    CHECK_INT(answer.status, RDL_FORMAT);
    CHECK_HAS(answer.text, "no raddle of this version");
    answer = say(job, much, sizeof much, 0);
    CHECK_INT(answer.status, RDL_FORMAT);
    answer = say(job, "G", 1, 0);
    CHECK_INT(answer.status, RDL_FORMAT);
    for (int fds = 1; fds <= 8; fds++) {
        answer = say(job, "GET / HTTP/1.0\r\n\r\n", 18, fds);
        CHECK_INT(answer.status, RDL_FORMAT);
    }
}

/* Strangers that hold the line, and some that hang up. */
static void say_nothing(const char *job, int *sockets, int n)
{
    for (int i = 0; i < n; i++) {
        sockets[i] = rdl_puppet_connect(job);
        close(rdl_puppet_connect(job));
    }
}

static void come_among_strangers(int rank, int size, void *arg)
{
    enum { STRANGERS = 12 };
    int sockets[STRANGERS];
    rdl_deadline soon;

    (void)size;
    if (rank == 0) {
        join_two(0, arg);
        return;
    }
    say_nothing(arg, sockets, STRANGERS);
    soon = rdl_deadline_after_ms(10000);
    say_wrong_hellos(arg);
    join_two(1, arg);
    CHECK(!rdl_deadline_passed(soon)); /* nobody was waited for */
    for (int i = 0; i < STRANGERS; i++)
        close(sockets[i]);
}

RDL_TEST(strangers_are_refused_or_passed_over_and_the_job_starts)
{
    rdl_test_left before = rdl_test_left_now();
    char job[64];

    name_job(job);
    rdl_test_threads(2, come_among_strangers, job);
    rdl_test_nothing_left(&before);
}

/* The third rank of a job is of another build. */
static void hear_of_another_version(int rank, int size, void *arg)
{
    rdl_world_options options = {
        .rank = rank, .size = 4, .job = arg, .start_timeout_ms = LONG_MS
    };
    rdl_hello hello;
    rdl_answer answer;
    rdl_arena arena;

    if (rank < size - 1) {
        open_in_vain(&options, RDL_MISMATCH,
                     "rank 3 uses raddle 9.8.7 (layout 0000000000000bad)");
        CHECK_HAS(rdl_error_detail(), "all must use one version");
        return;
    }
    arena = rdl_puppet_join(arg, 2, 4);
    rdl_puppet_await(&arena, 0, RDL_SLICE_JOINED);
    rdl_puppet_await(&arena, 1, RDL_SLICE_JOINED);
    hello = rdl_puppet_hello(arg, 3, 4);
    hello.layout = 0xbad;
    snprintf(hello.version, sizeof hello.version, "9.8.7");
    answer = rdl_puppet_ask(arg, &hello, NULL);
    CHECK_INT(answer.status, RDL_MISMATCH);
    CHECK_HAS(answer.text, "rank 3 uses raddle 9.8.7");
    rdl_arena_unmap(&arena);
}

RDL_TEST(all_who_have_joined_hear_of_a_rank_of_another_version)
{
    char job[64];

    name_job(job);
    rdl_test_threads(3, hear_of_another_version, job);
}

/* Somebody else is rank 0 too, and nobody is rank 3. */
static void hear_of_twins(int rank, int size, void *arg)
{
    rdl_world_options options = {
        .rank = rank, .size = 4, .job = arg, .start_timeout_ms = LONG_MS
    };
    rdl_hello hello;
    rdl_answer answer;
    rdl_arena arena;

    if (rank < size - 1) {
        open_in_vain(&options, RDL_MISMATCH, "two claim to be rank 0: process ");
        CHECK_HAS(rdl_error_detail(), " and process 4711");
        return;
    }
    arena = rdl_puppet_join(arg, 2, 4);
    rdl_puppet_await(&arena, 0, RDL_SLICE_JOINED);
    rdl_puppet_await(&arena, 1, RDL_SLICE_JOINED);
    hello = rdl_puppet_hello(arg, 0, 4);
    hello.pid = 4711;
    answer = rdl_puppet_ask(arg, &hello, NULL);
    CHECK_INT(answer.status, RDL_MISMATCH);
    CHECK_HAS(answer.text, "two claim to be rank 0: process ");
    rdl_arena_unmap(&arena);
}

RDL_TEST(all_who_have_joined_hear_that_two_claim_one_rank)
{
    char job[64];

    name_job(job);
    rdl_test_threads(3, hear_of_twins, job);
    rdl_test_processes(3, hear_of_twins, job);
}

/* --- answers, to a rank that asks ------------------------------------------ */

static int make_file(size_t bytes)
{
    int fd = memfd_create("not-an-arena", MFD_CLOEXEC);

    CHECK(fd >= 0);
    CHECK_INT(ftruncate(fd, (off_t)bytes), 0);
    return fd;
}

static int make_arena(int size, rdl_header **header)
{
    int fd;

    CHECK_OK(rdl_arena_make(size, &fd));
    *header =
        mmap(NULL, RDL_HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(*header != MAP_FAILED);
    return fd;
}

static int make_arena_that_is_wrong(int how)
{
    rdl_header *header;
    int fd = make_arena(how == 3 ? 3 : 2, &header);

    if (how == 0)
        header->magic ^= 1;
    if (how == 1)
        header->layout ^= 1;
    if (how == 2)
        header->size = 3;
    munmap(header, RDL_HEADER_BYTES);
    return fd;
}

static int make_arena_without_seals(void)
{
    rdl_header *header;
    int sealed = make_arena(2, &header);
    size_t bytes = RDL_HEADER_BYTES + 2 * RDL_SLICE_BYTES;
    int fd = make_file(bytes);

    CHECK_INT(pwrite(fd, header, RDL_PAGE, 0), RDL_PAGE);
    munmap(header, RDL_HEADER_BYTES);
    close(sealed);
    return fd;
}

static int reopen_for_reading(int fd)
{
    char path[64];
    int read_only;

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    read_only = open(path, O_RDONLY | O_CLOEXEC);
    close(fd);
    CHECK(read_only >= 0);
    return read_only;
}

/* What a keeper may hand over, and what the rank says to it. */
typedef struct handed {
    rdl_status status;
    const char *sentence;
} handed;

static const handed all_handed[] = {
    { RDL_FORMAT, "sent no arena" },
    { RDL_FORMAT, "is no raddle arena: 0 bytes" },       /* a device */
    { RDL_FORMAT, "is no raddle arena: 4096 bytes" },    /* too small */
    { RDL_FORMAT, "is no raddle arena: it can shrink" }, /* large and empty */
    { RDL_FORMAT, "is no raddle arena: magic " },        /* another magic */
    { RDL_MISMATCH, "must use one version of raddle" },  /* another layout */
    { RDL_FORMAT, "an arena of 3 ranks cannot have" },   /* a wrong length */
    { RDL_FORMAT, "an arena of 3 ranks for a world of 2" },
    { RDL_FORMAT, "can shrink" },
    { RDL_SYSTEM, "cannot map" }, /* read-only */
};

#define N_HANDED ((int)(sizeof all_handed / sizeof *all_handed))

static int hand(int i)
{
    rdl_header *header;
    int fd;

    switch (i) {
    case 0:
        return -1;
    case 1:
        return open("/dev/null", O_RDWR | O_CLOEXEC);
    case 2:
        return make_file(4096);
    case 3:
        return make_file(RDL_HEADER_BYTES + 2 * RDL_SLICE_BYTES);
    case 8:
        return make_arena_without_seals();
    case 9:
        fd = make_arena(2, &header);
        munmap(header, RDL_HEADER_BYTES);
        return reopen_for_reading(fd);
    default:
        return make_arena_that_is_wrong(i - 4);
    }
}

/* A job whose name the puppet holds before any rank comes. */
typedef struct stage {
    char job[64];
    int listener;
} stage;

/* The puppet is thread 0, and thread 1 a real rank. */
static void perform(rdl_test_body body)
{
    rdl_test_left before = rdl_test_left_now();
    stage s;

    name_job(s.job);
    s.listener = rdl_puppet_listen(s.job);
    rdl_test_threads(2, body, &s);
    close(s.listener);
    rdl_test_nothing_left(&before);
}

static void ask_for_arenas(int rank, int size, void *arg)
{
    const stage *s = arg;
    rdl_world_options options = {
        .rank = rank, .size = size, .job = s->job, .start_timeout_ms = LONG_MS
    };
    rdl_answer welcome = { .magic = RDL_MAGIC };
    rdl_hello hello;

    if (rank == 1) {
        for (int i = 0; i < N_HANDED; i++)
            open_in_vain(&options, all_handed[i].status, all_handed[i].sentence);
        return;
    }
    for (int i = 0; i < N_HANDED; i++) {
        int socket = rdl_puppet_accept(s->listener, &hello), fd = hand(i);

        CHECK_INT(hello.rank, 1);
        CHECK_OK(rdl_message_send(socket, &welcome, sizeof welcome, fd));
        if (fd >= 0)
            close(fd);
        close(socket);
    }
}

RDL_TEST(what_is_no_arena_is_refused_by_the_rank_that_gets_it)
{
    perform(ask_for_arenas);
}

/* Messages that are no answers, and how many descriptors come along. */
static void send_wrong_answer(int socket, int i)
{
    rdl_answer answer = { .magic = RDL_MAGIC };
    char much[4096] = { 0 };

    switch (i) {
    case 0:
        answer.magic = 0;
        break;
    case 1:
        answer.status = RDL_BUG + 1;
        break;
    case 2:
        answer.status = RDL_AGAIN;
        break;
    case 3:
        answer.status = RDL_INVALID;
        memset(answer.text, 'x', sizeof answer.text);
        break;
    case 4:
        send_bytes(socket, &answer, sizeof answer / 2, 1);
        return;
    case 5:
        send_bytes(socket, much, sizeof much, 1);
        return;
    default: /* more than one descriptor */
        send_bytes(socket, &answer, sizeof answer, i - 4);
        return;
    }
    send_bytes(socket, &answer, sizeof answer, 0);
}

#define N_WRONG 10

static void ask_for_answers(int rank, int size, void *arg)
{
    const stage *s = arg;
    rdl_world_options options = {
        .rank = rank, .size = size, .job = s->job, .start_timeout_ms = LONG_MS
    };

    if (rank == 1) {
        for (int i = 0; i < N_WRONG; i++)
            open_in_vain(&options, RDL_FORMAT, "");
        options.start_timeout_ms = 1000;
        open_in_vain(&options, RDL_TIMEOUT, "no answer from the rendezvous");
        return;
    }
    for (int i = 0; i < N_WRONG; i++) {
        rdl_hello hello;
        int socket = rdl_puppet_accept(s->listener, &hello);

        if (i % 2 == 0) { /* who hangs up is asked again */
            close(socket);
            socket = rdl_puppet_accept(s->listener, &hello);
        }
        send_wrong_answer(socket, i);
        close(socket);
    } /* the last one is not answered */
}

RDL_TEST(what_is_no_answer_is_refused_and_silence_ends_at_the_limit)
{
    perform(ask_for_answers);
}

/* --- RADDLE_FD ------------------------------------------------------------- */

static void open_with(int fd, rdl_status status, const char *sentence)
{
    rdl_test_left before = rdl_test_left_now();
    char text[16];

    snprintf(text, sizeof text, "%d", fd);
    setenv("RADDLE_FD", text, 1);
    setenv("RADDLE_RANK", "0", 1);
    setenv("RADDLE_WORLD_SIZE", "2", 1);
    setenv("RADDLE_START_TIMEOUT", "0.5", 1);
    open_in_vain(NULL, status, sentence);
    rdl_test_nothing_left(&before);
}

RDL_TEST(a_descriptor_that_is_not_the_launchers_is_named)
{
    int pipes[2], inet = socket(AF_INET, SOCK_STREAM, 0);
    int file = make_file(10);

    CHECK_INT(pipe(pipes), 0);
    CHECK(inet >= 0);
    open_with(999, RDL_INVALID, "RADDLE_FD=999 is not the launcher's socket");
    open_with(pipes[0], RDL_INVALID, "is not the launcher's socket");
    open_with(inet, RDL_INVALID, "is not the launcher's socket");
    open_with(file, RDL_INVALID, "is not the launcher's socket");
}

RDL_TEST(a_launcher_that_is_gone_silent_or_of_another_kind_is_told_apart)
{
    rdl_answer answer = { .magic = 1 };
    int pair[2];

    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    open_with(pair[0], RDL_INVALID, "is not the launcher's socket");
    CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    open_with(pair[0], RDL_TIMEOUT, "no answer from the rendezvous");
    CHECK_OK(rdl_message_send(pair[1], &answer, sizeof answer, -1));
    open_with(pair[0], RDL_FORMAT, "no raddle of this version");
    close(pair[1]);
    open_with(pair[0], RDL_PEER, "the launcher is gone");
}
