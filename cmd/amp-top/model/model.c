/* The lists of the model, its counts, and how values are written. */
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define ROW_MAX   8192
#define MINUTE_MS 60000

static const char *const titles[][3] = {
#define X(id, title, tab, word) {title, tab, word},
    TOP_PANES(X)
#undef X
};

const char *top_pane_title(enum top_pane p)
{
    return titles[p][0];
}

const char *top_pane_tab(enum top_pane p)
{
    return titles[p][1];
}

const char *top_pane_word(enum top_pane p)
{
    return titles[p][2];
}

/* title, member, least and most columns, right, flex, keep */
const struct top_column top_columns_of[TOP_PANE_COUNT][TOP_COLUMNS + 1] = {
    [TOP_TASKS] = {{"TASK", "task_id", 10, 20, false, false, 9},
                   {"STATE", "words", 12, 36, false, false, 8},
                   {"TRY", "attempts", 3, 3, true, false, 4},
                   {"AGE", "updated", 4, 5, true, false, 6},
                   {"DESCRIPTION", "description", 20, 0, false, true, 7},
                   {"", "state", 0, 0, false, false, 0},
                   {"", "step", 0, 0, false, false, 0},
                   {"", "verdict", 0, 0, false, false, 0},
                   {"", "agent", 0, 0, false, false, 0},
                   {"", "question", 0, 0, false, false, 0}},
    [TOP_AGENTS] = {{"AGENT", "agent", 8, 24, false, false, 9},
                    {"STATE", "words", 8, 17, false, false, 8},
                    {"ROLE", "role", 8, 10, false, false, 3},
                    {"TASK", "task_id", 10, 20, false, false, 7},
                    {"SEEN", "last_seen", 4, 5, true, false, 6},
                    {"BRANCH", "branch", 8, 24, false, false, 4},
                    {"WORKTREE", "worktree", 10, 0, false, true, 2},
                    {"", "state", 0, 0, false, false, 0}},
    [TOP_QUESTIONS] = {{"ABOUT", "about", 10, 20, false, false, 9},
                       {"TYPE", "type", 8, 20, false, false, 8},
                       {"SEVERITY", "severity", 8, 8, false, false, 6},
                       {"AGE", "arrived", 4, 5, true, false, 7},
                       {"LEFT", "deadline", 4, 5, true, false, 7},
                       {"VOTES", "votes", 5, 5, true, false, 3},
                       {"QUESTION", "text", 20, 0, false, true, 6}},
    [TOP_INBOXES] = {{"INBOX", "agent", 8, 24, false, false, 9},
                     {"WAITING", "waiting", 13, 18, false, false, 8},
                     {"OPEN", "unfinished", 4, 5, true, false, 5},
                     {"OLDEST", "oldest", 6, 6, true, false, 7},
                     {"BUSY", "busy_since", 4, 5, true, false, 6},
                     {"NEXT", "next", 8, 0, false, true, 4}},
    [TOP_LANES] = {{"LANE", "lane", 10, 12, false, false, 9},
                   {"WAITING", "waiting", 7, 8, true, false, 8},
                   {"BYTES", "bytes", 6, 7, true, false, 5},
                   {"OLDEST", "oldest", 6, 6, true, false, 7},
                   {"INBOXES", "inboxes", 7, 0, false, true, 6}},
    [TOP_MESSAGES] = {{"STATE", "state", 8, 9, false, false, 8},
                      {"TYPE", "type", 8, 16, false, false, 6},
                      {"FROM", "from", 6, 16, false, false, 5},
                      {"TO", "to", 6, 16, false, false, 5},
                      {"TASK", "task_id", 8, 14, false, false, 4},
                      {"SENT", "sent", 4, 5, true, false, 7},
                      {"DUE", "due", 4, 5, true, false, 6},
                      {"MESSAGE", "msg_id", 12, 0, false, true, 9}},
    [TOP_DEADLINES] = {{"LEFT", "due", 5, 6, true, false, 9},
                       {"WHAT", "what", 10, 20, false, false, 8},
                       {"STATE", "state", 8, 14, false, false, 5},
                       {"OF", "of", 12, 0, false, true, 7}},
    [TOP_COST] = {{"TASK", "task_id", 10, 20, false, false, 9},
                  {"RESULTS", "results", 7, 7, true, false, 5},
                  {"IN", "input_tokens", 6, 8, true, false, 7},
                  {"OUT", "output_tokens", 6, 8, true, false, 7},
                  {"COST", "cost_usd", 6, 10, true, false, 8},
                  {"TURNS", "turns", 5, 5, true, false, 4},
                  {"LAST", "last", 4, 5, true, false, 6},
                  {"AGENT", "agent", 8, 0, false, true, 3}},
};

static void row_release(struct top_row *r)
{
    free(r->mem);
    *r = (struct top_row){0};
}

void top_list_cut(struct top_list *l, size_t n)
{
    while (l->n > n)
        row_release(&l->v[--l->n]);
}

void top_list_clear(struct top_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        row_release(&l->v[i]);
    l->n = 0;
}

void top_model_release(struct top_model *m)
{
    for (int p = 0; p < TOP_PANE_COUNT; p++) {
        top_list_clear(&m->list[p]);
        free(m->list[p].v);
        m->list[p] = (struct top_list){0};
    }
}

/* ---- rows ---- */

static size_t text_keep(struct top_draft *d, struct amp_span text)
{
    struct amp_error err;
    size_t at = d->mem.len;
    /* A cell never shows more than a line of the terminal. */
    struct amp_span cut = {text.p, text.n > 500 ? 500 : text.n};
    if (amp_buf_add(&d->mem, cut.p ? cut.p : "", cut.n, &err) < 0 ||
        amp_buf_add(&d->mem, "", 1, &err) < 0)
        d->failed = true;
    /* A NUL in a text would end it. */
    for (size_t i = at; !d->failed && i + 1 < d->mem.len; i++)
        if (!d->mem.data[i])
            d->mem.data[i] = '?';
    return at;
}

void top_draft_begin(struct top_draft *d, struct amp_span key, struct amp_span of)
{
    *d = (struct top_draft){0};
    amp_buf_init(&d->mem, ROW_MAX);
    d->key = text_keep(d, key);
    d->of = text_keep(d, of);
}

void top_draft_text(struct top_draft *d, int column, uint8_t tone, struct amp_span text)
{
    d->value[column] = (struct top_value){.kind = TOP_TEXT, .tone = tone};
    d->text[column] = text_keep(d, text);
}

void top_draft_number(struct top_draft *d, int column, uint8_t tone, enum top_kind kind, int64_t n,
                      int64_t most)
{
    d->value[column] =
        (struct top_value){.kind = (uint8_t)kind, .tone = tone, .n = n, .most = most};
}

int64_t top_list_find(const struct top_list *l, const char *key)
{
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->v[i].key, key) == 0)
            return (int64_t)i;
    return -1;
}

int top_draft_end(struct top_draft *d, struct top_list *l, bool known, struct amp_error *err)
{
    if (d->failed || amp_grow(&l->v, &l->cap, l->n, sizeof *l->v, err) < 0) {
        amp_buf_release(&d->mem);
        return amp_fail_memory(err);
    }
    struct top_row row = {.mem = d->mem.data, .rank = d->rank};
    d->mem = (struct amp_buf){0};
    row.key = row.mem + d->key;
    row.of = row.mem + d->of;
    memcpy(row.hidden, d->hidden, sizeof row.hidden);
    for (int c = 0; c < TOP_COLUMNS; c++) {
        row.value[c] = d->value[c];
        row.value[c].text = d->text[c] ? row.mem + d->text[c] : "";
    }
    int64_t at = known ? -1 : top_list_find(l, row.key);
    if (at >= 0)
        row_release(&l->v[at]);
    else
        at = (int64_t)l->n++;
    l->v[at] = row;
    if (!l->window)
        l->total = l->n;
    return 0;
}

void top_list_remove(struct top_list *l, const char *key)
{
    int64_t at = top_list_find(l, key);
    if (at < 0)
        return;
    row_release(&l->v[at]);
    l->n--;
    memmove(&l->v[at], &l->v[at + 1], (l->n - (size_t)at) * sizeof *l->v);
    if (!l->window)
        l->total = l->n;
}

/* ---- counts and activity ---- */

void top_count(struct top_model *m, int64_t at_ms, bool message)
{
    int64_t minute = at_ms / MINUTE_MS;
    if (at_ms <= 0)
        return;
    int i = (int)(minute % TOP_MINUTES);
    if (m->per[i].minute > minute)
        return;
    if (m->per[i].minute < minute) {
        m->per[i].minute = minute;
        m->per[i].entries = m->per[i].messages = 0;
    }
    m->per[i].entries++;
    m->per[i].messages += message;
}

uint32_t top_rate(const struct top_model *m, int ago, bool messages)
{
    int64_t minute = m->now_ms / MINUTE_MS - ago;
    int i = (int)(minute % TOP_MINUTES);
    if (minute < 0 || ago < 0 || ago >= TOP_MINUTES || m->per[i].minute != minute)
        return 0;
    return messages ? m->per[i].messages : m->per[i].entries;
}

struct top_event *top_feed_add(struct top_model *m)
{
    struct top_event *e = &m->feed[m->feed_at];
    m->feed_at = (m->feed_at + 1) % TOP_FEED;
    if (m->n_feed < TOP_FEED)
        m->n_feed++;
    *e = (struct top_event){0};
    return e;
}

const struct top_event *top_feed(const struct top_model *m, uint32_t i)
{
    return i < m->n_feed ? &m->feed[(m->feed_at + TOP_FEED - 1 - i) % TOP_FEED] : NULL;
}

/* ---- values ---- */

void top_age(int64_t ms, char out[16])
{
    long long s = ms / 1000;
    if (s < 60)
        snprintf(out, 16, "<1m");
    else if (s < 7200)
        snprintf(out, 16, "%lldm", s / 60);
    else if (s < 48 * 3600)
        snprintf(out, 16, "%lldh", s / 3600);
    else if (s < 86400LL * 9999)
        snprintf(out, 16, "%lldd", s / 86400);
    else
        snprintf(out, 16, ">27y");
}

void top_short(int64_t n, char out[16])
{
    static const char unit[] = "kMGT";
    double v = (double)n;
    int u = -1;
    for (; v >= 999.5 && u < 3; u++)
        v /= 1000;
    if (u < 0)
        snprintf(out, 16, "%lld", (long long)n);
    else
        snprintf(out, 16, v < 99.95 ? "%.1f%c" : "%.0f%c", v, unit[u]);
}

void top_money(int64_t micros, char out[24])
{
    snprintf(out, 24, micros >= 100000000 ? "$%.0f" : "$%.2f", (double)micros / 1e6);
}

void top_value_text(const struct top_value *v, int64_t now_ms, char *out, size_t size)
{
    char text[24] = "";
    if (size)
        *out = '\0';
    if (v->kind == TOP_TEXT) {
        snprintf(out, size, "%s", v->text);
        return;
    }
    if (v->kind == TOP_GAUGE) {
        snprintf(out, size, "%lld/%lld", (long long)v->n, (long long)v->most);
        return;
    }
    if (v->n == 0)
        return;
    if (v->kind == TOP_AGE)
        top_age(now_ms - v->n, text);
    else if (v->kind == TOP_UNTIL && v->n > now_ms)
        top_age(v->n - now_ms, text);
    else if (v->kind == TOP_UNTIL)
        snprintf(text, sizeof text, "due");
    else if (v->kind == TOP_COUNT)
        top_short(v->n, text);
    else if (v->kind == TOP_MONEY)
        top_money(v->n, text);
    else
        snprintf(text, sizeof text, "%lld", (long long)v->n);
    snprintf(out, size, "%s", text);
}
