/* The record of a dead letter. */
#include "message/dead/record.h"

#include <string.h>

#include "message/record/record.h"

#define MAX_HISTORY    32
#define MAX_RECIPIENTS 16
#define REQUEUED       "requeued"

static const char *const classes[] = {
#define X(id, name, doc) name,
    AMP_DEAD_CLASSES(X)
#undef X
};

const char *amp_dead_class_name(enum amp_dead_class c)
{
    return c < AMP_DEAD_CLASS_COUNT ? classes[c] : "";
}

enum amp_dead_class amp_dead_class_find(const char *name)
{
    unsigned c = AMP_DEAD_UNDELIVERABLE;
    while (c < AMP_DEAD_CLASS_COUNT && strcmp(classes[c], name) != 0)
        c++;
    return (enum amp_dead_class)c;
}

/* For those who know only the code. */
static enum amp_dead_class class_of(const struct amp_dead_letter *d)
{
    static const struct {
        const char *code;
        enum amp_dead_class class;
    } rows[] = {
        {"ttl_expired", AMP_DEAD_EXPIRED},
        {"expired", AMP_DEAD_EXPIRED},
        {"retries_exhausted", AMP_DEAD_EXHAUSTED},
        {"ack_timeout", AMP_DEAD_EXHAUSTED},
        {"unsigned", AMP_DEAD_POLICY},
        {"permission_denied", AMP_DEAD_TERMINAL},
        {"oversize_payload", AMP_DEAD_POLICY},
        {"branch_violation", AMP_DEAD_POLICY},
        {"not_idempotent", AMP_DEAD_POLICY},
        {"suspended", AMP_DEAD_POLICY},
        {"rejected", AMP_DEAD_POLICY},
        {"kept_back", AMP_DEAD_POLICY},
        {"no_route", AMP_DEAD_UNDELIVERABLE},
        {"invalid_targets", AMP_DEAD_UNDELIVERABLE},
        {"capability_unavailable", AMP_DEAD_UNDELIVERABLE},
    };
    for (size_t i = 0; d->final == AMP_DEAD_UNSET && i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(rows[i].code, d->code) == 0)
            return rows[i].class;
    if (d->final != AMP_DEAD_UNSET)
        return d->final;
    return d->retryable ? AMP_DEAD_UNDELIVERABLE : AMP_DEAD_TERMINAL;
}

static void attempt_write(struct amp_jw *w, const struct amp_dead_attempt *a)
{
    amp_jw_open(w, '{');
    if (a->msg_id.n > 0)
        amp_jw_member_str(w, "msg_id", a->msg_id);
    amp_jw_member_int(w, "at_ms", a->at_ms);
    amp_jw_member_text(w, "code", a->code);
    amp_jw_member_text(w, "route", a->route);
    amp_jw_member_text(w, "why", a->why);
    amp_jw_close(w, '}');
}

static void history_write(struct amp_jw *w, const struct amp_dead_kept *old,
                          const struct amp_dead_letter *d)
{
    static const struct amp_span none = {"", 0};
    uint32_t n = old->n_history;
    amp_jw_key(w, "history");
    amp_jw_open(w, '[');
    if (old->history.n > 0)
        amp_jw_raw(w, old->history);
    else
        for (uint32_t i = 0; i < d->n_before && n < MAX_HISTORY - 1; i++, n++)
            attempt_write(w, &d->before[i]);
    if (n < MAX_HISTORY)
        attempt_write(w, &(struct amp_dead_attempt){.msg_id = d->last_code ? d->msg_id : none,
                                                    .at_ms = d->failed_ms,
                                                    .code = d->last_code ? d->last_code : d->code,
                                                    .route = d->route,
                                                    .why = d->why});
    amp_jw_close(w, ']');
}

static void texts_write(struct amp_jw *w, const char *key, const struct amp_span *v, uint32_t n)
{
    amp_jw_key(w, key);
    amp_jw_open(w, '[');
    for (uint32_t i = 0; i < n && i < MAX_RECIPIENTS; i++)
        amp_jw_str(w, v[i]);
    amp_jw_close(w, ']');
}

/* What an operator needs to see where it was lost. */
static void routing_write(struct amp_jw *w, const struct amp_dead_letter *d, struct amp_span by)
{
    struct amp_span one[] = {d->to};
    struct amp_span route[] = {amp_span_str(d->route)};
    amp_jw_key(w, "routing");
    amp_jw_open(w, '{');
    amp_jw_member_str(w, "by", by);
    if (d->n_recipients > 0)
        texts_write(w, "recipients", d->recipients, d->n_recipients);
    else
        texts_write(w, "recipients", one, d->to.n > 0);
    if (d->n_recipients > MAX_RECIPIENTS)
        amp_jw_member_int(w, "n_recipients", d->n_recipients);
    if (d->n_tried > 0)
        texts_write(w, "tried", d->tried, d->n_tried);
    else
        texts_write(w, "tried", route, route[0].n > 0);
    if (d->lane && *d->lane)
        amp_jw_member_text(w, "lane", d->lane);
    amp_jw_close(w, '}');
}

static void requeues_write(struct amp_jw *w, int64_t n, int64_t at_ms)
{
    amp_jw_key(w, REQUEUED);
    amp_jw_open(w, '{');
    amp_jw_member_int(w, "n", n);
    amp_jw_member_int(w, "at_ms", at_ms);
    amp_jw_close(w, '}');
}

int amp_dead_write(const struct amp_dead_kept *old, const struct amp_dead_letter *d,
                   struct amp_span by, struct amp_buf *out, struct amp_error *err)
{
    struct amp_jw w;
    amp_buf_reset(out);
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_str(&w, "msg_id", d->msg_id);
    amp_jw_member_text(&w, "protocol", d->protocol);
    amp_jw_member_str(&w, "type", d->type);
    amp_jw_member_str(&w, "from", d->from);
    amp_jw_member_str(&w, "to", d->to);
    amp_jw_member_str(&w, "task", d->task);
    amp_jw_member_str(&w, "correlation", d->correlation);
    amp_jw_member_str(&w, "content_type", d->content_type);
    amp_jw_member_text(&w, "code", d->code);
    amp_jw_member_text(&w, "class", d->retryable ? "temporary" : "permanent");
    amp_jw_member_text(&w, "failure_class", amp_dead_class_name(class_of(d)));
    amp_jw_member_text(&w, "why", d->why);
    amp_jw_member_text(&w, "route", d->route);
    routing_write(&w, d, by);
    amp_jw_member_int(&w, "created_ms", d->created_ms);
    amp_jw_member_int(&w, "first_failed_ms", d->first_failed_ms);
    amp_jw_member_int(&w, "failed_ms", d->failed_ms);
    amp_jw_some_int(&w, "frame", (int64_t)d->frame);
    amp_jw_member_int(&w, "attempts", d->attempts);
    amp_jw_member_int(&w, "size", (int64_t)d->line.n);
    amp_jw_member_str(&w, "excerpt", d->excerpt);
    history_write(&w, old, d);
    amp_record_line(&w, d->line);
    if (old->requeues > 0)
        requeues_write(&w, old->requeues, old->requeued_ms);
    amp_jw_close(&w, '}');
    return amp_jw_end(&w, err);
}

/* It is the last member, so what stands before it stays as it is. */
int amp_dead_write_requeue(struct amp_span json, const struct amp_dead_kept *old, int64_t now_ms,
                           struct amp_buf *out, struct amp_error *err)
{
    struct amp_tape t;
    struct amp_jw w;
    size_t keep = json.n - 1;
    amp_buf_reset(out);
    amp_record_tape(&t);
    int rc = amp_record_scan(&t, json, err);
    uint32_t tok = rc == 0 ? amp_tape_get(&t, 0, AMP_SPAN(REQUEUED)) : AMP_TOK_NONE;
    if (tok != AMP_TOK_NONE)
        keep = t.tok[tok - 1].off - 2; /* its comma */
    amp_tape_release(&t);
    if (rc < 0 || amp_buf_add(out, json.p, keep, err) < 0 || amp_buf_add(out, ",", 1, err) < 0)
        return -1;
    size_t at = out->len;
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    requeues_write(&w, old->requeues + 1, now_ms);
    amp_jw_close(&w, '}');
    if (amp_jw_end(&w, err) < 0)
        return -1;
    memmove(out->data + at, out->data + at + 1, out->len - at - 1); /* its bracket */
    out->len--;
    return 0;
}

static int texts_read(const struct amp_tape *t, struct amp_buf *mem, struct amp_dead_kept *l,
                      struct amp_error *err)
{
    struct amp_dead_letter *d = &l->d;
    struct amp_span class, final;
    struct {
        const char *key;
        struct amp_span *text;
    } rows[] = {{"msg_id", &d->msg_id},
                {"type", &d->type},
                {"from", &d->from},
                {"to", &d->to},
                {"task", &d->task},
                {"correlation", &d->correlation},
                {"content_type", &d->content_type},
                {"excerpt", &d->excerpt},
                {"class", &class},
                {"failure_class", &final}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (amp_record_text(t, rows[i].key, mem, rows[i].text, err) < 0)
            return -1;
    char name[40];
    d->retryable = amp_span_is(class, "temporary");
    d->final =
        amp_span_copy(final, name, sizeof(name)) ? amp_dead_class_find(name) : AMP_DEAD_UNSET;
    if (d->final == AMP_DEAD_CLASS_COUNT)
        d->final = AMP_DEAD_UNSET;
    return 0;
}

static int words_read(const struct amp_tape *t, struct amp_buf *mem, struct amp_dead_kept *l,
                      struct amp_error *err)
{
    struct amp_dead_letter *d = &l->d;
    struct {
        const char *key;
        struct amp_span *text;
        const char **str;
    } words[] = {{"protocol", &l->protocol, &d->protocol},
                 {"code", &l->code, &d->code},
                 {"why", &l->why, &d->why},
                 {"route", &l->route, &d->route}};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (amp_record_text(t, words[i].key, mem, words[i].text, err) < 0)
            return -1;
        /* As C strings too: the NUL stands behind the text in the same memory. */
        size_t at = mem->len;
        if (amp_buf_add(mem, words[i].text->p, words[i].text->n, err) < 0 ||
            amp_buf_add(mem, "", 1, err) < 0)
            return -1;
        *words[i].str = mem->data + at;
    }
    return 0;
}

static int64_t member_int(const struct amp_tape *t, uint32_t object, const char *key)
{
    int64_t n = 0;
    uint32_t tok =
        object == AMP_TOK_NONE ? AMP_TOK_NONE : amp_tape_get(t, object, amp_span_str(key));
    if (tok != AMP_TOK_NONE)
        amp_tok_int(t, tok, &n);
    return n;
}

static int members_read(const struct amp_tape *t, struct amp_buf *mem, struct amp_dead_kept *l,
                        struct amp_error *err)
{
    struct amp_dead_letter *d = &l->d;
    if (amp_record_line_read(t, mem, &d->line, err) < 0 || texts_read(t, mem, l, err) < 0 ||
        words_read(t, mem, l, err) < 0)
        return -1;
    d->created_ms = amp_record_int(t, "created_ms");
    d->failed_ms = amp_record_int(t, "failed_ms");
    d->frame = (uint64_t)amp_record_int(t, "frame");
    d->first_failed_ms = amp_record_int(t, "first_failed_ms");
    if (d->first_failed_ms == 0)
        d->first_failed_ms = d->failed_ms;
    d->attempts = amp_record_int(t, "attempts");
    if (d->final == AMP_DEAD_UNSET)
        d->final = class_of(d);
    uint32_t again = amp_tape_get(t, 0, AMP_SPAN(REQUEUED));
    l->requeues = member_int(t, again, "n");
    l->requeued_ms = member_int(t, again, "at_ms");
    l->first_code = l->code;
    l->first_route = l->route;
    uint32_t h = amp_tape_get(t, 0, AMP_SPAN("history"));
    if (h == AMP_TOK_NONE || t->tok[h].type != AMP_JSON_ARRAY || t->tok[h].count == 0)
        return 0;
    struct amp_span src = amp_tok_source(t, h);
    size_t at = mem->len;
    if (amp_buf_add(mem, src.p + 1, src.n - 2, err) < 0)
        return -1;
    l->history = (struct amp_span){mem->data + at, src.n - 2};
    l->n_history = t->tok[h].count;
    uint32_t code = amp_tape_get(t, h + 1, AMP_SPAN("code"));
    uint32_t route = amp_tape_get(t, h + 1, AMP_SPAN("route"));
    if (code == AMP_TOK_NONE || route == AMP_TOK_NONE)
        return 0;
    return amp_tok_text(t, code, mem, &l->first_code, err) < 0
               ? -1
               : amp_tok_text(t, route, mem, &l->first_route, err);
}

int amp_dead_read(struct amp_span json, struct amp_buf *mem, struct amp_dead_kept *out,
                  struct amp_error *err)
{
    struct amp_dead_kept l = {0};
    struct amp_tape t;
    amp_buf_reset(mem);
    amp_record_tape(&t);
    int rc = -1;
    /* Room for all parts (the words twice) at once, so that spans into mem stay where they are. */
    if (amp_buf_reserve(mem, json.n * 2 + 16, err) == 0 && amp_record_scan(&t, json, err) == 0 &&
        members_read(&t, mem, &l, err) == 0) {
        *out = l;
        rc = 0;
    }
    amp_tape_release(&t);
    return rc;
}
