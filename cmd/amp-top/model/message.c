/* Composes the text behind the row of a message, an inbox or a lane. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>

#include "detail.h"
#include "message/delivery/history/find.h"
#include "message/delivery/inbox/inbox.h"
#include "message/delivery/record/record.h"

static void json_show(struct amp_span line, struct top_text *t)
{
    json_auto_t *j = json_loadb(line.p, line.n, 0, NULL);
    AMP_FREE char *text = j ? json_dumps(j, JSON_INDENT(2)) : NULL;
    if (!text) {
        top_text_add(t, TOP_PLAIN, "", TOP_PLAIN, 0, line);
        return;
    }
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, "\n"), blanks = strspn(p, " ");
        top_text_add(t, TOP_PLAIN, "", TOP_PLAIN, (int)(blanks < 40 ? blanks : 40),
                     (struct amp_span){p + blanks, n - blanks});
        p += n + (p[n] == '\n');
    }
}

/* ---- history ---- */

#define ROWS_MAX 2000 /* of a history */

struct history_reading {
    struct top_source *src;
    struct top_text *t;
    uint32_t rows;
};

static int row_show(void *ctx, const struct amp_history_row *r, struct amp_error *err)
{
    struct history_reading *h = ctx;
    AMP_BUF struct amp_buf b = {.max = 65536};
    struct amp_span who = r->by.n ? r->by : r->agent.n ? r->agent : r->actor;
    int64_t at_ms = 0;
    char at[32];

    if (r->what == AMP_HISTORY_LEFT || r->implied)
        return 0;
    if (h->rows++ == ROWS_MAX) {
        top_text_add(h->t, TOP_DIM, "", TOP_DIM, 0, AMP_SPAN("more: amp-ack log --id"));
        return 1;
    }
    (void)amp_time_parse(r->at, &at_ms);
    if (amp_buf_fmt(&b, err, "%.*s %.*s  ", AMP_CLIP(r->kind, 40), AMP_CLIP(r->event, 40)) < 0 ||
        (!amp_span_eq(r->from, r->to) &&
         amp_buf_fmt(&b, err, "%.*s%s%.*s  ", AMP_CLIP(r->from, 40), r->from.n ? " → " : "",
                     AMP_CLIP(r->to, 40)) < 0) ||
        amp_buf_fmt(&b, err, "%.*s%s%.*s%s%.*s%s", AMP_CLIP(who, 100), r->code.n ? "  " : "",
                    AMP_CLIP(r->code, 60), r->why.n ? ": " : "", AMP_CLIP(r->why, 4000),
                    r->late ? "  (late)" : "") < 0)
        return -1;
    top_text_add(h->t, TOP_DIM, top_time_text(h->src, at_ms, at), r->code.n ? TOP_BAD : TOP_PLAIN,
                 0, amp_buf_span(&b));
    return 0;
}

/* Shows what happened to the message, from the index of the log. */
static void history_show(struct top_source *src, struct amp_span id, struct top_text *t)
{
    const struct amp_history_filter f = {.id = id};
    struct history_reading h = {.src = src, .t = t};
    struct amp_history_finder *finder;
    struct amp_error err;

    top_head_add(t, "history");
    if (amp_history_finder_open(src->store, &f, NULL, &finder, &err) < 0) {
        top_failed_add(t, &err);
        return;
    }
    if (amp_history_finder_read(finder, row_show, &h, &err) < 0)
        top_failed_add(t, &err);
    else if (h.rows == 0)
        top_text_add(t, TOP_DIM, "", TOP_DIM, 0, AMP_SPAN("nothing is recorded"));
    amp_history_finder_free(finder);
}

/* ---- messages ---- */

void top_message_show(struct top_source *src, struct amp_key key, const char *name, bool opened,
                      struct top_text *t)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_RECORD_MAX};
    struct amp_store_rec rec;
    struct amp_message_rec r;
    struct amp_error err;
    char at[32], text[300];

    snprintf(t->title, sizeof t->title, "%.100s", name);
    if (amp_store_get(src->store, key, &rec, &err) < 0 ||
        (rec.found && amp_message_parse(&rec, &mem, &r, &err) < 0)) {
        top_failed_add(t, &err);
        return;
    }
    if (!rec.found) {
        top_text_add(t, TOP_DIM, "", TOP_DIM, 0, AMP_SPAN("there is no such message any more"));
        return;
    }
    top_fact_add(t, "state", amp_delivery_fsm.states[r.state].name);
    snprintf(text, sizeof text, "%.*s  %.*s → %.*s", AMP_CLIP(r.type, 60), AMP_CLIP(r.from, 60),
             AMP_CLIP(r.to, 60));
    top_fact_add(t, "message", text);
    if (r.task.n) {
        top_text_add(t, TOP_DIM, "task", TOP_PLAIN, 0, r.task);
        top_link_add(t, TOP_TO_TASK, r.task);
    }
    if (r.holder.n)
        top_text_add(t, TOP_DIM, "holder", TOP_PLAIN, 0, r.holder);
    top_fact_add(t, "sent", top_time_text(src, r.sent_ms, at));
    top_fact_add(t, "due", top_time_text(src, r.due_ms, at));
    top_fact_add(t, "expires", top_time_text(src, r.expires_ms, at));
    for (uint32_t i = 0; i < r.n_acks; i++) {
        const struct amp_ack_note *a = &r.acks[i];
        snprintf(text, sizeof text, "%s by %.100s%s%.*s%s", a->stage, a->by, a->code.n ? ": " : "",
                 AMP_CLIP(a->code, 60), a->late ? " (late)" : "");
        top_text_add(t, TOP_DIM, top_time_text(src, a->at_ms, at), a->code.n ? TOP_BAD : TOP_GOOD,
                     0, amp_span_str(text));
    }
    if (opened)
        history_show(src, amp_span_str(name), t);
    top_head_add(t, "line");
    json_show(r.line, t);
}

struct inbox_reading {
    struct top_source *src;
    struct top_text *t;
};

static int inbox_line(void *ctx, const struct amp_inbox_msg *m)
{
    const struct inbox_reading *r = ctx;
    char text[700], label[TOP_LABEL_MAX] = "";
    top_age(r->src->m->now_ms - m->at_ms, label);
    bool known = m->lane >= 0 && m->lane < AMP_LANE_COUNT;
    snprintf(text, sizeof text, "%s  %.*s%s", known ? amp_lane_name((enum amp_lane)m->lane) : "-",
             AMP_CLIP(m->id, 500), m->redelivered ? "  (redelivered)" : "");
    top_text_add(r->t, TOP_DIM, label, TOP_STRONG, 0, amp_span_str(text));
    top_link_add(r->t, TOP_TO_INBOXED, m->id);
    struct amp_span line = {m->line.p, m->line.n > 300 ? 300 : m->line.n};
    if (line.n)
        top_text_add(r->t, TOP_DIM, "", TOP_DIM, 2, line);
    return 0;
}

void top_inbox_show(struct top_source *src, const char *agent, struct top_text *t)
{
    struct inbox_reading r = {.src = src, .t = t};
    struct amp_error err;
    snprintf(t->title, sizeof t->title, "inbox of %.100s", agent);
    snprintf(t->of, sizeof t->of, "%s", agent);
    if (amp_inbox_each(src->store, amp_span_str(agent), inbox_line, &r, &err) < 0)
        top_failed_add(t, &err);
    if (t->n == 0)
        top_text_add(t, TOP_DIM, "", TOP_DIM, 0, AMP_SPAN("no message waits"));
}

/* A message that is only in an inbox, not in the ledger. */
struct inboxed {
    struct top_source *src;
    struct top_text *t;
    struct amp_span id;
    bool found;
};

static int inboxed_line(void *ctx, const struct amp_inbox_msg *m)
{
    struct inboxed *i = ctx;
    char at[32];
    if (i->found || !amp_span_eq(m->id, i->id))
        return 0;
    i->found = true;
    top_fact_add(i->t, "since", top_time_text(i->src, m->at_ms, at));
    top_fact_add(i->t, "expires", top_time_text(i->src, m->expires_ms, at));
    top_head_add(i->t, "line");
    json_show(m->line, i->t);
    return 1;
}

static void inboxed_show(struct top_source *src, const char *agent, const char *id,
                         struct top_text *t)
{
    AMP_BUF struct amp_buf mem = {.max = 65536}, row = {.max = AMP_RECORD_MAX};
    struct inboxed in = {.src = src, .t = t, .id = amp_span_str(id)};
    struct amp_message_rec r;
    struct amp_error err;
    struct amp_span known;

    snprintf(t->title, sizeof t->title, "%.100s", id);
    if (amp_inbox_known_as(src->store, amp_span_str(agent), in.id, &mem, &known, &err) < 0 ||
        amp_message_find(src->store, known, &row, &r, &err) < 0) {
        top_failed_add(t, &err);
        return;
    }
    if (r.found) {
        AMP_FREE char *name = amp_span_dup(known);
        if (name)
            top_message_show(src, AMP_KEY_NAMED(AMP_MESSAGE_KIND, known), name, true, t);
        return;
    }
    if (amp_inbox_each(src->store, amp_span_str(agent), inboxed_line, &in, &err) < 0)
        top_failed_add(t, &err);
    else if (!in.found)
        top_text_add(t, TOP_DIM, "", TOP_DIM, 0, AMP_SPAN("it does not wait any more"));
    history_show(src, in.id, t);
}

void top_lane_show(struct top_source *src, const char *lane, struct top_text *t)
{
    const struct top_list *l = &src->m->list[TOP_INBOXES];
    int at = (int)top_list_find(&src->m->list[TOP_LANES], lane);
    char text[100], age[16];
    snprintf(t->title, sizeof t->title, "lane %.60s", lane);
    for (size_t i = 0; at >= 0 && at < 3 && i < l->n; i++) {
        const int64_t *h = &l->v[i].hidden[3 * at];
        if (h[0] == 0)
            continue;
        top_age(src->m->now_ms - h[2], age);
        snprintf(text, sizeof text, "%lld waiting, %lld bytes, the oldest for %s", (long long)h[0],
                 (long long)h[1], age);
        top_fact_add(t, l->v[i].key, text);
        top_link_add(t, TOP_TO_INBOX, amp_span_str(l->v[i].key));
    }
    if (t->n == 0)
        top_text_add(t, TOP_DIM, "", TOP_DIM, 0, AMP_SPAN("no message waits in this lane"));
}

/* ---- what a line leads to ---- */

void top_link_read(struct top_source *src, enum top_link to, const char *of, const char *key,
                   struct top_text *t)
{
    top_text_release(t);
    switch (to) {
    case TOP_TO_TASK:
        top_task_show(src, key, t);
        break;
    case TOP_TO_INBOX:
        top_inbox_show(src, key, t);
        break;
    case TOP_TO_INBOXED:
        inboxed_show(src, of, key, t);
        break;
    case TOP_TO_NOTHING:
        break;
    }
}
