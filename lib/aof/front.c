/* Front matter: reading and changing single scalars, so that everything that a person or another
 * tool wrote beside them stays as it is. */
#include "aof/front.h"

#include <string.h>

#include <amp/json/tape.h>
#include <amp/json/writer.h>

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

/* The lines of the front matter are [from, to); body: what follows its last mark. */
struct front {
    size_t from, to, body;
};

/* 1: the text has one; 0: it has none; -1: it does not end. */
static int front_find(struct amp_span text, struct front *f, struct amp_error *err)
{
    struct line l;
    if (!line_next(text, 0, &l) || !amp_span_is(line_span(text, &l), MARK))
        return 0;
    f->from = l.next;
    while (line_next(text, l.next, &l))
        if (amp_span_is(line_span(text, &l), MARK)) {
            f->to = l.from;
            f->body = l.next;
            return 1;
        }
    return amp_fail(err, AMP_DATAERR, "bad_front_matter", "the front matter has no last line ---");
}

static size_t indent_of(struct amp_span line)
{
    size_t n = 0;
    while (n < line.n && line.p[n] == ' ')
        n++;
    return n;
}

static struct amp_span blanks_trim(struct amp_span s)
{
    while (s.n > 0 && (s.p[0] == ' ' || s.p[0] == '\t'))
        s.p++, s.n--;
    while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

/* A key and its lines: the value is the rest of its line, [from, to) are its line and the deeper
 * lines under it. */
struct entry {
    size_t from, line_end, to, indent;
    struct amp_span value;
};

static bool key_is(struct amp_span line, size_t indent, struct amp_span key, struct amp_span *value)
{
    struct amp_span rest = {line.p + indent, line.n - indent};
    if (rest.n <= key.n || memcmp(rest.p, key.p, key.n) != 0 || rest.p[key.n] != ':' ||
        (rest.n > key.n + 1 && rest.p[key.n + 1] != ' ' && rest.p[key.n + 1] != '\t'))
        return false;
    *value = blanks_trim((struct amp_span){rest.p + key.n + 1, rest.n - key.n - 1});
    return true;
}

static bool is_blank(struct amp_span line)
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
        if (is_blank(line))
            continue;
        size_t indent = indent_of(line);
        if (level == SIZE_MAX)
            level = indent;
        if (found && indent <= level)
            return true;
        if (found) {
            out->to = l.next;
        } else if (indent == level && key_is(line, indent, key, &out->value)) {
            found = true;
            out->from = l.from;
            out->line_end = l.end;
            out->to = l.next;
            out->indent = indent;
        }
    }
    return found;
}

/* The pair of a key in "{a: b, c: d}", without nested braces. */
static bool flow_find(struct amp_span map, struct amp_span key, struct amp_span *value)
{
    struct amp_span in = {map.p + 1, map.n - 2};
    while (in.n > 0) {
        size_t n = 0;
        char quote = 0;
        for (; n < in.n && (quote || in.p[n] != ','); n++)
            if (quote ? in.p[n] == quote : in.p[n] == '"' || in.p[n] == '\'')
                quote = quote ? 0 : in.p[n];
        struct amp_span pair = blanks_trim((struct amp_span){in.p, n}), quoted = pair;
        if (pair.n > key.n + 2 && pair.p[0] == '"' && pair.p[key.n + 1] == '"') {
            quoted = (struct amp_span){pair.p + 1, pair.n - 1};
            if (memcmp(quoted.p, key.p, key.n) == 0 && pair.p[key.n + 2] == ':') {
                *value = blanks_trim((struct amp_span){pair.p + key.n + 3, pair.n - key.n - 3});
                return true;
            }
        } else if (key_is(pair, 0, key, value)) {
            return true;
        }
        n += n < in.n;
        in = (struct amp_span){in.p + n, in.n - n};
    }
    return false;
}

static bool is_flow(struct amp_span v)
{
    return v.n >= 2 && v.p[0] == '{' && v.p[v.n - 1] == '}';
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
        for (size_t i = 0; i < raw.n && !(raw.p[i] == '#' && i > 0 && raw.p[i - 1] == ' '); i++)
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
    struct amp_span outer, inner, raw;
    struct front f;
    struct entry e, sub;
    int rc = front_find(text, &f, err);
    path_split(path, &outer, &inner);
    if (rc <= 0 || !entry_find(text, f.from, f.to, outer, &e))
        return rc < 0 ? -1 : 0;
    raw = e.value;
    if (inner.n > 0) {
        if (is_flow(e.value)) {
            if (!flow_find(e.value, inner, &raw))
                return 0;
        } else {
            struct line l;
            line_next(text, e.from, &l);
            if (!entry_find(text, l.next, e.to, inner, &sub))
                return 0;
            raw = sub.value;
        }
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

/* "{a: b}" as lines under its key, so that one of them can be changed. */
static int flow_expand(struct amp_span map, struct amp_buf *out, struct amp_error *err)
{
    struct amp_span in = {map.p + 1, map.n - 2};
    while (in.n > 0) {
        size_t n = 0;
        char quote = 0;
        for (; n < in.n && (quote || in.p[n] != ','); n++)
            if (quote ? in.p[n] == quote : in.p[n] == '"' || in.p[n] == '\'')
                quote = quote ? 0 : in.p[n];
        struct amp_span pair = blanks_trim((struct amp_span){in.p, n});
        size_t key = 0;
        if (pair.n > 1 && pair.p[0] == '"') {
            for (key = 1; key < pair.n && pair.p[key] != '"'; key++)
                ;
            if (amp_buf_fmt(out, err, "  %.*s", (int)key - 1, pair.p + 1) < 0 || key >= pair.n ||
                amp_buf_fmt(out, err, "%.*s\n",
                            AMP_CLIP(((struct amp_span){pair.p + key + 1, pair.n - key - 1}),
                                     (size_t)4096)) < 0)
                return -1;
        } else if (pair.n > 0 &&
                   amp_buf_fmt(out, err, "  %.*s\n", AMP_CLIP(pair, (size_t)4096)) < 0) {
            return -1;
        }
        n += n < in.n;
        in = (struct amp_span){in.p + n, in.n - n};
    }
    return 0;
}

/* What takes the place of [from, to). */
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
static int line_write(struct amp_buf *out, size_t indent, struct amp_span key, struct amp_span v,
                      struct amp_error *err)
{
    return amp_buf_fmt(out, err, "%*s%.*s: ", (int)indent, "", (int)key.n, key.p) < 0 ||
                   scalar_encode(v, out, err) < 0
               ? -1
               : amp_buf_str(out, "\n", err);
}

static int inner_set(struct amp_buf *text, const struct entry *e, struct amp_span key,
                     struct amp_span value, struct amp_error *err)
{
    AMP_BUF struct amp_buf with = {0};
    struct entry sub;
    struct line l;
    amp_buf_init(&with, 1 << 20);
    line_next(amp_buf_span(text), e->from, &l);
    bool found = entry_find(amp_buf_span(text), l.next, e->to, key, &sub);
    if (!found && !value.p)
        return 0;
    if (value.p && line_write(&with, found ? sub.indent : e->indent + 2, key, value, err) < 0)
        return -1;
    return text_splice(text, found ? sub.from : e->to, found ? sub.to : e->to, amp_buf_span(&with),
                       err);
}

int amp_front_set(struct amp_buf *text, const char *path, struct amp_span value,
                  struct amp_error *err)
{
    AMP_BUF struct amp_buf with = {0};
    struct amp_span outer, inner;
    struct front f;
    struct entry e;
    amp_buf_init(&with, 1 << 20);
    path_split(path, &outer, &inner);
    int rc = front_find(amp_buf_span(text), &f, err);
    if (rc < 0 || (rc == 0 && !value.p))
        return rc;
    if (rc == 0) {
        const struct amp_span empty = AMP_SPAN(MARK "\n" MARK "\n");
        if (text_splice(text, 0, 0, empty, err) < 0)
            return -1;
        f = (struct front){sizeof MARK, sizeof MARK, 2 * sizeof MARK};
    }
    bool found = entry_find(amp_buf_span(text), f.from, f.to, outer, &e);
    if (!found && !value.p)
        return 0;
    if (found && inner.n > 0 && is_flow(e.value)) {
        if (amp_buf_fmt(&with, err, "%.*s:\n", (int)outer.n, outer.p) < 0 ||
            flow_expand(e.value, &with, err) < 0 ||
            text_splice(text, e.from, e.to, amp_buf_span(&with), err) < 0)
            return -1;
        return amp_front_set(text, path, value, err);
    }
    if (found && inner.n > 0)
        return inner_set(text, &e, inner, value, err);
    if (value.p && inner.n > 0 &&
        (amp_buf_fmt(&with, err, "%.*s:\n", (int)outer.n, outer.p) < 0 ||
         line_write(&with, 2, inner, value, err) < 0))
        return -1;
    if (value.p && inner.n == 0 && line_write(&with, 0, outer, value, err) < 0)
        return -1;
    return text_splice(text, found ? e.from : f.to, found ? e.to : f.to, amp_buf_span(&with), err);
}

/* The end of the section of the log: before the next heading, blank lines left out. 0: none. */
static size_t log_end(struct amp_span text, bool *has, struct amp_span wanted)
{
    struct line l;
    size_t end = 0;
    bool inside = false;
    for (size_t at = 0; line_next(text, at, &l); at = l.next) {
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
    bool has = false;
    size_t end = log_end(amp_buf_span(text), &has, line);
    if (has)
        return 0;
    amp_buf_init(&with, 1 << 20);
    size_t at = end > 0 ? end : text->len;
    bool open = at > 0 && text->data[at - 1] != '\n';
    if ((open && amp_buf_str(&with, "\n", err) < 0) ||
        (end == 0 && amp_buf_str(&with, "\n" LOG "\n\n", err) < 0) ||
        amp_buf_add(&with, line.p, line.n, err) < 0 || amp_buf_str(&with, "\n", err) < 0)
        return -1;
    return text_splice(text, at, at, amp_buf_span(&with), err) < 0 ? -1 : 1;
}
