/* The lists as plain lines, or as records (schemas/records/top.json). */
#include <amp/base/clock.h>
#include <amp/json/writer.h>

#include "cli/table.h"
#include "top.h"

#define LINE_MAX_BYTES 65536

/* ---- text ---- */

static int line_out(const char *text, struct amp_error *err)
{
    AMP_BUF struct amp_buf b = {.max = LINE_MAX_BYTES};
    return amp_text_safe(amp_span_str(text), 0, &b, err) < 0 || amp_buf_str(&b, "\n", err) < 0
               ? -1
               : amp_out(amp_buf_span(&b), err);
}

/* A table has less columns than a list may have: empty ones are left out. */
static int list_text(const struct top_model *m, enum top_pane p, struct amp_error *err)
{
    const struct top_list *l = &m->list[p];
    const struct top_column *c = top_columns_of[p];
    const char *head[AMP_TABLE_COLUMNS];
    int of[AMP_TABLE_COLUMNS], n = 0;
    struct amp_table t;
    char text[64];

    snprintf(text, sizeof text, "%s (%llu)", top_pane_title(p), (unsigned long long)l->total);
    if (line_out(text, err) < 0)
        return -1;
    for (int k = 0; k < TOP_COLUMNS && c[k].title && n < AMP_TABLE_COLUMNS; k++) {
        bool any = false;
        for (size_t i = 0; *c[k].title && i < l->n && !any; i++) {
            char value[600];
            top_value_text(&l->v[i].value[k], m->now_ms, value, sizeof value);
            any = *value != '\0';
        }
        if (any) {
            head[n] = c[k].title;
            of[n++] = k;
        }
    }
    if (n == 0)
        return 0;
    amp_table_init(&t, head, n);
    int rc = 0;
    for (size_t i = 0; i < l->n && rc == 0; i++) {
        char value[AMP_TABLE_COLUMNS][600];
        struct amp_span cells[AMP_TABLE_COLUMNS];
        for (int k = 0; k < n; k++) {
            top_value_text(&l->v[i].value[of[k]], m->now_ms, value[k], sizeof value[k]);
            cells[k] = amp_span_str(value[k]);
        }
        rc = amp_table_row(&t, cells, n, err);
    }
    if (rc == 0)
        rc = amp_table_print(&t, err);
    amp_table_release(&t);
    if (rc == 0 && l->total > l->n) {
        snprintf(text, sizeof text, "… and %llu more", (unsigned long long)(l->total - l->n));
        rc = line_out(text, err);
    }
    return rc;
}

static int summary_text(const struct top_model *m, struct amp_error *err)
{
    char text[400], cost[24];
    top_money(m->micros, cost);
    snprintf(text, sizeof text,
             "%llu messages open, %llu dead, %u in inboxes, %u agents at work, %llu questions, %u "
             "suspensions, %s",
             (unsigned long long)m->open, (unsigned long long)m->dead, m->waiting, m->working,
             (unsigned long long)m->list[TOP_QUESTIONS].total, m->n_paused, cost);
    return line_out(text, err);
}

/* ---- records ---- */

static void value_json(struct amp_jw *w, const char *key, const struct top_value *v)
{
    char time[AMP_TIME_MAX], number[40];
    if (v->kind == TOP_TEXT) {
        amp_jw_some_str(w, key, amp_span_str(v->text));
    } else if (v->kind == TOP_AGE || v->kind == TOP_UNTIL) {
        if (v->n > 0) {
            amp_time_format(v->n, time);
            amp_jw_member_text(w, key, time);
        }
    } else if (v->kind == TOP_MONEY) {
        snprintf(number, sizeof number, "%lld.%06lld", (long long)(v->n / 1000000),
                 (long long)(v->n % 1000000));
        amp_jw_member_raw(w, key, amp_span_str(number));
    } else {
        amp_jw_member_int(w, key, v->n);
        if (v->kind == TOP_GAUGE)
            amp_jw_member_int(w, "bound", v->most);
    }
}

static int record_out(struct amp_jw *w, struct amp_buf *b, struct amp_error *err)
{
    amp_jw_close(w, '}');
    return amp_jw_end_line(w, err) < 0 ? -1 : amp_out(amp_buf_span(b), err);
}

static int list_json(const struct top_model *m, enum top_pane p, struct amp_error *err)
{
    const struct top_list *l = &m->list[p];
    const struct top_column *c = top_columns_of[p];
    for (size_t i = 0; i < l->n; i++) {
        AMP_BUF struct amp_buf b = {.max = LINE_MAX_BYTES};
        struct amp_jw w;
        amp_jw_init(&w, &b);
        amp_jw_open(&w, '{');
        amp_jw_member_text(&w, "list", top_pane_word(p));
        for (int k = 0; k < TOP_COLUMNS && c[k].title; k++)
            value_json(&w, c[k].word, &l->v[i].value[k]);
        if (record_out(&w, &b, err) < 0)
            return -1;
    }
    return 0;
}

static int summary_json(const struct top_model *m, struct amp_error *err)
{
    AMP_BUF struct amp_buf b = {.max = LINE_MAX_BYTES};
    struct amp_jw w;
    char now[AMP_TIME_MAX];
    const struct top_value usd = {.kind = TOP_MONEY, .n = m->micros};
    amp_jw_init(&w, &b);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "list", "summary");
    amp_time_format(m->now_ms, now);
    amp_jw_member_text(&w, "time", now);
    amp_jw_member_uint(&w, "open_messages", m->open);
    amp_jw_member_uint(&w, "dead_letters", m->dead);
    amp_jw_member_uint(&w, "in_inboxes", m->waiting);
    amp_jw_member_uint(&w, "agents_at_work", m->working);
    amp_jw_member_uint(&w, "suspensions", m->n_paused);
    amp_jw_member_uint(&w, "log_per_minute", top_rate(m, 1, false));
    amp_jw_member_uint(&w, "messages_per_minute", top_rate(m, 1, true));
    amp_jw_member_int(&w, "input_tokens", m->tokens_in);
    amp_jw_member_int(&w, "output_tokens", m->tokens_out);
    value_json(&w, "cost_usd", &usd);
    amp_jw_member_open(&w, "total", '{');
    for (int p = 0; p < TOP_PANE_COUNT; p++)
        amp_jw_member_uint(&w, top_pane_word((enum top_pane)p), m->list[p].total);
    amp_jw_close(&w, '}');
    return record_out(&w, &b, err);
}

int top_plain_print(const struct top_model *m, bool ndjson, enum top_pane pane,
                    struct amp_error *err)
{
    if ((ndjson ? summary_json(m, err) : summary_text(m, err)) < 0)
        return -1;
    for (int p = 0; p < TOP_PANE_COUNT; p++) {
        if (pane != TOP_PANE_COUNT && (int)pane != p)
            continue;
        if (!ndjson && line_out("", err) < 0)
            return -1;
        if ((ndjson ? list_json(m, (enum top_pane)p, err) : list_text(m, (enum top_pane)p, err)) <
            0)
            return -1;
    }
    return amp_out_flush(err);
}
