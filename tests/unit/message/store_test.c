/* The store: compare-and-set, deduplication, outbox, due order, rotation, read-only. */
#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/base/id.h>

#include "../tap.h"
#include "../tree.h"
#include "message/store/history/history.h"
#include "message/store/store_int.h"

static struct amp_error err;

struct step {
    const char *to, *json;
    int64_t due;
    const struct amp_store_emit *emits;
    uint32_t n_emits;
    bool remove;
    int rc;
    uint64_t saw_rev;
    char saw[200];
};

static int take(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                struct amp_error *e)
{
    struct step *s = ctx;
    s->saw_rev = now->rev;
    snprintf(s->saw, sizeof s->saw, "%.*s %.*s", (int)now->state.n,
             now->state.n ? now->state.p : "", (int)(now->json.n > 100 ? 100 : now->json.n),
             now->json.n ? now->json.p : "");
    if (s->rc)
        return s->rc < 0 ? amp_fail_text(e, AMP_NO, "no_thanks", "refused") : 1;
    *c = (struct amp_store_change){.event = "step",
                                   .to = s->to,
                                   .json = amp_span_str(s->json),
                                   .due_ms = s->due,
                                   .emits = s->emits,
                                   .n_emits = s->n_emits,
                                   .remove = s->remove};
    return 0;
}

static struct amp_store *open_store(const char *dir, uint64_t segment)
{
    struct amp_store_options o = {.lock_timeout_ms = 5000, .segment_bytes = segment};
    struct amp_store *s = NULL;
    if (amp_store_open(dir, &o, &s, &err) != 0)
        printf("# open: %s %s\n", err.code, err.what);
    return s;
}

static int put(struct amp_store *s, const char *kind, const char *id, struct step *st,
               const struct amp_store_input *in, enum amp_store_outcome *what)
{
    int rc = amp_store_update(s, AMP_KEY(kind, amp_span_str(id)), in, take, st, what, &err);
    if (rc)
        printf("# update: %s %s\n", err.code, err.what);
    return rc;
}

static void test_compare_and_set(const char *dir)
{
    struct amp_store *s = open_store(dir, 0);
    struct step st = {.to = "OPEN", .json = "{\"a\":1}"};
    enum amp_store_outcome what;
    struct amp_store_rec rec;
    TAP_INT(put(s, "task", "T-1/x.y", &st, NULL, &what), 0, "a first update");
    TAP_INT(what, AMP_STORE_COMMITTED, "commits");
    TAP_INT((int64_t)st.saw_rev, 0, "it saw no record");
    st = (struct step){.to = "DONE", .json = "{\"a\":2}"};
    TAP_INT(put(s, "task", "T-1/x.y", &st, NULL, &what), 0, "a second one");
    TAP_STR(st.saw, "OPEN {\"a\":1}", "saw the first");
    TAP_INT((int64_t)st.saw_rev, 1, "at revision 1");
    TAP_INT(amp_store_get(s, AMP_KEY("task", AMP_SPAN("T-1/x.y")), &rec, &err), 0, "a get");
    TAP_SPAN(rec.json, "{\"a\":2}", "gives the record");
    TAP_SPAN(rec.state, "DONE", "and its state");
    TAP_INT((int64_t)rec.rev, 2, "and its revision");
    st = (struct step){.rc = 1};
    TAP_INT(put(s, "task", "T-1/x.y", &st, NULL, &what), 0, "a callback that returns 1");
    TAP_INT(what, AMP_STORE_UNCHANGED, "changes nothing");
    st = (struct step){.rc = -1};
    TAP_INT(put(s, "task", "T-1/x.y", &st, NULL, &what), -1, "a callback that refuses");
    TAP_STR(err.code, "no_thanks", "with its own code");
    st = (struct step){.to = "X", .json = "{\"a\":1,\"a\":2}"};
    TAP_INT(put(s, "task", "T-1/x.y", &st, NULL, &what), -1,
            "a record that is not JSON is refused");
    TAP_INT(amp_store_sync(s, &err), 0, "sync");
    amp_store_close(s);

    s = open_store(dir, 0);
    TAP_INT(amp_store_get(s, AMP_KEY("task", AMP_SPAN("T-1/x.y")), &rec, &err), 0,
            "after opening again");
    TAP_SPAN(rec.json, "{\"a\":2}", "the record is there");
    st = (struct step){.to = "GONE", .remove = true};
    TAP_INT(put(s, "task", "T-1/x.y", &st, NULL, &what), 0, "a removal");
    TAP_INT(amp_store_get(s, AMP_KEY("task", AMP_SPAN("T-1/x.y")), &rec, &err), 0,
            "a get after it");
    TAP_OK(!rec.found && rec.rev == 0, "finds nothing");
    TAP_INT(amp_store_get(s, AMP_KEY("task", AMP_SPAN("")), &rec, &err), -1,
            "an empty id is refused");
    amp_store_close(s);
}

static void test_dedupe(const char *dir)
{
    struct amp_store *s = open_store(dir, 0);
    struct step st = {.to = "A", .json = "{}"};
    enum amp_store_outcome what = AMP_STORE_UNCHANGED;
    struct amp_store_input in = {"track", AMP_SPAN("m\"1"), AMP_SPAN("bytes")};
    TAP_INT(amp_store_seen(s, &in, &err), AMP_STORE_NOT_SEEN, "an id is not seen at first");
    TAP_INT(put(s, "message", "m1", &st, &in, &what), 0, "a message comes in");
    TAP_INT(amp_store_seen(s, &in, &err), AMP_STORE_SEEN, "then it is");
    TAP_INT(put(s, "message", "m1", &st, &in, &what), 0, "the same again");
    TAP_INT(what, AMP_STORE_REDELIVERED, "is a redelivery");
    in.consumer = "route";
    TAP_INT(put(s, "message", "m1", &st, &in, &what), 0, "another consumer");
    TAP_INT(what, AMP_STORE_COMMITTED, "takes it for itself");
    in.bytes = AMP_SPAN("others");
    TAP_INT(amp_store_seen(s, &in, &err), AMP_STORE_SEEN_OTHER, "other bytes are reported");
    TAP_INT(put(s, "message", "m1", &st, &in, &what), -1, "and refused");
    TAP_STR(err.code, "duplicate_msg_id", "as a duplicate id");
    in = (struct amp_store_input){"track", AMP_SPAN("m2"), AMP_SPAN("b")};
    st.rc = 1;
    TAP_INT(put(s, "message", "m2", &st, &in, &what), 0, "an input that changes nothing");
    TAP_INT(amp_store_seen(s, &in, &err), AMP_STORE_NOT_SEEN, "is not remembered");
    amp_store_close(s);
}

struct seen_entries {
    int n;
    uint64_t frame[16];
    uint32_t index[16];
    char text[1000];
};

static int entry(void *ctx, const struct amp_store_entry *e, struct amp_error *failed)
{
    struct seen_entries *l = ctx;
    size_t n = strlen(l->text);
    l->frame[l->n] = e->n;
    l->index[l->n++] = e->index;
    snprintf(l->text + n, sizeof l->text - n, "%.*s=%.*s%s;", (int)e->id.n, e->id.p,
             (int)(e->line.n > 40 ? 40 : e->line.n), e->line.p, e->wants_ack ? "!" : "");
    return 0;
}

static void outbox_of(struct amp_store *s, const char *consumer, struct seen_entries *l)
{
    memset(l, 0, sizeof *l);
    TAP_INT(amp_store_outbox(s, consumer, entry, l, &err), 0, "the outbox is read");
}

static void test_outbox(const char *dir)
{
    struct seen_entries l;
    struct amp_store_emit e[2] = {{AMP_SPAN("o1"), AMP_SPAN("{\"x\":\"\\u00e9\"}"), true},
                                  {AMP_SPAN("o2"), AMP_SPAN("{\"y\":2}"), false}};
    struct amp_store_input in = {"coord", AMP_SPAN("i1"), AMP_SPAN("b")};
    struct step st = {.to = "A", .json = "{}", .emits = e, .n_emits = 2};
    struct amp_store *s = open_store(dir, 0);
    TAP_INT(put(s, "task", "T", &st, &in, NULL), 0, "a transition emits two lines");
    TAP_INT(amp_store_sync(s, &err), 0, "sync");
    amp_store_close(s); /* a crash: nothing was written out */
    s = open_store(dir, 0);
    outbox_of(s, "coord", &l);
    TAP_STR(l.text, "o1={\"x\":\"\\u00e9\"}!;o2={\"y\":2};", "both are open again");
    struct amp_store_entry_id id = {l.frame[1], l.index[1]};
    TAP_INT(amp_store_outbox_close(s, "coord", &id, 1, &err), 0, "one is written");
    TAP_INT(amp_store_outbox_close(s, "coord", &id, 1, &err), 0, "closing twice is no error");
    outbox_of(s, "coord", &l);
    TAP_STR(l.text, "o1={\"x\":\"\\u00e9\"}!;", "the other stays open");
    outbox_of(s, "other", &l);
    TAP_INT(l.n, 0, "nobody else has entries");
    TAP_INT(amp_store_outbox_acked(s, AMP_SPAN("o1"), &err), 0, "its ack comes");
    TAP_INT(amp_store_outbox_acked(s, AMP_SPAN("o1"), &err), 0, "twice");
    outbox_of(s, "coord", &l);
    TAP_INT(l.n, 0, "and closes it");
    struct amp_store *other = open_store(dir, 0);
    in.id = AMP_SPAN("i2");
    TAP_INT(put(s, "task", "T", &st, &in, NULL), 0, "two more lines");
    outbox_of(other, "coord", &l);
    TAP_INT(l.n, 2, "another process sees them");
    id = (struct amp_store_entry_id){l.frame[0], l.index[0]};
    TAP_INT(amp_store_outbox_close(other, "coord", &id, 1, &err), 0, "and closes one");
    outbox_of(s, "coord", &l);
    TAP_STR(l.text, "o2={\"y\":2};", "which the first one sees");
    TAP_INT(amp_store_outbox_acked(s, AMP_SPAN("o2"), &err), 0, "an ack for the other");
    outbox_of(other, "coord", &l);
    TAP_INT(l.n, 0, "leaves none to anybody");
    amp_store_close(other);
    amp_store_close(s);
}

struct names {
    char text[2000];
    struct amp_store *s;
};

static int name(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                struct amp_error *failed)
{
    struct names *l = ctx;
    struct amp_store_rec other;
    size_t n = strlen(l->text);
    snprintf(l->text + n, sizeof l->text - n, "%.*s:%.*s ", (int)id.n, id.p, (int)rec->state.n,
             rec->state.p);
    return amp_store_get(l->s, AMP_KEY("task", id), &other, &err) != 0;
}

/* Stops or fails at the second record. */
struct ending {
    int n, rc;
};

static int end_early(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                     struct amp_error *failed)
{
    struct ending *e = ctx;
    if (++e->n < 2)
        return 0;
    return e->rc < 0 ? amp_fail_text(failed, AMP_NO, "enough", "two are enough") : e->rc;
}

static bool counted(struct amp_store *s, uint64_t all, uint64_t due)
{
    uint64_t n[2];
    return amp_store_count(s, "task", &n[0], &err) == 0 && n[0] == all &&
           amp_store_count_due(s, "task", &n[1], &err) == 0 && n[1] == due;
}

/* A kind with few records beside one with very many deadlines: both ways to find what is due. */
static void test_due_of_few(const char *dir)
{
    struct amp_store *s = open_store(dir, 0);
    int64_t next = -1;
    struct names l = {.s = s};
    char id[16];
    for (int i = 0; i < 200; i++) {
        snprintf(id, sizeof id, "m%d", i);
        put(s, "message", id, &(struct step){.to = "A", .json = "{}", .due = 1 + i}, NULL, NULL);
    }
    TAP_INT(amp_store_next_due(s, "task", &next, &err), 0, "no record of a kind");
    TAP_INT(next, 0, "has a deadline");
    TAP_OK(amp_store_due(s, "task", 1000, name, &l, &err) == 0 && !*l.text, "none is due");
    put(s, "task", "c", &(struct step){.to = "A", .json = "{}", .due = 300}, NULL, NULL);
    put(s, "task", "a", &(struct step){.to = "A", .json = "{}", .due = 500}, NULL, NULL);
    put(s, "task", "b", &(struct step){.to = "A", .json = "{}", .due = 400}, NULL, NULL);
    put(s, "task", "d", &(struct step){.to = "A", .json = "{}"}, NULL, NULL);
    TAP_INT(amp_store_next_due(s, "task", &next, &err), 0, "behind very many others");
    TAP_INT(next, 300, "the next deadline is found");
    TAP_INT(amp_store_due(s, "task", 400, name, &l, &err), 0, "and what is due,");
    TAP_STR(l.text, "c:A b:A ", "the earliest first, none later");
    amp_store_close(s);
}

static void test_order(const char *dir)
{
    struct amp_store *s = open_store(dir, 0);
    const char *ids[] = {"c", "a.b", "b", "\xc3\xa9"};
    int64_t due[] = {30, 10, 0, 20}, next;
    struct names l = {.s = s};
    TAP_INT(amp_store_begin(s, &err), 0, "a batch");
    for (int i = 0; i < 4; i++) {
        struct step st = {.to = i == 2 ? "B" : "A", .json = "{}", .due = due[i]};
        put(s, "task", ids[i], &st, NULL, NULL);
        put(s, "tas", ids[i], &st, NULL, NULL);
        put(s, "tasks", ids[i], &st, NULL, NULL);
    }
    amp_store_end(s);
    TAP_INT(amp_store_each(s, "task", NULL, name, &l, &err), 0, "each");
    TAP_STR(l.text, "\xc3\xa9:A a.b:A b:B c:A ", "goes by key, one kind only");
    l.text[0] = '\0';
    TAP_INT(amp_store_each(s, "task", "B", name, &l, &err), 0, "each of a state");
    TAP_STR(l.text, "b:B ", "gives that state");
    l.text[0] = '\0';
    TAP_INT(amp_store_due(s, "task", 25, name, &l, &err), 0, "due");
    TAP_STR(l.text, "a.b:A \xc3\xa9:A ", "gives the earliest first, none later");
    struct ending stop = {.rc = 1}, fail = {.rc = -1};
    TAP_INT(amp_store_each(s, "task", NULL, end_early, &stop, &err), 0, "a callback stops");
    TAP_INT(stop.n, 2, "and is not called again");
    TAP_INT(amp_store_each(s, "task", NULL, end_early, &fail, &err), -1, "a callback fails");
    TAP_INT(fail.n, 2, "and is not called again");
    TAP_STR(err.code, "enough", "its error is returned");
    TAP_INT(amp_store_next_due(s, "task", &next, &err), 0, "the next deadline");
    TAP_INT(next, 10, "is the earliest");
    TAP_INT(amp_store_next_due(s, "agent", &next, &err), 0, "of a kind without any");
    TAP_INT(next, 0, "is none");
    /* Windows, in the order of due times: a.b 10, \xc3\xa9 20, c 30. */
    struct amp_store_window w = {.kind = "task", .most = 2};
    l.text[0] = '\0';
    TAP_INT(amp_store_due_window(s, &w, name, &l, &err), 0, "a window from the start");
    TAP_STR(l.text, "a.b:A \xc3\xa9:A ", "has the earliest");
    l.text[0] = '\0';
    w.due_ms = 10;
    w.key = AMP_SPAN("task.a%2Eb");
    TAP_INT(amp_store_due_window(s, &w, name, &l, &err), 0, "a window after a record");
    TAP_STR(l.text, "\xc3\xa9:A c:A ", "goes on with the next");
    l.text[0] = '\0';
    w = (struct amp_store_window){.kind = "task", .most = 2, .before = true, .due_ms = INT64_MAX};
    TAP_INT(amp_store_due_window(s, &w, name, &l, &err), 0, "a window before the end");
    TAP_STR(l.text, "c:A \xc3\xa9:A ", "has the latest, the last one first");
    l.text[0] = '\0';
    w = (struct amp_store_window){.kind = "task", .most = 9, .skip = 2};
    TAP_INT(amp_store_due_window(s, &w, name, &l, &err), 0, "a window that skips");
    TAP_STR(l.text, "c:A ", "leaves out that many");
    TAP_OK(counted(s, 4, 3), "4 records, 3 of them with a due time");
    put(s, "task", "b", &(struct step){.to = "A", .json = "{}", .due = 5}, NULL, NULL);
    TAP_OK(counted(s, 4, 4), "one gets a due time,");
    put(s, "task", "c", &(struct step){.to = "A", .json = "{}"}, NULL, NULL);
    put(s, "task", "a.b", &(struct step){.to = "B", .json = "{}", .due = 11}, NULL, NULL);
    TAP_OK(counted(s, 4, 3), "one loses it, another has a new one");
    amp_store_close(s);
    s = open_store(dir, 0);
    put(s, "task", "a.b", &(struct step){.to = "B", .json = "{}", .remove = true}, NULL, NULL);
    TAP_OK(counted(s, 3, 2), "one is removed by another handle");
    amp_store_close(s);
    s = open_store(dir, 0);
    TAP_OK(counted(s, 3, 2), "and so after all");
    amp_store_close(s);
}

static int count_frame(void *ctx, uint64_t n, struct amp_span frame, struct amp_error *failed)
{
    uint64_t *last = ctx;
    if (n != *last + 1)
        return 1;
    *last = n;
    return 0;
}

static void test_rotation(const char *dir)
{
    struct amp_store *s = open_store(dir, 4096), *other = open_store(dir, 4096);
    uint64_t last = 0;
    struct amp_store_rec rec;
    char text[64];
    for (int i = 0; i < 100; i++) {
        char id[16];
        snprintf(id, sizeof id, "k%d", i % 10);
        snprintf(text, sizeof text, "{\"i\":%d,\"pad\":\"0123456789012345678901234567890\"}", i);
        struct step st = {.to = "A", .json = text};
        if (put(i % 3 ? s : other, "task", id, &st, NULL, NULL) != 0)
            break;
    }
    TAP_INT(amp_store_get(s, AMP_KEY("task", AMP_SPAN("k9")), &rec, &err), 0,
            "after several rotations");
    TAP_SPAN(rec.json, text, "the last record is read");
    TAP_INT((int64_t)rec.rev, 10, "with its revision");
    TAP_INT(amp_store_frames(s, 0, count_frame, &last, &err), 0, "all frames are read in order");
    TAP_OK(last > 100, "seals among them");
    amp_store_close(other);
    amp_store_close(s);
    TAP_INT(tree_remove_file(dir, "index.db"), 0, "the index is lost");
    tree_remove_file(dir, "index.db-wal");
    s = open_store(dir, 4096);
    TAP_INT(amp_store_get(s, AMP_KEY("task", AMP_SPAN("k9")), &rec, &err), 0,
            "and rebuilt over all segments");
    TAP_SPAN(rec.json, text, "with the same record");
    amp_store_close(s);
}

static void test_old_segments_go(const char *dir)
{
    struct amp_store_options o = {
        .lock_timeout_ms = 5000, .segment_bytes = 4096, .keep_segments = 3};
    struct amp_store_emit e = {AMP_SPAN("o1"), AMP_SPAN("{\"x\":1}"), true};
    struct step old = {
        .to = "OLD", .json = "{\"v\":\"kept\"}", .due = 7, .emits = &e, .n_emits = 1};
    struct amp_store_input in = {"coord", AMP_SPAN("i1"), AMP_SPAN("b")};
    struct amp_store_rec rec;
    struct seen_entries l;
    struct amp_store *s = NULL, *other = NULL;
    char log[120];
    TAP_INT(amp_store_open(dir, &o, &s, &err), 0, "a store that keeps three segments");
    TAP_INT(amp_store_open(dir, &o, &other, &err), 0, "twice");
    put(s, "task", "old", &old, &in, NULL);
    put(s, "task", "old", &old, NULL, NULL);
    for (int i = 0; i < 400; i++) {
        char id[16], text[80];
        snprintf(id, sizeof id, "k%d", i % 7);
        snprintf(text, sizeof text, "{\"i\":%d,\"pad\":\"0123456789012345678901234567890\"}", i);
        struct step st = {.to = "A", .json = text};
        if (put(i % 3 ? s : other, "task", id, &st, NULL, NULL) != 0)
            break;
    }
    snprintf(log, sizeof log, "%s/log", dir);
    TAP_OK(!tree_has(log, "000001.ndjson") && !tree_has(log, "000005.ndjson"), "old ones are gone");
    for (int round = 0; round < 2; round++) {
        TAP_INT(amp_store_get(s, AMP_KEY("task", AMP_SPAN("old")), &rec, &err), 0,
                "an old key is read");
        TAP_SPAN(rec.json, "{\"v\":\"kept\"}", "as it was");
        TAP_SPAN(rec.state, "OLD", "in its state");
        TAP_OK(rec.rev == 2 && rec.due_ms == 7, "revision and deadline");
        TAP_INT(amp_store_get(s, AMP_KEY("task", AMP_SPAN("k0")), &rec, &err), 0, "a new one too");
        TAP_OK(rec.found && rec.rev == 58, "with its revision");
        outbox_of(s, "coord", &l);
        TAP_STR(l.text, "o1={\"x\":1}!;", "the open line stands");
        amp_store_close(s);
        tree_remove_file(dir, "index.db");
        tree_remove_file(dir, "index.db-wal");
        TAP_INT(amp_store_open(dir, &o, &s, &err), 0, "again, with a new index");
    }
    outbox_of(s, "", &l);
    struct amp_store_entry_id id = {l.frame[0], l.index[0]};
    TAP_INT(l.n, 1, "the line without an input belongs to nobody by name");
    TAP_INT(amp_store_outbox_close(s, "", &id, 1, &err), 0, "it is closed where it stands now");
    outbox_of(s, "", &l);
    TAP_INT(l.n, 0, "and is gone");
    amp_store_close(s);
    amp_store_close(other);
}

static void test_read_only(const char *dir)
{
    struct amp_store_options o = {.lock_timeout_ms = 5000, .read_only = true};
    struct amp_store *r, *s;
    struct amp_store_rec rec;
    struct step st = {.to = "A", .json = "{\"v\":1}"};
    TAP_INT(amp_store_open(dir, &o, &r, &err), -1, "reading only what is not there");
    TAP_STR(err.code, "state_missing", "says so");
    s = open_store(dir, 0);
    put(s, "task", "x", &st, NULL, NULL);
    TAP_INT(amp_store_open(dir, &o, &r, &err), 0, "a reader beside a writer");
    TAP_INT(amp_store_get(r, AMP_KEY("task", AMP_SPAN("x")), &rec, &err), 0, "reads");
    TAP_SPAN(rec.json, "{\"v\":1}", "the record");
    st.json = "{\"v\":2}";
    put(s, "task", "x", &st, NULL, NULL);
    TAP_INT(amp_store_get(r, AMP_KEY("task", AMP_SPAN("x")), &rec, &err), 0, "reads again");
    TAP_SPAN(rec.json, "{\"v\":2}", "the newer record");
    TAP_INT(put(r, "task", "x", &st, NULL, NULL), -1, "and cannot write");
    amp_store_close(r);
    amp_store_close(s);
    tree_remove_file(dir, "index.db");
    tree_remove_file(dir, "index.db-wal");
    TAP_INT(amp_store_open(dir, &o, &r, &err), 0, "a reader without an index");
    TAP_INT(amp_store_get(r, AMP_KEY("task", AMP_SPAN("x")), &rec, &err), 0, "makes one in memory");
    TAP_SPAN(rec.json, "{\"v\":2}", "and reads");
    TAP_OK(!tree_has(dir, "index.db"), "and writes none");
    amp_store_close(r);
}

static void test_blob(const char *dir)
{
    struct amp_store *s = open_store(dir, 0);
    size_t n = 3u << 20;
    char *big = malloc(n + 1);
    struct amp_store_rec rec;
    struct seen_entries l;
    memset(big, 'x', n);
    memcpy(big, "{\"v\":\"", 6);
    memcpy(big + n - 2, "\"}", 3);
    struct amp_store_emit e = {AMP_SPAN("o"), {big, n}, false};
    struct amp_store_input in = {"c", AMP_SPAN("i"), AMP_SPAN("b")};
    struct step st = {.to = "A", .json = big, .emits = &e, .n_emits = 1};
    TAP_INT(put(s, "task", "big", &st, &in, NULL), 0, "a record of 3 MiB");
    TAP_INT(amp_store_sync(s, &err), 0, "sync");
    TAP_OK(tree_has(dir, "blob"), "goes into a blob");
    amp_store_close(s);
    s = open_store(dir, 0);
    TAP_INT(amp_store_get(s, AMP_KEY("task", AMP_SPAN("big")), &rec, &err), 0, "and is read back");
    TAP_OK(rec.json.n == n && memcmp(rec.json.p, big, n) == 0, "byte for byte");
    outbox_of(s, "c", &l);
    TAP_INT(l.n, 1, "its line too");
    amp_store_close(s);
    free(big);
}

static void test_digest(const char *dir)
{
    char sum[AMP_DIGEST_MAX], other[AMP_DIGEST_MAX], old[AMP_SHA256_MAX];
    (void)dir;
    amp_store_digest(AMP_SPAN("abc"), sum);
    amp_store_digest(AMP_SPAN("abd"), other);
    TAP_STR(sum, "b2:bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319",
            "a digest is BLAKE2b-256 and says so");
    TAP_OK(amp_store_digest_is(sum, sum, AMP_SPAN("abc")), "it is known again");
    TAP_OK(!amp_store_digest_is(sum, other, AMP_SPAN("abd")), "another is not");
    amp_sha256_hex(AMP_SPAN("abc"), old);
    TAP_OK(amp_store_digest_is(old, sum, AMP_SPAN("abc")), "so is a SHA-256 of an older log");
    TAP_OK(!amp_store_digest_is(old, other, AMP_SPAN("abd")), "and no other");
}

static void test_door(const char *dir)
{
    char path[300];
    struct amp_store *s = NULL;
    snprintf(path, sizeof path, "%s/d", dir);
    struct stat sb;
    TAP_INT(amp_store_open(path, NULL, &s, &err), 0, "a directory that is not there is made");
    amp_store_close(s);
    TAP_OK(stat(path, &sb) == 0 && (sb.st_mode & 0777) == 0700, "mode 0700");
    chmod(path, 0750);
    TAP_INT(amp_store_open(path, NULL, &s, &err), -1, "one that others may enter");
    TAP_STR(err.code, "state_permissions", "is refused");
    snprintf(path, sizeof path, "%s/used", dir);
    mkdir(path, 0755);
    TAP_INT(amp_store_open(path, NULL, &s, &err), -1, "an empty one, too");
    TAP_OK(stat(path, &sb) == 0 && (sb.st_mode & 0777) == 0755, "and stays as it was");
}

int main(void)
{
    static void (*const tests[])(const char *) = {
        test_compare_and_set, test_dedupe,    test_outbox,
        test_order,           test_rotation,  test_due_of_few,
        test_old_segments_go, test_read_only, test_blob,
        test_digest,          test_door};
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        char dir[64], sub[80];
        tree_temporary(dir, sizeof dir);
        snprintf(sub, sizeof sub, "%s/state", dir);
        if (tests[i] == test_door)
            snprintf(sub, sizeof sub, "%s", dir);
        tests[i](sub);
        tree_remove(dir);
    }
    return tap_done();
}
