/* The facts of a question. */
#include "people/answer/text/facts.h"

#include <string.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "message/protocol/compose/json.h"
#include "message/protocol/redact/redact.h"
#include "people/answer/text/signed.h"
#include "json/text.h"

#define FACT_MAX  (64u << 10)
#define FIELD_MAX 4000 /* bytes of one field that are shown */
#define ITEMS_MAX 16

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
    AMP_BUF struct amp_buf title = {0};
    size_t to = 0;

    amp_buf_init(&title, FACT_MAX);
    if (amp_question_terms(q)->title(q->message, q->why, false, &title, err) < 0)
        return -1;
    for (size_t i = 0; i < title.len; i++) {
        char c = title.data[i] == '\n' ? ' ' : title.data[i];
        if (c != ' ' || (to && title.data[to - 1] != ' '))
            title.data[to++] = c;
    }
    return amp_facts_set(f, AMP_FACT_title, (struct amp_span){title.data, to}, err);
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
            if (!amp_code_is(err->code, buffer_full))
                return -1;
            break; /* the beginning is enough to know what it is about */
        }
    if (*q->refused &&
        (amp_buf_str(&text, "the last decision was refused:\n", err) < 0 ||
         amp_fact_mark("| ", q->refused, &text, err) < 0) &&
        !amp_code_is(err->code, buffer_full))
        return -1;
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (amp_facts_set(f, plain[i].which, amp_span_str(plain[i].value), err) < 0)
            return -1;
    return amp_facts_set(f, AMP_FACT_text, amp_buf_span(&text), err);
}

/* ---- escaping ---- */

int amp_escape_html(struct amp_span text, struct amp_buf *out, struct amp_error *err)
{
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        const char *as = c == '&'    ? "&amp;"
                         : c == '<'  ? "&lt;"
                         : c == '>'  ? "&gt;"
                         : c == '"'  ? "&quot;"
                         : c == '\'' ? "&#39;"
                                     : NULL;
        if ((as ? amp_buf_str(out, as, err) : amp_buf_add(out, &c, 1, err)) < 0)
            return -1;
    }
    return 0;
}
