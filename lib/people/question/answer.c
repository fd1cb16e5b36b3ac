/* Parses a person's answer and carries out the decision. */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <amp/base/clock.h>
#include <amp/base/num.h>

#include "base/codes.h"
#include "message/delivery/dead/dead.h"
#include "message/delivery/settle/answer.h"
#include "people/question/question.h"

static const char space[] = " \t\r\n";

const struct amp_action *amp_question_actions(const struct amp_question *q)
{
    const struct amp_question_terms *t = amp_question_terms(q);
    unsigned variant;
    return t->actions_of ? t->actions_of(q->message, &variant) : t->actions;
}

const struct amp_action *amp_question_action(const struct amp_question *q, const char *name)
{
    for (const struct amp_action *i = amp_question_actions(q); i->name; i++)
        if (strcmp(i->name, name) == 0)
            return i;
    return NULL;
}

static const char *form_of(const struct amp_question *q, const char *const form[2])
{
    const struct amp_question_terms *t = amp_question_terms(q);
    unsigned variant = 0;

    if (t->actions_of) {
        t->actions_of(q->message, &variant);
        return form[variant];
    }
    return form[q->about.kind == AMP_ABOUT_TASK && form[1]];
}

const char *amp_answer_words(const struct amp_question *q)
{
    return form_of(q, amp_question_terms(q)->words);
}

const char *amp_answer_form(const struct amp_question *q)
{
    return form_of(q, amp_question_terms(q)->form);
}

/* The words that people use for the actions of every protocol. */
static const struct {
    const char *word;
    unsigned is;
} peoples[] = {{"approve", AMP_ACTION_APPROVES}, {"yes", AMP_ACTION_APPROVES},
               {"y", AMP_ACTION_APPROVES},       {"ok", AMP_ACTION_APPROVES},
               {"reject", AMP_ACTION_DENIES},    {"no", AMP_ACTION_DENIES},
               {"redo", AMP_ACTION_REDOES},      {0}};

static bool line_begins(const char *line, const char *word)
{
    size_t n = strlen(word);
    return n && strncasecmp(line, word, n) == 0 && (!line[n] || strchr(space, line[n]));
}

/* Uses the action if the line begins with it; the longest such action wins. */
static void action_fit(const char *line, const char *name, enum amp_action_does does,
                       struct amp_operator_answer *out)
{
    if ((out->action && strlen(name) <= strlen(out->action)) || !line_begins(line, name))
        return;
    out->action = name;
    out->does = does;
}

/* The first action of a kind, or NULL. */
static const struct amp_action *action_which(const struct amp_question *q, unsigned is)
{
    for (const struct amp_action *i = amp_question_actions(q); i->name; i++)
        if (i->is & is)
            return i;
    return NULL;
}

/* Finds the action at the start of the line: a word of the protocol, a proposed action, else a word
 * of people. Returns the length of the word, 0: none. */
static size_t action_find(const struct amp_question *q, const char *line,
                          struct amp_operator_answer *out)
{
    const struct amp_question_terms *t = amp_question_terms(q);
    const struct amp_action *a;
    const char *own;

    for (const struct amp_action *i = amp_question_actions(q); i->name; i++)
        action_fit(line, i->name, i->does, out);
    for (size_t i = 0; t->proposed && (own = t->proposed(q->message, i)); i++)
        action_fit(line, own, AMP_ACTION_PLAIN, out);
    if (out->action)
        return strlen(out->action);
    for (size_t i = 0; peoples[i].word; i++)
        if (line_begins(line, peoples[i].word) && (a = action_which(q, peoples[i].is))) {
            out->action = a->name;
            out->does = a->does;
            return strlen(peoples[i].word);
        }
    return 0;
}

const struct amp_action *amp_answer_action(const struct amp_question *q, const char *line)
{
    struct amp_operator_answer a = {0};

    return action_find(q, line + strspn(line, space), &a) ? amp_question_action(q, a.action) : NULL;
}

/* "17:30", of this day or else of the next, in the local time zone; 0: it is no such time. */
static int64_t clock_time(struct amp_span word, int64_t now_ms)
{
    time_t now = (time_t)(now_ms / 1000), at = now;
    int64_t hour, minute;
    struct amp_error no;
    struct tm t;

    if (word.n != 5 || word.p[2] != ':' ||
        amp_num_parse((struct amp_span){word.p, 2}, 0, 23, &hour, &no) < 0 ||
        amp_num_parse((struct amp_span){word.p + 3, 2}, 0, 59, &minute, &no) < 0)
        return 0;
    for (int day = 0; day < 2 && at <= now; day++) {
        if (!localtime_r(&now, &t))
            return 0;
        t.tm_mday += day;
        t.tm_hour = (int)hour;
        t.tm_min = (int)minute;
        t.tm_sec = 0;
        t.tm_isdst = -1;
        at = mktime(&t);
    }
    return (int64_t)at * 1000;
}

/* The time behind "defer"; 0: there is none, or it is out of range. */
static int64_t defer_time(struct amp_span word)
{
    int64_t now = amp_now_ms(), ms = clock_time(word, now);
    struct amp_error no;

    if (ms)
        return ms;

    if (amp_time_parse(word, &ms))
        return ms > now && ms - now <= AMP_DEFER_MAX_MS ? ms : 0;
    return amp_num_duration(word, 1, AMP_DEFER_MAX_MS, &ms, &no) < 0 ? 0 : now + ms;
}

/* Reads "defer TIME". Without a time it may be an action of the protocol; not with one that is
 * malformed or out of range. */
static char *defer_parse(char *p, struct amp_operator_answer *a, bool *malformed)
{
    size_t n = strlen("defer");

    if (strncasecmp(p, "defer", n) || !p[n] || !strchr(space, p[n]))
        return NULL;
    p += n + strspn(p + n, space);
    struct amp_span word = {p, strcspn(p, space)};
    if (!word.n || !(a->until_ms = defer_time(word))) {
        *malformed = *p >= '0' && *p <= '9';
        return NULL;
    }
    a->action = "defer";
    a->does = AMP_ACTION_DEFER;
    return p + word.n;
}

bool amp_answer_parse(const struct amp_question *q, char *line, struct amp_operator_answer *out)
{
    struct amp_operator_answer a = {0};
    char *p = line + strspn(line, space);

    bool malformed = false;
    char *rest = defer_parse(p, &a, &malformed);
    if (malformed)
        return false;
    p = rest ? rest : p + action_find(q, p, &a);
    if (!a.action)
        return false;
    p += strspn(p, space);
    if (a.does == AMP_ACTION_ROLLBACK) {
        a.commit = p;
        p += strcspn(p, space);
        if (*p)
            *p++ = 0;
        p += strspn(p, space);
    }
    for (size_t len = strlen(p); len && strchr(space, p[len - 1]);)
        p[--len] = 0;
    a.note = p;
    *out = a;
    return true;
}

static int letter_fn(void *ctx, struct amp_span dead_id, const struct amp_dead_letter *l,
                     struct amp_span json, struct amp_error *err)
{
    *(bool *)ctx = l->open;
    return 0;
}

/* Finds the open dead letter of the question's message. Refused: there is none. */
static enum amp_decided letter_find(struct amp_hitl *h, const struct amp_question *q,
                                    struct amp_error *err)
{
    bool open = false;
    struct amp_error e;

    if (q->about.kind == AMP_ABOUT_MESSAGE &&
        amp_dead_find(h->store, amp_span_str(q->about.id), letter_fn, &open, &e) < 0 &&
        e.status != AMP_NO) {
        *err = e;
        return AMP_DECIDED_FAILED;
    }
    if (open)
        return AMP_DECIDED_OK;
    amp_fail(err, AMP_DATAERR, no_letter,
             "redispatch requeues a dead letter, but %s has none; send the message again", q->name);
    return AMP_DECIDED_REFUSED;
}

/* Requeues the message here, because work of another protocol has no coordinator. */
static int letter_requeue(struct amp_hitl *h, const struct amp_question *q, int64_t now,
                          struct amp_error *err)
{
    struct amp_error e = {0};

    if (amp_dead_requeue(h->store, amp_span_str(q->about.id), 0, h->actor, now, &e) == 0)
        return 0;
    if (e.status != AMP_NO) {
        *err = e;
        return -1;
    }
    h->note("%s: not sent again: %s", q->name, e.what);
    return 0;
}

/* Digests what was answered, without the note. */
static int answer_digest(const struct amp_operator_answer *a, char out[AMP_KEY_NAME_MAX],
                         struct amp_error *err)
{
    const struct amp_span parts[] = {amp_span_str(a->action), amp_span_str(a->commit),
                                     amp_span_str(a->patch), amp_span_str(a->payload)};
    return amp_key_digest(parts, sizeof parts / sizeof parts[0], out, err);
}

static bool action_denies(const struct amp_question *q, const char *action)
{
    const struct amp_action *i = amp_question_action(q, action);
    return i && (i->is & AMP_ACTION_DENIES);
}

/* Composes the decision and signs it as the operator. */
static int decision_compose(struct amp_hitl *h, const struct amp_question_terms *t,
                            const struct amp_asked *of, const struct amp_operator_answer *a,
                            struct amp_buf *line, char key[AMP_FINGERPRINT_MAX],
                            struct amp_error *err)
{
    AMP_BUF struct amp_buf bare = {0};

    amp_buf_init(&bare, AMP_QUESTION_BYTES);
    if (t->decide(of, a, &bare, err) < 0)
        return -1;
    const struct amp_span text = {bare.data, bare.len - 1};
    *key = 0;
    return h->sign ? h->sign(h->ctx, a->op, text, line, key, err)
                   : amp_buf_add(line, text.p, text.n, err);
}

/* Does what follows from a decision, beside its line. */
static int decision_settle(struct amp_hitl *h, const struct amp_question *q, bool requeue,
                           int64_t now, struct amp_error *err)
{
    if (!amp_question_terms(q)->carried_out_by) /* it is the answer and fulfills the message */
        return amp_settle_known(h->store, amp_span_str(q->id), AMP_STAGE_FULFILLED, AMP_HITL_ROLE,
                                AMP_SPAN(""), now, err);
    return requeue ? letter_requeue(h, q, now, err) : 0;
}

enum amp_decided amp_question_decide(struct amp_hitl *h, const struct amp_question *q,
                                     const struct amp_operator_answer *a,
                                     const struct amp_decided_by *by, uint32_t *left,
                                     struct amp_error *err)
{
    const struct amp_question_terms *t = amp_question_terms(q);
    AMP_BUF struct amp_buf sent = {0};
    char id[AMP_QUESTION_KEY_MAX + 16], key[AMP_FINGERPRINT_MAX], digest[AMP_KEY_NAME_MAX];
    char sender[AMP_PRINCIPAL_MAX];
    struct amp_asked of;
    bool requeue = a->does == AMP_ACTION_REQUEUE && q->about.kind != AMP_ABOUT_TASK;
    enum amp_decided may = requeue ? letter_find(h, q, err) : AMP_DECIDED_OK;

    if (may != AMP_DECIDED_OK)
        return may;
    amp_buf_init(&sent, 2 * AMP_QUESTION_BYTES);
    json_auto_t *request = NULL;
    if (amp_question_asked(h, q, amp_question_decider(h, q->protocol, a->op, sender), &of, err) <
            0 ||
        amp_question_request(h, q, &request, err) < 0)
        return AMP_DECIDED_FAILED;
    of.request = request;
    if (decision_compose(h, t, &of, a, &sent, key, err) < 0 || answer_digest(a, digest, err) < 0)
        return err->status == AMP_DATAERR ? AMP_DECIDED_REFUSED : AMP_DECIDED_FAILED;
    snprintf(id, sizeof id, "decision/%s", q->key);
    const struct amp_span proof = amp_span_str(by->key && *by->key ? by->key : key);
    const struct amp_vote vote = {
        .person = amp_span_str(by->person ? by->person : a->op),
        .principal = amp_span_str(by->principal),
        .key = proof,
        .by = amp_span_str(by->method),
        .channel = amp_span_str(by->channel),
        .shown = amp_span_str(by->shown),
        .action = amp_span_str(a->action),
        .note = amp_span_str(a->note),
        .digest = amp_span_str(digest),
        .line = amp_buf_span(&sent),
        .at_ms = of.now_ms,
        .against = action_denies(q, a->action),
    };
    struct amp_question_update u = {
        .event = a->policy ? AMP_ESC_EV_EXPIRE : AMP_ESC_EV_DECIDE,
        .facts = a->policy ? AMP_ESC_IF_FALLBACK : 0,
        .unreachable = by->unreachable,
        .now_ms = a->policy ? by->due_ms : of.now_ms,
        .set = {.decision = amp_span_str(a->action),
                .operator= amp_span_str(a->op),
                .decided_ms = of.now_ms,
                .note = amp_span_str(a->note),
                .patch = amp_span_str(a->patch),
                .line = t->carried_out_by ? amp_buf_span(&sent) : AMP_SPAN(""),
                .channel = amp_span_str(by->channel),
                .method = amp_span_str(by->method),
                .key = proof,
                .shown = amp_span_str(by->shown),
                .policy = amp_span_str(a->policy),
                .because = amp_span_str(a->because)},
        .emit = {amp_span_str(id), amp_buf_span(&sent), false},
        .vote = &vote,
        .approval = by->approval,
    };
    if (amp_question_step(h, q->key, &u, err) < 0)
        return AMP_DECIDED_FAILED;
    if (!(u.effects & AMP_ESC_DO_EMIT)) {
        if (left)
            *left = u.count.need - u.count.have;
        return AMP_DECIDED_COUNTED;
    }
    if (by->line && (amp_buf_add(by->line, sent.data, sent.len, err) < 0 ||
                     amp_buf_str(by->line, "\n", err) < 0))
        return AMP_DECIDED_FAILED;
    return decision_settle(h, q, requeue, of.now_ms, err) < 0 ? AMP_DECIDED_FAILED : AMP_DECIDED_OK;
}
