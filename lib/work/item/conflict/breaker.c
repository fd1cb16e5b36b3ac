/* The record of a circuit breaker. */
#include "work/item/conflict/breaker.h"

#include <stdio.h>
#include <string.h>

#include "message/record/subject.h"

static const struct amp_rec_field fields[] = {
    AMP_REC_EVER(INT, struct amp_breaker_now, "failures", failures),
    AMP_REC(TIME, struct amp_breaker_now, "until", until_ms),
    AMP_REC(CHARS, struct amp_breaker_now, "why", why),
};
AMP_REC_TABLE(now_rec, "a breaker", struct amp_breaker_now, fields);

struct change {
    const struct amp_breaker *b;
    const char *why;
    bool *starts;
};

static uint32_t facts_of(const void *rec, const struct amp_subject_turn *t)
{
    const struct amp_breaker *b = ((const struct change *)t->step->with)->b;
    const struct amp_breaker_now *n = rec;
    int64_t now_ms = t->step->now_ms;
    /* A clock that was set back does not make the pause longer. */
    bool due = now_ms >= n->until_ms ||
               n->until_ms - now_ms > (n->state == AMP_BREAKER_TRIAL ? b->limit_ms : b->pause_ms);

    return (n->failures + 1 >= b->most ? AMP_BREAKER_IF_SPENT : 0) | (due ? AMP_BREAKER_IF_DUE : 0);
}

static int breaker_carry(void *rec, struct amp_subject_turn *t, struct amp_error *err)
{
    const struct change *u = t->step->with;
    struct amp_breaker_now *n = rec;
    const int64_t failures = n->failures, until_ms = n->until_ms;

    (void)err;
    *u->starts = t->effects & AMP_BREAKER_DO_START;
    if (t->effects & AMP_BREAKER_DO_COUNT) {
        n->failures++;
        snprintf(n->why, sizeof n->why, "%.255s", u->why);
    }
    if (t->effects & AMP_BREAKER_DO_PAUSE)
        n->until_ms =
            t->step->now_ms + (n->state == AMP_BREAKER_TRIAL ? u->b->limit_ms : u->b->pause_ms);
    if (t->effects & AMP_BREAKER_DO_RESET) {
        n->failures = n->until_ms = 0;
        n->why[0] = '\0';
    }
    return t->from == n->state && failures == n->failures && until_ms == n->until_ms;
}

static const struct amp_subject breakers = {.kind = AMP_BREAKER_KIND,
                                            .table = &now_rec,
                                            .machine = &amp_breaker_fsm,
                                            .state = AMP_SUBJECT_AT(struct amp_breaker_now, state),
                                            .facts = facts_of,
                                            .carry = breaker_carry};

static struct amp_key key_of(const char *name)
{
    return AMP_KEY(breakers.kind, amp_span_str(name));
}

int amp_breaker_read(struct amp_store *s, const char *name, struct amp_breaker_now *out,
                     struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};

    return amp_subject_find(&breakers, s, key_of(name), &mem, out, err) < 0 ? -1 : 0;
}

/* 1: the command may be started. */
static int breaker_step(struct amp_store *s, const struct amp_breaker *b, uint8_t event,
                        const char *why, int64_t now_ms, struct amp_breaker_now *now,
                        struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    bool starts = false;
    const struct change u = {b, why, &starts};
    const struct amp_subject_step step = {
        .key = key_of(b->name), .event = event, .with = &u, .actor = b->actor, .now_ms = now_ms};

    return amp_subject_step(&breakers, s, &step, &mem, now, NULL, err) < 0 ? -1 : starts;
}

int amp_breaker_try(struct amp_store *s, const struct amp_breaker *b, int64_t now_ms,
                    struct amp_breaker_now *now, struct amp_error *err)
{
    return breaker_step(s, b, AMP_BREAKER_EV_TRY, NULL, now_ms, now, err);
}

int amp_breaker_end(struct amp_store *s, const struct amp_breaker *b, const char *why,
                    int64_t now_ms, struct amp_breaker_now *now, struct amp_error *err)
{
    uint8_t event = why ? AMP_BREAKER_EV_FAILURE : AMP_BREAKER_EV_SUCCESS;

    return breaker_step(s, b, event, why, now_ms, now, err) < 0 ? -1 : 0;
}
