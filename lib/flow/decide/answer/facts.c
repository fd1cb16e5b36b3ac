/* The facts of a question, escaping, templates. */
#include "flow/decide/answer/facts.h"

#include <sodium.h>
#include <string.h>

#include <amp/base/clock.h>

#include "flow/decide/answer/signed.h"
#include "protocol/compose/json.h"
#include "protocol/redact/redact.h"
#include "json/text.h"

#define FACT_MAX     (64u << 10)
#define FIELD_MAX    4000 /* bytes of one field that are shown */
#define ITEMS_MAX    16
#define WORD_BYTES   42  /* of text in an encoded word, which has at most 75 characters */
#define HEADER_PLAIN 800 /* bytes of a header line that is not encoded */

const char *const amp_fact_names[AMP_FACT_COUNT] = {
#define X(name) #name,
    AMP_FACTS(X)
#undef X
};

void amp_facts_init(struct amp_facts *f)
{
    for (int i = 0; i < AMP_FACT_COUNT; i++)
        amp_buf_init(&f->mem[i], FACT_MAX);
}

void amp_facts_release(struct amp_facts *f)
{
    for (int i = 0; i < AMP_FACT_COUNT; i++)
        amp_buf_release(&f->mem[i]);
}

const char *amp_facts_get(const struct amp_facts *f, enum amp_fact which)
{
    return f->mem[which].len ? f->mem[which].data : "";
}

/* Texts that an agent wrote, or that quote it. They leave the machine, so secrets are replaced. */
static bool has_foreign_text(enum amp_fact which)
{
    switch (which) {
    case AMP_FACT_title:
    case AMP_FACT_text:
    case AMP_FACT_history:
    case AMP_FACT_files:
    case AMP_FACT_diff:
    case AMP_FACT_effects:
    case AMP_FACT_evidence:
        return true;
    default:
        return false;
    }
}

int amp_facts_set(struct amp_facts *f, enum amp_fact which, struct amp_span value,
                  struct amp_error *err)
{
    struct amp_buf *b = &f->mem[which];

    amp_buf_reset(b);
    if (has_foreign_text(which) ? amp_redact_text(value, false, b, err) < 0
                                : amp_buf_add(b, value.p, value.n, err) < 0)
        return -1;
    if (amp_buf_reserve(b, 1, err) < 0)
        return -1;
    b->data[b->len] = '\0';
    return 0;
}

/* ---- the text ---- */

/* Whether the character at p (n bytes of text left) could do more than be seen: control characters,
 * and those that change the direction of the text. *size: its bytes. */
static bool is_control(const unsigned char *p, size_t n, size_t *size)
{
    *size = 1;
    if (*p < 0x20 || *p == 0x7f)
        return true;
    if (n >= 2 && p[0] == 0xC2 && p[1] >= 0x80 && p[1] <= 0x9F) {
        *size = 2;
        return true;
    }
    if (n < 3 || p[0] != 0xE2)
        return false;
    bool bidi =
        (p[1] == 0x80 && ((p[2] >= 0x8B && p[2] <= 0x8F) || (p[2] >= 0xA8 && p[2] <= 0xAE))) ||
        (p[1] == 0x81 && p[2] >= 0xA6 && p[2] <= 0xA9);
    *size = bidi ? 3 : 1;
    return bidi;
}

int amp_fact_mark(const char *mark, const char *text, struct amp_buf *out, struct amp_error *err)
{
    size_t n = strlen(text), at = 0, size;
    bool cut = n > FIELD_MAX;

    if (cut)
        for (n = FIELD_MAX; n && ((unsigned char)text[n] & 0xC0) == 0x80;)
            n--;
    if (amp_buf_str(out, mark, err) < 0)
        return -1;
    while (at < n) {
        int rc;
        if (text[at] == '\n') {
            size = 1;
            rc = at + 1 < n ? amp_buf_fmt(out, err, "\n%s", mark) : 0;
        } else if (is_control((const unsigned char *)text + at, n - at, &size)) {
            rc = amp_buf_str(out, "?", err);
        } else if ((size = amp_utf8_length((const unsigned char *)text + at, n - at)) == 0) {
            size = 1; /* of a file's name or content */
            rc = amp_buf_str(out, "?", err);
        } else {
            rc = amp_buf_add(out, text + at, size, err);
        }
        if (rc < 0)
            return -1;
        at += size;
    }
    return amp_buf_str(out, cut ? " [cut]\n" : "\n", err);
}

/* The member at a path of keys. */
static const json_t *member_at(const json_t *j, const char *path)
{
    while (j && *path) {
        size_t n = strcspn(path, ".");
        char key[64];
        if (!amp_span_copy((struct amp_span){path, n}, key, sizeof key))
            return NULL;
        j = json_object_get(j, key);
        path += n + (path[n] == '.');
    }
    return j;
}

static int value_mark(const json_t *v, struct amp_buf *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};

    if (json_is_string(v))
        return amp_fact_mark("| ", json_string_value(v), out, err);
    amp_buf_init(&text, AMP_QUESTION_BYTES);
    return amp_json_dump(v, &text, err) < 0 || amp_buf_add(&text, "", 1, err) < 0
               ? -1
               : amp_fact_mark("| ", text.data, out, err);
}

static int field_text(const struct amp_question *q, const struct amp_question_field *f,
                      struct amp_buf *out, struct amp_error *err)
{
    const json_t *v = *f->path ? member_at(q->message, f->path) : NULL;
    size_t i;
    json_t *item;

    if (!*f->path)
        return amp_buf_fmt(out, err, "%s:\n", f->label) < 0
                   ? -1
                   : amp_fact_mark("| ", amp_question_invocation(q), out, err);
    if (!v || json_is_null(v) || (json_is_array(v) && json_array_size(v) == 0))
        return 0;
    if (amp_buf_fmt(out, err, "%s:\n", f->label) < 0)
        return -1;
    if (!json_is_array(v))
        return value_mark(v, out, err);
    json_array_foreach (v, i, item)
        if (i < ITEMS_MAX && value_mark(item, out, err) < 0)
            return -1;
    return json_array_size(v) > ITEMS_MAX ? amp_buf_str(out, "  and more\n", err) : 0;
}

/* The title is of the program's own words; it may have several lines. */
static int title_set(struct amp_facts *f, const struct amp_question *q, struct amp_error *err)
{
    AMP_BUF struct amp_buf title = {0}, line = {0};

    amp_buf_init(&title, FACT_MAX);
    amp_buf_init(&line, FACT_MAX);
    if (amp_question_terms(q)->title(q->message, q->why, false, &title, err) < 0 ||
        amp_escape(amp_buf_span(&title), AMP_ESCAPE_NONE, &line, err) < 0)
        return -1;
    size_t to = 0;
    for (size_t i = 0; i < line.len; i++) {
        char c = line.data[i] == '\n' ? ' ' : line.data[i];
        if (c != ' ' || (to && line.data[to - 1] != ' '))
            line.data[to++] = c;
    }
    return amp_facts_set(f, AMP_FACT_title, (struct amp_span){line.data, to}, err);
}

int amp_facts_of(struct amp_facts *f, const struct amp_question *q, struct amp_error *err)
{
    char digest[AMP_QUESTION_DIGEST_MAX], arrived[AMP_TIME_MAX];
    AMP_BUF struct amp_buf text = {0};
    const struct {
        enum amp_fact which;
        const char *value;
    } plain[] = {{AMP_FACT_event, "asked"},
                 {AMP_FACT_question, q->key},
                 {AMP_FACT_id, q->id},
                 {AMP_FACT_invocation, amp_question_invocation(q)},
                 {AMP_FACT_protocol, amp_protocol_name(q->protocol)},
                 {AMP_FACT_task, q->about.task},
                 {AMP_FACT_answers, amp_answer_words(q)},
                 {AMP_FACT_arrived, arrived},
                 {AMP_FACT_digest, digest}};

    amp_time_format(q->arrived_ms, arrived);
    if (amp_question_digest(q, digest, err) < 0 || title_set(f, q, err) < 0)
        return -1;
    amp_buf_init(&text, FACT_MAX / 2);
    for (const struct amp_question_field *i = amp_question_terms(q)->fields; i->label; i++)
        if (field_text(q, i, &text, err) < 0) {
            if (strcmp(err->code, "buffer_full") != 0)
                return -1;
            break; /* the beginning is enough to know what it is about */
        }
    if (*q->refused &&
        (amp_buf_str(&text, "the last decision was refused:\n", err) < 0 ||
         amp_fact_mark("| ", q->refused, &text, err) < 0) &&
        strcmp(err->code, "buffer_full") != 0)
        return -1;
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (amp_facts_set(f, plain[i].which, amp_span_str(plain[i].value), err) < 0)
            return -1;
    return amp_facts_set(f, AMP_FACT_text, amp_buf_span(&text), err);
}

/* ---- escaping ---- */

static int escape_chars(struct amp_span text, bool quotes, struct amp_buf *out,
                        struct amp_error *err)
{
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        const char *as = c == '&'              ? "&amp;"
                         : c == '<'            ? "&lt;"
                         : c == '>'            ? "&gt;"
                         : c == '"' && quotes  ? "&quot;"
                         : c == '\'' && quotes ? "&#39;"
                                               : NULL;
        if ((as ? amp_buf_str(out, as, err) : amp_buf_add(out, &c, 1, err)) < 0)
            return -1;
    }
    return 0;
}

/* An encoded word for each piece, on lines of their own. */
static int header_encode(struct amp_span text, struct amp_buf *out, struct amp_error *err)
{
    char word[80];

    for (size_t at = 0; at < text.n;) {
        size_t n = text.n - at < WORD_BYTES ? text.n - at : WORD_BYTES;
        while (at + n < text.n && n > 1 && ((unsigned char)text.p[at + n] & 0xC0) == 0x80)
            n--;
        sodium_bin2base64(word, sizeof word, (const unsigned char *)text.p + at, n,
                          sodium_base64_VARIANT_ORIGINAL);
        if (amp_buf_fmt(out, err, "%s=?UTF-8?B?%s?=", at ? "\r\n " : "", word) < 0)
            return -1;
        at += n;
    }
    return 0;
}

static int escape_header(struct amp_span text, struct amp_buf *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    bool plain = text.n <= HEADER_PLAIN && !(text.n && memmem(text.p, text.n, "=?", 2));

    amp_buf_init(&line, FACT_MAX);
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        char safe = c < 0x20 || c == 0x7f ? ' ' : text.p[i];
        plain &= c < 0x80;
        if (amp_buf_add(&line, &safe, 1, err) < 0)
            return -1;
    }
    return plain ? amp_buf_add(out, line.data, line.len, err)
                 : header_encode(amp_buf_span(&line), out, err);
}

int amp_escape(struct amp_span text, enum amp_escape how, struct amp_buf *out,
               struct amp_error *err)
{
    switch (how) {
    case AMP_ESCAPE_MRKDWN:
        return escape_chars(text, false, out, err);
    case AMP_ESCAPE_HTML:
        return escape_chars(text, true, out, err);
    case AMP_ESCAPE_HEADER:
        return escape_header(text, out, err);
    case AMP_ESCAPE_NONE:
        break;
    }
    return amp_buf_add(out, text.p, text.n, err);
}

/* ---- templates ---- */

static int template_fail(struct amp_error *err, const char *template, const char *what)
{
    return amp_fail(err, AMP_CONFIG, "bad_template", "the template \"%.100s\": %s", template, what);
}

int amp_template_text(const char *template, const struct amp_facts *f, enum amp_escape how,
                      struct amp_buf *out, struct amp_error *err)
{
    for (const char *p = template; *p;) {
        size_t n = strcspn(p, "{"), name;
        int i = 0;
        if (out && amp_buf_add(out, p, n, err) < 0)
            return -1;
        p += n;
        if (*p && p[1] == '{') {
            if (out && amp_buf_str(out, "{", err) < 0)
                return -1;
            p += 2;
        } else if (*p) {
            name = strcspn(++p, "}");
            if (!p[name])
                return template_fail(err, template, "a brace is not closed");
            while (i < AMP_FACT_COUNT &&
                   !amp_span_is((struct amp_span){p, name}, amp_fact_names[i]))
                i++;
            if (i == AMP_FACT_COUNT)
                return template_fail(err, template, "an unknown name in braces");
            if (out && f &&
                amp_escape(amp_span_str(amp_facts_get(f, (enum amp_fact)i)), how, out, err) < 0)
                return -1;
            p += name + 1;
        }
    }
    return 0;
}

static json_t *string_fill(const json_t *template, const struct amp_facts *f, enum amp_escape how,
                           struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};

    amp_buf_init(&text, 4 * FACT_MAX);
    if (amp_template_text(json_string_value(template), f, how, &text, err) < 0)
        return NULL;
    json_t *s = json_stringn(text.len ? text.data : "", text.len);
    if (!s)
        amp_fail(err, AMP_DATAERR, "bad_template", "a text is not UTF-8");
    return s;
}

static json_t *array_fill(const json_t *template, const struct amp_facts *f, enum amp_escape how,
                          struct amp_error *err)
{
    json_auto_t *out = json_array();
    size_t i;
    json_t *v;

    if (!out)
        amp_fail_memory(err);
    json_array_foreach (template, i, v)
        if (!out || json_array_append_new(out, amp_template_json(v, f, how, err)) < 0)
            return NULL;
    return json_incref(out);
}

json_t *amp_template_json(const json_t *template, const struct amp_facts *f, enum amp_escape how,
                          struct amp_error *err)
{
    const char *key;
    json_t *v;

    if (json_is_string(template))
        return string_fill(template, f, how, err);
    if (json_is_array(template))
        return array_fill(template, f, how, err);
    if (!json_is_object(template))
        return json_deep_copy(template);
    json_auto_t *out = json_object();
    if (!out) {
        amp_fail_memory(err);
        return NULL;
    }
    json_object_foreach ((json_t *)(uintptr_t) template, key, v)
        if (json_object_set_new(out, key, amp_template_json(v, f, how, err)) < 0)
            return NULL;
    return json_incref(out);
}
