/* Predicates over a message: parsed once, matched over the view without allocation. */
#include "route/rules/predicate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "message/order.h"

enum key {
#define X(id, name, doc) KEY_##id,
    AMP_PREDICATE_KEYS(X)
#undef X
        KEY_COUNT
};

static const char *const key_names[] = {
#define X(id, name, doc) name,
    AMP_PREDICATE_KEYS(X)
#undef X
};

struct term {
    enum key key;
    bool differs;
    uint32_t first, count; /* its globs */
    uint64_t holds;        /* of protocol and kind: a bit for each that one of them fits */
};

struct amp_predicate {
    char *jq;
    char *text; /* the globs stand in it */
    struct term *terms;
    struct amp_span *globs;
    uint32_t n_terms, n_globs;
};

static struct amp_span span_trim(struct amp_span s)
{
    while (s.n > 0 && (*s.p == ' ' || *s.p == '\t'))
        s.p++, s.n--;
    while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

static int term_add(struct amp_predicate *p, const struct term *t, struct amp_error *err)
{
    struct term *grown = realloc(p->terms, (p->n_terms + 1) * sizeof(*grown));
    if (!grown)
        return amp_fail_memory(err);
    p->terms = grown;
    p->terms[p->n_terms++] = *t;
    return 0;
}

static int glob_add(struct amp_predicate *p, struct amp_span glob, struct amp_error *err)
{
    struct amp_span *grown = realloc(p->globs, (p->n_globs + 1) * sizeof(*grown));
    if (!grown)
        return amp_fail_memory(err);
    p->globs = grown;
    p->globs[p->n_globs++] = glob;
    return 0;
}

static int key_find(struct amp_span name, struct amp_error *err)
{
    for (int i = 0; i < KEY_COUNT; i++)
        if (amp_span_is(name, key_names[i]))
            return i;
    return amp_fail(
        err, AMP_USAGE, "bad_predicate",
        "unknown key \"%.*s\": one of to from type kind task correlation source protocol "
        "id priority severity decision, or jq:EXPR",
        (int)name.n, name.p);
}

static bool globs_match(const struct amp_predicate *p, const struct term *t, struct amp_span text)
{
    for (uint32_t i = 0; i < t->count; i++)
        if (amp_span_glob(text, p->globs[t->first + i]))
            return true;
    return false;
}

/* What there is of these is known before any message comes. */
static void term_weigh(const struct amp_predicate *p, struct term *t)
{
    _Static_assert(AMP_KIND_COUNT <= 64 && AMP_PROTO_COUNT <= 64, "a bit for each");
    unsigned n = t->key == KEY_PROTOCOL ? AMP_PROTO_COUNT : t->key == KEY_KIND ? AMP_KIND_COUNT : 0;
    for (unsigned i = 0; i < n; i++) {
        struct amp_span name =
            amp_span_str(t->key == KEY_KIND ? amp_kind_name((enum amp_kind)i)
                                            : amp_protocol_name((enum amp_protocol)i));
        if (name.n > 0 && globs_match(p, t, name))
            t->holds |= UINT64_C(1) << i;
    }
}

/* One term, `text` without its comma. The bytes lie in p->text and stay there. */
static int term_parse(struct amp_predicate *p, struct amp_span text, struct amp_error *err)
{
    text = span_trim(text);
    const char *eq = text.n > 0 ? memchr(text.p, '=', text.n) : NULL;
    if (!eq || eq == text.p)
        return amp_fail(err, AMP_USAGE, "bad_predicate", "\"%.*s\" is not KEY=GLOB or KEY!=GLOB",
                        (int)text.n, text.p);
    struct amp_span name = {text.p, (size_t)(eq - text.p)};
    struct term t = {.first = p->n_globs};
    if (name.p[name.n - 1] == '!') {
        t.differs = true;
        name.n--;
    }
    int key = key_find(span_trim(name), err);
    if (key < 0)
        return -1;
    t.key = (enum key)key;
    struct amp_span rest = span_trim((struct amp_span){eq + 1, (size_t)(text.p + text.n - eq - 1)});
    for (;;) {
        const char *bar = rest.n > 0 ? memchr(rest.p, '|', rest.n) : NULL;
        struct amp_span glob = {rest.p, bar ? (size_t)(bar - rest.p) : rest.n};
        if (glob.n == 0)
            return amp_fail(err, AMP_USAGE, "bad_predicate", "\"%.*s\" has an empty value",
                            (int)text.n, text.p);
        if (glob_add(p, glob, err) < 0)
            return -1;
        t.count++;
        if (!bar)
            break;
        rest.n -= glob.n + 1;
        rest.p = bar + 1;
    }
    term_weigh(p, &t);
    return term_add(p, &t, err);
}

/* Splits at commas; the backslash of `\,` is taken out in place. */
static int terms_parse(struct amp_predicate *p, size_t n, struct amp_error *err)
{
    char *from = p->text, *to = p->text, *start = p->text, *end = p->text + n;
    for (;; from++) {
        if (from == end || *from == ',') {
            bool last = from == end;
            if (term_parse(p, (struct amp_span){start, (size_t)(to - start)}, err) < 0)
                return -1;
            if (last)
                return 0;
            *to++ = 0;
            start = to;
        } else if (*from == '\\' && from + 1 < end && from[1] == ',') {
            *to++ = *++from;
        } else {
            *to++ = *from;
        }
    }
}

int amp_predicate_parse(struct amp_span text, struct amp_predicate **out, struct amp_error *err)
{
    text = span_trim(text);
    if (text.n == 0)
        return amp_fail(err, AMP_USAGE, "bad_predicate",
                        "the predicate is empty; * matches every message");
    struct amp_predicate *p = calloc(1, sizeof(*p));
    if (!p)
        return amp_fail_memory(err);
    int rc = 0;
    if (text.n >= 3 && memcmp(text.p, "jq:", 3) == 0) {
        struct amp_span expr = span_trim((struct amp_span){text.p + 3, text.n - 3});
        if (expr.n == 0)
            rc = amp_fail(err, AMP_USAGE, "bad_predicate", "jq: needs an expression");
        else if (!(p->jq = amp_span_dup(expr)))
            rc = amp_fail_memory(err);
    } else if (!amp_span_is(text, "*")) {
        p->text = amp_span_dup(text);
        rc = p->text ? terms_parse(p, text.n, err) : amp_fail_memory(err);
    }
    if (rc < 0) {
        amp_predicate_free(p);
        return -1;
    }
    *out = p;
    return 0;
}

void amp_predicate_free(struct amp_predicate *p)
{
    if (!p)
        return;
    free(p->jq);
    free(p->text);
    free(p->terms);
    free(p->globs);
    free(p);
}

const char *amp_predicate_jq(const struct amp_predicate *p)
{
    return p->jq;
}

static struct amp_span decision_of(const struct amp_view *v)
{
    if (v->kind == AMP_KIND_VERDICT)
        return amp_span_str(amp_verdict_name(v->body.verdict.decision));
    if (v->kind == AMP_KIND_DECISION)
        return v->body.decision.action.n > 0
                   ? v->body.decision.action
                   : amp_span_str(amp_operator_word_name(v->body.decision.word));
    return (struct amp_span){NULL, 0};
}

static struct amp_span severity_of(const struct amp_view *v)
{
    if (v->kind != AMP_KIND_ESCALATION)
        return (struct amp_span){NULL, 0};
    return amp_span_str(amp_level_name(v->body.escalation.severity));
}

static bool term_equals(const struct amp_predicate *p, const struct term *t,
                        const struct amp_view *v)
{
    struct amp_span text = {NULL, 0};
    char number[24];
    switch (t->key) {
    case KEY_TO:
        for (uint32_t i = 0; i < v->n_to; i++)
            if (globs_match(p, t, v->to[i]))
                return true;
        return false;
    case KEY_FROM:
        text = v->from;
        break;
    case KEY_TYPE:
        text = v->type;
        break;
    case KEY_KIND:
        return t->holds >> v->kind & 1;
    case KEY_TASK:
        text = v->task;
        break;
    case KEY_CORRELATION:
        text = v->correlation;
        break;
    case KEY_SOURCE:
        text = amp_order_source(v);
        break;
    case KEY_PROTOCOL:
        return t->holds >> v->protocol & 1;
    case KEY_ID:
        text = v->id;
        break;
    case KEY_PRIORITY:
        snprintf(number, sizeof(number), "%lld", (long long)v->priority);
        text = amp_span_str(number);
        break;
    case KEY_SEVERITY:
        text = severity_of(v);
        break;
    case KEY_DECISION:
        text = decision_of(v);
        break;
    case KEY_COUNT:
        break;
    }
    return text.n > 0 && globs_match(p, t, text);
}

bool amp_predicate_match(const struct amp_predicate *p, const struct amp_view *v)
{
    for (uint32_t i = 0; i < p->n_terms; i++)
        if (term_equals(p, &p->terms[i], v) == p->terms[i].differs)
            return false;
    return true;
}

bool amp_predicate_asks_body(const struct amp_predicate *p)
{
    for (uint32_t i = 0; i < p->n_terms; i++)
        if (p->terms[i].key == KEY_SEVERITY || p->terms[i].key == KEY_DECISION)
            return true;
    return false;
}

bool amp_predicate_is_plain(const struct amp_predicate *p)
{
    for (uint32_t i = 0; i < p->n_terms; i++)
        if (p->terms[i].key != KEY_PROTOCOL && p->terms[i].key != KEY_KIND &&
            p->terms[i].key != KEY_TYPE && p->terms[i].key != KEY_PRIORITY)
            return false;
    return !p->jq;
}

int amp_route_split(struct amp_span text, struct amp_span *predicate, struct amp_span *port,
                    struct amp_error *err)
{
    size_t at = text.n;
    for (size_t i = 0; i + 1 < text.n; i++)
        if (text.p[i] == '=' && text.p[i + 1] == '>')
            at = i;
    if (at == text.n)
        return amp_fail(err, AMP_USAGE, "bad_route", "\"%.*s\" is not 'PREDICATE => PORT'",
                        (int)text.n, text.p);
    struct amp_span left = span_trim((struct amp_span){text.p, at});
    struct amp_span right = span_trim((struct amp_span){text.p + at + 2, text.n - at - 2});
    if (right.n == 0)
        return amp_fail(err, AMP_USAGE, "bad_route", "\"%.*s\" names no port", (int)text.n, text.p);
    *predicate = left;
    *port = right;
    return 0;
}
