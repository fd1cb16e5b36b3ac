/* Retention: while segments go by number or by age, nothing that lives is lost, and what nothing
 * names any more goes as well. A model of what must be there is compared with it again and again.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "../tap.h"
#include "../tree.h"
#include "message/store/store.h"

enum { KEYS = 60, QUIET = 20, OPEN_MAX = 4000, BIG = 950000, ROUNDS = 4000 };

static struct amp_error err;
static struct amp_store *handle[2];
static unsigned seed = 12345;

static struct {
    bool there;
    int value;
    size_t pad;
} model[KEYS];

static struct {
    struct amp_store_entry_id id;
    int name;
    bool found;
} open_lines[OPEN_MAX];
static int n_open, names;

static unsigned dice(unsigned n)
{
    seed = seed * 1103515245u + 12345u;
    return (seed >> 8) % n;
}

static struct amp_store *open_store(const char *dir, uint64_t segment, unsigned keep, uint64_t ms)
{
    struct amp_store_options o = {
        .lock_timeout_ms = 5000, .segment_bytes = segment, .keep_segments = keep, .keep_ms = ms};
    struct amp_store *s = NULL;
    if (amp_store_open(dir, &o, &s, &err) != 0)
        printf("# open: %s %s\n", err.code, err.what);
    return s;
}

struct put {
    char *json;
    struct amp_store_emit emit[2];
    char id[2][32], line[2][64];
    unsigned n;
    bool remove;
};

static int take(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                struct amp_error *e)
{
    struct put *p = ctx;
    (void)now;
    (void)e;
    *c = (struct amp_store_change){.event = "set",
                                   .to = "SET",
                                   .json = amp_span_str(p->json),
                                   .emits = p->emit,
                                   .n_emits = p->n,
                                   .remove = p->remove,
                                   .actor = "w"};
    return 0;
}

static char *record(int value, size_t pad)
{
    char *json = malloc(pad + 64);
    int n = snprintf(json, 64, "{\"v\":%d,\"pad\":\"", value);
    memset(json + n, 'x', pad);
    memcpy(json + n + pad, "\"}", 3);
    return json;
}

static int set(struct amp_store *s, int k, int value, size_t pad, unsigned emits, bool remove)
{
    char key[16];
    struct put p = {.json = record(value, pad), .n = emits, .remove = remove};
    snprintf(key, sizeof key, "k%d", k);
    for (unsigned i = 0; i < emits; i++) {
        snprintf(p.id[i], sizeof p.id[i], "m%d", names + (int)i);
        snprintf(p.line[i], sizeof p.line[i], "{\"line\":%d}", names + (int)i);
        p.emit[i] = (struct amp_store_emit){amp_span_str(p.id[i]), amp_span_str(p.line[i]), i == 1};
    }
    int rc = amp_store_update(s, AMP_KEY("thing", amp_span_str(key)), NULL, take, &p, NULL, &err);
    free(p.json);
    if (rc != 0) {
        printf("# set: %s %s\n", err.code, err.what);
        return -1;
    }
    model[k].there = !remove;
    model[k].value = value;
    model[k].pad = pad;
    for (unsigned i = 0; i < emits && n_open < OPEN_MAX; i++) {
        open_lines[n_open].id = (struct amp_store_entry_id){amp_store_last_frame(s), i};
        open_lines[n_open++].name = names + (int)i;
    }
    names += (int)emits;
    return 0;
}

static int close_one(struct amp_store *s, bool acked)
{
    /* The first one stays open for ever. */
    if (n_open < 2)
        return 0;
    int i = 1 + (int)dice((unsigned)n_open - 1);
    char id[32];
    int n = snprintf(id, sizeof id, "m%d", open_lines[i].name);
    int rc = acked ? amp_store_outbox_acked(s, (struct amp_span){id, (size_t)n}, &err)
                   : amp_store_outbox_close(s, "w", &open_lines[i].id, 1, &err);
    open_lines[i] = open_lines[--n_open];
    if (rc != 0)
        printf("# close: %s %s\n", err.code, err.what);
    return rc;
}

struct look {
    int n, wrong;
};

static int see(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
               struct amp_error *failed)
{
    struct look *l = ctx;
    int k = atoi(id.p + 1);
    char *json = record(model[k].value, model[k].pad);
    l->n++;
    l->wrong += !model[k].there || !amp_span_is(rec->json, json);
    free(json);
    return 0;
}

static int line(void *ctx, const struct amp_store_entry *e, struct amp_error *failed)
{
    struct look *l = ctx;
    char want[64];
    l->n++;
    for (int i = 0; i < n_open; i++)
        if (open_lines[i].id.n == e->n && open_lines[i].id.index == e->index) {
            snprintf(want, sizeof want, "{\"line\":%d}", open_lines[i].name);
            l->wrong += open_lines[i].found || !amp_span_is(e->line, want);
            open_lines[i].found = true;
            return 0;
        }
    l->wrong++;
    return 0;
}

/* How many things are not as the model says. */
static int compare(struct amp_store *s)
{
    struct look keys = {0}, lines = {0};
    int there = 0;
    for (int k = 0; k < KEYS; k++)
        there += model[k].there;
    for (int i = 0; i < n_open; i++)
        open_lines[i].found = false;
    if (amp_store_each(s, "thing", NULL, see, &keys, &err) != 0 ||
        amp_store_outbox(s, "w", line, &lines, &err) != 0) {
        printf("# compare: %s %s\n", err.code, err.what);
        return 1000000;
    }
    return keys.wrong + lines.wrong + abs(keys.n - there) + abs(lines.n - n_open);
}

static int count(const char *dir, const char *sub, const char *suffix, int *first)
{
    char path[600];
    int n = 0;
    snprintf(path, sizeof path, "%s/%s", dir, sub);
    DIR *d = opendir(path);
    *first = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        size_t l = strlen(e->d_name), k = strlen(suffix);
        if (e->d_name[0] == '.' && (!e->d_name[1] || e->d_name[1] == '.'))
            continue;
        if (l < k || strcmp(e->d_name + l - k, suffix) != 0)
            continue;
        n++;
        int v = atoi(e->d_name);
        *first = !*first || v < *first ? v : *first;
    }
    if (d)
        closedir(d);
    return n;
}

static void touch(const char *dir, const char *name, const char *text)
{
    char path[700];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    fputs(text, f);
    fclose(f);
}

static int one_step(const char *dir, int round)
{
    struct amp_store **s = &handle[dice(2)];
    unsigned what = dice(1000);
    int k = QUIET + (int)dice(KEYS - QUIET);
    if (what < 700)
        return set(*s, k, round, dice(200), dice(6) == 0 ? 1 + dice(2) : 0, false);
    if (what < 750)
        return set(*s, k, round, 0, 0, true);
    if (what < 955)
        return close_one(*s, dice(3) == 0);
    if (what < 980)
        return set(*s, k, round, dice(50), 1, false);
    if (what < 986)
        return set(*s, k, round, BIG + dice(1000), 0, false);
    if (what < 990) {
        amp_store_close(*s);
        if (dice(4) == 0) {
            tree_remove_file(dir, "index.db");
            tree_remove_file(dir, "index.db-wal");
            tree_remove_file(dir, "index.db-shm");
        }
        *s = open_store(dir, 16384, 3, 0);
        return *s ? 0 : -1;
    }
    if (what < 995) { /* several in one turn */
        if (amp_store_begin(*s, &err) != 0)
            return -1;
        int rc = 0;
        for (int i = 0; i < 20 && rc == 0; i++)
            rc = set(*s, QUIET + (int)dice(KEYS - QUIET), round * 100 + i, dice(100), 0, false);
        amp_store_end(*s);
        return rc;
    }
    return amp_store_sync(*s, &err);
}

static void test_rotations(const char *dir)
{
    int first, wrong = 0, failed = 0;
    handle[0] = open_store(dir, 16384, 3, 0);
    handle[1] = open_store(dir, 16384, 3, 0);
    for (int k = 0; k < QUIET; k++)
        set(handle[0], k, k, 30, k == 0, false);
    set(handle[0], QUIET - 1, 7, BIG, 0, false);
    for (int round = 0; round < ROUNDS && !failed; round++) {
        failed += one_step(dir, round) != 0;
        if (round % 200 == 199)
            wrong += compare(handle[dice(2)]);
    }
    TAP_INT(failed, 0, "all of many steps are done");
    TAP_INT(wrong, 0, "and no key, line or blob was ever wrong");
    int segments = count(dir, "log", ".ndjson", &first);
    printf("# %d segments, the first is %d, %d lines open, %d blobs\n", segments, first, n_open,
           count(dir, "blob", "", &(int){0}));
    TAP_OK(first > 40, "while many segments went");
    TAP_OK(segments <= 6, "and few stayed");

    touch(dir, "blob/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "lost");
    touch(dir, "blob/.half.0123456789abcdef.tmp", "lo");
    for (int k = 0; k < KEYS; k++)
        if (model[k].there && model[k].pad >= BIG && k != QUIET - 1)
            set(handle[0], k, 1, 1, 0, false);
    for (int i = 0; i < 1200; i++)
        failed += set(handle[i % 2], QUIET + 1, i, 100, 0, false) != 0;
    TAP_INT(failed, 0, "more is written");
    TAP_INT(count(dir, "blob", "", &(int){0}), 1, "the one blob that is named stays");
    TAP_INT(compare(handle[0]), 0, "for one handle");
    TAP_INT(compare(handle[1]), 0, "and the other all is there");
    amp_store_close(handle[0]);
    amp_store_close(handle[1]);
    tree_remove_file(dir, "index.db");
    handle[0] = open_store(dir, 16384, 3, 0);
    TAP_INT(compare(handle[0]), 0, "also from the log alone");
    amp_store_close(handle[0]);
}

static void test_age(const char *dir)
{
    int first, failed = 0;
    struct amp_store *s = open_store(dir, 1 << 20, 1000, 80);
    memset(model, 0, sizeof model);
    n_open = 0;
    failed += set(s, 0, 1, 10, 1, false);
    for (int i = 0; i < 150; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
        failed += set(s, 1, i, 10, 0, false);
    }
    TAP_INT(failed, 0, "writing goes on for five times the age");
    int n = count(dir, "log", ".ndjson", &first);
    printf("# %d segments, the first is %d\n", n, first);
    TAP_OK(first > 2, "segments end by age, and go by age");
    TAP_INT(compare(s), 0, "what lives in them does not");
    amp_store_close(s);
}

/* Processes that write little: each goes on where the last one stopped. */
static void test_short(const char *dir)
{
    int first, failed = 0;
    memset(model, 0, sizeof model);
    n_open = 0;
    for (int i = 0; i < 1500; i++) {
        struct amp_store *s = open_store(dir, 16384, 3, 0);
        for (int k = 0; k < 2; k++)
            failed += set(s, 1 + (i % 8 ? k : (i + k) % KEYS), i, 100, 0, false);
        if (i % 100 == 50)
            tree_remove_file(dir, "log/retention");
        amp_store_close(s);
    }
    TAP_INT(failed, 0, "many handles write two frames each");
    int n = count(dir, "log", ".ndjson", &first);
    printf("# %d segments, the first is %d\n", n, first);
    TAP_OK(first > 20 && n <= 6, "segments go all the same");
    struct amp_store *s = open_store(dir, 16384, 3, 0);
    TAP_INT(compare(s), 0, "and all is there");
    amp_store_close(s);
    tree_remove_file(dir, "index.db");
    s = open_store(dir, 16384, 3, 0);
    TAP_INT(compare(s), 0, "also from the log alone");
    amp_store_close(s);
}

static void test_settings(const char *dir)
{
    int first, failed = 0;
    touch(dir, "amp.json", "{\"store\":{\"segment_bytes\":65536,\"keep_segments\":2}}");
    struct amp_store *s = open_store(dir, 0, 0, 0);
    memset(model, 0, sizeof model);
    n_open = 0;
    for (int i = 0; i < 400; i++)
        failed += set(s, 1, i, 2000, 0, false);
    TAP_INT(failed, 0, "a directory with settings of its own");
    int n = count(dir, "log", ".ndjson", &first);
    TAP_OK(first > 5 && n <= 4, "goes by them");
    amp_store_close(s);
    touch(dir, "amp.json", "{\"store\":{\"keep_days\":\"many\"}}");
    TAP_OK(!open_store(dir, 0, 0, 0), "wrong ones are refused");
    TAP_STR(err.code, "config_invalid", "by name");
}

int main(void)
{
    static void (*const tests[])(const char *) = {test_rotations, test_age, test_short,
                                                  test_settings};
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        char dir[64];
        tree_temporary(dir, sizeof dir);
        tests[i](dir);
        tree_remove(dir);
    }
    return tap_done();
}
