/* hitl-prompt list: the open questions, the most severe and oldest first. */
#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/json/writer.h>

#include "cli/list.h"
#include "hitl.h"
#include "message/pause/pause.h"
#include "people/answer/offer.h"
#include "json/record.h"

static const char *protocol, *reason, *task, *severity;

static const struct amp_opt list_opts[] = {
    AMP_OPT_JSON("print one JSON object per question"),
    {0, "protocol", AMP_OPT_STRING, &protocol, "NAME", "only questions of this protocol"},
    {0, "reason", AMP_OPT_STRING, &reason, "REASON", "only questions with this reason"},
    {0, "severity", AMP_OPT_STRING, &severity, "WORD", "only questions of this severity"},
    {0, "task", AMP_OPT_STRING, &task, "TASK", "only questions about this task", .values = "task"},
    AMP_OPT_END,
};

static bool is_listed(const struct amp_question *q)
{
    return (!protocol || strcmp(protocol, amp_protocol_name(q->protocol)) == 0) &&
           (!reason || strcmp(reason, q->reason) == 0) &&
           (!severity || strcmp(severity, q->severity) == 0) &&
           (!task || strcmp(task, q->about.task) == 0);
}

static void actions_put(const void *row, const char *key, struct amp_jw *w)
{
    amp_jw_member_open(w, key, '[');
    for (const struct amp_action *a = amp_question_actions(row); a->name; a++)
        amp_jw_str(w, amp_span_str(a->name));
    amp_jw_close(w, ']');
}

static void proposed_put(const void *row, const char *key, struct amp_jw *w)
{
    const struct amp_question *q = row;
    const struct amp_question_terms *t = amp_question_terms(q);
    const char *own;

    amp_jw_member_open(w, key, '[');
    for (size_t i = 0; t->proposed && (own = t->proposed(q->message, i)); i++)
        if (*own)
            amp_jw_str(w, amp_span_str(own));
    amp_jw_close(w, ']');
}

#define EVER(form, key, head, member) AMP_COLUMN_EVER(form, struct question_row, key, head, member)
#define SOME(form, key, head, member) AMP_COLUMN(form, struct question_row, key, head, member)
const struct amp_column question_columns[] = {
    EVER(CHARS, "key", NULL, q.key),
    EVER(CHARS, "id", "ID", q.id),
    EVER(CSTR, "protocol", "PROTOCOL", protocol),
    SOME(CHARS, "severity", "SEVERITY", q.severity),
    SOME(CSTR, NULL, "REASON", reason),
    EVER(AGE, "arrived", "AGE", q.arrived_ms),
    SOME(LEFT, "deadline", "DEADLINE", q.deadline_ms),
    AMP_COLUMN_STATE(struct question_row, "state", "STATE", q.state, &amp_escalation_fsm),
    EVER(CHARS, NULL, "ABOUT", q.name),
    EVER(CHARS, NULL, "ANSWERS", answers),
    EVER(CSTR, "invocation", NULL, invocation),
    SOME(CHARS, "task", NULL, q.about.task),
    SOME(CHARS, "about", NULL, q.about.id),
    SOME(CHARS, "reason", NULL, q.reason),
    SOME(CHARS, "why", NULL, q.why),
    SOME(CHARS, "risk", NULL, q.risk),
    EVER(CSTR, "fallback", NULL, fallback),
    SOME(INT, "extensions", NULL, q.extensions),
    SOME(TIME, "until", NULL, q.until_ms),
    SOME(CHARS, "refused", NULL, q.refused),
    AMP_COLUMN_PUT("actions", actions_put, .ever = true),
    AMP_COLUMN_PUT("proposed", proposed_put, .ever = true),
    {0},
};

void question_row(const struct amp_question *q, struct question_row *out)
{
    const struct amp_question_terms *t = amp_question_terms(q);
    const char *own;
    size_t n = 0;

    *out = (struct question_row){.q = *q,
                                 .protocol = amp_protocol_name(q->protocol),
                                 .fallback = amp_fallback_name(q->fallback),
                                 .invocation = amp_question_invocation(q),
                                 .reason = *q->why ? q->why : q->reason};
    if (q->state != AMP_ESC_DEFERRED)
        out->q.until_ms = 0;
    for (size_t i = 0; t->proposed && (own = t->proposed(q->message, i)); i++)
        if (*own && n < sizeof out->answers)
            n += (size_t)snprintf(out->answers + n, sizeof out->answers - n, "%s%.40s",
                                  n ? ", " : "", own);
    if (!*out->answers)
        snprintf(out->answers, sizeof out->answers, "%s", amp_answer_words(q));
}

struct listing {
    struct amp_listing *list;
    struct amp_error *err;
};

static int question_list(void *ctx, const struct amp_question *q)
{
    struct listing *l = ctx;
    struct question_row row;

    question_row(q, &row);
    return is_listed(q) ? amp_listing_row(l->list, &row, l->err) : 0;
}

/* Open questions are only a part of why work stands still. */
static int pauses_say(struct amp_store *s, struct amp_error *err)
{
    AMP_CLEANUP(amp_pauses_release) struct amp_pauses now = {0};

    amp_pauses_init(&now);
    if (amp_pauses_read(s, &now, err) < 0)
        return -1;
    if (now.n_v > 0)
        amp_note("%u suspension%s by people %s in force: hitl-prompt suspend --list shows %s",
                 now.n_v, now.n_v == 1 ? "" : "s", now.n_v == 1 ? "is" : "are",
                 now.n_v == 1 ? "it" : "them");
    return 0;
}

static int hitl_list(struct amp_command *c, struct amp_error *err)
{
    struct hitl *h = c->own;
    struct listing l = {c->list, err};

    return amp_question_all(&h->d.hitl, question_list, &l, err) < 0 ? -1
                                                                    : pauses_say(c->store, err);
}

const struct amp_verb list_verbs[] = {
    {"list", "", "list the open questions", list_opts, hitl_list, .opens = HITL_OPENS_QUESTIONS,
     .act = "read questions", .lists = question_columns, .none = "no open questions",
     .signals = true, .finds_state = true, .who = AMP_WHO_PERSON},
    {0},
};
