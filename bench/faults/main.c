/* `raddle bench faults`: random programs with one fault each, and whether every rank
 * is told the truth about it, in time. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "faults.h"

#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WHO "raddle bench faults"
#define FAILED 1
#define USAGE 2
#define RUNS_MOST 100000
#define JOBS_MOST 64
#define PATH_ROOM (PATH_MAX + 64)

static const char help[] =
    "Usage: raddle bench faults [OPTIONS]\n"
    "\n"
    "Runs random programs on 2 to 8 ranks, each with one fault, and looks at "
    "what\n"
    "every other rank is told: the kind of fault, the rank that did it, nobody "
    "else,\n"
    "in time, with the right statuses; and that nothing is left. The faults:\n"
    "\n"
    "  kill, stop, pause     SIGKILL; SIGSTOP for good, and for less than the "
    "limit\n"
    "  exit, error           the process ends; a call of one rank is refused, "
    "and it\n"
    "                        leaves\n"
    "  count, dtype, root    a rank, or half of a group, makes another call\n"
    "  order, splits         two calls swapped; a block of all_to_all_v that "
    "differs\n"
    "  late, slow, never     a rank comes after the limit, within it, or not "
    "at all\n"
    "  cycle                 ranks that wait for each other, all round\n"
    "\n"
    "Options:\n"
    "  --runs N        runs, each in fresh processes, 1 to 100000; default 40\n"
    "  --seed N        of the programs and faults; default 1\n"
    "  --check MODE    default or strict: RADDLE_CHECK of the ranks\n"
    "  --only FAULT    only this one\n"
    "  --run I         only run I, and show all that was printed\n"
    "  --jobs N        runs at a time, 1 to 64; default 4\n"
    "  --json          an object a line\n"
    "  -h, --help      print this text\n"
    "\n"
    "Status: 0 if nothing was wrong, 1 if something was, 2 for wrong usage.\n";

typedef struct options {
    int runs;
    int run;  /* -1: all */
    int only; /* -1: all */
    int jobs;
    uint64_t seed;
    bool strict;
    bool json;
    bool rank; /* this process is one */
} options;

/* Of one fault's runs. */
typedef struct row {
    int runs;
    int right;
    double *ms;
    int n_ms;
} row;

/* All of it; what the workers share is under `lock`. */
typedef struct bench {
    options options;
    char raddle[PATH_ROOM];
    char self[PATH_ROOM];
    pthread_mutex_t lock;
    int next;
    bool broken; /* a run could not be started */
    row rows[FAULTS_KINDS];
    faults_marks sum;
    int runs;
} bench;

/* --- options --------------------------------------------------------------- */

static bool read_number(const char *text, const char *option, long long least,
                        long long most, long long *value)
{
    char *end;

    errno = 0;
    *value = strtoll(text, &end, 10);
    if (errno == 0 && *text != '\0' && *end == '\0' && *value >= least &&
        *value <= most)
        return true;
    fprintf(stderr, WHO ": %s takes a number from %lld to %lld, and got '%s'\n",
            option, least, most, text);
    return false;
}

static bool read_int(const char *option, int least, int most, int *value)
{
    long long number = 0;
    bool good = read_number(optarg, option, least, most, &number);

    *value = (int)number;
    return good;
}

static bool read_kind(int *only)
{
    for (int k = 0; k < FAULTS_KINDS; k++)
        if (strcmp(optarg, faults_kind_names[k]) == 0) {
            *only = k;
            return true;
        }
    fprintf(stderr,
            WHO ": there is no fault '%s'; 'raddle bench faults --help' lists "
                "all\n",
            optarg);
    return false;
}

static bool read_check(bool *strict)
{
    *strict = strcmp(optarg, "strict") == 0;
    if (*strict || strcmp(optarg, "default") == 0)
        return true;
    fprintf(stderr, WHO ": --check takes default or strict, and got '%s'\n",
            optarg);
    return false;
}

static bool read_seed(uint64_t *seed)
{
    long long number = 0;
    bool good = read_number(optarg, "--seed", 0, 1000000000, &number);

    *seed = (uint64_t)number;
    return good;
}

/* One option that getopt_long has found; false: it is wrong, and that was said. */
static bool take_option(int c, const char *given, options *o)
{
    switch (c) {
    case 'r':
        return read_int("--runs", 1, RUNS_MOST, &o->runs);
    case 'i':
        return read_int("--run", 0, RUNS_MOST, &o->run);
    case 'n':
        return read_int("--jobs", 1, JOBS_MOST, &o->jobs);
    case 's':
        return read_seed(&o->seed);
    case 'o':
        return read_kind(&o->only);
    case 'c':
        return read_check(&o->strict);
    case 'j':
        return o->json = true;
    case 'k':
        return o->rank = true;
    case ':':
        fprintf(stderr, WHO ": '%s' needs a value\n", given);
        return false;
    default:
        fprintf(stderr,
                WHO ": there is no option '%s'; 'raddle bench faults --help' "
                    "lists all\n",
                given);
        return false;
    }
}

/* -1: go on; else the exit status. */
static int read_options(int argc, char **argv, options *o)
{
    static const struct option known[] = {
        { "runs", required_argument, NULL, 'r' },
        { "run", required_argument, NULL, 'i' },
        { "jobs", required_argument, NULL, 'n' },
        { "seed", required_argument, NULL, 's' },
        { "only", required_argument, NULL, 'o' },
        { "check", required_argument, NULL, 'c' },
        { "json", no_argument, NULL, 'j' },
        { "rank", no_argument, NULL, 'k' }, /* what a run starts */
        { "help", no_argument, NULL, 'h' },
        { 0 },
    };
    int c;

    opterr = 0;
    while ((c = getopt_long(argc, argv, "+:h", known, NULL)) != -1) {
        if (c == 'h') {
            fputs(help, stdout);
            return fflush(stdout) == 0 ? 0 : FAILED;
        }
        if (!take_option(c, argv[optind - 1], o))
            return USAGE;
    }
    if (optind == argc)
        return -1;
    fprintf(stderr, WHO ": takes no arguments, and got '%s'\n", argv[optind]);
    return USAGE;
}

/* --- the command ----------------------------------------------------------- */

/* Where it is, from the folder of this program: in a build and installed. */
static bool find_raddle(bench *b)
{
    static const char *const places[] = { "../cli/raddle", "../../bin/raddle" };
    ssize_t n = readlink("/proc/self/exe", b->self, PATH_MAX - 1);
    const char *slash;
    int folder;

    if (n < 0)
        n = 0;
    b->self[n] = '\0';
    slash = strrchr(b->self, '/');
    folder = slash != NULL ? (int)(slash - b->self) : 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        n = snprintf(b->raddle, sizeof b->raddle, "%.*s/%s", folder, b->self,
                     places[i]);
        if (n < (ssize_t)sizeof b->raddle && access(b->raddle, X_OK) == 0)
            return true;
    }
    fprintf(stderr, WHO ": there is no command raddle near '%s'\n", b->self);
    return false;
}

/* --- runs ------------------------------------------------------------------ */

static faults_kind kind_of(const options *o, int run)
{
    return o->only >= 0 ? (faults_kind)o->only
                        : (faults_kind)(run % FAULTS_KINDS);
}

static void add_marks(bench *b, int run, faults_kind kind, int ranks,
                      const faults_marks *m)
{
    row *r = &b->rows[kind];

    b->runs++;
    r->runs++;
    r->right += m->why[0] == '\0';
    if (m->ms >= 0)
        r->ms[r->n_ms++] = m->ms;
    b->sum.wrong_verdict += m->wrong_verdict;
    b->sum.innocent_named += m->innocent_named;
    b->sum.late += m->late;
    b->sum.wrong_status += m->wrong_status;
    b->sum.left_behind += m->left_behind;
    if (m->why[0] != '\0')
        fprintf(stderr, WHO ": run %d (%s, %d ranks): %s\n", run,
                faults_kind_names[kind], ranks, m->why);
}

static bool run_one(bench *b, int run)
{
    faults_setting s = { .raddle = b->raddle,
                         .self = b->self,
                         .seed = b->options.seed,
                         .run = run,
                         .kind = kind_of(&b->options, run),
                         .strict = b->options.strict };
    faults_program *program = malloc(sizeof *program);
    faults_end *end = malloc(sizeof *end);
    bool good = program != NULL && end != NULL && faults_run(&s, end);
    faults_marks marks;

    if (good) {
        faults_make(program, s.seed, s.run, s.kind);
        faults_judge(program, end, s.strict, &marks);
        pthread_mutex_lock(&b->lock);
        add_marks(b, run, s.kind, program->ranks, &marks);
        pthread_mutex_unlock(&b->lock);
        if (b->options.run >= 0)
            fputs(end->output, stderr);
        free(end->output);
    }
    free(program);
    free(end);
    return good;
}

/* The next one that nobody has begun; -1: there is none. */
static int take_run(bench *b)
{
    int run = -1;

    pthread_mutex_lock(&b->lock);
    if (!b->broken && b->next < b->options.runs)
        run = b->next++;
    pthread_mutex_unlock(&b->lock);
    return run;
}

static void *work(void *arg)
{
    bench *b = arg;
    int run;

    while ((run = take_run(b)) >= 0)
        if (!run_one(b, run)) {
            pthread_mutex_lock(&b->lock);
            b->broken = true;
            pthread_mutex_unlock(&b->lock);
        }
    return NULL;
}

static void run_all(bench *b)
{
    pthread_t workers[JOBS_MOST];
    int started = 0;

    while (started < b->options.jobs - 1 &&
           pthread_create(&workers[started], NULL, work, b) == 0)
        started++;
    work(b);
    for (int i = 0; i < started; i++)
        pthread_join(workers[i], NULL);
}

/* --- what has a name in the system ----------------------------------------- */

static int count_names(const char *folder)
{
    DIR *d = opendir(folder);
    const struct dirent *e;
    int n = 0;

    while (d != NULL && (e = readdir(d)) != NULL)
        n += strstr(e->d_name, "raddle") != NULL;
    if (d != NULL)
        closedir(d);
    return n;
}

/* Files of raddle's, and sockets that have a name. */
static int count_traces(void)
{
    int n = count_names("/dev/shm") + count_names("/tmp");
    FILE *f = fopen("/proc/net/unix", "r");
    char line[512];

    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        n += strstr(line, "raddle") != NULL;
    if (f != NULL)
        fclose(f);
    return n;
}

/* What is there more than before; other jobs of the machine get a while to end. */
static int traces_since(int before)
{
    const struct timespec nap = { .tv_nsec = 100000000 };
    int more = count_traces() - before;

    for (int tries = 0; tries < 50 && more > 0; tries++) {
        nanosleep(&nap, NULL);
        more = count_traces() - before;
    }
    return more > 0 ? more : 0;
}

/* --- the table ------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void print_times(const row *r, const char *format, const char *none)
{
    if (r->n_ms > 0)
        printf(format, r->ms[r->n_ms / 2], r->ms[r->n_ms - 1]);
    else
        printf("%s", none);
}

static void print_row(faults_kind kind, const row *r, bool json)
{
    if (json) {
        printf("{\"fault\":\"%s\",\"runs\":%d,\"right\":%d,",
               faults_kind_names[kind], r->runs, r->right);
        print_times(r, "\"ms\":[%.3f,%.3f]}\n", "\"ms\":null}\n");
        return;
    }
    printf("%-8s %6d %6d", faults_kind_names[kind], r->runs, r->right);
    print_times(r, " %10.1f %10.1f\n", "\n");
}

static void print_sum(const bench *b)
{
    printf(b->options.json
               ? "{\"runs\":%d,\"wrong_verdict\":%d,\"innocent_named\":%d,"
                 "\"late\":%d,\"wrong_status\":%d,\"left_behind\":%d}\n"
               : "\n%d runs: %d wrong verdicts, %d with innocents named, %d "
                 "late, %d with wrong statuses, %d left something behind\n",
           b->runs, b->sum.wrong_verdict, b->sum.innocent_named, b->sum.late,
           b->sum.wrong_status, b->sum.left_behind);
}

static bool is_clean(const faults_marks *m)
{
    return m->wrong_verdict + m->innocent_named + m->late + m->wrong_status +
               m->left_behind ==
           0;
}

/* The exit status. */
static int report(bench *b)
{
    if (!b->options.json)
        printf("%-8s %6s %6s %10s %10s\n", "fault", "runs", "right",
               "ms: median", "most");
    for (int k = 0; k < FAULTS_KINDS; k++) {
        row *r = &b->rows[k];

        if (r->runs == 0)
            continue;
        qsort(r->ms, (size_t)r->n_ms, sizeof *r->ms, by_size);
        print_row((faults_kind)k, r, b->options.json);
    }
    print_sum(b);
    return fflush(stdout) == 0 && !b->broken && is_clean(&b->sum) ? 0 : FAILED;
}

/* --- main ------------------------------------------------------------------ */

static int be_rank(const options *o)
{
    faults_program *program = malloc(sizeof *program);
    int code = FAILED;

    if (program != NULL) {
        faults_make(program, o->seed, o->run, kind_of(o, o->run));
        code = faults_rank(program);
    }
    free(program);
    return code;
}

static bool make_room(bench *b)
{
    bool good = true;

    for (int k = 0; k < FAULTS_KINDS; k++) {
        b->rows[k].ms = calloc((size_t)b->options.runs, sizeof(double));
        good &= b->rows[k].ms != NULL;
    }
    if (!good)
        fprintf(stderr, WHO ": no memory\n");
    return good;
}

static int measure(bench *b)
{
    int traces = count_traces(), code = FAILED;

    pthread_mutex_init(&b->lock, NULL);
    if (b->options.run >= 0) {
        b->next = b->options.run;
        b->options.runs = b->options.run + 1;
    }
    if (find_raddle(b) && make_room(b)) {
        run_all(b);
        b->sum.left_behind += traces_since(traces);
        code = report(b);
    }
    for (int k = 0; k < FAULTS_KINDS; k++)
        free(b->rows[k].ms);
    pthread_mutex_destroy(&b->lock);
    return code;
}

int main(int argc, char **argv)
{
    options o = { .runs = 40, .run = -1, .only = -1, .jobs = 4, .seed = 1 };
    int code = read_options(argc, argv, &o);
    bench *b;

    if (code >= 0)
        return code;
    if (o.rank)
        return be_rank(&o);
    b = calloc(1, sizeof *b);
    if (b == NULL)
        return FAILED;
    b->options = o;
    code = measure(b);
    free(b);
    return code;
}
