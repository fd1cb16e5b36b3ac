/* Draws lists, texts and the help. */
#include <stdio.h>
#include <string.h>

#include "ui.h"

/* ---- lists ---- */

static const char *const nothing[] = {
    [TOP_TASKS] = "no tasks: task-dispatch new creates one",
    [TOP_AGENTS] = "no agent has worked here",
    [TOP_QUESTIONS] = "no open questions",
    [TOP_INBOXES] = "no inboxes",
    [TOP_LANES] = "no lanes",
    [TOP_MESSAGES] = "no message waits for an answer",
    [TOP_DEADLINES] = "no deadlines",
    [TOP_COST] = "no result has reported its usage",
};

struct columns {
    int n, of[TOP_COLUMNS], width[TOP_COLUMNS];
};

static bool value_is_empty(const struct top_value *v)
{
    return v->kind == TOP_TEXT ? !v->text || !*v->text : v->kind != TOP_GAUGE && v->n == 0;
}

/* The visible row number i (from the first visible one); NULL: there is none. */
static const struct top_row *row_at(const struct top_ui *ui, const struct top_model *m,
                                    enum top_pane p, uint64_t i)
{
    const struct top_list *l = &m->list[p];
    const struct top_place *at = &ui->place[p];
    i += at->top;
    if (l->window && !*ui->filter)
        return i >= l->first && i - l->first < l->n ? &l->v[i - l->first] : NULL;
    return i < at->n && at->order[i] < l->n ? &l->v[at->order[i]] : NULL;
}

/* Columns that are empty in all visible rows are left out, then those that matter least, until the
 * rest fits. */
static void columns_fit(const struct top_ui *ui, const struct top_model *m, enum top_pane p,
                        int rows, int width, struct columns *out)
{
    const struct top_column *c = top_columns_of[p];
    int want[TOP_COLUMNS] = {0};
    bool shown[TOP_COLUMNS] = {false};
    for (int k = 0; k < TOP_COLUMNS && c[k].title; k++) {
        int most = (int)strlen(c[k].title);
        for (int i = 0; i < rows; i++) {
            const struct top_row *r = row_at(ui, m, p, (uint64_t)i);
            char text[512];
            if (!r || !*c[k].title || value_is_empty(&r->value[k]))
                continue;
            shown[k] = true;
            top_value_text(&r->value[k], m->now_ms, text, sizeof text);
            int n = top_columns(amp_span_str(text));
            if (r->value[k].kind == TOP_GAUGE)
                n += 9;
            most = n > most ? n : most;
        }
        if (c[k].most && most > c[k].most)
            most = c[k].most;
        want[k] = c[k].flex ? c[k].least : most;
    }
    shown[0] = true;
    for (;;) {
        int sum = 0, drop = -1;
        for (int k = 0; k < TOP_COLUMNS && c[k].title; k++) {
            if (!shown[k])
                continue;
            sum += want[k] + 2;
            if (drop < 0 || c[k].keep < c[drop].keep)
                drop = k;
        }
        if (sum - 2 <= width || drop < 0)
            break;
        shown[drop] = false;
    }
    *out = (struct columns){0};
    int left = width, flex = -1;
    for (int k = 0; k < TOP_COLUMNS && c[k].title; k++) {
        if (!shown[k])
            continue;
        if (c[k].flex)
            flex = out->n;
        out->of[out->n] = k;
        out->width[out->n++] = want[k];
        left -= want[k] + 2;
    }
    if (flex >= 0 && left + 2 > 0)
        out->width[flex] += left + 2;
}

static void gauge_draw(struct top_grid *g, int x, int y, int width, const struct top_value *v)
{
    char text[40];
    int used = snprintf(text, sizeof text, "%lld/%lld", (long long)v->n, (long long)v->most);
    int bar = width - used - 1;
    if (bar > 8)
        bar = 8;
    int64_t full = v->most > 0 ? (v->n * bar + v->most - 1) / v->most : 0;
    for (int i = 0; i < bar; i++)
        top_puts(g, x + i, y, 1, i < full ? v->tone : TOP_FRAME, i < full ? "█" : "░");
    if (bar > 0)
        x += bar + 1;
    top_puts(g, x, y, width, v->tone, text);
}

static void value_draw(struct top_grid *g, int x, int y, int width, bool right,
                       const struct top_value *v, int64_t now_ms)
{
    char text[512];
    if (v->kind == TOP_GAUGE) {
        gauge_draw(g, x, y, width, v);
        return;
    }
    top_value_text(v, now_ms, text, sizeof text);
    uint8_t tone = v->kind == TOP_UNTIL && v->n > 0 && v->n <= now_ms ? TOP_BAD : v->tone;
    if (right)
        top_put_right(g, x, y, width, tone, amp_span_str(text));
    else
        top_puts(g, x, y, width, tone, text);
}

static void titles_draw(const struct top_ui *ui, enum top_pane p, const struct columns *c, int x,
                        int y, int right, struct top_grid *g)
{
    const struct top_place *at = &ui->place[p];
    for (int i = 0; i < c->n; i++) {
        const struct top_column *of = &top_columns_of[p][c->of[i]];
        bool sorted = at->sort == c->of[i];
        uint8_t tone = sorted ? TOP_ACCENT : TOP_DIM;
        int room = right - x < c->width[i] ? right - x : c->width[i];
        char title[40];
        snprintf(title, sizeof title, "%s%s", of->title, !sorted ? "" : at->down ? "▼" : "▲");
        if (of->right)
            top_put_right(g, x, y, room, tone, amp_span_str(title));
        else
            top_puts(g, x, y, room, tone, title);
        x += c->width[i] + 2;
    }
}

void top_view_list(const struct top_ui *ui, const struct top_model *m, enum top_pane p,
                   struct top_rect r, struct top_grid *g)
{
    bool focus = ui->focus == p;
    const struct top_place *at = &ui->place[p];
    int rows = r.h - 3, right = r.x + r.w - 2;
    uint64_t n = top_ui_rows(ui, m, p);
    char title[64], note[80] = "";
    struct columns c;

    snprintf(title, sizeof title, "%d %s", (int)p + 1, top_pane_title(p));
    if (*ui->filter)
        snprintf(note, sizeof note, "%llu of %llu match", (unsigned long long)n,
                 (unsigned long long)(m->list[p].window ? m->list[p].n : m->list[p].total));
    else if (n > (uint64_t)rows && rows > 0)
        snprintf(note, sizeof note, "%llu/%llu", (unsigned long long)at->at + 1,
                 (unsigned long long)m->list[p].total);
    else if (n && p != TOP_LANES)
        snprintf(note, sizeof note, "%llu", (unsigned long long)m->list[p].total);
    top_frame(g, r, focus, title, note);
    if (n == 0 || rows < 1) {
        top_puts(g, r.x + 2, r.y + 1, r.w - 4, TOP_DIM,
                 *ui->filter && m->list[p].n ? "nothing matches" : nothing[p]);
        return;
    }
    columns_fit(ui, m, p, rows, r.w - 4, &c);
    titles_draw(ui, p, &c, r.x + 2, r.y + 1, right, g);
    for (int i = 0; i < rows; i++) {
        const struct top_row *row = row_at(ui, m, p, (uint64_t)i);
        int x = r.x + 2, y = r.y + 2 + i;
        if (!row)
            break;
        for (int k = 0; k < c.n; k++) {
            int room = right - x < c.width[k] ? right - x : c.width[k];
            value_draw(g, x, y, room, top_columns_of[p][c.of[k]].right, &row->value[c.of[k]],
                       m->now_ms);
            x += c.width[k] + 2;
        }
        if (at->top + (uint64_t)i == at->at)
            top_shade(g, (struct top_rect){r.x + 1, y, r.w - 2, 1},
                      focus ? TOP_SELECTED : TOP_MARKED);
    }
}

/* ---- texts ---- */

uint64_t top_view_text(const struct top_text *t, uint64_t from, struct top_rect r,
                       struct top_grid *g)
{
    uint64_t line = 0;
    int label = t->label > r.w / 3 ? r.w / 3 : t->label;
    for (size_t i = 0; i < t->n; i++) {
        const struct top_line *p = &t->v[i];
        struct amp_span text = amp_span_str(p->text);
        int x = label + 2 + p->indent;
        if (x > r.w - 10)
            x = r.w > 10 ? r.w - 10 : 0;
        bool first = true;
        do {
            size_t skip = 0, n = top_wrap(text, r.w - x, &skip);
            if (g && line >= from && line < from + (uint64_t)r.h) {
                int y = r.y + (int)(line - from);
                if (first)
                    top_puts(g, r.x, y, text.n || p->tone ? label : r.w, p->label_tone, p->label);
                top_put(g, r.x + x, y, r.w - x, p->tone, (struct amp_span){text.p, n});
            }
            text.p += n + skip;
            text.n -= n + skip;
            first = false;
            line++;
        } while (text.n > 0);
    }
    return line;
}

uint64_t top_view_text_row(const struct top_text *t, size_t i, struct top_rect r)
{
    struct top_text before = *t;
    before.n = i < t->n ? i : t->n;
    return top_view_text(&before, 0, r, NULL);
}

/* ---- help ---- */

void top_view_help(const struct top_ui *ui, struct top_rect r, struct top_grid *g)
{
    static const char *const keys[][2] = {
        {"↑ ↓  k j", "select a row, or scroll"},
        {"PgUp PgDn  g G", "a page; the first and the last row"},
        {"Tab  Shift-Tab  ← →", "the next and the previous list"},
        {"1 … 8", "tasks, agents, questions, inboxes, lanes, messages, deadlines, cost"},
        {"Enter", "open: a task's story, an agent's work, a question's evidence, a message"},
        {"Esc", "back; remove the filter"},
        {"/", "show only rows with a text"},
        {"o  O", "sort by the next column; the other way round"},
        {"a", "answer the selected question"},
        {"s", "suspend the selected task or agent at once; S: everything"},
        {"r", "resume the selected task or agent; R: everything"},
        {"Ctrl-L", "draw the screen again"},
        {"Ctrl-Z", "stop, and come back with fg"},
        {"q  Ctrl-C", "quit"},
    };
    (void)ui;
    top_fill(g, r, TOP_PLAIN, " ");
    top_frame(g, r, true, "Keys", "amp-top(1)");
    for (size_t i = 0; i < sizeof keys / sizeof *keys && (int)i < r.h - 2; i++) {
        top_puts(g, r.x + 2, r.y + 1 + (int)i, 20, TOP_ACCENT, keys[i][0]);
        top_puts(g, r.x + 24, r.y + 1 + (int)i, r.w - 26, TOP_PLAIN, keys[i][1]);
    }
}
