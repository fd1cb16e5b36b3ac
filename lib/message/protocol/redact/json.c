/* Redaction of JSON, which stays JSON, and of lines of any kind. */
#include <string.h>

#include <amp/json/writer.h>

#include "message/protocol/redact/redact.h"
#include "json/text.h"

enum {
    EXCERPT_FROM = 64 * 1024, /* bytes of a line that are redacted for an excerpt */
    GROWTH = 24,              /* a byte may become "[redacted:…]" */
};

int amp_redact_text(struct amp_span text, bool cut, struct amp_buf *out, struct amp_error *err)
{
    if (!amp_redact_has_patterns())
        return amp_redact_shapes(text, cut, out, err);
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, out->max);
    if (amp_redact_patterns(text, cut, &b, err) < 0)
        return -1;
    return amp_redact_shapes(amp_buf_span(&b), cut, out, err);
}

struct walk {
    const struct amp_tape *t;
    struct amp_buf *out, *text, *clean; /* text, clean: scratch memory */
    struct amp_error *err;
};

static int string_write(struct walk *w, struct amp_span text)
{
    struct amp_jw jw;
    amp_jw_init(&jw, w->out);
    amp_jw_str(&jw, text);
    return amp_jw_end(&jw, w->err);
}

static int kind_write(struct walk *w, const char *kind)
{
    return amp_buf_fmt(w->out, w->err, "\"[redacted:%s]\"", kind);
}

static int value_copy(struct walk *w, uint32_t tok)
{
    struct amp_span src = amp_tok_source(w->t, tok);
    return amp_buf_add(w->out, src.p, src.n, w->err);
}

/* Sets *text to the decoded string, which is in w->text if it was escaped. */
static int text_decode(struct walk *w, uint32_t tok, struct amp_span *text)
{
    amp_buf_reset(w->text);
    if (amp_buf_reserve(w->text, w->t->tok[tok].len, w->err) < 0)
        return -1;
    return amp_tok_text(w->t, tok, w->text, text, w->err);
}

static int string_redact(struct walk *w, uint32_t tok)
{
    struct amp_span text;
    amp_buf_reset(w->clean);
    if (text_decode(w, tok, &text) < 0 || amp_redact_text(text, false, w->clean, w->err) < 0)
        return -1;
    if (amp_span_eq(text, amp_buf_span(w->clean)))
        return value_copy(w, tok);
    return string_write(w, amp_buf_span(w->clean));
}

static int value_redact(struct walk *w, uint32_t tok);

/* The value of a member, whose name may show that the value is secret. */
static int member_redact(struct walk *w, uint32_t key, uint32_t tok)
{
    const struct amp_tok *v = &w->t->tok[tok];
    struct amp_span text;
    if (text_decode(w, key, &text) < 0)
        return -1;
    char name[256];
    amp_span_copy(text, name, sizeof(name));
    const char *kind = amp_redact_name(text);
    if (v->type == AMP_JSON_STRING && v->len == 0)
        return value_copy(w, tok);
    if (kind && v->type != AMP_JSON_NULL && v->type != AMP_JSON_TRUE && v->type != AMP_JSON_FALSE)
        return kind_write(w, kind);
    if (!kind && v->type == AMP_JSON_STRING) {
        if (text_decode(w, tok, &text) < 0)
            return -1;
        if (amp_redact_may_name(amp_span_str(name)) && amp_redact_keylike(text))
            return kind_write(w, "key");
    }
    return value_redact(w, tok);
}

/* The members of a signed line, as they were written. */
struct signed_line {
    uint32_t sig, msg;    /* AMP_TOK_NONE: the object is not a signed line */
    size_t sig_at, sig_n; /* the place of sig in the output */
    bool changed;
};

static struct signed_line signed_find(const struct walk *w, uint32_t tok)
{
    struct signed_line s = {.sig = AMP_TOK_NONE, .msg = AMP_TOK_NONE};
    if (w->t->tok[tok].type != AMP_JSON_OBJECT)
        return s;
    s.sig = amp_tape_get(w->t, tok, AMP_SPAN("sig"));
    s.msg = amp_tape_get(w->t, tok, AMP_SPAN("msg"));
    if (s.sig == AMP_TOK_NONE || s.msg == AMP_TOK_NONE || w->t->tok[s.sig].type != AMP_JSON_OBJECT)
        s.sig = s.msg = AMP_TOK_NONE;
    return s;
}

/* Notes the member tok, whose output begins at `at`. */
static void signed_note(const struct walk *w, struct signed_line *s, uint32_t tok, size_t at)
{
    if (tok != s->sig && tok != s->msg)
        return;
    const struct amp_span is = {w->out->data + at, w->out->len - at};
    s->changed |= !amp_span_eq(is, amp_tok_source(w->t, tok));
    if (tok == s->sig) {
        s->sig_at = at;
        s->sig_n = is.n;
    }
}

/* A signature does not fit a message that was changed: it is replaced, so that nothing takes it for
 * one that is valid. */
static int signed_close(struct walk *w, const struct signed_line *s)
{
    static const char mark[] = "\"[redacted:signature]\"";
    const size_t n = sizeof mark - 1;
    if (!s->changed)
        return 0;
    if (amp_buf_reserve(w->out, n, w->err) < 0)
        return -1;
    char *at = w->out->data + s->sig_at;
    memmove(at + n, at + s->sig_n, w->out->len - s->sig_at - s->sig_n);
    memcpy(at, mark, n);
    w->out->len = w->out->len - s->sig_n + n;
    return 0;
}

static int value_redact(struct walk *w, uint32_t tok)
{
    const struct amp_tok *v = &w->t->tok[tok];
    if (v->type == AMP_JSON_STRING)
        return string_redact(w, tok);
    if (v->type != AMP_JSON_OBJECT && v->type != AMP_JSON_ARRAY)
        return value_copy(w, tok);
    bool object = v->type == AMP_JSON_OBJECT;
    struct signed_line s = signed_find(w, tok);
    if (amp_buf_str(w->out, object ? "{" : "[", w->err) < 0)
        return -1;
    for (uint32_t i = tok + 1; i < v->next; i = w->t->tok[i].next) {
        if (i > tok + 1 && amp_buf_str(w->out, ",", w->err) < 0)
            return -1;
        if (object) {
            uint32_t key = i++;
            /* A key may be the secret itself. */
            if (string_redact(w, key) < 0 || amp_buf_str(w->out, ":", w->err) < 0)
                return -1;
            size_t at = w->out->len;
            if (member_redact(w, key, i) < 0)
                return -1;
            signed_note(w, &s, i, at);
        } else if (value_redact(w, i) < 0) {
            return -1;
        }
    }
    if (signed_close(w, &s) < 0)
        return -1;
    return amp_buf_str(w->out, object ? "}" : "]", w->err);
}

int amp_redact_line(struct amp_span line, struct amp_buf *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0}, clean = {0};
    AMP_TAPE struct amp_tape t = {0};
    struct amp_json_fault fault;
    /* A record contains a line of the maximum length and its findings. */
    const struct amp_json_limits limits = {
        .max_bytes = 256u << 20, .max_depth = 160, .max_tokens = 2000000};
    size_t before = out->len;
    amp_tape_init(&t, &limits);
    amp_buf_init(&text, out->max);
    amp_buf_init(&clean, out->max);
    struct walk w = {.t = &t, .out = out, .text = &text, .clean = &clean, .err = err};
    bool json =
        line.n > 0 && strchr("{[\"", line.p[0]) && amp_tape_scan(&t, line.p, line.n, &fault) == 0;
    int rc = json ? value_redact(&w, 0) : amp_redact_text(line, false, out, err);
    if (rc < 0)
        out->len = before;
    return rc;
}

/* Whether the character at p is a control character, overrides the direction of text or is
 * invisible. *bytes: its length. */
static bool is_dangerous(const unsigned char *p, size_t n, size_t *bytes)
{
    *bytes = amp_utf8_length(p, n);
    if (*bytes == 0) {
        *bytes = 1;
        return true;
    }
    if (*bytes == 1)
        return p[0] < 0x20 || p[0] == 0x7f;
    if (*bytes == 2)
        return p[0] == 0xc2 && p[1] < 0xa0;
    if (*bytes == 3) {
        unsigned c = ((p[0] & 0xfu) << 12) + ((p[1] & 0x3fu) << 6) + (p[2] & 0x3fu);
        return (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
               (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xe000 && c <= 0xf8ff);
    }
    return p[0] == 0xf3; /* tags and private use */
}

int amp_redact_excerpt(struct amp_span line, size_t most, struct amp_buf *out,
                       struct amp_error *err)
{
    AMP_BUF struct amp_buf clean = {0};
    bool cut = line.n > EXCERPT_FROM;
    if (cut)
        line.n = EXCERPT_FROM;
    amp_buf_init(&clean, line.n * GROWTH + 4096);
    /* The beginning of a long line is not JSON. */
    if ((cut ? amp_redact_text(line, true, &clean, err) : amp_redact_line(line, &clean, err)) < 0)
        return -1;
    const unsigned char *p = (const unsigned char *)clean.data;
    size_t begin = out->len, bytes, n = clean.len;
    for (size_t i = 0; i < n; i += bytes) {
        if (out->len - begin >= most)
            return amp_buf_str(out, "…", err);
        const unsigned char *close = NULL;
        if (n - i > 10 && memcmp(p + i, "[redacted:", 10) == 0)
            close = memchr(p + i, ']', n - i > 64 ? 64 : n - i);
        bool hex = !close && is_dangerous(p + i, n - i, &bytes);
        if (close)
            bytes = (size_t)(close + 1 - (p + i));
        if (!hex && amp_buf_add(out, p + i, bytes, err) < 0)
            return -1;
        for (size_t k = 0; hex && k < bytes; k++)
            if (amp_buf_fmt(out, err, "\\x%02x", p[i + k]) < 0)
                return -1;
    }
    return cut ? amp_buf_str(out, "…", err) : 0;
}
