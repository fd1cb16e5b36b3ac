/* Encodes frames. Nearly all members of nearly all frames are texts without escapes, which are
 * copied one after another; the JSON writer writes the rest. */
#include "message/store/log/frame.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <amp/base/clock.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "message/store/log/chain.h"
#include "json/bytes.h"

static void put_hex(char *p, unsigned n, uint64_t v)
{
    while (n--) {
        p[n] = "0123456789abcdef"[v & 15];
        v >>= 4;
    }
}

static void encode_out(struct amp_jw *w, const struct amp_frame *f)
{
    amp_jw_member_open(w, "out", '[');
    for (uint32_t i = 0; i < f->n_out; i++) {
        const struct amp_frame_out *o = &f->out[i];
        amp_jw_open(w, '{');
        amp_jw_member_str(w, "id", o->id);
        amp_jw_member_str(w, o->blob.n ? "blob" : "line", o->blob.n ? o->blob : o->line);
        amp_jw_member_bool(w, "ack", o->ack);
        if (o->role)
            amp_jw_member_text(w, "role", amp_frame_role_names[o->role]);
        if (f->head.log == AMP_FRAME_stand) {
            amp_jw_member_str(w, "c", o->consumer);
            amp_jw_member_uint(w, "n", o->n);
            amp_jw_member_int(w, "i", o->i);
        }
        amp_jw_close(w, '}');
    }
    amp_jw_close(w, ']');
}

/* The usual members are copied into memory that was reserved for all of them. */
#define LIT(b, lit) bytes_put(b, lit, sizeof(lit) - 1)

static inline void bytes_put(struct amp_buf *b, const char *p, size_t n)
{
    memcpy(b->data + b->len, p, n);
    b->len += n;
}

static void put_text(struct amp_buf *b, struct amp_span v)
{
    const unsigned char *p = (const unsigned char *)(v.n ? v.p : "");
    LIT(b, "\"");
    if (amp_skip_shown(p, p + v.n) == p + v.n) {
        bytes_put(b, (const char *)p, v.n);
        LIT(b, "\"");
        return;
    }
    struct amp_jw w;
    b->len--;
    amp_jw_init(&w, b);
    amp_jw_str(&w, v);
}

static void put_uint(struct amp_buf *b, uint64_t v)
{
    char text[20];
    size_t i = sizeof text;
    if (v < 10) { /* most numbers */
        b->data[b->len++] = (char)('0' + v);
        return;
    }
    do
        text[--i] = (char)('0' + v % 10);
    while (v /= 10);
    bytes_put(b, text + i, sizeof text - i);
}

static void put_int(struct amp_buf *b, int64_t v)
{
    if (v < 0)
        LIT(b, "-");
    put_uint(b, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

/* A member with a literal name, left out if it is empty or 0. */
#define PUT_STR(b, name, v)                                                                        \
    do {                                                                                           \
        if ((v).n) {                                                                               \
            LIT(b, ",\"" name "\":");                                                              \
            put_text(b, v);                                                                        \
        }                                                                                          \
    } while (0)

#define PUT_INT(b, name, v)                                                                        \
    do {                                                                                           \
        if (v) {                                                                                   \
            LIT(b, ",\"" name "\":");                                                              \
            put_int(b, v);                                                                         \
        }                                                                                          \
    } while (0)

/* An upper bound of the frame's size without its lists; 0: it is too large in any case. */
static size_t size_bound(const struct amp_frame *f)
{
    size_t text = f->key.n + f->full.n + f->from.n + f->event.n + f->to.n + f->actor.n +
                  f->acked.n + f->note.n + f->in_consumer.n + f->in_id.n + f->in_sum.n +
                  f->state_blob.n;
    if (text + f->state.n >= AMP_FRAME_MAX)
        return 0;
    return 672 + 6 * text + f->state.n; /* six: \u00XX */
}

static void encode_head(struct amp_buf *b, struct amp_frame *f, size_t start)
{
    char prev[16];
    put_hex(prev, 16, f->head.prev);
    LIT(b, "{\"v2\":\"000000000000000000000000\",\"n\":");
    put_uint(b, f->head.n);
    LIT(b, ",\"p\":\"");
    bytes_put(b, prev, 16);
    LIT(b, "\",\"s\":");
    put_uint(b, f->head.s);
    LIT(b, ",\"gen\":");
    put_uint(b, f->head.gen);
    PUT_INT(b, "turn", f->head.turn);
    LIT(b, ",\"end\":1");
    f->end_off = (uint32_t)(b->len - start) - 1;
    if (f->head.log != AMP_FRAME_none)
        PUT_STR(b, "log", amp_span_str(amp_frame_log_names[f->head.log]));
}

static void encode_key(struct amp_buf *b, const struct amp_frame *f)
{
    PUT_STR(b, "key", f->key);
    PUT_STR(b, "full", f->full);
    LIT(b, ",\"was\":");
    put_uint(b, f->was);
    LIT(b, ",\"rev\":");
    put_uint(b, f->rev);
    PUT_STR(b, "from", f->from);
    PUT_STR(b, "event", f->event);
    PUT_STR(b, "to", f->to);
}

static void encode_rest(struct amp_buf *b, struct amp_frame *f, size_t start)
{
    char at[AMP_TIME_MAX];
    amp_time_format(f->at, at);
    PUT_STR(b, "at", amp_span_str(at));
    PUT_STR(b, "actor", f->actor);
    PUT_STR(b, "acked", f->acked);
    PUT_STR(b, "note", f->note);
    if (f->in_id.n) {
        LIT(b, ",\"in\":{\"c\":");
        put_text(b, f->in_consumer);
        LIT(b, ",\"id\":");
        put_text(b, f->in_id);
        LIT(b, ",\"sum\":");
        put_text(b, f->in_sum);
        LIT(b, "}");
    }
    f->state_off = 0;
    if (f->gone) {
        LIT(b, ",\"gone\":true");
    } else if (f->state_blob.n) {
        PUT_STR(b, "state_blob", f->state_blob);
    } else if (f->state.n) {
        LIT(b, ",\"state\":");
        f->state_off = (uint32_t)(b->len - start);
        bytes_put(b, f->state.p, f->state.n);
    }
    PUT_INT(b, "due", f->due);
    PUT_INT(b, "next", f->next);
    PUT_INT(b, "since", f->since);
}

/* Members that few frames have. */
static void encode_lists(struct amp_jw *w, const struct amp_frame *f)
{
    w->comma = true;
    if (f->n_out)
        encode_out(w, f);
    if (f->n_close) {
        amp_jw_member_open(w, "close", '[');
        for (uint32_t i = 0; i < f->n_close; i++) {
            amp_jw_open(w, '[');
            amp_jw_uint(w, f->close[i].n);
            amp_jw_uint(w, f->close[i].i);
            amp_jw_close(w, ']');
        }
        amp_jw_close(w, ']');
    }
    if (f->n_past) {
        amp_jw_member_open(w, f->forgets ? "forget" : "known", '[');
        for (uint32_t i = 0; i < f->n_past; i++) {
            amp_jw_open(w, '[');
            amp_jw_str(w, f->past[i].key);
            amp_jw_str(w, f->past[i].state);
            amp_jw_int(w, f->past[i].since);
            amp_jw_close(w, ']');
        }
        amp_jw_close(w, ']');
    }
}

/* The members of the chain, which come last, and the frame's end. */
static int encode_end(struct amp_buf *b, const struct amp_frame *f, const struct amp_chain *chain,
                      size_t start, struct amp_error *err)
{
    const size_t from = start + AMP_FRAME_HEAD;
    if (!chain)
        return amp_buf_add(b, "}\n", 2, err);
    if (f->head.log == AMP_FRAME_seal &&
        amp_chain_sign(chain, f->head.n, (struct amp_span){b->data + from, b->len - from}, b, err) <
            0)
        return -1;
    if (amp_buf_reserve(b, AMP_CHAIN_TAIL, err) < 0)
        return -1;
    LIT(b, ",\"m\":\"");
    memset(b->data + b->len, '0', AMP_CHAIN_HEX);
    b->len += AMP_CHAIN_HEX;
    LIT(b, "\"}\n");
    return 0;
}

uint64_t amp_frame_finish(char *p, uint32_t size, uint32_t end_off, bool ends,
                          const struct amp_chain *chain)
{
    p[end_off] = ends ? '1' : '0';
    if (chain) {
        char *m = p + size - AMP_CHAIN_TAIL;
        struct amp_span body = {p + AMP_FRAME_HEAD, (size_t)(m - p) - AMP_FRAME_HEAD};
        amp_chain_hash(chain, body, m + sizeof ",\"m\":\"" - 1);
    }
    uint64_t sum = XXH3_64bits(p + AMP_FRAME_HEAD, size - AMP_FRAME_HEAD - 1);
    put_hex(p + 15, 16, sum);
    return sum;
}

int amp_frame_compose(struct amp_frame *f, const struct amp_chain *chain, struct amp_buf *out,
                      struct amp_error *err)
{
    size_t start = out->len, most = size_bound(f);
    struct amp_jw w;
    if (most == 0)
        return amp_fail(err, AMP_NO, frame_too_large, "a commit is past %d bytes", AMP_FRAME_MAX);
    if (amp_buf_reserve(out, most, err) < 0)
        return -1;
    encode_head(out, f, start);
    if (f->key.n)
        encode_key(out, f);
    encode_rest(out, f, start);
    amp_jw_init(&w, out);
    encode_lists(&w, f);
    if (amp_jw_end(&w, err) < 0 || encode_end(out, f, chain, start, err) < 0) {
        out->len = start;
        return -1;
    }
    size_t size = out->len - start;
    if (size > AMP_FRAME_MAX) {
        out->len = start;
        return amp_fail(err, AMP_NO, frame_too_large, "a commit of %zu bytes is past %d", size,
                        AMP_FRAME_MAX);
    }
    f->head.size = (uint32_t)size;
    f->head.ends = true;
    put_hex(out->data + start + 7, 8, size - AMP_FRAME_HEAD - 1);
    return 0;
}

int amp_frame_encode(struct amp_frame *f, const struct amp_chain *chain, struct amp_buf *out,
                     struct amp_error *err)
{
    const size_t start = out->len;
    if (amp_frame_compose(f, chain, out, err) < 0)
        return -1;
    f->head.sum = amp_frame_finish(out->data + start, f->head.size, f->end_off, true, chain);
    return 0;
}
