/* Predicates over a message: parsed once, matched over the view without allocation. */
#include "message/route/rules/predicate.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/codes.h"
#include "base/grow.h"
#include "message/delivery/sequences.h"

#define VIEW(member) offsetof(struct amp_view, member)
/* The keys, with their fields in the view; 0: field_of finds the text. */
#define KEYS(X)                                                                                    \
    X(TO, "to", 0)                                                                                 \
    X(FROM, "from", VIEW(from))                                                                    \
    X(TYPE, "type", VIEW(type))                                                                    \
    X(KIND, "kind", 0)                                                                             \
    X(TASK, "task", VIEW(task))                                                                    \
    X(CORRELATION, "correlation", VIEW(correlation))                                               \
    X(SOURCE, "source", 0)                                                                         \
    X(PROTOCOL, "protocol", 0)                                                                     \
    X(ID, "id", VIEW(id))                                                                          \
    X(PRIORITY, "priority", 0)                                                                     \
    X(SEVERITY, "severity", 0)                                                                     \
    X(DECISION, "decision", 0)

#define X(id, name, at) KEY_##id,
enum key { KEYS(X) KEY_COUNT };
#undef X
#define X(id, name, at) {name, at},
static const struct {
    const char *name;
    size_t at;
} keys[] = {KEYS(X)};
#undef X
#define BIT(key) (1u << (key))

struct term {
    enum key key;
    bool differs;
    uint32_t first, count; /* its globs */
    uint64_t holds;        /* of protocol and kind: a bit for each that a glob matches */
};

struct amp_predicate {
    char *jq;
    char *text; /* the globs point into it */
    struct term *terms;
    struct amp_span *globs;
    uint32_t n_terms, n_globs;
    size_t cap_terms, cap_globs;
    unsigned keys; /* BIT of each key of the terms */
};

static struct amp_span span_trim(struct amp_span s)
{
    while (s.n > 0 && (*s.p == ' ' || *s.p == '\t'))
        s.p++, s.n--;
    while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

static int key_find(struct amp_span name, struct amp_error *err)
{
    for (int i = 0; i < KEY_COUNT; i++)
        if (amp_span_is(name, keys[i].name))
            return i;
    return amp_fail(
        err, AMP_USAGE, bad_predicate,
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

/* Matches the globs with all protocols or kinds once, before any message comes. */
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

/* Parses one term, without its comma. `text` is a part of p->text. */
static int term_parse(struct amp_predicate *p, struct amp_span text, struct amp_error *err)
{
    text = span_trim(text);
    const char *eq = text.n > 0 ? memchr(text.p, '=', text.n) : NULL;
    if (!eq || eq == text.p)
        return amp_fail(err, AMP_USAGE, bad_predicate, "\"%.*s\" is not KEY=GLOB or KEY!=GLOB",
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
            return amp_fail(err, AMP_USAGE, bad_predicate, "\"%.*s\" has an empty value",
                            (int)text.n, text.p);
        if (amp_grow(&p->globs, &p->cap_globs, p->n_globs, sizeof(*p->globs), err) < 0)
            return -1;
        p->globs[p->n_globs++] = glob;
        t.count++;
        if (!bar)
            break;
        rest.n -= glob.n + 1;
        rest.p = bar + 1;
    }
    term_weigh(p, &t);
    if (amp_grow(&p->terms, &p->cap_terms, p->n_terms, sizeof(*p->terms), err) < 0)
        return -1;
    p->terms[p->n_terms++] = t;
    p->keys |= BIT(t.key);
    return 0;
}

/* Splits at commas, and removes the backslash of `\,` in place. */
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
        return amp_fail(err, AMP_USAGE, bad_predicate,
                        "the predicate is empty; * matches every message");
    struct amp_predicate *p = calloc(1, sizeof(*p));
    if (!p)
        return amp_fail_memory(err);
    int rc = 0;
    if (text.n >= 3 && memcmp(text.p, "jq:", 3) == 0) {
        struct amp_span expr = span_trim((struct amp_span){text.p + 3, text.n - 3});
        if (expr.n == 0)
            rc = amp_fail(err, AMP_USAGE, bad_predicate, "jq: needs an expression");
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

static struct amp_span field_of(const struct amp_view *v, enum key key, char number[24])
{
    if (keys[key].at > 0)
        return *(const struct amp_span *)(const void *)((const char *)v + keys[key].at);
    switch (key) {
    case KEY_SOURCE:
        return amp_sequence_source(v);
    case KEY_PRIORITY:
        snprintf(number, 24, "%lld", (long long)v->priority);
        return amp_span_str(number);
    case KEY_SEVERITY:
        return severity_of(v);
    case KEY_DECISION:
        return decision_of(v);
    default:
        return (struct amp_span){NULL, 0};
    }
}

static bool term_equals(const struct amp_predicate *p, const struct term *t,
                        const struct amp_view *v)
{
    char number[24];
    if (t->key == KEY_KIND)
        return t->holds >> v->kind & 1;
    if (t->key == KEY_PROTOCOL)
        return t->holds >> v->protocol & 1;
    if (t->key == KEY_TO) {
        for (uint32_t i = 0; i < v->n_to; i++)
            if (globs_match(p, t, v->to[i]))
                return true;
        return false;
    }
    struct amp_span text = field_of(v, t->key, number);
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
    return p->keys & (BIT(KEY_SEVERITY) | BIT(KEY_DECISION));
}

bool amp_predicate_is_plain(const struct amp_predicate *p)
{
    unsigned plain = BIT(KEY_PROTOCOL) | BIT(KEY_KIND) | BIT(KEY_TYPE) | BIT(KEY_PRIORITY);
    return !p->jq && !(p->keys & ~plain);
}

int amp_route_split(struct amp_span text, struct amp_span *predicate, struct amp_span *port,
                    struct amp_error *err)
{
    size_t at = text.n;
    for (size_t i = 0; i + 1 < text.n; i++)
        if (text.p[i] == '=' && text.p[i + 1] == '>')
            at = i;
    if (at == text.n)
        return amp_fail(err, AMP_USAGE, bad_route, "\"%.*s\" is not 'PREDICATE => PORT'",
                        (int)text.n, text.p);
    struct amp_span right = span_trim((struct amp_span){text.p + at + 2, text.n - at - 2});
    if (right.n == 0)
        return amp_fail(err, AMP_USAGE, bad_route, "\"%.*s\" names no port", (int)text.n, text.p);
    *predicate = span_trim((struct amp_span){text.p, at});
    *port = right;
    return 0;
}
