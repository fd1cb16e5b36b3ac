/* The activity buffer: limits, warning, history, reconciling, two processes at once. */
#include "work/task/activity/activity.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "../scratch.h"
#include "../tap.h"
#include "work/item/order.h"
#include "json/record.h"

static struct amp_error err;
static struct amp_store *store;
static struct amp_activity_room room;

static struct amp_activity entry(const char *agent, const char *task)
{
    return (struct amp_activity){.agent = amp_span_str(agent),
                                 .task = amp_span_str(task),
                                 .attempt = 1,
                                 .repo = AMP_SPAN("/r"),
                                 .worktree = AMP_SPAN("/w"),
                                 .branch = AMP_SPAN("b"),
                                 .description = AMP_SPAN("does it"),
                                 .began_ms = amp_now_ms()};
}

static int begin(const char *agent, const char *task, const struct amp_activity_limits *l)
{
    const struct amp_activity a = entry(agent, task);
    return amp_activity_begin(store, &a, l, &room, &err);
}

static int end(const char *agent, const char *task, const struct amp_activity_limits *l)
{
    const struct amp_activity a = entry(agent, task);
    return amp_activity_end(store, &a, AMP_ACTIVITY_COMPLETED, amp_now_ms(), l, &err);
}

static int count_fn(void *ctx, const struct amp_activity *a, struct amp_error *e)
{
    (void)a;
    (void)e;
    ++*(int *)ctx;
    return 0;
}

static int count(struct amp_activity_filter f)
{
    int n = 0;
    return amp_activity_each(store, &f, count_fn, &n, &err) < 0 ? -1 : n;
}

static void refuses(const char *agent, const char *task, const struct amp_activity_limits *l,
                    const char *what)
{
    TAP_INT(begin(agent, task, l), -1, what);
    TAP_INT(err.status, AMP_NO, "its status");
    TAP_STR(err.code, "activity_buffer_full", "its code");
}

static void limits(void)
{
    const struct amp_activity_limits l = {.max = 5, .per_agent = 3, .history = 2};
    TAP_INT(begin("ann", "T-1", &l), 0, "the first");
    TAP_OK(!room.crossed && room.active == 1, "it is far from full");
    TAP_INT(begin("ann", "T-2", &l), 0, "the second");
    TAP_INT(begin("ann", "T-3", &l), 0, "the third");
    refuses("ann", "T-4", &l, "a fourth of one agent");
    TAP_INT(begin("ann", "T-3", &l), 0, "the third again");
    TAP_INT(begin("anna", "T-1", &l), 0, "of an agent whose name begins the same");
    TAP_OK(room.crossed, "four of five cross 80 %%");
    TAP_INT(begin("o.b", "T-1", &l), 0, "the last");
    TAP_OK(!room.crossed && room.active == 5, "it crossed before");
    refuses("cleo", "T-1", &l, "one too many");
    TAP_INT(count((struct amp_activity_filter){.agent = AMP_SPAN("ann")}), 3, "entries of ann");
    TAP_INT(count((struct amp_activity_filter){.task = AMP_SPAN("T-1")}), 3, "entries of a task");
    TAP_INT(count((struct amp_activity_filter){.repo = AMP_SPAN("/x")}), 0,
            "of another repository");
    TAP_INT(end("ann", "T-1", &l), 0, "one ends");
    TAP_INT(begin("cleo", "T-1", &l), 0, "and there is room");
    TAP_INT(end("ann", "T-2", &l), 0, "another ends");
    TAP_INT(end("ann", "T-3", &l), 0, "and another");
    TAP_INT(end("ann", "T-3", &l), 0, "twice");
    TAP_INT(count((struct amp_activity_filter){.ended = true}), 2, "the history has two");
    TAP_INT(count((struct amp_activity_filter){.history = true}), 5, "beside three active ones");
}

static int longest_fn(void *ctx, const struct amp_activity *a, struct amp_error *e)
{
    (void)e;
    *(size_t *)ctx = a->description.n;
    return 0;
}

static void descriptions(void)
{
    const struct amp_activity_limits l = {0};
    const struct amp_activity_filter f = {.agent = AMP_SPAN("dan")};
    char words[201 * 3 + 1] = "", dots[6001];
    struct amp_activity a = entry("dan", "T-1");
    size_t n = 0;

    for (int i = 0; i < 201; i++)
        memcpy(words + 3 * i, "ab ", 4);
    a.description = amp_span_str(words);
    TAP_INT(amp_activity_begin(store, &a, &l, &room, &err), 0, "201 words");
    TAP_INT(room.max, 10000, "by default there is room for 10,000");
    amp_activity_each(store, &f, longest_fn, &n, &err);
    TAP_INT((int64_t)n, 200 * 3 - 1, "are cut to 200");
    for (int i = 0; i < 3000; i++)
        memcpy(dots + 2 * i, "\xc3\xa4", 3);
    a.description = (struct amp_span){dots, 6000};
    TAP_INT(amp_activity_begin(store, &a, &l, &room, &err), 0, "a long word");
    amp_activity_each(store, &f, longest_fn, &n, &err);
    TAP_INT((int64_t)n, AMP_ACTIVITY_TEXT, "is cut between characters");
    TAP_INT(end("dan", "T-1", &l), 0, "it ends");
}

/* Each of eight processes wants an entry, and there is room for three. */
static void race(const char *dir)
{
    const struct amp_activity_limits l = {.max = 6};
    pid_t pid[8];
    int won = 0, refused = 0, status;

    for (int i = 0; i < 8; i++) {
        char name[16];
        snprintf(name, sizeof name, "r%d", i);
        if ((pid[i] = fork()) == 0) {
            const struct amp_store_options opt = {.lock_timeout_ms = 20000};
            if (amp_store_open(dir, &opt, &store, &err) < 0)
                _exit(9);
            int rc = begin(name, "T-9", &l);
            int how = rc == 0 ? 0 : strcmp(err.code, "activity_buffer_full") == 0 ? 1 : 9;
            if (amp_store_sync(store, &err) < 0)
                how = 9;
            amp_store_close(store);
            _exit(how);
        }
    }
    for (int i = 0; i < 8; i++) {
        waitpid(pid[i], &status, 0);
        won += WIFEXITED(status) && WEXITSTATUS(status) == 0;
        refused += WIFEXITED(status) && WEXITSTATUS(status) == 1;
    }
    TAP_INT(won, 3, "eight at once: as many as there is room for");
    TAP_INT(refused, 5, "the others are refused");
}

static bool over(void *ctx, struct amp_store *s, struct amp_span task)
{
    (void)s;
    return amp_span_is(task, ctx);
}

static void reconciling(void)
{
    const struct amp_activity_limits l = {.history = 100};
    char task[] = "T-1";
    struct amp_activity_reconcile how = {
        .now_ms = amp_now_ms(), .task_ended = over, .ctx = task, .agent = "r0"};
    uint32_t n = 0;

    /* The children of the race have ended; cleo, anna and o.b are entries of this process. */
    TAP_INT(amp_activity_reconcile(store, &how, &l, &n, &err), 0, "of an agent alone");
    TAP_OK(n <= 1, "at most its entry");
    how.agent = NULL;
    TAP_INT(amp_activity_reconcile(store, &how, &l, &n, &err), 0, "of all");
    TAP_INT(n, 6, "three without a process, three with an ended task");
    TAP_INT(count((struct amp_activity_filter){0}), 0, "none is left");
    TAP_INT(begin("eve", "T-5", &l), 0, "one of this process");
    how.due = true;
    how.now_ms += AMP_ACTIVITY_LOOK_MS + 1000;
    n = 0;
    TAP_INT(amp_activity_reconcile(store, &how, &l, &n, &err), 0, "the deadline row looks");
    TAP_INT(n, 0, "and keeps what is alive");
    int64_t next;
    TAP_INT(amp_store_next_due(store, AMP_ACTIVITY_KIND, &next, &err), 0, "its next look");
    uint32_t gone = 0;
    TAP_INT(amp_activity_forget(store, amp_now_ms() + INT64_C(86500000), "test", &gone, &err), 0,
            "a day later");
    TAP_INT(count((struct amp_activity_filter){.ended = true}), 0, "the history is empty");
    const struct amp_activity_filter eve = {.agent = AMP_SPAN("eve")};
    TAP_INT(amp_activity_purge(store, &eve, "test", &gone, &err), 0, "purged");
    TAP_INT(gone, 1, "one entry");
}

/* ---- a full buffer beside a queue ---- */

#define JOBS     150
#define ENTRIES  4000
#define OF_AGENT 100

/* Runs fn in a process of its own with the state open; the process id. */
static pid_t beside(const char *dir, int (*fn)(void))
{
    pid_t pid = fork();

    if (pid == 0) {
        const struct amp_store_options opt = {.lock_timeout_ms = 60000};
        int rc = amp_store_open(dir, &opt, &store, &err) < 0 ? 9 : fn();
        amp_store_close(store);
        _exit(rc);
    }
    return pid;
}

static int ended(pid_t pid)
{
    int status;

    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* As many entries as there may be; one more is refused, of all agents and of one. */
static int fill(void)
{
    const struct amp_activity_limits l = {.max = ENTRIES};
    char agent[16], task[16];
    int crossed = 0;

    for (int i = 0; i < ENTRIES; i++) {
        snprintf(agent, sizeof agent, "a%d", i / OF_AGENT);
        snprintf(task, sizeof task, "T-%d", i);
        if (i % OF_AGENT == 0 && i == OF_AGENT &&
            (begin("a0", "T-x", &l) == 0 || strcmp(err.code, "activity_buffer_full") != 0))
            return 1;
        if (begin(agent, task, &l) < 0)
            return 2;
        if (room.crossed)
            crossed = i + 1;
    }
    if (begin("other", "T-x", &l) == 0 || strcmp(err.code, "activity_buffer_full") != 0)
        return 3;
    return crossed == ENTRIES * AMP_ACTIVITY_WARN / 100 && amp_store_sync(store, &err) == 0 ? 0 : 4;
}

/* Ends the entries of the process that made them, then removes all. */
static int empty(void)
{
    const struct amp_activity_limits l = {0};
    const struct amp_activity_reconcile how = {.now_ms = amp_now_ms()};
    uint32_t lost = 0, gone = 0;
    const struct amp_activity_filter all = {.history = true};

    if (amp_activity_reconcile(store, &how, &l, &lost, &err) < 0 || lost != ENTRIES ||
        amp_activity_purge(store, &all, "test", &gone, &err) < 0 || gone != ENTRIES)
        return 1;
    return amp_store_sync(store, &err) == 0 ? 0 : 2;
}

static int job_submit(int i)
{
    char id[AMP_QUEUE_ID_MAX];
    uint8_t now = 0;
    int64_t seq;
    enum amp_store_outcome outcome;

    snprintf(id, sizeof id, "%032d", i);
    const struct amp_queue_job job = {.id = amp_span_str(id),
                                      .type = AMP_SPAN("builder"),
                                      .protocol = AMP_SPAN("amp"),
                                      .digest = AMP_SPAN("sha256:0")};
    const struct amp_queue_submit q = {.job = &job, .line = AMP_SPAN("{}"), .now_ms = amp_now_ms()};
    return amp_queue_submit(store, &q, &seq, &now, &outcome, &err);
}

/* The buffer never blocks the scheduling (SW4RM §10): while another process ends and removes all
 * entries, jobs are claimed, each within a moment. */
static void full(const char *dir)
{
    const struct amp_store_options opt = {.lock_timeout_ms = 60000};
    const struct amp_span builder = AMP_SPAN("builder");
    const struct amp_order_options order = {0};
    struct amp_order_want want = {.worker = "w", .types = &builder, .n_types = 1};
    struct amp_buf mem = {.max = 1 << 20};
    struct amp_queue_job job;
    struct amp_order *o = NULL;
    int64_t longest = 0, wake;
    int claims = 0, meanwhile = 0, submitted = 0;

    TAP_INT(ended(beside(dir, fill)), 0, "4,000 entries, 100 of an agent, a warning at 3,200");
    TAP_INT(amp_store_open(dir, &opt, &store, &err), 0, "a queue beside them");
    for (int i = 0; i < JOBS; i++)
        submitted += job_submit(i) == 0;
    TAP_INT(submitted, JOBS, "jobs");
    TAP_INT(amp_order_open(&o, store, &order, &err), 0, "a worker");
    pid_t pid = beside(dir, empty);
    while (claims < JOBS) {
        int64_t from = amp_mono_ms();
        want.now_ms = amp_now_ms();
        if (amp_order_claim(o, &want, &mem, &job, &wake, &err) != 1 ||
            amp_store_sync(store, &err) < 0)
            break;
        int64_t took = amp_mono_ms() - from;
        longest = took > longest ? took : longest;
        claims++;
        siginfo_t info = {.si_pid = 0};
        meanwhile +=
            waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
    }
    TAP_INT(claims, JOBS, "are claimed");
    TAP_INT(ended(pid), 0, "all entries were ended and removed");
    TAP_OK(meanwhile > 5, "claims went on meanwhile: %d of %d", meanwhile, claims);
    TAP_OK(longest < 2000, "none waited for it: at most %lld ms", (long long)longest);
    TAP_INT(count((struct amp_activity_filter){.history = true}), 0, "no entry is left");
    amp_order_close(o);
    amp_buf_release(&mem);
    amp_store_close(store);
}

int main(void)
{
    const char *dir = scratch();
    char state[4200];
    const struct amp_store_options opt = {.lock_timeout_ms = 20000};

    snprintf(state, sizeof state, "%s/state", dir);
    TAP_INT(amp_store_open(state, &opt, &store, &err), 0, "a state directory");
    limits();
    descriptions();
    amp_store_close(store);
    race(state);
    TAP_INT(amp_store_open(state, &opt, &store, &err), 0, "again");
    reconciling();
    amp_store_close(store);
    snprintf(state, sizeof state, "%s/full", dir);
    full(state);
    return tap_done();
}
