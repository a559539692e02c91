/* A thread and a list. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/queue.h"

#include "base/fault.h"
#include "base/memory.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

typedef struct item {
    rdl_queue_function function;
    void *arg;
    bool always;
    struct item *next;
} item;

struct rdl_queue {
    rdl_purse *purse;
    pthread_t thread;
    pthread_mutex_t lock; /* protects all below; not held while an item runs */
    pthread_cond_t added;
    pthread_cond_t ran;
    item *first;
    item **last;
    uint64_t n_added;
    uint64_t n_ran;
    bool ending;
    rdl_status failure;
    char *cause; /* its sentence; NULL: no memory for it */
    bool told;   /* who waited or asked has heard of it */
};

static void note_failure(rdl_queue *q, rdl_status st)
{
    if (st == RDL_OK || q->failure != RDL_OK)
        return;
    q->failure = st;
    q->cause = rdl_copy_text_for(q->purse, rdl_error_detail(),
                                 strlen(rdl_error_detail()));
}

/* With the lock held. */
static rdl_status report(const rdl_queue *q)
{
    return q->failure == RDL_OK
               ? RDL_OK
               : rdl_fail(q->failure, "%s",
                          q->cause
                              ? q->cause
                              : "the stream has failed; there was no memory "
                                "to note how");
}

static rdl_status tell(rdl_queue *q)
{
    q->told = q->failure != RDL_OK;
    return report(q);
}

/* One item, with the lock held before and after. */
static void run_one(rdl_queue *q)
{
    item *i = q->first;
    rdl_status failed = report(q), st = RDL_OK;

    q->first = i->next;
    if (q->first == NULL)
        q->last = &q->first;
    pthread_mutex_unlock(&q->lock);
    if (failed == RDL_OK || i->always)
        st = i->function(i->arg, failed);
    rdl_free(i);
    pthread_mutex_lock(&q->lock);
    note_failure(q, st);
    q->n_ran++;
    pthread_cond_broadcast(&q->ran);
}

static void *run_all(void *arg)
{
    rdl_queue *q = arg;

    pthread_mutex_lock(&q->lock);
    while (q->first != NULL || !q->ending)
        if (q->first != NULL)
            run_one(q);
        else
            pthread_cond_wait(&q->added, &q->lock);
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

static void init_conditions(rdl_queue *q)
{
    pthread_condattr_t attributes;

    pthread_mutex_init(&q->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&q->added, &attributes);
    pthread_cond_init(&q->ran, &attributes);
    pthread_condattr_destroy(&attributes);
}

static void free_queue(rdl_queue *q)
{
    pthread_cond_destroy(&q->added);
    pthread_cond_destroy(&q->ran);
    pthread_mutex_destroy(&q->lock);
    rdl_free(q->cause);
    rdl_free(q);
}

rdl_status rdl_queue_create(rdl_purse *purse, rdl_queue **out)
{
    rdl_queue *q = rdl_calloc_for(purse, 1, sizeof *q);
    int error;

    if (q == NULL)
        return rdl_fail(RDL_NO_MEMORY, "no memory for a stream");
    q->purse = purse;
    init_conditions(q);
    q->last = &q->first;
    error =
        rdl_fault_os() ? errno : pthread_create(&q->thread, NULL, run_all, q);
    if (error != 0) {
        free_queue(q);
        return rdl_fail_errno(error, "no thread for a stream");
    }
    *out = q;
    return RDL_OK;
}

rdl_status rdl_queue_destroy(rdl_queue *q)
{
    rdl_status st;

    pthread_mutex_lock(&q->lock);
    q->ending = true;
    pthread_cond_signal(&q->added);
    pthread_mutex_unlock(&q->lock);
    pthread_join(q->thread, NULL);
    st = report(q);
    free_queue(q);
    return st;
}

rdl_status rdl_queue_add(rdl_queue *q, rdl_queue_function function, void *arg,
                         bool always)
{
    item *i = rdl_calloc_for(q->purse, 1, sizeof *i);

    if (i == NULL)
        return rdl_fail(RDL_NO_MEMORY, "no memory for a stream's work");
    *i = (item){ .function = function, .arg = arg, .always = always };
    pthread_mutex_lock(&q->lock);
    *q->last = i;
    q->last = &i->next;
    q->n_added++;
    pthread_cond_signal(&q->added);
    pthread_mutex_unlock(&q->lock);
    return RDL_OK;
}

static struct timespec to_timespec(rdl_deadline deadline)
{
    return (struct timespec){ .tv_sec = deadline / 1000000000,
                              .tv_nsec = deadline % 1000000000 };
}

rdl_status rdl_queue_wait(rdl_queue *q, rdl_deadline deadline)
{
    struct timespec until = to_timespec(deadline);
    rdl_status st = RDL_OK;
    uint64_t upto;

    pthread_mutex_lock(&q->lock);
    upto = q->n_added;
    while (q->n_ran < upto && st == RDL_OK)
        if (deadline == RDL_NEVER)
            pthread_cond_wait(&q->ran, &q->lock);
        else if (pthread_cond_timedwait(&q->ran, &q->lock, &until) == ETIMEDOUT &&
                 q->n_ran < upto)
            st = rdl_fail(RDL_TIMEOUT,
                          "the stream has %llu piece%s of work that %s not run "
                          "yet",
                          (unsigned long long)(upto - q->n_ran),
                          upto - q->n_ran == 1 ? "" : "s",
                          upto - q->n_ran == 1 ? "has" : "have");
    if (st == RDL_OK)
        st = tell(q);
    pthread_mutex_unlock(&q->lock);
    return st;
}

rdl_status rdl_queue_query(rdl_queue *q)
{
    rdl_status st;

    pthread_mutex_lock(&q->lock);
    st = q->n_ran < q->n_added ? RDL_AGAIN : tell(q);
    pthread_mutex_unlock(&q->lock);
    return st;
}

bool rdl_queue_has_told(rdl_queue *q)
{
    bool told;

    pthread_mutex_lock(&q->lock);
    told = q->told;
    pthread_mutex_unlock(&q->lock);
    return told;
}

bool rdl_queue_is_mine(const rdl_queue *q)
{
    return pthread_equal(q->thread, pthread_self()) != 0;
}
