/* hitl-prompt list: the open questions, the most severe and oldest first. */
#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/json/writer.h>

#include "cli/table.h"
#include "cli/time.h"
#include "hitl.h"
#include "message/pause/pause.h"
#include "people/answer/offer.h"
#include "json/record.h"

#define LINE_MAX_BYTES (1u << 20)

static bool json;
static const char *protocol, *reason, *task, *severity;

static const struct amp_opt list_opts[] = {
    {0, "json", AMP_OPT_FLAG, &json, NULL, .doc = "print one JSON object per question"},
    {0, "protocol", AMP_OPT_STRING, &protocol, "NAME", "only questions of this protocol"},
    {0, "reason", AMP_OPT_STRING, &reason, "REASON", "only questions with this reason"},
    {0, "severity", AMP_OPT_STRING, &severity, "WORD", "only questions of this severity"},
    {0, "task", AMP_OPT_STRING, &task, "TASK", "only questions about this task", .values = "task"},
    AMP_OPT_END,
};

struct listing {
    struct amp_table table;
    struct amp_buf line;
    int64_t now_ms;
    size_t n;
    struct amp_error *err;
};

static bool is_listed(const struct amp_question *q)
{
    return (!protocol || strcmp(protocol, amp_protocol_name(q->protocol)) == 0) &&
           (!reason || strcmp(reason, q->reason) == 0) &&
           (!severity || strcmp(severity, q->severity) == 0) &&
           (!task || strcmp(task, q->about.task) == 0);
}

/* Writes the answers that the question proposes, else the answers of its protocol. */
static void answers_text(const struct amp_question *q, char *out, size_t size)
{
    const struct amp_question_terms *t = amp_question_terms(q);
    const char *own;
    size_t n = 0;

    *out = '\0';
    for (size_t i = 0; t->proposed && (own = t->proposed(q->message, i)); i++)
        if (*own && n < size)
            n += (size_t)snprintf(out + n, size - n, "%s%.40s", n ? ", " : "", own);
    if (!*out)
        snprintf(out, size, "%s", amp_answer_words(q));
}

static int row_print(struct listing *l, const struct amp_question *q)
{
    char age[24], left[24], answers[256];

    answers_text(q, answers, sizeof answers);
    const struct amp_span cells[] = {
        amp_span_str(q->id),
        amp_span_str(amp_protocol_name(q->protocol)),
        amp_span_str(*q->severity ? q->severity : "-"),
        amp_span_str(*q->why ? q->why : q->reason),
        amp_age_text(l->now_ms - q->arrived_ms, age),
        q->deadline_ms > 0 ? amp_age_text(q->deadline_ms - l->now_ms, left) : AMP_SPAN("-"),
        amp_span_str(amp_escalation_fsm.states[q->state].name),
        amp_span_str(q->name),
        amp_span_str(answers)};

    return amp_table_row(&l->table, cells, 9, l->err);
}

void question_members(struct amp_jw *w, const struct amp_question *q)
{
    amp_jw_member_text(w, "key", q->key);
    amp_jw_member_text(w, "id", q->id);
    amp_jw_member_text(w, "protocol", amp_protocol_name(q->protocol));
    amp_jw_member_text(w, "invocation", amp_question_invocation(q));
    amp_jw_some_str(w, "task", amp_span_str(q->about.task));
    amp_jw_some_str(w, "about", amp_span_str(q->about.id));
    amp_jw_member_text(w, "state", amp_escalation_fsm.states[q->state].name);
    amp_jw_some_str(w, "severity", amp_span_str(q->severity));
    amp_jw_some_str(w, "reason", amp_span_str(q->reason));
    amp_jw_some_str(w, "why", amp_span_str(q->why));
    amp_jw_some_str(w, "risk", amp_span_str(q->risk));
    amp_rec_time(w, "arrived", q->arrived_ms);
    amp_rec_time(w, "deadline", q->deadline_ms);
    amp_jw_member_text(w, "fallback", amp_fallback_name(q->fallback));
    if (q->extensions > 0)
        amp_jw_member_int(w, "extensions", q->extensions);
    if (q->state == AMP_ESC_DEFERRED)
        amp_rec_time(w, "until", q->until_ms);
    amp_jw_some_str(w, "refused", amp_span_str(q->refused));
    amp_jw_member_open(w, "actions", '[');
    for (const struct amp_action *a = amp_question_actions(q); a->name; a++)
        amp_jw_str(w, amp_span_str(a->name));
    amp_jw_close(w, ']');
    const struct amp_question_terms *t = amp_question_terms(q);
    const char *own;
    amp_jw_member_open(w, "proposed", '[');
    for (size_t i = 0; t->proposed && (own = t->proposed(q->message, i)); i++)
        if (*own)
            amp_jw_str(w, amp_span_str(own));
    amp_jw_close(w, ']');
}

static int json_print(struct listing *l, const struct amp_question *q)
{
    struct amp_jw w;

    amp_buf_reset(&l->line);
    amp_jw_init(&w, &l->line);
    amp_jw_open(&w, '{');
    question_members(&w, q);
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, l->err) < 0 ? -1 : amp_out(amp_buf_span(&l->line), l->err);
}

static int question_list(void *ctx, const struct amp_question *q)
{
    struct listing *l = ctx;

    if (!is_listed(q))
        return 0;
    l->n++;
    return json ? json_print(l, q) : row_print(l, q);
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
    static const char *const head[] = {"ID",       "PROTOCOL", "SEVERITY", "REASON", "AGE",
                                       "DEADLINE", "STATE",    "ABOUT",    "ANSWERS"};
    struct hitl *h = c->own;
    struct listing l = {.now_ms = amp_now_ms(), .err = err};

    amp_table_init(&l.table, head, 9);
    amp_buf_init(&l.line, LINE_MAX_BYTES);
    int rc = amp_question_all(&h->d.hitl, question_list, &l, err);
    if (rc == 0 && !json && l.n > 0)
        rc = amp_table_print(&l.table, err);
    if (rc == 0 && !json && l.n == 0)
        amp_note("no open questions");
    if (rc == 0)
        rc = pauses_say(c->store, err);
    amp_table_release(&l.table);
    amp_buf_release(&l.line);
    return rc;
}

const struct amp_verb list_verbs[] = {
    {"list", "", "list the open questions", list_opts, hitl_list, .opens = HITL_OPENS_QUESTIONS,
     .act = "read questions", .signals = true, .finds_state = true, .who = AMP_WHO_PERSON},
    {0},
};
