/*
 * The parts of bench/peers.sh: who puts jobs into a queue and who works on them; mark.c is the job.
 * A job is a number. It is done when its number is in the list LIST, with the time of the monotonic
 * clock in nanoseconds: "NUMBER TIME". A put that was acknowledged is in the list ACKED: "NUMBER
 * BEFORE AFTER". A put that fails, because the queue's server is gone, is repeated. PAUSE_MS is the
 * pause after a put; -1: until the next line is in the list of the environment's DONE.
 *
 * peers amp-put ACKED FROM TO PAUSE_MS BATCH STATE: through `task-queue submit`, BATCH lines at
 * a time. peers amp-work LIST BATCH STATE: claims up to BATCH jobs, syncs, does them, records their
 * ends, syncs. peers bean-put ACKED FROM TO PAUSE_MS BATCH SOCKET, peers bean-work LIST SOCKET:
 * beanstalkd. peers exec-put ACKED FROM TO PAUSE_MS COMMAND...: starts the command for each put,
 * with the number as its last argument.
 */
#include <ctype.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "message/delivery/history/find.h"
#include "message/store/store.h"
#include "message/store/wake.h"
#include "work/git/paths/glob.h"
#include "work/item/claim/queue.h"

enum { BATCH_MAX = 1024, ARGS_MAX = 32 };

static void die(const char *what)
{
    fprintf(stderr, "peers: %s\n", what);
    exit(1);
}

static void die_of(const struct amp_error *err)
{
    fprintf(stderr, "peers: %s: %s\n", err->code, err->what);
    exit(1);
}

static long long now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void sleep_ms(long ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    if (ms > 0)
        nanosleep(&t, NULL);
}

/* ---- lists ---- */

static int list_open(const char *path)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0)
        die(path);
    return fd;
}

static void list_add(int fd, const char *format, ...)
{
    char line[128];
    va_list args;

    va_start(args, format);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (write(fd, line, (size_t)n) != n)
        die("cannot write a list");
}

static long digits_of(const char *text)
{
    const char *at = text ? text + strlen(text) : "";

    while (text && at > text && isdigit((unsigned char)at[-1]))
        at--;
    return strtol(at, NULL, 10);
}

static void done_mark(int list, long number)
{
    list_add(list, "%ld %lld\n", number, now_ns());
}

/* ---- puts ---- */

struct puts {
    int acked;
    long from, to, pause_ms, batch;
    char **args; /* what follows */
    /* Puts n jobs from `first`; false: not all of them were acknowledged, so it is repeated. */
    bool (*put)(struct puts *p, long first, long n);
    FILE *in, *out; /* of the connection; NULL: there is none */
    pid_t pid;
};

static off_t size_of(const char *path)
{
    struct stat st;

    return path && stat(path, &st) == 0 ? st.st_size : 0;
}

/* Ends by itself after 10 s, since a queue may lose the job. */
static void pause_make(long ms, const char *done, off_t size)
{
    sleep_ms(ms);
    for (int i = 0; ms < 0 && i < 20000 && size_of(done) == size; i++)
        usleep(500);
}

static void puts_run(struct puts *p)
{
    const char *done = getenv("DONE");

    for (long i = p->from; i <= p->to; i += p->batch) {
        long n = p->to - i + 1 < p->batch ? p->to - i + 1 : p->batch;
        off_t size = size_of(done);
        long long before = now_ns();
        while (!p->put(p, i, n))
            sleep_ms(20);
        long long after = now_ns();
        for (long k = i; k < i + n; k++)
            list_add(p->acked, "%ld %lld %lld\n", k, before, after);
        pause_make(p->pause_ms, done, size);
    }
}

static void connection_end(struct puts *p)
{
    if (p->in)
        fclose(p->in);
    if (p->out)
        fclose(p->out);
    p->in = p->out = NULL;
    if (p->pid > 0)
        waitpid(p->pid, NULL, 0);
    p->pid = 0;
}

/* Reads n answers, each of which has the text `good`. */
static bool answers_read(struct puts *p, long n, const char *good, const char *good2)
{
    char line[4096];

    for (long i = 0; i < n; i++)
        if (!fgets(line, sizeof line, p->in) || (!strstr(line, good) && !strstr(line, good2))) {
            connection_end(p);
            return false;
        }
    return true;
}

/* ---- this toolkit ---- */

static void submission_write(FILE *out, long n)
{
    char id[64], work[256];

    snprintf(id, sizeof id, "%08lx-0000-4000-8000-%012ld", n, n);
    int size = snprintf(work, sizeof work,
                        "{\"task_id\":\"t-%ld\",\"params\":{},\"scope\":\"job-%ld\"}", n, n);
    fprintf(out,
            "{\"message_id\":\"%s\",\"producer_id\":\"cli\",\"correlation_id\":\"%s\","
            "\"sequence_number\":%ld,\"retry_count\":0,\"message_type\":\"DATA\",\"content_type\":"
            "\"application/json\",\"content_length\":%d,\"payload\":%s}\n",
            id, id, n, size, work);
}

static void submit_start(struct puts *p)
{
    int to[2], from[2];

    if (pipe2(to, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0 || (p->pid = fork()) < 0)
        die("cannot start task-queue");
    if (p->pid == 0) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        execlp("task-dispatch", "task-dispatch", "submit", "--state", p->args[0], "--type",
               "builder", (char *)NULL);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    p->out = fdopen(to[1], "w");
    p->in = fdopen(from[0], "r");
}

/* The same message again is answered as the first time, or as a duplicate. */
static bool amp_put(struct puts *p, long first, long n)
{
    if (!p->in)
        submit_start(p);
    for (long i = first; i < first + n; i++)
        submission_write(p->out, i);
    if (fflush(p->out) != 0) {
        connection_end(p);
        return false;
    }
    return answers_read(p, n, "true", "duplicate_job");
}

struct pool {
    struct amp_store *store;
    struct amp_queue_worker *worker;
    struct amp_order *order;
    struct amp_wake wake;
    struct amp_buf mem;
    int list;
    long batch, n;
    long number[BATCH_MAX];
    char id[BATCH_MAX][AMP_QUEUE_ID_MAX];
};

static int64_t no_limit(void *ctx, struct amp_span type)
{
    (void)ctx, (void)type;
    return 0;
}

static void pool_open(struct pool *w, const char *dir)
{
    const struct amp_store_options how = {
        .lock_timeout_ms = -1, .names = amp_history_names, .actor = "bench"};
    const struct amp_order_options order = {
        .ageing_ms = 600000, .most = no_limit, .patterns = amp_glob_overlap};
    struct amp_queue_settings set;
    struct amp_error err;

    amp_queue_settings_default(&set);
    amp_buf_init(&w->mem, 64u << 20);
    if (amp_store_open(dir, &how, &w->store, &err) < 0 || amp_wake_open(&w->wake, dir, &err) < 0 ||
        amp_queue_worker_open(&w->worker, w->store, &set, "bench", &err) < 0 ||
        amp_order_open(&w->order, w->store, &order, &err) < 0)
        die_of(&err);
}

static void job_step(struct pool *w, long i, uint8_t event)
{
    struct amp_queue_step st = {.id = amp_span_str(w->id[i]),
                                .event = event,
                                .worker = "bench",
                                .actor = "bench",
                                .now_ms = amp_now_ms()};
    struct amp_error err;

    if (amp_queue_worker_step(w->worker, &st, &w->mem, NULL, &err) < 0)
        die_of(&err);
}

static void claims_make(struct pool *w)
{
    static const struct amp_span type = {"builder", 7};
    struct amp_queue_job job;
    struct amp_error err;
    char message[64];
    int rc = 1;

    w->n = 0;
    if (amp_store_begin(w->store, &err) < 0)
        die_of(&err);
    while (w->n < w->batch && rc > 0) {
        rc = amp_queue_worker_claim(w->worker, w->order, &type, 1, &w->mem, &job, NULL, &err);
        if (rc < 0)
            die_of(&err);
        if (rc == 0)
            break;
        amp_span_copy(job.id, w->id[w->n], AMP_QUEUE_ID_MAX);
        amp_span_copy(job.message, message, sizeof message);
        w->number[w->n] = digits_of(message);
        job_step(w, w->n++, AMP_QUEUE_EV_START);
    }
    amp_store_end(w->store);
    if (w->n && amp_store_sync(w->store, &err) < 0)
        die_of(&err);
}

static void ends_record(struct pool *w)
{
    struct amp_error err;

    if (amp_store_begin(w->store, &err) < 0)
        die_of(&err);
    for (long i = 0; i < w->n; i++)
        job_step(w, i, AMP_QUEUE_EV_DONE);
    amp_store_end(w->store);
    if (amp_store_sync(w->store, &err) < 0)
        die_of(&err);
}

static void amp_work(struct pool *w)
{
    const struct amp_wake_for what = {.log = true, .out_fd = -1, .timeout_ms = 1000};
    struct amp_error err;
    unsigned why;

    for (;;) {
        if (amp_wake_drain(&w->wake, &err) < 0)
            die_of(&err);
        claims_make(w);
        for (long i = 0; i < w->n; i++)
            done_mark(w->list, w->number[i]);
        if (w->n)
            ends_record(w);
        else if (amp_wake_wait(&w->wake, &what, &why, &err) < 0)
            die_of(&err);
    }
}

/* ---- beanstalkd ---- */

static int socket_open(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    while (connect(fd, (struct sockaddr *)&a, sizeof a) < 0)
        sleep_ms(10);
    return fd;
}

static void bean_connect(struct puts *p)
{
    int fd = socket_open(p->args[0]);

    p->in = fdopen(fd, "r");
    p->out = fdopen(dup(fd), "w");
}

static bool bean_put(struct puts *p, long first, long n)
{
    char body[32];

    if (!p->in)
        bean_connect(p);
    for (long i = first; i < first + n; i++) {
        int size = snprintf(body, sizeof body, "%ld", i);
        fprintf(p->out, "put 0 0 60 %d\r\n%s\r\n", size, body);
    }
    if (fflush(p->out) != 0) {
        connection_end(p);
        return false;
    }
    return answers_read(p, n, "INSERTED", "INSERTED");
}

static void bean_work(int list, char **args)
{
    struct puts c = {.args = args};
    char line[256], body[64];
    long id;

    for (;; connection_end(&c)) {
        bean_connect(&c);
        for (;;) {
            fputs("reserve\r\n", c.out);
            if (fflush(c.out) != 0 || !fgets(line, sizeof line, c.in) ||
                sscanf(line, "RESERVED %ld", &id) != 1 || !fgets(body, sizeof body, c.in))
                break;
            done_mark(list, strtol(body, NULL, 10));
            fprintf(c.out, "delete %ld\r\n", id);
            if (fflush(c.out) != 0 || !fgets(line, sizeof line, c.in))
                break;
        }
    }
}

/* ---- commands ---- */

static bool exec_put(struct puts *p, long first, long n)
{
    char number[24], *argv[ARGS_MAX + 2];
    int i, status;

    (void)n;
    snprintf(number, sizeof number, "%ld", first);
    for (i = 0; p->args[i] && i < ARGS_MAX; i++)
        argv[i] = p->args[i];
    argv[i] = number;
    argv[i + 1] = NULL;
    pid_t pid = vfork();
    if (pid == 0) {
        execvp(argv[0], argv);
        _exit(127);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 2 ? argv[1] : "";

    signal(SIGPIPE, SIG_IGN);
    if (strcmp(what, "amp-work") == 0 && argc == 5) {
        struct pool w = {.list = list_open(argv[2]), .batch = digits_of(argv[3])};
        if (w.batch < 1 || w.batch > BATCH_MAX)
            return 64;
        pool_open(&w, argv[4]);
        amp_work(&w);
    }
    if (strcmp(what, "bean-work") == 0 && argc == 4)
        bean_work(list_open(argv[2]), argv + 3);
    if (argc < 7)
        return 64;
    struct puts p = {.acked = list_open(argv[2]),
                     .from = digits_of(argv[3]),
                     .to = digits_of(argv[4]),
                     .pause_ms = strtol(argv[5], NULL, 10),
                     .batch = 1,
                     .args = argv + 6,
                     .put = exec_put};
    if (strcmp(what, "exec-put") != 0) {
        p.batch = digits_of(argv[6]);
        p.args = argv + 7;
        p.put = strcmp(what, "bean-put") == 0 ? bean_put : amp_put;
    }
    if (p.batch < 1 || !p.args[0])
        return 64;
    puts_run(&p);
    connection_end(&p);
    return 0;
}
