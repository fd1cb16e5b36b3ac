/*
 * The text of a question. Every line of text that others wrote has a mark, so that it cannot look
 * like a line of this program. Lines are wrapped here, because a line that the terminal wraps would
 * continue without a mark.
 */
#include <stdio.h>
#include <string.h>

#include "hitl.h"
#include "protocol/compose/json.h"
#include "protocol/question.h"
#include "task/record.h"

#define TEXT_MAX   (256u << 10)
#define FIELD_MAX  4000 /* bytes of one field that are shown */
#define LABEL      12   /* columns of a label */
#define MARK       (2 + LABEL + 3)
#define ITEMS_MAX  8 /* of a list that are shown */
#define ISSUES_MAX 4

struct page {
    int width; /* columns */
    struct amp_buf *out;
    struct amp_error *err;
};

/* The bytes of the first character; *columns: the most columns that it needs. */
static size_t character_measure(struct amp_span text, int *columns)
{
    size_t n = 1;

    while (n < text.n && ((unsigned char)text.p[n] & 0xC0) == 0x80)
        n++;
    *columns = (unsigned char)*text.p < 0x80 ? 1 : 2;
    return n;
}

/* The bytes that fit on one line: up to a blank, or a part of a word that is longer than a line. */
static size_t line_fit(struct amp_span text, int columns)
{
    size_t at = 0, blank = 0;
    int used = 0;

    while (at < text.n) {
        int wide;
        size_t n = character_measure((struct amp_span){text.p + at, text.n - at}, &wide);
        if (at && used + wide > columns)
            break;
        if (text.p[at] == ' ')
            blank = at;
        used += wide;
        at += n;
    }
    return at == text.n || text.p[at] == ' ' || !blank ? at : blank;
}

/* Appends one line of safe text as marked lines. */
static int line_mark(const char *label, struct amp_span safe, const struct page *page)
{
    do {
        size_t n = line_fit(safe, page->width - MARK);
        if (amp_buf_fmt(page->out, page->err, "  %-*s | %.*s\n", LABEL, label, (int)n, safe.p) < 0)
            return -1;
        label = "";
        safe = (struct amp_span){safe.p + n, safe.n - n};
        if (safe.n && *safe.p == ' ')
            safe = (struct amp_span){safe.p + 1, safe.n - 1};
    } while (safe.n);
    return 0;
}

/* Appends text that others wrote, with a label; its line ends are kept. */
static int text_quote(const char *label, const char *value, const struct page *page)
{
    size_t left = strlen(value);
    bool cut = left > FIELD_MAX;

    if (cut)
        left = FIELD_MAX;
    do {
        AMP_BUF struct amp_buf safe = {0};
        size_t n = strcspn(value, "\n");
        struct amp_span line = {value, n < left ? n : left};
        bool last = line.n == left;

        amp_buf_init(&safe, TEXT_MAX);
        if (amp_buf_str(&safe, "", page->err) < 0 || amp_text_safe(line, 0, &safe, page->err) < 0 ||
            (last && cut && amp_buf_str(&safe, " …", page->err)) ||
            line_mark(label, amp_buf_span(&safe), page))
            return -1;
        label = "";
        value += line.n + !last;
        left -= line.n + !last;
    } while (left);
    return 0;
}

/* Appends the number of items that are not shown. */
static int count_more(size_t n, size_t shown, const struct page *page)
{
    return n > shown ? amp_buf_fmt(page->out, page->err, "  %-*s   … and %zu more\n", LABEL, "",
                                   n - shown)
                     : 0;
}

static int quote_list(const char *label, const json_t *values, const struct page *page)
{
    size_t i;
    json_t *v;

    json_array_foreach (values, i, v) {
        if (i < ITEMS_MAX && json_is_string(v) && text_quote(label, json_string_value(v), page))
            return -1;
    }
    return count_more(json_array_size(values), ITEMS_MAX, page);
}

/* Appends a summary of the task: its progress, and the issues and blockers that the question's text
 * does not mention. */
static int about_task(const struct amp_task *t, const char *mentioned, const struct page *page)
{
    AMP_BUF struct amp_buf line = {0};
    size_t i, shown = 0, issues = 0;
    json_t *issue;

    amp_buf_init(&line, TEXT_MAX);
    if (text_quote("task", t->description, page) || text_quote("branch", t->branch, page) ||
        amp_buf_fmt(page->out, page->err, "  %-*s   %s\n", LABEL, "risk", amp_risk_name(t->risk)) <
            0)
        return -1;
    for (i = 0; i < t->n_parts && i < ITEMS_MAX; i++) {
        amp_buf_reset(&line);
        if (amp_buf_fmt(&line, page->err, "%s: %s, %lld attempt%s%s%.12s", t->parts[i].id,
                        amp_qa_fsm.states[t->parts[i].state].name, (long long)t->parts[i].attempts,
                        t->parts[i].attempts == 1 ? "" : "s",
                        *t->parts[i].commit ? ", last commit " : "", t->parts[i].commit) < 0 ||
            text_quote("subtask", line.data, page))
            return -1;
    }
    if (count_more(t->n_parts, ITEMS_MAX, page))
        return -1;
    json_array_foreach (t->issues, i, issue) {
        if (strstr(mentioned, amp_json_str(issue, "description")))
            continue;
        if (issues++ >= ISSUES_MAX)
            continue;
        shown++;
        amp_buf_reset(&line);
        if (amp_buf_fmt(&line, page->err, "%s, %s:%lld: %s", amp_json_str(issue, "severity"),
                        amp_json_str(issue, "file"),
                        (long long)json_integer_value(json_object_get(issue, "line")),
                        amp_json_str(issue, "description")) < 0 ||
            text_quote("rejected for", line.data, page))
            return -1;
    }
    if (count_more(issues, shown, page) < 0)
        return -1;
    return quote_list("blocked by", t->blockers, page);
}

/* Appends a member: text, or any JSON value. */
static int quote_value(const char *label, const json_t *v, const struct page *page)
{
    AMP_BUF struct amp_buf words = {0};

    if (!v || json_is_null(v))
        return 0;
    if (json_is_string(v))
        return *json_string_value(v) ? text_quote(label, json_string_value(v), page) : 0;
    amp_buf_init(&words, TEXT_MAX);
    if (amp_json_dump(v, &words, NULL) < 0)
        return text_quote(label, "(too long to show)", page);
    return amp_buf_add(&words, "", 1, page->err) || text_quote(label, words.data, page) ? -1 : 0;
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
                      const struct page *page)
{
    if (!*f->path)
        return text_quote(f->label, amp_question_invocation(q), page);
    const json_t *value = member_at(q->message, f->path);
    return f->list ? quote_list(f->label, value, page) : quote_value(f->label, value, page);
}

/* Appends the message that a question about another protocol's work is about. */
static int about_text(const struct amp_subject *a, const struct page *page)
{
    if (a->kind != AMP_SUBJECT_MESSAGE)
        return 0;
    if (text_quote("message", a->id, page) || text_quote("protocol", a->protocol, page))
        return -1;
    return *a->task ? text_quote("its task", a->task, page) : 0;
}

int question_text(const struct amp_question *q, const struct amp_task *task, int width,
                  struct amp_buf *out, struct amp_error *err)
{
    const struct amp_question_terms *t = amp_question_terms(q);
    const struct page page = {width, out, err};
    const char *mentioned = json_string_value(member_at(q->message, t->fields[0].path));

    if (amp_buf_str(out, "\n== ", err) < 0 ||
        t->title(q->message, task && amp_task_is_suspended(task), out, err) < 0 ||
        amp_buf_str(out, "\n", err) < 0)
        return -1;
    for (const struct amp_question_field *f = t->fields; f->label; f++) {
        if (field_text(q, f, &page) < 0)
            return -1;
        /* The task follows the first field, the question itself. */
        if (f == t->fields && task && *task->description &&
            about_task(task, mentioned ? mentioned : "", &page) < 0)
            return -1;
    }
    if (about_text(&q->about, &page) < 0)
        return -1;
    return *q->refused ? text_quote("refused", q->refused, &page) : 0;
}
