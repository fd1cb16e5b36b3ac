/* Writes a question: what is asked and why, the task's history, what each answer does. */
#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>

#include "evidence.h"
#include "message/protocol/compose/json.h"
#include "message/protocol/question.h"

#define TEXT_MAX    (1u << 20)
#define FIELD_MAX   4000 /* bytes of one field that are shown */
#define ITEMS_MAX   8    /* of a list that are shown */
#define REASONS_MAX 4    /* of an event */

static int count_more(const struct amp_page *page, size_t n, size_t shown, const char *key)
{
    return n > shown ? amp_page_say(page, AMP_TINT_DIM, "  %-*s   … %zu more (%s)", AMP_PAGE_LABEL,
                                    "", n - shown, key)
                     : 0;
}

static int quote_str(const struct amp_page *page, const char *label, const char *text)
{
    return *text ? amp_page_quote(page, label, amp_span_str(text), FIELD_MAX) : 0;
}

static int quote_list(const struct amp_page *page, const char *label, const json_t *values)
{
    size_t i;
    json_t *v;

    json_array_foreach (values, i, v) {
        if (i < ITEMS_MAX && json_is_string(v) && quote_str(page, label, json_string_value(v)) < 0)
            return -1;
    }
    return count_more(page, json_array_size(values), ITEMS_MAX, "s");
}

/* A member: text, or any JSON value. */
static int quote_value(const struct amp_page *page, const char *label, const json_t *v)
{
    AMP_BUF struct amp_buf words = {0};

    if (!v || json_is_null(v))
        return 0;
    if (json_is_string(v))
        return quote_str(page, label, json_string_value(v));
    amp_buf_init(&words, TEXT_MAX);
    if (amp_json_dump(v, &words, NULL) < 0)
        return amp_page_say(page, AMP_TINT_NONE, "  %-*s   (too long to show)", AMP_PAGE_LABEL,
                            label);
    return amp_page_quote(page, label, amp_buf_span(&words), FIELD_MAX);
}

/* The member at a path of keys. */
static const json_t *member_at(const json_t *j, const char *path)
{
    char key[64];

    for (const char *p = path; j && *p; p += *p == '.') {
        size_t n = strcspn(p, ".");
        snprintf(key, sizeof key, "%.*s", (int)n, p);
        j = json_object_get(j, key);
        p += n;
    }
    return j;
}

static int field_text(const struct amp_question *q, const struct amp_question_field *f,
                      const struct amp_page *page)
{
    if (!*f->path)
        return quote_str(page, f->label, amp_question_invocation(q));
    const json_t *value = member_at(q->message, f->path);
    return f->list ? quote_list(page, f->label, value) : quote_value(page, f->label, value);
}

static int row_quote(const struct amp_page *page, const char *label,
                     const struct amp_evidence_row *row)
{
    AMP_BUF struct amp_buf text = {.max = TEXT_MAX};

    return amp_evidence_row_text(row, &text, page->err) < 0
               ? -1
               : amp_page_quote(page, label, amp_buf_span(&text), FIELD_MAX);
}

/* The last events, each with its first reasons. */
static int history_text(const struct amp_evidence *ev, const struct amp_page *page)
{
    size_t first = amp_evidence_recent(ev), reasons = 0;
    const char *label = "history";

    if (first && amp_page_say(page, AMP_TINT_DIM, "  %-*s   … %zu earlier lines (l shows the log)",
                              AMP_PAGE_LABEL, "", first) < 0)
        return -1;
    for (size_t i = first; i < ev->n_rows; i++) {
        const struct amp_evidence_row *row = &ev->rows[i];
        reasons = row->depth ? reasons + 1 : 0;
        if (reasons <= REASONS_MAX && row_quote(page, label, row) < 0)
            return -1;
        bool last = i + 1 == ev->n_rows || !ev->rows[i + 1].depth;
        if (last && count_more(page, reasons, REASONS_MAX, "s") < 0)
            return -1;
        label = "";
    }
    return 0;
}

/* The progress of the task. */
static int task_text(const struct amp_evidence *ev, const struct amp_page *page)
{
    const struct amp_task *t = &ev->task;
    char line[512];

    if (quote_str(page, "task", t->description) < 0 || quote_str(page, "branch", t->branch) < 0 ||
        amp_page_say(page, AMP_TINT_NONE, "  %-*s   %s", AMP_PAGE_LABEL, "risk",
                     amp_risk_name(t->risk)) < 0)
        return -1;
    for (size_t i = 0; i < t->n_parts && i < ITEMS_MAX; i++) {
        const struct amp_task_part *p = &t->parts[i];
        snprintf(line, sizeof line, "%.200s: %s, %lld attempt%s%s%.12s", p->id,
                 amp_qa_fsm.states[p->state].name, (long long)p->attempts,
                 p->attempts == 1 ? "" : "s", *p->commit ? ", last commit " : "", p->commit);
        if (quote_str(page, "subtask", line) < 0)
            return -1;
    }
    return count_more(page, t->n_parts, ITEMS_MAX, "t") < 0
               ? -1
               : quote_list(page, "blocked by", t->blockers);
}

/* The message that a question about another protocol's work is about. */
static int about_text(const struct amp_about *a, const struct amp_page *page)
{
    if (a->kind != AMP_ABOUT_MESSAGE)
        return 0;
    if (quote_str(page, "message", a->id) < 0 || quote_str(page, "protocol", a->protocol) < 0)
        return -1;
    return quote_str(page, "its task", a->task);
}

static int head_text(const struct amp_question *q, bool suspended, const struct amp_page *page)
{
    AMP_BUF struct amp_buf title = {0};

    amp_buf_init(&title, 65536);
    if (amp_question_terms(q)->title(q->message, q->why, suspended, &title, page->err) < 0 ||
        amp_buf_add(&title, "", 1, page->err) < 0 || amp_buf_str(page->out, "\n", page->err) < 0)
        return -1;
    return amp_page_say(page, AMP_TINT_HEAD, "== %s", title.data);
}

/* Says what happens at the deadline. */
static int fallback_text(const struct amp_question *q, const struct amp_evidence *ev,
                         const struct amp_page *page)
{
    const char *deny = amp_question_terms(q)->deny;
    int f = amp_fallback_find(amp_span_str(ev->fallback));

    if (f <= AMP_FALLBACK_NONE || !deny)
        return amp_page_say(page, AMP_TINT_NONE, "  %-*s   the question stays open", AMP_PAGE_LABEL,
                            "then");
    return amp_page_say(page, AMP_TINT_NONE, "  %-*s   %s%s (%s)", AMP_PAGE_LABEL, "then",
                        f == AMP_FALLBACK_AUTO ? "a proposal above the threshold, else "
                        : f == AMP_FALLBACK_EXTEND
                            ? "the deadline is extended, at most 3 times, then "
                            : "",
                        deny, ev->fallback);
}

/* Risk, deadline and what happens then; approvals so far. */
static int terms_text(const struct amp_question *q, const struct amp_evidence *ev,
                      const struct amp_page *page)
{
    char at[AMP_TIME_MAX];

    if (!ev->has_task && quote_str(page, "risk", ev->risk) < 0)
        return -1;
    if (ev->n_votes && amp_page_say(page, AMP_TINT_NONE, "  %-*s   %u so far; more are needed",
                                    AMP_PAGE_LABEL, "approvals", ev->n_votes) < 0)
        return -1;
    if (!ev->deadline_ms)
        return 0;
    amp_time_format(ev->deadline_ms, at);
    if (amp_page_say(page, AMP_TINT_NONE, "  %-*s   %.19sZ%s", AMP_PAGE_LABEL, "deadline", at,
                     ev->extensions ? " (extended)" : "") < 0)
        return -1;
    return fallback_text(q, ev, page);
}

int evidence_question(const struct amp_question *q, const struct amp_evidence *ev,
                      const struct amp_page *page)
{
    const struct amp_question_terms *t = amp_question_terms(q);
    bool task = ev && ev->has_task;

    if (head_text(q, task && amp_task_is_suspended(&ev->task), page) < 0)
        return -1;
    for (const struct amp_question_field *f = t->fields; f->label; f++) {
        if (field_text(q, f, page) < 0)
            return -1;
        /* The task follows the first field, the question itself. */
        if (f == t->fields && task && *ev->task.description && task_text(ev, page) < 0)
            return -1;
    }
    if (about_text(&q->about, page) < 0 || (ev && history_text(ev, page) < 0))
        return -1;
    return quote_str(page, "refused", q->refused) < 0 ? -1 : ev ? terms_text(q, ev, page) : 0;
}

/* The words of people that this question understands. */
static int words_text(const struct amp_question *q, const struct amp_page *page)
{
    static const char *const words[] = {"yes", "no", "redo"};
    AMP_BUF struct amp_buf text = {0};

    amp_buf_init(&text, 256);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const struct amp_action *a = amp_answer_action(q, words[i]);
        if (a &&
            amp_buf_fmt(&text, page->err, "%s%s (%s)", text.len ? ", " : "", words[i], a->name) < 0)
            return -1;
    }
    return text.len ? amp_page_say(page, AMP_TINT_DIM, "    %-12s %.*s", "also", (int)text.len,
                                   text.data)
                    : 0;
}

int evidence_answers(const struct amp_question *q, const struct amp_page *page)
{

    if (amp_page_say(page, AMP_TINT_NONE, "  Answer: %s", amp_answer_form(q)) < 0)
        return -1;
    for (const struct amp_action *a = amp_question_actions(q); a->name; a++)
        if (a->effect && amp_page_say(page, AMP_TINT_DIM, "    %-12s %s", a->name, a->effect) < 0)
            return -1;
    if (words_text(q, page) < 0)
        return -1;
    return amp_page_say(page, AMP_TINT_DIM, "    %-12s %s", "defer TIME",
                        "ask again then: 2h, 17:30 or an RFC 3339 time");
}

int evidence_digest(const struct amp_question *q, const struct amp_evidence *ev,
                    char out[EVIDENCE_DIGEST_MAX], struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    const struct amp_page page = {.width = 80, .out = &text, .err = err, .more = EVIDENCE_MORE};

    amp_buf_init(&text, 8 * TEXT_MAX);
    if (evidence_question(q, ev, &page) < 0)
        return -1;
    amp_shown_digest(amp_buf_span(&text), out);
    return 0;
}
