/*
 * The part of a line that is the message, and its protocol: the line itself, an object inside
 * another one, or an envelope in a text. A signed line has the message in its member msg, which is
 * read like a line.
 */
#include "message/protocol/check/document.h"

#include <string.h>

#include <amp/base/clock.h>

#include "base/codes.h"

enum {
    CERTAIN = 128, /* in n_of: added to the index of the protocol that the keys prove */
    FAULT_SHOWN = 40,
};

void amp_finder_init(struct amp_finder *f, const struct amp_json_limits *limits,
                     struct amp_check *check)
{
    unsigned n = 0;
    f->check = check;
    amp_tape_init(&f->outer, limits);
    amp_tape_init(&f->msg, limits);
    amp_tape_init(&f->inner, limits);
    for (int last = 0; last < 2; last++)
        for (enum amp_protocol p = AMP_PROTO_NONE + 1; p < AMP_PROTO_COUNT; p++)
            if (amp_spec_of(p)->detect_last == last)
                f->order[n++] = amp_spec_of(p);
}

void amp_finder_release(struct amp_finder *f)
{
    amp_tape_release(&f->outer);
    amp_tape_release(&f->msg);
    amp_tape_release(&f->inner);
}

/* Adds a finding for a fault of the scanner, with the text at the fault unless a limit is exceeded.
 */
static void scan_finding(struct amp_finder *f, struct amp_span text,
                         const struct amp_json_fault *fault)
{
    struct amp_fault at = {
        .severity = AMP_SEV_ERROR, .code = fault->code, .rule = "json", .tok = AMP_TOK_NONE};
    f->check->failed = f->check->failed || amp_json_fault_is_memory(fault);
    amp_check_add(f->check, &at, "%s", fault->what);
    if (f->check->n == 0)
        return;
    struct amp_finding *found = &f->check->found[f->check->n - 1];
    struct amp_span line = f->check->v->line;
    found->offset = fault->offset;
    bool limit = strncmp(fault->code, "too_", 4) == 0 || amp_code_is(fault->code, line_too_long);
    if (!limit && fault->offset < text.n)
        found->found = amp_check_excerpt(f->check, text, fault->offset, FAULT_SHOWN);
    if (text.p >= line.p && text.p <= line.p + line.n)
        found->offset += (uint64_t)(text.p - line.p);
}

/* The protocol of a tape's object. The result is cached by the shape if the keys alone decide. */
static const struct amp_spec *detect_object(struct amp_finder *f, const struct amp_tape *t,
                                            struct amp_ruled_out *known)
{
    const struct amp_spec *const *order = f->order;
    unsigned shape = t->tok[0].shape, i = 0;
    if (t->tok[0].type != AMP_JSON_OBJECT)
        return NULL;
    if (shape) {
        if (known->shapes != amp_tape_shapes(t)) {
            memset(known->n_of, 0, sizeof known->n_of);
            known->shapes = amp_tape_shapes(t);
        }
        i = known->n_of[shape - 1];
        if (i >= CERTAIN)
            return order[i - CERTAIN];
    }
    bool keys_only = true;
    for (; i < AMP_SPEC_COUNT(f->order); i++) {
        enum amp_detected d = order[i]->detect(t, 0);
        if (shape && keys_only)
            known->n_of[shape - 1] = (uint8_t)(d == AMP_DETECT_ALWAYS ? CERTAIN + i : i);
        if (d >= AMP_DETECT_YES)
            return order[i];
        keys_only = keys_only && d == AMP_DETECT_NEVER;
    }
    return NULL;
}

/* Whether a text has, or claims to have, an envelope of a protocol with envelopes in texts. */
static bool unwrap_text(struct amp_finder *f, struct amp_span text, enum amp_protocol only,
                        struct amp_document *d)
{
    for (unsigned i = 0; i < AMP_SPEC_COUNT(f->order); i++) {
        const struct amp_spec *s = f->order[i];
        struct amp_json_fault fault;
        struct amp_span json;
        if (!s->unwrap)
            continue;
        enum amp_text_is what = s->unwrap(&f->inner, text, s->protocol == only, &json, &fault);
        if (what == AMP_TEXT_OTHER)
            continue;
        d->spec = s;
        d->text = json;
        d->tape = &f->inner;
        if (what == AMP_TEXT_BAD)
            scan_finding(f, json, &fault);
        return true;
    }
    return false;
}

/* Makes an object inside another one the document. */
static void unwrap_object(struct amp_finder *f, const struct amp_tape *t, uint32_t tok,
                          const struct amp_spec *spec, struct amp_document *d)
{
    struct amp_json_fault fault;
    struct amp_span text = amp_tok_source(t, tok);
    if (amp_tape_scan(&f->inner, text.p, text.n, &fault) < 0) {
        scan_finding(f, text, &fault);
        return;
    }
    d->spec = spec;
    d->text = text;
    d->tape = &f->inner;
}

/* The protocol of an object inside another one. addressed: a recipient is beside it, so that it
 * may be of a protocol without recipients; else it may be of a protocol with envelopes in texts. */
static const struct amp_spec *detect_inner(const struct amp_finder *f, const struct amp_tape *t,
                                           uint32_t tok, bool addressed)
{
    if (tok == AMP_TOK_NONE || t->tok[tok].type != AMP_JSON_OBJECT)
        return NULL;
    for (unsigned i = 0; i < AMP_SPEC_COUNT(f->order); i++) {
        const struct amp_spec *s = f->order[i];
        if ((addressed ? s->outer_to : s->unwrap != NULL) && amp_spec_detects(s, t, tok))
            return s;
    }
    return NULL;
}

/* Finds a message in the members payload, message or content, or in msg beside to. 1: it is in *d,
 * or a finding was added; 0: there is none; -1: failure. */
static int unwrap_line(struct amp_finder *f, enum amp_protocol only, struct amp_document *d,
                       struct amp_error *err)
{
    static const char *const carriers[] = {"payload", "message", "content"};
    const struct amp_tape *t = d->tape;
    const struct amp_spec *s;
    struct amp_span text;
    if (t->tok[0].type == AMP_JSON_STRING) {
        if (amp_fill_text(t, 0, f->check->arena, &text, err) < 0)
            return -1;
        return unwrap_text(f, text, only, d);
    }
    if (t->tok[0].type != AMP_JSON_OBJECT)
        return 0;
    uint32_t msg = amp_tape_get(t, 0, AMP_SPAN("msg"));
    uint32_t to = amp_tape_get(t, 0, AMP_SPAN("to"));
    if (to != AMP_TOK_NONE && (s = detect_inner(f, t, msg, true))) {
        d->outer_to = to;
        d->to_tape = t;
        unwrap_object(f, t, msg, s, d);
        return 1;
    }
    for (unsigned i = 0; i < AMP_SPEC_COUNT(carriers); i++) {
        uint32_t tok = amp_tape_get(t, 0, amp_span_str(carriers[i]));
        if ((s = detect_inner(f, t, tok, false))) {
            unwrap_object(f, t, tok, s, d);
            return 1;
        }
        if (tok == AMP_TOK_NONE || t->tok[tok].type != AMP_JSON_STRING)
            continue;
        if (amp_fill_text(t, tok, f->check->arena, &text, err) < 0)
            return -1;
        if (unwrap_text(f, text, only, d))
            return 1;
    }
    return 0;
}

/* Whether a text is a message that is not JSON. Its tape is an empty object. */
static bool take_text(struct amp_finder *f, struct amp_span text, struct amp_document *d)
{
    enum amp_protocol only = f->check->opt->only;
    struct amp_json_fault fault;
    if (only == AMP_PROTO_NONE && !f->check->opt->texts)
        return false;
    for (unsigned i = 0; i < AMP_SPEC_COUNT(f->order); i++) {
        const struct amp_spec *s = f->order[i];
        if (!s->text || (only != AMP_PROTO_NONE && only != s->protocol))
            continue;
        const char *word = s->text(text, only == s->protocol);
        if (!word || amp_tape_scan(&f->inner, "{}", 2, &fault) < 0)
            continue;
        d->spec = s;
        d->text = text;
        d->tape = &f->inner;
        d->word = word;
        return true;
    }
    return false;
}

static const struct amp_spec *detect_record(const struct amp_finder *f, const struct amp_tape *t)
{
    for (unsigned i = 0; i < AMP_SPEC_COUNT(f->order); i++)
        if (f->order[i]->detect_record && f->order[i]->detect_record(t))
            return f->order[i];
    return NULL;
}

/* Whether the protocol that was named passes text without its messages. */
static bool is_quiet(enum amp_protocol only)
{
    const struct amp_spec *s = amp_spec_of(only);
    return s && s->unwrap;
}

static const struct amp_spec *detect_pinned(const struct amp_tape *t, const struct amp_spec *s)
{
    if (t->tok[0].type != AMP_JSON_OBJECT)
        return NULL;
    return amp_spec_detects(s, t, 0) || (s->detect_record && s->detect_record(t)) ? s : NULL;
}

/* ---- signed lines ---- */

/* name: a member that is missing, or NULL. */
static void signed_finding(struct amp_finder *f, uint32_t tok, const char *name, const char *what,
                           const char *expected)
{
    struct amp_fault at = {.severity = AMP_SEV_ERROR,
                           .code = AMP_CODE(bad_signature),
                           .rule = name ? "required" : "signed",
                           .tok = tok,
                           .name = amp_span_str(name),
                           .expected = expected};
    amp_check_add(f->check, &at, "%s", what);
}

/* Finds a member that these objects may not have. Such a member would not be signed. */
static bool has_others(struct amp_finder *f, uint32_t object, const char *const *names, unsigned n)
{
    const struct amp_tape *t = &f->outer;
    for (uint32_t key = object + 1; key < t->tok[object].next; key = t->tok[key + 1].next) {
        bool known = false;
        for (unsigned i = 0; i < n; i++)
            known |= amp_tok_is(t, key, amp_span_str(names[i]));
        if (!known) {
            signed_finding(f, key + 1, NULL, "is not a member of a signed line", NULL);
            return true;
        }
    }
    return false;
}

static bool is_key(struct amp_span s)
{
    return amp_span_starts(s, "SHA256:") && s.n > 7;
}

static bool is_word(struct amp_span s)
{
    return s.n > 0;
}

static bool is_time(struct amp_span s)
{
    int64_t ms;
    return s.n > 0 && s.p[s.n - 1] == 'Z' && amp_time_parse(s, &ms);
}

static bool is_base64(struct amp_span s)
{
    size_t n = s.n;
    while (n > 0 && s.n - n < 2 && s.p[n - 1] == '=')
        n--;
    for (size_t i = 0; i < n; i++) {
        char c = s.p[i];
        if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
              c == '+' || c == '/'))
            return false;
    }
    return n > 0 && s.n % 4 == 0;
}

/* Reads the member sig. 1: it has a finding; -1: failure. */
static int signature_read(struct amp_finder *f, uint32_t sig, struct amp_signature *out,
                          struct amp_error *err)
{
    static const char *const names[] = {"key", "alg", "time", "value"};
    const struct {
        bool (*is_good)(struct amp_span s);
        const char *expected;
        struct amp_span *to;
    } members[] = {{is_key, "the fingerprint of a key, SHA256:…", &out->key},
                   {is_word, "the name of an algorithm", &out->alg},
                   {is_time, "a time in UTC, 2026-01-31T12:00:00.000Z", &out->time},
                   {is_base64, "base64", &out->value}};
    const struct amp_tape *t = &f->outer;
    if (t->tok[sig].type != AMP_JSON_OBJECT) {
        signed_finding(f, sig, NULL, "is not an object", NULL);
        return 1;
    }
    for (unsigned i = 0; i < AMP_SPEC_COUNT(names); i++) {
        uint32_t tok = amp_tape_get(t, sig, amp_span_str(names[i]));
        if (tok == AMP_TOK_NONE) {
            signed_finding(f, sig, names[i], "is missing", members[i].expected);
            return 1;
        }
        if (t->tok[tok].type == AMP_JSON_STRING &&
            amp_fill_text(t, tok, f->check->arena, members[i].to, err) < 0)
            return -1;
        if (t->tok[tok].type != AMP_JSON_STRING || !members[i].is_good(*members[i].to)) {
            signed_finding(f, tok, NULL, "is malformed", members[i].expected);
            return 1;
        }
    }
    return has_others(f, sig, names, AMP_SPEC_COUNT(names));
}

/* Opens a signed line: its message becomes the text of *d. 1: it is one, or has a finding; 0: it is
 * not signed; -1: failure. */
static int signed_open(struct amp_finder *f, struct amp_document *d, struct amp_error *err)
{
    static const char *const names[] = {"to", "sig", "msg"};
    const struct amp_tape *t = &f->outer;
    struct amp_json_fault fault;
    uint32_t sig;
    if (t->tok[0].type != AMP_JSON_OBJECT ||
        (sig = amp_tape_get(t, 0, AMP_SPAN("sig"))) == AMP_TOK_NONE)
        return 0;
    uint32_t msg = amp_tape_get(t, 0, AMP_SPAN("msg"));
    if (msg == AMP_TOK_NONE && t->tok[sig].type != AMP_JSON_OBJECT)
        return 0;
    if (msg == AMP_TOK_NONE) {
        signed_finding(f, 0, "msg", "is missing", "the signed message");
        return 1;
    }
    int got = signature_read(f, sig, &d->sig, err);
    if (got != 0 || has_others(f, 0, names, AMP_SPEC_COUNT(names)))
        return got < 0 ? -1 : 1;
    d->message = d->text = amp_tok_source(t, msg);
    d->tape = &f->msg;
    d->outer_to = amp_tape_get(t, 0, AMP_SPAN("to"));
    d->to_tape = t;
    if (amp_tape_scan(&f->msg, d->text.p, d->text.n, &fault) < 0)
        scan_finding(f, d->text, &fault);
    else if (f->msg.tok[0].type == AMP_JSON_OBJECT &&
             amp_tape_get(&f->msg, 0, AMP_SPAN("sig")) != AMP_TOK_NONE &&
             amp_tape_get(&f->msg, 0, AMP_SPAN("msg")) != AMP_TOK_NONE)
        signed_finding(f, msg, NULL, "is a signed line itself", "a message without a signature");
    return 1;
}

/* The recipient beside a signed message is not signed, so it counts only for a protocol whose
 * messages have none of their own. */
static void signed_check(struct amp_finder *f, const struct amp_document *d, uint32_t to)
{
    if (to != AMP_TOK_NONE && d->spec && (!d->spec->outer_to || d->to_tape != &f->outer))
        signed_finding(f, to, NULL, "is beside a message with recipients of its own", NULL);
}

/* The protocol of the text of *d, which is its tape's. */
static int find_inside(struct amp_finder *f, enum amp_protocol only, struct amp_document *d,
                       struct amp_error *err)
{
    const struct amp_tape *t = d->tape;
    struct amp_document w = *d;
    int got = unwrap_line(f, only, &w, err);
    if (got < 0)
        return -1;
    if (got && (only == AMP_PROTO_NONE || (w.spec && w.spec->protocol == only)))
        *d = w;
    else
        f->check->n = 0;
    if (!d->spec && t->tok[0].type == AMP_JSON_STRING) {
        struct amp_span text;
        if (amp_fill_text(t, 0, f->check->arena, &text, err) < 0)
            return -1;
        take_text(f, text, d);
    }
    if (!d->spec && only == AMP_PROTO_NONE && t->tok[0].type == AMP_JSON_OBJECT)
        d->spec = detect_record(f, t);
    d->silent = !d->spec && is_quiet(only);
    if (!d->spec && only != AMP_PROTO_NONE && !d->silent)
        d->spec = amp_spec_of(only);
    return 0;
}

/* The document is the line or in it. */
static int find_document(struct amp_finder *f, enum amp_protocol only, struct amp_document *d,
                         struct amp_error *err)
{
    d->spec = only == AMP_PROTO_NONE ? detect_object(f, &f->outer, &f->of_lines)
                                     : detect_pinned(&f->outer, amp_spec_of(only));
    if (d->spec)
        return 0;
    int got = signed_open(f, d, err);
    if (got < 0)
        return -1;
    if (got == 0)
        return find_inside(f, only, d, err);
    if (f->check->n > 0)
        return 0;
    uint32_t to = d->outer_to;
    d->spec = only == AMP_PROTO_NONE ? detect_object(f, &f->msg, &f->of_signed)
                                     : detect_pinned(&f->msg, amp_spec_of(only));
    if (!d->spec && find_inside(f, only, d, err) < 0)
        return -1;
    if (f->check->n == 0)
        signed_check(f, d, to);
    return 0;
}

/* A line that is not JSON: an envelope in a text, another protocol's text, or plain text that the
 * named protocol passes. */
static void open_text(struct amp_finder *f, struct amp_span line, struct amp_document *d,
                      const struct amp_json_fault *fault)
{
    if (amp_json_fault_is_memory(fault)) {
        scan_finding(f, line, fault);
        return;
    }
    enum amp_protocol only = f->check->opt->only;
    bool other = amp_code_is(fault->code, invalid_json);
    if ((is_quiet(only) || only == AMP_PROTO_NONE) && unwrap_text(f, line, only, d))
        return;
    if (other && take_text(f, line, d))
        return;
    d->silent = is_quiet(only);
    if (d->silent)
        return;
    scan_finding(f, line, fault);
    d->spec = amp_spec_of(only); /* refused as a message of the protocol that was named */
    if (d->spec && other && d->spec->no_json && f->check->n > 0)
        f->check->found[0].code = d->spec->no_json;
}

int amp_finder_line(struct amp_finder *f, struct amp_span line, struct amp_document *d,
                    struct amp_error *err)
{
    enum amp_protocol only = f->check->opt->only;
    struct amp_json_fault fault;
    *d = (struct amp_document){
        .tape = &f->outer, .text = line, .message = line, .outer_to = AMP_TOK_NONE};
    if (amp_tape_scan(&f->outer, line.p, line.n, &fault) < 0)
        open_text(f, line, d, &fault);
    else if (find_document(f, only, d, err) < 0)
        return -1;
    if (d->spec && d->spec->too_large && f->check->n == 0 && d->spec->too_large(d->text, &fault))
        scan_finding(f, (struct amp_span){"", 0}, &fault);
    return 0;
}

int amp_line_message(struct amp_span line, struct amp_span *message, struct amp_error *err)
{
    struct amp_json_fault fault;
    *message = line;
    if (line.n == 0 || !memmem(line.p, line.n, "\"sig\"", 5))
        return 0;
    AMP_TAPE struct amp_tape t = {0};
    amp_tape_init(&t, NULL);
    if (amp_tape_scan(&t, line.p, line.n, &fault) < 0)
        return amp_json_fault_is_memory(&fault) ? amp_fail_memory(err) : 0;
    if (t.tok[0].type != AMP_JSON_OBJECT)
        return 0;
    uint32_t sig = amp_tape_get(&t, 0, AMP_SPAN("sig")), msg = amp_tape_get(&t, 0, AMP_SPAN("msg"));
    if (sig != AMP_TOK_NONE && msg != AMP_TOK_NONE && t.tok[sig].type == AMP_JSON_OBJECT)
        *message = amp_tok_source(&t, msg);
    return 0;
}

int amp_line_has_message(struct amp_span line, const struct amp_view *v, struct amp_error *err)
{
    struct amp_span message;
    if (amp_span_eq(line, v->line))
        return 1;
    if (amp_line_message(line, &message, err) < 0)
        return -1;
    return amp_span_eq(message, v->message);
}
