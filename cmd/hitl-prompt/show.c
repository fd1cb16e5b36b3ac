/* hitl-prompt show: prints one question with what is known about it. */
#include <unistd.h>

#include <amp/json/writer.h>

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

/* The events before the question, oldest first; depth 1: a detail of the event before. */
static const struct amp_column history_columns[] = {
    AMP_COLUMN(TIME, struct amp_evidence_row, "at", NULL, at_ms),
    AMP_COLUMN_EVER(INT, struct amp_evidence_row, "depth", NULL, depth),
    AMP_COLUMN_EVER(CHARS, struct amp_evidence_row, "text", NULL, text),
    {0},
};
static const struct amp_column evidence_columns[] = {
    AMP_COLUMN_ROWS(struct amp_evidence, "history", rows, n_rows, history_columns, .ever = true),
    {0},
};

/* Writes what each answer does. */
static void answers_members(struct amp_jw *w, const struct amp_question *q)
{
    amp_jw_member_open(w, "effects", '{');
    for (const struct amp_action *a = amp_question_actions(q); a->name; a++)
        if (a->effect)
            amp_jw_member_text(w, a->name, a->effect);
    amp_jw_close(w, '}');
}

static void work_members(struct amp_jw *w, const struct amp_evidence *ev)
{
    if (!*ev->commit)
        return;
    amp_jw_member_open(w, "work", '{');
    amp_jw_some_str(w, "repo", amp_span_str(ev->repo));
    amp_jw_some_str(w, "base", amp_span_str(ev->base));
    amp_jw_member_text(w, "commit", ev->commit);
    amp_jw_close(w, '}');
}

static int json_print(struct hitl *h, const struct amp_question *q, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0}, message = {0};
    AMP_EVIDENCE ev = {0};
    struct question_row row;
    struct amp_jw w;

    amp_buf_init(&text, 8 * AMP_QUESTION_BYTES);
    amp_buf_init(&message, 8 * AMP_QUESTION_BYTES);
    if (amp_evidence_load(h->store, q, &ev, err) < 0 ||
        amp_json_dump(q->message, &message, err) < 0)
        return -1;
    question_row(q, &row);
    amp_jw_init(&w, &text);
    amp_jw_open(&w, '{');
    amp_view_members(question_columns, &row, &w);
    answers_members(&w, q);
    if (ev.n_votes)
        amp_jw_member_uint(&w, "approvals", ev.n_votes);
    work_members(&w, &ev);
    amp_view_members(evidence_columns, &ev, &w);
    amp_jw_member_raw(&w, "message", amp_buf_span(&message));
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err) < 0 ? -1 : amp_out(amp_buf_span(&text), err);
}

static int hitl_show(struct amp_command *c, struct amp_error *err)
{
    struct hitl *h = c->own;
    struct amp_question q = {0};

    int rc = amp_offer_find(&h->d, c->argv[0], &q, err);
    if (rc == 0)
        rc = (amp_listing_json ? json_print : show_print)(h, &q, err);
    amp_question_release(&q);
    return rc;
}

const struct amp_verb show_verbs[] = {
    {"show", "ID", "print a question", show_opts, hitl_show, .least = 1, .most = 1,
     .usage = "show needs one question: show ID", .opens = HITL_OPENS_QUESTIONS,
     .act = "read questions", .signals = true, .finds_state = true, .values = "question",
     .who = AMP_WHO_PERSON},
    {0},
};
