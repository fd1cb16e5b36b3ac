/* Admits messages by tokens. */
#include "message/delivery/admit/tokens.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/base/id.h>

#include "base/codes.h"
#include "message/identity/access/token.h"
#include "message/protocol/routing.h"
#include "message/record/subject.h"

enum { LEVEL_TOKENS = 3 };

static int level = 1;
static const char *audience = "amp";

int amp_tokens_level_set(void *arg, const char *text, struct amp_error *err)
{
    level = text[0] - '0'; /* the schema allows 1 to 3 */
    return 0;
}

int amp_tokens_audience_set(void *arg, const char *text, struct amp_error *err)
{
    audience = text;
    return 0;
}

bool amp_tokens_are_needed(void)
{
    return level >= LEVEL_TOKENS;
}

/* ---- what was used ---- */

struct nonce {
    struct amp_span message, sum; /* the id and the digest of the message that used it */
    struct amp_span takers;       /* who handed it over: " name name " */
    int64_t due_ms;
};
static const struct amp_rec_field nonce_fields[] = {
    AMP_REC_EVER(TEXT, struct nonce, "message", message),
    AMP_REC_EVER(TEXT, struct nonce, "sum", sum),
    AMP_REC(TEXT, struct nonce, "takers", takers),
};
AMP_REC_TABLE(nonce_rec, "a used nonce", struct nonce, nonce_fields);

struct use {
    struct nonce now;
    const char *taker; /* NULL: it recognizes duplicates itself */
    struct amp_buf *takers;
};

/* Adds the taker. 1: there is none, 0: added, -1: it took the message before, or failure. */
static int taker_add(struct use *u, struct amp_span before, struct amp_error *err)
{
    if (!u->taker)
        return 1;
    if (amp_buf_fmt(u->takers, err, " %s ", u->taker) < 0)
        return -1;
    if (before.n > 0 && memmem(before.p, before.n, u->takers->data, u->takers->len))
        return amp_fail(err, AMP_NO, token_replayed,
                        "the same message with the same nonce was handed over before; a sender "
                        "that repeats it takes another nonce");
    if (amp_buf_add(u->takers, before.p, before.n, err) < 0)
        return -1;
    u->now.takers = amp_buf_span(u->takers);
    return 0;
}

static int nonce_use(void *rec, struct amp_subject_turn *t, struct amp_error *err)
{
    struct use *const *with = t->step->with;
    struct use *u = *with;
    struct nonce *was = rec;

    if (t->now->found && !amp_span_eq(was->sum, u->now.sum))
        return amp_fail(err, AMP_NO, token_replayed,
                        "the token's nonce was used before, by the message %.*s",
                        AMP_CLIP(was->message, 100));
    int rc = taker_add(u, was->takers, err);
    if (rc < 0 || (rc > 0 && t->now->found))
        return rc;
    *was = u->now;
    t->change->event = "USE";
    return 0;
}

static const char *const states[] = {"USED", NULL};
static const struct amp_subject nonces = {.kind = AMP_NONCE_KIND,
                                          .table = &nonce_rec,
                                          .states = states,
                                          .due = AMP_SUBJECT_AT(struct nonce, due_ms),
                                          .carry = nonce_use};

static int nonce_record(struct amp_store *s, const struct amp_view *v, const struct amp_pop *t,
                        const char *taker, struct amp_error *err)
{
    char sum[AMP_SHA256_MAX];
    AMP_BUF struct amp_buf takers = {.max = 1 << 14};
    amp_sha256_hex(v->message, sum);
    struct use u = {.now = {.message = v->id,
                            .sum = amp_span_str(sum),
                            .due_ms = t->exp_ms + AMP_IDENTITY_SKEW_MS},
                    .taker = taker,
                    .takers = &takers};
    struct use *with = &u;
    const struct amp_subject_step step = {
        .key = t->once ? AMP_KEY(AMP_NONCE_KIND, t->iss, t->jti)
                       : AMP_KEY(AMP_NONCE_KIND, t->iss, t->jti, v->proof.nonce),
        .with = &with};
    return amp_subject_step(&nonces, s, &step, NULL, NULL, NULL, err);
}

/* ---- admission ---- */

static int token_refused(struct amp_error *why, const char *code, const char *what)
{
    amp_fail_text(why, AMP_NO, code, "%s", what);
    return 0;
}

/* 1: the token is valid; 0: it is not; -1. */
static int token_verify(struct amp_identities *ids, const struct amp_view *v,
                        const struct amp_said *said, struct amp_buf *mem, struct amp_pop *t,
                        struct amp_error *why, struct amp_error *err)
{
    struct amp_identity issuer;
    const struct amp_pop_use use = {.aud = amp_span_str(audience),
                                    .sub = v->from,
                                    .key = amp_span_str(said->by.key),
                                    .now_ms = amp_now_ms(),
                                    .skew_ms = AMP_IDENTITY_SKEW_MS};
    if (amp_pop_read(v->proof.token, mem, t, why) < 0 ||
        amp_pop_check(amp_identities_verifier(ids), v->proof.token, t, &use, &issuer, why) < 0) {
        if (why->status == AMP_NO)
            return 0;
        *err = *why;
        return -1;
    }
    /* Otherwise every trusted agent could admit itself. */
    if (!issuer.local && !amp_identities_is_operator(ids, amp_span_str(issuer.key), t->iat_ms))
        return token_refused(why, AMP_CODE(token_untrusted),
                             "the token's issuer is not an operator");
    return 1;
}

int amp_tokens_admit(struct amp_identities *ids, struct amp_store *s, const struct amp_view *v,
                     bool trusted, const char *taker, struct amp_error *why, struct amp_error *err)
{
    struct amp_said said;
    struct amp_pop t;
    AMP_BUF struct amp_buf mem = {0};
    if (!amp_tokens_are_needed() || !amp_routing_of(v->protocol)->takes_tokens)
        return 1;
    if (!ids || !s)
        return amp_fail(err, AMP_CONFIG, token_unverifiable,
                        "rtp.level 3 needs a state directory and identities");
    int rc = amp_identities_refresh(ids, err);
    if (rc == 0)
        rc = amp_identities_who(ids, v, trusted, &said, why, err);
    if (rc <= 0 || said.how != AMP_SAID_SIGNED || said.by.local)
        return rc;
    if (v->proof.token.n == 0)
        return token_refused(why, AMP_CODE(token_missing),
                             "a message of an external agent needs a token");
    if (v->proof.nonce.n == 0 || v->proof.nonce.n > AMP_TOKEN_TEXT_MAX)
        return token_refused(why, AMP_CODE(token_missing),
                             "a token needs a nonce of 1 to 256 bytes beside it");
    amp_buf_init(&mem, AMP_TOKEN_MAX);
    rc = token_verify(ids, v, &said, &mem, &t, why, err);
    if (rc <= 0)
        return rc;
    if (nonce_record(s, v, &t, taker, why) == 0)
        return 1;
    if (why->status == AMP_NO)
        return 0;
    *err = *why;
    return -1;
}
