/* The test harness. A test is a body with a name that says what is true when it
 * passes:
 *
 *     RDL_TEST(an_empty_range_has_no_parts)
 *     {
 *         CHECK_INT(parts(0), 0);
 *     }
 *
 * Each body runs in a process of its own, as `program NAME`; main() comes from
 * here. A body passes when it returns and has left no child process; it fails
 * at its first CHECK that does not hold, in whichever thread or forked rank
 * that is. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RDL_SUPPORT_TEST_H
#define RDL_SUPPORT_TEST_H

#include <raddle/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct rdl_test {
    const char *name;
    void (*body)(void);
    struct rdl_test *next;
} rdl_test;

void rdl_test_add(rdl_test *test);

/* clang-format off */
#define RDL_TEST(name)                                                         \
    static void rdl_test_body_##name(void);                                    \
    __attribute__((constructor)) static void rdl_test_add_##name(void)         \
    {                                                                          \
        static rdl_test test = { #name, rdl_test_body_##name, NULL };          \
                                                                               \
        rdl_test_add(&test);                                                   \
    }                                                                          \
    static void rdl_test_body_##name(void)
/* clang-format on */

/* Each evaluates its arguments once. The (x) | 0 lets integers, enums and
 * booleans pass and refuses floating point. */
#define CHECK(condition)                                                       \
    ((condition) ? (void)0 : RDL_TEST_FAIL("%s does not hold", #condition))
#define CHECK_INT(actual, expected)                                            \
    rdl_test_int(__FILE__, __LINE__, #actual, (intmax_t)((actual) | 0),        \
                 (intmax_t)((expected) | 0))
/* |actual - expected| <= tolerance; a NaN equals a NaN and nothing else. */
#define CHECK_NEAR(actual, expected, tolerance)                                \
    rdl_test_near(__FILE__, __LINE__, #actual, actual, expected, tolerance)
#define CHECK_TEXT(actual, expected)                                           \
    rdl_test_text(__FILE__, __LINE__, #actual, actual, expected)
#define CHECK_HAS(text, part)                                                  \
    rdl_test_has(__FILE__, __LINE__, #text, text, part)
#define CHECK_STATUS(call, status)                                             \
    rdl_test_status(__FILE__, __LINE__, #call, call, status)
#define CHECK_OK(call) CHECK_STATUS(call, RDL_OK)
#define RDL_TEST_FAIL(...) rdl_test_fail(__FILE__, __LINE__, __VA_ARGS__)

/* Ends the test as skipped, with a reason that the summary shows. */
#define SKIP(...) rdl_test_skip(__VA_ARGS__)

/* A body that every rank runs. */
typedef void (*rdl_test_body)(int rank, int size, void *arg);

/* Once per rank, on size threads of this process; returns when all have. */
void rdl_test_threads(int size, rdl_test_body body, void *arg);

/* Once per rank, in size forked processes; returns when all have ended. One that
 * fails, or dies by a signal, fails the test; the others are given a moment to
 * say what they saw. */
void rdl_test_processes(int size, rdl_test_body body, void *arg);

/* As threads; as processes if RADDLE_TEST_RANKS=processes. For bodies that keep
 * nothing of the ranks in memory. */
void rdl_test_ranks(int size, rdl_test_body body, void *arg);

/* One forked process, for tests in which ranks are killed. It dies with the
 * thread that called this. */
pid_t rdl_test_start(int rank, int size, rdl_test_body body, void *arg);
/* Waits for it: its exit status, or 128 + the signal it died by. */
int rdl_test_wait(pid_t pid);

/* RADDLE_SOAK=1: tests take their long form. */
bool rdl_test_soak(void);

/* RADDLE_EMULATED: an emulator runs us, which ctest knows. It has less room for mappings,
 * and its own idea of /proc/self. */
bool rdl_test_emulated(void);

/* The next of a sequence of random numbers; RADDLE_SEED=n gives the start
 * rdl_test_seed returns, which is 1 without. */
uint64_t rdl_test_seed(void);
uint64_t rdl_test_random(uint64_t *state);

/* What must not be left behind. Texts are one name a line, sorted; too much for
 * the buffer ends in "...". */
typedef struct rdl_test_names {
    char text[4096];
} rdl_test_names;

/* The names in folder that contain part ("": all). A folder that is not there
 * has none. */
rdl_test_names rdl_test_list(const char *folder, const char *part);
/* TMPDIR, else /tmp. */
const char *rdl_test_temp(void);
/* All processes below pid, zombies too, as "PID NAME STATE". */
rdl_test_names rdl_test_descendants(pid_t pid);
/* Descriptors and threads that this process has. */
int rdl_test_descriptors(void);
int rdl_test_thread_count(void);

/* The sentence of the last failure, without the places in C files where calls are made.
 * The thread's, until it asks again. */
const char *rdl_test_detail(void);

/* The functions behind the macros. */
#define RDL_TEST_PRINTF(nth) __attribute__((format(printf, nth, nth + 1)))
_Noreturn void rdl_test_fail(const char *file, int line, const char *format,
                             ...) RDL_TEST_PRINTF(3);
_Noreturn void rdl_test_skip(const char *format, ...) RDL_TEST_PRINTF(1);
void rdl_test_int(const char *file, int line, const char *what, intmax_t actual,
                  intmax_t expected);
void rdl_test_near(const char *file, int line, const char *what, double actual,
                   double expected, double tolerance);
void rdl_test_text(const char *file, int line, const char *what,
                   const char *actual, const char *expected);
void rdl_test_has(const char *file, int line, const char *what,
                  const char *text, const char *part);
void rdl_test_status(const char *file, int line, const char *what,
                     rdl_status actual, rdl_status expected);

#endif
