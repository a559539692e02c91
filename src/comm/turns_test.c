/* Turns. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/turns.h"

#include "support/test.h"

#include <sched.h>
#include <stdlib.h>

RDL_TEST(a_ticket_has_its_turn_when_those_before_have_passed)
{
    rdl_turns t;
    uint64_t a, b, c;

    rdl_turns_init(&t, NULL);
    CHECK(rdl_turns_idle(&t));
    a = rdl_turns_take(&t);
    b = rdl_turns_take(&t);
    CHECK(!rdl_turns_idle(&t));
    CHECK(!rdl_turns_try(&t, &c));
    CHECK(rdl_turns_is(&t, a) && !rdl_turns_is(&t, b));
    rdl_turns_pass(&t, a);
    CHECK(rdl_turns_is(&t, b));
    rdl_turns_pass(&t, b);
    CHECK(rdl_turns_idle(&t));
    CHECK(rdl_turns_try(&t, &c));
    CHECK(rdl_turns_is(&t, c));
    rdl_turns_pass(&t, c);
    rdl_turns_fini(&t);
}

RDL_TEST(tickets_given_up_are_passed_over_in_any_order)
{
    rdl_turns t;
    uint64_t ticket[20];

    rdl_turns_init(&t, NULL);
    for (int i = 0; i < 20; i++)
        ticket[i] = rdl_turns_take(&t);
    for (int i = 18; i > 1; i--)
        rdl_turns_give_up(&t, ticket[i]);
    CHECK(rdl_turns_is(&t, ticket[0]));
    rdl_turns_give_up(&t, ticket[0]); /* it had the turn */
    CHECK(rdl_turns_is(&t, ticket[1]));
    rdl_turns_pass(&t, ticket[1]);
    CHECK(rdl_turns_is(&t, ticket[19]));
    rdl_turns_pass(&t, ticket[19]);
    CHECK(rdl_turns_idle(&t));
    rdl_turns_fini(&t);
}

typedef struct shared {
    rdl_turns turns;
    int inside; /* only whoever has the turn touches these two */
    uint64_t last;
} shared;

static void take_turns(int rank, int size, void *arg)
{
    shared *s = arg;
    unsigned seed = (unsigned)rank + 1;

    (void)size;
    for (int i = 0; i < 2000; i++) {
        uint64_t ticket = rdl_turns_take(&s->turns);

        if (rand_r(&seed) % 5 == 0) {
            rdl_turns_give_up(&s->turns, ticket);
            continue;
        }
        while (!rdl_turns_is(&s->turns, ticket))
            sched_yield();
        CHECK_INT(s->inside++, 0);
        CHECK(s->last <= ticket);
        s->last = ticket;
        s->inside--;
        rdl_turns_pass(&s->turns, ticket);
    }
}

RDL_TEST(one_thread_at_a_time_has_the_turn_and_none_is_forgotten)
{
    shared s = { .last = 0 };

    rdl_turns_init(&s.turns, NULL);
    rdl_test_threads(4, take_turns, &s);
    CHECK(rdl_turns_idle(&s.turns));
    CHECK_INT(atomic_load(&s.turns.attention), 0);
    rdl_turns_fini(&s.turns);
}
