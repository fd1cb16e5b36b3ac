/*
 * A glance at a commit that another process made: what the tail needs of it, by going through the
 * members in the order in which amp_frame_encode writes them, without a parser. The frame's
 * checksum was right, so this is our own writing; whatever looks otherwise is left to
 * amp_frame_decode.
 */
#include "store/log/frame.h"

#include <string.h>

#include "json/bytes.h"

struct eye {
    const char *p, *end;
    bool ok;
};

#define SEE(e, lit) see(e, lit, sizeof(lit) - 1)

/* Whether the literal stands next; if so it is passed. */
static inline bool see(struct eye *e, const char *lit, size_t n)
{
    if ((size_t)(e->end - e->p) < n || memcmp(e->p, lit, n) != 0)
        return false;
    e->p += n;
    return true;
}

static inline void must(struct eye *e, bool seen)
{
    e->ok = e->ok && seen;
}

/* What stands up to the next quote; without escapes. */
static struct amp_span word(struct eye *e)
{
    const char *quote = memchr(e->p, '"', (size_t)(e->end - e->p));
    struct amp_span v = {e->p, quote ? (size_t)(quote - e->p) : 0};
    if (!quote || (v.n && memchr(v.p, '\\', v.n))) {
        e->ok = false;
        return (struct amp_span){0};
    }
    e->p = quote + 1;
    return v;
}

static uint64_t digits(struct eye *e)
{
    uint64_t v = 0;
    const char *start = e->p;
    while (e->p < e->end && (unsigned)(*e->p - '0') < 10 && e->p - start < 19)
        v = v * 10 + (unsigned)(*e->p++ - '0');
    must(e, e->p > start);
    return v;
}

/* Behind a string of which the opening quote was passed. */
static void skip_string(struct eye *e)
{
    const unsigned char *p = (const unsigned char *)e->p, *end = (const unsigned char *)e->end;
    for (;;) {
        p = amp_skip_plain(p, end);
        if (p >= end || *p == '"')
            break;
        p += *p == '\\' && end - p > 1 ? 2 : 1;
    }
    must(e, p < end);
    e->p = p < end ? (const char *)p + 1 : e->end;
}

/* Behind an object of which the opening brace stands next. */
static void skip_object(struct eye *e)
{
    unsigned depth = 0;
    while (e->ok && e->p < e->end) {
        char c = *e->p++;
        if (c == '"')
            skip_string(e);
        else if (c == '{')
            depth++;
        else if (c == '}' && --depth == 0)
            return;
    }
    e->ok = false;
}

static void look_at_state(struct eye *e, struct amp_span frame, struct amp_frame *f)
{
    const char *start = e->p;
    must(e, *start == '{');
    /* An object that ends where the frame does is the last member: nothing behind it is one. */
    if (frame.p[frame.n - 3] == '}')
        e->p = frame.p + frame.n - 2;
    else
        skip_object(e);
    f->state = (struct amp_span){start, (size_t)(e->p - start)};
    f->state_off = (uint32_t)(start - frame.p);
}

static void look_at_lines(struct eye *e, struct amp_frame_arena *a, struct amp_frame *f)
{
    uint32_t n = 0;
    do {
        if (!amp_frame_arena_out(a, n + 1)) {
            e->ok = false;
            return;
        }
        struct amp_frame_out *o = &a->out[n];
        *o = (struct amp_frame_out){.n = f->head.n, .i = n};
        must(e, SEE(e, "{\"id\":\""));
        o->id = word(e);
        must(e, SEE(e, ",\"line\":\""));
        skip_string(e);
        o->ack = SEE(e, ",\"ack\":true}");
        must(e, o->ack || SEE(e, ",\"ack\":false}"));
        n++;
    } while (e->ok && SEE(e, ","));
    must(e, SEE(e, "]"));
    f->out = a->out;
    f->n_out = n;
}

static void look_at_input(struct eye *e, struct amp_frame *f)
{
    f->in_consumer = word(e);
    must(e, SEE(e, ",\"id\":\""));
    f->in_id = word(e);
    must(e, SEE(e, ",\"sum\":\""));
    f->in_sum = word(e);
    must(e, SEE(e, "}"));
}

/* Behind `,"key":"`, which stands near the start; NULL: there is none. */
static const char *key_of(struct amp_span frame)
{
    const char *key = memmem(frame.p, frame.n < 200 ? frame.n : 200, ",\"key\":\"", 8);
    return key ? key + 8 : NULL;
}

bool amp_frame_is_of(struct amp_span frame, struct amp_span key)
{
    const char *p = key_of(frame);
    return p && (size_t)(frame.p + frame.n - p) > key.n && memcmp(p, key.p, key.n) == 0 &&
           p[key.n] == '"';
}

bool amp_frame_glance(struct amp_span frame, const struct amp_frame_head *head,
                      struct amp_frame_arena *a, struct amp_frame *out)
{
    struct amp_frame f = {.head = *head};
    if (head->log != AMP_FRAME_none || frame.n < AMP_FRAME_HEAD + 8)
        return false;
    const char *key = key_of(frame);
    struct eye e = {key ? key : frame.p, frame.p + frame.n - 2, key != NULL};
    f.key = word(&e);
    must(&e, SEE(&e, ",\"was\":"));
    f.was = digits(&e);
    must(&e, SEE(&e, ",\"rev\":"));
    f.rev = digits(&e);
    if (SEE(&e, ",\"from\":\""))
        f.from = word(&e);
    if (SEE(&e, ",\"event\":\""))
        f.event = word(&e);
    if (SEE(&e, ",\"to\":\""))
        f.to = word(&e);
    must(&e, SEE(&e, ",\"at\":\""));
    word(&e);
    if (SEE(&e, ",\"actor\":\""))
        f.actor = word(&e);
    if (SEE(&e, ",\"in\":{\"c\":\""))
        look_at_input(&e, &f);
    if (SEE(&e, ",\"gone\":true"))
        f.gone = true;
    else if (e.ok && SEE(&e, ",\"state\":") && e.p < e.end)
        look_at_state(&e, frame, &f);
    else
        return false;
    if (e.ok && SEE(&e, ",\"due\":"))
        f.due = (int64_t)digits(&e);
    if (e.ok && SEE(&e, ",\"out\":["))
        look_at_lines(&e, a, &f);
    if (!e.ok || e.p != e.end)
        return false;
    *out = f;
    return true;
}
