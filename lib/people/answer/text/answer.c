/* Reads answers, finds out who gave them, and offers them. */
#include "people/answer/text/answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <amp/base/clock.h>
#include <amp/base/num.h>

#include "base/codes.h"
#include "base/words.h"
#include "message/delivery/sender/identity.h"
#include "message/protocol/compose/json.h"
#include "people/answer/text/signed.h"
#include "people/answer/text/told.h"

#define RECORD_MAX  (64u << 10)
#define FORM_VALUES 65536 /* bytes of a note */
#define UNTIL_MOST  (365LL * 86400000)

static const char blanks[] = " \t\r\n";

int amp_token_answers_find(const char *word)
{
    static const char *const words[] = {"all", "deny_and_defer", "none", NULL};

    return amp_word_find(words, amp_span_str(word));
}

bool amp_token_answers_allow(enum amp_token_answers limit, const struct amp_action *a)
{
    if (limit == AMP_TOKEN_ANSWERS_DENY_AND_DEFER)
        return a && a->is & (AMP_ACTION_DENIES | AMP_ACTION_DEFERS);
    return limit == AMP_TOKEN_ANSWERS_ALL;
}

void amp_answer_refused(struct amp_decider *d, const struct amp_answer_from *from,
                        const struct amp_answer_about *about, const struct amp_error *why)
{
    AMP_BUF struct amp_buf record = {0};
    const struct amp_line_place at = {
        .tool = d->opt.tool, .file = from->where, .line = 1, .now_ms = amp_now_ms()};
    const struct amp_finding f = {.severity = AMP_SEV_ERROR,
                                  .type = AMP_SPAN("answer"),
                                  .id = amp_span_str(about->question),
                                  .from = amp_span_str(about->op),
                                  .key = AMP_SPAN(""),
                                  .code = why->code,
                                  .field = "",
                                  .pointer = "",
                                  .rule = amp_channel_name(from->channel),
                                  .message = why->what,
                                  .found = "",
                                  .expected = ""};

    amp_buf_init(&record, RECORD_MAX);
    /* A record that cannot be written changes nothing: the answer is refused in any case. */
    if (amp_finding_record(&f, &at, &record, NULL) == 0)
        amp_store_error_log(d->w.store, amp_buf_span(&record), NULL);
    d->opt.note("an answer from %s is refused: %s: %s", from->where, why->code, why->what);
}

/* ---- reading ---- */

static int answer_fail(struct amp_error *err, const char *what)
{
    return amp_fail(err, AMP_DATAERR, bad_answer, "the answer: %s", what);
}

static struct amp_span trimmed(struct amp_span s)
{
    while (s.n && memchr(blanks, s.p[0], sizeof blanks - 1))
        s = (struct amp_span){s.p + 1, s.n - 1};
    while (s.n && memchr(blanks, s.p[s.n - 1], sizeof blanks - 1))
        s.n--;
    return s;
}

/* Reads "name: value" lines. A name that is there twice is refused, because the person cannot have
 * meant both. */
static json_t *form_read(struct amp_span text, struct amp_error *err)
{
    static const char *const names[] = {"question", "answer", "note",   "commit",
                                        "until",    "token",  "digest", NULL};
    json_auto_t *j = json_object();

    if (!j) {
        amp_fail_memory(err);
        return NULL;
    }
    while (text.n) {
        const char *lf = memchr(text.p, '\n', text.n);
        struct amp_span line = {text.p, lf ? (size_t)(lf - text.p) : text.n};
        text = (struct amp_span){text.p + line.n + (lf != NULL), text.n - line.n - (lf != NULL)};
        line = trimmed(line);
        if (line.n == 0 || line.p[0] == '#' || line.p[0] == '|')
            continue;
        const char *colon = memchr(line.p, ':', line.n);
        struct amp_span name = {line.p, colon ? (size_t)(colon - line.p) : line.n};
        int i = amp_word_find(names, name);
        if (!colon || i < 0) {
            answer_fail(err,
                        "a line is not question, answer, note, commit, until, token or digest");
            return NULL;
        }
        struct amp_span value = trimmed((struct amp_span){colon + 1, line.n - name.n - 1});
        if (value.n == 0)
            continue;
        if (json_object_get(j, names[i])) {
            answer_fail(err, "a line is there twice");
            return NULL;
        }
        if (value.n > FORM_VALUES ||
            json_object_set_new(j, names[i], json_stringn(value.p, value.n)) < 0) {
            answer_fail(err, "a line is too long, or not UTF-8");
            return NULL;
        }
    }
    return json_incref(j);
}

/* An answer with its proof. */
struct given {
    json_t *j;
    bool is_signed;
    struct amp_identity by;
    const char *token, *question, *action, *note, *commit, *patch, *digest;
    char *payload; /* owned */
    int64_t until_ms;
};

static void given_release(struct given *g)
{
    json_decref(g->j);
    free(g->payload);
}

static const char *member(const json_t *j, const char *a, const char *b)
{
    const char *v = json_string_value(json_object_get(j, a));

    return v || !b ? v : json_string_value(json_object_get(j, b));
}

/* A member with another name may be one that was misspelled, such as the question. */
static int members_check(const json_t *j, struct amp_error *err)
{
    static const char *const names[] = {
        "token",  "question",  "invocation_id", "answer", "decision", "note", "rationale",
        "commit", "patch_b64", "payload",       "until",  "digest",   NULL};
    const char *key;
    json_t *v;

    json_object_foreach ((json_t *)(uintptr_t)j, key, v)
        if (amp_word_find(names, amp_span_str(key)) < 0)
            return answer_fail(err, "it has an unknown member");
    return json_is_object(j) ? 0 : answer_fail(err, "not an object");
}

static int given_read(struct amp_decider *d, struct amp_span text, int64_t now_ms, struct given *g,
                      struct amp_error *err)
{
    if (text.n > AMP_ANSWER_TEXT_MAX || memchr(text.p ? text.p : "", '\0', text.n))
        return answer_fail(err, "too long, or with a NUL");
    int rc = amp_signed_answer_read(d->opt.ids, text, now_ms, &g->j, &g->by, err);
    if (rc < 0)
        return -1;
    g->is_signed = rc > 0;
    text = trimmed(text);
    if (!rc)
        g->j = text.n && text.p[0] == '{' ? amp_json_load(text, err) : form_read(text, err);
    if (!g->j)
        return err->status == AMP_TEMPFAIL ? -1 : answer_fail(err, "neither JSON nor a form");
    if (!g->is_signed && members_check(g->j, err) < 0)
        return -1;
    g->token = g->is_signed ? NULL : member(g->j, "token", NULL);
    g->question = member(g->j, "question", "invocation_id");
    g->action = member(g->j, g->is_signed ? "action" : "answer", "decision");
    g->note = member(g->j, "note", "rationale");
    g->commit = member(g->j, "commit", NULL);
    g->digest = member(g->j, "digest", NULL);
    g->patch = member(g->j, "patch_b64", NULL);
    const json_t *payload = json_object_get(g->j, "payload");
    if (json_is_object(payload) && !(g->payload = json_dumps(payload, JSON_COMPACT)))
        return amp_fail_memory(err);
    const char *until = member(g->j, "until", NULL);
    if (until && !amp_time_parse(amp_span_str(until), &g->until_ms)) {
        if (amp_num_duration(amp_span_str(until), 0, UNTIL_MOST, &g->until_ms, NULL) < 0)
            return answer_fail(err, "until is neither a time nor a duration");
        g->until_ms += now_ms;
    }
    return g->action && g->action[strspn(g->action, blanks)] ? 0 : answer_fail(err, "it is empty");
}

/* ---- who ---- */

/* The operator's name in a principal: "ann" of operator/ann. */
static const char *operator_of(const char *principal)
{
    static const char role[] = AMP_OPERATOR_ROLE "/";

    return strncmp(principal, role, sizeof role - 1) == 0 ? principal + sizeof role - 1 : principal;
}

struct proof {
    enum amp_known_by how;
    enum amp_channel channel;
    const char *op, *key;
    struct amp_answer_token token; /* also of a signed answer, which is used once */
    char once[AMP_FINGERPRINT_MAX + 80];
};

/* The question's name is the answer's own. */
static int signed_author(struct amp_decider *d, const struct given *g, int64_t now_ms,
                         struct proof *p, struct amp_error *err)
{
    struct amp_answer_token *t = &p->token;
    const char *nonce = amp_json_str(g->j, "nonce");

    if (!amp_identities_is_operator(d->opt.ids, amp_span_str(g->by.key), now_ms))
        return amp_fail(err, AMP_NOPERM, not_operator, "the key of %s is not an operator's",
                        g->by.principal);
    if (!amp_time_parse(amp_span_str(amp_json_str(g->j, "expires")), &t->expires_ms) ||
        !amp_span_copy(amp_span_str(g->question), t->question, sizeof t->question) ||
        strlen(nonce) > 64)
        return answer_fail(err, "its question, expiry or nonce is malformed");
    snprintf(t->recipient, sizeof t->recipient, "signed");
    snprintf(t->person, sizeof t->person, "%s", operator_of(g->by.principal));
    snprintf(p->once, sizeof p->once, "%s %s", g->by.key, nonce);
    p->how = AMP_KNOWN_BY_KEY;
    p->channel = AMP_CHANNEL_SIGNED;
    p->key = g->by.key;
    p->op = t->person;
    return 0;
}

static int token_author(struct amp_decider *d, const struct given *g,
                        const struct amp_answer_from *from, int64_t now_ms, struct proof *p,
                        struct amp_error *err)
{
    struct amp_answer_token *t = &p->token;

    if (amp_answer_token_find(d->w.store, amp_span_str(g->token), now_ms, t, err) < 0)
        return -1;
    if ((g->question && strcmp(g->question, t->question) != 0) ||
        (from->recipient && strcmp(from->recipient, t->recipient) != 0))
        return amp_fail(err, AMP_NO, token_mismatch,
                        "the token is for another question or another recipient");
    p->how = AMP_KNOWN_BY_TOKEN;
    p->channel = from->channel;
    p->op = t->person;
    return 0;
}

/* Finds out who answers, without using up the proof. */
static int author_find(struct amp_decider *d, const struct given *g,
                       const struct amp_answer_from *from, int64_t now_ms, struct proof *p,
                       struct amp_error *err)
{
    *p = (struct proof){0};
    if (g->is_signed)
        return signed_author(d, g, now_ms, p, err);
    if (g->token)
        return token_author(d, g, from, now_ms, p, err);
    if (!from->login)
        return amp_fail(err, AMP_NOPERM, not_proven,
                        "an answer from here needs a token or a signature");
    if (!g->question)
        return answer_fail(err, "it names no question");
    p->how = AMP_KNOWN_BY_LOGIN;
    p->channel = from->channel;
    p->op = from->login;
    return 0;
}

/* Uses the proof up, so that one of several copies of an answer goes on. */
static int proof_use(struct amp_decider *d, const struct given *g, int64_t now_ms, struct proof *p,
                     struct amp_error *err)
{
    struct amp_answer_token t;

    if (g->is_signed)
        return amp_answer_text_use(d->w.store, amp_span_str(p->once), &p->token, d->opt.consumer,
                                   err);
    return g->token ? amp_answer_token_use(d->w.store, amp_span_str(g->token), now_ms,
                                           d->opt.consumer, &t, err)
                    : 0;
}

/* The answer is recorded: the proof stays used, also if this fails, as the question's record shows.
 */
static void proof_done(struct amp_decider *d, const struct given *g, const struct proof *p)
{
    struct amp_error err;
    int rc = 0;

    if (g->is_signed)
        rc = amp_answer_text_done(d->w.store, amp_span_str(p->once), d->opt.consumer, &err);
    else if (g->token)
        rc = amp_answer_token_done(d->w.store, amp_span_str(g->token), d->opt.consumer, &err);
    if (rc < 0)
        d->opt.note("the use of an answer's proof is not recorded: %s", err.what);
}

/* Makes the proof usable again: the answer was refused and has changed nothing. */
static void proof_return(struct amp_decider *d, const struct given *g, const struct proof *p)
{
    struct amp_error err;
    int rc = 0;

    if (g->is_signed)
        rc = amp_answer_text_return(d->w.store, amp_span_str(p->once), d->opt.consumer, &err);
    else if (g->token)
        rc = amp_answer_token_return(d->w.store, amp_span_str(g->token), d->opt.consumer, &err);
    if (rc < 0)
        d->opt.note("the token stays used: %s", err.what);
}

/* ---- offering ---- */

/* Checks what the answer must fit beside its author. */
static int answer_check(const struct given *g, const struct amp_answer_from *from,
                        const struct proof *p, const struct amp_question *q, const char *digest,
                        struct amp_error *err)
{
    if (g->digest && strcmp(g->digest, digest) != 0)
        return amp_fail(err, AMP_NO, digest_mismatch,
                        "the answer is to a question with another content");
    if (p->how == AMP_KNOWN_BY_TOKEN &&
        !amp_token_answers_allow(from->tokens, amp_answer_action(q, g->action)))
        return amp_fail(err, AMP_NOPERM, token_not_allowed,
                        "hitl.token_answers does not allow this answer with a token: use the "
                        "terminal, or sign it (hitl-prompt sign)");
    return 0;
}

static bool is_refusal(const struct amp_error *err)
{
    return err->status == AMP_NO || err->status == AMP_NOPERM || err->status == AMP_DATAERR;
}

/* Offers an answer whose proof is used. */
static enum amp_offered proven_offer(struct amp_decider *d, const struct given *g,
                                     const struct amp_answer_from *from, const struct proof *p,
                                     int64_t now_ms, bool *recorded, struct amp_error *err)
{
    struct amp_question q = {0};
    char digest[AMP_QUESTION_DIGEST_MAX], shown[AMP_SHOWN_MAX] = "";
    const char *name = *p->token.question ? p->token.question : g->question;
    enum amp_offered rc = AMP_OFFERED_FAILED;

    if (amp_offer_find(d, name, &q, err) < 0 || amp_question_digest(&q, digest, err) < 0 ||
        answer_check(g, from, p, &q, digest, err) < 0 ||
        (!g->is_signed &&
         amp_told_shown(d->w.store, q.key, g->token ? p->token.recipient : from->where, shown,
                        err) < 0)) {
        rc = is_refusal(err) ? AMP_OFFERED_REFUSED : AMP_OFFERED_FAILED;
    } else {
        const struct amp_offer offer = {.q = &q,
                                        .answer = {.action = g->action,
                                                   .note = g->note,
                                                   .commit = g->commit,
                                                   .patch = g->patch,
                                                   .payload = g->payload,
                                                   .until_ms = g->until_ms,
                                                   .op = p->op},
                                        .how = p->how,
                                        .key = p->key,
                                        .principal = g->is_signed ? g->by.principal : NULL,
                                        .channel = p->channel,
                                        .shown = *shown ? shown : digest,
                                        .left = from->left,
                                        .line = from->line,
                                        .now_ms = now_ms};
        rc = amp_offer_make(d, &offer, err);
        *recorded = true;
    }
    amp_question_release(&q);
    return rc;
}

static enum amp_offered given_offer(struct amp_decider *d, const struct given *g,
                                    const struct amp_answer_from *from, int64_t now_ms,
                                    struct amp_answer_about *about, struct amp_error *err)
{
    struct proof p;
    bool recorded = false;
    enum amp_offered rc = AMP_OFFERED_FAILED;

    AMP_CLOSE int lock = -1;

    if ((g->is_signed || g->token) && amp_answer_lock(amp_store_dir(d->w.store), &lock, err) < 0)
        return AMP_OFFERED_FAILED;
    snprintf(about->action, sizeof about->action, "%.*s", (int)strcspn(g->action, blanks),
             g->action);
    amp_span_copy(amp_span_str(g->question), about->question, sizeof about->question);
    if (author_find(d, g, from, now_ms, &p, err) == 0) {
        snprintf(about->op, sizeof about->op, "%s", p.op);
        if (*p.token.question)
            memcpy(about->question, p.token.question, sizeof p.token.question);
        /* Before anything else, so that a replay is recognized also after the question is closed.
         */
        if (proof_use(d, g, now_ms, &p, err) == 0) {
            rc = proven_offer(d, g, from, &p, now_ms, &recorded, err);
            if (rc == AMP_OFFERED_REFUSED || rc == AMP_OFFERED_FAILED)
                proof_return(d, g, &p);
            else
                proof_done(d, g, &p);
        }
    }
    if (rc == AMP_OFFERED_FAILED && is_refusal(err))
        rc = AMP_OFFERED_REFUSED;
    if (rc == AMP_OFFERED_REFUSED && recorded)
        d->opt.note("an answer from %s is refused: %s: %s", from->where, err->code, err->what);
    else if (rc == AMP_OFFERED_REFUSED)
        amp_answer_refused(d, from, about, err);
    return rc;
}

enum amp_offered amp_answer_take(struct amp_decider *d, struct amp_span text,
                                 const struct amp_answer_from *from, struct amp_answer_about *about,
                                 struct amp_error *err)
{
    struct given g = {0};
    int64_t now = from->now_ms ? from->now_ms : amp_now_ms();
    enum amp_offered rc;

    *about = (struct amp_answer_about){0};
    *err = (struct amp_error){0};
    if (given_read(d, text, now, &g, err) == 0) {
        rc = given_offer(d, &g, from, now, about, err);
    } else {
        rc = is_refusal(err) ? AMP_OFFERED_REFUSED : AMP_OFFERED_FAILED;
        if (rc == AMP_OFFERED_REFUSED)
            amp_answer_refused(d, from, about, err);
    }
    given_release(&g);
    return rc;
}
