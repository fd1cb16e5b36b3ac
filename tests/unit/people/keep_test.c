/*
 * Final records leave the live set: what is final and old goes with its segment, what is needed or
 * open stays, duplicates are found for a time, and a year of work stays within a bound. The clock
 * is the test's own.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../tap.h"
#include "../tree.h"
#include "message/delivery/inbox/inbox.h"
#include "message/delivery/ledger/ledger.h"
#include "message/store/store.h"
#include "people/keep.h"
#include "work/item/own.h"
#include "work/loop/tidy.h"

enum { DAY_S = 86400, SEGMENT = 65536 };

static struct amp_error err;
static time_t today = 1767225600; /* 2026-01-01 */

/* Instead of the C library's. */
int clock_gettime(clockid_t id, struct timespec *ts)
{
    static long tick;
    (void)id;
    *ts = (struct timespec){.tv_sec = today, .tv_nsec = (tick = (tick + 1000) % 1000000000)};
    return 0;
}

static struct amp_store *store_open(const char *dir)
{
    const struct amp_store_options o = {.lock_timeout_ms = 5000,
                                        .segment_bytes = SEGMENT,
                                        .keep_segments = 4,
                                        .keep = amp_keep_all,
                                        .actor = "w"};
    struct amp_store *s = NULL;
    if (amp_store_open(dir, &o, &s, &err) != 0) {
        printf("Bail out! %s: %s\n", err.code, err.what);
        exit(1);
    }
    return s;
}

struct put {
    const char *to, *json;
    int64_t due;
    bool found, forgotten;
};

static int on_put(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                  struct amp_error *e)
{
    struct put *p = ctx;
    (void)e;
    p->found = now->found;
    p->forgotten = now->forgotten;
    if (!p->to)
        return 1;
    *c = (struct amp_store_change){
        .event = "set", .to = p->to, .json = amp_span_str(p->json), .due_ms = p->due};
    return 0;
}

static struct put put(struct amp_store *s, const char *kind, const char *id, const char *to,
                      const char *json)
{
    struct put p = {.to = to, .json = json};
    if (amp_store_update(s, AMP_KEY(kind, amp_span_str(id)), NULL, on_put, &p, NULL, &err) != 0)
        printf("# put %s: %s %s\n", id, err.code, err.what);
    return p;
}

static bool has(struct amp_store *s, const char *kind, const char *id)
{
    return put(s, kind, id, NULL, "").found;
}

static uint64_t count(struct amp_store *s, const char *kind)
{
    uint64_t n = 0;
    if (amp_store_count(s, kind, &n, &err) != 0)
        printf("# count: %s %s\n", err.code, err.what);
    return n;
}

static int on_tally(void *ctx, struct amp_span kind, struct amp_span state, uint64_t n,
                    struct amp_error *e)
{
    (void)kind;
    (void)state;
    (void)e;
    *(uint64_t *)ctx += n;
    return 0;
}

static uint64_t tally(struct amp_store *s, const char *kind)
{
    uint64_t n = 0;
    if (amp_store_tally(s, kind, on_tally, &n, &err) != 0)
        printf("# tally: %s %s\n", err.code, err.what);
    return n;
}

/* Frames of other records, until every segment of today is gone. */
static void turn_over(struct amp_store *s)
{
    char pad[2048];
    snprintf(pad, sizeof pad, "{\"pad\":\"%1900s\"}", "");
    for (int i = 0; i < 400; i++)
        put(s, "thing", "busy", "SET", pad);
}

static void age(struct amp_store *s, int days)
{
    today += (time_t)days * DAY_S;
    turn_over(s);
}

static long log_bytes(const char *dir, int *segments)
{
    char path[300];
    struct stat st;
    long bytes = 0;
    *segments = 0;
    snprintf(path, sizeof path, "%s/log", dir);
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (!strstr(e->d_name, ".ndjson"))
            continue;
        ++*segments;
        bytes += fstatat(dirfd(d), e->d_name, &st, 0) == 0 ? (long)st.st_size : 0;
    }
    closedir(d);
    return bytes;
}

#define MSG "{\"task\":\"T-2026-001\"}"

static void test_leaving(const char *dir)
{
    struct amp_store *s = store_open(dir);
    put(s, "message", "done", "FULFILLED", "{\"task\":\"\"}");
    put(s, "message", "quiet", "SENT", "{\"task\":\"\"}");
    put(s, "message", "queued", "READ", "{\"task\":\"\",\"supervised\":true}");
    put(s, "message", "of-task", "FULFILLED", MSG);
    put(s, "message", "lettered", "TIMED_OUT", "{\"task\":\"\"}");
    put(s, "dead", "lettered", "DEAD", "{}");
    put(s, "message", "requeued", "FULFILLED", "{\"task\":\"\"}");
    put(s, "dead", "requeued", "REQUEUED", "{}");
    put(s, "message", "a.b/c", "REJECTED", "{\"task\":\"\"}");
    struct put due = {.to = "TIMED_OUT", .json = "{}", .due = 1};
    amp_store_update(s, AMP_KEY("message", AMP_SPAN("due")), NULL, on_put, &due, NULL, &err);
    put(s, "task", "T-2026-001", "rework", "{}");
    put(s, "task", "T-2026-002", "done", "{}");
    put(s, "base", "T-2026-001", "KNOWN", "{}");
    put(s, "landing", "T-2026-002", "landed", "{}");
    put(s, "approval", "c0ffee", "APPROVED",
        "{\"verdicts\":[{\"task\":\"T-2026-002\"},{\"task\":\"T-2026-001\"}]}");
    put(s, "approval", "beef", "APPROVED", "{\"verdicts\":[{\"task\":\"T-2026-002\"}]}");
    put(s, "binding", "gone", "UNBOUND", "{}");
    put(s, "binding", "there", "BOUND_HOME", "{}");
    put(s, "escalation", "e1", "DECIDED", "{\"task\":\"\"}");
    put(s, "escalation", "e2", "OPEN", "{\"task\":\"\"}");

    age(s, 29);
    TAP_OK(has(s, "message", "done"), "a final record stays for its days");
    age(s, 2);
    TAP_OK(!has(s, "message", "done"), "then it leaves the live set");
    TAP_OK(!has(s, "message", "quiet"), "as a message that waits for nothing does,");
    TAP_OK(!has(s, "message", "a.b/c"), "and one whose key is encoded");
    TAP_OK(has(s, "message", "queued"), "supervised work stays");
    TAP_OK(has(s, "message", "due"), "and what has a deadline,");
    TAP_OK(has(s, "message", "of-task"), "and the message of an open task,");
    TAP_OK(has(s, "message", "lettered") && has(s, "dead", "lettered"),
           "and one with an open dead letter");
    TAP_OK(!has(s, "message", "requeued") && !has(s, "dead", "requeued"), "not with a closed one");
    TAP_OK(has(s, "task", "T-2026-001") && has(s, "base", "T-2026-001"), "an open task stays");
    TAP_OK(!has(s, "task", "T-2026-002") && !has(s, "landing", "T-2026-002"), "a done one goes");
    TAP_OK(has(s, "approval", "c0ffee"), "an approval stays while one of its tasks is open");
    TAP_OK(!has(s, "approval", "beef"), "no longer");
    TAP_OK(!has(s, "binding", "gone") && has(s, "binding", "there"), "a binding that ended goes");
    TAP_OK(!has(s, "escalation", "e1") && has(s, "escalation", "e2"), "and a decided question");
    TAP_OK(put(s, "message", "done", NULL, "").forgotten, "the key is remembered");
    TAP_OK(!put(s, "message", "new", NULL, "").forgotten, "another is not");
    TAP_OK(!put(s, "binding", "gone", NULL, "").forgotten, "nor one without duplicates");
    TAP_INT((int64_t)tally(s, "message"), (int64_t)count(s, "message"), "the counters are right");
    TAP_INT((int64_t)count(s, "message"), 4, "four messages are left");

    put(s, "task", "T-2026-001", "done", "{}");
    age(s, 31);
    TAP_OK(!has(s, "message", "of-task") && !has(s, "base", "T-2026-001"),
           "with its task all that is of it goes");
    amp_store_close(s);
    tree_remove_file(dir, "index.db");
    s = store_open(dir);
    TAP_OK(!has(s, "message", "done") && put(s, "message", "done", NULL, "").forgotten,
           "an index made again says the same");
    TAP_INT((int64_t)count(s, "message"), 3, "of all of them");
    age(s, 20);
    TAP_OK(put(s, "message", "done", NULL, "").forgotten, "for the days of duplicates");
    age(s, 20);
    TAP_OK(!put(s, "message", "done", NULL, "").forgotten, "and no longer");
    amp_store_close(s);
}

/* Each subject that must find a duplicate of what left the live set. */
static void test_duplicates(const char *dir)
{
    struct amp_span to[] = {{"ann", 3}};
    const struct amp_view v = {.protocol = AMP_PROTO_SW4RM,
                               .kind = AMP_KIND_OTHER,
                               .line = AMP_SPAN("{\"message_id\":\"m-1\"}"),
                               .type = AMP_SPAN("DATA"),
                               .id = AMP_SPAN("m-1"),
                               .from = AMP_SPAN("bob"),
                               .to = to,
                               .n_to = 1};
    const struct amp_inbox_options opt = {.actor = "route"};
    const struct amp_own_take take = {.owner = "w",
                                      .type = "w",
                                      .protocol = "AMP",
                                      .msg_id = AMP_SPAN("m-2"),
                                      .task = AMP_SPAN("T-1"),
                                      .line = AMP_SPAN("{}"),
                                      .now_ms = today * 1000};
    enum amp_store_outcome outcome = AMP_STORE_COMMITTED;
    enum amp_inbox_put how = AMP_INBOX_PLACED;
    struct amp_store *s = store_open(dir);
    struct put end = {.to = "READ", .json = "{\"msg_id\":\"m-1\"}"};
    put(s, "message", "m-1", "FULFILLED", "{}");
    amp_store_update(s, AMP_KEY("inbox", to[0], v.id), NULL, on_put, &end, NULL, &err);
    end = (struct put){.to = "DONE", .json = "{\"owner\":\"w\",\"task\":\"T-1\"}"};
    amp_store_update(s, AMP_KEY("queue", AMP_SPAN("w"), AMP_SPAN("m-2")), NULL, on_put, &end, NULL,
                     &err);
    age(s, 31);
    TAP_OK(!has(s, "message", "m-1") && count(s, "inbox") == 0 && count(s, "queue") == 0,
           "a message, its delivery and a job left the live set");
    TAP_OK(amp_message_record(s, &v, today * 1000, &outcome, &err) == 0 &&
               outcome == AMP_STORE_REDELIVERED,
           "the message is not recorded again,");
    TAP_OK(amp_inbox_put(s, to[0], &v, &opt, today * 1000, NULL, NULL, &how, &err) == 0 &&
               how == AMP_INBOX_KNOWN,
           "the inbox does not hand it over again,");
    TAP_OK(!has(s, "message", "m-1") && count(s, "inbox") == 0, "there is no new record,");
    TAP_INT(amp_own_take(s, &take, &outcome, &err), -1, "and the job is not taken again:");
    TAP_STR(err.code, "duplicate_msg_id", "it is a duplicate");
    age(s, 61);
    TAP_OK(amp_inbox_put(s, to[0], &v, &opt, today * 1000, NULL, NULL, &how, &err) == 0 &&
               how == AMP_INBOX_PLACED,
           "after the days of duplicates it is a new message");
    amp_store_close(s);
}

/* A record that changes while it is about to leave, and one that is made again, stay. */
static void test_again(const char *dir)
{
    struct amp_store *s = store_open(dir), *other = store_open(dir);
    put(s, "task", "T-1", "done", "{}");
    put(s, "binding", "x", "UNBOUND", "{}");
    age(s, 31);
    TAP_OK(!has(other, "binding", "x"), "another handle sees that it left");
    put(other, "binding", "x", "BOUND_HOME", "{}");
    age(s, 31);
    TAP_OK(has(s, "binding", "x"), "a record that is made again lives");
    TAP_OK(!has(other, "task", "T-1"), "the other one does not");
    put(s, "binding", "x", "UNBOUND", "{}");
    today += 20 * DAY_S;
    turn_over(other);
    today += 20 * DAY_S;
    put(other, "binding", "x", "UNBOUND", "{\"again\":true}");
    turn_over(s);
    TAP_OK(has(other, "binding", "x"), "its last change counts, not the copy");
    amp_store_close(other);
    amp_store_close(s);
}

/* A year: each day some messages, deliveries and a task; after the first months the directory does
 * not grow any more. */
static void test_year(const char *dir)
{
    long quarter = 0, most = 0, bytes;
    int segments;
    struct amp_store *s = store_open(dir);
    for (int day = 0; day < 365; day++) {
        char id[32];
        today += DAY_S;
        amp_store_begin(s, &err);
        for (int i = 0; i < 20; i++) {
            snprintf(id, sizeof id, "m-%d-%d", day, i);
            put(s, "message", id, "SENT", "{\"task\":\"\",\"line\":\"0123456789\"}");
            put(s, "inbox", id, "READ", "{}");
            put(s, "message", id, "FULFILLED", "{\"task\":\"\",\"line\":\"0123456789\"}");
        }
        snprintf(id, sizeof id, "T-%d", day);
        put(s, "task", id, "done", "{}");
        amp_store_end(s);
        bytes = log_bytes(dir, &segments);
        quarter = day < 180 && bytes > quarter ? bytes : quarter;
        most = day >= 180 && bytes > most ? bytes : most;
    }
    TAP_OK(most < quarter + 2L * SEGMENT, "the second half of a year needs no more than the first");
    printf("# %ld and %ld bytes, %d segments\n", quarter, most, segments);
    TAP_OK(count(s, "message") < 45 * 20, "and the messages of 45 days live at most");
    TAP_OK(count(s, "message") >= 30 * 20, "and of 30 at least");
    TAP_OK(count(s, "task") < 45, "as many days of tasks");
    TAP_OK(has(s, "message", "m-364-1") && !has(s, "message", "m-300-1"), "the newest of them");
    TAP_OK(put(s, "message", "m-300-1", NULL, "").forgotten, "a duplicate is found");
    TAP_OK(!put(s, "message", "m-200-1", NULL, "").forgotten, "for 90 days");
    amp_store_close(s);
}

/* Makes STATE/PATH, and each directory in it, with that age. */
static void make_old(const char *dir, const char *name, int days, bool is_file)
{
    char path[300];
    const struct timespec at[2] = {{.tv_sec = today - (time_t)days * DAY_S},
                                   {.tv_sec = today - (time_t)days * DAY_S}};
    snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = is_file ? open(path, O_WRONLY | O_CREAT, 0600) : -1;
    if (fd >= 0)
        close(fd);
    if (!is_file)
        mkdir(path, 0700);
    utimensat(AT_FDCWD, path, at, 0);
}

static bool there(const char *dir, const char *name)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return access(path, F_OK) == 0;
}

static void test_files(const char *dir)
{
    static const struct {
        const char *name;
        int days;
        bool is_file;
    } files[] = {
        {"run", 0, false},
        {"run/T-done/1", 31, true},
        {"run/T-done", 31, false},
        {"run/T-gone/deep/f", 31, true},
        {"run/T-gone/deep", 31, false},
        {"run/T-gone", 31, false},
        {"run/T-open", 31, false},
        {"run/T-new", 29, false},
        {"run/T-kept/new", 29, true},
        {"run/T-kept", 31, false},
        {"run/T-half", 31, false},
        {"run/.unfinished", 0, false},
        {"run/.unfinished/T-half.1", 0, true},
        {"run/loop.spool", 31, false},
        {"run/pin.x", 31, true},
        {"tasks", 0, false},
        {"tasks/T-done.json", 31, true},
        {"tasks/T-gone.json", 31, true},
    };
    static const char *const first[] = {"run/T-done", "run/T-gone", "run/T-gone/deep",
                                        "run/T-kept"};
    static const struct amp_deadline_ctx ctx = {.actor = "w"};
    uint32_t done = 0;
    int64_t due = 0;
    struct amp_store *s = store_open(dir);
    put(s, "task", "T-done", "done", "{}");
    put(s, "task", "T-open", "rework", "{}");
    TAP_OK(amp_tidy_due(s, &ctx, &due, &err) == 0 && due == 0, "there is nothing to remove");
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof first / sizeof *first; i++)
            make_old(dir, i ? first[i] : "run", 31, false), make_old(dir, first[i], 31, false);
        for (size_t i = 0; i < sizeof files / sizeof *files; i++)
            make_old(dir, files[i].name, files[i].days, files[i].is_file);
    }
    TAP_OK(amp_tidy_due(s, &ctx, &due, &err) == 0 && due / 1000 == today - 5, "now there is");
    TAP_INT(amp_tidy_run(s, today * 1000, "w", &done, &err), 0, "it is done");
    TAP_INT(done, 2, "for two directories:");
    TAP_OK(!there(dir, "run/T-done") && !there(dir, "run/T-gone"), "of ended and unknown tasks");
    TAP_OK(there(dir, "run/T-open") && there(dir, "run/T-new") && there(dir, "run/T-kept") &&
               there(dir, "run/T-half"),
           "not of an open task, and not where something is newer, or unfinished");
    TAP_OK(there(dir, "run/loop.spool") && there(dir, "run/pin.x"), "nothing else");
    TAP_OK(there(dir, "tasks/T-done.json") && !there(dir, "tasks/T-gone.json"),
           "a task's file goes with its record");
    TAP_OK(amp_tidy_due(s, &ctx, &due, &err) == 0 && due / 1000 == today + DAY_S,
           "the next time is a day later");
    amp_store_close(s);
}

int main(void)
{
    static void (*const tests[])(const char *) = {test_leaving, test_duplicates, test_again,
                                                  test_year, test_files};
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        char dir[64];
        tree_temporary(dir, sizeof dir);
        tests[i](dir);
        tree_remove(dir);
    }
    return tap_done();
}
