/* The record of a circuit breaker. */
#include "queue/conflict/breaker.h"

#include <stdio.h>
#include <string.h>

#include "json/record.h"

#define RECORD_MAX 8192

struct stored {
    int64_t failures, until_ms;
    struct amp_span why;
};
static const struct amp_rec_field fields[] = {
    AMP_REC_EVER(INT, struct stored, "failures", failures),
    AMP_REC(TIME, struct stored, "until", until_ms),
    AMP_REC(TEXT, struct stored, "why", why),
};
AMP_REC_TABLE(stored_rec, "a breaker", struct stored, fields);

static int now_read(const struct amp_store_rec *rec, struct amp_buf *mem,
                    struct amp_breaker_now *out, struct amp_error *err)
{
    struct stored r;
    int at = rec->found ? amp_fsm_state(&amp_breaker_fsm, rec->state) : AMP_BREAKER_CLOSED;

    *out = (struct amp_breaker_now){.state = AMP_BREAKER_CLOSED};
    if (!rec->found)
        return 0;
    if (at < 0)
        return amp_fail(err, AMP_DATAERR, "bad_record", "a breaker has an unknown state");
    if (amp_rec_parse(&stored_rec, rec->json, mem, &r, err) < 0)
        return -1;
    out->state = (uint8_t)at;
    out->failures = r.failures;
    out->until_ms = r.until_ms;
    amp_span_copy(r.why, out->why, sizeof out->why);
    return 0;
}

int amp_breaker_read(struct amp_store *s, const char *name, struct amp_breaker_now *out,
                     struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0};
    struct amp_store_rec rec;

    amp_buf_init(&mem, RECORD_MAX);
    return amp_store_get(s, AMP_KEY(AMP_BREAKER_KIND, amp_span_str(name)), &rec, err) < 0
               ? -1
               : now_read(&rec, &mem, out, err);
}

struct change {
    const struct amp_breaker *b;
    uint8_t event;
    const char *why;
    int64_t now_ms;
    struct amp_breaker_now now;
    bool starts;
    struct amp_buf mem, json;
};

static void now_apply(struct change *u, const struct amp_fsm_result *r)
{
    struct amp_breaker_now *n = &u->now;

    n->state = r->to;
    u->starts = r->effects & AMP_BREAKER_DO_START;
    if (r->effects & AMP_BREAKER_DO_COUNT) {
        n->failures++;
        snprintf(n->why, sizeof n->why, "%.255s", u->why);
    }
    if (r->effects & AMP_BREAKER_DO_PAUSE)
        n->until_ms = u->now_ms + (r->to == AMP_BREAKER_TRIAL ? u->b->limit_ms : u->b->pause_ms);
    if (r->effects & AMP_BREAKER_DO_RESET) {
        n->failures = n->until_ms = 0;
        n->why[0] = '\0';
    }
}

static int on_change(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                     struct amp_error *err)
{
    struct change *u = ctx;
    struct amp_fsm_result r;

    if (now_read(now, &u->mem, &u->now, err) < 0)
        return -1;
    const struct amp_breaker_now was = u->now;
    /* A clock that was set back does not make the pause longer. */
    bool due = u->now_ms >= was.until_ms ||
               was.until_ms - u->now_ms >
                   (was.state == AMP_BREAKER_TRIAL ? u->b->limit_ms : u->b->pause_ms);
    uint32_t facts = (was.failures + 1 >= u->b->most ? AMP_BREAKER_IF_SPENT : 0) |
                     (due ? AMP_BREAKER_IF_DUE : 0);
    if (amp_fsm_step(&amp_breaker_fsm, was.state, u->event, facts, &r, err) < 0)
        return -1;
    now_apply(u, &r);
    if (was.state == u->now.state && was.failures == u->now.failures &&
        was.until_ms == u->now.until_ms)
        return 1;
    const struct stored rec = {u->now.failures, u->now.until_ms, amp_span_str(u->now.why)};
    amp_buf_reset(&u->json);
    int rc = amp_rec_write(&stored_rec, &rec, &u->json, err);
    c->event = amp_breaker_fsm.events[u->event].name;
    c->to = amp_breaker_fsm.states[u->now.state].name;
    c->json = amp_buf_span(&u->json);
    c->actor = u->b->actor;
    return rc;
}

static int change_make(struct amp_store *s, struct change *u, struct amp_error *err)
{
    amp_buf_init(&u->mem, RECORD_MAX);
    amp_buf_init(&u->json, RECORD_MAX);
    int rc = amp_store_update(s, AMP_KEY(AMP_BREAKER_KIND, amp_span_str(u->b->name)), NULL,
                              on_change, u, NULL, err);
    amp_buf_release(&u->mem);
    amp_buf_release(&u->json);
    return rc;
}

int amp_breaker_try(struct amp_store *s, const struct amp_breaker *b, int64_t now_ms,
                    struct amp_breaker_now *now, struct amp_error *err)
{
    struct change u = {.b = b, .event = AMP_BREAKER_EV_TRY, .now_ms = now_ms};

    if (change_make(s, &u, err) < 0)
        return -1;
    *now = u.now;
    return u.starts;
}

int amp_breaker_end(struct amp_store *s, const struct amp_breaker *b, const char *why,
                    int64_t now_ms, struct amp_breaker_now *now, struct amp_error *err)
{
    struct change u = {.b = b,
                       .event = why ? AMP_BREAKER_EV_FAILURE : AMP_BREAKER_EV_SUCCESS,
                       .why = why,
                       .now_ms = now_ms};

    if (change_make(s, &u, err) < 0)
        return -1;
    *now = u.now;
    return 0;
}
