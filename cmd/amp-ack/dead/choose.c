/* Selects dead letters by ids, filters, or a jq expression. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>
#include <amp/base/pipe.h>
#include <amp/json/lines.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "base/grow.h"
#include "base/loop.h"
#include "dead.h"
#include "message/port/helper.h"
#include "message/protocol/redact/redact.h"

#define WHERE_LIMIT_MS 2000

struct dead_filter dead_filter = {.older_ms = -1, .newer_ms = -1};
static int64_t since_ms = INT64_MIN, until_ms = INT64_MAX;

const char *const dead_classes[] = {
    "temporary",      "permanent",        "undeliverable", "retries_exhausted",
    "terminal_error", "policy_violation", "ttl_expired",   NULL};
const char *const dead_protocols[] = {
#define X(id, name, title) #name,
    AMP_PROTOCOL_LIST(X)
#undef X
        NULL};

static void read_time(const char *option, const char *text, int64_t *ms)
{
    if (text && !amp_time_parse(amp_span_str(text), ms))
        amp_die_usage("%s takes a time like 2026-02-26T14:32:07Z", option);
}

void dead_filter_check(int argc, bool must)
{
    const struct dead_filter *f = &dead_filter;
    bool filtered = f->class || f->code || f->route || f->producer || f->type || f->protocol ||
                    f->task || f->where || f->since || f->until || f->older_ms >= 0 ||
                    f->newer_ms >= 0 || f->limit > 0 || f->keep > 0;
    read_time("--since", f->since, &since_ms);
    read_time("--until", f->until, &until_ms);
    if (must && argc == 0 && !filtered && !f->every)
        amp_die_usage("no dead letters selected: give ids, a filter, or --every");
    if (argc > 0 && f->every)
        amp_die_usage("ids and --every exclude each other");
}

static bool glob_matches(const char *pattern, struct amp_span text)
{
    return !pattern || amp_span_glob(text, amp_span_str(pattern));
}

static bool class_matches(const struct amp_dead_letter *d, const char *class)
{
    if (!class)
        return true;
    if (strcmp(class, "temporary") == 0 || strcmp(class, "permanent") == 0)
        return d->retryable == (class[0] == 't');
    return strcmp(class, amp_dead_class_name(d->final)) == 0;
}

static bool filter_matches(const struct amp_dead_letter *d, int64_t now_ms)
{
    const struct dead_filter *f = &dead_filter;
    return class_matches(d, f->class) && (!f->code || strcmp(f->code, d->code) == 0) &&
           glob_matches(f->route, amp_span_str(d->route)) && glob_matches(f->producer, d->from) &&
           glob_matches(f->type, d->type) &&
           (!f->protocol || strcmp(f->protocol, d->protocol) == 0) &&
           glob_matches(f->task, d->task) && d->failed_ms >= since_ms && d->failed_ms < until_ms &&
           (f->older_ms < 0 || d->failed_ms <= now_ms - f->older_ms) &&
           (f->newer_ms < 0 || d->failed_ms > now_ms - f->newer_ms);
}

/* ---- the jq expression ---- */

struct dead_where {
    struct amp_helper *helper;
    int verdict;
    struct amp_span id;
};

static int where_open(const char *expr, struct dead_where *w, struct amp_error *err)
{
    const char *args[] = {expr, NULL};
    struct amp_helper_options opt = {
        .name = "jq-worker", .args = args, .limit_ms = WHERE_LIMIT_MS, .stop = &amp_stop};
    if (amp_helper_new(&opt, &w->helper, err) < 0)
        return -1;
    return amp_helper_probe(w->helper, err);
}

/* {"q":0,"r":[true]}, or a text where the expression failed. */
static void where_reply(void *ctx, uint64_t tag, struct amp_span answer,
                        const struct amp_error *why)
{
    struct dead_where *w = ctx;
    AMP_TAPE struct amp_tape t = {0};
    struct amp_json_fault fault;
    char said[200] = "no answer";
    amp_tape_init(&t, NULL);
    w->verdict = 0;
    if (why) {
        snprintf(said, sizeof(said), "%.190s", why->what);
    } else if (amp_tape_scan(&t, answer.p, answer.n, &fault) == 0) {
        uint32_t first = amp_tape_pointer(&t, 0, AMP_SPAN("/r/0"));
        if (first != AMP_TOK_NONE && t.tok[first].type == AMP_JSON_STRING)
            amp_span_copy(amp_tok_raw(&t, first), said, sizeof(said));
        else if (first != AMP_TOK_NONE)
            said[0] = '\0';
        w->verdict = first != AMP_TOK_NONE && t.tok[first].type == AMP_JSON_TRUE;
    }
    if (said[0]) {
        amp_warn("%.*s: --where does not judge it: %s", (int)w->id.n, w->id.p, said);
        amp_status_note(AMP_NO);
    }
}

static int where_holds(struct dead_where *w, struct amp_span id, struct amp_span json,
                       struct amp_error *err)
{
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, json.n + 64);
    if (amp_buf_str(&b, "\"f\":[0],\"m\":", err) < 0 || amp_buf_add(&b, json.p, json.n, err) < 0)
        return -1;
    w->id = id;
    struct amp_error e = {0};
    int rc = amp_helper_ask(w->helper, 0, amp_buf_span(&b), &e);
    if (rc < 0) { /* too large for the helper */
        where_reply(w, 0, (struct amp_span){"", 0}, &e);
        return 0;
    }
    while (amp_helper_in_flight(w->helper) > 0) {
        struct pollfd fds[2];
        struct amp_loop turn = amp_loop_turn(fds, 2, &amp_stop, NULL);
        int timeout = -1;
        amp_helper_watch(w->helper, amp_loop_places(&turn, 2), &timeout);
        amp_loop_within(&turn, timeout);
        if (amp_loop_wait(&turn, err) < 0)
            return -1;
        if (amp_helper_step(w->helper, where_reply, w, err) < 0)
            return -1;
        if (amp_stop)
            return amp_fail(err, AMP_INTERRUPTED, interrupted, "interrupted");
    }
    return w->verdict;
}

/* ---- choosing ---- */

struct choosing {
    struct dead_choices *out;
    struct dead_where where; /* helper NULL: no expression */
    int64_t now_ms;
};

static int choice_add(struct choosing *c, struct amp_span id, const struct amp_dead_letter *d,
                      struct amp_error *err)
{
    struct dead_choices *o = c->out;
    if (amp_grow(&o->v, &o->cap, o->n, sizeof *o->v, err) < 0)
        return -1;
    char *copy = amp_span_dup(id);
    if (!copy)
        return amp_fail_memory(err);
    o->v[o->n++] = (struct dead_choice){copy, d->rev, d->failed_ms, d->frame, d->open};
    return 0;
}

static int letter_fn(void *ctx, struct amp_span id, const struct amp_dead_letter *d,
                     struct amp_span json, struct amp_error *err)
{
    struct choosing *c = ctx;
    if (!filter_matches(d, c->now_ms))
        return 0;
    int holds = c->where.helper ? where_holds(&c->where, id, json, err) : 1;
    return holds > 0 ? choice_add(c, id, d, err) : holds;
}

static int id_choose(struct amp_store *s, struct choosing *c, struct amp_span id,
                     struct amp_error *err)
{
    struct amp_error e = {0};
    if (amp_dead_find(s, id, letter_fn, c, &e) == 0)
        return 0;
    if (e.status != AMP_NO) {
        *err = e;
        return -1;
    }
    amp_warn("%.*s: %s: %s", (int)(id.n > 200 ? 200 : id.n), id.p, e.code, e.what);
    amp_status_note(AMP_NO);
    return 0;
}

static int stdin_choose(struct amp_store *s, struct choosing *c, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    char part[65536];
    size_t n;
    amp_buf_init(&text, (size_t)64 << 20);
    amp_note_terminal(NULL);
    while ((n = fread(part, 1, sizeof(part), stdin)) > 0)
        if (amp_buf_add(&text, part, n, err) < 0)
            return -1;
    if (ferror(stdin))
        return amp_fail_errno(err, AMP_IOERR, "cannot read the ids");
    for (size_t at = 0; at < text.len;) {
        const char *line = text.data + at;
        const char *end = memchr(line, '\n', text.len - at);
        size_t len = end ? (size_t)(end - line) : text.len - at;
        at += len + 1;
        while (len > 0 && (line[len - 1] == '\r' || line[len - 1] == ' '))
            len--;
        if (len > 0 && id_choose(s, c, (struct amp_span){line, len}, err) < 0)
            return -1;
    }
    return 0;
}

/* The oldest first; letters of the same millisecond in the order of the log. */
static int compare_ages(const void *a, const void *b)
{
    const struct dead_choice *x = a, *y = b;
    if (x->failed_ms != y->failed_ms)
        return x->failed_ms < y->failed_ms ? -1 : 1;
    if (x->frame != y->frame)
        return x->frame < y->frame ? -1 : 1;
    return strcmp(x->id, y->id);
}

static void choices_shorten(struct dead_choices *out, size_t most)
{
    while (out->n > most)
        free(out->v[--out->n].id);
}

int dead_choose(struct amp_store *s, int argc, char **argv, struct dead_choices *out,
                struct amp_error *err)
{
    struct choosing c = {.out = out, .now_ms = amp_now_ms()};
    int rc = 0;
    if (dead_filter.where)
        rc = where_open(dead_filter.where, &c.where, err);
    if (argc == 0 && rc == 0)
        rc = amp_dead_each(s, dead_filter.all, letter_fn, &c, err);
    for (int i = 0; i < argc && rc == 0; i++)
        rc = strcmp(argv[i], "-") == 0 ? stdin_choose(s, &c, err)
                                       : id_choose(s, &c, amp_span_str(argv[i]), err);
    amp_helper_free(c.where.helper);
    if (rc < 0)
        return -1;
    if (out->n > 0)
        qsort(out->v, out->n, sizeof(*out->v), compare_ages);
    if (dead_filter.keep > 0)
        choices_shorten(out,
                        out->n > (size_t)dead_filter.keep ? out->n - (size_t)dead_filter.keep : 0);
    if (dead_filter.limit > 0)
        choices_shorten(out, (size_t)dead_filter.limit);
    return 0;
}

void dead_choices_release(struct dead_choices *c)
{
    choices_shorten(c, 0);
    free(c->v);
    c->v = NULL;
    c->cap = 0;
}

const char *dead_state(const struct amp_dead_letter *d)
{
    return d->open ? "DEAD" : d->withdrawn ? "WITHDRAWN" : "REQUEUED";
}

int dead_format(struct amp_span id, const struct amp_dead_letter *d, struct amp_span json,
                struct amp_buf *out, struct amp_error *err)
{
    struct amp_jw w;
    size_t before = out->len;
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_str(&w, "id", id);
    amp_jw_member_text(&w, "state", dead_state(d));
    size_t brace = 0;
    int rc = amp_jw_end(&w, err) < 0 || amp_buf_str(out, ",", err) < 0 ? -1 : 0;
    if (rc == 0) {
        brace = out->len;
        rc = dead_filter.raw ? amp_buf_add(out, json.p, json.n, err)
                             : amp_redact_line(json, out, err);
    }
    if (rc < 0) {
        out->len = before;
        return -1;
    }
    /* Removes the record's opening brace. */
    memmove(out->data + brace, out->data + brace + 1, out->len - brace - 1);
    out->len--;
    return 0;
}

int dead_sync_parent(const char *path, struct amp_error *err)
{
    char dir[PATH_MAX];
    snprintf(dir, sizeof(dir), "%s", path);
    char *slash = strrchr(dir, '/');
    if (slash)
        slash[slash == dir] = '\0';
    return amp_fsync_dir(AT_FDCWD, slash ? dir : ".", err);
}
