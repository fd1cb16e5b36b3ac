/*
 * Dead letters. A letter and the answer to the sender are one commit, so every refused message is
 * kept and answered. The ledger's commit follows. After a crash in between the router's outbox
 * still has the message, and adding it again only counts one more attempt.
 */
#include "message/delivery/dead/dead.h"

#include <stdio.h>
#include <string.h>

#include "base/codes.h"
#include "message/delivery/dead/record.h"
#include "message/delivery/ledger/ledger.h"
#include "message/delivery/record/record.h"
#include "message/protocol/redact/redact.h"

#define DEAD        "DEAD"
#define REQUEUED    "REQUEUED"
#define WITHDRAWN   "WITHDRAWN"
#define REMOVED     "REMOVED"
#define EXCERPT_MAX 240

struct work {
    const struct amp_dead_letter *add;
    struct amp_dead_kept old;
    struct amp_buf mem, out;
    struct amp_store_emit emit;
    struct amp_span excerpt;
    const char *actor, *event;
    uint64_t rev;
    int64_t now_ms, arrived_ms; /* arrived: of a message that is added; 0: not known */
    bool timeout;               /* withdraw only a letter for a timeout */
};
#define WORK AMP_CLEANUP(work_release) struct work

static struct work work_make(const char *actor)
{
    return (struct work){
        .actor = actor, .mem = {.max = AMP_RECORD_MAX}, .out = {.max = AMP_RECORD_MAX}};
}

static void work_release(struct work *w)
{
    amp_buf_release(&w->mem);
    amp_buf_release(&w->out);
}

void amp_dead_from_view(struct amp_dead_letter *d, const struct amp_view *v)
{
    d->line = v->line;
    d->msg_id = v->id;
    d->task = v->task;
    d->type = v->type;
    d->from = v->from;
    d->to = v->n_to > 0 ? v->to[0] : (struct amp_span){"", 0};
    d->recipients = v->to;
    d->n_recipients = v->n_to;
    d->correlation = v->correlation;
    d->content_type = v->content_type;
    if (d->content_type.n == 0)
        d->content_type = v->json ? AMP_SPAN("application/json") : AMP_SPAN("text/plain");
    d->protocol = amp_protocol_name(v->protocol);
    d->created_ms = v->created_ms;
    if (v->payload != AMP_TOK_NONE && v->tape && v->payload < v->tape->n)
        d->excerpt = amp_tok_source(v->tape, v->payload);
}

static int add_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *change,
                  struct amp_error *err)
{
    struct work *w = ctx;
    struct amp_dead_letter d = *w->add;
    if (d.attempts <= d.n_before)
        d.attempts = (int64_t)d.n_before + 1;
    if (d.first_failed_ms == 0)
        d.first_failed_ms = d.n_before > 0 ? d.before[0].at_ms : d.failed_ms;
    if (now->found) {
        if (amp_dead_read(now->json, &w->mem, &w->old, err) < 0)
            return -1;
        d.attempts = w->old.d.attempts + 1;
        d.first_failed_ms = w->old.d.first_failed_ms;
        if (w->add->created_ms <= 0 && w->old.d.created_ms > 0)
            d.created_ms = w->old.d.created_ms;
    }
    if (d.created_ms <= 0)
        d.created_ms = w->arrived_ms > 0 ? w->arrived_ms : d.first_failed_ms;
    d.excerpt = w->excerpt;
    d.frame = now->next;
    if (amp_dead_write(&w->old, &d, amp_span_str(w->actor), &w->out, err) < 0)
        return -1;
    change->event = d.code;
    change->due_ms = d.failed_ms; /* the begin of its age, for retention */
    change->to = DEAD;
    change->json = amp_buf_span(&w->out);
    change->actor = w->actor;
    if (w->emit.line.n > 0) {
        change->emits = &w->emit;
        change->n_emits = 1;
    }
    return 0;
}

/* Records the end in the ledger, which may not have the message, or a later state. */
static int message_end(struct amp_store *s, const struct amp_dead_letter *d, const char *actor,
                       struct amp_error *err)
{
    bool expired = amp_code_is(d->code, ttl_expired);
    struct amp_message_answer end = {.stage = expired ? AMP_STAGE_FAILED : AMP_STAGE_REJECTED,
                                     .by = actor,
                                     .code = amp_span_str(d->code),
                                     .ours = true};
    struct amp_message_changes changes;
    struct amp_error e = {0};
    if (amp_message_answered(s, d->msg_id, &end, d->failed_ms, &changes, &e) < 0 ||
        amp_message_close_outbox(s, d->msg_id, &changes, &e) < 0)
        return amp_fail_unless_no(err, &e);
    return 0;
}

int amp_dead_add(struct amp_store *s, const struct amp_dead_letter *d, const char *actor,
                 struct amp_span answer, struct amp_store_entry_id *entry, struct amp_error *err)
{
    WORK w = work_make(actor);
    char digest[AMP_KEY_NAME_MAX];
    struct amp_span id = amp_key_message_name(d->msg_id, d->line, digest);
    AMP_BUF struct amp_buf excerpt = {.max = 1 << 16};
    /* A message without a time has that of its arrival. */
    if (d->created_ms <= 0 && d->msg_id.n > 0) {
        struct amp_message_rec rec;
        if (amp_message_find(s, d->msg_id, &w.mem, &rec, err) < 0)
            return -1;
        w.arrived_ms = rec.found ? rec.sent_ms : 0;
    }
    w.add = d;
    w.emit = (struct amp_store_emit){.id = id, .line = answer, .role = AMP_ROLE_answer};
    if (amp_redact_excerpt(d->excerpt.n > 0 ? d->excerpt : d->line, EXCERPT_MAX, &excerpt, err) < 0)
        return -1;
    w.excerpt = amp_buf_span(&excerpt);
    if (amp_store_update(s, AMP_KEY_NAMED(AMP_DEAD_KIND, id), NULL, add_fn, &w, NULL, err) < 0)
        return -1;
    struct amp_store_entry_id made = {.n = amp_store_last_frame(s)};
    if (!d->settled && d->msg_id.n > 0 && message_end(s, d, actor, err) < 0)
        return -1;
    if (entry)
        *entry = made;
    return 0;
}

int amp_dead_is_open(struct amp_store *s, struct amp_span dead_id, int64_t since_ms, bool *open,
                     struct amp_error *err)
{
    struct amp_store_rec rec;
    if (amp_store_get(s, AMP_KEY_NAMED(AMP_DEAD_KIND, dead_id), &rec, err) < 0)
        return -1;
    *open = rec.found && amp_span_is(rec.state, DEAD);
    if (!*open || since_ms == 0)
        return 0;
    AMP_BUF struct amp_buf mem = {.max = 2 * AMP_RECORD_MAX};
    struct amp_dead_kept l;
    if (amp_dead_read(rec.json, &mem, &l, err) < 0)
        return -1;
    *open = l.d.failed_ms >= since_ms;
    return 0;
}

/* Whether the history has a failure since then. A full inbox is no failure of the message. */
static bool history_has_failure(const struct amp_dead_kept *l, int64_t since_ms)
{
    for (uint32_t i = 0; i < l->n_history; i++)
        if (l->history[i].at_ms >= since_ms && !amp_code_is(l->history[i].code, buffer_full))
            return true;
    return false;
}

int amp_dead_find_requeued(struct amp_store *s, struct amp_span dead_id, int64_t since_ms,
                           uint64_t since_frame, struct amp_buf *mem, struct amp_span *route,
                           uint64_t *rev, struct amp_error *err)
{
    struct amp_store_rec rec;
    struct amp_dead_kept l;
    if (amp_store_get(s, AMP_KEY_NAMED(AMP_DEAD_KIND, dead_id), &rec, err) < 0)
        return -1;
    if (!rec.found || !amp_span_is(rec.state, REQUEUED))
        return 0;
    *rev = rec.rev;
    if (amp_dead_read(rec.json, mem, &l, err) < 0)
        return -1;
    *route = amp_span_str(l.d.route);
    return since_ms == 0 || (l.d.frame > since_frame && history_has_failure(&l, since_ms));
}

struct each {
    amp_dead_fn fn;
    void *ctx;
    bool with_requeued;
    struct amp_buf mem, json;
};

#define EACH AMP_CLEANUP(each_release) struct each

static struct each each_make(amp_dead_fn fn, void *ctx, bool with_requeued)
{
    return (struct each){.fn = fn,
                         .ctx = ctx,
                         .with_requeued = with_requeued,
                         .mem = {.max = AMP_RECORD_MAX * 2},
                         .json = {.max = AMP_RECORD_MAX}};
}

static void each_release(struct each *e)
{
    amp_buf_release(&e->mem);
    amp_buf_release(&e->json);
}

static int each_fn(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                   struct amp_error *err)
{
    struct each *e = ctx;
    struct amp_dead_kept l;
    bool open = amp_span_is(rec->state, DEAD), withdrawn = amp_span_is(rec->state, WITHDRAWN);
    uint64_t rev = rec->rev;
    if (!e->with_requeued && !open)
        return 0;
    amp_buf_reset(&e->json);
    if (amp_dead_read(rec->json, &e->mem, &l, err) < 0 ||
        amp_buf_add(&e->json, rec->json.p, rec->json.n, err) < 0)
        return -1;
    l.d.rev = rev;
    l.d.open = open;
    l.d.withdrawn = withdrawn;
    return e->fn(e->ctx, id, &l.d, amp_buf_span(&e->json), err);
}

int amp_dead_each(struct amp_store *s, bool with_requeued, amp_dead_fn fn, void *ctx,
                  struct amp_error *err)
{
    EACH e = each_make(fn, ctx, with_requeued);
    return amp_store_each(s, AMP_DEAD_KIND, NULL, each_fn, &e, err);
}

int amp_dead_find(struct amp_store *s, struct amp_span dead_id, amp_dead_fn fn, void *ctx,
                  struct amp_error *err)
{
    struct amp_store_rec rec;
    if (amp_store_get(s, AMP_KEY_NAMED(AMP_DEAD_KIND, dead_id), &rec, err) < 0)
        return -1;
    if (!rec.found)
        return amp_fail(err, AMP_NO, unknown_ref, "there is no such dead letter");
    EACH e = each_make(fn, ctx, true);
    return each_fn(&e, dead_id, &rec, err) < 0 ? -1 : 0;
}

int amp_dead_oldest(struct amp_store *s, int64_t until_ms, amp_dead_fn fn, void *ctx,
                    struct amp_error *err)
{
    EACH e = each_make(fn, ctx, true);
    return amp_store_due(s, AMP_DEAD_KIND, until_ms, each_fn, &e, err);
}

static int requeue_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *change,
                      struct amp_error *err)
{
    struct work *w = ctx;
    if (!now->found)
        return amp_fail(err, AMP_NO, unknown_ref, "there is no such dead letter");
    if (amp_span_is(now->state, WITHDRAWN))
        return amp_fail(err, AMP_NO, withdrawn, "the message was acknowledged after all");
    if (!amp_span_is(now->state, DEAD))
        return amp_fail(err, AMP_NO, already_requeued, "the letter was requeued already");
    if (w->rev != 0 && w->rev != now->rev)
        return amp_fail(err, AMP_NO, changed, "the letter failed again since it was selected");
    if (amp_dead_read(now->json, &w->mem, &w->old, err) < 0 ||
        amp_dead_write_requeue(now->json, w->now_ms, &w->out, err) < 0)
        return -1;
    w->emit.line = w->old.d.line;
    change->event = "requeue";
    change->to = REQUEUED;
    change->json = amp_buf_span(&w->out);
    change->due_ms = now->due_ms;
    change->actor = w->actor;
    change->emits = &w->emit;
    change->n_emits = 1;
    return 0;
}

/* The ledger's commit of a requeue. The ledger may not have the message, or have it as SENT. */
static int message_requeue(struct amp_store *s, struct amp_span id, int64_t now_ms,
                           struct amp_error *err)
{
    struct amp_error e = {0};
    if (id.n == 0 || amp_message_requeue(s, id, now_ms, &e) == 0)
        return 0;
    return amp_fail_unless_no(err, &e);
}

int amp_dead_requeue(struct amp_store *s, struct amp_span dead_id, uint64_t rev, const char *actor,
                     int64_t now_ms, struct amp_error *err)
{
    WORK w = work_make(actor);
    w.rev = rev;
    w.now_ms = now_ms;
    w.emit.id = dead_id;
    if (amp_store_update(s, AMP_KEY_NAMED(AMP_DEAD_KIND, dead_id), NULL, requeue_fn, &w, NULL,
                         err) < 0)
        return -1;
    return message_requeue(s, w.old.d.msg_id, now_ms, err);
}

static int withdraw_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *change,
                       struct amp_error *err)
{
    struct work *w = ctx;
    if (!now->found || !amp_span_is(now->state, DEAD))
        return 1;
    if (amp_dead_read(now->json, &w->mem, &w->old, err) < 0 ||
        amp_buf_add(&w->out, now->json.p, now->json.n, err) < 0)
        return -1;
    if (w->timeout && w->old.d.final != AMP_DEAD_EXHAUSTED &&
        strcmp(w->old.d.code, "not_idempotent") != 0)
        return 1;
    change->event = "withdraw";
    change->to = WITHDRAWN;
    change->json = amp_buf_span(&w->out);
    change->due_ms = now->due_ms;
    change->actor = w->actor;
    return 0;
}

int amp_dead_withdraw(struct amp_store *s, struct amp_span dead_id, bool timeout, const char *actor,
                      struct amp_error *err)
{
    WORK w = work_make(actor);
    w.timeout = timeout;
    return amp_store_update(s, AMP_KEY_NAMED(AMP_DEAD_KIND, dead_id), NULL, withdraw_fn, &w, NULL,
                            err);
}

/* Adds the id of an entry with a NUL: the store is not called while it reads. */
static int open_fn(void *ctx, const struct amp_store_entry *e, struct amp_error *err)
{
    return amp_buf_add(ctx, e->id.p, e->id.n, err) < 0 ? -1 : amp_buf_add(ctx, "", 1, err);
}

/* Makes the ledger's commit of the requeue, unless the message arrived or ended again since. */
static int letter_recover(struct amp_store *s, struct amp_span dead_id, int64_t now_ms,
                          struct amp_error *err)
{
    struct amp_store_rec rec;
    struct amp_dead_kept letter;
    struct amp_message_rec r;
    AMP_BUF struct amp_buf own = {.max = AMP_RECORD_MAX}, mem = {.max = AMP_RECORD_MAX};
    if (amp_store_get(s, AMP_KEY_NAMED(AMP_DEAD_KIND, dead_id), &rec, err) < 0)
        return -1;
    if (!rec.found || !amp_span_is(rec.state, REQUEUED))
        return 0;
    if (amp_dead_read(rec.json, &own, &letter, err) < 0)
        return -1;
    if (letter.d.msg_id.n == 0)
        return 0;
    if (amp_message_find(s, letter.d.msg_id, &mem, &r, err) < 0)
        return -1;
    bool later = letter.requeues > 0 && r.timed_out_ms >= letter.requeued_ms;
    bool ended = r.state == AMP_DELIVERY_TIMED_OUT && (later || amp_record_arrived(&r));
    return r.found && r.due_ms == 0 && !ended ? message_requeue(s, letter.d.msg_id, now_ms, err)
                                              : 0;
}

int amp_dead_recover(struct amp_store *s, const char *actor, int64_t now_ms, struct amp_error *err)
{
    AMP_BUF struct amp_buf ids = {.max = (size_t)256 << 20};
    int rc = amp_store_outbox(s, actor, open_fn, &ids, err);
    for (size_t at = 0; rc == 0 && at < ids.len;) {
        struct amp_span id = amp_span_str(ids.data + at);
        rc = letter_recover(s, id, now_ms, err);
        at += id.n + 1;
    }
    return rc;
}

static int remove_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *change,
                     struct amp_error *err)
{
    struct work *w = ctx;
    if (!now->found)
        return amp_fail(err, AMP_NO, unknown_ref, "there is no such dead letter");
    if (w->rev != 0 && w->rev != now->rev)
        return amp_fail(err, AMP_NO, changed,
                        "the letter failed again or was requeued since it was selected");
    change->event = w->event;
    change->to = REMOVED;
    change->remove = true;
    change->actor = w->actor;
    return 0;
}

int amp_dead_remove(struct amp_store *s, struct amp_span dead_id, uint64_t rev, const char *event,
                    const char *actor, struct amp_error *err)
{
    struct work w = {.rev = rev, .event = event, .actor = actor};
    return amp_store_update(s, AMP_KEY_NAMED(AMP_DEAD_KIND, dead_id), NULL, remove_fn, &w, NULL,
                            err);
}
