/*
 * The search for messages in text. The window has the text that may still be needed: the start of
 * the line, and from a '{' on the candidate. If a candidate fails, the search continues after its
 * '{': complete objects inside it may be messages, and a part that was read as a string may be
 * text. Objects that were open when the candidate failed would fail at the same byte and are not
 * tried again, so that each byte is read only a few times.
 */
#include <stdlib.h>
#include <string.h>

#include "message/protocol/extract/extract.h"
#include "message/protocol/spec.h"

enum {
    NESTING_MOST = 6, /* strings inside strings, each a JSON text that is escaped once more */
    BEGINNING = 200,  /* bytes that are reported of an object that is too long */
    KEEP = 256,       /* bytes kept before the candidate, for a prefix */
};

struct amp_extract {
    amp_found_fn fn;
    void *ctx;
    enum amp_protocol only;
    struct amp_json_limits limits;
    struct amp_buf window, clean, decoded;
    uint64_t base; /* offset of the window's first byte */
    size_t pos;    /* how far the window has been read */
    struct amp_scan_place place;
    bool open, skipping; /* a candidate is open; it is too long */
    bool escaped;        /* the candidate is escaped JSON in text that is not JSON: msg="{\"…" */
    uint64_t unescaped;  /* the offset up to which escaped candidates were tried */
    size_t start;        /* of the candidate */
    struct amp_walk walk;
    uint64_t *dead; /* offsets of '{' that cannot begin an object; ascending */
    size_t n_dead, cap_dead;
    struct amp_tape tape;
    struct amp_extract *inner; /* for strings */
    unsigned nesting;
    struct amp_found outer; /* of an inner search: the place of the string */
};

struct amp_extract *amp_extract_new(const struct amp_json_limits *limits, enum amp_protocol only,
                                    amp_found_fn fn, void *ctx, struct amp_error *err)
{
    struct amp_extract *x = calloc(1, sizeof *x);
    if (!x) {
        amp_fail_memory(err);
        return NULL;
    }
    x->fn = fn;
    x->ctx = ctx;
    x->only = only;
    x->limits = limits ? *limits : amp_json_limits_default;
    if (amp_walk_init(&x->walk, x->limits.max_depth, err) < 0) {
        free(x);
        return NULL;
    }
    size_t most = (size_t)x->limits.max_bytes;
    amp_buf_init(&x->window, 2 * most + 1024 * 1024);
    amp_buf_init(&x->clean, most + 1024);
    amp_buf_init(&x->decoded, most + 1024);
    amp_tape_init(&x->tape, &x->limits);
    amp_place_init(&x->place);
    return x;
}

void amp_extract_free(struct amp_extract *x)
{
    if (!x)
        return;
    amp_extract_free(x->inner);
    amp_walk_release(&x->walk);
    amp_buf_release(&x->window);
    amp_buf_release(&x->clean);
    amp_buf_release(&x->decoded);
    amp_tape_release(&x->tape);
    free(x->dead);
    free(x);
}

/* ---- reports */

static int found_report(struct amp_extract *x, struct amp_span text, struct amp_found *at,
                        struct amp_error *err)
{
    if (x->nesting > 0) {
        bool too_long = at->too_long;
        *at = x->outer;
        at->too_long = too_long;
    }
    return x->fn(x->ctx, text, at, err);
}

static int search_string(struct amp_extract *x, uint32_t tok, const struct amp_found *at,
                         struct amp_error *err)
{
    struct amp_span raw = amp_tok_raw(&x->tape, tok), text;
    bool escaped = (x->tape.tok[tok].flags & AMP_TOK_ESCAPED) != 0;
    if (x->nesting == NESTING_MOST || raw.n < 2 || (!escaped && !memchr(raw.p, '{', raw.n)))
        return 0;
    amp_buf_reset(&x->decoded);
    if (amp_tok_text(&x->tape, tok, &x->decoded, &text, err) < 0)
        return -1;
    if (!memchr(text.p, '{', text.n))
        return 0;
    if (!x->inner) {
        x->inner = amp_extract_new(&x->limits, x->only, x->fn, x->ctx, err);
        if (!x->inner)
            return -1;
        x->inner->nesting = x->nesting + 1;
    }
    x->inner->outer = x->nesting > 0 ? x->outer : *at;
    x->inner->outer.in = AMP_FOUND_STRING;
    int rc = amp_extract_feed(x->inner, text, err);
    return rc ? rc : amp_extract_end(x->inner, err);
}

/* The place of a part of the object; the object's own if bytes were removed from it. */
static struct amp_found part_of(const struct amp_found *whole, const struct amp_extract *x,
                                struct amp_span raw, uint32_t tok)
{
    struct amp_found at = *whole;
    if (x->clean.len == raw.n) {
        at.offset += x->tape.tok[tok].off;
        at.column += x->tape.tok[tok].off;
    }
    at.in = AMP_FOUND_OBJECT;
    return at;
}

/* Searches an object that is not a message: its members and strings may be messages. */
static int search_inside(struct amp_extract *x, struct amp_span raw, const struct amp_found *at,
                         struct amp_error *err)
{
    for (uint32_t i = 1; i < x->tape.n;) {
        const struct amp_tok *k = &x->tape.tok[i];
        int rc = 0;
        struct amp_found part = part_of(at, x, raw, i);
        if (k->type == AMP_JSON_OBJECT && amp_claim_object(&x->tape, i, x->only)) {
            rc = found_report(x, amp_tok_source(&x->tape, i), &part, err);
            i = k->next;
        } else {
            if (k->type == AMP_JSON_STRING && !(k->flags & AMP_TOK_KEY))
                rc = search_string(x, i, &part, err);
            i++;
        }
        if (rc)
            return rc;
    }
    return 0;
}

/* Whether the object has a message of a protocol without recipients, beside a recipient. */
static bool is_addressed(const struct amp_extract *x)
{
    const struct amp_tape *t = &x->tape;
    uint32_t msg = amp_tape_get(t, 0, AMP_SPAN("msg"));
    if (msg == AMP_TOK_NONE || t->tok[msg].type != AMP_JSON_OBJECT || !amp_object_has(t, 0, "to"))
        return false;
    for (enum amp_protocol p = AMP_PROTO_NONE + 1; p < AMP_PROTO_COUNT; p++)
        if ((x->only == AMP_PROTO_NONE || x->only == p) && amp_spec_of(p)->outer_to &&
            amp_claim_object(t, msg, p))
            return true;
    return false;
}

/* Whether the object is a signed line. */
static bool is_signed(const struct amp_extract *x)
{
    const struct amp_tape *t = &x->tape;
    uint32_t sig = amp_object_get(t, 0, "sig", AMP_JSON_OBJECT);
    uint32_t msg = amp_tape_get(t, 0, AMP_SPAN("msg"));
    return sig != AMP_TOK_NONE && msg != AMP_TOK_NONE && amp_object_has(t, sig, "value") &&
           (t->tok[msg].type != AMP_JSON_OBJECT || amp_claim_object(t, msg, x->only));
}

/* Whether a protocol's prefix is before the candidate. *alone: nothing is before the prefix on the
 * line. */
static bool is_prefixed(const struct amp_extract *x, bool *alone)
{
    for (enum amp_protocol p = AMP_PROTO_NONE + 1; p < AMP_PROTO_COUNT; p++) {
        const char *word = amp_spec_of(p)->prefix;
        size_t n = word ? strlen(word) : 0;
        if (n == 0 || x->start < n || memcmp(x->window.data + x->start - n, word, n) != 0)
            continue;
        *alone = x->start == n || x->window.data[x->start - n - 1] == '\n';
        return true;
    }
    return false;
}

/* The place of the candidate. Returns whether a protocol's prefix is before it. */
static bool candidate_place(const struct amp_extract *x, struct amp_found *at)
{
    bool alone = false, prefixed = is_prefixed(x, &alone);
    *at = amp_place_found(&x->place, x->base + x->start);
    if (alone && at->in == AMP_FOUND_PROSE)
        at->in = AMP_FOUND_LINE;
    return prefixed;
}

/* raw: an object that is complete. */
static int take_object(struct amp_extract *x, struct amp_span raw, struct amp_error *err)
{
    struct amp_json_fault fault;
    struct amp_found at;
    bool prefixed = candidate_place(x, &at);
    amp_buf_reset(&x->clean);
    if (amp_walk_clean(&x->walk, raw, &x->clean, err) < 0)
        return -1;
    struct amp_span text = amp_buf_span(&x->clean);
    if (amp_tape_scan(&x->tape, text.p, text.n, &fault) < 0)
        return prefixed || amp_claim_text(text, x->only) ? found_report(x, text, &at, err) : 0;
    if (amp_claim_object(&x->tape, 0, x->only) || is_addressed(x) || is_signed(x))
        return found_report(x, text, &at, err);
    return search_inside(x, raw, &at, err);
}

/* raw: a candidate up to the byte that is not JSON, or to the end of the text. */
static int take_broken(struct amp_extract *x, struct amp_span raw, struct amp_error *err)
{
    struct amp_found at;
    bool prefixed = candidate_place(x, &at);
    return prefixed || amp_claim_text(raw, x->only) ? found_report(x, raw, &at, err) : 0;
}

/* raw: escaped text between quotes; it is searched as a string. */
static int take_escaped(struct amp_extract *x, struct amp_span raw, struct amp_error *err)
{
    struct amp_json_fault fault;
    struct amp_found at;
    candidate_place(x, &at);
    amp_buf_reset(&x->clean);
    if (amp_buf_str(&x->clean, "\"", err) < 0 || amp_buf_add(&x->clean, raw.p, raw.n, err) < 0 ||
        amp_buf_str(&x->clean, "\"", err) < 0)
        return -1;
    if (amp_tape_scan(&x->tape, x->clean.data, x->clean.len, &fault) < 0)
        return 0;
    return search_string(x, 0, &at, err);
}

/* ---- candidates */

static bool is_dead(struct amp_extract *x, uint64_t offset)
{
    size_t i = 0;
    while (i < x->n_dead && x->dead[i] < offset)
        i++;
    bool found = i < x->n_dead && x->dead[i] == offset;
    if (i > 0) {
        x->n_dead -= i;
        memmove(x->dead, x->dead + i, x->n_dead * sizeof *x->dead);
    }
    return found;
}

/* Marks every object that is open as failed, with the candidate. */
static int objects_fail(struct amp_extract *x, struct amp_error *err)
{
    if (x->n_dead + x->walk.depth > x->cap_dead) {
        size_t cap = x->n_dead + x->walk.depth + 64;
        uint64_t *more = realloc(x->dead, cap * sizeof *more);
        if (!more)
            return amp_fail_memory(err);
        x->dead = more;
        x->cap_dead = cap;
    }
    for (uint32_t d = 0; d < x->walk.depth; d++) {
        uint64_t offset = x->base + x->walk.level[d].at;
        size_t i = x->n_dead;
        if (x->walk.level[d].bracket != '{')
            continue;
        while (i > 0 && x->dead[i - 1] > offset)
            i--;
        memmove(x->dead + i + 1, x->dead + i, (x->n_dead - i) * sizeof *x->dead);
        x->dead[i] = offset;
        x->n_dead++;
    }
    return 0;
}

static void candidate_begin(struct amp_extract *x)
{
    struct amp_walk *w = &x->walk;
    const char *text = x->window.data;
    x->open = true;
    x->start = x->pos;
    amp_walk_begin(w, x->pos++);
    w->n_prefix = 0;
    if (x->place.clean || x->place.line_start < x->base)
        return;
    size_t from = (size_t)(x->place.line_start - x->base), n = x->start - from;
    bool marked = false; /* blanks and a number alone may also be JSON */
    for (size_t i = from; i < x->start && !marked; i++)
        marked = text[i] != ' ' && (text[i] < '0' || text[i] > '9');
    if (marked && n <= AMP_PREFIX_MOST) {
        memcpy(w->prefix, text + from, n);
        w->n_prefix = (unsigned)n;
    }
}

/* The candidate is complete: it ends before pos. */
static int candidate_done(struct amp_extract *x, struct amp_error *err)
{
    struct amp_span raw = {x->window.data + x->start, x->pos - x->start};
    x->open = false;
    int rc = take_object(x, raw, err);
    amp_place_skip(&x->place, raw, x->base + x->start);
    return rc;
}

static int report_too_long(struct amp_extract *x, struct amp_error *err)
{
    struct amp_found at;
    candidate_place(x, &at);
    at.too_long = true;
    return found_report(x, (struct amp_span){x->window.data + x->start, BEGINNING}, &at, err);
}

/* Whether the candidate failed on a backslash after its '{'. */
static bool looks_escaped(const struct amp_extract *x)
{
    const char *text = x->window.data;
    size_t i = x->start + 1;
    while (i < x->pos && (text[i] == ' ' || text[i] == '\t'))
        i++;
    return i == x->pos && i < x->window.len && text[i] == '\\' &&
           x->base + x->start >= x->unescaped;
}

/* Continues after the '{' of a candidate that failed. */
static void search_resume(struct amp_extract *x)
{
    x->pos = x->start;
    amp_place_pass(&x->place, '{', x->base + x->pos++);
}

/* Reads on to the quote or line feed that ends the escaped text, or to the end of the text. */
static int escaped_step(struct amp_extract *x, bool at_end, struct amp_error *err)
{
    const char *text = x->window.data;
    bool ended = false;
    while (x->pos < x->window.len && !ended) {
        char c = text[x->pos];
        if (c == '\\' && x->pos + 1 == x->window.len && !at_end)
            return 0;
        ended = c == '"' || c == '\n' || x->pos - x->start > x->limits.max_bytes;
        x->pos += ended ? 0 : c == '\\' && x->pos + 1 < x->window.len ? 2 : 1;
    }
    if (!ended && !at_end)
        return 0;
    x->open = x->escaped = false;
    x->unescaped = x->base + x->pos;
    struct amp_span raw = {text + x->start, x->pos - x->start};
    int rc = raw.n > x->limits.max_bytes ? report_too_long(x, err) : take_escaped(x, raw, err);
    search_resume(x);
    return rc;
}

/* The candidate fails on the byte at pos, or at the end of the text. */
static int candidate_fail(struct amp_extract *x, struct amp_error *err)
{
    size_t end = x->pos < x->window.len ? x->pos + 1 : x->pos;
    struct amp_span raw = {x->window.data + x->start, end - x->start};
    x->open = x->escaped = looks_escaped(x);
    if (x->escaped)
        return 0;
    int rc = take_broken(x, raw, err);
    if (rc == 0)
        rc = objects_fail(x, err);
    search_resume(x);
    return rc;
}

static int candidate_step(struct amp_extract *x, struct amp_error *err)
{
    if (x->escaped)
        return escaped_step(x, false, err);
    size_t from = x->pos;
    int rc = 0;
    enum amp_walk_result got = amp_walk_on(&x->walk, x->window.data, x->window.len, &x->pos);
    if (!x->skipping && x->pos - x->start > x->limits.max_bytes) {
        x->skipping = true;
        x->walk.n_prefix = 0;
        rc = report_too_long(x, err);
        from = x->start;
    }
    if (x->skipping) {
        struct amp_span part = {x->window.data + from, x->pos - from};
        amp_place_skip(&x->place, part, x->base + from);
        if (got != AMP_WALK_MORE)
            x->open = x->skipping = false;
        return rc;
    }
    if (got == AMP_WALK_DONE)
        return candidate_done(x, err);
    return got == AMP_WALK_FAIL ? candidate_fail(x, err) : 0;
}

static bool is_mark(char c)
{
    return c == '\n' || c == '{' || c == 0x1b;
}

/* Reads ordinary text up to the next candidate or the end of the window. */
static void text_search(struct amp_extract *x)
{
    const char *text = x->window.data;
    for (; x->pos < x->window.len; x->pos++) {
        if (amp_place_is_dull(&x->place))
            while (x->pos < x->window.len && !is_mark(text[x->pos]))
                x->pos++;
        if (x->pos == x->window.len)
            return;
        uint64_t offset = x->base + x->pos;
        if (text[x->pos] == '{' && x->place.ansi == 0 && !is_dead(x, offset)) {
            candidate_begin(x);
            return;
        }
        amp_place_pass(&x->place, text[x->pos], offset);
    }
}

static int window_search(struct amp_extract *x, struct amp_error *err)
{
    while (x->pos < x->window.len) {
        size_t was = x->pos;
        if (!x->open) {
            text_search(x);
            continue;
        }
        int rc = candidate_step(x, err);
        if (rc)
            return rc;
        if (x->open && x->pos == was)
            break; /* more text is needed */
    }
    return 0;
}

/* Removes text that is no longer needed from the window. */
static void window_drop(struct amp_extract *x)
{
    size_t need = x->open && !x->skipping ? x->start : x->pos;
    size_t keep = need > KEEP ? need - KEEP : 0; /* for the prefix of the line */
    if (keep < x->window.cap / 2 && keep < 64 * 1024 && x->window.len - keep > keep)
        return;
    amp_buf_drop(&x->window, keep);
    x->base += keep;
    x->pos -= keep;
    if (x->open) {
        x->start -= x->skipping ? 0 : keep;
        for (uint32_t d = 0; d < x->walk.depth; d++)
            x->walk.level[d].at -= keep;
    }
}

int amp_extract_feed(struct amp_extract *x, struct amp_span part, struct amp_error *err)
{
    while (part.n > 0) {
        size_t n = part.n < 64 * 1024 ? part.n : 64 * 1024;
        if (amp_buf_add(&x->window, part.p, n, err) < 0)
            return -1;
        part.p += n;
        part.n -= n;
        int rc = window_search(x, err);
        if (rc)
            return rc;
        window_drop(x);
    }
    return 0;
}

int amp_extract_end(struct amp_extract *x, struct amp_error *err)
{
    int rc = 0;
    while (rc == 0 && x->open) {
        if (!x->escaped)
            x->pos = x->window.len;
        if (x->skipping)
            x->open = x->skipping = false;
        else
            rc = x->escaped ? escaped_step(x, true, err) : candidate_fail(x, err);
        if (rc == 0)
            rc = window_search(x, err);
    }
    amp_buf_reset(&x->window);
    amp_place_init(&x->place);
    x->base = 0;
    x->pos = 0;
    x->n_dead = 0;
    x->unescaped = 0;
    return rc;
}
