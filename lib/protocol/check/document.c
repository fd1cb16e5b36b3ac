/*
 * The part of a line that is the message, and its protocol: the line itself, an object inside
 * another one, or an envelope in a text.
 */
#include "protocol/check/document.h"

#include <string.h>

enum {
    CERTAIN = 128, /* in ruled_out: added to the index of the protocol that the keys prove */
    FAULT_SHOWN = 40,
};

void amp_finder_init(struct amp_finder *f, const struct amp_json_limits *limits,
                     struct amp_check *check)
{
    unsigned n = 0;
    f->check = check;
    amp_tape_init(&f->outer, limits);
    amp_tape_init(&f->inner, limits);
    for (int last = 0; last < 2; last++)
        for (enum amp_protocol p = AMP_PROTO_NONE + 1; p < AMP_PROTO_COUNT; p++)
            if (amp_spec_of(p)->detect_last == last)
                f->order[n++] = amp_spec_of(p);
}

void amp_finder_release(struct amp_finder *f)
{
    amp_tape_release(&f->outer);
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
    bool limit = strncmp(fault->code, "too_", 4) == 0 || strcmp(fault->code, "line_too_long") == 0;
    if (!limit && fault->offset < text.n)
        found->found = amp_check_excerpt(f->check, text, fault->offset, FAULT_SHOWN);
    if (text.p >= line.p && text.p <= line.p + line.n)
        found->offset += (uint64_t)(text.p - line.p);
}

/* The protocol of the outermost object. The result is cached by the shape if the keys alone decide.
 */
static const struct amp_spec *detect_object(struct amp_finder *f)
{
    const struct amp_spec *const *order = f->order;
    const struct amp_tape *t = &f->outer;
    unsigned shape = t->tok[0].shape, i = 0;
    if (t->tok[0].type != AMP_JSON_OBJECT)
        return NULL;
    if (shape) {
        if (f->shapes != amp_tape_shapes(t)) {
            memset(f->ruled_out, 0, sizeof f->ruled_out);
            f->shapes = amp_tape_shapes(t);
        }
        i = f->ruled_out[shape - 1];
        if (i >= CERTAIN)
            return order[i - CERTAIN];
    }
    bool keys_only = true;
    for (; i < AMP_SPEC_COUNT(f->order); i++) {
        enum amp_detected d = order[i]->detect(t, 0);
        if (shape && keys_only)
            f->ruled_out[shape - 1] = (uint8_t)(d == AMP_DETECT_ALWAYS ? CERTAIN + i : i);
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

/* Makes an object inside the outer one the document. */
static void unwrap_object(struct amp_finder *f, uint32_t tok, const struct amp_spec *spec,
                          struct amp_document *d)
{
    struct amp_json_fault fault;
    struct amp_span text = amp_tok_source(&f->outer, tok);
    if (amp_tape_scan(&f->inner, text.p, text.n, &fault) < 0) {
        scan_finding(f, text, &fault);
        return;
    }
    d->spec = spec;
    d->text = text;
    d->tape = &f->inner;
}

/* The protocol of an object inside the outer one. addressed: a recipient is beside it, so that it
 * may be of a protocol without recipients; else it may be of a protocol with envelopes in texts. */
static const struct amp_spec *detect_inner(struct amp_finder *f, uint32_t tok, bool addressed)
{
    if (tok == AMP_TOK_NONE || f->outer.tok[tok].type != AMP_JSON_OBJECT)
        return NULL;
    for (unsigned i = 0; i < AMP_SPEC_COUNT(f->order); i++) {
        const struct amp_spec *s = f->order[i];
        if ((addressed ? s->outer_to : s->unwrap != NULL) && amp_spec_detects(s, &f->outer, tok))
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
    const struct amp_tape *t = &f->outer;
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
    if (to != AMP_TOK_NONE && (s = detect_inner(f, msg, true))) {
        d->outer_to = to;
        unwrap_object(f, msg, s, d);
        return 1;
    }
    for (unsigned i = 0; i < AMP_SPEC_COUNT(carriers); i++) {
        uint32_t tok = amp_tape_get(t, 0, amp_span_str(carriers[i]));
        if ((s = detect_inner(f, tok, false))) {
            unwrap_object(f, tok, s, d);
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

static const struct amp_spec *detect_record(const struct amp_finder *f)
{
    for (unsigned i = 0; i < AMP_SPEC_COUNT(f->order); i++)
        if (f->order[i]->detect_record && f->order[i]->detect_record(&f->outer))
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

/* The document is the line or in it. */
static int find_document(struct amp_finder *f, enum amp_protocol only, struct amp_document *d,
                         struct amp_error *err)
{
    d->spec =
        only == AMP_PROTO_NONE ? detect_object(f) : detect_pinned(&f->outer, amp_spec_of(only));
    if (d->spec)
        return 0;
    struct amp_document w = *d;
    int got = unwrap_line(f, only, &w, err);
    if (got < 0)
        return -1;
    if (got && (only == AMP_PROTO_NONE || (w.spec && w.spec->protocol == only)))
        *d = w;
    else
        f->check->n = 0;
    if (!d->spec && f->outer.tok[0].type == AMP_JSON_STRING) {
        struct amp_span text;
        if (amp_fill_text(&f->outer, 0, f->check->arena, &text, err) < 0)
            return -1;
        take_text(f, text, d);
    }
    if (!d->spec && only == AMP_PROTO_NONE && f->outer.tok[0].type == AMP_JSON_OBJECT)
        d->spec = detect_record(f);
    d->silent = !d->spec && is_quiet(only);
    if (!d->spec && only != AMP_PROTO_NONE && !d->silent)
        d->spec = amp_spec_of(only);
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
    bool other = strcmp(fault->code, "invalid_json") == 0;
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
    *d = (struct amp_document){.tape = &f->outer, .text = line, .outer_to = AMP_TOK_NONE};
    if (amp_tape_scan(&f->outer, line.p, line.n, &fault) < 0)
        open_text(f, line, d, &fault);
    else if (find_document(f, only, d, err) < 0)
        return -1;
    if (d->spec && d->spec->too_large && f->check->n == 0 && d->spec->too_large(d->text, &fault))
        scan_finding(f, (struct amp_span){"", 0}, &fault);
    return f->check->n > 0;
}
