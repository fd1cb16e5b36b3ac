/* Checks answers and carries them out. */
#include "people/answer/offer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "base/words.h"
#include "message/delivery/sender/identity.h"
#include "message/protocol/compose/json.h"
#include "json/text.h"

#define RECORD_MAX (64u << 10)

const char *amp_channel_name(enum amp_channel c)
{
    AMP_WORDS(words, AMP_CHANNELS);
    return words[c];
}

/* ---- who ---- */

/* Whether the author may decide this question, and how many have to agree. 1: yes; 0: *why; -1:
 * failure. Only the login proves who answers; a typed name or one in an answer does not. */
static int author_check(struct amp_decider *d, const struct amp_offer *o,
                        const struct amp_question *q, struct amp_decided_by *by,
                        char person[AMP_PRINCIPAL_MAX], char principal[AMP_PRINCIPAL_MAX],
                        struct amp_error *err)
{
    const struct amp_decider_people *p = &d->people;
    const char *op = o->answer.op ? o->answer.op : "";
    char reason[64] = "", type[64] = "", risk[16] = "";
    AMP_BUF struct amp_buf mem = {0};
    struct amp_question_rec rec;

    amp_buf_init(&mem, AMP_QUESTION_BYTES);
    int found = amp_question_find(d->w.store, amp_span_str(q->key), &mem, &rec, err);
    if (found < 0)
        return -1;
    if (found) {
        amp_span_copy(rec.reason, reason, sizeof reason);
        amp_span_copy(rec.type, type, sizeof type);
        amp_span_copy(rec.risk, risk, sizeof risk);
    }
    const struct amp_matter matter = {
        .protocol = amp_protocol_name(q->protocol), .reason = reason, .type = type, .risk = risk};
    snprintf(principal, AMP_PRINCIPAL_MAX, "%s", o->principal ? o->principal : "");
    if (!*principal)
        snprintf(principal, AMP_PRINCIPAL_MAX, AMP_OPERATOR_ROLE "/%.100s", op);
    const struct amp_answerer who = {.name = op,
                                     .principal = principal,
                                     .key = o->key ? o->key : "",
                                     .login = p->login ? p->login : "",
                                     .by = o->how};
    if (o->how == AMP_KNOWN_BY_LOGIN && !p->others && strcmp(op, who.login) != 0) {
        amp_fail(err, AMP_NOPERM, permission_denied,
                 "the answer names the operator \"%.200s\", but the login is \"%s\" "
                 "(hitl.allow_operator in amp.json permits another name)",
                 op, who.login);
        return 0;
    }
    if (!amp_operators_may(p->operators, &matter, &who, person, err))
        return 0;
    by->person = person;
    by->principal = principal;
    by->approval = o->how == AMP_KNOWN_BY_POLICY ? (struct amp_quorum){1, true}
                                                 : amp_operators_need(p->operators, &matter);
    return 1;
}

/* ---- which question ---- */

int amp_offer_find(struct amp_decider *d, const char *name, struct amp_question *out,
                   struct amp_error *err)
{
    return amp_question_named(&d->hitl, name, out, err);
}

/* ---- answering ---- */

static void refusal_record(struct amp_decider *d, const struct amp_offer *o,
                           const struct amp_question *q, const struct amp_error *why)
{
    AMP_BUF struct amp_buf record = {0};
    const struct amp_line_place at = {
        .tool = d->opt.tool, .line = 1, .now_ms = o->now_ms, .file = amp_channel_name(o->channel)};
    const struct amp_finding f = {
        .severity = AMP_SEV_ERROR,
        .protocol = q->protocol,
        .type = AMP_SPAN("answer"),
        .id = amp_span_str(q->message ? q->id
                           : o->name  ? o->name
                                      : ""),
        .from = amp_span_str(o->answer.op),
        .key = amp_span_str(o->key),
        .code = why->code,
        .field = "",
        .pointer = "",
        .rule = "answer",
        .message = why->what,
        .found = "",
        .expected = "",
    };

    amp_buf_init(&record, RECORD_MAX);
    /* A record that cannot be written changes nothing: the answer is refused in any case. */
    if (amp_finding_record(&f, &at, &record, NULL) == 0)
        amp_store_error_log(d->w.store, amp_buf_span(&record), NULL);
}

/* Reads the action and, where the answer does not have them, the commit and note behind it. */
static int action_parse(const struct amp_question *q, char *line, struct amp_operator_answer *a,
                        struct amp_error *err)
{
    struct amp_operator_answer parsed;
    int64_t now = amp_now_ms();

    if (a->until_ms && strcasecmp(line, "defer") == 0) {
        if (a->until_ms <= now || a->until_ms - now > AMP_DEFER_MAX_MS)
            return amp_fail(err, AMP_DATAERR, bad_answer,
                            "the time of a deferral is not within the next 30 days");
        a->action = "defer";
        a->does = AMP_ACTION_DEFER;
        return 0;
    }
    if (!amp_answer_parse(q, line, &parsed))
        return amp_fail(err, AMP_DATAERR, bad_answer, "the answer is not %s", amp_answer_words(q));
    a->action = parsed.action;
    a->does = parsed.does;
    a->until_ms = parsed.until_ms;
    if (!a->note)
        a->note = parsed.note;
    if (!a->commit)
        a->commit = parsed.commit;
    return 0;
}

/* "modify {…}": the note of an answer that may change the payload is the changed payload. */
static int note_edits(const struct amp_question *q, struct amp_operator_answer *a,
                      struct amp_buf *patch, struct amp_error *err)
{
    struct amp_error why;
    const struct amp_action *action = amp_question_action(q, a->action);
    if (!action || !(action->is & AMP_ACTION_EDITS) || a->patch || a->payload || !a->note ||
        a->note[0] != '{')
        return 0;
    json_auto_t *j = amp_json_load(amp_span_str(a->note), &why);
    if (!j)
        return amp_fail(err, why.status, bad_answer, "%s {…}: %.300s", a->action, why.what);
    if (amp_base64_add(patch, amp_span_str(a->note), err) < 0 || amp_buf_add(patch, "", 1, err) < 0)
        return -1;
    a->payload = a->note;
    a->patch = patch->data;
    a->note = "";
    return 0;
}

static enum amp_offered offer_carry(struct amp_decider *d, const struct amp_offer *o,
                                    const struct amp_question *q, char *line, struct amp_error *err)
{
    AMP_BUF struct amp_buf patch = {0};
    struct amp_operator_answer a = o->answer;
    char person[AMP_PRINCIPAL_MAX], principal[AMP_PRINCIPAL_MAX];
    struct amp_decided_by by = {.channel = amp_channel_name(o->channel),
                                .method = amp_known_by_name(o->how),
                                .key = o->key,
                                .shown = o->shown,
                                .line = o->line};
    int may = author_check(d, o, q, &by, person, principal, err);

    if (may < 0)
        return AMP_OFFERED_FAILED;
    amp_buf_init(&patch, 2 * AMP_QUESTION_BYTES);
    if (!may || action_parse(q, line, &a, err) < 0 || note_edits(q, &a, &patch, err) < 0)
        return AMP_OFFERED_REFUSED;
    if (a.does == AMP_ACTION_DEFER) {
        if (amp_question_defer(&d->hitl, q, a.until_ms, a.op, a.note, err) == 0)
            return AMP_OFFERED_DEFERRED;
        return err->status == AMP_NO ? AMP_OFFERED_REFUSED : AMP_OFFERED_FAILED;
    }
    switch (amp_decider_decide(d, q, &a, &by, o->left, err)) {
    case AMP_DECIDED_OK:
        return AMP_OFFERED_DECIDED;
    case AMP_DECIDED_COUNTED:
        return AMP_OFFERED_COUNTED;
    case AMP_DECIDED_REFUSED:
        return AMP_OFFERED_REFUSED;
    case AMP_DECIDED_FAILED:
        return err->status == AMP_NO ? AMP_OFFERED_REFUSED : AMP_OFFERED_FAILED;
    }
    return AMP_OFFERED_FAILED;
}

enum amp_offered amp_offer_make(struct amp_decider *d, const struct amp_offer *o,
                                struct amp_error *err)
{
    struct amp_question found = {0};
    struct amp_question_swept swept = {0};
    struct amp_offer now = *o;
    enum amp_offered rc = AMP_OFFERED_REFUSED;
    char *line = strdup(o->answer.action ? o->answer.action : "");

    if (!line)
        return amp_fail_memory(err);
    if (!now.now_ms)
        now.now_ms = amp_now_ms();
    /* After its deadline a question is decided by its fallback, though no process applied it then.
     */
    if (amp_question_sweep(&d->hitl, now.now_ms, &swept, err) < 0) {
        free(line);
        return AMP_OFFERED_FAILED;
    }
    if (o->q || amp_offer_find(d, o->name, &found, err) == 0)
        rc = offer_carry(d, &now, o->q ? o->q : &found, line, err);
    else if (err->status != AMP_NO)
        rc = AMP_OFFERED_FAILED;
    if (rc == AMP_OFFERED_REFUSED)
        refusal_record(d, &now, o->q ? o->q : &found, err);
    amp_question_release(&found);
    free(line);
    return rc;
}
