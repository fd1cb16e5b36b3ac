/* Errors about a schema: the text, the place in it, the value found there, and what was expected.
 */
#include <string.h>

#include "base/codes.h"
#include "base/nearest.h"
#include "schema/compile/compiler.h"

enum { POINTER_MOST = 160, FOUND_MOST = 40, NAME_MOST = 120, REMARKS_MOST = 20 };

/* Line and column (in characters) of a byte, both from 1. */
static void place_of(struct amp_span text, size_t at, unsigned *line, unsigned *column)
{
    size_t start = 0;
    *line = *column = 1;
    for (size_t i = 0; i < at && i < text.n; i++)
        if (text.p[i] == '\n') {
            ++*line;
            start = i + 1;
        }
    for (size_t i = start; i < at && i < text.n; i++)
        *column += ((unsigned char)text.p[i] & 0xc0) != 0x80;
}

/* The name of a text for people: opt->name for the first, the URI for the others. */
static struct amp_span name_of(const struct amp_compiler *c, const struct amp_schema_document *d)
{
    struct amp_span name = c->opt->name && !d->next ? amp_span_str(c->opt->name) : d->asked;
    if (name.n > NAME_MOST) { /* the end is more specific */
        name.p += name.n - NAME_MOST;
        name.n = NAME_MOST;
    }
    return name;
}

static int add_place(const struct amp_compiler *c, const struct amp_schema_document *d, size_t at,
                     struct amp_buf *out)
{
    unsigned line, column;
    struct amp_span name = name_of(c, d);
    place_of(d->text, at, &line, &column);
    if (name.n)
        return amp_buf_fmt(out, NULL, "%.*s:%u:%u: ", (int)name.n, name.p, line, column);
    return amp_buf_fmt(out, NULL, "line %u, column %u: ", line, column);
}

static struct amp_span cut_text(struct amp_span s, size_t most)
{
    while (s.n > most || (s.n == most && most && ((unsigned char)s.p[s.n - 1] & 0x80)))
        s.n--;
    return s;
}

/* Appends "; found 5", and for a misspelled word the one that was meant. */
static void add_found(const struct amp_schema_document *d, uint32_t tok, const char *const *words,
                      struct amp_buf *out)
{
    const struct amp_tok *k = &d->tape.tok[tok];
    struct amp_span found = amp_tok_source(&d->tape, tok);
    if (k->type == AMP_JSON_OBJECT || k->type == AMP_JSON_ARRAY)
        found = amp_span_str(k->type == AMP_JSON_ARRAY ? "an array" : "an object");
    amp_buf_fmt(out, NULL, "; found %.*s%s", (int)cut_text(found, FOUND_MOST).n, found.p,
                found.n > FOUND_MOST ? "..." : "");
    struct amp_nearest near;
    amp_nearest_init(&near, amp_tok_raw(&d->tape, tok));
    for (; words && *words && k->type == AMP_JSON_STRING; words++)
        amp_nearest_try(&near, amp_span_str(*words));
    if (near.word[0])
        amp_buf_fmt(out, NULL, "; did you mean `%s`?", near.word);
}

static int fail_at(struct amp_compiler *c, const struct amp_schema_document *d, uint32_t tok,
                   const char *code, const char *what, bool found, const char *const *words)
{
    AMP_BUF struct amp_buf at = {0}, text = {0};
    amp_buf_init(&at, 64 << 10);
    amp_buf_init(&text, sizeof c->err->what);
    add_place(c, d, d->tape.n ? (size_t)(amp_tok_source(&d->tape, tok).p - d->tape.text) : 0,
              &text);
    if (d->tape.n && amp_tape_path(&d->tape, tok, &at, NULL, NULL) < 0)
        amp_buf_reset(&at);
    struct amp_span pointer = amp_buf_span(&at);
    if (pointer.n > POINTER_MOST) { /* the end is more specific */
        pointer.p += pointer.n - POINTER_MOST;
        pointer.n = POINTER_MOST;
    }
    amp_buf_fmt(&text, NULL, "%s%.*s: %s", at.len > pointer.n ? "#..." : "#", (int)pointer.n,
                pointer.n ? pointer.p : "", what);
    if (found && d->tape.n)
        add_found(d, tok, words, &text);
    return amp_fail_text(c->err, AMP_DATAERR, code, "%.*s", (int)text.len,
                         text.data ? text.data : what);
}

int amp_schema_wrong(struct amp_compiler *c, const struct amp_schema_document *d, uint32_t tok,
                     const char *code, const char *what)
{
    return fail_at(c, d, tok, code, what, false, NULL);
}

int amp_schema_wrong_value(struct amp_compiler *c, const struct amp_schema_document *d,
                           uint32_t tok, const char *what, const char *const *words)
{
    return fail_at(c, d, tok, AMP_CODE(invalid_schema), what, true, words);
}

void amp_schema_remark(struct amp_compiler *c, const struct amp_schema_document *d, uint32_t key,
                       enum amp_draft draft)
{
    struct amp_span name = amp_tok_raw(&d->tape, key);
    enum amp_draft other = draft == AMP_DRAFT_7 ? AMP_DRAFT_2020 : AMP_DRAFT_7;
    bool of_other = amp_keyword_find(&d->tape, key, other) != NULL;
    struct amp_nearest near;
    const char *meant = amp_keyword_nearest(name, &near);
    if ((!of_other && !meant[0]) || c->remarks == REMARKS_MOST)
        return;
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, 1024);
    int shown = (int)cut_text(name, FOUND_MOST).n;
    add_place(c, d, (size_t)(amp_tok_source(&d->tape, key).p - d->tape.text), &text);
    if (of_other)
        amp_buf_fmt(&text, NULL, "%.*s is no keyword of draft %s", shown, name.p,
                    draft == AMP_DRAFT_7 ? "7" : "2020-12");
    else
        amp_buf_fmt(&text, NULL, "%.*s is no keyword; did you mean `%s`?", shown, name.p, meant);
    c->remarks++;
    c->opt->remark(c->opt->remark_ctx, text.data ? text.data : "");
}

int amp_schema_not_json(struct amp_compiler *c, const struct amp_schema_document *d,
                        const struct amp_json_fault *fault)
{
    if (amp_json_fault_is_memory(fault))
        return amp_fail_memory(c->err);
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, sizeof c->err->what);
    add_place(c, d, fault->offset, &text);
    bool no_json = amp_code_is(fault->code, invalid_json) || amp_code_is(fault->code, invalid_utf8);
    return amp_fail(c->err, AMP_DATAERR, invalid_schema, "%.*s%s%s", (int)text.len,
                    text.data ? text.data : "", no_json ? "not JSON: " : "", fault->what);
}
