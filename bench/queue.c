/*
 * Jobs through the durable queue, without the start of a process, beside SQLite alone doing the
 * same claims.
 *
 * queue queue|sqlite DIR JOBS BATCH: submits JOBS jobs, then claims, starts and ends each of them,
 * BATCH of them between two syncs. SQLite: a row for a job in WAL mode with synchronous=FULL and an
 * index (type, state, priority, seq); BATCH of them in one transaction. Prints jobs/s of all, of
 * the submissions and of the claims.
 *
 * queue pick DIR JOBS: with JOBS waiting jobs of 40 priorities, prints microseconds per pick,
 * milliseconds to read the order at first, and its memory in MiB.
 *
 * queue waiting DIR JOBS: makes these jobs, and prints the id of the last one.
 *
 * queue blocked DIR JOBS SCOPES: the same with SCOPES different scopes, that all overlap those of
 * eight jobs at work: no job can start. Prints milliseconds of a pick, of a second one without a
 * change between them, of the place of the last job, and of the list of all.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/num.h>

#include "message/delivery/history/find.h"
#include "message/store/store.h"
#include "work/git/paths/glob.h"
#include "work/item/order.h"

#define TYPE   "builder"
#define WORKER "w"

static void die(const struct amp_error *err)
{
    fprintf(stderr, "queue: %s: %s\n", err->code, err->what);
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static struct amp_store *store_open(const char *dir)
{
    const struct amp_store_options how = {
        .lock_timeout_ms = -1, .names = amp_history_names, .actor = "bench"};
    struct amp_store *s;
    struct amp_error err;

    if (amp_store_open(dir, &how, &s, &err) < 0)
        die(&err);
    return s;
}

/* How many branches the scopes have; 0: each job has one of its own; -1: a job has a path in all
 * branches. */
static long scope_count, first_job;

static void scope_make(long i, char *out, size_t size)
{
    const char *repo = "{\"repositories\":[\"/srv/repo\"]";

    if (scope_count < 0)
        snprintf(out, size, "%s,\"paths\":[\"p%ld/**\"]}", repo, i);
    else
        snprintf(out, size, "%s,\"branches\":[\"b%ld\"]}", repo, scope_count ? i % scope_count : i);
}

static void job_id(long i, char id[AMP_QUEUE_ID_MAX])
{
    char digest[80], scope[128];
    struct amp_error err;

    snprintf(digest, sizeof digest, "sha256:%064lx", i);
    scope_make(i, scope, sizeof scope);
    if (amp_queue_identity(AMP_SPAN(TYPE), amp_span_str(scope), amp_span_str(digest), AMP_SPAN(""),
                           id, &err) < 0)
        die(&err);
}

static void job_submit(struct amp_store *s, long i)
{
    char id[AMP_QUEUE_ID_MAX], digest[80], line[300], scope[128];
    struct amp_error err;
    int64_t seq;

    snprintf(digest, sizeof digest, "sha256:%064lx", i);
    scope_make(i, scope, sizeof scope);
    job_id(i, id);
    snprintf(line, sizeof line, "{\"message_id\":\"m%ld\",\"payload\":\"%0200d\"}", i, 0);
    const struct amp_queue_job job = {.id = {id, 32},
                                      .type = AMP_SPAN(TYPE),
                                      .protocol = AMP_SPAN("sw4rm"),
                                      .priority = i % AMP_QUEUE_LEVELS + AMP_QUEUE_HIGHEST,
                                      .scope = amp_span_str(scope),
                                      .digest = amp_span_str(digest)};
    const struct amp_queue_submit q = {
        .job = &job, .line = amp_span_str(line), .actor = "bench", .now_ms = amp_now_ms()};
    if (amp_queue_submit(s, &q, &seq, NULL, NULL, &err) < 0)
        die(&err);
}

static void store_batch(struct amp_store *s, bool begin)
{
    struct amp_error err;

    if (begin) {
        if (amp_store_begin(s, &err) < 0)
            die(&err);
        return;
    }
    amp_store_end(s);
    if (amp_store_sync(s, &err) < 0)
        die(&err);
}

static void jobs_submit(struct amp_store *s, long n, long batch)
{
    for (long i = 0; i < n; i += batch) {
        store_batch(s, true);
        for (long k = i; k < i + batch && k < n; k++)
            job_submit(s, first_job + k);
        store_batch(s, false);
    }
}

static int64_t no_limit(void *ctx, struct amp_span type)
{
    (void)ctx, (void)type;
    return 0;
}

static struct amp_order *order_open(struct amp_store *s)
{
    const struct amp_order_options how = {
        .ageing_ms = 600000, .most = no_limit, .patterns = amp_glob_overlap};
    struct amp_order *o;
    struct amp_error err;

    if (amp_order_open(&o, s, &how, &err) < 0)
        die(&err);
    return o;
}

static const struct amp_span type = {TYPE, sizeof TYPE - 1};
static struct amp_order_want want = {
    .worker = WORKER, .types = &type, .n_types = 1, .actor = "bench"};

static void job_run(struct amp_store *s, struct amp_order *o, struct amp_buf *mem)
{
    struct amp_queue_job job;
    struct amp_error err;
    char id[AMP_QUEUE_ID_MAX];

    want.now_ms = amp_now_ms();
    int rc = amp_order_claim(o, &want, mem, &job, NULL, &err);
    if (rc <= 0) {
        if (rc == 0)
            amp_fail_text(&err, AMP_INTERNAL, "none", "no job");
        die(&err);
    }
    amp_span_copy(job.id, id, sizeof id);
    struct amp_queue_step st = {.id = {id, 32},
                                .event = AMP_QUEUE_EV_START,
                                .worker = WORKER,
                                .actor = "bench",
                                .now_ms = want.now_ms};
    if (amp_queue_step(s, &st, mem, NULL, &err) < 0)
        die(&err);
    st.event = AMP_QUEUE_EV_DONE;
    if (amp_queue_step(s, &st, mem, NULL, &err) < 0)
        die(&err);
}

static void queue_run(const char *dir, long n, long batch)
{
    struct amp_store *s = store_open(dir);
    struct amp_buf mem = {.max = 64u << 20};
    double t0 = now();
    jobs_submit(s, n, batch);
    double t1 = now();
    struct amp_order *o = order_open(s);
    for (long i = 0; i < n; i += batch) {
        store_batch(s, true);
        for (long k = i; k < i + batch && k < n; k++)
            job_run(s, o, &mem);
        store_batch(s, false);
    }
    double t2 = now();
    printf("%.0f %.0f %.0f\n", (double)n / (t2 - t0), (double)n / (t1 - t0), (double)n / (t2 - t1));
    amp_order_close(o);
    amp_store_close(s);
    amp_buf_release(&mem);
}

/* Resident memory in MiB. */
static double memory(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    if (!f || fscanf(f, "%*d %ld", &pages) != 1)
        pages = 0;
    if (f)
        fclose(f);
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1048576;
}

static void pick_run(const char *dir, long n)
{
    enum { PICKS = 20000 };
    struct amp_store *s = store_open(dir);
    struct amp_span id;
    struct amp_error err;

    jobs_submit(s, n, 256);
    double before = memory(), t0 = now();
    struct amp_order *o = order_open(s);
    double t1 = now(), after = memory();
    want.now_ms = amp_now_ms();
    for (int i = 0; i < PICKS; i++)
        if (amp_order_pick(o, &want, &id, &err) != 1)
            die(&err);
    double t2 = now();
    printf("%.2f %.0f %.0f\n", (t2 - t1) * 1e6 / PICKS, (t1 - t0) * 1e3, after - before);
    amp_order_close(o);
    amp_store_close(s);
}

static void waiting_make(const char *dir, long n)
{
    struct amp_store *s = store_open(dir);
    char id[AMP_QUEUE_ID_MAX];

    jobs_submit(s, n, 256);
    job_id(n - 1, id);
    puts(id);
    amp_store_close(s);
}

static int place_count(void *ctx, struct amp_span id, const struct amp_order_place *p,
                       struct amp_error *err)
{
    long *n = ctx;

    (void)id, (void)p, (void)err;
    ++*n;
    return 0;
}

static void blocked_run(const char *dir, long n, long scopes)
{
    enum { HELD = 8 };
    struct amp_store *s = store_open(dir);
    struct amp_buf mem = {.max = 64u << 20};
    struct amp_order_place place;
    struct amp_queue_job job;
    struct amp_span id;
    struct amp_error err;
    char last[AMP_QUEUE_ID_MAX];
    long listed = 0;

    scope_count = -1;
    jobs_submit(s, HELD, HELD);
    struct amp_order *o = order_open(s);
    want.now_ms = amp_now_ms();
    for (int i = 0; i < HELD; i++)
        if (amp_order_claim(o, &want, &mem, &job, NULL, &err) != 1)
            die(&err);
    scope_count = scopes;
    first_job = HELD;
    jobs_submit(s, n, 256);
    if (amp_order_look(o, &err) < 0)
        die(&err);
    double t0 = now();
    if (amp_order_pick(o, &want, &id, &err) != 0)
        die(&err);
    double t1 = now();
    if (amp_order_pick(o, &want, &id, &err) != 0)
        die(&err);
    double t2 = now();
    job_id(first_job + n - 1, last);
    if (amp_order_place(o, amp_span_str(last), want.now_ms, &place, &err) != 1)
        die(&err);
    double t3 = now();
    if (amp_order_each(o, want.now_ms, place_count, &listed, &err) < 0 || listed != n)
        die(&err);
    double t4 = now();
    printf("%.1f %.1f %.1f %.1f\n", (t1 - t0) * 1e3, (t2 - t1) * 1e3, (t3 - t2) * 1e3,
           (t4 - t3) * 1e3);
    amp_order_close(o);
    amp_store_close(s);
    amp_buf_release(&mem);
}

/* ---- SQLite alone ---- */

static sqlite3 *db;

static void sql(const char *text)
{
    char *why = NULL;

    if (sqlite3_exec(db, text, NULL, NULL, &why) != SQLITE_OK) {
        fprintf(stderr, "queue: %s: %s\n", text, why);
        exit(1);
    }
}

static sqlite3_stmt *prepare(const char *text)
{
    sqlite3_stmt *st;

    if (sqlite3_prepare_v2(db, text, -1, &st, NULL) != SQLITE_OK) {
        fprintf(stderr, "queue: %s: %s\n", text, sqlite3_errmsg(db));
        exit(1);
    }
    return st;
}

static void run(sqlite3_stmt *st)
{
    int rc;
    while ((rc = sqlite3_step(st)) == SQLITE_ROW)
        ;
    sqlite3_reset(st);
    if (rc != SQLITE_DONE) {
        fprintf(stderr, "queue: %s\n", sqlite3_errmsg(db));
        exit(1);
    }
}

static void sqlite_run(const char *dir, long n, long batch)
{
    char path[4096], line[512];

    snprintf(path, sizeof path, "%s/jobs.db", dir);
    if (sqlite3_open(path, &db) != SQLITE_OK)
        exit(1);
    sql("PRAGMA journal_mode=WAL");
    sql("PRAGMA synchronous=FULL");
    sql("CREATE TABLE job(seq INTEGER PRIMARY KEY, id TEXT UNIQUE, type TEXT, state TEXT,"
        " priority INT, worker TEXT, line TEXT)");
    sql("CREATE INDEX waiting ON job(type, state, priority, seq)");
    sqlite3_stmt *put = prepare("INSERT INTO job(id,type,state,priority,line)"
                                " VALUES(?1,'" TYPE "','QUEUED',?2,?3)");
    sqlite3_stmt *claim = prepare(
        "UPDATE job SET state='CLAIMED', worker='" WORKER "' WHERE seq=(SELECT seq FROM job WHERE"
        " type='" TYPE "' AND state='QUEUED' ORDER BY priority, seq LIMIT 1) RETURNING seq");
    sqlite3_stmt *step = prepare("UPDATE job SET state=?1 WHERE seq=?2 AND worker='" WORKER "'");
    double t0 = now();
    for (long i = 0; i < n; i += batch) {
        sql("BEGIN IMMEDIATE");
        for (long k = i; k < i + batch && k < n; k++) {
            char id[40];
            snprintf(id, sizeof id, "%032lx", k);
            snprintf(line, sizeof line, "{\"message_id\":\"m%ld\",\"payload\":\"%0200d\"}", k, 0);
            sqlite3_bind_text(put, 1, id, -1, SQLITE_TRANSIENT);
            sqlite3_bind_int64(put, 2, k % AMP_QUEUE_LEVELS + AMP_QUEUE_HIGHEST);
            sqlite3_bind_text(put, 3, line, -1, SQLITE_TRANSIENT);
            run(put);
        }
        sql("COMMIT");
    }
    double t1 = now();
    for (long i = 0; i < n; i += batch) {
        sql("BEGIN IMMEDIATE");
        for (long k = i; k < i + batch && k < n; k++) {
            if (sqlite3_step(claim) != SQLITE_ROW)
                exit(1);
            sqlite3_int64 seq = sqlite3_column_int64(claim, 0);
            sqlite3_step(claim);
            sqlite3_reset(claim);
            sqlite3_bind_int64(step, 2, seq);
            sqlite3_bind_text(step, 1, "RUNNING", -1, SQLITE_STATIC);
            run(step);
            sqlite3_bind_text(step, 1, "DONE", -1, SQLITE_STATIC);
            run(step);
        }
        sql("COMMIT");
    }
    double t2 = now();
    printf("%.0f %.0f %.0f\n", (double)n / (t2 - t0), (double)n / (t1 - t0), (double)n / (t2 - t1));
    sqlite3_finalize(put);
    sqlite3_finalize(claim);
    sqlite3_finalize(step);
    sqlite3_close(db);
}

int main(int argc, char **argv)
{
    long n = argc > 3 ? strtol(argv[3], NULL, 10) : 0;
    long batch = argc > 4 ? strtol(argv[4], NULL, 10) : 1;

    if (n < 1 || batch < 1)
        return 64;
    if (strcmp(argv[1], "queue") == 0)
        queue_run(argv[2], n, batch);
    else if (strcmp(argv[1], "sqlite") == 0)
        sqlite_run(argv[2], n, batch);
    else if (strcmp(argv[1], "waiting") == 0)
        waiting_make(argv[2], n);
    else if (strcmp(argv[1], "blocked") == 0)
        blocked_run(argv[2], n, batch);
    else
        pick_run(argv[2], n);
    return 0;
}
