/* The deadlines of transfers. The answer and the transition are one commit. */
#include <inttypes.h>

#include "base/codes.h"
#include "message/delivery/record/record.h"
#include "message/delivery/record/sequence.h"
#include "message/delivery/transfer/transfer.h"
#include "message/delivery/transfer/units.h"
#include "message/protocol/compose/answer.h"

struct sweeping {
    struct amp_transfers all;
    int64_t now_ms;
    uint32_t done;
};

static int forget_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *change,
                     struct amp_error *err)
{
    const struct amp_transfer_now *n = ctx;
    (void)err;
    if (!now->found || now->rev != n->rev)
        return 1;
    change->remove = true;
    change->event = "forget";
    change->to = amp_transfer_fsm.states[n->state].name;
    change->json = AMP_SPAN("{}");
    return 0;
}

/* Appends the answer to the sender of the message, without LF; nothing if there is none. */
static int answer_compose(struct sweeping *s, const struct amp_transfer *t,
                          const struct amp_error *why, struct amp_buf *out, struct amp_error *err)
{
    const struct amp_view of = {.protocol = amp_protocol_find(t->protocol),
                                .id = t->ref,
                                .type = {"", 0},
                                .from = t->from,
                                .correlation = t->correlation,
                                .task = t->task,
                                .payload = AMP_TOK_NONE};
    struct amp_answer a = {.stage = AMP_STAGE_FAILED,
                           .by = "system",
                           .node = s->all.actor,
                           .code = why->code,
                           .note = why->what,
                           .retryable = true,
                           .now_ms = s->now_ms};
    if (t->ref.n == 0 || t->from.n == 0)
        return 0;
    if (amp_sequence_answer(s->all.store, &of, s->all.actor, &a, err) < 0 ||
        amp_answer_line(&of, &a, out, err) < 0)
        return -1;
    if (out->len > 0)
        out->len--; /* its LF */
    return 0;
}

/* Whether the receiver of a complete message recorded it before it was killed: 1, 0, -1. */
static int is_recorded(struct sweeping *s, const struct amp_transfer *t, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = (size_t)256 << 20};
    struct amp_message_rec rec;
    if (t->got < t->count || t->ref.n == 0)
        return 0;
    return amp_message_find(s->all.store, t->ref, &mem, &rec, err) < 0 ? -1 : rec.found;
}

static int unfinished_drop(struct sweeping *s, struct amp_transfer_now *n, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {.max = (size_t)1 << 20};
    struct amp_error why;
    struct amp_fsm_result r;
    struct amp_store_emit emit = {.id = n->t.ref, .role = AMP_ROLE_answer};
    uint8_t event = AMP_TRANSFER_EV_TIMEOUT;
    int rc = is_recorded(s, &n->t, err);
    if (rc > 0)
        event = AMP_TRANSFER_EV_TAKEN; /* its own deadline applies */
    if (n->t.got < n->t.count)
        amp_fail(&why, AMP_NO, partial_delivery,
                 "%" PRId64 " of its %" PRId64 " chunks did not arrive in time",
                 n->t.count - n->t.got, n->t.count);
    else
        amp_fail(&why, AMP_NO, partial_delivery, "its receiver ended before it took the message");
    if (rc < 0 || amp_fsm_step(&amp_transfer_fsm, n->state, event, 0, &r, err) < 0 ||
        answer_compose(s, &n->t, &why, &line, err) < 0)
        return -1;
    emit.line = amp_buf_span(&line);
    rc = amp_transfer_save(&s->all, n, event, r.to, s->now_ms + amp_unit_limits.timeout_ms,
                           emit.line.n > 0 && r.effects & AMP_TRANSFER_DO_TELL ? &emit : NULL, err);
    if (rc == 0 && r.effects & AMP_TRANSFER_DO_DROP)
        amp_transfer_drop(&s->all, n);
    s->done += rc == 0;
    return rc < 0 ? -1 : 0;
}

static int due_fn(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                  struct amp_error *err)
{
    struct sweeping *s = ctx;
    AMP_TRANSFER_NOW n = {0};
    struct amp_transfer t;
    AMP_BUF struct amp_buf mem = {.max = AMP_TRANSFER_RECORD_MAX};
    (void)id;
    if (amp_transfer_parse(rec->json, &mem, &t, err) < 0 ||
        amp_transfer_find(&s->all, t.producer, t.id, &n, err) < 0)
        return -1;
    if (!n.found || n.due_ms > s->now_ms)
        return 0;
    if (!(amp_transfer_fsm.terminal >> n.state & 1))
        return unfinished_drop(s, &n, err);
    amp_transfer_clear(&s->all, &n); /* if the process was killed before it could */
    s->done++;
    return amp_store_update(s->all.store, *rec->key, NULL, forget_fn, &n, NULL, err);
}

int amp_transfers_sweep(struct amp_store *s, int64_t now_ms, const char *actor, uint32_t *done,
                        struct amp_error *err)
{
    struct sweeping sw = {.all = {.store = s, .actor = actor}, .now_ms = now_ms};
    int rc = amp_store_due(s, AMP_TRANSFER_KIND, now_ms, due_fn, &sw, err);
    amp_transfers_tidy(&sw.all);
    amp_transfers_release(&sw.all);
    *done = sw.done;
    return rc < 0 ? -1 : 0;
}
