/* More about a question, each on a page of its own: the task, the agents' words, the log, the diff.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>

#include "evidence.h"
#include "message/delivery/history/history.h"
#include "message/protocol/compose/json.h"
#include "message/store/history/history.h"

#define TEXT_MAX (32u << 20)
#define BLOB_MAX ((size_t)64 << 20)

static int quote_all(const struct amp_page *page, const char *label, const char *text)
{
    return *text ? amp_page_quote(page, label, amp_span_str(text), 0) : 0;
}

/* Any JSON value: a text as it is, the elements of a list one by one, other values as JSON. */
static int value_quote(const struct amp_page *page, const char *label, const json_t *v)
{
    AMP_BUF struct amp_buf text = {0};
    size_t i;
    json_t *item;

    if (!v || json_is_null(v))
        return 0;
    if (json_is_string(v))
        return amp_page_quote(page, label,
                              (struct amp_span){json_string_value(v), json_string_length(v)}, 0);
    if (json_is_array(v)) {
        json_array_foreach (v, i, item)
            if (value_quote(page, label, item) < 0)
                return -1;
        return 0;
    }
    amp_buf_init(&text, TEXT_MAX);
    if (json_is_real(v))
        return amp_buf_fmt(&text, page->err, "%g", json_real_value(v)) < 0
                   ? -1
                   : amp_page_quote(page, label, amp_buf_span(&text), 0);
    return amp_json_dump(v, &text, page->err) < 0 ||
                   amp_page_quote(page, label, amp_buf_span(&text), 0) < 0
               ? -1
               : 0;
}

/* The members of an object. The names come from the message too, so they are quoted with them. */
static int members_quote(const struct amp_page *page, json_t *object)
{
    AMP_BUF struct amp_buf name = {0};
    const char *key;
    json_t *v;

    amp_buf_init(&name, 65536);
    json_object_foreach (object, key, v) {
        amp_buf_reset(&name);
        if (amp_buf_fmt(&name, page->err, "%s:", key) < 0 ||
            amp_page_quote(page, "", amp_buf_span(&name), 0) < 0 || value_quote(page, "", v) < 0)
            return -1;
    }
    return 0;
}

static int line_quote(const struct amp_page *page, const char *title, const char *line)
{
    json_auto_t *j = NULL;
    json_t *payload;

    if (!line)
        return 0;
    if (amp_page_say(page, AMP_TINT_HEAD, "-- %s", title) < 0 ||
        !(j = amp_json_load(amp_span_str(line), page->err)))
        return -1;
    payload = json_object_get(j, "payload");
    return members_quote(page, payload ? payload : j);
}

int evidence_words(const struct amp_question *q, const struct amp_evidence *ev,
                   const struct amp_page *page)
{
    json_t *payload = json_object_get(q->message, "payload");

    if (amp_page_say(page, AMP_TINT_HEAD, "-- the question, complete") < 0 ||
        members_quote(page, json_is_object(payload) ? payload : q->message) < 0)
        return -1;
    return line_quote(page, "the last result", ev->work) < 0 ||
                   line_quote(page, "the last verdict", ev->verdict) < 0
               ? -1
               : 0;
}

int evidence_task(const struct amp_question *q, const struct amp_evidence *ev,
                  const struct amp_page *page)
{
    const struct amp_task *t = &ev->task;
    char line[512];

    if (!ev->has_task)
        return amp_page_say(page, AMP_TINT_NONE, "%s",
                            q->about.kind == AMP_ABOUT_TASK
                                ? "The task is not in this state directory."
                                : "The question is not about a task of this state directory.");
    if (quote_all(page, "task", t->id) < 0 || quote_all(page, "description", t->description) < 0 ||
        amp_page_say(page, AMP_TINT_NONE, "  %-*s   %s", AMP_PAGE_LABEL, "state",
                     amp_task_fsm.states[t->state].name) < 0 ||
        amp_page_say(page, AMP_TINT_NONE, "  %-*s   %s", AMP_PAGE_LABEL, "risk",
                     amp_risk_name(t->risk)) < 0 ||
        quote_all(page, "repository", t->repo) < 0 || quote_all(page, "branch", t->branch) < 0 ||
        quote_all(page, "base", t->base) < 0 || value_quote(page, "criterion", t->criteria) < 0 ||
        value_quote(page, "forbidden", t->forbidden) < 0 ||
        value_quote(page, "constraints", t->constraints) < 0 ||
        amp_page_say(page, AMP_TINT_NONE, "  %-*s   %lld in a row", AMP_PAGE_LABEL, "rejections",
                     (long long)t->reject_count) < 0)
        return -1;
    for (size_t i = 0; i < t->n_parts; i++) {
        const struct amp_task_part *p = &t->parts[i];
        snprintf(line, sizeof line, "%.200s: %s, %lld attempt%s%s%.64s", p->id,
                 amp_qa_fsm.states[p->state].name, (long long)p->attempts,
                 p->attempts == 1 ? "" : "s", *p->commit ? ", last commit " : "", p->commit);
        if (quote_all(page, "subtask", line) < 0 || quote_all(page, "", p->description) < 0)
            return -1;
    }
    return value_quote(page, "issue", t->issues) < 0 ||
                   value_quote(page, "blocked by", t->blockers) < 0 ||
                   value_quote(page, "note", t->notes) < 0 || value_quote(page, "CI", t->ci) < 0 ||
                   value_quote(page, "agent", t->agents) < 0
               ? -1
               : 0;
}

/* --- the log --- */

struct reading {
    struct amp_history *history;
    const struct amp_page *page;
    size_t rows;
};

static int row_fn(void *ctx, const struct amp_history_row *r, struct amp_error *err)
{
    struct reading *rd = ctx;
    AMP_BUF struct amp_buf text = {0};

    rd->rows++;
    amp_buf_init(&text, TEXT_MAX);
    if (amp_buf_fmt(&text, err, "%.*s  ", AMP_CLIP(r->at, 24)) < 0 ||
        amp_buf_add(&text, r->actor.p, r->actor.n, err) < 0 ||
        amp_buf_fmt(&text, err, "  %.*s %.*s  ", AMP_CLIP(r->kind, 40), AMP_CLIP(r->event, 40)) <
            0 ||
        amp_buf_add(&text, r->id.p, r->id.n, err) < 0 ||
        (r->to.n && amp_buf_fmt(&text, err, "  %.*s -> %.*s", AMP_CLIP(r->from, 40),
                                AMP_CLIP(r->to, 40)) < 0) ||
        (r->code.n && (amp_buf_str(&text, "  ", err) < 0 ||
                       amp_buf_add(&text, r->code.p, r->code.n, err) < 0)) ||
        (r->why.n &&
         (amp_buf_str(&text, ": ", err) < 0 || amp_buf_add(&text, r->why.p, r->why.n, err) < 0)) ||
        (r->late && amp_buf_str(&text, "  late", err) < 0))
        return -1;
    return amp_page_line(rd->page, AMP_TINT_NONE, amp_buf_span(&text));
}

static int frame_fn(void *ctx, uint64_t n, struct amp_span frame, struct amp_error *err)
{
    struct reading *rd = ctx;

    return amp_history_frame(rd->history, n, frame, row_fn, rd, err) < 0 ? -1 : 0;
}

static int blob_read(void *ctx, struct amp_span name, struct amp_buf *out, struct amp_error *err)
{
    char path[4200];

    snprintf(path, sizeof path, "%s/blob/%.*s", amp_store_dir(ctx), (int)name.n, name.p);
    return amp_file_read(AT_FDCWD, path, BLOB_MAX, out, err);
}

int evidence_log(struct amp_store *s, const struct amp_question *q, const struct amp_page *page)
{
    const struct amp_about *a = &q->about;
    bool task = a->kind == AMP_ABOUT_TASK;
    const struct amp_history_filter f = {.correlation = amp_span_str(task ? a->task : ""),
                                         .id = amp_span_str(task                           ? ""
                                                            : a->kind == AMP_ABOUT_MESSAGE ? a->id
                                                                                           : q->id),
                                         .blob = blob_read,
                                         .blob_ctx = s};
    struct reading rd = {.page = page};
    struct amp_store_place at = {0};

    if (!(rd.history = amp_history_new(&f, page->err)))
        return -1;
    int rc = amp_store_frames_on(s, &at, frame_fn, &rd, page->err);
    amp_history_free(rd.history);
    if (rc == 0 && !rd.rows)
        rc = amp_page_say(page, AMP_TINT_NONE, "The log has nothing about it.");
    return rc;
}

/* --- the diff --- */

/* The lines before the first hunk of a file begin at the left margin; those of a hunk have a sign.
 */
static enum amp_tint diff_tint(struct amp_span line)
{
    if (amp_span_starts(line, "@@"))
        return AMP_TINT_HUNK;
    if (amp_span_starts(line, "diff --git ") || amp_span_starts(line, "+++ ") ||
        amp_span_starts(line, "--- "))
        return AMP_TINT_FILE;
    return line.n && line.p[0] == '+'   ? AMP_TINT_NEW
           : line.n && line.p[0] == '-' ? AMP_TINT_OLD
                                        : AMP_TINT_NONE;
}

/* A tab would be shown as an escape. It goes to the next eighth column after the sign. */
static int tabs_expand(struct amp_span line, struct amp_buf *out, struct amp_error *err)
{
    amp_buf_reset(out);
    if (amp_buf_str(out, "", err) < 0)
        return -1;
    for (size_t i = 0; i < line.n; i++) {
        size_t blanks = line.p[i] == '\t' ? 8 - (out->len + 7) % 8 : 0;
        if (amp_buf_add(out, blanks ? "        " : line.p + i, blanks ? blanks : 1, err) < 0)
            return -1;
    }
    return 0;
}

int evidence_diff(const struct amp_evidence *ev, const struct amp_git_diff *diff,
                  struct amp_span patch, const struct amp_page *page)
{
    AMP_BUF struct amp_buf text = {0};

    amp_buf_init(&text, TEXT_MAX);
    if (amp_page_say(page, AMP_TINT_HEAD, "-- %u file%s, +%lld -%lld", diff->n_files,
                     diff->n_files == 1 ? "" : "s", (long long)diff->lines_added,
                     (long long)diff->lines_removed) < 0 ||
        amp_page_quote(page, "from", amp_span_str(ev->base), 0) < 0 ||
        amp_page_quote(page, "to", amp_span_str(ev->commit), 0) < 0)
        return -1;
    for (uint32_t i = 0; diff->files[i]; i++)
        if (amp_page_line(page, AMP_TINT_NONE, amp_span_str(diff->files[i])) < 0)
            return -1;
    if (diff->truncated &&
        amp_page_say(page, AMP_TINT_NONE,
                     "… more files than this list has; the counts are complete") < 0)
        return -1;
    if (amp_page_say(page, AMP_TINT_HEAD, "-- the changes") < 0)
        return -1;
    while (patch.n) {
        const char *nl = memchr(patch.p, '\n', patch.n);
        struct amp_span line = {patch.p, nl ? (size_t)(nl - patch.p) : patch.n};
        size_t used = line.n + (nl != NULL);
        if (tabs_expand(line, &text, page->err) < 0 ||
            amp_page_line(page, diff_tint(line), amp_buf_span(&text)) < 0)
            return -1;
        patch = (struct amp_span){patch.p + used, patch.n - used};
    }
    return 0;
}
