/* amp-ack audit: the security events of a state directory, and whether its log was changed. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "base/grow.h"
#include "cli/list.h"
#include "message/delivery/history/security.h"
#include "message/delivery/sender/head.h"
#include "message/store/history/history.h"
#include "pass.h"

enum { RECORD_MAX = 1 << 20 };
#define TEXT_MAX ((size_t)256 << 20)

static bool verify;
static struct amp_list kinds, wanted_codes;
static const char *from, *since, *format = "table";
static int64_t limit;
static const char *const formats[] = {"table", "ndjson", NULL};

static const struct amp_opt audit_opts[] = {
    {0, "verify", AMP_OPT_FLAG, &verify, NULL,
     .doc = "check the log with its key instead of listing events"},
    {0, "kind", AMP_OPT_LIST, &kinds, "KIND", .doc = "only events of this kind",
     .choices = amp_security_kinds},
    {0, "code", AMP_OPT_LIST, &wanted_codes, "CODE", .doc = "only events with this code",
     .values = "code"},
    {0, "from", AMP_OPT_STRING, &from, "NAME", .doc = "only events of this sender, key or tool"},
    {0, "since", AMP_OPT_STRING, &since, "TIME",
     .doc = "only from TIME on: RFC 3339 or an age (90s, 2h)"},
    {0, "limit", AMP_OPT_INT, &limit, "N", .doc = "print the newest N events (0: all)", .min = 0,
     .max = 1000000},
    {0, "format", AMP_OPT_CHOICE, &format, "FORMAT", .doc = "table or ndjson", .choices = formats},
    AMP_OPT_JSON("the same as --format ndjson"),
    AMP_OPT_END,
};

/* ---- events ---- */

/* An event that was read: its members, one after another in a buffer. */
enum { AT, KIND, CODE, TOOL, FROM, KEY, PROTOCOL, TYPE, ID, WHAT, MEMBERS };
struct row {
    struct amp_span of[MEMBERS];
};
#define MEMBER(key, head, member)                                                                  \
    AMP_COLUMN(TEXT, struct row, key, head, of[member], .ever = member <= KIND)
static const struct amp_column columns[] = {
    MEMBER("at", "TIME", AT),
    MEMBER("kind", "KIND", KIND),
    MEMBER("code", "CODE", CODE),
    MEMBER("tool", "TOOL", TOOL),
    MEMBER("from", "FROM", FROM),
    MEMBER("key", NULL, KEY),
    MEMBER("protocol", NULL, PROTOCOL),
    MEMBER("type", NULL, TYPE),
    MEMBER("id", "ID", ID),
    MEMBER("what", "WHAT", WHAT),
    {0},
};

struct event {
    size_t off, number;
    uint32_t n[MEMBERS];
};

struct listing {
    struct amp_store *store;
    struct amp_security_reader reader;
    struct amp_buf text;
    struct event *v;
    size_t n, cap;
    int64_t since_ms;
};

static bool list_has(const struct amp_list *l, struct amp_span text)
{
    for (int i = 0; i < l->n; i++)
        if (amp_span_is(text, l->v[i]))
            return true;
    return l->n == 0;
}

static bool is_wanted(const struct listing *l, const struct amp_security_event *e)
{
    int64_t at;
    if (!list_has(&kinds, amp_span_str(amp_security_kinds[e->kind])) ||
        !list_has(&wanted_codes, e->code))
        return false;
    if (from && !amp_span_is(e->from, from) && !amp_span_is(e->key, from) &&
        !amp_span_is(e->tool, from))
        return false;
    return !l->since_ms || (amp_time_parse(e->at, &at) && at >= l->since_ms);
}

static int event_add(struct listing *l, const struct amp_security_event *e, struct amp_error *err)
{
    const struct amp_span texts[MEMBERS] = {e->at,       amp_span_str(amp_security_kinds[e->kind]),
                                            e->code,     e->tool,
                                            e->from,     e->key,
                                            e->protocol, e->type,
                                            e->id,       e->what};
    if (!is_wanted(l, e))
        return 0;
    if (amp_grow(&l->v, &l->cap, l->n, sizeof *l->v, err) < 0)
        return -1;
    struct event x = {.off = l->text.len, .number = l->n};
    for (int i = 0; i < MEMBERS; i++) {
        x.n[i] = (uint32_t)texts[i].n;
        if (amp_buf_add(&l->text, texts[i].p, texts[i].n, err) < 0)
            return -1;
    }
    l->v[l->n++] = x;
    return 0;
}

static int error_take(void *ctx, struct amp_span record, struct amp_error *err)
{
    struct listing *l = ctx;
    struct amp_security_event e;
    int rc = amp_security_record(&l->reader, record, &e, err);
    return rc > 0 ? event_add(l, &e, err) : rc;
}

static int frame_fn(void *ctx, uint64_t n, struct amp_span frame, struct amp_error *err)
{
    struct listing *l = ctx;
    struct amp_security_event e;
    amp_progress("lines of the log", n, 0);
    int rc = amp_security_frame(&l->reader, frame, &e, err);
    return rc > 0 ? event_add(l, &e, err) : rc;
}

static const char *compared; /* the text of the events, for qsort */

static int by_time(const void *a, const void *b)
{
    const struct event *x = a, *y = b;
    size_t n = x->n[AT] < y->n[AT] ? x->n[AT] : y->n[AT];
    int rc = n ? memcmp(compared + x->off, compared + y->off, n) : 0;
    if (rc == 0)
        rc = (x->number > y->number) - (x->number < y->number);
    return rc;
}

static int events_print(struct listing *l, struct amp_listing *list, struct amp_error *err)
{
    compared = l->text.data;
    if (l->n)
        qsort(l->v, l->n, sizeof *l->v, by_time);
    for (size_t i = limit && l->n > (size_t)limit ? l->n - (size_t)limit : 0; i < l->n; i++) {
        struct row row;
        const char *p = l->text.data + l->v[i].off;
        for (int k = 0; k < MEMBERS; p += l->v[i].n[k++])
            row.of[k] = (struct amp_span){p, l->v[i].n[k]};
        if (amp_listing_row(list, &row, err) < 0)
            return -1;
    }
    return 0;
}

static int events_list(struct amp_store *s, struct amp_listing *list, struct amp_error *err)
{
    struct listing l = {.store = s};
    if (ack_since(since, &l.since_ms, err) < 0)
        return -1;
    amp_security_init(&l.reader);
    amp_buf_init(&l.text, TEXT_MAX);
    int rc = amp_store_errors_each(s, error_take, &l, err);
    if (rc == 0)
        rc = amp_store_frames(s, 0, frame_fn, &l, err);
    if (rc == 0)
        rc = events_print(&l, list, err);
    amp_security_release(&l.reader);
    amp_buf_release(&l.text);
    free(l.v);
    return rc;
}

/* ---- verify ---- */

static void verify_note(void *ctx, uint32_t seg, uint64_t off, const char *what)
{
    amp_warn("log/%06u.ndjson, offset %" PRIu64 ": %s", seg, off, what);
}

static int verdict_print(const struct amp_store_verdict *v, const struct amp_error *problem,
                         struct amp_error *err)
{
    AMP_BUF struct amp_buf b = {0};
    struct amp_jw w;
    char segment[24];
    amp_buf_init(&b, RECORD_MAX);
    if (!amp_listing_json) {
        if (problem)
            return 0; /* the diagnostic has everything */
        int rc = amp_buf_fmt(&b, err,
                             "the log is intact: frames %" PRIu64 " to %" PRIu64
                             " in %u segments, verified with the key from frame %" PRIu64
                             " on; %" PRIu64 " of %" PRIu64 " seals are signed",
                             v->first, v->last, v->segments, v->from, v->signed_, v->seals);
        if (rc == 0 && v->repairs)
            rc = amp_buf_fmt(&b, err, "; %" PRIu64 " repairs, %" PRIu64 " frames lost", v->repairs,
                             v->skipped);
        if (rc < 0 || amp_buf_str(&b, "\n", err) < 0)
            return -1;
        return amp_out(amp_buf_span(&b), err);
    }
    amp_jw_init(&w, &b);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "log", problem ? "tampered" : "intact");
    amp_jw_member_uint(&w, "first", v->first);
    amp_jw_member_uint(&w, "last", v->last);
    amp_jw_member_uint(&w, "verified_from", v->from);
    amp_jw_member_uint(&w, "noted_end", v->noted);
    amp_jw_member_uint(&w, "segments", v->segments);
    amp_jw_member_uint(&w, "bytes", v->bytes);
    amp_jw_member_uint(&w, "seals", v->seals);
    amp_jw_member_uint(&w, "signed_seals", v->signed_);
    amp_jw_member_uint(&w, "repairs", v->repairs);
    amp_jw_member_uint(&w, "lost_frames", v->skipped);
    if (problem) {
        snprintf(segment, sizeof segment, "%06u", v->seg);
        amp_jw_member_text(&w, "code", problem->code);
        amp_jw_member_text(&w, "segment", segment);
        amp_jw_member_uint(&w, "offset", v->off);
        amp_jw_member_uint(&w, "frame", v->n);
        amp_jw_member_text(&w, "problem", problem->what);
    }
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err) < 0 ? -1 : amp_out(amp_buf_span(&b), err);
}

static int log_verify(struct amp_store *s, struct amp_error *err)
{
    const struct amp_store_verify how = {.note = verify_note, .progress = amp_progress};
    struct amp_store_verdict verdict;
    struct amp_error why;
    int rc = amp_head_verify(s, how, &verdict, err);
    if (rc < 0 && !amp_code_is(err->code, log_tampered))
        return -1;
    return verdict_print(&verdict, rc < 0 ? err : NULL, rc < 0 ? &why : err) < 0 ? -1 : rc;
}

static int audit_check(struct amp_command *c, struct amp_error *err)
{
    (void)err;
    amp_listing_json |= strcmp(format, "ndjson") == 0;
    if (verify && (kinds.n || wanted_codes.n || from || since))
        amp_die_usage("--verify reads the complete log: it takes no filter");
    for (int i = 0; i < kinds.n; i++) {
        int k = 0;
        while (amp_security_kinds[k] && strcmp(amp_security_kinds[k], kinds.v[i]) != 0)
            k++;
        if (!amp_security_kinds[k])
            amp_die_usage("--kind is sender, signature, key, access, token, network, confinement, "
                          "override or log");
    }
    if (verify)
        c->opens = AMP_OPENS_DAMAGED;
    return 0;
}

static int ack_audit(struct amp_command *c, struct amp_error *err)
{
    return verify ? log_verify(c->store, err) : events_list(c->store, c->list, err);
}

const struct amp_verb audit_verbs[] = {
    {"audit", "", "list security events, or verify the log", audit_opts, ack_audit,
     .check = audit_check, .opens = AMP_OPENS_LOOK, .lists = columns, .finds_state = true},
    {0},
};
