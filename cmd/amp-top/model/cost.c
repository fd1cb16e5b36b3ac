/*
 * Shows what the work costs, as the agents reported it (amp-agent-contract(7)): the usage in the
 * work log of each result, and the usage that was recorded of other outcomes, reviews and repeated
 * attempts.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "message/delivery/record/record.h"
#include "message/delivery/settle/cost.h"
#include "read.h"
#include "work/task/task.h"

#define RESULT "task_result-"
/* The prefix of a key may have these characters. */
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

/* The sums of a row, as its hidden numbers. */
enum { IN, OUT, MICROS, RESULTS, TURNS, LAST, SUMS };

static int row_put(struct top_source *src, struct amp_span key, struct amp_span name,
                   struct amp_span agent, const int64_t sum[SUMS], struct amp_error *err)
{
    struct top_draft d;
    top_draft_begin(&d, key, key.p == name.p ? key : AMP_SPAN(""));
    top_draft_text(&d, 0, TOP_STRONG, name);
    top_draft_number(&d, 1, TOP_PLAIN, TOP_NUMBER, sum[RESULTS], 0);
    top_draft_number(&d, 2, TOP_PLAIN, TOP_COUNT, sum[IN], 0);
    top_draft_number(&d, 3, TOP_PLAIN, TOP_COUNT, sum[OUT], 0);
    top_draft_number(&d, 4, TOP_ACCENT, TOP_MONEY, sum[MICROS], 0);
    top_draft_number(&d, 5, TOP_DIM, TOP_NUMBER, sum[TURNS], 0);
    top_draft_number(&d, 6, TOP_DIM, TOP_AGE, sum[LAST], 0);
    top_draft_text(&d, 7, TOP_DIM, agent);
    memcpy(d.hidden, sum, SUMS * sizeof *sum);
    return top_draft_end(&d, &src->m->list[TOP_COST], false, err);
}

static int spent_end(struct spent *s, struct amp_error *err)
{
    const int64_t sum[SUMS] = {s->in, s->out, s->micros, s->results, s->turns, s->last_ms};
    struct amp_span task = amp_span_str(s->task);
    return s->results ? row_put(s->src, task, task, amp_span_str(s->agent), sum, err) : 0;
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

/* For messages of AMP, the usage of an attempt belongs to the row of the task. */
static const char *const worked_on[] = {"review_request-", "task_dispatch-"};
enum { WORKED_ON = sizeof worked_on / sizeof *worked_on };

/* The task in the id of such a record, or "". */
static struct amp_span task_of(struct amp_span id)
{
    for (size_t i = 0; i < WORKED_ON; i++) {
        size_t n = strlen(worked_on[i]);
        const char *end =
            amp_span_starts(id, worked_on[i]) ? memrchr(id.p + n, '-', id.n - n) : NULL;
        if (end)
            return (struct amp_span){id.p + n, (size_t)(end - id.p) - n};
    }
    return AMP_SPAN("");
}

/* Adds an attempt to the row of its task. */
static int attempt_add(struct top_source *src, const struct amp_cost *s, struct amp_error *err)
{
    const struct top_list *l = &src->m->list[TOP_COST];
    int64_t sum[SUMS] = {0};
    char task[300], agent[128];

    amp_span_copy(s->task, task, sizeof task);
    amp_span_copy(s->agent, agent, sizeof agent);
    int64_t at = top_list_find(l, task);
    if (at >= 0)
        memcpy(sum, l->v[at].hidden, sizeof sum);
    if (at >= 0 && sum[LAST] > s->at_ms)
        snprintf(agent, sizeof agent, "%s", l->v[at].value[7].text);
    sum[IN] += s->tokens_in;
    sum[OUT] += s->tokens_out;
    sum[MICROS] += s->micros;
    sum[LAST] = sum[LAST] > s->at_ms ? sum[LAST] : s->at_ms;
    return row_put(src, amp_span_str(task), amp_span_str(task), amp_span_str(agent), sum, err);
}

/* Otherwise a row for each message: the name of its task is one of a session. */
static int spent_read(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                      struct amp_error *err)
{
    struct top_source *src = ctx;
    struct amp_cost s;
    char task[300];
    if (amp_cost_parse(rec, &src->mem, &s, err) < 0)
        return -1;
    if (task_of(id).n)
        return attempt_add(src, &s, err);
    const int64_t sum[SUMS] = {s.tokens_in, s.tokens_out, s.micros, 1, 0, s.at_ms};
    snprintf(task, sizeof task, "%.*s of %.*s", AMP_CLIP(s.task, 120),
             AMP_CLIP(s.correlation, 120));
    return row_put(src, id, amp_span_str(task), s.agent, sum, err);
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
    return prefix.n ? amp_store_each_of(src->store, AMP_COST_KIND, prefix, spent_read, src, err)
                    : amp_store_each(src->store, AMP_COST_KIND, NULL, spent_read, src, err);
}

/* Makes the row of a task again. */
static int task_read(struct top_source *src, struct amp_span of, struct amp_error *err)
{
    char task[300], prefix[400];
    int rc = 0;

    amp_span_copy(of, task, sizeof task);
    top_list_remove(&src->m->list[TOP_COST], task);
    if (results_read(src, of, err) < 0)
        return -1;
    for (size_t i = 0; i < WORKED_ON && rc == 0; i++) {
        snprintf(prefix, sizeof prefix, "%s%.300s-", worked_on[i], task);
        if (amp_key_prefix(amp_span_str(prefix)).n == strlen(prefix))
            rc = amp_store_each_of(src->store, AMP_COST_KIND, amp_span_str(prefix), spent_read, src,
                                   err);
    }
    return rc < 0 ? -1 : 0;
}

int top_costs_read(struct top_source *src, struct amp_span of, struct amp_error *err)
{
    struct top_model *m = src->m;
    struct amp_span task = task_of(of).n ? task_of(of) : of;
    bool message = task.n && memchr(task.p, '/', task.n);

    if (task.n && !message
            ? task_read(src, task, err) < 0
            : (!message && results_read(src, task, err) < 0) || outcomes_read(src, task, err) < 0)
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
