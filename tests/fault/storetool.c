/*
 * A small user of the store, for tests that end it hard.
 *
 * storetool DIR work NAME COUNT BATCH   messages NAME-1 … NAME-COUNT, BATCH of them in a turn,
 * which is synced; each id goes to standard output after its sync. With AMP_TEST_SPLIT each has a
 * turn of its own
 *
 * storetool DIR mix NAME COUNT   the same with all that a store does: keys of its own and one that
 *                                others change too, lines closed and left open, removals, blobs;
 *                                what may be relied on goes to standard output
 *
 * storetool DIR index NAME COUNT   COUNT rounds of messages as work does; after each the index is
 *                                  brought up, and its write-ahead log moved into its file
 *
 * storetool DIR check   what work and mix said, on standard input: all of it must be true, and of
 *                       each turn of work all messages are there or none; then one more commit
 *                       must succeed
 *
 * storetool DIR count KEY COUNT adds to the record KEY, get KEY prints it, outbox CONSUMER prints
 * and closes what is open, repair repairs.
 *
 * Segments are small (AMP_TEST_SEGMENT bytes, 16 KiB), so that rotation is met often; with
 * AMP_TEST_KEEP=N only N of them stay, and ids may be forgotten, records not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/base/num.h>

#include "message/store/store_int.h"

static struct amp_error err;

static int fail(const char *what)
{
    fprintf(stderr, "storetool: %s: %s: %s\n", what, err.code, err.what);
    return err.status ? (int)err.status : 70;
}

static long number(const char *text)
{
    int64_t v;
    if (amp_num_parse(amp_span_str(text), 0, 1 << 30, &v, &err) != 0)
        exit(fail("number"));
    return (long)v;
}

struct record {
    char json[400], line[200], id[80];
    char turn[80]; /* the first message of its turn, and how many follow */
    long of;
    struct amp_store_emit emit;
};

static int put(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
               struct amp_error *e)
{
    struct record *r = ctx;
    (void)now;
    (void)e;
    snprintf(r->json, sizeof r->json, "{\"id\":\"%s\",\"turn\":\"%s\",\"of\":%ld,\"pad\":\"%0*d\"}",
             r->id, r->of ? r->turn : r->id, r->of, 60, 0);
    snprintf(r->line, sizeof r->line, "{\"for\":\"%s\"}", r->id);
    r->emit = (struct amp_store_emit){amp_span_str(r->id), amp_span_str(r->line), false};
    *c = (struct amp_store_change){.event = "sent",
                                   .to = "SENT",
                                   .json = amp_span_str(r->json),
                                   .emits = &r->emit,
                                   .n_emits = 1};
    return 0;
}

static int update(struct amp_store *s, struct record *r, const char *id)
{
    enum amp_store_outcome what;
    snprintf(r->id, sizeof r->id, "%s", id);
    struct amp_store_input in = {"work", amp_span_str(r->id), amp_span_str(r->id)};
    return amp_store_update(s, AMP_KEY("message", amp_span_str(r->id)), &in, put, r, &what, &err);
}

static int work(struct amp_store *s, const char *name, long count, long batch)
{
    struct record r;
    bool turns = batch > 1 && !getenv("AMP_TEST_SPLIT");
    int64_t any;
    char out[8192];
    for (long i = 1; i <= count;) {
        size_t n = 0;
        if (turns && amp_store_begin(s, &err) != 0)
            return fail("begin");
        snprintf(r.turn, sizeof r.turn, "%s-%ld", name, i);
        r.of = count - i + 1 < batch ? count - i + 1 : batch;
        for (long b = 0; b < batch && i <= count; b++, i++) {
            char id[64];
            snprintf(id, sizeof id, "%s-%ld", name, i);
            if (update(s, &r, id) != 0)
                return fail("update");
            /* The index gets a part of the turn. */
            if (turns && b == 2 && i % 3 == 0 && amp_store_next_due(s, "message", &any, &err) != 0)
                return fail("next_due");
            n += (size_t)snprintf(out + n, sizeof out - n, "%s\n", id);
        }
        if (turns)
            amp_store_end(s);
        if (amp_store_sync(s, &err) != 0)
            return fail("sync");
        if (amp_write_all(1, (struct amp_span){out, n}, &err) != 0)
            return fail("write");
    }
    return 0;
}

static int add_one(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                   struct amp_error *e)
{
    char *json = ctx;
    int64_t v = 0;
    if (now->found &&
        amp_num_parse((struct amp_span){now->json.p + 5, now->json.n - 6}, 0, INT64_MAX - 1, &v, e))
        return -1;
    snprintf(json, 64, "{\"v\":%lld}", (long long)v + 1);
    *c = (struct amp_store_change){.event = "add", .to = "N", .json = amp_span_str(json)};
    return 0;
}

static int count(struct amp_store *s, const char *key, long n)
{
    char json[64];
    while (n--)
        if (amp_store_update(s, AMP_KEY("task", amp_span_str(key)), NULL, add_one, json, NULL,
                             &err) != 0)
            return fail("update");
    return amp_store_sync(s, &err) != 0 ? fail("sync") : 0;
}

static int get(struct amp_store *s, const char *key)
{
    struct amp_store_rec rec;
    if (amp_store_get(s, AMP_KEY("task", amp_span_str(key)), &rec, &err) != 0)
        return fail("get");
    printf("%.*s\n", (int)rec.json.n, rec.json.n ? rec.json.p : "");
    return rec.found ? 0 : 1;
}

enum { BLOB = 950000, OPEN_MAX = 4096 };

/* Sets or removes "message NAME". */
static int other(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                 struct amp_error *e)
{
    (void)now;
    (void)e;
    *c = (struct amp_store_change){.event = "set", .to = "SET", .json = amp_span_str(ctx)};
    c->remove = !ctx;
    return 0;
}

static int set(struct amp_store *s, const char *name, char *json)
{
    return amp_store_update(s, AMP_KEY("message", amp_span_str(name)), NULL, other, json, NULL,
                            &err);
}

static int counter_raise(struct amp_store *s, const char *key, char *out, size_t size)
{
    char json[64];
    if (amp_store_update(s, AMP_KEY("task", amp_span_str(key)), NULL, add_one, json, NULL, &err) !=
        0)
        return -1;
    json[strlen(json) - 1] = '\0';
    snprintf(out + strlen(out), size - strlen(out), "key %s %s\n", key, json + 5);
    return 0;
}

static int one_mix(struct amp_store *s, const char *name, long i, char *out, size_t size)
{
    static struct amp_store_entry_id last;
    static char big[BLOB + 64];
    struct record r = {.of = 0};
    char id[64], text[200];
    out[0] = '\0';
    snprintf(id, sizeof id, "%s-%ld", name, i);
    if (update(s, &r, id) != 0)
        return -1;
    struct amp_store_entry_id made = {amp_store_last_frame(s), 0};
    if (counter_raise(s, name, out, size) != 0 ||
        (i % 2 == 0 && counter_raise(s, "shared", out, size) != 0))
        return -1;
    snprintf(text, sizeof text, "%s\n%s%s%s", id, i % 3 == 0 ? "open " : "", i % 3 == 0 ? id : "",
             i % 3 == 0 ? "\n" : "");
    strcat(out, text);
    if (last.n) {
        if (amp_store_outbox_close(s, "work", &last, 1, &err) != 0)
            return -1;
        snprintf(text, sizeof text, "closed %llu\n", (unsigned long long)last.n);
        strcat(out, text);
    }
    last = i % 3 == 1 ? made : (struct amp_store_entry_id){0};
    if (i % 5 == 2) {
        snprintf(id, sizeof id, "%s-%ld-gone", name, i);
        if (set(s, id, (char[]){"{}"}) != 0 || set(s, id, NULL) != 0)
            return -1;
        snprintf(text, sizeof text, "gone %s\n", id);
        strcat(out, text);
    }
    if (i % 11 == 4) {
        snprintf(id, sizeof id, "%s-%ld-big", name, i);
        int n = snprintf(big, 64, "{\"id\":\"%s\",\"pad\":\"", id);
        memset(big + n, 'b', BLOB);
        memcpy(big + n + BLOB, "\"}", 3);
        if (set(s, id, big) != 0)
            return -1;
        snprintf(text, sizeof text, "blob %s\n", id);
        strcat(out, text);
    }
    return 0;
}

static int mix(struct amp_store *s, const char *name, long count)
{
    char out[2048];
    for (long i = 1; i <= count; i++) {
        if (one_mix(s, name, i, out, sizeof out) != 0)
            return fail("mix");
        if (amp_store_sync(s, &err) != 0)
            return fail("sync");
        if (amp_write_all(1, amp_span_str(out), &err) != 0)
            return fail("write");
    }
    return 0;
}

static struct {
    uint64_t n;
    char id[80];
} open_lines[OPEN_MAX];
static size_t n_open;

static int note_open(void *ctx, const struct amp_store_entry *e, struct amp_error *failed)
{
    (void)ctx;
    if (n_open < OPEN_MAX) {
        open_lines[n_open].n = e->n;
        amp_span_copy(e->id, open_lines[n_open++].id, 80);
    }
    return 0;
}

static bool is_open(uint64_t n, const char *id)
{
    for (size_t i = 0; i < n_open; i++)
        if (id ? strcmp(open_lines[i].id, id) == 0 : open_lines[i].n == n)
            return true;
    return false;
}

/* Whether a line that mix or work has printed is true: 1, 0, or -1. */
static int holds(struct amp_store *s, char *line)
{
    struct amp_store_rec rec;
    char *arg = strchr(line, ' ');
    if (!arg) {
        struct amp_store_input in = {"work", amp_span_str(line), amp_span_str(line)};
        if (amp_store_get(s, AMP_KEY("message", amp_span_str(line)), &rec, &err) != 0)
            return -1;
        int seen = amp_store_seen(s, &in, &err);
        return rec.found && (seen == AMP_STORE_SEEN || seen == AMP_STORE_NOT_SEEN) &&
               (seen == AMP_STORE_SEEN || getenv("AMP_TEST_KEEP"));
    }
    *arg++ = '\0';
    if (strcmp(line, "open") == 0)
        return is_open(0, arg);
    if (strcmp(line, "closed") == 0)
        return !is_open((uint64_t)number(arg), NULL);
    if (strcmp(line, "key") == 0) {
        char *value = strchr(arg, ' ');
        *value++ = '\0';
        if (amp_store_get(s, AMP_KEY("task", amp_span_str(arg)), &rec, &err) != 0)
            return -1;
        return rec.found && strtol(rec.json.p + 5, NULL, 10) >= number(value);
    }
    if (amp_store_get(s, AMP_KEY("message", amp_span_str(arg)), &rec, &err) != 0)
        return -1;
    if (strcmp(line, "gone") == 0)
        return !rec.found;
    return rec.found && rec.json.n > BLOB && rec.json.p[rec.json.n - 3] == 'b';
}

/* Of a turn that has one of its messages: whether it has all of them. */
static int turn_check(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                      struct amp_error *failed)
{
    struct amp_store *s = ctx;
    struct amp_store_rec other;
    char json[400], turn[80], name[120];
    long of, first;
    amp_span_copy(rec->json, json, sizeof json);
    if (sscanf(json, "{\"id\":\"%*[^\"]\",\"turn\":\"%79[^\"]\",\"of\":%ld", turn, &of) != 2 ||
        of < 2)
        return 0;
    char *number_at = strrchr(turn, '-');
    first = number(number_at + 1);
    *number_at = '\0';
    for (long i = first; i < first + of; i++) {
        snprintf(name, sizeof name, "%s-%ld", turn, i);
        if (amp_store_get(s, AMP_KEY("message", amp_span_str(name)), &other, failed) != 0)
            return -1;
        if (!other.found)
            return amp_fail_text(failed, AMP_DATAERR, "part", "a part of turn %s-%ld: no %s", turn,
                                 first, name);
    }
    return 0;
}

static int check(struct amp_store *s)
{
    char line[200], shown[200];
    long n = 0, missing = 0;
    struct record r = {.of = 0};
    if (amp_store_each(s, "message", NULL, turn_check, s, &err) != 0)
        return fail("turns");
    if (amp_store_outbox(s, "work", note_open, NULL, &err) != 0)
        return fail("outbox");
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        strcpy(shown, line);
        int rc = holds(s, line);
        if (rc < 0)
            return fail("get");
        if (!rc && !missing++)
            fprintf(stderr, "storetool: %s was acknowledged and is not there\n", shown);
        n++;
    }
    if (missing) {
        fprintf(stderr, "storetool: %ld of %ld missing\n", missing, n);
        return 1;
    }
    if (update(s, &r, "one-more") != 0 || amp_store_sync(s, &err) != 0)
        return fail("one more commit");
    return 0;
}

static int shown(void *ctx, const struct amp_store_entry *e, struct amp_error *failed)
{
    struct amp_store_entry_id id = {e->n, e->index};
    printf("%.*s\n", (int)e->id.n, e->id.p);
    return amp_store_outbox_close(ctx, "work", &id, 1, &err) != 0;
}

static int repair(const char *dir)
{
    AMP_BUF struct amp_buf said = {0};
    amp_buf_init(&said, 65536);
    if (amp_store_repair(dir, &said, &err) != 0)
        return fail("repair");
    printf("%.*s", (int)said.len, said.data);
    return 0;
}

static int index_rounds(struct amp_store *s, const char *name, long count)
{
    enum { MESSAGES = 40, TRUNCATED = 3 };
    int64_t due;
    char part[80];
    for (long i = 1; i <= count; i++) {
        snprintf(part, sizeof part, "%s-%ld", name, i);
        int rc = work(s, part, MESSAGES, MESSAGES);
        if (rc != 0)
            return rc;
        if (amp_store_next_due(s, "message", &due, &err) != 0)
            return fail("next_due");
        if (i % TRUNCATED) {
            amp_index_checkpoint(&s->index, -1, false);
            continue;
        }
        if (amp_store_begin(s, &err) != 0)
            return fail("begin");
        amp_index_checkpoint(&s->index, -1, true);
        amp_store_end(s);
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct amp_store_options o = {
        .lock_timeout_ms = 60000, .segment_bytes = 16384, .keep_segments = 1000000};
    struct amp_store *s;
    const char *segment = getenv("AMP_TEST_SEGMENT"), *keep = getenv("AMP_TEST_KEEP");
    if (argc < 3)
        return 64;
    const char *dir = argv[1], *verb = argv[2];
    if (segment)
        o.segment_bytes = (uint64_t)number(segment);
    if (keep)
        o.keep_segments = (uint32_t)number(keep);
    if (strcmp(verb, "repair") == 0)
        return repair(dir);
    if (amp_store_open(dir, &o, &s, &err) != 0)
        return fail("open");
    int rc = 64;
    if (strcmp(verb, "work") == 0 && argc == 6)
        rc = work(s, argv[3], number(argv[4]), number(argv[5]));
    else if (strcmp(verb, "index") == 0 && argc == 5)
        rc = index_rounds(s, argv[3], number(argv[4]));
    else if (strcmp(verb, "mix") == 0 && argc == 5)
        rc = mix(s, argv[3], number(argv[4]));
    else if (strcmp(verb, "count") == 0 && argc == 5)
        rc = count(s, argv[3], number(argv[4]));
    else if (strcmp(verb, "get") == 0 && argc == 4)
        rc = get(s, argv[3]);
    else if (strcmp(verb, "check") == 0)
        rc = check(s);
    else if (strcmp(verb, "outbox") == 0 && argc == 4)
        rc = amp_store_outbox(s, argv[3], shown, s, &err) != 0 ? fail("outbox") : 0;
    amp_store_close(s);
    return rc;
}
