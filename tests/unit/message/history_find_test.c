/* Histories through the index are those of a full scan, and counters those of the records: over
 * random logs in small segments, reopened, with postings that were removed or overwritten. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../scratch.h"
#include "../tap.h"
#include "message/delivery/history/find.h"
#include "message/delivery/ledger/ledger.h"
#include "message/delivery/record/record.h"
#include "message/delivery/settle/answer.h"

enum { MESSAGES = 1500, TASKS = 40 };
#define FLOW_0 "T-676669031" /* its hash as a term would be 0 */

static struct amp_error err;
static struct amp_store *store;
static const char *dir;

static void store_open(void)
{
    struct amp_store_options o = {.lock_timeout_ms = -1,
                                  .segment_bytes = 65536,
                                  .keep_segments = 6,
                                  .names = amp_history_names};
    if (amp_store_open(dir, &o, &store, &err) < 0) {
        printf("Bail out! %s\n", err.what);
        exit(1);
    }
}

static void message(int i)
{
    char id[32], line[128];
    static struct amp_span to[] = {{"executor", 8}};
    snprintf(id, sizeof id, "m%d", i);
    snprintf(line, sizeof line, "{\"a\":%d}", i);
    char task[32];
    int flow = rand() % TASKS;
    snprintf(task, sizeof task, flow ? "flow-%d" : FLOW_0, flow);
    struct amp_view v = {.protocol = AMP_PROTO_SW4RM,
                         .kind = AMP_KIND_OTHER,
                         .line = amp_span_str(line),
                         .type = {"DATA", 4},
                         .id = amp_span_str(id),
                         .from = {"producer", 8},
                         .correlation = amp_span_str(task),
                         .to = to,
                         .n_to = 1,
                         .needs_ack = true,
                         .ack_timeout_ms = 10000};
    amp_message_record(store, &v, 1000, NULL, &err);
    if (rand() % 2) {
        char of[32];
        snprintf(of, sizeof of, "m%d", rand() % (i + 1));
        amp_settle_ack(store, amp_span_str(of), rand() % 2 ? AMP_STAGE_RECEIVED : AMP_STAGE_READ,
                       rand() % 3 ? "executor" : "other", (struct amp_span){"", 0}, 2000, NULL,
                       &err);
    }
}

struct rows {
    struct amp_history *h;
    char *text;
    size_t n, cap;
};

static int row_fn(void *ctx, const struct amp_history_row *r, struct amp_error *failed)
{
    struct rows *s = ctx;
    if (s->cap - s->n < 512)
        s->text = realloc(s->text, s->cap = 2 * s->cap + 4096);
    s->n += (size_t)snprintf(s->text + s->n, 512, "%llu %d %.*s %.*s\n", (unsigned long long)r->n,
                             r->what, (int)r->id.n, r->id.p, (int)r->event.n, r->event.p);
    return 0;
}

static int frame_fn(void *ctx, uint64_t n, struct amp_span frame, struct amp_error *failed)
{
    struct rows *s = ctx;
    return amp_history_frame(s->h, n, frame, row_fn, s, failed);
}

static bool same(const struct amp_history_filter *f)
{
    struct rows scan = {.h = amp_history_new(f, &err)}, found = {0};
    struct amp_history_finder *d = NULL;
    bool ok = scan.h && amp_store_frames(store, 0, frame_fn, &scan, &err) == 0 &&
              amp_history_finder_open(store, f, NULL, &d, &err) == 0 &&
              amp_history_finder_read(d, row_fn, &found, &err) == 0;
    ok = ok && scan.n == found.n && (!scan.n || memcmp(scan.text, found.text, scan.n) == 0);
    if (!ok)
        printf("# %zu and %zu bytes; %s\n", scan.n, found.n, err.what);
    amp_history_free(scan.h);
    amp_history_finder_free(d);
    free(scan.text);
    free(found.text);
    return ok;
}

static void compare(const char *when)
{
    bool ids = true, flows = true;
    char name[32];
    for (int i = 0; i < 12; i++) {
        snprintf(name, sizeof name, "m%d", rand() % MESSAGES);
        ids &= same(&(struct amp_history_filter){.id = amp_span_str(name)});
        snprintf(name, sizeof name, "flow-%d", rand() % TASKS);
        flows &= same(&(struct amp_history_filter){.correlation = amp_span_str(name)});
    }
    flows &= same(&(struct amp_history_filter){.correlation = AMP_SPAN(FLOW_0)});
    TAP_OK(ids, "%s: messages", when);
    TAP_OK(flows, "%s: conversations", when);
    TAP_OK(same(&(struct amp_history_filter){.agent = AMP_SPAN("other")}), "%s: an agent", when);
    TAP_OK(same(&(struct amp_history_filter){.since_ms = 1}), "%s: since a time", when);
}

static int each_fn(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                   struct amp_error *failed)
{
    int *n = ctx;
    n[amp_span_is(rec->state, "SENT") ? 0 : amp_span_is(rec->state, "READ") ? 1 : 2]++;
    return 0;
}

static int tally_fn(void *ctx, struct amp_span kind, struct amp_span state, uint64_t n,
                    struct amp_error *failed)
{
    int *v = ctx;
    v[amp_span_is(state, "SENT") ? 0 : amp_span_is(state, "READ") ? 1 : 2] += (int)n;
    return 0;
}

static void counters(const char *when)
{
    int counted[3] = {0}, real[3] = {0};
    amp_store_tally(store, AMP_MESSAGE_KIND, tally_fn, counted, &err);
    amp_store_each(store, AMP_MESSAGE_KIND, NULL, each_fn, real, &err);
    TAP_OK(memcmp(counted, real, sizeof real) == 0 && real[0] > 0, "%s: the counters", when);
}

/* Another process records messages and is killed in the middle. */
static void killed(int from)
{
    int status;
    pid_t p = fork();
    if (p == 0) {
        store_open();
        for (int i = from; i < from + 200; i++)
            message(i);
        kill(getpid(), SIGKILL);
    }
    TAP_OK(p > 0 && waitpid(p, &status, 0) == p && WIFSIGNALED(status), "a writer is killed");
}

static void repaired(void)
{
    struct amp_buf said = {0};
    amp_buf_init(&said, 1 << 20);
    TAP_OK(amp_store_repair(dir, &said, &err) == 0, "the state is repaired");
    amp_buf_release(&said);
}

/* Changes a byte in the middle of the log. */
static void damage(void)
{
    char command[256];
    snprintf(command, sizeof command,
             "f=$(ls '%s'/log/*.ndjson | head -n 3 | tail -n 1); "
             "printf '#' | dd of=$f bs=1 seek=30000 conv=notrunc 2>/dev/null",
             dir);
    TAP_OK(system(command) == 0, "a frame is damaged");
}

int main(void)
{
    char command[256];
    srand(7);
    dir = scratch();
    store_open();
    for (int i = 0; i < MESSAGES / 2; i++)
        message(i);
    counters("with frames in memory");
    compare("half of the log");
    amp_store_close(store);
    store_open();
    for (int i = MESSAGES / 2; i < MESSAGES; i++)
        message(i);
    compare("after more, and retention");
    snprintf(command, sizeof command, "rm -rf '%s/terms'", dir);
    TAP_OK(system(command) == 0, "the postings are removed");
    amp_store_close(store);
    store_open();
    compare("made again");
    snprintf(
        command, sizeof command,
        "for f in '%s'/terms/*; do dd if=/dev/urandom of=$f bs=64 seek=70 count=2 conv=notrunc "
        "2>/dev/null; done; rm -f '%s'/index*.db*",
        dir, dir);
    TAP_OK(system(command) == 0, "postings are damaged, the index is removed");
    amp_store_close(store);
    store_open();
    compare("with damaged postings");
    counters("after the index was rebuilt");
    amp_store_close(store);
    killed(MESSAGES);
    store_open();
    compare("after a killed writer");
    counters("after a killed writer");
    amp_store_close(store);
    damage();
    repaired();
    store_open();
    compare("after a repair");
    counters("after a repair");
    amp_store_close(store);
    return tap_done();
}
