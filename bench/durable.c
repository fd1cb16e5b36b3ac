/*
 * Durable appends: the store beside SQLite alone and beside a bare append with fdatasync.
 *
 * durable WHAT DIR PROCESSES BATCH COMMITS: each process makes COMMITS records of 512 bytes, BATCH
 * of them between two syncs. Prints commits/s in all, and of the moment when the first process was
 * done how far the last one was in parts of what they all had done on average. no-cache is
 * the store without its cache.
 *
 * durable latency DIR 1 1 COMMITS: one append at a time with a pause before each, in turns with a
 * bare append and fdatasync, which has the same pause before it. Prints the median and the 99th
 * percentile of the store's in units of the median bare one, that one in microseconds, and the 99th
 * percentile of the bare ones.
 */
#include <fcntl.h>
#include <spawn.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <amp/base/num.h>

#include "message/delivery/history/find.h"
#include "message/store/store_int.h"

enum { RECORD = 512, PROCESSES_MAX = 16 };

struct shared {
    volatile int ready, go;
    volatile long done[PROCESSES_MAX];
    volatile long at_first[PROCESSES_MAX];
    volatile int ended;
};

static struct shared *shared;
static int me, processes;

static void die(const char *what)
{
    fprintf(stderr, "durable: %s\n", what);
    exit(1);
}

/* Called after each sync. */
static void progress(long done, long all)
{
    shared->done[me] = done;
    if (done >= all && __sync_bool_compare_and_swap(&shared->ended, 0, 1))
        for (int i = 0; i < processes; i++)
            shared->at_first[i] = shared->done[i];
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void start_line(void)
{
    __sync_fetch_and_add(&shared->ready, 1);
    while (!shared->go)
        usleep(200);
}

static void fill(char json[RECORD + 1])
{
    memset(json, 'x', RECORD);
    memcpy(json, "{\"v\":\"", 6);
    memcpy(json + RECORD - 2, "\"}", 3);
}

static int put(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
               struct amp_error *err)
{
    (void)now;
    (void)err;
    *c = (struct amp_store_change){.event = "sent", .to = "SENT", .json = {ctx, RECORD}};
    return 0;
}

static void run_store(const char *dir, bool no_cache, long batch, long commits)
{
    struct amp_store_options o = {.names = amp_history_names, .lock_timeout_ms = -1};
    struct amp_store *s;
    struct amp_error err;
    char json[RECORD + 1];
    fill(json);
    if (amp_store_open(dir, &o, &s, &err) != 0)
        die(err.what);
    s->cache.off = no_cache;
    start_line();
    for (long i = 0; i < commits;) {
        if (batch > 1 && amp_store_begin(s, &err) != 0)
            die(err.what);
        for (long b = 0; b < batch; b++, i++) {
            char id[48];
            int n = snprintf(id, sizeof id, "dispatch-T-2026-001-%d-%ld", me, i);
            struct amp_store_input in = {"track", {id, (size_t)n}, {json, RECORD}};
            if (amp_store_update(s, AMP_KEY("message", in.id), &in, put, json, NULL, &err) < 0)
                die(err.what);
        }
        if (batch > 1)
            amp_store_end(s);
        if (amp_store_sync(s, &err) != 0)
            die(err.what);
        progress(i, commits);
    }
    amp_store_close(s);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void append_one(struct amp_store *s, long i, char *json)
{
    struct amp_error err;
    char id[48];
    int n = snprintf(id, sizeof id, "dispatch-T-2026-001-%ld", i);
    struct amp_store_input in = {"track", {id, (size_t)n}, {json, RECORD}};
    if (amp_store_update(s, AMP_KEY("message", in.id), &in, put, json, NULL, &err) < 0 ||
        amp_store_sync(s, &err) != 0)
        die(err.what);
}

static void run_latency(const char *dir, long commits)
{
    struct amp_store_options o = {.names = amp_history_names, .lock_timeout_ms = -1};
    struct amp_store *s;
    struct amp_error err;
    char json[RECORD + 1], path[512];
    double *ours = calloc((size_t)commits, sizeof *ours),
           *bare = calloc((size_t)commits, sizeof *bare);
    snprintf(path, sizeof path, "%s-bare", dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    fill(json);
    if (!ours || !bare || fd < 0 || amp_store_open(dir, &o, &s, &err) != 0)
        die("cannot open");
    for (long i = -8; i < commits; i++) { /* the first ones make the files */
        double took[2];
        /* Each after the same pause, and each as often the first of the two. */
        for (int turn = 0; turn < 2; turn++) {
            bool is_ours = (turn ^ i) & 1;
            usleep(500);
            double t = now();
            if (is_ours)
                append_one(s, i, json);
            else if (write(fd, json, RECORD) < 0 || fdatasync(fd) != 0)
                die("cannot write");
            took[is_ours] = now() - t;
        }
        if (i >= 0) {
            ours[i] = took[1];
            bare[i] = took[0];
        }
    }
    qsort(ours, (size_t)commits, sizeof *ours, by_size);
    qsort(bare, (size_t)commits, sizeof *bare, by_size);
    double unit = bare[commits / 2];
    printf("%.3f %.3f %.0f %.3f\n", ours[commits / 2] / unit, ours[commits * 99 / 100] / unit,
           unit * 1e6, bare[commits * 99 / 100] / unit);
    amp_store_close(s);
    close(fd);
    free(ours);
    free(bare);
}

static void sql(sqlite3 *db, const char *text)
{
    if (sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK)
        die(sqlite3_errmsg(db));
}

static void run_sqlite(const char *dir, const char *mode, long batch, long commits)
{
    char path[512], pragma[64], json[RECORD + 1];
    sqlite3 *db;
    sqlite3_stmt *st;
    fill(json);
    snprintf(path, sizeof path, "%s/bench.db", dir);
    snprintf(pragma, sizeof pragma, "PRAGMA journal_mode=%s", mode);
    if (sqlite3_open(path, &db) != SQLITE_OK)
        die("cannot open");
    sqlite3_busy_timeout(db, 60000);
    if (!commits) { /* before the race: two processes cannot change the journal's mode at once */
        sql(db, pragma);
        sql(db, "CREATE TABLE IF NOT EXISTS m(id TEXT PRIMARY KEY,state TEXT,json TEXT,due INT)");
        sqlite3_close(db);
        return;
    }
    sql(db, "PRAGMA synchronous=FULL");
    if (sqlite3_prepare_v2(db, "INSERT INTO m VALUES(?1,'SENT',?2,0)", -1, &st, NULL) != SQLITE_OK)
        die(sqlite3_errmsg(db));
    start_line();
    for (long i = 0; i < commits;) {
        sql(db, "BEGIN IMMEDIATE");
        for (long b = 0; b < batch; b++, i++) {
            char id[48];
            snprintf(id, sizeof id, "dispatch-T-2026-001-%d-%ld", me, i);
            sqlite3_bind_text(st, 1, id, -1, SQLITE_STATIC);
            sqlite3_bind_text(st, 2, json, RECORD, SQLITE_STATIC);
            if (sqlite3_step(st) != SQLITE_DONE)
                die(sqlite3_errmsg(db));
            sqlite3_reset(st);
        }
        sql(db, "COMMIT");
        progress(i, commits);
    }
    sqlite3_finalize(st);
    sqlite3_close(db);
}

/* Reads from fd until n lines came. */
static void read_lines(int fd, long n)
{
    char buf[65536];
    while (n > 0) {
        ssize_t got = read(fd, buf, sizeof buf);
        if (got <= 0)
            die("amp-ack ended early");
        for (ssize_t i = 0; i < got; i++)
            n -= buf[i] == '\n';
    }
}

static void run_track(const char *dir, long batch, long commits)
{
    int in[2], out[2];
    pid_t pid;
    posix_spawn_file_actions_t fa;
    const char *argv[] = {"amp-ack", "track", "--state", dir, NULL};
    char *text = malloc((size_t)batch * 1024);
    if (!text || pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
        die("no pipe");
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_adddup2(&fa, in[0], 0);
    posix_spawn_file_actions_adddup2(&fa, out[1], 1);
    if (posix_spawnp(&pid, "amp-ack", &fa, NULL, (char *const *)(uintptr_t)argv, environ) != 0)
        die("cannot start amp-ack");
    close(in[0]);
    close(out[1]);
    start_line();
    for (long i = 0; i < commits;) {
        size_t n = 0;
        for (long b = 0; b < batch; b++, i++)
            n += (size_t)snprintf(
                text + n, 1024,
                "{\"msg_id\":\"task_dispatch-T-2026-044-%d%08ld\",\"protocol_version\":\"AMP/1.0\","
                "\"type\":\"task_dispatch\",\"from\":\"coordinator\",\"to\":\"executor\","
                "\"task_id\":\"T-2026-044\",\"timestamp\":\"2026-02-26T14:32:07+00:00\","
                "\"requires_ack\":true,\"payload\":{\"description\":\"Rebuild the timer\","
                "\"repo\":\"/srv/repo\",\"branch\":\"feature/x\",\"subtasks\":[{\"subtask_id\":"
                "\"T-2026-044-S1\",\"description\":\"Replace it\",\"estimated_lines\":60}],"
                "\"acceptance_criteria\":[\"tests pass\"],\"risk_level\":\"medium\","
                "\"forbidden_actions\":[],\"tech_constraints\":{}}}\n",
                me + 1, i);
        for (size_t done = 0; done < n;) {
            ssize_t w = write(in[1], text + done, n - done);
            if (w < 0)
                die("cannot write to amp-ack");
            done += (size_t)w;
        }
        read_lines(out[0], batch);
        progress(i, commits);
    }
    close(in[1]);
    int status;
    if (waitpid(pid, &status, 0) != pid || status != 0)
        die("amp-ack failed");
    free(text);
}

/* One write and one fdatasync for each batch; several processes take turns with flock. */
static void run_bare(const char *dir, long batch, long commits)
{
    char path[512];
    char *data = malloc((size_t)batch * RECORD);
    snprintf(path, sizeof path, "%s/bare.ndjson", dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (fd < 0 || !data)
        die("cannot open");
    memset(data, 'x', (size_t)batch * RECORD);
    start_line();
    for (long i = 0; i < commits;) {
        if (write(fd, data, (size_t)batch * RECORD) < 0 || fdatasync(fd) != 0)
            die("cannot write");
        i += batch;
        progress(i, commits);
    }
    close(fd);
    free(data);
}

static long number(const char *text, long max)
{
    int64_t v;
    struct amp_error err;
    if (amp_num_parse(amp_span_str(text), 1, max, &v, &err) != 0)
        die(err.what);
    return (long)v;
}

int main(int argc, char **argv)
{
    if (argc != 6)
        die("usage: durable store|no-cache|track|wal|delete|bare|latency DIR PROCESSES "
            "BATCH COMMITS");
    const char *what = argv[1], *dir = argv[2];
    processes = (int)number(argv[3], PROCESSES_MAX);
    long batch = number(argv[4], 10000), commits = number(argv[5], 10000000);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        die("no memory");
    if (strcmp(what, "latency") == 0) {
        run_latency(dir, commits);
        return 0;
    }
    if (strcmp(what, "wal") == 0 || strcmp(what, "delete") == 0)
        run_sqlite(dir, what, 1, 0);
    for (me = 0; me < processes; me++) {
        if (fork() != 0)
            continue;
        if (strcmp(what, "store") == 0)
            run_store(dir, false, batch, commits);
        else if (strcmp(what, "no-cache") == 0)
            run_store(dir, true, batch, commits);
        else if (strcmp(what, "track") == 0)
            run_track(dir, batch, commits);
        else if (strcmp(what, "bare") == 0)
            run_bare(dir, batch, commits);
        else
            run_sqlite(dir, what, batch, commits);
        exit(0);
    }
    while (shared->ready < processes) {
        if (waitpid(-1, NULL, WNOHANG) > 0)
            die("a process ended early");
        usleep(1000);
    }
    double t = now();
    shared->go = 1;
    int status, bad = 0;
    while (wait(&status) > 0)
        bad |= status;
    t = now() - t;
    long least = commits, all = 0;
    for (int i = 0; i < processes; i++) {
        least = shared->at_first[i] < least ? shared->at_first[i] : least;
        all += shared->at_first[i];
    }
    printf("%.0f %.3f\n", (double)commits * processes / t,
           all ? (double)least * processes / (double)all : 0.0);
    return bad != 0;
}
