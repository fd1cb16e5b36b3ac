/* hitl-prompt show: prints one question with what is known about it. */
#include <stdio.h>
#include <unistd.h>

#include "cli/list.h"
#include "evidence/evidence.h"
#include "hitl.h"
#include "message/protocol/compose/json.h"
#include "people/answer/offer.h"

static const struct amp_opt show_opts[] = {
    AMP_OPT_JSON("print one JSON object"),
    AMP_OPT_END,
};

static int show_print(struct hitl *h, const struct amp_question *q, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    AMP_EVIDENCE ev = {0};
    const struct amp_page page = {hitl_width(STDOUT_FILENO), amp_color_of(STDOUT_FILENO), &text,
                                  err, EVIDENCE_MORE};

    amp_buf_init(&text, 8 * AMP_QUESTION_BYTES);
    if (amp_evidence_load(h->store, q, &ev, err) < 0 || evidence_question(q, &ev, &page) < 0 ||
        evidence_answers(q, &page) < 0)
        return -1;
    return amp_out(amp_buf_span(&text), err);
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

/* Writes what each answer does. */
static void effects_put(const void *row, const char *key, struct amp_jw *w)
{
    const struct question_row *r = row;

    if (!r->ev)
        return;
    amp_jw_member_open(w, key, '{');
    for (const struct amp_action *a = amp_question_actions(&r->q); a->name; a++)
        if (a->effect)
            amp_jw_member_text(w, a->name, a->effect);
    amp_jw_close(w, '}');
}

static void work_put(const void *row, const char *key, struct amp_jw *w)
{
    const struct amp_evidence *ev = ((const struct question_row *)row)->ev;

    if (!ev || !*ev->commit)
        return;
    amp_jw_member_open(w, key, '{');
    amp_jw_some_str(w, "repo", amp_span_str(ev->repo));
    amp_jw_some_str(w, "base", amp_span_str(ev->base));
    amp_jw_member_text(w, "commit", ev->commit);
    amp_jw_close(w, '}');
}

/* The events before the question, oldest first; depth 1: a detail of the event before. */
static const struct amp_column history_columns[] = {
    AMP_COLUMN(TIME, struct amp_evidence_row, "at", NULL, at_ms),
    AMP_COLUMN_EVER(INT, struct amp_evidence_row, "depth", NULL, depth),
    AMP_COLUMN_EVER(CSTR, struct amp_evidence_row, "text", NULL, text),
    {0},
};

static const struct amp_column evidence_columns[] = {
    AMP_COLUMN_ROWS(struct amp_evidence, "history", rows, n_rows, history_columns, .ever = true),
    {0},
};

static void history_put(const void *row, const char *key, struct amp_jw *w)
{
    const struct question_row *r = row;

    (void)key;
    if (r->ev)
        amp_view_members(evidence_columns, r->ev, w);
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
    /* Only show has these; a list leaves them out. */
    AMP_COLUMN_PUT("effects", effects_put),
    SOME(INT, "approvals", NULL, approvals),
    AMP_COLUMN_PUT("work", work_put),
    AMP_COLUMN_PUT("history", history_put),
    SOME(RAW, "message", NULL, message),
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

static int json_print(struct hitl *h, const struct amp_question *q, struct amp_listing *list,
                      struct amp_error *err)
{
    AMP_BUF struct amp_buf message = {.max = 8 * AMP_QUESTION_BYTES};
    AMP_EVIDENCE ev = {0};
    struct question_row row;

    if (amp_evidence_load(h->store, q, &ev, err) < 0 ||
        amp_json_dump(q->message, &message, err) < 0)
        return -1;
    question_row(q, &row);
    row.ev = &ev;
    row.approvals = ev.n_votes;
    row.message = amp_buf_span(&message);
    return amp_listing_row(list, &row, err);
}

static int hitl_show(struct amp_command *c, struct amp_error *err)
{
    struct hitl *h = c->own;
    struct amp_question q = {0};

    int rc = amp_offer_find(&h->d, c->argv[0], &q, err);
    if (rc == 0)
        rc = amp_listing_json ? json_print(h, &q, c->list, err) : show_print(h, &q, err);
    amp_question_release(&q);
    return rc;
}

const struct amp_verb show_verbs[] = {
    {"show", "ID", "print a question", show_opts, hitl_show, .least = 1, .most = 1,
     .usage = "show needs one question: show ID", .opens = HITL_OPENS_QUESTIONS,
     .lists = question_columns, .act = "read questions", .signals = true, .finds_state = true,
     .values = "question", .who = AMP_WHO_PERSON},
    {0},
};
