/* Chunks become messages, and batches become their members. */
#include "message/delivery/transfer/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/codes.h"
#include "message/delivery/transfer/transfer.h"
#include "message/protocol/compose/unit.h"
#include "json/text.h"

struct amp_units {
    struct amp_transfers all;
    struct amp_buf lines; /* that are ready, each with a NUL at its end; `at` is the next one */
    size_t at;
    bool assembled;              /* lines has a message from chunks, */
    struct amp_transfer_now now; /* of this transfer, */
    int lock;                    /* with a lock on its bytes; -1: none */
    const char *by;
    bool resumes;             /* messages may be left of a process that was killed */
    struct amp_buf piece, of; /* a chunk's bytes; the spans of a refusal */
};

static void lock_close(struct amp_units *u)
{
    if (u->lock >= 0)
        close(u->lock);
    u->lock = -1;
}

int amp_units_new(struct amp_store *s, const char *actor, const char *by, struct amp_units **out,
                  struct amp_error *err)
{
    struct amp_units *u = calloc(1, sizeof *u);
    if (!u)
        return amp_fail_memory(err);
    u->by = by;
    u->all = (struct amp_transfers){.store = s, .actor = actor};
    u->lock = -1;
    u->lines.max = u->piece.max = u->of.max = (size_t)128 << 20;
    *out = u;
    return 0;
}

void amp_units_free(struct amp_units *u)
{
    if (!u)
        return;
    amp_transfers_tidy(&u->all);
    amp_transfers_release(&u->all);
    lock_close(u);
    amp_transfer_now_release(&u->now);
    amp_buf_release(&u->lines);
    amp_buf_release(&u->piece);
    amp_buf_release(&u->of);
    free(u);
}

/* ---- refusals ---- */

static struct amp_span text_keep(struct amp_buf *b, struct amp_span s, struct amp_error *err)
{
    size_t at = b->len;
    return amp_buf_add(b, s.p, s.n, err) < 0 ? (struct amp_span){"", 0}
                                             : (struct amp_span){b->data + at, s.n};
}

/* The view of the message of a transfer, as far as its chunks tell. */
static void transfer_view(const struct amp_transfer *t, struct amp_view *v)
{
    static const struct amp_tape empty = {.text = ""};
    *v = (struct amp_view){.protocol = amp_protocol_find(t->protocol),
                           .tape = &empty,
                           .payload = AMP_TOK_NONE,
                           .type = {"", 0},
                           .id = t->ref,
                           .from = t->from,
                           .correlation = t->correlation,
                           .task = t->task};
}

static int refusal_fill(struct amp_units *u, const struct amp_transfer *t,
                        const struct amp_error *why, struct amp_unit_refusal *out,
                        struct amp_error *err)
{
    struct amp_transfer kept = *t;
    amp_buf_reset(&u->of);
    if (amp_buf_reserve(&u->of, t->ref.n + t->from.n + t->correlation.n + t->task.n + 1, err) < 0)
        return -1;
    kept.ref = text_keep(&u->of, t->ref, err);
    kept.from = text_keep(&u->of, t->from, err);
    kept.correlation = text_keep(&u->of, t->correlation, err);
    kept.task = text_keep(&u->of, t->task, err);
    out->why = *why;
    transfer_view(&kept, &out->of);
    return 0;
}

/* ---- steps of a transfer ---- */

/* Commits a step and carries out its effects, but for those on the caller's output. 1: the record
 * changed since. */
static int transfer_carry(struct amp_transfers *all, struct amp_transfer_now *n, uint8_t event,
                          uint32_t facts, int64_t now_ms, const struct amp_store_emit *emit,
                          uint32_t *effects, struct amp_error *err)
{
    struct amp_fsm_result r;
    if (amp_fsm_step(&amp_transfer_fsm, n->state, event, facts, &r, err) < 0)
        return -1;
    *effects = r.effects;
    if (r.to == n->state && r.effects == 0)
        return 0;
    /* A chunk that is kept, whose bytes are written already, and an end start the time again. */
    bool again = r.effects & AMP_TRANSFER_DO_KEEP || r.to != n->state;
    int64_t due_ms = again ? now_ms + amp_unit_limits.timeout_ms : n->due_ms;
    int rc = amp_transfer_save(all, n, event, r.to, due_ms, emit, err);
    if (rc != 0)
        return rc;
    n->state = r.to;
    n->due_ms = due_ms;
    if (r.effects & AMP_TRANSFER_DO_DROP)
        amp_transfer_drop(all, n);
    return 0;
}

/* The tool has the message that was handed to it. */
static int message_confirm(struct amp_units *u, int64_t now_ms, struct amp_error *err)
{
    uint32_t effects;
    if (!u->assembled)
        return 0;
    u->assembled = false;
    /* 1: a sweep dropped it. */
    int rc =
        transfer_carry(&u->all, &u->now, AMP_TRANSFER_EV_TAKEN, 0, now_ms, NULL, &effects, err);
    lock_close(u);
    return rc < 0 ? -1 : 0;
}

/* ---- a chunk ---- */

static int chunk_refuse(struct amp_error *why, const char *code, const char *text, int64_t index)
{
    return amp_fail_text(why, AMP_NO, code, "chunk %" PRId64 " %s", index, text);
}

/* Checks what one chunk shows: its place, its bytes and their digest; u->piece gets the bytes. */
static int chunk_check(struct amp_units *u, const struct amp_view *v, struct amp_error *why)
{
    char sum[AMP_SHA256_MAX];
    int64_t at = v->body.chunk.index, n = v->body.chunk.count, size = v->body.chunk.whole_size,
            each = v->body.chunk.chunk_size;
    if (each < 1 || size < 1 || n != (size - 1) / each + 1 || at < 0 || at >= n)
        return chunk_refuse(why, AMP_CODE(chunk_mismatch),
                            "has a place that its count or sizes exclude", at);
    int64_t expected = at == n - 1 ? size - at * each : each;
    amp_buf_reset(&u->piece);
    if (v->body.chunk.size != expected)
        return chunk_refuse(why, AMP_CODE(chunk_mismatch),
                            "has another size than its place requires", at);
    if (amp_base64_decode(v->body.chunk.data, &u->piece, why) < 0 && why->status == AMP_TEMPFAIL)
        return -1;
    if (u->piece.len != (size_t)expected)
        return chunk_refuse(why, AMP_CODE(chunk_corrupt), "has other bytes than its size says", at);
    amp_sha256_hex(amp_buf_span(&u->piece), sum);
    if (!amp_span_is(v->body.chunk.digest, sum))
        return chunk_refuse(why, AMP_CODE(chunk_corrupt), "has bytes of another digest", at);
    return 0;
}

/* Whether the chunk is of the same message in the same pieces as those before. */
static bool is_of(const struct amp_transfer *t, const struct amp_view *v)
{
    return t->count == v->body.chunk.count && t->chunk_size == v->body.chunk.chunk_size &&
           t->size == v->body.chunk.whole_size &&
           amp_span_eq(t->digest, v->body.chunk.whole_digest) &&
           amp_span_eq(t->ref, v->body.chunk.ref) && amp_span_eq(t->from, v->body.chunk.from);
}

/* Fills the record of the first chunk; the spans are those of the view, and `have` in mem. */
static int transfer_begin(struct amp_units *u, const struct amp_view *v, struct amp_error *err)
{
    int64_t n = v->body.chunk.count;
    u->now.t = (struct amp_transfer){.producer = v->from,
                                     .id = v->body.chunk.transfer,
                                     .ref = v->body.chunk.ref,
                                     .from = v->body.chunk.from,
                                     .protocol = v->body.chunk.protocol,
                                     .correlation = v->body.chunk.correlation,
                                     .task = v->body.chunk.task,
                                     .digest = v->body.chunk.whole_digest,
                                     .have = {"", 0},
                                     .count = n,
                                     .chunk_size = v->body.chunk.chunk_size,
                                     .size = v->body.chunk.whole_size};
    if (n < 1 || n > amp_unit_limits.chunks)
        return 0;
    if (amp_buf_reserve(&u->now.mem, (size_t)n, err) < 0)
        return -1;
    memset(u->now.mem.data, '0', (size_t)n);
    u->now.mem.len = (size_t)n;
    u->now.t.have = amp_buf_span(&u->now.mem);
    return 0;
}

/* Whether a new transfer is within the limits: 0, or -1 with NO in why; else a failure. */
static int limits_check(struct amp_units *u, struct amp_error *why)
{
    const struct amp_unit_limits *l = &amp_unit_limits;
    const struct amp_transfer *t = &u->now.t;
    uint32_t n;
    uint64_t bytes;
    if ((uint64_t)t->size > l->message)
        return amp_fail(why, AMP_NO, oversize_payload,
                        "it has %" PRId64 " bytes in chunks (the limit is %zu)", t->size,
                        l->message);
    if (t->count > l->chunks)
        return amp_fail(why, AMP_NO, oversize_payload,
                        "it has %" PRId64 " chunks (the limit is %u)", t->count, l->chunks);
    if (amp_transfers_count(&u->all, &n, &bytes, why) < 0)
        return -1;
    if (n >= l->unfinished)
        return amp_fail(why, AMP_NO, buffer_full,
                        "%u messages in chunks are unfinished (the limit)", n);
    if (bytes + (uint64_t)t->size > l->waiting)
        return amp_fail(why, AMP_NO, buffer_full,
                        "%" PRIu64 " bytes of unfinished messages are waiting (the limit is %zu)",
                        bytes, l->waiting);
    return 0;
}

/* Whether the chunk's bytes are those of its place: 1, 0, or -1. */
static int is_repeated(struct amp_units *u, uint64_t at, struct amp_error *err)
{
    AMP_BUF struct amp_buf had = {0};
    amp_buf_init(&had, u->piece.len + 1);
    if (amp_transfer_read(&u->all, &u->now, at, u->piece.len, &had, err) < 0)
        return -1;
    return amp_span_eq(amp_buf_span(&had), amp_buf_span(&u->piece));
}

/* Reads the complete message into u->lines; NO in why: it is not the one that was sent. */
static int message_read(struct amp_units *u, struct amp_error *why)
{
    char sum[AMP_SHA256_MAX];
    amp_buf_reset(&u->lines);
    u->at = 0;
    int rc = amp_transfer_read(&u->all, &u->now, 0, (size_t)u->now.t.size, &u->lines, why);
    if (rc < 0) {
        if (why->status == AMP_DATAERR)
            why->status = AMP_NO;
    } else {
        amp_sha256_hex(amp_buf_span(&u->lines), sum);
        if (!amp_span_is(u->now.t.digest, sum))
            rc = amp_fail(why, AMP_NO, chunk_corrupt, "its chunks make another digest");
        else if (memchr(u->lines.data, '\n', u->lines.len) ||
                 memchr(u->lines.data, '\0', u->lines.len))
            rc = amp_fail(why, AMP_NO, chunk_corrupt, "its chunks make more than one line");
        else
            rc = amp_buf_add(&u->lines, "", 1, why);
    }
    if (rc < 0)
        amp_buf_reset(&u->lines);
    return rc;
}

/* Selects the event of a chunk of an unfinished transfer. why: of CORRUPT and REFUSE. */
static int event_decide(struct amp_units *u, const struct amp_view *v, uint8_t *event,
                        uint32_t *facts, struct amp_error *why, struct amp_error *err)
{
    struct amp_transfer *t = &u->now.t;
    int rc = u->now.found ? 0 : limits_check(u, why);
    *event = AMP_TRANSFER_EV_REFUSE;
    if (rc == 0) {
        *event = AMP_TRANSFER_EV_CORRUPT;
        rc = chunk_check(u, v, why);
    }
    if (rc == 0 && !is_of(t, v))
        rc = chunk_refuse(why, AMP_CODE(chunk_mismatch),
                          "differs from earlier chunks of its transfer", v->body.chunk.index);
    if (rc < 0) {
        if (why->status != AMP_NO)
            *err = *why;
        return why->status == AMP_NO ? 0 : -1;
    }
    uint64_t index = (uint64_t)v->body.chunk.index, at = index * (uint64_t)t->chunk_size;
    char *have = u->now.mem.data + (t->have.p - u->now.mem.data) + index;
    *event = AMP_TRANSFER_EV_PIECE;
    if (*have == '1') {
        *facts = AMP_TRANSFER_IF_SAME;
        rc = is_repeated(u, at, why);
        if (rc == 0) {
            *event = AMP_TRANSFER_EV_CORRUPT;
            *facts = 0;
            chunk_refuse(why, AMP_CODE(chunk_mismatch), "came before with other bytes",
                         (int64_t)index);
        } else if (rc < 0 && why->status == AMP_DATAERR) {
            *event = AMP_TRANSFER_EV_CORRUPT;
            *facts = 0;
        } else if (rc < 0) {
            *err = *why;
            return -1;
        }
        return 0;
    }
    if (amp_transfer_write(&u->all, &u->now, at, amp_buf_span(&u->piece), err) < 0)
        return -1;
    *have = '1';
    t->by = amp_span_str(u->by);
    if (++t->got < t->count)
        return 0;
    *event = AMP_TRANSFER_EV_LAST;
    if (message_read(u, why) == 0)
        return 0;
    *event = AMP_TRANSFER_EV_CORRUPT;
    if (why->status == AMP_NO)
        return 0;
    *err = *why;
    return -1;
}

/* 1: another process changed the transfer. */
static int chunk_step(struct amp_units *u, const struct amp_view *v, int64_t now_ms,
                      uint32_t *effects, struct amp_error *why, struct amp_error *err)
{
    uint8_t event = AMP_TRANSFER_EV_PIECE;
    uint32_t facts = 0;
    if (amp_transfer_find(&u->all, v->from, v->body.chunk.transfer, &u->now, err) < 0 ||
        (!u->now.found && transfer_begin(u, v, err) < 0))
        return -1;
    if (u->now.state == AMP_TRANSFER_RECEIVING && event_decide(u, v, &event, &facts, why, err) < 0)
        return -1;
    return transfer_carry(&u->all, &u->now, event, facts, now_ms, NULL, effects, err);
}

static enum amp_unit_took chunk_take(struct amp_units *u, const struct amp_view *v, int64_t now_ms,
                                     struct amp_unit_refusal *out, struct amp_error *err)
{
    uint32_t effects = 0;
    struct amp_error why = {0};
    int rc;
    while ((rc = chunk_step(u, v, now_ms, &effects, &why, err)) > 0)
        amp_buf_reset(&u->lines);
    if (rc < 0)
        return AMP_UNIT_FAILED;
    if (effects & AMP_TRANSFER_DO_HAND_OVER) {
        /* Reads it as it was committed, for the next step. If another process resumes it already,
         * that process has it. */
        if (amp_transfer_find(&u->all, v->from, v->body.chunk.transfer, &u->now, err) < 0 ||
            (rc = amp_transfer_lock(&u->all, &u->now, &u->lock, err)) < 0)
            return AMP_UNIT_FAILED;
        u->assembled = rc > 0;
        if (!u->assembled)
            amp_buf_reset(&u->lines);
    }
    if (!(effects & AMP_TRANSFER_DO_TELL))
        return AMP_UNIT_TAKEN;
    return refusal_fill(u, &u->now.t, &why, out, err) < 0 ? AMP_UNIT_FAILED : AMP_UNIT_REFUSED;
}

/* ---- a batch ---- */

/* Success and failure as a unit: nothing is taken from a batch that is wrong anywhere. */
static int batch_check(const struct amp_view *v, struct amp_error *why)
{
    const struct amp_spans *m = &v->body.batch.messages;
    char sum[AMP_SHA256_MAX];
    uint64_t bytes = 0;
    if (m->n > amp_unit_limits.batch)
        return amp_fail(why, AMP_NO, oversize_payload, "it has %u messages (the limit is %u)", m->n,
                        amp_unit_limits.batch);
    for (uint32_t i = 0; i < m->n; i++) {
        bytes += m->v[i].n;
        if (memchr(m->v[i].p, '\n', m->v[i].n) || memchr(m->v[i].p, '\0', m->v[i].n))
            return amp_fail(why, AMP_NO, batch_corrupt, "message %u is not one line", i);
    }
    if (v->body.batch.count != (int64_t)m->n || v->body.batch.size != (int64_t)bytes)
        return amp_fail(why, AMP_NO, batch_corrupt,
                        "it has %u messages of %" PRIu64 " bytes, not %" PRId64 " of %" PRId64,
                        m->n, bytes, v->body.batch.count, v->body.batch.size);
    if (amp_unit_batch_digest(m->v, m->n, sum, why) < 0)
        return -1;
    if (!amp_span_is(v->body.batch.digest, sum))
        return amp_fail(why, AMP_NO, batch_corrupt, "its messages make another digest");
    return 0;
}

static enum amp_unit_took batch_take(struct amp_units *u, const struct amp_view *v,
                                     struct amp_unit_refusal *out, struct amp_error *err)
{
    const struct amp_spans *m = &v->body.batch.messages;
    struct amp_error why;
    amp_buf_reset(&u->lines);
    u->at = 0;
    if (batch_check(v, &why) < 0) {
        const struct amp_transfer t = {.ref = v->id,
                                       .from = v->from,
                                       .protocol = amp_span_str(amp_protocol_name(v->protocol)),
                                       .correlation = v->correlation};
        if (why.status != AMP_NO) {
            *err = why;
            return AMP_UNIT_FAILED;
        }
        return refusal_fill(u, &t, &why, out, err) < 0 ? AMP_UNIT_FAILED : AMP_UNIT_REFUSED;
    }
    for (uint32_t i = 0; i < m->n; i++)
        if (amp_buf_add(&u->lines, m->v[i].p, m->v[i].n, err) < 0 ||
            amp_buf_add(&u->lines, "", 1, err) < 0) {
            amp_buf_reset(&u->lines);
            return AMP_UNIT_FAILED;
        }
    return AMP_UNIT_TAKEN;
}

/* ---- what a killed process left ---- */

struct leftover {
    const char *by;
    struct amp_buf *ids; /* pairs of producer and transfer */
    uint32_t n;
};

static int leftover_fn(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                       struct amp_error *err)
{
    struct leftover *l = ctx;
    struct amp_transfer t;
    AMP_BUF struct amp_buf mem = {.max = AMP_TRANSFER_RECORD_MAX};
    (void)id;
    if (amp_transfer_parse(rec->json, &mem, &t, err) < 0)
        return -1;
    if (!amp_span_is(t.by, l->by))
        return 0;
    l->n++;
    return amp_buf_add(l->ids, t.producer.p, t.producer.n, err) < 0 ||
                   amp_buf_add(l->ids, "", 1, err) < 0 ||
                   amp_buf_add(l->ids, t.id.p, t.id.n, err) < 0 ||
                   amp_buf_add(l->ids, "", 1, err) < 0
               ? -1
               : 0;
}

static int leftovers_find(struct amp_units *u, struct leftover *out, struct amp_error *err)
{
    *out = (struct leftover){.by = u->by, .ids = &u->of};
    amp_buf_reset(&u->of);
    return amp_store_each(u->all.store, AMP_TRANSFER_KIND,
                          amp_transfer_fsm.states[AMP_TRANSFER_ASSEMBLED].name, leftover_fn, out,
                          err);
}

int amp_units_leftovers(struct amp_units *u, struct amp_error *err)
{
    struct leftover l;
    if (!u->all.store || leftovers_find(u, &l, err) < 0)
        return u->all.store ? -1 : 0;
    u->resumes = l.n > 0;
    return u->resumes;
}

/* Hands one of them over: 1, or 0: another process has it, or it ended; or -1. */
static int leftover_resume(struct amp_units *u, struct amp_span producer, struct amp_span id,
                           int64_t now_ms, struct amp_error *err)
{
    uint32_t effects;
    struct amp_error why;
    int rc = amp_transfer_find(&u->all, producer, id, &u->now, err);
    if (rc == 0)
        rc = amp_transfer_lock(&u->all, &u->now, &u->lock, err);
    if (rc <= 0)
        return rc;
    /* It may have ended before the lock. An unreadable transfer is left to the time limit. */
    if (amp_transfer_find(&u->all, producer, id, &u->now, err) < 0)
        return -1;
    if (u->now.state != AMP_TRANSFER_ASSEMBLED || message_read(u, &why) < 0)
        return 0;
    rc = transfer_carry(&u->all, &u->now, AMP_TRANSFER_EV_RESUME, 0, now_ms, NULL, &effects, err);
    if (rc != 0 || amp_transfer_find(&u->all, producer, id, &u->now, err) < 0)
        return rc > 0 ? 0 : -1;
    u->assembled = true;
    return 1;
}

/* The next one. 1: u->lines has it, 0: there is none, -1. */
static int leftovers_resume(struct amp_units *u, int64_t now_ms, struct amp_error *err)
{
    struct leftover l;
    AMP_BUF struct amp_buf ids = {0};
    if (leftovers_find(u, &l, err) < 0)
        return -1;
    amp_buf_init(&ids, u->of.len + 1);
    if (amp_buf_add(&ids, u->of.data, u->of.len, err) < 0)
        return -1;
    for (size_t at = 0; l.n > 0; l.n--) {
        struct amp_span producer = amp_span_str(ids.data + at),
                        id = amp_span_str(ids.data + at + producer.n + 1);
        at += producer.n + id.n + 2;
        int rc = leftover_resume(u, producer, id, now_ms, err);
        if (rc != 0)
            return rc;
        lock_close(u);
        amp_buf_reset(&u->lines);
    }
    u->resumes = false;
    return 0;
}

/* ---- taking ---- */

enum amp_unit_took amp_units_take(struct amp_units *u, const struct amp_view *v, int64_t now_ms,
                                  struct amp_unit_refusal *why, struct amp_error *err)
{
    if (message_confirm(u, now_ms, err) < 0)
        return AMP_UNIT_FAILED;
    return v->kind == AMP_KIND_CHUNK ? chunk_take(u, v, now_ms, why, err)
                                     : batch_take(u, v, why, err);
}

int amp_units_next(struct amp_units *u, int64_t now_ms, struct amp_span *line,
                   struct amp_error *err)
{
    amp_transfers_tidy(&u->all);
    if (u->at > 0 && message_confirm(u, now_ms, err) < 0)
        return -1;
    if (u->at >= u->lines.len && u->resumes) {
        int rc = leftovers_resume(u, now_ms, err);
        if (rc <= 0)
            return rc;
    }
    if (u->at >= u->lines.len)
        return 0;
    *line = (struct amp_span){u->lines.data + u->at, strlen(u->lines.data + u->at)};
    u->at += line->n + 1;
    return 1;
}

void amp_units_settled(struct amp_units *u)
{
    amp_transfers_tidy(&u->all);
}

bool amp_units_hold(const struct amp_units *u)
{
    return u && u->assembled;
}

enum amp_unit_took amp_units_expire(struct amp_units *u, int64_t now_ms, bool end,
                                    struct amp_unit_refusal *out, struct amp_error *err)
{
    for (const struct amp_transfer_held *h = u->all.held; h; h = h->next) {
        AMP_TRANSFER_NOW n = {0};
        struct amp_transfer t;
        struct amp_error why;
        uint32_t effects;
        if (h->state != AMP_TRANSFER_RECEIVING || !h->json || (!end && h->due_ms > now_ms))
            continue;
        if (amp_transfer_parse(amp_span_str(h->json), &u->of, &t, err) < 0 ||
            amp_transfer_find(&u->all, t.producer, t.id, &n, err) < 0)
            return AMP_UNIT_FAILED;
        amp_fail(&why, AMP_NO, partial_delivery,
                 "%" PRId64 " of its %" PRId64 " chunks are missing%s", n.t.count - n.t.got,
                 n.t.count, end ? " at the end of input" : "");
        if (transfer_carry(&u->all, &n, AMP_TRANSFER_EV_TIMEOUT, 0, now_ms, NULL, &effects, err) <
                0 ||
            refusal_fill(u, &n.t, &why, out, err) < 0)
            return AMP_UNIT_FAILED;
        return AMP_UNIT_REFUSED;
    }
    return AMP_UNIT_TAKEN;
}
