/* Draws the bars, and puts the parts into their places. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ui.h"

/* ---- the bar at the top ---- */

static void bar_draw(const struct top_model *m, struct top_grid *g)
{
    char clock[16] = "", right[300];
    struct tm t;
    time_t now = (time_t)(m->now_ms / 1000);
    if (localtime_r(&now, &t))
        strftime(clock, sizeof clock, "%H:%M", &t);
    snprintf(right, sizeof right, "%s%s  ", m->read_only ? "read-only  " : "", clock);
    top_fill(g, (struct top_rect){0, 0, g->w, 1}, TOP_TITLE, " ");
    int used = 1 + top_puts(g, 1, 0, g->w - 2, TOP_TITLE, "amp-top");
    int room = g->w - used - 2 - (int)strlen(right);
    top_puts(g, used + 2, 0, room, TOP_TITLE, m->dir);
    top_put_right(g, g->w - (int)strlen(right), 0, (int)strlen(right), TOP_TITLE,
                  amp_span_str(right));
    if (*m->paused) {
        char text[260];
        snprintf(text, sizeof text, " ‖ all suspended by %s ", m->paused);
        int n = top_columns(amp_span_str(text)), most = g->w / 2;
        n = n > most ? most : n;
        top_puts(g, g->w - (int)strlen(right) - n - 1, 0, n, TOP_BAD | TOP_SELECTED, text);
    }
}

/* ---- numbers ---- */

/* One number of the second line; it is left out if it does not fit. */
static int number_draw(struct top_grid *g, int x, const char *label, uint8_t tone,
                       const char *value)
{
    int n = top_columns(amp_span_str(label)) + 1 + top_columns(amp_span_str(value));
    if (x + n + 1 > g->w)
        return x;
    x += top_puts(g, x, 1, g->w - x, TOP_DIM, label) + 1;
    x += top_puts(g, x, 1, g->w - x, tone, value);
    return x + 3;
}

static uint64_t tasks_open(const struct top_model *m)
{
    uint64_t n = 0;
    for (size_t i = 0; i < m->list[TOP_TASKS].n; i++)
        n += !m->list[TOP_TASKS].v[i].hidden[0];
    return n;
}

#define SPARKS 20
static int sparks_draw(const struct top_model *m, struct top_grid *g, int x)
{
    static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    uint32_t most = 1;
    char rate[32];
    for (int i = 0; i < SPARKS; i++)
        most = top_rate(m, i, false) > most ? top_rate(m, i, false) : most;
    /* The present minute is not complete. */
    uint32_t now = top_rate(m, 0, false), last = top_rate(m, 1, false);
    snprintf(rate, sizeof rate, "%u/min", now > last ? now : last);
    x = number_draw(g, x, "log", now ? TOP_INFO : TOP_DIM, rate);
    if (x + SPARKS + 2 > g->w)
        return x;
    for (int i = 0; i < SPARKS; i++) {
        uint32_t n = top_rate(m, SPARKS - 1 - i, false);
        top_puts(g, x - 2 + i, 1, 1, n ? TOP_INFO : TOP_DIM, bars[n * 7 / most]);
    }
    return x + SPARKS + 1;
}

static void numbers_draw(const struct top_model *m, struct top_grid *g)
{
    char text[64], tokens[16], more[16];
    uint64_t questions = m->list[TOP_QUESTIONS].total;
    int x = 1;
    snprintf(text, sizeof text, "%llu", (unsigned long long)tasks_open(m));
    x = number_draw(g, x, "tasks", TOP_STRONG, text);
    snprintf(text, sizeof text, "%u", m->working);
    x = number_draw(g, x, "working", m->working ? TOP_INFO : TOP_DIM, text);
    snprintf(text, sizeof text, "%llu", (unsigned long long)questions);
    x = number_draw(g, x, "questions", questions ? TOP_WARN : TOP_DIM, text);
    top_short((int64_t)m->open, text);
    x = number_draw(g, x, "open", m->open ? TOP_STRONG : TOP_DIM, text);
    if (m->dead) {
        top_short((int64_t)m->dead, text);
        x = number_draw(g, x, "dead", TOP_BAD, text);
    }
    if (m->waiting) {
        snprintf(text, sizeof text, "%u", m->waiting);
        x = number_draw(g, x, "in inboxes", TOP_STRONG, text);
    }
    if (m->n_paused) {
        snprintf(text, sizeof text, "%u", m->n_paused);
        x = number_draw(g, x, "suspended", TOP_WARN, text);
    }
    if (m->tokens_in + m->tokens_out + m->micros > 0) {
        char cost[24];
        top_money(m->micros, cost);
        x = number_draw(g, x, "cost", TOP_ACCENT, cost);
        top_short(m->tokens_in, tokens);
        top_short(m->tokens_out, more);
        snprintf(text, sizeof text, "%s in %s out", tokens, more);
        x = number_draw(g, x, "tokens", TOP_PLAIN, text);
    }
    sparks_draw(m, g, x);
}

/* ---- tabs ---- */

/* The text of a tab; `level` 0: number, name and count, up to 3, where there is little room. */
static void tab_text(const struct top_model *m, enum top_pane p, bool focus, int level, char *out,
                     size_t size)
{
    char n[16] = "";
    uint64_t total = m->list[p].total;
    if (total && p != TOP_LANES && p != TOP_COST)
        top_short((int64_t)total, n);
    if (level == 0)
        snprintf(out, size, "%d %s%s%s", (int)p + 1, top_pane_title(p), *n ? " " : "", n);
    else
        snprintf(out, size, "%s%s%s", focus || level == 1 ? top_pane_title(p) : top_pane_tab(p),
                 level < 3 && *n ? " " : "", level < 3 ? n : "");
}

static void tabs_draw(const struct top_ui *ui, const struct top_model *m, struct top_rect r,
                      struct top_grid *g)
{
    char text[48];
    int level = 0, x = r.x + 1;
    for (; level < 3; level++) {
        int sum = 1;
        for (int p = 0; p < TOP_PANE_COUNT; p++) {
            tab_text(m, (enum top_pane)p, (int)ui->focus == p, level, text, sizeof text);
            sum += top_columns(amp_span_str(text)) + 2;
        }
        if (sum <= r.w)
            break;
    }
    for (int p = 0; p < TOP_PANE_COUNT && x < r.w; p++) {
        bool focus = (int)ui->focus == p, calls = p == TOP_QUESTIONS && m->list[p].total > 0;
        tab_text(m, (enum top_pane)p, focus, level, text, sizeof text);
        uint8_t tone = focus ? TOP_ACCENT | TOP_SELECTED : calls ? TOP_WARN : TOP_DIM;
        x += top_puts(g, x, r.y, r.w - x, tone, text);
        x += level < 3 ? 2 : 1;
    }
}

/* ---- activity ---- */

static void feed_draw(const struct top_model *m, struct top_rect r, struct top_grid *g)
{
    char note[32];
    snprintf(note, sizeof note, "%u/min", top_rate(m, 1, true));
    top_frame(g, r, false, "Activity", note);
    if (m->n_feed == 0)
        top_puts(g, r.x + 2, r.y + 1, r.w - 4, TOP_DIM, "nothing has happened yet");
    for (int i = 0; i < r.h - 2; i++) {
        const struct top_event *e = top_feed(m, (uint32_t)i);
        char at[16] = "";
        struct tm t;
        int x = r.x + 2, right = r.x + r.w - 2, y = r.y + 1 + i;
        if (!e)
            break;
        time_t when = (time_t)(e->at_ms / 1000);
        if (localtime_r(&when, &t))
            strftime(at, sizeof at, r.w >= 56 ? "%H:%M:%S" : "%H:%M", &t);
        x += top_puts(g, x, y, right - x, TOP_DIM, at) + 1;
        int what = r.w >= 56 ? 14 : 9;
        if (right > x)
            top_puts(g, x, y, right - x < what ? right - x : what, TOP_STRONG, e->what);
        x += what + 1;
        if (right > x)
            top_puts(g, x, y, right - x, e->tone, e->text);
    }
}

/* ---- the line at the bottom ---- */

#define FOOT_END "? help  q quit"

/* One key and what it does, if there is room before the keys at the end. */
static int key_draw(struct top_grid *g, int x, const char *key, const char *does)
{
    int n = top_columns(amp_span_str(key)) + 1 + top_columns(amp_span_str(does));
    if (x + n + 2 + (int)sizeof FOOT_END > g->w)
        return x;
    x += top_puts(g, x, g->h - 1, g->w - x, TOP_ACCENT, key) + 1;
    return x + top_puts(g, x, g->h - 1, g->w - x, TOP_DIM, does) + 2;
}

static void foot_end(struct top_grid *g, int x)
{
    int y = g->h - 1;
    x += top_puts(g, x, y, g->w - x, TOP_ACCENT, "?");
    x += top_puts(g, x, y, g->w - x, TOP_DIM, " help  ");
    x += top_puts(g, x, y, g->w - x, TOP_ACCENT, "q");
    top_puts(g, x, y, g->w - x, TOP_DIM, " quit");
}

static void typed_draw(struct top_grid *g, const char *ask, const char *typed, const char *hint)
{
    int y = g->h - 1;
    int x = 1 + top_puts(g, 1, y, g->w * 2 / 3, TOP_ACCENT, ask) + 1;
    /* The end of a long text is visible. */
    struct amp_span text = amp_span_str(typed);
    while (text.n > 0 && top_columns(text) > g->w - x - 2) {
        do {
            text.p++;
            text.n--;
        } while (text.n > 0 && ((unsigned char)*text.p & 0xc0) == 0x80);
    }
    x += top_put(g, x, y, g->w - x - 1, TOP_STRONG, text);
    top_puts(g, x, y, 1, TOP_ACCENT | TOP_SELECTED, " ");
    if (!*typed)
        top_puts(g, x + 2, y, g->w - x - 3, TOP_DIM, hint);
}

static void foot_draw(const struct top_ui *ui, const struct top_model *m, struct top_grid *g)
{
    int x = 1;
    if (ui->mode == TOP_MODE_FILTER) {
        typed_draw(g, "/", ui->filter, "a part of a name or text; Enter keeps it, Esc removes it");
        return;
    }
    if (ui->mode == TOP_MODE_ASK) {
        typed_draw(g, ui->ask, ui->typed, ui->hint);
        return;
    }
    if (*ui->said) {
        top_puts(g, 1, g->h - 1, g->w - 2, ui->said_bad ? TOP_BAD : TOP_GOOD, ui->said);
        return;
    }
    if (ui->mode == TOP_MODE_HELP) {
        foot_end(g, key_draw(g, x, "Esc", "back"));
        return;
    }
    bool detail = ui->mode == TOP_MODE_DETAIL;
    if (detail) {
        x = key_draw(g, x, "Esc", "back");
        if (ui->text_at < ui->text.n)
            x = key_draw(g, x, "Enter", "open");
        x = key_draw(g, x, "↑↓", ui->text_at < ui->text.n ? "select" : "scroll");
    } else {
        x = key_draw(g, x, "Enter", "open");
    }
    if (!m->read_only && (detail ? *ui->text.question != '\0' : m->list[TOP_QUESTIONS].n > 0))
        x = key_draw(g, x, "a", "answer");
    if (!m->read_only) {
        x = key_draw(g, x, "s", "suspend");
        x = key_draw(g, x, "r", "resume");
    }
    if (!detail) {
        x = key_draw(g, x, "/", *ui->filter ? ui->filter : "filter");
        x = key_draw(g, x, "o", "sort");
        x = key_draw(g, x, "Tab", "next");
    }
    foot_end(g, x);
}

/* ---- everything ---- */

static void text_draw(const struct top_ui *ui, struct top_rect r, bool focus, struct top_grid *g)
{
    char note[48] = "";
    const struct top_text *t = &ui->text;
    struct top_rect in = {r.x + 2, r.y + 1, r.w - 4, r.h - 2};
    uint64_t from = focus ? ui->text_top : 0;
    uint64_t lines = t->n ? top_view_text(t, from, in, NULL) : 0;
    if (lines > (uint64_t)in.h) {
        uint64_t last = from + (uint64_t)in.h;
        snprintf(note, sizeof note, "%llu–%llu of %llu", (unsigned long long)from + 1,
                 (unsigned long long)(last < lines ? last : lines), (unsigned long long)lines);
    }
    top_fill(g, r, TOP_PLAIN, " ");
    top_frame(g, r, focus, t->n ? t->title : "Details", note);
    if (t->n)
        top_view_text(t, from, in, g);
    uint64_t row = focus && ui->text_at < t->n ? top_view_text_row(t, ui->text_at, in) : 0;
    if (focus && ui->text_at < t->n && row >= from && row < from + (uint64_t)in.h)
        top_shade(g, (struct top_rect){in.x, in.y + (int)(row - from), in.w, 1}, TOP_SELECTED);
    if (!t->n)
        top_puts(g, in.x, in.y, in.w, TOP_DIM, "nothing is selected");
}

static void tiny_draw(struct top_grid *g)
{
    char text[64];
    snprintf(text, sizeof text, "%dx%d is too small", g->w, g->h);
    top_puts(g, 0, 0, g->w, TOP_WARN, text);
    if (g->h > 1)
        top_putf(g, 0, 1, g->w, TOP_DIM, "needs %dx%d", TOP_LEAST_W, TOP_LEAST_H);
    if (g->h > 2)
        top_puts(g, 0, 2, g->w, TOP_DIM, "q quits");
}

void top_view(const struct top_ui *ui, const struct top_model *m, const struct top_layout *l,
              struct top_grid *g)
{
    if (l->size == TOP_SIZE_TINY) {
        tiny_draw(g);
        return;
    }
    enum top_mode shown =
        ui->mode == TOP_MODE_ASK || ui->mode == TOP_MODE_FILTER ? ui->under : ui->mode;
    bar_draw(m, g);
    numbers_draw(m, g);
    if (l->tabs.w)
        tabs_draw(ui, m, l->tabs, g);
    if (shown == TOP_MODE_HELP) {
        top_view_help(ui, l->body, g);
    } else if (shown == TOP_MODE_DETAIL) {
        text_draw(ui, l->body, true, g);
    } else {
        for (int p = 0; p < TOP_PANE_COUNT; p++)
            if (l->pane[p].w)
                top_view_list(ui, m, (enum top_pane)p, l->pane[p], g);
        if (l->text.w)
            text_draw(ui, l->text, false, g);
        if (l->feed.w)
            feed_draw(m, l->feed, g);
    }
    foot_draw(ui, m, g);
}
