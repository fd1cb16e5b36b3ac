/* The state of the view: order, selection, layout. */
#include "ui.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/grow.h"

void top_ui_init(struct top_ui *ui)
{
    *ui = (struct top_ui){.focus = TOP_TASKS, .other = TOP_MESSAGES, .text_at = TOP_NO_LINE};
    for (int p = 0; p < TOP_PANE_COUNT; p++)
        ui->place[p].sort = -1;
}

void top_ui_release(struct top_ui *ui)
{
    for (int p = 0; p < TOP_PANE_COUNT; p++)
        free(ui->place[p].order);
    top_text_release(&ui->text);
    *ui = (struct top_ui){0};
}

/* ---- order ---- */

static bool row_matches(const struct top_row *r, const char *filter)
{
    if (!*filter || strcasestr(r->key, filter))
        return true;
    for (int c = 0; c < TOP_COLUMNS; c++)
        if (r->value[c].kind == TOP_TEXT && r->value[c].text &&
            strcasestr(r->value[c].text, filter))
            return true;
    return false;
}

struct sorting {
    const struct top_list *l;
    int column;
    bool down;
};

static int rows_compare(const void *a, const void *b, void *ctx)
{
    const struct sorting *s = ctx;
    const uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const struct top_row *x = &s->l->v[i], *y = &s->l->v[k];
    int order = 0;
    if (s->column < 0) {
        order = (int)y->rank - (int)x->rank;
    } else {
        const struct top_value *u = &x->value[s->column], *v = &y->value[s->column];
        order = u->kind == TOP_TEXT ? strcasecmp(u->text, v->text) : u->n < v->n ? -1 : u->n > v->n;
    }
    if (s->down)
        order = -order;
    return order ? order : i < k ? -1 : i > k;
}

int top_ui_order(struct top_ui *ui, const struct top_model *m, enum top_pane p,
                 struct amp_error *err)
{
    const struct top_list *l = &m->list[p];
    struct top_place *at = &ui->place[p];
    struct sorting s = {.l = l, .column = at->sort, .down = at->down};
    at->n = 0;
    for (size_t i = 0; i < l->n && i < TOP_LIST_MOST; i++) {
        if (!row_matches(&l->v[i], ui->filter))
            continue;
        if (amp_grow(&at->order, &at->cap, at->n, sizeof *at->order, err) < 0)
            return -1;
        at->order[at->n++] = (uint32_t)i;
    }
    /* The lists in the order of time are sorted as they are. */
    if (at->n && !l->window && (at->sort >= 0 || p != TOP_DEADLINES))
        qsort_r(at->order, at->n, sizeof *at->order, rows_compare, &s);
    if (!l->window || *ui->filter) {
        for (size_t i = 0; *at->key && i < at->n; i++)
            if (strcmp(l->v[at->order[i]].key, at->key) == 0) {
                top_ui_select(ui, m, p, i);
                return 0;
            }
    }
    top_ui_select(ui, m, p, at->at);
    return 0;
}

uint64_t top_ui_rows(const struct top_ui *ui, const struct top_model *m, enum top_pane p)
{
    const struct top_list *l = &m->list[p];
    return l->window && !*ui->filter ? l->total : ui->place[p].n;
}

const struct top_row *top_ui_row(const struct top_ui *ui, const struct top_model *m,
                                 enum top_pane p)
{
    const struct top_list *l = &m->list[p];
    const struct top_place *at = &ui->place[p];
    uint64_t i = at->at;
    if (l->window && !*ui->filter)
        return i >= l->first && i - l->first < l->n ? &l->v[i - l->first] : NULL;
    return i < at->n && at->order[i] < l->n ? &l->v[at->order[i]] : NULL;
}

void top_ui_select(struct top_ui *ui, const struct top_model *m, enum top_pane p, uint64_t row)
{
    struct top_place *at = &ui->place[p];
    uint64_t n = top_ui_rows(ui, m, p);
    at->at = n == 0 ? 0 : row < n ? row : n - 1;
    const struct top_row *r = top_ui_row(ui, m, p);
    if (r)
        snprintf(at->key, sizeof at->key, "%s", r->key);
}

size_t top_ui_link(const struct top_text *t, size_t from, int by)
{
    size_t i = from;
    if (by < 0)
        while (i != TOP_NO_LINE && i-- > 0 && i < t->n)
            if (t->v[i].to != TOP_TO_NOTHING)
                return i;
    if (by > 0)
        for (i = from == TOP_NO_LINE ? 0 : from + 1; i < t->n; i++)
            if (t->v[i].to != TOP_TO_NOTHING)
                return i;
    return TOP_NO_LINE;
}

void top_ui_sort(struct top_ui *ui, enum top_pane p)
{
    struct top_place *at = &ui->place[p];
    at->sort++;
    /* The columns that are only members in JSON are the last ones. */
    const char *title = at->sort < TOP_COLUMNS ? top_columns_of[p][at->sort].title : NULL;
    if (!title || !*title)
        at->sort = -1;
    at->down = false;
}

/* ---- layout ---- */

/* Frame, titles of the columns, rows. */
#define AROUND 3

static int rows_wanted(const struct top_ui *ui, const struct top_model *m, enum top_pane p)
{
    uint64_t n = top_ui_rows(ui, m, p);
    return AROUND + (n == 0 ? 1 : n > 1000 ? 1000 : (int)n);
}

/* The lists are below each other. Each gets a row, then the list with the focus gets what it wants,
 * then the others; the rest goes to the first. */
static void column_lay(const struct top_ui *ui, const struct top_model *m, struct top_rect in,
                       const enum top_pane *panes, int n, struct top_layout *out)
{
    int height[TOP_PANE_COUNT], left = in.h, least = AROUND + 1;
    while (n > 1 && in.h < n * least)
        n--;
    for (int i = 0; i < n; i++) {
        height[i] = least;
        left -= least;
    }
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < n; i++) {
            int want = rows_wanted(ui, m, panes[i]) - height[i];
            /* Others keep a share, also if this one has many rows. */
            int most = round == 0 ? in.h / n + in.h / 6 - height[i] : left;
            if (want > most)
                want = most;
            if (want > left)
                want = left;
            if (want > 0) {
                height[i] += want;
                left -= want;
            }
        }
    if (left > 0)
        height[0] += left;
    for (int i = 0, y = in.y; i < n; i++) {
        out->pane[panes[i]] = (struct top_rect){in.x, y, in.w, height[i]};
        y += height[i];
    }
}

static bool is_other(enum top_pane p)
{
    return p == TOP_LANES || p == TOP_MESSAGES || p == TOP_DEADLINES || p == TOP_COST;
}

static void side_lay(struct top_rect in, struct top_layout *out)
{
    int feed = in.h / 3 < 8 ? 8 : in.h / 3;
    if (in.h < 20)
        feed = 0;
    out->text = (struct top_rect){in.x, in.y, in.w, in.h - feed};
    if (feed)
        out->feed = (struct top_rect){in.x, in.y + in.h - feed, in.w, feed};
}

void top_layout(const struct top_ui *ui, const struct top_model *m, int w, int h,
                struct top_layout *out)
{
    *out = (struct top_layout){.size = TOP_SIZE_TINY};
    if (w < TOP_LEAST_W || h < TOP_LEAST_H)
        return;
    struct top_rect body = {0, 2, w, h - 3};
    if (w >= 170 && h >= 42) {
        static const enum top_pane left[] = {TOP_TASKS, TOP_AGENTS, TOP_INBOXES, TOP_LANES},
                                   middle[] = {TOP_QUESTIONS, TOP_MESSAGES, TOP_DEADLINES,
                                               TOP_COST};
        int a = w * 36 / 100, b = w * 31 / 100;
        out->size = TOP_SIZE_LARGE;
        column_lay(ui, m, (struct top_rect){0, 2, a, h - 3}, left, 4, out);
        column_lay(ui, m, (struct top_rect){a, 2, b, h - 3}, middle, 4, out);
        side_lay((struct top_rect){a + b, 2, w - a - b, h - 3}, out);
        out->body = body;
        return;
    }
    if (w >= 110 && h >= 30) {
        enum top_pane left[] = {TOP_TASKS, TOP_AGENTS, TOP_QUESTIONS, TOP_INBOXES,
                                is_other(ui->focus) ? ui->focus : ui->other};
        int a = w * 55 / 100;
        out->size = TOP_SIZE_MEDIUM;
        column_lay(ui, m, (struct top_rect){0, 2, a, h - 3}, left, 5, out);
        side_lay((struct top_rect){a, 2, w - a, h - 3}, out);
        out->body = body;
        return;
    }
    int feed = h >= 22 ? 7 : 0;
    out->size = TOP_SIZE_SMALL;
    out->tabs = (struct top_rect){0, 2, w, 1};
    out->body = (struct top_rect){0, 3, w, h - 4};
    out->pane[ui->focus] = (struct top_rect){0, 3, w, h - 4 - feed};
    if (feed)
        out->feed = (struct top_rect){0, h - 1 - feed, w, feed};
}

int top_layout_rows(const struct top_layout *l, enum top_pane p)
{
    return l->pane[p].w && l->pane[p].h > AROUND ? l->pane[p].h - AROUND : 0;
}

void top_ui_fit(struct top_ui *ui, const struct top_model *m, const struct top_layout *l)
{
    for (int p = 0; p < TOP_PANE_COUNT; p++) {
        struct top_place *at = &ui->place[p];
        uint64_t rows = (uint64_t)top_layout_rows(l, (enum top_pane)p);
        uint64_t n = top_ui_rows(ui, m, (enum top_pane)p);
        if (rows == 0)
            continue;
        if (at->at < at->top)
            at->top = at->at;
        if (at->at >= at->top + rows)
            at->top = at->at - rows + 1;
        if (at->top + rows > n)
            at->top = n > rows ? n - rows : 0;
    }
}
