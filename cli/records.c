/* From records to lines: for people, and as JSON. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "records.h"

#include "look.h"
#include "train/json.h"

#include <inttypes.h>

static const char *const member_states[] = { [RDL_MEMBER_ABSENT] = "absent",
                                             [RDL_MEMBER_JOINED] = "joined",
                                             [RDL_MEMBER_LEFT] = "left",
                                             [RDL_MEMBER_DEAD] = "dead" };

/* What keeps a process from going on. */
static const char *const held_words[] = { [LOOK_RUNNING] = "",
                                          [LOOK_STOPPED] = "stopped",
                                          [LOOK_DUMPING] = "writing its core",
                                          [LOOK_GONE] = "" };

static const char *const call_states[] = { [RDL_CALL_ISSUED] = "issued",
                                           [RDL_CALL_RUNNING] = "running",
                                           [RDL_CALL_WAITING] = "waiting",
                                           [RDL_CALL_ENDED] = "ended" };

/* One rank of a job, while it is printed. */
typedef struct printer {
    FILE *to;
    const rdl_dump *dump;
    int job;
    int rank;
    rdl_dump_rank member;
    const char *held; /* "": by nothing */
    const records_options *options;
} printer;

static bool read_call(const printer *p, uint64_t number, rdl_dump_call *call)
{
    return rdl_dump_read(p->dump, p->job, p->rank, number, call) == RDL_OK;
}

/* Of those that can be read. */
static uint64_t first_shown(const printer *p)
{
    uint64_t first = p->member.oldest, last = p->options->last;

    return p->member.newest - first >= last ? p->member.newest - last + 1
                                            : first;
}

static const char *what_holds(const rdl_dump_rank *m)
{
    bool there = m->state == RDL_MEMBER_JOINED || m->state == RDL_MEMBER_LEFT;

    return held_words[there && m->pid > 0 ? look_at((pid_t)m->pid) : LOOK_RUNNING];
}

/* --- for people -------------------------------------------------------------- */

static void print_what(FILE *to, const rdl_dump_call *c)
{
    fprintf(to, "%s", c->what);
    if (c->call > 0)
        fprintf(to, " #%" PRIu64, c->call);
    if (c->group[0] != '\0')
        fprintf(to, " on %s", c->group);
    if (c->stream[0] != '\0' && c->group[0] != '\0')
        fprintf(to, ", stream '%s'", c->stream);
    if (c->site[0] != '\0')
        fprintf(to, " at %s", c->site);
}

static void print_state(FILE *to, const rdl_dump_call *c)
{
    switch (c->state) {
    case RDL_CALL_ISSUED:
        fprintf(to, "not begun");
        break;
    case RDL_CALL_RUNNING:
        fprintf(to, "under way");
        break;
    case RDL_CALL_WAITING:
        fprintf(to, c->peer < 0 ? "waits" : "waits for rank %d", c->peer);
        break;
    default:
        fprintf(to, c->status == RDL_OK ? "done" : "failed with %s",
                rdl_status_name(c->status));
    }
    if (c->took > 0)
        fprintf(to, " after %.3f s", c->took);
}

static void print_call(const printer *p, const rdl_dump_call *c)
{
    fprintf(p->to, "  %10.3f %10.3f  %7" PRIu64 "  ", c->at, -c->ago, c->number);
    print_what(p->to, c);
    fprintf(p->to, ": ");
    print_state(p->to, c);
    fprintf(p->to, "\n");
}

#define WAITS_SHOWN 4

/* The calls that have not ended, the oldest first: what the rank waits for. */
static void print_waits(const printer *p)
{
    int shown = 0, more = 0;
    rdl_dump_call c;

    for (uint64_t n = p->member.oldest; n <= p->member.newest; n++) {
        if (!read_call(p, n, &c) || c.state == RDL_CALL_ENDED)
            continue;
        if (shown++ >= WAITS_SHOWN) {
            more++;
            continue;
        }
        fprintf(p->to, "  in ");
        print_what(p->to, &c);
        fprintf(p->to, ": ");
        print_state(p->to, &c);
        fprintf(p->to, ", since %.3f s\n", c.ago);
    }
    if (more > 0)
        fprintf(p->to, "  and in %d more\n", more);
}

static void print_member(const printer *p)
{
    const rdl_dump_rank *m = &p->member;

    fprintf(p->to, "rank %d: %s", p->rank, member_states[m->state]);
    if (m->pid > 0)
        fprintf(p->to, ", process %" PRId64, m->pid);
    if (p->held[0] != '\0')
        fprintf(p->to, ", %s", p->held);
    if (m->reason[0] != '\0')
        fprintf(p->to, ", gave up: %s", m->reason);
    if (m->newest > 0)
        fprintf(p->to, ", %" PRIu64 " calls", m->newest);
    if (m->oldest > 1)
        fprintf(p->to, " of which the first %" PRIu64 " are lost",
                m->oldest - 1);
    fprintf(p->to, "\n");
}

static void print_text(const printer *p)
{
    rdl_dump_call c;

    print_member(p);
    if (p->member.newest == 0)
        return;
    print_waits(p);
    fprintf(p->to, "  since start        now   number  call\n");
    for (uint64_t n = first_shown(p); n <= p->member.newest; n++)
        if (read_call(p, n, &c))
            print_call(p, &c);
        else
            fprintf(p->to, "  %21s  %7" PRIu64 "  (written over meanwhile)\n",
                    "", n);
}

/* --- JSON -------------------------------------------------------------------- */

static void open_line(const printer *p, text *line)
{
    line->used = 0;
    json_open(line, NULL);
    json_integer(line, "job", (int64_t)rdl_dump_id(p->dump, p->job));
    json_integer(line, "rank", p->rank);
}

static void close_line(const printer *p, text *line)
{
    json_close(line);
    fprintf(p->to, "%s\n", line->data != NULL ? line->data : "");
}

static void print_member_object(const printer *p, text *line)
{
    const rdl_dump_rank *m = &p->member;

    open_line(p, line);
    json_text(line, "state", member_states[m->state]);
    json_integer(line, "pid", m->pid);
    json_integer(line, "calls", (int64_t)m->newest);
    json_integer(line, "lost", m->oldest > 0 ? (int64_t)m->oldest - 1 : 0);
    json_text(line, "reason", m->reason);
    json_text(line, "held", p->held);
    close_line(p, line);
}

static void print_call_object(const printer *p, text *line,
                              const rdl_dump_call *c)
{
    open_line(p, line);
    json_integer(line, "number", (int64_t)c->number);
    json_number(line, "at", c->at);
    json_number(line, "ago", c->ago);
    json_number(line, "took", c->took);
    json_text(line, "state", call_states[c->state]);
    json_text(line, "status", rdl_status_name(c->status));
    json_integer(line, "peer", c->peer);
    json_text(line, "operation", c->operation);
    json_text(line, "dtype", c->dtype);
    json_text(line, "reduction", c->reduction);
    json_integer(line, "count", (int64_t)c->count);
    json_integer(line, "root", c->root);
    json_integer(line, "call", (int64_t)c->call);
    json_text(line, "group", c->group);
    json_text(line, "stream", c->stream);
    json_text(line, "site", c->site);
    json_integer(line, "blocks", c->blocks);
    close_line(p, line);
}

static void print_json(const printer *p)
{
    text line = { .data = NULL };
    rdl_dump_call c;

    print_member_object(p, &line);
    for (uint64_t n = first_shown(p); p->member.newest > 0; n++)
        if (n > p->member.newest)
            break;
        else if (read_call(p, n, &c))
            print_call_object(p, &line, &c);
    text_free(&line);
}

void records_print(FILE *to, const rdl_dump *dump, int job,
                   const records_options *options)
{
    printer p = { .to = to, .dump = dump, .job = job, .options = options };
    int size = rdl_dump_size(dump, job);

    if (!options->json && rdl_dump_jobs(dump) > 1)
        fprintf(to, "job %" PRIu64 " of %d ranks\n", rdl_dump_id(dump, job),
                size);
    for (p.rank = 0; p.rank < size; p.rank++) {
        if ((options->rank >= 0 && p.rank != options->rank) ||
            rdl_dump_look(dump, job, p.rank, &p.member) != RDL_OK)
            continue;
        p.held = what_holds(&p.member);
        if (options->json)
            print_json(&p);
        else
            print_text(&p);
    }
}
