/* Lines of allowed_signers, as OpenSSH reads them: PRINCIPALS [OPTIONS] TYPE BASE64 [COMMENT]. */
#include "message/identity/trust/line.h"

#include <string.h>
#include <strings.h>
#include <time.h>

#include <amp/base/clock.h>
#include <amp/base/num.h>

#include "base/codes.h"

enum { PRINCIPALS_MOST = 1023 }; /* OpenSSH matches no longer pattern */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static struct amp_span blanks_drop(struct amp_span s)
{
    while (s.n > 0 && is_blank(s.p[0])) {
        s.p++;
        s.n--;
    }
    return s;
}

bool identity_line_cut(struct amp_span *text, struct amp_span *line)
{
    if (text->n == 0)
        return false;
    const char *lf = memchr(text->p, '\n', text->n);
    size_t n = lf ? (size_t)(lf - text->p) : text->n, whole = lf ? n + 1 : n;
    *line = (struct amp_span){text->p, n};
    text->p += whole;
    text->n -= whole;
    return true;
}

/* Patterns */

bool identity_pattern_cut(struct amp_span *list, struct amp_span *pattern)
{
    if (list->n == 0)
        return false;
    const char *comma = memchr(list->p, ',', list->n);
    size_t n = comma ? (size_t)(comma - list->p) : list->n, whole = comma ? n + 1 : n;
    *pattern = (struct amp_span){list->p, n};
    list->p += whole;
    list->n -= whole;
    return true;
}

enum identity_match identity_patterns(struct amp_span text, struct amp_span patterns)
{
    struct amp_span p;
    enum identity_match match = IDENTITY_NO_MATCH;
    while (identity_pattern_cut(&patterns, &p)) {
        bool negated = p.n > 0 && p.p[0] == '!';
        if (negated) {
            p.p++;
            p.n--;
        }
        if (!amp_span_glob(text, p))
            continue;
        if (negated)
            return IDENTITY_NEGATED;
        match = IDENTITY_MATCH;
    }
    return match;
}

bool amp_patterns_match(struct amp_span text, struct amp_span patterns)
{
    return identity_patterns(text, patterns) == IDENTITY_MATCH;
}

/* Times */

static bool digits_parse(const char **p, int n, int *out)
{
    *out = 0;
    for (int i = 0; i < n; i++, (*p)++) {
        if (**p < '0' || **p > '9')
            return false;
        *out = *out * 10 + (**p - '0');
    }
    return true;
}

/* YYYYMMDD[HHMM[SS]], in the local time zone, or in UTC with "Z" at its end. */
static bool time_read(struct amp_span text, int64_t *out)
{
    char s[24];
    const char *p = s;
    struct tm tm = {.tm_isdst = -1}, same;
    bool utc = false;
    if (text.n >= sizeof s)
        return false;
    amp_span_copy(text, s, sizeof s);
    size_t n = text.n;
    if (n > 1 && !strcasecmp(s + n - 1, "Z")) {
        utc = true;
        n--;
    } else if (n > 3 && !strcasecmp(s + n - 3, "UTC")) {
        utc = true;
        n -= 3;
    }
    s[n] = '\0';
    if ((n != 8 && n != 12 && n != 14) || !digits_parse(&p, 4, &tm.tm_year) ||
        !digits_parse(&p, 2, &tm.tm_mon) || !digits_parse(&p, 2, &tm.tm_mday) ||
        (n > 8 && (!digits_parse(&p, 2, &tm.tm_hour) || !digits_parse(&p, 2, &tm.tm_min))) ||
        (n > 12 && !digits_parse(&p, 2, &tm.tm_sec)))
        return false;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    if (tm.tm_mon < 0 || tm.tm_mon > 11 || tm.tm_mday < 1 || tm.tm_hour > 23 || tm.tm_min > 59 ||
        tm.tm_sec > 59)
        return false;
    same = tm;
    time_t t = utc ? timegm(&same) : mktime(&same);
    if (t <= 0 || same.tm_mday != tm.tm_mday) /* February 30 */
        return false;
    *out = t;
    return true;
}

static int time_write(const char *name, int64_t s, bool *some, struct amp_buf *out,
                      struct amp_error *err)
{
    time_t t = (time_t)s;
    struct tm tm;
    char text[32];
    if (s <= 0)
        return 0;
    if (!gmtime_r(&t, &tm) || strftime(text, sizeof text, "%Y%m%d%H%M%SZ", &tm) != 15)
        return amp_fail(err, AMP_USAGE, bad_time, "the time is out of range");
    const char *comma = *some ? "," : "";
    *some = true;
    return amp_buf_fmt(out, err, "%s%s=\"%s\"", comma, name, text);
}

/* Options */

static enum trust_line_is line_bad(struct trust_line *out, const char *code, const char *what)
{
    out->code = code;
    out->what = what;
    return TRUST_LINE_BAD;
}

/* The end of the options: the first blank outside quotes. */
static size_t options_end(struct amp_span text)
{
    bool quoted = false;
    size_t i = 0;
    for (; i < text.n && (quoted || !is_blank(text.p[i])); i++) {
        if (text.p[i] == '\\' && i + 1 < text.n && text.p[i + 1] == '"')
            i++;
        else if (text.p[i] == '"')
            quoted = !quoted;
    }
    return i < text.n ? i : text.n;
}

/* Takes NAME="VALUE" from the front. 1: taken; 0: another option; -1: malformed. */
static int option_take(struct amp_span *in, const char *name, struct amp_span *value)
{
    size_t n = strlen(name);
    if (in->n < n + 1 || strncasecmp(in->p, name, n) != 0 || in->p[n] != '=')
        return 0;
    if (in->n < n + 3 || in->p[n + 1] != '"')
        return -1;
    const char *from = in->p + n + 2, *to = memchr(from, '"', in->n - n - 2);
    /* A backslash could only be part of a namespace's name, which has none. */
    if (!to || value->p || memchr(from, '\\', (size_t)(to - from)))
        return -1;
    *value = (struct amp_span){from, (size_t)(to - from)};
    in->n -= (size_t)(to + 1 - in->p);
    in->p = to + 1;
    return 1;
}

static enum trust_line_is options_read(struct amp_span in, struct trust_line *out)
{
    struct amp_span ns = {NULL, 0}, after = {NULL, 0}, before = {NULL, 0};
    const struct {
        const char *name;
        struct amp_span *value;
    } options[] = {{"namespaces", &ns}, {"valid-after", &after}, {"valid-before", &before}};
    for (;;) {
        static const char ca[] = "cert-authority";
        int taken = 0;
        if (in.n >= sizeof ca - 1 && !strncasecmp(in.p, ca, sizeof ca - 1))
            return line_bad(out, AMP_CODE(cert_authority), "certificates are not supported");
        for (size_t i = 0; i < 3 && taken == 0; i++)
            taken = option_take(&in, options[i].name, options[i].value);
        if (taken <= 0)
            return line_bad(out, AMP_CODE(bad_option),
                            "unknown, repeated or malformed option (expected namespaces=\"…\", "
                            "valid-after=\"…\" or valid-before=\"…\")");
        if (in.n == 0)
            break;
        if (in.p[0] != ',' || in.n == 1)
            return line_bad(out, AMP_CODE(bad_option), "options are separated by commas");
        in.p++;
        in.n--;
    }
    if (ns.p && ns.n == 0)
        return line_bad(out, AMP_CODE(bad_option), "namespaces is empty");
    out->namespaces = ns.p ? ns : (struct amp_span){"", 0};
    if ((after.p && !time_read(after, &out->valid_after_s)) ||
        (before.p && !time_read(before, &out->valid_before_s)))
        return line_bad(out, AMP_CODE(bad_option),
                        "the time is malformed (expected YYYYMMDD, YYYYMMDDHHMM or "
                        "YYYYMMDDHHMMSS, with Z for UTC)");
    if (after.p && before.p && out->valid_before_s <= out->valid_after_s)
        return line_bad(out, AMP_CODE(bad_option), "valid-before is not after valid-after");
    return TRUST_LINE_ENTRY;
}

/* Reads "TYPE BASE64 [COMMENT]" and the comment. */
static bool key_read(struct amp_span text, struct trust_line *out)
{
    struct amp_error err;
    if (amp_pubkey_parse(text, &out->key, &err) < 0) {
        amp_span_copy(amp_span_str(err.what), out->why, sizeof out->why);
        return false;
    }
    for (int i = 0; i < 2; i++) {
        while (text.n > 0 && !is_blank(text.p[0])) {
            text.p++;
            text.n--;
        }
        text = blanks_drop(text);
    }
    while (text.n > 0 && is_blank(text.p[text.n - 1]))
        text.n--;
    out->comment = text;
    return true;
}

enum trust_line_is identity_trust_line(struct amp_span line, struct trust_line *out)
{
    *out = (struct trust_line){.namespaces = {"", 0}, .comment = {"", 0}};
    line = blanks_drop(line);
    if (line.n == 0 || line.p[0] == '#')
        return TRUST_LINE_EMPTY;
    if (memchr(line.p, '\0', line.n))
        return line_bad(out, AMP_CODE(bad_line), "the line has a NUL");
    struct amp_span rest = line;
    if (line.p[0] == '"') {
        const char *to = memchr(line.p + 1, '"', line.n - 1);
        if (!to)
            return line_bad(out, AMP_CODE(bad_line), "the quote is not closed");
        out->principals = (struct amp_span){line.p + 1, (size_t)(to - line.p - 1)};
        rest = (struct amp_span){to + 1, (size_t)(line.p + line.n - to - 1)};
    } else {
        size_t n = 0;
        while (n < line.n && !is_blank(line.p[n]) && line.p[n] != '"')
            n++;
        if (n == line.n || line.p[n] == '"')
            return line_bad(out, AMP_CODE(bad_line), "expected: PRINCIPALS [OPTIONS] TYPE BASE64");
        out->principals = (struct amp_span){line.p, n};
        rest = (struct amp_span){line.p + n, line.n - n};
    }
    if (out->principals.n == 0 || out->principals.n > PRINCIPALS_MOST)
        return line_bad(out, AMP_CODE(bad_line), "a list of principals has 1 to 1023 bytes");
    rest = blanks_drop(rest);
    if (key_read(rest, out))
        return TRUST_LINE_ENTRY;
    size_t n = options_end(rest);
    struct amp_span options = {rest.p, n};
    rest = blanks_drop((struct amp_span){rest.p + n, rest.n - n});
    /* Without "=", the first word is a key type rather than an option. */
    if (rest.n == 0 || !memchr(options.p, '=', options.n)) {
        if (options.n >= 14 && !strncasecmp(options.p, "cert-authority", 14))
            return line_bad(out, AMP_CODE(cert_authority), "certificates are not supported");
        return line_bad(out, AMP_CODE(bad_key), out->why);
    }
    if (options_read(options, out) == TRUST_LINE_BAD)
        return TRUST_LINE_BAD;
    if (!key_read(rest, out))
        return line_bad(out, AMP_CODE(bad_key), out->why);
    return TRUST_LINE_ENTRY;
}

/* Without quotes a list ends at a blank, and a line that begins with "#" is a comment. */
static bool principals_need_quotes(struct amp_span s)
{
    bool need = s.p[0] == '#';
    for (size_t i = 0; i < s.n && !need; i++)
        need = is_blank(s.p[i]);
    return need;
}

int identity_trust_line_write(const struct trust_line *l, struct amp_buf *out,
                              struct amp_error *err)
{
    bool some = false;
    size_t before = out->len;
    bool quote = principals_need_quotes(l->principals);
    if (amp_buf_fmt(out, err, "%s%.*s%s ", quote ? "\"" : "", AMP_CLIP(l->principals, 4096),
                    quote ? "\"" : "") < 0)
        goto failed;
    if (l->namespaces.n > 0) {
        some = true;
        if (amp_buf_fmt(out, err, "namespaces=\"%.*s\"", AMP_CLIP(l->namespaces, 4096)) < 0)
            goto failed;
    }
    if (time_write("valid-after", l->valid_after_s, &some, out, err) < 0 ||
        time_write("valid-before", l->valid_before_s, &some, out, err) < 0 ||
        (some && amp_buf_add(out, " ", 1, err) < 0) ||
        amp_pubkey_write(&l->key, NULL, out, err) < 0 ||
        (l->comment.n > 0 && (amp_buf_add(out, " ", 1, err) < 0 ||
                              amp_buf_add(out, l->comment.p, l->comment.n, err) < 0)) ||
        amp_buf_add(out, "\n", 1, err) < 0)
        goto failed;
    return 0;
failed:
    out->len = before;
    return -1;
}

enum trust_line_is identity_revocation_line(struct amp_span line, struct revocation *out)
{
    line = blanks_drop(line);
    if (line.n == 0 || line.p[0] == '#')
        return TRUST_LINE_EMPTY;
    const char *space = memchr(line.p, ' ', line.n);
    if (!space)
        return TRUST_LINE_BAD;
    out->fingerprint = (struct amp_span){line.p, (size_t)(space - line.p)};
    struct amp_span rest = {space + 1, (size_t)(line.p + line.n - space - 1)};
    const char *end = memchr(rest.p, ' ', rest.n);
    struct amp_span time = {rest.p, end ? (size_t)(end - rest.p) : rest.n};
    out->reason = end ? (struct amp_span){end + 1, (size_t)(rest.p + rest.n - end - 1)}
                      : (struct amp_span){"", 0};
    return amp_fingerprint_is(out->fingerprint) && amp_time_parse(time, &out->from_ms)
               ? TRUST_LINE_ENTRY
               : TRUST_LINE_BAD;
}
