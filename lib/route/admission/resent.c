/*
 * What a person sent again out of the dead letters (amp-ack dead requeue) has a number that its
 * stream is past already. It passes beside the cursor, once for each time it was sent again: the
 * commit that puts it into the outbox has as its input how often and when that was. What became of
 * the letter meanwhile does not matter: it may have failed again while it was on its way.
 */
#include "route/admission/streams.h"

#include <string.h>

#include "message/dead/dead.h"
#include "message/dead/record.h"

/* Where too many waited, the number was not what was wrong. */
static bool by_number(const struct amp_dead_kept *l)
{
    return strcmp(l->first_route, "cursor") == 0 && strcmp(l->first_code, "buffer_full") != 0 &&
           strcmp(l->first_code, "backpressure") != 0;
}

/* What the cursor itself refused first stays refused: nothing about its number is another. What had
 * failed before in another way and came to the cursor late, or failed once more since it was sent
 * again, is what the person meant. */
int amp_resent_look(struct router *r, struct job *j, struct amp_span id, struct amp_error *err)
{
    struct amp_store_rec rec;
    AMP_BUF struct amp_buf mem = {0};
    struct amp_dead_kept letter;
    char digest[AMP_SHA256_MAX];
    amp_buf_init(&mem, (size_t)256 << 20);
    if (id.n == 0)
        return 0;
    id = amp_dead_id(id, (struct amp_span){j->line, j->n}, digest);
    if (amp_store_get(r->store, AMP_DEAD_KIND, id, &rec, err) < 0)
        return -1;
    if (!rec.found)
        return 0;
    uint64_t rev = rec.rev;
    int64_t failed_ms = rec.due_ms;
    bool requeued = amp_span_is(rec.state, "REQUEUED");
    if (amp_dead_read(rec.json, &mem, &letter, err) < 0)
        return -1;
    if (by_number(&letter) || (letter.requeues == 0 && !requeued))
        return 0;
    /* A letter of an earlier version does not say how often. */
    j->resent = letter.requeues > 0 ? (uint64_t)letter.requeues : rev;
    j->resent_ms = letter.requeues > 0 ? letter.requeued_ms : failed_ms;
    return 1;
}

struct commit {
    struct router *r;
    struct job *job;
    const struct amp_store_emit *emits;
    uint32_t n_emits;
    enum amp_store_outcome how;
    char json[AMP_KEEPER_BATCH_MAX];
};

static int record_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *change,
                     struct amp_error *err)
{
    struct commit *w = ctx;
    (void)err;
    amp_keeper_batch(now, change, w->json, w->emits, w->n_emits);
    change->actor = w->r->consumer;
    change->event = "resent";
    return 0;
}

static int commit_fn(void *ctx, const struct amp_store_emit *emits, uint32_t n,
                     struct amp_store_entry_id *at, struct amp_error *err)
{
    struct commit *w = ctx;
    const struct job *j = w->job;
    AMP_BUF struct amp_buf name = {0};
    char digest[AMP_SHA256_MAX];
    struct amp_span id = amp_dead_id(amp_span_str(j->id), (struct amp_span){j->line, j->n}, digest);
    amp_buf_init(&name, 1 << 16);
    if (amp_buf_fmt(&name, err, "resent-%llu-%lld-%.*s", (unsigned long long)j->resent,
                    (long long)j->resent_ms, (int)id.n, id.p) < 0)
        return -1;
    struct amp_store_input in = {
        .consumer = w->r->consumer, .id = amp_buf_span(&name), .bytes = {j->line, j->n}};
    w->emits = emits;
    w->n_emits = n;
    if (amp_store_update(w->r->store, AMP_ROUTE_KIND, amp_span_str(w->r->consumer), &in, record_fn,
                         w, &w->how, err) < 0)
        return -1;
    if (w->how == AMP_STORE_COMMITTED)
        at->n = amp_store_last_frame(w->r->store);
    return 0;
}

int amp_resent_take(struct router *r, struct job *j, bool *seen, struct amp_error *err)
{
    struct commit w = {.r = r, .job = j};
    struct amp_error e = {0};
    *seen = false;
    if (amp_keeper_commit(&j, 1, commit_fn, &w, &e) == 0) {
        *seen = w.how == AMP_STORE_REDELIVERED;
        return 0;
    }
    if (e.status == AMP_NO) { /* another message under its id */
        amp_route_job_refuse(j, "duplicate_msg_id", "another message of that id was sent again", "",
                             false);
        return 0;
    }
    if (err)
        *err = e;
    return -1;
}
