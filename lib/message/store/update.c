/* The compare-and-set of one key. */
#include "message/store/store_int.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/id.h>

#include "base/codes.h"
#include "base/trace.h"

/* BLAKE2b-256 is three times as fast as SHA-256. Old logs have SHA-256 sums, without a prefix. */
void amp_store_digest(struct amp_span bytes, char out[AMP_DIGEST_MAX])
{
    static const unsigned char none[1];
    unsigned char sum[32];
    crypto_generichash(sum, sizeof sum, bytes.n ? (const unsigned char *)bytes.p : none, bytes.n,
                       NULL, 0);
    memcpy(out, "b2:", 3);
    sodium_bin2hex(out + 3, AMP_DIGEST_MAX - 3, sum, sizeof sum);
}

bool amp_store_digest_is(const char *sum, const char *digest, struct amp_span bytes)
{
    char old[AMP_SHA256_MAX];
    if (strncmp(sum, "b2:", 3) == 0)
        return strcmp(sum, digest) == 0;
    amp_sha256_hex(bytes, old);
    return strcmp(sum, old) == 0;
}

static int input_seen(struct amp_store *s, const struct amp_store_input *input, const char *digest,
                      struct amp_error *err)
{
    char sum[AMP_DIGEST_MAX];
    struct amp_span c = amp_span_str(input->consumer);
    int rc = amp_store_find_input(s, c, input->id, sum, err);
    if (rc <= 0)
        return rc < 0 ? -1 : AMP_STORE_NOT_SEEN;
    return amp_store_digest_is(sum, digest, input->bytes) ? AMP_STORE_SEEN : AMP_STORE_SEEN_OTHER;
}

static int check_input(const struct amp_store_input *input, struct amp_error *err)
{
    if (input && (!input->id.n || input->id.n >= AMP_KEY_MAX || !input->consumer ||
                  strlen(input->consumer) >= AMP_KEY_MAX))
        return amp_fail(err, AMP_NO, bad_id, "an id of %zu bytes; 1 to %d can be kept", input->id.n,
                        AMP_KEY_MAX - 1);
    return 0;
}

int amp_store_seen(struct amp_store *s, const struct amp_store_input *input, struct amp_error *err)
{
    char digest[AMP_DIGEST_MAX];
    bool own;
    if (check_input(input, err) < 0)
        return -1;
    amp_store_digest(input->bytes, digest);
    if (amp_turn_enter(s, &own, err) < 0)
        return -1;
    return amp_turn_leave(s, own, input_seen(s, input, digest, err), err);
}

/* The callback's change must fit a frame that can be read again. */
static int check_change(struct amp_store *s, const struct amp_store_change *c,
                        struct amp_error *err)
{
    struct amp_json_fault fault;
    if (!c->to || !*c->to || strlen(c->to) > AMP_STATE_MAX)
        return amp_fail(err, AMP_INTERNAL, bad_change, "a state's name has 1 to %d bytes",
                        AMP_STATE_MAX);
    if (c->remove)
        return 0;
    if (c->json.n && memchr(c->json.p, '\n', c->json.n))
        return amp_fail(err, AMP_INTERNAL, bad_change, "a record must be on one line");
    if (amp_tape_scan(&s->check.tape, c->json.p, c->json.n, &fault) != 0)
        return amp_json_fail(err, AMP_INTERNAL, AMP_CODE(bad_change), "a record is not JSON",
                             &fault);
    if (s->check.tape.tok[0].type != AMP_JSON_OBJECT)
        return amp_fail(err, AMP_INTERNAL, bad_change, "a record is a JSON object");
    return 0;
}

static int change_commit(struct amp_store *s, struct amp_frame *f, const struct amp_store_change *c,
                         struct amp_error *err)
{
    AMP_FREE struct amp_frame_out *out = NULL;
    AMP_BUF struct amp_buf names = {0};
    struct amp_pos at;
    amp_buf_init(&names, 72 * (c->n_emits + 1u));
    if (c->n_emits && !(out = calloc(c->n_emits, sizeof *out)))
        return amp_fail_memory(err);
    for (uint32_t i = 0; i < c->n_emits; i++)
        out[i] = (struct amp_frame_out){.id = c->emits[i].id,
                                        .line = c->emits[i].line,
                                        .role = (uint8_t)c->emits[i].role,
                                        .ack = c->emits[i].wants_ack};
    f->event = amp_span_str(c->event);
    f->to = amp_span_str(c->to);
    f->actor = amp_span_str(c->actor || f->in_id.n ? c->actor : s->opt.actor);
    f->gone = c->remove;
    if (!c->remove) {
        f->state = c->json;
        f->due = c->due_ms;
    }
    f->out = out;
    f->n_out = c->n_emits;
    if (amp_blob_shrink(s, f, out, &names, err) < 0)
        return -1;
    if (amp_turn_append(s, f, &at, err) < 0)
        return -1;
    s->last = f->head.n;
    return 0;
}

uint64_t amp_store_last_frame(const struct amp_store *s)
{
    return s->last;
}

static struct amp_span kind_of(struct amp_span key)
{
    const char *dot = memchr(key.p, '.', key.n);

    return (struct amp_span){key.p, dot ? (size_t)(dot - key.p) : key.n};
}

static int key_update(struct amp_store *s, struct amp_span key, struct amp_span full,
                      const struct amp_store_input *input, const char *digest, amp_store_fn fn,
                      void *ctx, enum amp_store_outcome *outcome, struct amp_error *err)
{
    struct amp_store_rec now = {0};
    struct amp_store_change change = {0};
    struct amp_frame f = {.key = key, .full = full};
    if (input) {
        int rc = input_seen(s, input, digest, err);
        if (rc < 0)
            return -1;
        if (rc == AMP_STORE_SEEN_OTHER)
            return amp_fail(err, AMP_NO, duplicate_msg_id,
                            "the id %.*s is already used by another message",
                            (int)(input->id.n > 200 ? 200 : input->id.n), input->id.p);
        if (rc == AMP_STORE_SEEN) {
            *outcome = AMP_STORE_REDELIVERED;
            return 0;
        }
        f.in_consumer = amp_span_str(input->consumer);
        f.in_id = input->id;
        f.in_sum = amp_span_str(digest);
    }
    if (amp_store_find(s, key, &s->rec, &now, err) < 0)
        return -1;
    now.next = s->log.end.n + 1;
    int rc = fn(ctx, &now, &change, err);
    if (rc != 0) {
        if (rc > 0)
            *outcome = AMP_STORE_UNCHANGED;
        return rc > 0 ? 0 : -1;
    }
    if (check_change(s, &change, err) < 0)
        return -1;
    f.was = now.rev;
    f.rev = now.rev + 1;
    f.from = now.state;
    if (change_commit(s, &f, &change, err) < 0)
        return -1;
    AMP_TRACE(AMP_TRACE_STORE, AMP_TRACE_SPAN("kind", kind_of(key)), AMP_TRACE_SPAN("key", key),
              AMP_TRACE_NUMBER("rev", f.rev), AMP_TRACE_TEXT("event", change.event),
              AMP_TRACE_SPAN("from", f.from), AMP_TRACE_TEXT("to", change.to),
              AMP_TRACE_NUMBER("n", f.head.n));
    *outcome = AMP_STORE_COMMITTED;
    return 0;
}

int amp_store_update(struct amp_store *s, struct amp_key key, const struct amp_store_input *input,
                     amp_store_fn fn, void *ctx, enum amp_store_outcome *outcome,
                     struct amp_error *err)
{
    char mem[AMP_KEY_MAX], digest[AMP_DIGEST_MAX] = "";
    struct amp_span text, full = key.full;
    AMP_BUF struct amp_buf parts = {0};
    enum amp_store_outcome what = AMP_STORE_UNCHANGED;
    bool own;
    if (s->opt.read_only)
        return amp_fail(err, AMP_INTERNAL, read_only, "an update of a read-only store");
    if (amp_key_text(&key, mem, &text, err) < 0 || check_input(input, err) < 0)
        return -1;
    amp_buf_init(&parts, SIZE_MAX / 2);
    if (amp_key_is_digested(text) && !key.text.n) {
        if (amp_key_full(&key, &parts, err) < 0)
            return -1;
        if (parts.len < AMP_KEY_MAX)
            full = amp_buf_span(&parts);
    }
    if (input)
        amp_store_digest(input->bytes, digest);
    if (amp_turn_renew(s, err) < 0 || amp_turn_enter(s, &own, err) < 0)
        return -1;
    int rc = key_update(s, text, full, input, digest, fn, ctx, &what, err);
    if (amp_turn_leave(s, own, rc, err) < 0)
        return -1;
    if (outcome)
        *outcome = what;
    return 0;
}
