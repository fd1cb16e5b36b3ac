/* Front matter: reading and changing single scalars, so that everything that a person or another
 * tool wrote beside them stays as it is. */
#include "work/aof/front.h"

#include <string.h>

#include <amp/json/tape.h>
#include <amp/json/writer.h>

#include "base/codes.h"

#define MARK "---"
#define LOG  "## Work Log"

/* A line of a text: [from, end) without its line end, next: the first byte of the next line. */
struct line {
    size_t from, end, next;
};

static bool line_next(struct amp_span text, size_t at, struct line *out)
{
    if (at >= text.n)
        return false;
    const char *lf = memchr(text.p + at, '\n', text.n - at);
    out->from = at;
    out->end = lf ? (size_t)(lf - text.p) : text.n;
    out->next = lf ? out->end + 1 : text.n;
    if (out->end > out->from && text.p[out->end - 1] == '\r')
        out->end--;
    return true;
}

static struct amp_span line_span(struct amp_span text, const struct line *l)
{
    return (struct amp_span){text.p + l->from, l->end - l->from};
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static struct amp_span blanks_trim(struct amp_span s)
{
    while (s.n > 0 && is_blank(s.p[0]))
        s.p++, s.n--;
    while (s.n > 0 && is_blank(s.p[s.n - 1]))
        s.n--;
    return s;
}

/* The line end of the text: that of its first line. */
static const char *line_end(struct amp_span text)
{
    const char *lf = text.n > 0 ? memchr(text.p, '\n', text.n) : NULL;
    return lf && lf > text.p && lf[-1] == '\r' ? "\r\n" : "\n";
}

/* The lines of the front matter are [from, to); body: what follows its last mark. Without front
 * matter all are where it would be. */
struct front {
    size_t from, to, body;
};

static bool is_mark(struct amp_span text, const struct line *l)
{
    struct amp_span line = line_span(text, l);
    return amp_span_starts(line, MARK) && amp_span_is(blanks_trim(line), MARK);
}

/* 1: the text has one, also behind a byte order mark; 0: it has none; -1: it does not end. */
static int front_find(struct amp_span text, struct front *f, struct amp_error *err)
{
    struct line l;
    size_t at = amp_span_starts(text, "\xef\xbb\xbf") ? 3 : 0;
    *f = (struct front){at, at, at};
    if (!line_next(text, at, &l) || !is_mark(text, &l))
        return 0;
    f->from = l.next;
    while (line_next(text, l.next, &l))
        if (is_mark(text, &l)) {
            f->to = l.from;
            f->body = l.next;
            return 1;
        }
    return amp_fail(err, AMP_DATAERR, bad_front_matter, "the front matter has no last line ---");
}

/* A tab counts as a blank: YAML refuses it, but its line belongs to the key above it all the same.
 */
static size_t indent_of(struct amp_span line)
{
    size_t n = 0;
    while (n < line.n && (line.p[n] == ' ' || line.p[n] == '\t'))
        n++;
    return n;
}

/* A key and its lines: the value is the rest of its line, [from, to) are its line and the deeper
 * lines under it. */
struct entry {
    size_t from, line_end, to, indent;
    struct amp_span value;
};

/* Whether the text is "KEY: VALUE"; the key may have quotes, as in JSON. */
static bool pair_is(struct amp_span text, struct amp_span key, struct amp_span *value)
{
    char quote = text.n > 0 && (text.p[0] == '"' || text.p[0] == '\'') ? text.p[0] : 0;
    size_t at = (quote ? 1 : 0) + key.n;
    if (text.n <= at || memcmp(text.p + (quote ? 1 : 0), key.p, key.n) != 0 ||
        (quote && text.p[at++] != quote))
        return false;
    while (at < text.n && (text.p[at] == ' ' || text.p[at] == '\t'))
        at++;
    if (at >= text.n || text.p[at] != ':' ||
        (!quote && at + 1 < text.n && !is_blank(text.p[at + 1])))
        return false;
    *value = blanks_trim((struct amp_span){text.p + at + 1, text.n - at - 1});
    return true;
}

static bool is_comment(struct amp_span line)
{
    struct amp_span rest = blanks_trim(line);
    return rest.n == 0 || rest.p[0] == '#';
}

/* The entry of a key among the lines [from, to) that have the indentation of the first of them. */
static bool entry_find(struct amp_span text, size_t from, size_t to, struct amp_span key,
                       struct entry *out)
{
    struct amp_span part = {text.p, to};
    struct line l;
    size_t level = SIZE_MAX;
    bool found = false;
    for (size_t at = from; line_next(part, at, &l); at = l.next) {
        struct amp_span line = line_span(part, &l);
        if (is_comment(line))
            continue;
        size_t indent = indent_of(line);
        if (level == SIZE_MAX)
            level = indent;
        if (found && indent <= level)
            return true;
        if (found) {
            out->to = l.next;
        } else if (indent == level &&
                   pair_is((struct amp_span){line.p + indent, line.n - indent}, key, &out->value)) {
            found = true;
            out->from = l.from;
            out->line_end = l.end;
            out->to = l.next;
            out->indent = indent;
        }
    }
    return found;
}

/* Two values for one key: no reader of YAML would agree with another which of them counts. */
static int twice_fail(struct amp_span key, struct amp_error *err)
{
    return amp_fail(err, AMP_DATAERR, bad_front_matter, "the front matter has the key %.*s twice",
                    AMP_CLIP(key, (size_t)40));
}

/* The entry of a key among [from, to). 1; 0; -1: there are two. */
static int entry_get(struct amp_span text, size_t from, size_t to, struct amp_span key,
                     struct entry *out, struct amp_error *err)
{
    struct entry other;
    if (!entry_find(text, from, to, key, out))
        return 0;
    return entry_find(text, out->to, to, key, &other) ? twice_fail(key, err) : 1;
}

/* ---- mappings in braces ---- */

/* The length of a part of "{a: b, c: [d, e]}": up to the next comma that is not in quotes or
 * brackets; whole: up to the bracket that closes the first one, and with it, or 0. */
static size_t flow_length(struct amp_span s, bool whole)
{
    size_t depth = 0, i = 0;
    bool opens = true; /* a quote here opens a scalar */
    char quote = 0;
    for (; i < s.n; i++) {
        char c = s.p[i];
        if (quote) {
            bool pair = quote == '"' ? c == '\\' : c == quote && i + 1 < s.n && s.p[i + 1] == c;
            if (pair)
                i++;
            else if (c == quote)
                quote = 0;
            continue;
        }
        if (opens && (c == '"' || c == '\''))
            quote = c;
        else if (c == '{' || c == '[')
            depth++;
        else if ((c == '}' || c == ']') && depth > 0 && --depth == 0 && whole)
            return i + 1;
        else if (c == ',' && depth == 0 && !whole)
            return i;
        opens = is_blank(c) ? opens : c == '{' || c == '[' || c == ',' || c == ':';
    }
    return whole ? 0 : s.n;
}

/* The value of an entry in braces, also over several lines; n is 0 if it is not. */
static struct amp_span flow_of(struct amp_span text, const struct entry *e)
{
    struct amp_span v =
        blanks_trim((struct amp_span){e->value.p, (size_t)(text.p + e->to - e->value.p)});
    v.n = v.n > 0 && v.p[0] == '{' ? flow_length(v, true) : 0;
    return v;
}

/* The next pair of what is left between the braces. */
static bool flow_next(struct amp_span *left, struct amp_span *pair)
{
    if (left->n == 0)
        return false;
    size_t n = flow_length(*left, false);
    *pair = (struct amp_span){left->p, n};
    n += n < left->n; /* its comma */
    *left = (struct amp_span){left->p + n, left->n - n};
    return true;
}

/* The pair of a key. 1; 0; -1: there are two. */
static int flow_get(struct amp_span map, struct amp_span key, struct amp_span *pair,
                    struct amp_span *value, struct amp_error *err)
{
    struct amp_span left = {map.p + 1, map.n - 2}, next, v;
    int found = 0;
    while (flow_next(&left, &next))
        if (pair_is(blanks_trim(next), key, &v)) {
            if (found)
                return twice_fail(key, err);
            *pair = next;
            *value = v;
            found = 1;
        }
    return found;
}

/* "…" by the rules of JSON, '…' with '' for a quote, else plain up to a comment. */
static int scalar_decode(struct amp_span raw, struct amp_buf *mem, struct amp_span *out,
                         struct amp_error *err)
{
    AMP_TAPE struct amp_tape t = {0};
    struct amp_json_fault fault;
    if (raw.n == 0 || strchr("{[|>&*!#", raw.p[0]))
        return 0;
    if (raw.p[0] == '"') {
        amp_tape_init(&t, NULL);
        const char *end = raw.p + 1;
        while (end < raw.p + raw.n && *end != '"')
            end += *end == '\\' && end + 1 < raw.p + raw.n ? 2 : 1;
        size_t n = (size_t)(end - raw.p) + 1;
        struct amp_span text;
        if (n > raw.n || amp_tape_scan(&t, raw.p, n, &fault) < 0)
            return 0;
        if (amp_tok_text(&t, 0, mem, &text, err) < 0)
            return -1;
        *out = text;
        return text.n > 0;
    }
    size_t at = mem->len;
    if (amp_buf_reserve(mem, raw.n, err) < 0)
        return -1;
    if (raw.p[0] == '\'') {
        for (size_t i = 1; i < raw.n; i++) {
            if (raw.p[i] == '\'' && (i + 1 == raw.n || raw.p[i + 1] != '\''))
                break;
            i += raw.p[i] == '\'';
            mem->data[mem->len++] = raw.p[i];
        }
    } else {
        for (size_t i = 0; i < raw.n && !(raw.p[i] == '#' && i > 0 && is_blank(raw.p[i - 1])); i++)
            mem->data[mem->len++] = raw.p[i];
    }
    *out = blanks_trim((struct amp_span){mem->data + at, mem->len - at});
    return out->n > 0 && !amp_span_is(*out, "null") && !amp_span_is(*out, "~");
}

/* "a.b" in a and b; b is empty if there is no dot. */
static void path_split(const char *path, struct amp_span *a, struct amp_span *b)
{
    const char *dot = strchr(path, '.');
    *a = (struct amp_span){path, dot ? (size_t)(dot - path) : strlen(path)};
    *b = amp_span_str(dot ? dot + 1 : "");
}

int amp_front_get(struct amp_span text, const char *path, struct amp_buf *mem,
                  struct amp_span *value, struct amp_error *err)
{
    struct amp_span outer, inner, raw, pair;
    struct front f;
    struct entry e, sub;
    struct line l;
    int rc = front_find(text, &f, err);
    path_split(path, &outer, &inner);
    if (rc > 0)
        rc = entry_get(text, f.from, f.to, outer, &e, err);
    if (rc <= 0)
        return rc;
    raw = e.value;
    if (inner.n > 0) {
        struct amp_span map = flow_of(text, &e);
        line_next(text, e.from, &l);
        rc = map.n > 0 ? flow_get(map, inner, &pair, &raw, err)
                       : entry_get(text, l.next, e.to, inner, &sub, err);
        if (rc <= 0)
            return rc;
        if (map.n == 0)
            raw = sub.value;
    }
    return scalar_decode(raw, mem, value, err);
}

/* Whether YAML reads the text as itself without quotes. */
static bool is_plain(struct amp_span v)
{
    static const char *const words[] = {"true", "false", "null",  "yes",  "no",  "on", "off", "y",
                                        "n",    "True",  "False", "Null", "Yes", "No", NULL};
    bool digits = v.n > 0;
    for (size_t i = 0; i < v.n; i++) {
        char c = v.p[i];
        bool digit = c >= '0' && c <= '9';
        digits = digits && digit;
        if (!digit && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') &&
            (i == 0 || !strchr("_-", c)))
            return false;
    }
    if (v.n == 0 || (!digits && v.p[0] >= '0' && v.p[0] <= '9'))
        return false;
    if (amp_span_is(v, "true") || amp_span_is(v, "false"))
        return true; /* the value of a flag */
    for (unsigned i = 0; words[i]; i++)
        if (amp_span_is(v, words[i]))
            return false;
    return !digits || v.n < 16;
}

static int scalar_encode(struct amp_span v, struct amp_buf *out, struct amp_error *err)
{
    if (is_plain(v))
        return amp_buf_add(out, v.p, v.n, err);
    struct amp_jw w;
    amp_jw_init(&w, out);
    amp_jw_str(&w, v);
    return amp_jw_end(&w, err);
}

/* Replaces [from, to). */
static int text_splice(struct amp_buf *text, size_t from, size_t to, struct amp_span with,
                       struct amp_error *err)
{
    size_t tail = text->len - to;
    if (with.n > to - from && amp_buf_reserve(text, with.n - (to - from), err) < 0)
        return -1;
    memmove(text->data + from + with.n, text->data + to, tail);
    if (with.n > 0)
        memcpy(text->data + from, with.p, with.n);
    text->len = from + with.n + tail;
    return 0;
}

/* One line "KEY: VALUE" with its indentation. */
static int line_write(struct amp_buf *out, struct amp_span indent, struct amp_span key,
                      struct amp_span v, const char *end, struct amp_error *err)
{
    return amp_buf_add(out, indent.p, indent.n, err) < 0 ||
                   amp_buf_add(out, key.p, key.n, err) < 0 || amp_buf_str(out, ": ", err) < 0 ||
                   scalar_encode(v, out, err) < 0
               ? -1
               : amp_buf_str(out, end, err);
}

/* Changes one pair between the braces. */
static int flow_set(struct amp_buf *text, struct amp_span map, struct amp_span key,
                    struct amp_span value, struct amp_error *err)
{
    AMP_BUF struct amp_buf with = {0};
    struct amp_span in = blanks_trim((struct amp_span){map.p + 1, map.n - 2}), pair, old;
    amp_buf_init(&with, 1 << 20);
    int rc = flow_get(map, key, &pair, &old, err);
    if (rc < 0 || (rc == 0 && !value.p))
        return rc;
    size_t from = (size_t)((rc > 0 ? old.p : in.p + in.n) - text->data);
    if (value.p) {
        if (rc == 0 &&
            ((in.n > 0 && amp_buf_str(&with, in.p[in.n - 1] == ',' ? " " : ", ", err) < 0) ||
             amp_buf_add(&with, key.p, key.n, err) < 0 || amp_buf_str(&with, ":", err) < 0))
            return -1;
        /* An empty value is behind its colon at once. */
        if (((rc == 0 || old.n == 0) && amp_buf_str(&with, " ", err) < 0) ||
            scalar_encode(value, &with, err) < 0)
            return -1;
        return text_splice(text, from, from + (rc > 0 ? old.n : 0), amp_buf_span(&with), err);
    }
    /* With its comma, the one before it if it is the last pair. */
    size_t at = (size_t)(pair.p - text->data), end = at + pair.n;
    if (text->data[end] == ',')
        end++;
    else if (text->data[at - 1] == ',')
        at--;
    return text_splice(text, at, end, AMP_SPAN(""), err);
}

/* The indentation of the first key among [from, to), or `none`. */
static struct amp_span indent_find(struct amp_span text, size_t from, size_t to,
                                   struct amp_span none)
{
    struct line l;
    for (size_t at = from; at < to && line_next(text, at, &l); at = l.next)
        if (!is_comment(line_span(text, &l)))
            return (struct amp_span){text.p + l.from, indent_of(line_span(text, &l))};
    return none;
}

static int inner_set(struct amp_buf *text, const struct entry *e, struct amp_span key,
                     struct amp_span value, struct amp_error *err)
{
    AMP_BUF struct amp_buf with = {0};
    struct entry sub = {0};
    struct line l;
    amp_buf_init(&with, 1 << 20);
    line_next(amp_buf_span(text), e->from, &l);
    int found = entry_get(amp_buf_span(text), l.next, e->to, key, &sub, err);
    if (found < 0 || (!found && !value.p))
        return found;
    struct amp_span indent =
        found ? (struct amp_span){text->data + sub.from, sub.indent}
              : indent_find(amp_buf_span(text), l.next, e->to, (struct amp_span){0});
    if (!indent.p) { /* the first pair: two deeper than its mapping */
        if (amp_buf_add(&with, text->data + e->from, e->indent, err) < 0)
            return -1;
        indent = AMP_SPAN("  ");
    }
    if (value.p && line_write(&with, indent, key, value, line_end(amp_buf_span(text)), err) < 0)
        return -1;
    return text_splice(text, found ? sub.from : e->to, found ? sub.to : e->to, amp_buf_span(&with),
                       err);
}

int amp_front_set(struct amp_buf *text, const char *path, struct amp_span value,
                  struct amp_error *err)
{
    AMP_BUF struct amp_buf with = {0};
    struct amp_span outer, inner, map;
    struct front f;
    struct entry e, more;
    const char *end = line_end(amp_buf_span(text));
    amp_buf_init(&with, 1 << 20);
    path_split(path, &outer, &inner);
    int rc = front_find(amp_buf_span(text), &f, err);
    if (rc < 0 || (rc == 0 && !value.p))
        return rc;
    if (rc == 0) {
        if (amp_buf_fmt(&with, err, MARK "%s" MARK "%s", end, end) < 0 ||
            text_splice(text, f.from, f.from, amp_buf_span(&with), err) < 0)
            return -1;
        amp_buf_reset(&with);
        f.from = f.to = f.from + sizeof MARK - 1 + strlen(end);
    }
    bool found = entry_find(amp_buf_span(text), f.from, f.to, outer, &e);
    if (!found && !value.p)
        return 0;
    if (found && inner.n > 0) {
        map = flow_of(amp_buf_span(text), &e);
        if (map.n > 0)
            return flow_set(text, map, inner, value, err);
        /* A scalar, such as null, is replaced; a name of the mapping, or its type, is not. */
        if (e.value.n == 0 || strchr("#&!", e.value.p[0]))
            return inner_set(text, &e, inner, value, err);
        if (!value.p)
            return 0;
    }
    struct amp_span indent = indent_find(amp_buf_span(text), f.from, f.to, AMP_SPAN(""));
    if (value.p && inner.n > 0 &&
        (amp_buf_add(&with, indent.p, indent.n, err) < 0 ||
         amp_buf_fmt(&with, err, "%.*s:%s", (int)outer.n, outer.p, end) < 0 ||
         amp_buf_add(&with, indent.p, indent.n, err) < 0 ||
         line_write(&with, AMP_SPAN("  "), inner, value, end, err) < 0))
        return -1;
    if (value.p && inner.n == 0 && line_write(&with, indent, outer, value, end, err) < 0)
        return -1;
    /* Another entry of the key would stay what it was. */
    while (found && entry_find(amp_buf_span(text), e.to, f.to, outer, &more)) {
        if (text_splice(text, more.from, more.to, AMP_SPAN(""), err) < 0)
            return -1;
        f.to -= more.to - more.from;
    }
    return text_splice(text, found ? e.from : f.to, found ? e.to : f.to, amp_buf_span(&with), err);
}

/* The end of the section of the log: before the next heading, blank lines left out. 0: none. */
static size_t log_end(struct amp_span text, size_t at, bool *has, struct amp_span wanted)
{
    struct line l;
    size_t end = 0;
    bool inside = false;
    for (; line_next(text, at, &l); at = l.next) {
        struct amp_span line = line_span(text, &l);
        if (inside && (amp_span_starts(line, "# ") || amp_span_starts(line, "## ")))
            return end;
        if (amp_span_is(line, LOG))
            inside = true;
        if (inside && line.n > 0)
            end = l.next;
        *has = *has || (inside && amp_span_eq(line, wanted));
    }
    return end;
}

int amp_front_log(struct amp_buf *text, struct amp_span line, struct amp_error *err)
{
    AMP_BUF struct amp_buf with = {0};
    struct front f;
    bool has = false;
    if (front_find(amp_buf_span(text), &f, err) < 0)
        return -1;
    const char *lf = line_end(amp_buf_span(text));
    size_t end = log_end(amp_buf_span(text), f.body, &has, line);
    if (has)
        return 0;
    amp_buf_init(&with, 1 << 20);
    size_t at = end > 0 ? end : text->len;
    bool open = at > 0 && text->data[at - 1] != '\n';
    if ((open && amp_buf_str(&with, lf, err) < 0) ||
        (end == 0 && amp_buf_fmt(&with, err, "%s" LOG "%s%s", lf, lf, lf) < 0) ||
        amp_buf_add(&with, line.p, line.n, err) < 0 || amp_buf_str(&with, lf, err) < 0)
        return -1;
    return text_splice(text, at, at, amp_buf_span(&with), err) < 0 ? -1 : 1;
}
