/* Adding and reporting the findings about a line: see check.h. */
#include "message/protocol/check/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/codes.h"
#include "message/protocol/redact/redact.h"
#include "message/protocol/spec.h"

enum { PATH_EXTRA = 64 * 1024, FOUND_MOST = 80, SENTENCE_MOST = 400, LOOKED_AT = 4096 };

/* The length of the character at p if it can control a terminal or hide text (C0, DEL, C1, the bidi
 * controls), else 0. */
static unsigned dangerous_length(const unsigned char *p, size_t n, unsigned *code)
{
    if (p[0] < 0x20 || p[0] == 0x7f) {
        *code = p[0];
        return 1;
    }
    if (p[0] == 0xc2 && n > 1 && p[1] < 0xa0) {
        *code = p[1];
        return 2;
    }
    if (p[0] == 0xe2 && n > 2) {
        *code = 0x2000u + ((p[1] & 0x3fu) << 6) + (p[2] & 0x3fu);
        if ((*code >= 0x200b && *code <= 0x200f) || (*code >= 0x2028 && *code <= 0x202e) ||
            (*code >= 0x2066 && *code <= 0x2069))
            return 3;
    }
    return 0;
}

void amp_check_start(struct amp_check *c, const struct amp_view *v,
                     const struct amp_check_options *opt)
{
    static const struct amp_check_options none;
    c->v = v;
    c->opt = opt ? opt : &none;
    c->spec = NULL;
    c->row = NULL;
    c->schema = NULL;
    c->n = c->untold = 0;
    c->refuses = c->failed = c->waived = c->asked = false;
}

bool amp_check_waives(struct amp_check *c, unsigned what)
{
    if (!c->opt->waives)
        return false;
    if (!c->asked)
        c->waives = c->opt->waives(c->opt->waives_ctx, c->v);
    c->asked = true;
    return c->waives & what;
}

bool amp_check_string(struct amp_check *c, uint32_t tok, struct amp_span *out)
{
    if (tok == AMP_TOK_NONE || c->v->tape->tok[tok].type != AMP_JSON_STRING)
        return false;
    if (amp_fill_text(c->v->tape, tok, c->arena, out, NULL) == 0)
        return true;
    c->failed = true;
    return false;
}

const char *amp_check_text(struct amp_check *c, struct amp_span text, size_t most)
{
    bool cut = text.n > most;
    size_t n = cut ? most : text.n;
    if (cut) /* between two characters */
        while (n > 0 && ((unsigned char)text.p[n] & 0xc0) == 0x80)
            n--;
    char *out = amp_arena_get(c->arena, n * 6 + 8);
    if (!out) {
        c->failed = true;
        return "";
    }
    size_t len = 0;
    for (size_t i = 0; i < n;) {
        unsigned code, bytes = dangerous_length((const unsigned char *)text.p + i, n - i, &code);
        if (bytes == 0) {
            out[len++] = text.p[i++];
            continue;
        }
        len += (size_t)snprintf(out + len, 7, "\\u%04x", code & 0xffffu);
        i += bytes;
    }
    if (cut)
        memcpy(out + len, "…", 4);
    else
        out[len] = '\0';
    return out;
}

bool amp_check_blank(struct amp_span s)
{
    static const char *const spaces[] = {
        "\xc2\xa0",     "\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\xaf",
        "\xe2\x81\x9f", "\xe3\x80\x80", "\xef\xbb\xbf", NULL};
    for (size_t i = 0, k, n; i < s.n; i += n) {
        n = (unsigned char)s.p[i] <= ' ';
        if (s.n - i >= 3 && !memcmp(s.p + i, "\xe2\x80", 2) && (unsigned char)s.p[i + 2] <= 0x8d)
            n = 3; /* U+2000 to U+200D */
        for (k = 0; n == 0 && spaces[k]; k++)
            if (s.n - i >= strlen(spaces[k]) && !memcmp(s.p + i, spaces[k], strlen(spaces[k])))
                n = strlen(spaces[k]);
        if (n == 0)
            return false;
    }
    return true;
}

static const char *text_copy(struct amp_check *c, struct amp_span text)
{
    if (text.n == 0)
        return "";
    char *out = amp_arena_get(c->arena, text.n + 1);
    if (!out) {
        c->failed = true;
        return "";
    }
    memcpy(out, text.p, text.n);
    return out;
}

/* Sets the dotted path, the pointer and the offset of a fault; the name of a missing or unknown
 * property is appended to the path of its object. */
static void place_fill(struct amp_check *c, const struct amp_fault *fault, struct amp_finding *f)
{
    struct amp_error err;
    AMP_BUF struct amp_buf pointer = {0}, dotted = {0};
    /* A path consists of keys of the line, whose bytes may all be escaped. */
    size_t most = 2 * (size_t)c->v->tape->len + PATH_EXTRA;
    amp_buf_init(&pointer, most);
    amp_buf_init(&dotted, most);
    f->field = f->pointer = "";
    f->offset = 0;
    if (fault->tok == AMP_TOK_NONE)
        return;
    if (amp_tape_path(c->v->tape, fault->tok, &pointer, &dotted, &err) < 0) {
        c->failed = true;
        return;
    }
    if (fault->name.n > 0) {
        const char *name = amp_check_text(c, fault->name, 200);
        int bad = amp_buf_fmt(&dotted, &err, "%s%s", dotted.len ? "." : "", name);
        bad |= amp_buf_str(&pointer, "/", &err);
        for (const char *p = name; *p; p++)
            bad |= *p == '~'   ? amp_buf_str(&pointer, "~0", &err)
                   : *p == '/' ? amp_buf_str(&pointer, "~1", &err)
                               : amp_buf_add(&pointer, p, 1, &err);
        c->failed = c->failed || bad != 0;
    }
    f->field = amp_check_text(c, amp_buf_span(&dotted), 1000);
    f->pointer = amp_check_text(c, amp_buf_span(&pointer), 1000);
    /* If the document is a part of the line itself, offsets count from the start of the line. */
    const struct amp_view *v = c->v;
    f->offset = amp_tok_source(v->tape, fault->tok).p - v->tape->text;
    if (v->text.p >= v->line.p && v->text.p <= v->line.p + v->line.n)
        f->offset += (uint64_t)(v->text.p - v->line.p);
}

/* Sets the value that was found, with secrets redacted. A message that quotes a secret is replaced.
 */
static void found_fill(struct amp_check *c, uint32_t tok, struct amp_finding *f)
{
    AMP_BUF struct amp_buf clean = {0};
    struct amp_span source = amp_tok_source(c->v->tape, tok);
    bool cut = source.n > LOOKED_AT;
    struct amp_span seen = {source.p, cut ? LOOKED_AT : source.n};
    struct amp_span raw = amp_tok_raw(c->v->tape, tok);
    const char *last = strrchr(f->field, '.');
    const char *kind = amp_redact_name(amp_span_str(last ? last + 1 : f->field));
    amp_buf_init(&clean, 1 << 20);
    if (kind && raw.n > 0 && c->v->tape->tok[tok].type >= AMP_JSON_NUMBER)
        c->failed |= amp_buf_fmt(&clean, NULL, "[redacted:%s]", kind) < 0;
    else
        c->failed |= amp_redact_text(seen, cut, &clean, NULL) < 0;
    if (amp_span_eq(seen, amp_buf_span(&clean)))
        amp_buf_reset(&clean);
    else if (raw.n > 0 && memmem(f->message, strlen(f->message), raw.p, raw.n > 6 ? 6 : raw.n))
        f->message = text_copy(c, AMP_SPAN("the value, which contains a secret, is invalid"));
    f->found = amp_check_text(c, clean.len > 0 ? amp_buf_span(&clean) : source, FOUND_MOST);
}

const char *amp_check_excerpt(struct amp_check *c, struct amp_span text, size_t at, size_t most)
{
    AMP_BUF struct amp_buf clean = {0};
    size_t from = at > LOOKED_AT ? at - LOOKED_AT : 0;
    amp_buf_init(&clean, 1 << 20);
    c->failed |=
        amp_redact_text((struct amp_span){text.p + from, at - from}, true, &clean, NULL) < 0;
    /* A secret that begins before `at` may continue after it. */
    struct amp_span s = amp_buf_span(&clean);
    size_t i = s.n;
    if (s.n > 0 && s.p[s.n - 1] == ']')
        while (i > 0 && s.p[i - 1] != '[')
            i--;
    if (i > 0 && i < s.n && s.n - i > 9 && memcmp(s.p + i, "redacted:", 9) == 0)
        return amp_check_text(c, (struct amp_span){s.p + i - 1, s.n - i + 1}, most);
    bool cut = text.n - at > LOOKED_AT;
    amp_buf_reset(&clean);
    c->failed |= amp_redact_text((struct amp_span){text.p + at, cut ? LOOKED_AT : text.n - at}, cut,
                                 &clean, NULL) < 0;
    return amp_check_text(c, amp_buf_span(&clean), most);
}

__attribute__((format(printf, 3, 0))) static void
fault_add(struct amp_check *c, const struct amp_fault *fault, const char *fmt, va_list args)
{
    if (c->n == AMP_FINDINGS_MOST) {
        c->untold++;
        c->refuses = c->refuses || fault->severity == AMP_SEV_ERROR;
        return;
    }
    struct amp_finding *f = &c->found[c->n];
    char sentence[SENTENCE_MOST];
    *f = (struct amp_finding){.severity = fault->severity,
                              .protocol = c->v->protocol,
                              .type = c->v->type,
                              .id = c->v->id,
                              .code = fault->code,
                              .rule = fault->rule,
                              .found = "",
                              .expected = fault->expected ? fault->expected : ""};
    vsnprintf(sentence, sizeof sentence, fmt, args);
    f->message = text_copy(c, amp_span_str(sentence));
    if (f->expected[0])
        f->expected = text_copy(c, amp_span_str(f->expected));
    place_fill(c, fault, f);
    if (fault->show_found && fault->tok != AMP_TOK_NONE)
        found_fill(c, fault->tok, f);
    c->n++;
}

void amp_check_add(struct amp_check *c, const struct amp_fault *fault, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fault_add(c, fault, fmt, args);
    va_end(args);
}

void amp_check_rule(struct amp_check *c, enum amp_severity severity, const char *code,
                    const char *rule, const char *pointer, const char *expected, const char *fmt,
                    ...)
{
    struct amp_span at = amp_span_str(pointer);
    struct amp_fault fault = {.severity = severity,
                              .code = code,
                              .rule = rule,
                              .tok = amp_tape_pointer(c->v->tape, 0, at),
                              .expected = expected,
                              .show_found = true};
    if (fault.tok == AMP_TOK_NONE) { /* absent: a missing property of its object */
        const char *last = strrchr(pointer, '/');
        at.n = (size_t)(last - pointer);
        fault.tok = amp_tape_pointer(c->v->tape, 0, at);
        fault.name = amp_span_str(last + 1);
        fault.show_found = false;
    }
    va_list args;
    va_start(args, fmt);
    fault_add(c, &fault, fmt, args);
    va_end(args);
}

void amp_check_token(struct amp_check *c, enum amp_severity severity, const char *code,
                     const char *rule, uint32_t tok, const char *expected, const char *fmt, ...)
{
    struct amp_fault fault = {severity, code, rule, tok, .expected = expected, .show_found = true};
    va_list args;
    va_start(args, fmt);
    fault_add(c, &fault, fmt, args);
    va_end(args);
}

/* Whether a finding makes all others meaningless: the line may be valid in another version, or as
 * another type. */
static bool stands_alone(const struct amp_check *c, const struct amp_finding *f)
{
    const struct amp_spec *s = c->spec;
    return amp_code_is(f->code, version_incompatible) ||
           (s && s->alone_code && strcmp(f->code, s->alone_code) == 0) ||
           (s && s->alone_field && strcmp(f->field, s->alone_field) == 0);
}

static bool is_superfluous(const struct amp_check *c, unsigned at)
{
    const struct amp_finding *f = &c->found[at];
    for (unsigned i = 0; i < c->n; i++) {
        const struct amp_finding *o = &c->found[i];
        if (i == at || o->severity != AMP_SEV_ERROR)
            continue;
        if (f->severity == AMP_SEV_WARNING || stands_alone(c, o))
            return true; /* an error makes warnings superfluous */
        if (i < at && strcmp(o->pointer, f->pointer) == 0)
            return true;
        /* A msg_id contains the task_id, and is invalid for the same reason. */
        if (amp_code_is(f->code, bad_msg_id) && amp_code_is(o->code, bad_task_id))
            return true;
    }
    return false;
}

struct amp_finding amp_finding_rest(unsigned more, enum amp_severity severity,
                                    char text[AMP_REST_MAX])
{
    snprintf(text, AMP_REST_MAX, "at least %u more %s left out", more,
             more == 1 ? "finding is" : "findings are");
    return (struct amp_finding){.severity = severity,
                                .code = AMP_CODE(more_findings),
                                .field = "",
                                .pointer = "",
                                .rule = "limit",
                                .message = text,
                                .found = "",
                                .expected = "",
                                .more = more};
}

static void report_rest(struct amp_check *c, amp_finding_fn fn, void *ctx)
{
    char text[AMP_REST_MAX];
    struct amp_finding f =
        amp_finding_rest(c->untold, c->refuses ? AMP_SEV_ERROR : AMP_SEV_WARNING, text);
    f.protocol = c->v->protocol;
    f.type = c->v->type;
    f.id = c->v->id;
    f.message = text_copy(c, amp_span_str(text));
    fn(ctx, &f);
}

int amp_check_report(struct amp_check *c, amp_finding_fn fn, void *ctx)
{
    int errors = 0, reported = 0;
    c->refuses = c->untold > 0 && (c->refuses || c->opt->strict);
    if (c->opt->strict)
        for (unsigned i = 0; i < c->n; i++)
            c->found[i].severity = AMP_SEV_ERROR;
    for (unsigned i = 0; i < c->n; i++) {
        if (is_superfluous(c, i) && !(stands_alone(c, &c->found[i]) && errors == 0))
            continue;
        if (c->opt->most == 0 || reported < c->opt->most) {
            if (fn)
                fn(ctx, &c->found[i]);
            reported++;
        }
        errors += c->found[i].severity == AMP_SEV_ERROR;
    }
    if (fn && c->untold > 0 && c->opt->most == 0 && (c->refuses || errors == 0))
        report_rest(c, fn, ctx);
    return errors + c->refuses;
}
