/*
 * What the work costs, as the agents reported it (amp-agent-contract(7)): the usage in the work log
 * of each result, and the usage that the ledger recorded of other outcomes.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "message/record/record.h"
#include "message/settle/spent.h"
#include "read.h"
#include "task/task.h"

#define RESULT "task_result-"
/* What the prefix of a key may have. */
#define PLAIN "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

struct spent {
    struct top_source *src;
    char task[300];
    int64_t results, in, out, micros, turns, last_ms;
    char agent[128];
};

static int64_t number_of(const json_t *usage, const char *key)
{
    const json_t *v = json_object_get(usage, key);
    double d = json_number_value(v);
    return d > 0 && d < 1e15 ? (int64_t)d : 0;
}

/* The entry of the work log with the action "usage" has the agent's own numbers. */
static bool log_sum(struct spent *s, const json_t *log)
{
    bool any = false;
    size_t i;
    const json_t *e;
    json_array_foreach (log, i, e) {
        const char *action = json_string_value(json_object_get(e, "action"));
        const char *detail = json_string_value(json_object_get(e, "detail"));
        if (!action || !detail || strcmp(action, "usage") != 0)
            continue;
        json_auto_t *used = json_loads(detail, 0, NULL);
        double usd = json_number_value(json_object_get(used, "cost_usd"));
        s->in += number_of(used, "input_tokens");
        s->out += number_of(used, "output_tokens");
        s->turns += number_of(used, "turns");
        s->micros += usd > 0 && usd < 1e9 ? (int64_t)(usd * 1e6 + 0.5) : 0;
        any = true;
    }
    return any;
}

static void spent_begin(struct spent *s, const char *task)
{
    struct top_source *src = s->src;
    *s = (struct spent){.src = src};
    snprintf(s->task, sizeof s->task, "%s", task);
}

static int spent_end(struct spent *s, struct amp_error *err)
{
    struct top_draft d;
    if (!s->results)
        return 0;
    top_draft_begin(&d, amp_span_str(s->task), amp_span_str(s->task));
    top_draft_text(&d, 0, TOP_STRONG, amp_span_str(s->task));
    top_draft_number(&d, 1, TOP_PLAIN, TOP_NUMBER, s->results, 0);
    top_draft_number(&d, 2, TOP_PLAIN, TOP_COUNT, s->in, 0);
    top_draft_number(&d, 3, TOP_PLAIN, TOP_COUNT, s->out, 0);
    top_draft_number(&d, 4, TOP_ACCENT, TOP_MONEY, s->micros, 0);
    top_draft_number(&d, 5, TOP_DIM, TOP_NUMBER, s->turns, 0);
    top_draft_number(&d, 6, TOP_DIM, TOP_AGE, s->last_ms, 0);
    top_draft_text(&d, 7, TOP_DIM, amp_span_str(s->agent));
    d.hidden[0] = s->in;
    d.hidden[1] = s->out;
    d.hidden[2] = s->micros;
    return top_draft_end(&d, &s->src->m->list[TOP_COST], false, err);
}

static int result_read(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                       struct amp_error *err)
{
    struct spent *s = ctx;
    struct amp_message_rec r;
    char task[sizeof s->task];
    (void)id;
    if (amp_message_parse(rec, &s->src->mem, &r, err) < 0)
        return -1;
    if (r.task.n == 0 || r.task.n >= sizeof task || !memmem(r.line.p, r.line.n, "usage", 5))
        return 0;
    amp_span_copy(r.task, task, sizeof task);
    if (strcmp(task, s->task) != 0) {
        if (spent_end(s, err) < 0)
            return -1;
        spent_begin(s, task);
    }
    json_auto_t *line = json_loadb(r.line.p, r.line.n, 0, NULL);
    const json_t *message = json_object_get(line, "msg");
    const json_t *payload = json_object_get(message ? message : line, "payload");
    if (!log_sum(s, json_object_get(payload, "work_log")) &&
        !log_sum(s, json_object_get(payload, "execution_log")))
        return 0;
    s->results++;
    s->last_ms = r.sent_ms;
    amp_span_copy(r.from, s->agent, sizeof s->agent);
    return 0;
}

/* A row for each message: the name of its task is one of a session. */
static int spent_read(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                      struct amp_error *err)
{
    struct top_source *src = ctx;
    struct amp_spent s;
    struct top_draft d;
    char task[300];
    if (amp_spent_parse(rec, &src->mem, &s, err) < 0)
        return -1;
    snprintf(task, sizeof task, "%.*s of %.*s", AMP_CLIP(s.task, 120),
             AMP_CLIP(s.correlation, 120));
    top_draft_begin(&d, id, AMP_SPAN(""));
    top_draft_text(&d, 0, TOP_STRONG, amp_span_str(task));
    top_draft_number(&d, 1, TOP_PLAIN, TOP_NUMBER, 1, 0);
    top_draft_number(&d, 2, TOP_PLAIN, TOP_COUNT, s.tokens_in, 0);
    top_draft_number(&d, 3, TOP_PLAIN, TOP_COUNT, s.tokens_out, 0);
    top_draft_number(&d, 4, TOP_ACCENT, TOP_MONEY, s.micros, 0);
    top_draft_number(&d, 5, TOP_DIM, TOP_NUMBER, 0, 0);
    top_draft_number(&d, 6, TOP_DIM, TOP_AGE, s.at_ms, 0);
    top_draft_text(&d, 7, TOP_DIM, s.agent);
    d.hidden[0] = s.tokens_in;
    d.hidden[1] = s.tokens_out;
    d.hidden[2] = s.micros;
    return top_draft_end(&d, &src->m->list[TOP_COST], false, err);
}

/* The results of AMP for a task; task empty: for all tasks. */
static int results_read(struct top_source *src, struct amp_span task, struct amp_error *err)
{
    struct spent s = {.src = src};
    char prefix[400];

    if (task.n > 256)
        return 0;
    snprintf(prefix, sizeof prefix, RESULT "%.*s%s", AMP_CLIP(task, 256), task.n ? "-" : "");
    for (const char *p = prefix; *p; p++)
        if (!strchr(PLAIN, *p))
            return 0; /* not an id of a task */
    return amp_store_each_of(src->store, AMP_MESSAGE_KIND, amp_span_str(prefix), result_read, &s,
                             err) < 0
               ? -1
               : spent_end(&s, err);
}

/* The other outcomes: of the messages whose ids begin as `id` up to its first character that a
 * prefix cannot have. */
static int outcomes_read(struct top_source *src, struct amp_span id, struct amp_error *err)
{
    struct amp_span prefix = id;
    prefix.n = 0;
    while (prefix.n < id.n && strchr(PLAIN, id.p[prefix.n]))
        prefix.n++;
    return prefix.n ? amp_store_each_of(src->store, AMP_SPENT_KIND, prefix, spent_read, src, err)
                    : amp_store_each(src->store, AMP_SPENT_KIND, NULL, spent_read, src, err);
}

int top_costs_read(struct top_source *src, struct amp_span of, struct amp_error *err)
{
    struct top_model *m = src->m;
    bool message = of.n && memchr(of.p, '/', of.n);

    if ((!message && results_read(src, of, err) < 0) ||
        ((message || of.n == 0) && outcomes_read(src, of, err) < 0))
        return -1;
    m->tokens_in = m->tokens_out = m->micros = 0;
    for (size_t i = 0; i < m->list[TOP_COST].n; i++) {
        const int64_t *h = m->list[TOP_COST].v[i].hidden;
        m->tokens_in += h[0];
        m->tokens_out += h[1];
        m->micros += h[2];
    }
    return 0;
}

void top_cost_text(const struct top_model *m, const char *task, char out[80])
{
    const struct top_list *l = &m->list[TOP_COST];
    int64_t at = top_list_find(l, task);
    char in[16], sent[16], money[24];
    *out = '\0';
    if (at < 0)
        return;
    top_short(l->v[at].hidden[0], in);
    top_short(l->v[at].hidden[1], sent);
    top_money(l->v[at].hidden[2], money);
    snprintf(out, 80, "%s, %s tokens in, %s out", money, in, sent);
}
