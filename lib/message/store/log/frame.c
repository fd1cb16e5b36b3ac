/* Checks and decodes frames. */
#include "message/store/log/frame.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <amp/base/clock.h>

#include "base/codes.h"

const char *const amp_frame_log_names[] = {
#define X(name) #name,
    AMP_FRAME_LOGS(X)
#undef X
};

const char *const amp_frame_role_names[] = {
#define X(name) #name,
    AMP_ROLES(X)
#undef X
};

void amp_frame_arena_init(struct amp_frame_arena *a)
{
    *a = (struct amp_frame_arena){0};
    amp_tape_init(&a->tape, NULL);
    amp_buf_init(&a->text, 8 * AMP_FRAME_MAX);
}

void amp_frame_arena_release(struct amp_frame_arena *a)
{
    amp_tape_release(&a->tape);
    amp_buf_release(&a->text);
    free(a->out);
    free(a->close);
    free(a->past);
    *a = (struct amp_frame_arena){0};
}

uint64_t amp_store_hash(uint64_t key, struct amp_span a, struct amp_span b)
{
    uint64_t h = XXH3_64bits_withSeed(a.p, a.n, key);
    if (b.n)
        h = XXH3_64bits_withSeed(b.p, b.n, h ^ key);
    return h;
}

struct amp_span amp_frame_consumer(const struct amp_frame *f, uint32_t i)
{
    if (f->head.log == AMP_FRAME_stand)
        return f->out[i].consumer;
    return f->in_id.n ? f->in_consumer : f->actor;
}

static inline bool hex_read(const char *p, unsigned n, uint64_t *out)
{
    /* The value of a digit, and 16; 0: not a digit. */
    static const uint8_t digit[256] = {
        ['0'] = 16, ['1'] = 17, ['2'] = 18, ['3'] = 19, ['4'] = 20, ['5'] = 21,
        ['6'] = 22, ['7'] = 23, ['8'] = 24, ['9'] = 25, ['a'] = 26, ['b'] = 27,
        ['c'] = 28, ['d'] = 29, ['e'] = 30, ['f'] = 31,
    };
    unsigned all = 16;
    uint64_t v = 0;
#pragma GCC unroll 8
    for (unsigned i = 0; i < n; i++) {
        unsigned d = digit[(unsigned char)p[i]];
        all &= d;
        v = v << 4 | (d & 15);
    }
    *out = v;
    return all != 0;
}

/* Reads the first members, which have a fixed order. */
struct cursor {
    const char *p, *end;
    bool ok;
};

static bool literal_skip(struct cursor *c, const char *lit, size_t n)
{
    if (!c->ok || (size_t)(c->end - c->p) < n || memcmp(c->p, lit, n) != 0)
        return false;
    c->p += n;
    return true;
}

static void literal_expect(struct cursor *c, const char *lit, size_t n)
{
    c->ok = literal_skip(c, lit, n);
}

static uint64_t digits_read(struct cursor *c)
{
    uint64_t v = 0;
    const char *p = c->p;
    for (; c->ok && p < c->end && (unsigned)(*p - '0') < 10; p++) {
        if (v > (UINT64_MAX - 9) / 10) {
            c->ok = false;
            break;
        }
        v = v * 10 + (unsigned)(*p - '0');
    }
    if (p == c->p || p == c->end)
        c->ok = false;
    c->p = p;
    return v;
}

static const char lead[] = "{\"v2\":\"";
enum { LEAD = sizeof lead - 1, HEAD = LEAD + 8 + 16 + 1 }; /* HEAD: the bytes before the member n */

bool amp_frame_peek(const char *p, size_t n, struct amp_frame_head *out)
{
    struct amp_frame_head h = {0};
    uint64_t len;
    if (n < HEAD || memcmp(p, lead, LEAD) != 0 || p[HEAD - 1] != '"' ||
        !hex_read(p + LEAD, 8, &len) || !hex_read(p + LEAD + 8, 16, &h.sum) || len > AMP_FRAME_MAX)
        return false;
    h.size = (uint32_t)(len + HEAD) + 1;
    struct cursor c = {p + HEAD, p + n, true};
    literal_expect(&c, ",\"n\":", 5);
    h.n = digits_read(&c);
    literal_expect(&c, ",\"p\":\"", 6);
    if (!c.ok || c.end - c.p < 16 || !hex_read(c.p, 16, &h.prev))
        return false;
    c.p += 16;
    literal_expect(&c, "\",\"s\":", 6);
    h.s = digits_read(&c);
    literal_expect(&c, ",\"gen\":", 7);
    h.gen = digits_read(&c);
    if (!c.ok)
        return false;
    h.turn = literal_skip(&c, ",\"turn\":", 8) ? (uint32_t)digits_read(&c) : 0;
    /* Frames of earlier builds have no end. */
    h.ends = !literal_skip(&c, ",\"end\":", 7) || digits_read(&c) != 0;
    if (!c.ok)
        return false;
    literal_expect(&c, ",\"log\":\"", 8);
    for (unsigned i = 1; c.ok && i < sizeof amp_frame_log_names / sizeof(char *); i++) {
        size_t l = strlen(amp_frame_log_names[i]);
        if ((size_t)(c.end - c.p) > l && memcmp(c.p, amp_frame_log_names[i], l) == 0 &&
            c.p[l] == '"')
            h.log = (enum amp_frame_log)i;
    }
    *out = h;
    return true;
}

bool amp_frame_check(const char *p, size_t n, struct amp_frame_head *out)
{
    struct amp_frame_head h;
    if (!amp_frame_peek(p, n, &h) || h.size > n || h.size < HEAD + 2 || p[h.size - 1] != '\n' ||
        p[h.size - 2] != '}' || XXH3_64bits(p + HEAD, h.size - HEAD - 1) != h.sum)
        return false;
    *out = h;
    return true;
}

uint32_t amp_frame_format(const char *p, size_t n)
{
    uint32_t v = 0;
    size_t i = 3;
    if (n < 16 || memcmp(p, "{\"v", 3) != 0)
        return 0;
    while (i < 9 && p[i] >= '0' && p[i] <= '9')
        v = v * 10 + (uint32_t)(p[i++] - '0');
    return memcmp(p + i, "\":\"", 3) == 0 ? v : 0;
}

struct decoder {
    struct amp_frame_arena *a;
    struct amp_error *err;
    bool failed, no_memory;
};

static uint32_t member_find(struct decoder *d, uint32_t object, const char *key)
{
    return amp_tape_get(&d->a->tape, object, amp_span_str(key));
}

static struct amp_span member_text(struct decoder *d, uint32_t object, const char *key)
{
    struct amp_span v = {0};
    uint32_t t = member_find(d, object, key);
    if (t != AMP_TOK_NONE && (d->a->tape.tok[t].type != AMP_JSON_STRING ||
                              amp_tok_text(&d->a->tape, t, &d->a->text, &v, d->err) < 0))
        d->failed = true;
    return v;
}

static int64_t member_integer(struct decoder *d, uint32_t object, const char *key)
{
    int64_t v = 0;
    uint32_t t = member_find(d, object, key);
    if (t != AMP_TOK_NONE && !amp_tok_int(&d->a->tape, t, &v))
        d->failed = true;
    return v;
}

static bool member_truth(struct decoder *d, uint32_t object, const char *key)
{
    uint32_t t = member_find(d, object, key);
    return t != AMP_TOK_NONE && d->a->tape.tok[t].type == AMP_JSON_TRUE;
}

/* Opens a list: makes room for its elements in a reused array of *cap elements. Returns their
 * number and the first of them; 0: there are none, or d failed. */
static uint32_t list_open(struct decoder *d, const char *key, void *array, uint32_t *cap,
                          size_t size, uint32_t *first)
{
    const struct amp_tok *tok = d->a->tape.tok;
    uint32_t list = member_find(d, 0, key);
    void **a = array;
    if (list == AMP_TOK_NONE)
        return 0;
    uint32_t n = tok[list].count;
    if (tok[list].type == AMP_JSON_ARRAY && n > *cap) {
        void *p = realloc(*a, n * size);
        d->no_memory = !p;
        if (p) {
            *a = p;
            *cap = n;
        }
    }
    d->failed |= tok[list].type != AMP_JSON_ARRAY || n > *cap;
    *first = list + 1;
    return d->failed ? 0 : n;
}

static void decode_out(struct decoder *d, struct amp_frame *f)
{
    struct amp_frame_arena *a = d->a;
    uint32_t t, n = list_open(d, "out", &a->out, &a->cap_out, sizeof *a->out, &t);
    for (uint32_t i = 0; i < n; i++, t = a->tape.tok[t].next) {
        if (a->tape.tok[t].type != AMP_JSON_OBJECT) {
            d->failed = true;
            return;
        }
        a->out[i] = (struct amp_frame_out){
            .id = member_text(d, t, "id"),
            .line = member_text(d, t, "line"),
            .blob = member_text(d, t, "blob"),
            .consumer = member_text(d, t, "c"),
            .n = (uint64_t)member_integer(d, t, "n"),
            .i = (uint32_t)member_integer(d, t, "i"),
            .ack = member_truth(d, t, "ack"),
        };
        struct amp_span role = member_text(d, t, "role");
        while (role.n && !amp_span_is(role, amp_frame_role_names[a->out[i].role]))
            if (++a->out[i].role == AMP_ROLE_COUNT) {
                d->failed = true;
                return;
            }
        if (f->head.log != AMP_FRAME_stand) {
            a->out[i].n = f->head.n;
            a->out[i].i = i;
        }
    }
    f->out = a->out;
    f->n_out = n;
}

static void decode_close(struct decoder *d, struct amp_frame *f)
{
    struct amp_frame_arena *a = d->a;
    uint32_t t, n = list_open(d, "close", &a->close, &a->cap_close, sizeof *a->close, &t);
    for (uint32_t i = 0; i < n; i++, t = a->tape.tok[t].next) {
        int64_t fn, fi;
        if (a->tape.tok[t].type != AMP_JSON_ARRAY || a->tape.tok[t].count != 2 ||
            !amp_tok_int(&a->tape, t + 1, &fn) || !amp_tok_int(&a->tape, t + 2, &fi)) {
            d->failed = true;
            return;
        }
        a->close[i] = (struct amp_frame_ref){(uint64_t)fn, (uint32_t)fi};
    }
    f->close = a->close;
    f->n_close = n;
}

static void decode_past(struct decoder *d, const char *key, struct amp_frame *f)
{
    struct amp_frame_arena *a = d->a;
    uint32_t t, n = list_open(d, key, &a->past, &a->cap_past, sizeof *a->past, &t);
    for (uint32_t i = 0; i < n; i++, t = a->tape.tok[t].next) {
        struct amp_frame_past *p = &a->past[i];
        if (a->tape.tok[t].type != AMP_JSON_ARRAY || a->tape.tok[t].count != 3 ||
            a->tape.tok[t + 1].type != AMP_JSON_STRING ||
            a->tape.tok[t + 2].type != AMP_JSON_STRING ||
            amp_tok_text(&a->tape, t + 1, &a->text, &p->key, d->err) < 0 ||
            amp_tok_text(&a->tape, t + 2, &a->text, &p->state, d->err) < 0 ||
            !amp_tok_int(&a->tape, t + 3, &p->since)) {
            d->failed = true;
            return;
        }
    }
    if (n) {
        f->past = a->past;
        f->n_past = n;
    }
}

int amp_frame_decode(struct amp_span frame, const struct amp_frame_head *head,
                     struct amp_frame_arena *a, struct amp_frame *out, struct amp_error *err)
{
    struct amp_json_fault fault;
    struct decoder d = {a, err, false};
    struct amp_frame f = {.head = *head};
    amp_buf_reset(&a->text);
    /* Spans of the arena must not move while the frame is being read. */
    if (amp_buf_reserve(&a->text, frame.n, err) < 0)
        return -1;
    if (amp_tape_scan(&a->tape, frame.p, frame.n - 1, &fault) != 0)
        return amp_json_fault_is_memory(&fault)
                   ? amp_fail_memory(err)
                   : amp_fail(err, AMP_IOERR, log_damaged, "frame %llu is not JSON: %s",
                              (unsigned long long)head->n, fault.what);
    f.key = member_text(&d, 0, "key");
    f.full = member_text(&d, 0, "full");
    f.was = (uint64_t)member_integer(&d, 0, "was");
    f.rev = (uint64_t)member_integer(&d, 0, "rev");
    f.from = member_text(&d, 0, "from");
    f.event = member_text(&d, 0, "event");
    f.to = member_text(&d, 0, "to");
    f.actor = member_text(&d, 0, "actor");
    f.acked = member_text(&d, 0, "acked");
    f.note = member_text(&d, 0, "note");
    struct amp_span at = member_text(&d, 0, "at");
    if (at.n && !amp_time_parse(at, &f.at))
        d.failed = true;
    uint32_t in = member_find(&d, 0, "in");
    if (in != AMP_TOK_NONE) {
        f.in_consumer = member_text(&d, in, "c");
        f.in_id = member_text(&d, in, "id");
        f.in_sum = member_text(&d, in, "sum");
    }
    uint32_t state = member_find(&d, 0, "state");
    if (state != AMP_TOK_NONE) {
        f.state = amp_tok_source(&a->tape, state);
        f.state_off = (uint32_t)(f.state.p - frame.p);
    }
    f.state_blob = member_text(&d, 0, "state_blob");
    f.gone = member_truth(&d, 0, "gone");
    f.due = member_integer(&d, 0, "due");
    f.next = member_integer(&d, 0, "next");
    decode_out(&d, &f);
    decode_close(&d, &f);
    if (f.head.log == AMP_FRAME_stand) {
        f.since = member_integer(&d, 0, "since");
        decode_past(&d, "known", &f);
        f.forgets = !f.n_past;
        if (f.forgets)
            decode_past(&d, "forget", &f);
    }
    if (d.no_memory)
        return amp_fail_memory(err);
    if (d.failed)
        return amp_fail(err, AMP_IOERR, log_damaged, "frame %llu has a member of a wrong type",
                        (unsigned long long)head->n);
    *out = f;
    return 0;
}

struct amp_span amp_frame_key(struct amp_span frame)
{
    static const char before[] = ",\"key\":\"";
    const size_t n = sizeof before - 1;
    /* The key is near the start of a frame. */
    const char *p = memmem(frame.p, frame.n < 200 ? frame.n : 200, before, n);
    const char *end = p ? memchr(p + n, '"', (size_t)(frame.p + frame.n - p) - n) : NULL;

    return end ? (struct amp_span){p + n, (size_t)(end - p) - n} : (struct amp_span){"", 0};
}

bool amp_frame_is_of(struct amp_span frame, struct amp_span key)
{
    return amp_span_eq(amp_frame_key(frame), key);
}
