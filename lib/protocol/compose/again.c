/* A line with a few values replaced. Everything else stays as it came, numbers and order too. */
#include "protocol/compose/again.h"

#include <stdio.h>
#include <string.h>

#include <amp/base/id.h>
#include <amp/json/writer.h>
#include <amp/protocol/aop_policy.h>

#define EDITS_MAX 6

/* `n` bytes at `at` of the line go, the text comes in their place. */
struct edit {
    size_t at, n;
    struct amp_buf text;
};

struct editing {
    const struct amp_view *v;
    struct edit edit[EDITS_MAX];
    unsigned n;
    struct amp_error *err;
};

bool amp_again_can(enum amp_protocol p)
{
    return p == AMP_PROTO_AMP || p == AMP_PROTO_SW4RM || p == AMP_PROTO_RTP || p == AMP_PROTO_AOP;
}

static void tool_terms(const struct amp_view *of, struct amp_again_terms *out)
{
    static const char *const places[] = {"/execution_policy/retries",
                                         "/execution_policy/max_retries", "/policy/retries",
                                         "/policy/max_retries"};
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        int64_t n;
        uint32_t tok = amp_tape_pointer(of->tape, of->payload, amp_span_str(places[i]));
        if (tok != AMP_TOK_NONE && amp_tok_int(of->tape, tok, &n) && n >= 0)
            out->most = n;
    }
}

static void task_terms(const struct amp_view *of, struct amp_again_terms *out)
{
    struct amp_aop_policy p;
    const struct amp_tape *t = of->tape;
    amp_aop_policy(of, &p);
    out->most = p.max_retries.value;
    if (p.backoff == AMP_TOK_NONE || t->tok[p.backoff].type != AMP_JSON_ARRAY)
        return;
    for (uint32_t i = p.backoff + 1; i < t->tok[p.backoff].next; i = t->tok[i].next) {
        double s;
        if (out->n_waits < AMP_AGAIN_WAITS_MAX && amp_tok_real(t, i, &s) && s >= 0 && s <= 604800)
            out->waits_ms[out->n_waits++] = (int64_t)(s * 1000);
    }
}

void amp_again_terms(const struct amp_view *of, struct amp_again_terms *out)
{
    *out = (struct amp_again_terms){.most = -1};
    if (of->payload == AMP_TOK_NONE)
        return;
    if (of->protocol == AMP_PROTO_SW4RM && of->kind == AMP_KIND_TOOL_CALL)
        tool_terms(of, out);
    else if (of->protocol == AMP_PROTO_AOP && of->kind == AMP_KIND_DISPATCH)
        task_terms(of, out);
}

static int64_t attempt_of(const struct amp_view *v)
{
    return v->has_attempt ? v->attempt : 1;
}

/* One more; what counts to its end stays there. */
static int64_t counted(int64_t n, int64_t most)
{
    return n < most ? n + 1 : most;
}

int amp_again_id(const struct amp_view *of, int64_t now_ms, char out[AMP_MSG_ID_MAX],
                 struct amp_error *err)
{
    char tail[AMP_ID_TAIL_MAX];
    int n = 0;
    switch (of->protocol) {
    case AMP_PROTO_AMP:
        amp_id_tail(now_ms, tail);
        n = snprintf(out, AMP_MSG_ID_MAX, "%.*s-%.*s-%s", (int)of->type.n, of->type.p,
                     (int)of->task.n, of->task.p, tail);
        break;
    case AMP_PROTO_RTP:
        memcpy(out, "evt_", 4);
        amp_uuid4(out + 4);
        break;
    case AMP_PROTO_AOP:
        n = snprintf(out, AMP_MSG_ID_MAX, "%.*s/%.*s/%lld", (int)of->correlation.n,
                     of->correlation.p, (int)of->task.n, of->task.p,
                     (long long)counted(attempt_of(of), INT64_MAX));
        break;
    default:
        amp_uuid4(out);
    }
    if (n >= AMP_MSG_ID_MAX)
        return amp_fail(err, AMP_NO, "bad_msg_id", "the next attempt's id would be too long");
    return 0;
}

static struct amp_buf *edit_at(struct editing *e, size_t at, size_t n)
{
    struct edit *d = &e->edit[e->n++];
    d->at = at;
    d->n = n;
    amp_buf_init(&d->text, 1 << 20);
    return &d->text;
}

static int str(struct amp_buf *out, struct amp_span text, struct amp_error *err)
{
    struct amp_jw w;
    amp_jw_init(&w, out);
    amp_jw_str(&w, text);
    return amp_jw_end(&w, err);
}

/* The value of a member, or the member before all others where the object has none of that name. */
static struct amp_buf *member(struct editing *e, uint32_t object, const char *key)
{
    const struct amp_tape *t = e->v->tape;
    uint32_t tok = amp_tape_get(t, object, amp_span_str(key));
    if (tok != AMP_TOK_NONE) {
        struct amp_span old = amp_tok_source(t, tok);
        return edit_at(e, (size_t)(old.p - e->v->line.p), old.n);
    }
    struct amp_span all = amp_tok_source(t, object);
    struct amp_buf *b = edit_at(e, (size_t)(all.p - e->v->line.p) + 1, 0);
    return amp_buf_fmt(b, e->err, "\"%s\":", key) < 0 ? NULL : b;
}

/* A member put before others is followed by a comma. */
static int closed(struct editing *e, uint32_t object)
{
    struct edit *d = &e->edit[e->n - 1];
    return d->n == 0 && e->v->tape->tok[object].count > 0 ? amp_buf_add(&d->text, ",", 1, e->err)
                                                          : 0;
}

static int set_text(struct editing *e, uint32_t object, const char *key, struct amp_span text)
{
    struct amp_buf *b = member(e, object, key);
    return b && str(b, text, e->err) == 0 ? closed(e, object) : -1;
}

static int set_int(struct editing *e, uint32_t object, const char *key, int64_t n)
{
    struct amp_buf *b = member(e, object, key);
    return b && amp_buf_fmt(b, e->err, "%lld", (long long)n) == 0 ? closed(e, object) : -1;
}

static int edit_rtp(struct editing *e, const struct amp_again *a)
{
    const struct amp_view *v = e->v;
    uint32_t trace = amp_tape_get(v->tape, 0, AMP_SPAN("trace"));
    if (trace == AMP_TOK_NONE || v->tape->tok[trace].type != AMP_JSON_OBJECT)
        return amp_fail(e->err, AMP_NO, "bad_value", "an event without trace has no attempts");
    if (set_text(e, 0, "eventId", amp_span_str(a->id)) < 0 ||
        set_text(e, 0, "sourceNodeId", amp_span_str(a->node)) < 0 ||
        set_int(e, 0, "seq", a->sequence) < 0 ||
        set_int(e, trace, "attempt", counted(v->attempt, INT64_MAX)) < 0)
        return -1;
    if (v->token.n > 0)
        return 0;
    return set_text(e, trace, "idempotencyKey", a->first);
}

static int gather(struct editing *e, const struct amp_again *a)
{
    switch (e->v->protocol) {
    case AMP_PROTO_AMP:
        return set_text(e, 0, "msg_id", amp_span_str(a->id));
    case AMP_PROTO_SW4RM:
        return set_text(e, 0, "message_id", amp_span_str(a->id)) < 0
                   ? -1
                   : set_int(e, 0, "retry_count", counted(e->v->attempt, UINT32_MAX));
    case AMP_PROTO_RTP:
        return edit_rtp(e, a);
    case AMP_PROTO_AOP:
        return e->v->payload == AMP_TOK_NONE
                   ? amp_fail(e->err, AMP_NO, "bad_value", "a message without a task")
                   : set_int(e, e->v->payload, "attempt", counted(attempt_of(e->v), INT64_MAX));
    default:
        return amp_fail(e->err, AMP_NO, "unsupported_protocol",
                        "messages of this protocol have no id of their own");
    }
}

static void sort(struct editing *e)
{
    for (unsigned i = 1; i < e->n; i++)
        for (unsigned k = i; k > 0 && e->edit[k].at < e->edit[k - 1].at; k--) {
            struct edit d = e->edit[k];
            e->edit[k] = e->edit[k - 1];
            e->edit[k - 1] = d;
        }
}

static int write_line(struct editing *e, struct amp_buf *out)
{
    struct amp_span line = e->v->line;
    size_t done = 0;
    sort(e);
    for (unsigned i = 0; i < e->n; i++) {
        const struct edit *d = &e->edit[i];
        if (amp_buf_add(out, line.p + done, d->at - done, e->err) < 0 ||
            amp_buf_add(out, d->text.data, d->text.len, e->err) < 0)
            return -1;
        done = d->at + d->n;
    }
    return amp_buf_add(out, line.p + done, line.n - done, e->err);
}

int amp_again_line(const struct amp_view *of, const struct amp_again *a, struct amp_buf *out,
                   struct amp_error *err)
{
    struct editing e = {.v = of, .err = err};
    size_t before = out->len;
    int rc = -1;
    if (!of->json || of->text.p < of->line.p || of->text.p + of->text.n > of->line.p + of->line.n)
        amp_fail(err, AMP_NO, "unsupported_protocol",
                 "a message inside a string is not sent again");
    else if (gather(&e, a) == 0)
        rc = write_line(&e, out);
    if (rc < 0)
        out->len = before;
    for (unsigned i = 0; i < e.n; i++)
        amp_buf_release(&e.edit[i].text);
    return rc;
}
