/* Rows for people and for scripts. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "table.h"

#include <math.h>
#include <stdio.h>

#define SLOWER 1.10

static const char *dtype_name(rdl_dtype dtype)
{
    static const char *const names[] = {
#define X(number, text, ...) [RDL_##number] = #text,
        RDL_DTYPE_MAP(X)
#undef X
    };

    return names[dtype];
}

const char *speed_bytes_text(uint64_t bytes, char text[24])
{
    if (bytes >= 1048576 && bytes % 1048576 == 0)
        snprintf(text, 24, "%lluM", (unsigned long long)bytes / 1048576);
    else if (bytes >= 1024 && bytes % 1024 == 0)
        snprintf(text, 24, "%lluK", (unsigned long long)bytes / 1024);
    else
        snprintf(text, 24, "%llu", (unsigned long long)bytes);
    return text;
}

/* --- bandwidth, as nccl-tests count it ------------------------------------- */

static double data_bytes(const speed_point *p)
{
    double s = (double)p->bytes;

    switch (p->operation) {
    case SPEED_ALL_GATHER:
    case SPEED_ALL_GATHER_V:
    case SPEED_GATHER:
        return s * p->members;
    default:
        return s;
    }
}

/* What part of the data crosses the bus of each rank. */
static double bus_part(const speed_point *p)
{
    double n = p->members;

    switch (p->operation) {
    case SPEED_ALL_REDUCE:
        return 2 * (n - 1) / n;
    case SPEED_BROADCAST:
    case SPEED_REDUCE:
    case SPEED_EXCHANGE:
        return 1;
    default:
        return (n - 1) / n;
    }
}

/* GB/s; 0 where nothing moves. */
static double algorithm_rate(const speed_row *row)
{
    double us = row->results[SPEED_RADDLE].median;

    return us > 0 ? data_bytes(&row->point) / us / 1000 : 0;
}

static double block_quantile(const speed_result *r, double part)
{
    int at = (int)(part * (r->n_blocks - 1) + 0.5);

    return r->n_blocks > 0 ? r->blocks[at] : 0;
}

/* --- for scripts ----------------------------------------------------------- */

static void print_json_text(const char *text)
{
    putchar('"');
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            putchar('\\');
        putchar((unsigned char)*text < ' ' ? ' ' : *text);
    }
    putchar('"');
}

static void print_json_peer(const speed_row *row, int peer)
{
    const speed_result *r = &row->results[peer];

    printf(",\"%s\":", speed_peer_name(peer));
    if (r->n_turns == 0 || r->outcome != SPEED_DONE) {
        print_json_text(r->why);
        return;
    }
    printf("{\"us\":%.3f,\"turns\":%d,\"ratio\":%.3f,\"lower\":%.3f,"
           "\"upper\":%.3f}",
           r->median, r->n_turns, row->ratios[peer].median,
           row->ratios[peer].lower, row->ratios[peer].upper);
}

static void print_json_floor(const speed_row *row)
{
    if (row->floor > 0)
        printf(",\"floor_us\":%.3f,\"fresh_floor_us\":%.3f", row->floor,
               row->fresh_floor);
}

static void print_json_row(const speed_options *o, const speed_row *row)
{
    const speed_point *p = &row->point;
    const speed_result *mine = &row->results[SPEED_RADDLE];

    printf("{\"operation\":\"%s\",\"dtype\":\"%s\",\"ranks\":%d,\"groups\":%d,"
           "\"bytes\":%llu,\"mapped\":%s",
           speed_operation_name(p->operation), dtype_name(p->dtype), p->ranks,
           p->ranks / p->members, (unsigned long long)p->bytes,
           p->mapped ? "true" : "false");
    if (mine->n_turns > 0)
        printf(",\"us\":%.3f,\"p50_us\":%.3f,\"p99_us\":%.3f,\"algbw\":%.3f,"
               "\"busbw\":%.3f",
               mine->median, block_quantile(mine, 0.5),
               block_quantile(mine, 0.99), algorithm_rate(row),
               algorithm_rate(row) * bus_part(p));
    printf(",\"right\":%s", mine->outcome == SPEED_DONE ? "true" : "false");
    if (mine->outcome != SPEED_DONE) {
        printf(",\"why\":");
        print_json_text(mine->why);
    }
    print_json_floor(row);
    for (int i = 1; i < SPEED_PEERS && o->peers; i++)
        print_json_peer(row, i);
    printf("}\n");
}

/* --- for people ------------------------------------------------------------ */

static void print_heading(const speed_options *o, const speed_point *p,
                          int cores)
{
    printf("\n%s", speed_operation_name(p->operation));
    if (p->operation != SPEED_BARRIER)
        printf(" of %s", dtype_name(p->dtype));
    printf(", %d ranks", p->ranks);
    if (p->members < p->ranks)
        printf(" in %d groups", p->ranks / p->members);
    printf(" on %d cores%s\n", cores, p->mapped ? ", mapped" : "");
    printf("%8s %10s %10s %7s %7s %7s", "bytes", "p50 us", "p99 us", "algbw",
           "busbw", "floor");
    for (int i = 1; i < SPEED_PEERS && o->peers; i++)
        printf(" %22s", speed_peer_name(i));
    putchar('\n');
}

/* Its time, raddle's as a part of it, and the quartiles of that. */
static void print_peer(const speed_row *row, int peer)
{
    const speed_result *r = &row->results[peer];
    char text[64] = "-";

    if (r->outcome == SPEED_WRONG)
        snprintf(text, sizeof text, "wrong");
    else if (r->n_turns > 0)
        snprintf(text, sizeof text, "%.4g: %.2f (%.2f-%.2f)", r->median,
                 row->ratios[peer].median, row->ratios[peer].lower,
                 row->ratios[peer].upper);
    printf(" %22s", text);
}

static void print_floor(const speed_row *row)
{
    if (row->floor > 0)
        printf(" %6.2fx", row->results[SPEED_RADDLE].median / row->floor);
    else
        printf(" %7s", "-");
}

static void print_text_row(const speed_options *o, const speed_row *row)
{
    const speed_result *mine = &row->results[SPEED_RADDLE];
    char text[24];

    printf("%8s", speed_bytes_text(row->point.bytes, text));
    if (mine->outcome != SPEED_DONE || mine->n_turns == 0) {
        printf(" %s\n", mine->why);
        return;
    }
    printf(" %10.2f %10.2f %7.2f %7.2f", block_quantile(mine, 0.5),
           block_quantile(mine, 0.99), algorithm_rate(row),
           algorithm_rate(row) * bus_part(&row->point));
    print_floor(row);
    for (int i = 1; i < SPEED_PEERS && o->peers; i++)
        print_peer(row, i);
    putchar('\n');
}

void speed_print_machine(const speed_options *o, const speed_machine *m)
{
    if (o->json)
        printf("{\"cores\":%d,\"line_us\":%.3f,\"switch_us\":%.3f}\n", m->cores,
               m->line_us, m->switch_us);
    else
        printf("%d cores; a line between them takes %.2f us, a switch on one "
               "%.2f us\n",
               m->cores, m->line_us, m->switch_us);
}

void speed_print_row(const speed_options *o, const speed_row *row, bool first,
                     int cores)
{
    if (o->json) {
        print_json_row(o, row);
    } else {
        if (first)
            print_heading(o, &row->point, cores);
        print_text_row(o, row);
    }
    (void)fflush(stdout);
}

/* --- what it comes to ------------------------------------------------------ */

void speed_add(speed_sum *sum, const speed_row *row)
{
    const speed_result *mine = &row->results[SPEED_RADDLE];

    sum->wrong += mine->outcome == SPEED_WRONG;
    for (int i = 1; i < SPEED_PEERS; i++)
        sum->peers_wrong += row->results[i].outcome == SPEED_WRONG;
    sum->broken += mine->outcome == SPEED_BROKEN;
    if (mine->n_turns == 0)
        return;
    sum->points++;
    if (row->best != 0) {
        sum->compared++;
        sum->slower += row->ratios[row->best].lower > SLOWER;
        sum->log_best -= log(row->ratios[row->best].median);
    }
    if (row->ratios[SPEED_GLOO].median > 0) {
        sum->with_gloo++;
        sum->log_gloo -= log(row->ratios[SPEED_GLOO].median);
    }
    if (row->floor > 0) {
        sum->with_floor++;
        sum->log_floor += log(mine->median / row->floor);
    }
}

/* In JSON null where nothing went into it. */
static void print_mean(const speed_options *o, const char *name, double logs,
                       int n)
{
    if (o->json && n == 0)
        printf("\"%s\":null,", name);
    else if (o->json)
        printf("\"%s\":%.3f,", name, exp(logs / n));
    else if (n > 0)
        printf("%-18s %10.2f   of %d points\n", name, exp(logs / n), n);
}

void speed_print_sum(const speed_options *o, const speed_sum *sum)
{
    printf(o->json ? "{" : "\n");
    print_mean(o, "geomean_vs_best", sum->log_best, sum->compared);
    print_mean(o, "geomean_vs_gloo", sum->log_gloo, sum->with_gloo);
    print_mean(o, "geomean_vs_floor", sum->log_floor, sum->with_floor);
    if (o->json)
        printf("\"slower_points\":%d,\"compared_points\":%d,\"points\":%d,"
               "\"left_out\":%d,\"peers_wrong\":%d,\"wrong\":%d}\n",
               sum->slower, sum->compared, sum->points, sum->left_out,
               sum->peers_wrong, sum->wrong);
    else
        printf(
            "%-18s %10d   of %d points\n%-18s %10d\n%-18s %10d\n%-18s %10d\n",
            "slower_points", sum->slower, sum->compared, "left_out",
            sum->left_out, "peers_wrong", sum->peers_wrong, "wrong", sum->wrong);
}
