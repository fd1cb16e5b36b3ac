/*
 * SW4RM: the encoding of the payload, and its content_length (§5.4, §11, §12). A JSON payload is a
 * JSON value, text is a string, and bytes are a string of base64; content_length counts the decoded
 * bytes.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/codes.h"
#include "message/protocol/sw4rm/sw4rm.h"

static bool has_prefix(struct amp_span s, const char *prefix)
{
    size_t n = strlen(prefix);
    return s.n >= n && strncasecmp(s.p, prefix, n) == 0;
}

enum amp_sw4rm_content amp_sw4rm_content(struct amp_span type)
{
    static const char json[] = "application/json", plus[] = "+json";
    static const char *const bytes[] = {"application/protobuf", "application/x-protobuf",
                                        "application/octet-stream"};
    size_t n = 0;
    if (type.n == sizeof json - 1 && memcmp(type.p, json, sizeof json - 1) == 0)
        return AMP_SW4RM_JSON;
    while (n < type.n && type.p[n] != ';' && type.p[n] != ' ')
        n++;
    if (n == sizeof json - 1 && strncasecmp(type.p, json, n) == 0)
        return AMP_SW4RM_JSON;
    for (unsigned i = 0; i < AMP_SPEC_COUNT(bytes); i++)
        if (n == strlen(bytes[i]) && strncasecmp(type.p, bytes[i], n) == 0)
            return AMP_SW4RM_BYTES;
    if (n > sizeof plus && strncasecmp(type.p + n - (sizeof plus - 1), plus, sizeof plus - 1) == 0)
        return AMP_SW4RM_JSON;
    if (has_prefix(type, "text/"))
        return AMP_SW4RM_TEXT;
    if (has_prefix(type, "image/") || has_prefix(type, "audio/") || has_prefix(type, "video/"))
        return AMP_SW4RM_BYTES;
    return AMP_SW4RM_OTHER;
}

static const uint8_t base64_digit[256] = {
    ['A' ... 'Z'] = 1, ['a' ... 'z'] = 1, ['0' ... '9'] = 1, ['+'] = 1,
    ['/'] = 1,         ['-'] = 1,         ['_'] = 1,
};

bool amp_sw4rm_base64(struct amp_span text, uint64_t *bytes)
{
    const unsigned char *p = (const unsigned char *)text.p;
    size_t n = text.n, i = 0;
    for (int k = 0; k < 2 && n > 0 && p[n - 1] == '='; k++)
        n--;
    if (n % 4 == 1 || (n != text.n && text.n % 4 != 0))
        return false;
    unsigned good = 1;
    for (; i + 4 <= n; i += 4)
        good &= base64_digit[p[i]] & base64_digit[p[i + 1]] & base64_digit[p[i + 2]] &
                base64_digit[p[i + 3]];
    for (; i < n; i++)
        good &= base64_digit[p[i]];
    if (!good)
        return false;
    *bytes = (uint64_t)n / 4 * 3 + (n % 4 ? n % 4 - 1 : 0);
    return true;
}

struct range {
    uint64_t least, most;
};

/* Adds the least and the most bytes with which usual writers write the first character at p.
 * Returns its bytes in this line. */
static size_t character_measure(const char *p, size_t n, struct range *r)
{
    unsigned char c = (unsigned char)p[0];
    if (c == '\\' && n >= 2 && p[1] == 'u' && n >= 6) {
        bool ascii = p[2] == '0' && p[3] == '0' && p[4] < '8';
        bool half = (p[2] | 32) == 'd' && p[3] >= '8'; /* of a pair: four bytes in two escapes */
        bool two = p[2] == '0' && p[3] < '8';
        r->least += ascii ? 1 : two || half ? 2 : 3;
        r->most += 6;
        return 6;
    }
    if (c == '\\' && n >= 2) {
        r->least += p[1] == '/' ? 1 : 2;
        r->most += 6;
        return 2;
    }
    if (c < 0x80) {
        bool web = memchr("<>&'+`", c, 6); /* escaped by some writers for browsers */
        r->least += 1;
        r->most += web ? 6 : c == '/' ? 2 : 1;
        return 1;
    }
    size_t len = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
    r->least += len;
    r->most += len == 4 ? 12 : 6;
    return len;
}

/* The lengths of a value from usual writers: with or without a space after each comma and colon,
 * with characters unchanged or as escapes. */
static struct range value_measure(const struct amp_tape *t, uint32_t from)
{
    struct range r = {0, 0};
    for (uint32_t i = from; i < t->tok[from].next; i++) {
        const struct amp_tok *tok = &t->tok[i];
        if (tok->type == AMP_JSON_ARRAY || tok->type == AMP_JSON_OBJECT) {
            uint64_t commas = tok->count ? tok->count - 1 : 0;
            r.least += 2 + commas;
            r.most += 2 + 2 * commas;
        } else if (tok->type == AMP_JSON_STRING) {
            const char *p = t->text + tok->off;
            bool key = tok->flags & AMP_TOK_KEY;
            for (size_t at = 0; at < tok->len;)
                at += character_measure(p + at, tok->len - at, &r);
            r.least += key ? 3 : 2;
            r.most += key ? 4 : 2;
        } else {
            r.least += tok->len;
            r.most += tok->len;
        }
    }
    return r;
}

static void length_report(struct amp_check *c, uint64_t is, const char *of)
{
    char expected[64];
    snprintf(expected, sizeof expected, "%llu", (unsigned long long)is);
    amp_check_rule(c, AMP_SEV_ERROR, AMP_CODE(validation_error), "content_length",
                   "/content_length", expected, "is not the length of %s", of);
}

static bool is_declared(const struct amp_view *v)
{
    return amp_tape_get(v->tape, 0, AMP_SPAN("content_length")) != AMP_TOK_NONE;
}

static void json_length_check(struct amp_check *c)
{
    const struct amp_view *v = c->v;
    uint64_t stands = amp_tok_source(v->tape, v->payload).n;
    if (v->size == stands || !is_declared(v))
        return;
    struct range r = value_measure(v->tape, v->payload);
    if (v->size >= r.least && v->size <= r.most)
        return;
    /* The length of the string without its quotes. */
    if (v->tape->tok[v->payload].type == AMP_JSON_STRING && v->size >= r.least - 2 &&
        v->size <= r.most)
        return;
    length_report(c, stands, "the payload");
}

/* The length of a payload of another content type than JSON, which is a string. */
static void string_length_check(struct amp_check *c, enum amp_sw4rm_content content)
{
    const struct amp_view *v = c->v;
    struct amp_span text;
    uint64_t bytes = 0;
    if (!amp_check_string(c, v->payload, &text))
        return; /* the schema reports another type */
    bool base64 = content != AMP_SW4RM_TEXT && amp_sw4rm_base64(text, &bytes);
    if (content == AMP_SW4RM_BYTES && !base64) {
        amp_check_rule(c, AMP_SEV_ERROR, AMP_CODE(validation_error), "base64", "/payload",
                       "the bytes in base64", "is not base64, as content_type %s requires",
                       amp_check_text(c, v->content_type, 60));
        return;
    }
    if ((base64 && v->size == bytes) || (content != AMP_SW4RM_BYTES && v->size == text.n) ||
        !is_declared(v))
        return;
    length_report(c, base64 ? bytes : text.n,
                  base64 ? "the payload's decoded bytes" : "the payload's text");
}

static void size_check(struct amp_check *c, enum amp_sw4rm_content content)
{
    static const uint32_t most_of[] = {
#define X(id, word, most, kind, shape) most,
        AMP_SW4RM_TYPE_LIST(X)
#undef X
            16 *
        1024 * 1024};
    const struct amp_view *v = c->v;
    uint64_t most =
        c->opt->max_payload > 0 ? (uint64_t)c->opt->max_payload : most_of[amp_sw4rm_type(v->type)];
    uint64_t stands = v->payload == AMP_TOK_NONE ? 0 : amp_tok_source(v->tape, v->payload).n;
    if (content == AMP_SW4RM_BYTES)
        stands = stands / 4 * 3;
    bool said = v->size > most && is_declared(v);
    if (!said && stands <= most)
        return;
    char expected[64];
    snprintf(expected, sizeof expected, "at most %llu bytes", (unsigned long long)most);
    amp_check_rule(c, AMP_SEV_ERROR, AMP_CODE(oversize_payload), "max_payload",
                   said ? "/content_length" : "/payload", expected,
                   "the payload exceeds the limit of %s",
                   v->type.n ? amp_check_text(c, v->type, 40) : "a message");
}

void amp_sw4rm_content_rules(struct amp_check *c)
{
    const struct amp_view *v = c->v;
    enum amp_sw4rm_content content = amp_sw4rm_content(v->content_type);
    size_check(c, content);
    if (v->payload == AMP_TOK_NONE)
        return;
    if (content == AMP_SW4RM_JSON)
        json_length_check(c);
    else if (v->content_type.n > 0)
        string_length_check(c, content);
}
