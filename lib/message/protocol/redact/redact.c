/*
 * The scanner for built-in shapes. It reads from left to right and reads each byte only a few
 * times: a shape or a value is either replaced completely or skipped completely.
 */
#include "message/protocol/redact/redact.h"

#include <string.h>

enum {
    PEEK_SPACES = 8,
    USERINFO_MOST = 1024,
    WORD_MOST = 128,
    KEYLIKE_MOST = 1024,
    VALUE_MOST = 64 * 1024,
};

struct scan {
    const char *begin, *p, *end; /* p: the next byte to look at */
    const char *kept;            /* text from here on has not been written yet */
    bool cut;                    /* the text was cut off at its end */
    struct amp_buf *out;
    struct amp_error *err;
};

static bool is_word(char c)
{
    return amp_redact_upper(c) || amp_redact_lower(c) || amp_redact_digit(c) || c == '_';
}

/* ---- shapes with a prefix of their own */

enum set { UPPER, ALNUM, WORD, DASHED, DOTTED };

static bool in_set(char c, enum set s)
{
    switch (s) {
    case UPPER:
        return amp_redact_upper(c) || amp_redact_digit(c);
    case ALNUM:
        return is_word(c) && c != '_';
    case WORD:
        return is_word(c);
    case DASHED:
        return is_word(c) || c == '-';
    case DOTTED:
        return is_word(c) || c == '-' || c == '.';
    }
    return false;
}

/* The longer of two prefixes comes first. */
static const struct shape {
    const char *prefix, *kind;
    uint8_t set, least; /* the characters after the prefix, and their least number */
} shapes[] = {
    {"AKIA", "aws_key", UPPER, 16},
    {"ASIA", "aws_key", UPPER, 16},
    {"ABIA", "aws_key", UPPER, 16},
    {"ACCA", "aws_key", UPPER, 16},
    {"AIza", "google_key", DASHED, 30},
    {"GOCSPX-", "google_key", DASHED, 20},
    {"SG.", "sendgrid_key", DOTTED, 30},
    {"dop_v1_", "digitalocean_token", ALNUM, 32},
    {"gh", "github_token", 0, 0}, /* ghp_ gho_ ghu_ ghs_ ghr_: see shape_at */
    {"github_pat_", "github_token", WORD, 20},
    {"glpat-", "gitlab_token", DASHED, 20},
    {"hf_", "huggingface_token", ALNUM, 30},
    {"npm_", "npm_token", ALNUM, 30},
    {"pypi-", "pypi_token", DASHED, 50},
    {"rk_live_", "stripe_key", ALNUM, 16},
    {"sk_live_", "stripe_key", ALNUM, 16},
    {"sk_test_", "stripe_key", ALNUM, 16},
    {"sk-ant-", "anthropic_key", DASHED, 16},
    {"sk-", "openai_key", DASHED, 20}, /* with a digit: not sk-learn-… */
    {"whsec_", "stripe_key", ALNUM, 16},
    {"xapp-", "slack_token", DASHED, 10},
    {"xoxa-", "slack_token", DASHED, 10},
    {"xoxb-", "slack_token", DASHED, 10},
    {"xoxe.", "slack_token", DOTTED, 10},
    {"xoxe-", "slack_token", DASHED, 10},
    {"xoxp-", "slack_token", DASHED, 10},
    {"xoxr-", "slack_token", DASHED, 10},
    {"xoxs-", "slack_token", DASHED, 10},
};

static bool scan_starts(const struct scan *s, const char *p, const char *with)
{
    size_t n = strlen(with);
    return (size_t)(s->end - p) >= n && memcmp(p, with, n) == 0;
}

/* Whether the text was cut off at p. */
static bool cut_at(const struct scan *s, const char *p)
{
    return p == s->end ? s->cut : scan_starts(s, p, "…") || scan_starts(s, p, "...");
}

/* Writes the text before `from`, and the kind for the text up to `to`. 1, or -1. */
static int scan_replace(struct scan *s, const char *from, const char *to, const char *kind)
{
    if (amp_buf_add(s->out, s->kept, (size_t)(from - s->kept), s->err) < 0 ||
        amp_buf_fmt(s->out, s->err, "[redacted:%s]", kind) < 0)
        return -1;
    s->p = s->kept = to;
    return 1;
}

/* The end of the characters of a set, from p on. */
static const char *set_end(const struct scan *s, const char *p, enum set set)
{
    while (p < s->end && in_set(*p, set))
        p++;
    return p;
}

/* A key ends before a full stop, and before the dots that mark a cut. */
static const char *without_dots(const char *from, const char *p)
{
    while (p > from && p[-1] == '.')
        p--;
    return p;
}

static bool has_digit(const char *p, const char *end)
{
    while (p < end && !amp_redact_digit(*p))
        p++;
    return p < end;
}

static int shape_at(struct scan *s)
{
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        const struct shape *h = &shapes[i];
        if (h->prefix[0] != s->p[0] || !scan_starts(s, s->p, h->prefix))
            continue;
        const char *body = s->p + strlen(h->prefix);
        enum set set = (enum set)h->set;
        size_t least = h->least;
        if (h->least == 0) {
            if (s->end - body < 2 || !strchr("pousr", body[0]) || body[1] != '_')
                continue;
            body += 2;
            set = ALNUM;
            least = 20;
        }
        const char *end = without_dots(body, set_end(s, body, set));
        bool whole = (size_t)(end - body) >= least;
        if (whole && h->prefix[2] == '-' && h->prefix[3] == '\0')
            whole = has_digit(body, end);
        if (whole || (end > body && cut_at(s, end)))
            return scan_replace(s, s->p, end, h->kind);
    }
    return 0;
}

/* eyJ….eyJ….signature */
static int jwt_at(struct scan *s)
{
    if (!scan_starts(s, s->p, "eyJ"))
        return 0;
    const char *end = s->p, *part;
    unsigned parts = 0;
    do {
        part = end + (parts > 0);
        end = set_end(s, part, DASHED);
        parts++;
    } while (parts < 5 && end < s->end && *end == '.' && end > part);
    bool whole = parts >= 3 || (parts == 2 && end - part >= 8);
    if (whole || (end - s->p > 8 && cut_at(s, without_dots(s->p, end))))
        return scan_replace(s, s->p, without_dots(s->p, end), "jwt");
    return 0;
}

/* A PEM private key, to its END line; if there is none, to the last byte that may belong to it. */
static int pem_at(struct scan *s)
{
    static const char begin[] = "-----BEGIN ";
    if (!scan_starts(s, s->p, begin))
        return 0;
    const char *p = s->p + sizeof(begin) - 1, *label = p;
    while (p < s->end && (amp_redact_upper(*p) || amp_redact_digit(*p) || *p == ' '))
        p++;
    struct amp_span name = {label, (size_t)(p - label)};
    if (!amp_span_glob(name, AMP_SPAN("*PRIVATE KEY*")) && !(p == s->end && s->cut))
        return 0;
    if (scan_starts(s, p, "-----"))
        p += 5;
    for (; p < s->end && *p != '"' && *p != '\'' && *p != '<' && *p != '{'; p++) {
        if (*p == '\\' && s->end - p > 1 && p[1] == '"')
            break;
        if (*p != '-' || !scan_starts(s, p, "-----END "))
            continue;
        p += 9;
        while (p < s->end && *p != '-' && *p != '"' && *p != '\n')
            p++;
        while (p < s->end && *p == '-')
            p++;
        break;
    }
    return scan_replace(s, s->p, p, "private_key");
}

/* The "://" before user:password@host; `\/` is a slash in JSON. */
static int userinfo_at(struct scan *s)
{
    const char *p = s->p + 1;
    for (int i = 0; i < 2; i++) {
        if (p < s->end && *p == '\\')
            p++;
        if (p == s->end || *p++ != '/')
            return 0;
    }
    const char *user = p, *colon = NULL;
    while (p < s->end && p - user < USERINFO_MOST && (unsigned char)*p > ' ' &&
           !strchr("@/?#\"'<>\\`", *p)) {
        if (*p == ':' && !colon)
            colon = p;
        p++;
    }
    if (p < s->end && *p == '@' && ((colon && p - colon > 1) || (!colon && p - user >= 16)))
        return scan_replace(s, user, p, "userinfo");
    if (!cut_at(s, p) || !colon)
        return 0;
    for (const char *q = colon + 1; q < p; q++)
        if (!amp_redact_digit(*q)) /* else it is a port */
            return scan_replace(s, user, p, "userinfo");
    return 0;
}

/* ---- values with a name */

static bool is_harmless(struct amp_span v)
{
    static const char *const words[] = {"", "null", "true", "false", "none", "undefined"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (amp_span_is(v, words[i]))
            return true;
    /* A value that was replaced before; the bracket may not be part of the value. */
    if (v.n <= 10 || memcmp(v.p, "[redacted:", 10) != 0)
        return false;
    size_t i = 10;
    while (i < v.n && (is_word(v.p[i]) || v.p[i] == '-'))
        i++;
    return i == v.n || (i + 1 == v.n && v.p[i] == ']');
}

/* The end of a value in quotes: the next quote with no more backslashes before it than the first
 * quote has. If there is none: the end of the line, or of a text that was cut. */
static const char *quoted_end(const struct scan *s, const char *p, char quote, size_t depth,
                              size_t most)
{
    size_t slashes = 0;
    const char *line = NULL, *end = (size_t)(s->end - p) > most ? p + most : s->end;
    for (; p < end; p++) {
        if (*p == quote && slashes <= depth)
            return p - slashes;
        if (*p == '\n' && !line)
            line = p;
        slashes = *p == '\\' ? slashes + 1 : 0;
    }
    return line && !s->cut ? line : end;
}

/* A bracket inside a word belongs to the word. */
static bool ends_plain(const struct scan *s, const char *p)
{
    if ((unsigned char)*p <= ' ' || strchr(",;&|`<", *p))
        return true;
    return strchr(")}]>", *p) && (s->end - p == 1 || !is_word(p[1]));
}

static const char *plain_end(const struct scan *s, const char *p, bool whole_line, size_t most)
{
    const char *end = (size_t)(s->end - p) > most ? p + most : s->end;
    while (p < end && *p != '\n' && *p != '\r' && *p != '"' && *p != '\'') {
        if (*p == '\\' && s->end - p > 1 && strchr("nrt\"\\", p[1]))
            break;
        if (!whole_line && ends_plain(s, p))
            break;
        p++;
    }
    return p;
}

static const char *skip_spaces(const struct scan *s, const char *p)
{
    for (int i = 0; i < PEEK_SPACES && p < s->end && (*p == ' ' || *p == '\t'); i++)
        p++;
    return p;
}

static const char *skip_backslashes(const struct scan *s, const char *p)
{
    while (p < s->end && *p == '\\' && s->end - p > 1 && strchr("\\\"'", p[1]))
        p++;
    return p;
}

static bool takes_line(const char *kind)
{
    return strcmp(kind, "authorization") == 0 || strcmp(kind, "cookie") == 0;
}

/* p: the value. */
static int value_at(struct scan *s, struct amp_span name, const char *p)
{
    const char *kind = amp_redact_name(name);
    const char *open = skip_backslashes(s, p);
    struct amp_span v;
    if (!kind && !amp_redact_may_name(name))
        return 0;
    size_t most = kind ? VALUE_MOST : KEYLIKE_MOST;
    if (open < s->end && (*open == '"' || *open == '\'')) {
        v.p = open + 1;
        v.n = (size_t)(quoted_end(s, v.p, *open, (size_t)(open - p), most) - v.p);
    } else {
        v.p = p;
        v.n = (size_t)(plain_end(s, p, kind && takes_line(kind), most) - p);
    }
    if (!kind && amp_redact_keylike(v))
        kind = "key";
    if (!kind || is_harmless(v))
        return 0;
    return scan_replace(s, v.p, v.p + v.n, kind);
}

/* Handles these at the start of a word: "name": value, name=value, --name value. */
static int named_at(struct scan *s)
{
    const char *name = s->p, *p = name;
    const char *last = s->end - name > WORD_MOST ? name + WORD_MOST : s->end;
    while (p < last &&
           (is_word(*p) || ((*p == '-' || *p == '.') && p + 1 < s->end && is_word(p[1]))))
        p++;
    struct amp_span word = {name, (size_t)(p - name)};
    const char *end = p;
    p = skip_backslashes(s, p);
    if (p < s->end && (*p == '"' || *p == '\''))
        p++;
    const char *sep = skip_spaces(s, p);
    if (sep < s->end && (*sep == ':' || *sep == '=')) {
        sep++;
        if (sep < s->end && *sep == '>')
            sep++;
        int rc = value_at(s, word, skip_spaces(s, sep));
        if (rc != 0)
            return rc;
    } else if (p == end && sep > p && name - s->begin >= 2 && name[-1] == '-' && name[-2] == '-' &&
               amp_redact_name(word) && sep < s->end && *sep != '-') {
        return value_at(s, word, sep);
    } else if (word.n == 6 && (memcmp(name, "Bearer", 6) == 0 || memcmp(name, "bearer", 6) == 0) &&
               sep == end + 1) {
        const char *to = sep;
        bool digit = false;
        while (to < s->end && (is_word(*to) || strchr("-.~+/=", *to)))
            digit |= amp_redact_digit(*to++);
        to = without_dots(sep, to);
        if ((to - sep >= 16 && digit) || (to > sep && cut_at(s, to)))
            return scan_replace(s, sep, to, "bearer");
    }
    return 0;
}

static int scan_step(struct scan *s)
{
    char c = *s->p;
    int rc = 0;
    if (c == ':')
        return userinfo_at(s);
    if (c == '-')
        return pem_at(s);
    if (!is_word(c) || (s->p > s->begin && is_word(s->p[-1])))
        return 0;
    if (amp_redact_lower(c) || amp_redact_upper(c))
        rc = shape_at(s);
    if (rc == 0 && c == 'e')
        rc = jwt_at(s);
    return rc != 0 ? rc : named_at(s);
}

int amp_redact_shapes(struct amp_span text, bool cut, struct amp_buf *out, struct amp_error *err)
{
    struct scan s = {.p = text.p,
                     .begin = text.p,
                     .kept = text.p,
                     .end = text.n ? text.p + text.n : text.p,
                     .cut = cut,
                     .out = out,
                     .err = err};
    while (s.p < s.end) {
        int rc = scan_step(&s);
        if (rc < 0)
            return -1;
        if (rc > 0)
            continue;
        /* No shape begins inside a word. */
        bool word = is_word(*s.p);
        s.p++;
        while (word && s.p < s.end && is_word(*s.p))
            s.p++;
    }
    return amp_buf_add(out, s.kept, (size_t)(s.end - s.kept), err);
}
