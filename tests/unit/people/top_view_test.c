/* The view of amp-top: the grid that it makes of a fixed model, at several sizes. */
#include <stdlib.h>

#include "../../../cmd/amp-top/view/ui.h"
#include "../tap.h"

#define NOW    INT64_C(1772116800000)
#define MINUTE INT64_C(60000)

static void row_put(struct top_model *m, enum top_pane p, const char *key, const char *of,
                    const char *const texts[TOP_COLUMNS], uint8_t rank)
{
    struct amp_error err;
    struct top_draft d;
    top_draft_begin(&d, amp_span_str(key), amp_span_str(of));
    for (int c = 0; c < TOP_COLUMNS; c++)
        if (texts[c] && *texts[c])
            top_draft_text(&d, c, TOP_PLAIN, amp_span_str(texts[c]));
    d.rank = rank;
    if (p == TOP_TASKS)
        top_draft_number(&d, 7, TOP_DIM, TOP_AGE, NOW - 5 * MINUTE, 0);
    if (p == TOP_INBOXES)
        top_draft_number(&d, 1, TOP_WARN, TOP_GAUGE, 7, 10);
    if (p == TOP_QUESTIONS)
        top_draft_number(&d, 4, TOP_WARN, TOP_UNTIL, NOW - 1, 0);
    TAP_OK(top_draft_end(&d, &m->list[p], false, &err) == 0, "a row of %s", top_pane_word(p));
}

#define TEXTS(...) ((const char *const[TOP_COLUMNS]){__VA_ARGS__})
static void model_make(struct top_model *m)
{
    m->now_ms = NOW;
    m->dir = "/srv/state";
    row_put(m, TOP_TASKS, "T-2026-001", "T-2026-001",
            TEXTS("T-2026-001", "approved", "2", "5m", "Durations with several units", "done",
                  "approved", "approved", "reviewer", ""),
            0);
    row_put(m, TOP_TASKS, "T-2026-002", "T-2026-002",
            TEXTS("T-2026-002", "working (executor)", "1", "5m",
                  "\033[2J\033]0;owned\007 \u202e 漢字漢字 e\u0301", "dispatched", "working", "",
                  "executor", ""),
            2);
    row_put(m, TOP_AGENTS, "executor", "T-2026-002",
            TEXTS("executor", "running", "executor", "T-2026-002"), 1);
    row_put(m, TOP_QUESTIONS, "escalation-1", "T-2026-002",
            TEXTS("T-2026-002", "hallucination_lock", "critical", "", "", "", "Three rejections"),
            2);
    row_put(m, TOP_INBOXES, "executor", "executor",
            TEXTS("executor", "", "", "", "", "task_dispatch-1"), 1);
    m->open = 12;
    m->micros = 1234567;
    m->tokens_in = 12345;
    struct top_event *e = top_feed_add(m);
    *e = (struct top_event){.at_ms = NOW, .tone = TOP_GOOD, .what = "task", .text = "T\033[1m → x"};
    for (int i = 0; i < 5; i++)
        top_count(m, NOW - MINUTE, true);
}

static struct top_layout laid(struct top_ui *ui, struct top_model *m, struct top_grid *g, int w,
                              int h)
{
    struct top_layout l;
    struct amp_error err;
    for (int p = 0; p < TOP_PANE_COUNT; p++)
        top_ui_order(ui, m, (enum top_pane)p, &err);
    TAP_OK(top_grid_init(g, w, h, &err) == 0, "a grid of %dx%d", w, h);
    top_layout(ui, m, w, h, &l);
    top_ui_fit(ui, m, &l);
    top_view(ui, m, &l, g);
    return l;
}

/* The text of a row, without the blanks at its end. */
static int grid_row(const struct top_grid *g, int y, struct amp_buf *out, struct amp_error *err)
{
    int end = g->w;
    while (end > 0 && strcmp(g->cell[y * g->w + end - 1].text, " ") == 0)
        end--;
    for (int x = 0; x < end; x++)
        if (amp_buf_str(out, g->cell[y * g->w + x].text, err) < 0)
            return -1;
    return 0;
}

/* The text of a row of the grid; kept until the next call. */
static const char *row_text(const struct top_grid *g, int y)
{
    static struct amp_buf text;
    struct amp_error err;
    if (!text.max)
        amp_buf_init(&text, 65536);
    amp_buf_reset(&text);
    if (grid_row(g, y, &text, &err) < 0 || amp_buf_add(&text, "", 1, &err) < 0)
        return "";
    return text.data;
}

static int row_with(const struct top_grid *g, const char *text)
{
    for (int y = 0; y < g->h; y++)
        if (strstr(row_text(g, y), text))
            return y;
    return -1;
}

/* Whether every row has as many columns as the grid, and no byte is a control character. */
static bool is_sound(const struct top_grid *g)
{
    for (int y = 0; y < g->h; y++) {
        int sum = 0;
        for (int x = 0; x < g->w; x++) {
            const struct top_cell_text *c = &g->cell[y * g->w + x];
            bool half = !c->text[0];
            if (half && (x == 0 || top_columns(amp_span_str(c[-1].text)) != 2))
                return false;
            sum += half ? 0 : top_columns(amp_span_str(c->text));
            for (const char *p = c->text; *p; p++)
                if ((unsigned char)*p < 0x20 || *p == 0x7f)
                    return false;
        }
        if (sum != g->w)
            return false;
    }
    return true;
}

static void sizes_check(struct top_model *m)
{
    static const struct {
        int w, h;
        enum top_size size;
    } sizes[] = {{20, 5, TOP_SIZE_TINY},       {39, 30, TOP_SIZE_TINY},
                 {40, 10, TOP_SIZE_SMALL},     {80, 24, TOP_SIZE_SMALL},
                 {120, 40, TOP_SIZE_MEDIUM},   {200, 60, TOP_SIZE_LARGE},
                 {1000, 1000, TOP_SIZE_LARGE}, {1, 1, TOP_SIZE_TINY}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int mode = 0; mode < 5; mode++) {
            struct top_grid g = {0};
            struct top_ui ui;
            top_ui_init(&ui);
            ui.mode = (enum top_mode)mode;
            top_text_add(&ui.text, TOP_DIM, "label", TOP_PLAIN, 2,
                         AMP_SPAN("text \033[31m\nwith 漢字漢字漢字 in\tit"));
            struct top_layout l = laid(&ui, m, &g, sizes[i].w, sizes[i].h);
            TAP_INT(l.size, sizes[i].size, "its layout");
            TAP_OK(is_sound(&g), "%dx%d, mode %d: each row has its columns, and no control byte",
                   sizes[i].w, sizes[i].h, mode);
            g.ascii = true;
            top_view(&ui, m, &l, &g);
            bool ascii = true;
            for (int k = 0; k < g.w * g.h; k++)
                ascii &= (unsigned char)g.cell[k].text[0] < 0x80;
            TAP_OK(ascii, "%dx%d, mode %d: ASCII only, if the locale has no more", sizes[i].w,
                   sizes[i].h, mode);
            top_grid_release(&g);
            top_ui_release(&ui);
        }
}

static void small_check(struct top_model *m)
{
    struct top_grid g = {0};
    struct top_ui ui;
    top_ui_init(&ui);
    laid(&ui, m, &g, 80, 24);
    TAP_STR(row_text(&g, 2),
            " Tasks 2  Agents 1  Questions 1  Inboxes 1  Lanes  Messages  Deadlines  Cost",
            "80x24: tabs with counts");
    TAP_OK(strstr(row_text(&g, 1), " tasks 2   working 0   questions 1   open 12   cost $1.23"),
           "80x24: the numbers");
    TAP_STR(row_text(&g, 4),
            "│ TASK        STATE               TRY  AGE  DESCRIPTION                        │",
            "80x24: the columns that fit, in order");
    TAP_STR(row_text(&g, 5),
            "│ T-2026-002  working (executor)    1   5m  \\x1b[2J\\x1b]0;owned\\x07 \\u{202e} … │",
            "the most urgent task first, hostile text escaped and cut");
    TAP_STR(row_text(&g, 6),
            "│ T-2026-001  approved              2   5m  Durations with several units       │",
            "then the others");
    TAP_INT(g.cell[5 * g.w + 3].tone & TOP_SELECTED, TOP_SELECTED, "the first row is selected");
    TAP_OK(strstr(row_text(&g, 23), "a answer"), "the keys offer an answer");
    m->read_only = true;
    laid(&ui, m, &g, 80, 24);
    TAP_OK(!strstr(row_text(&g, 23), "answer") && strstr(row_text(&g, 0), "read-only"),
           "but not if nothing can be changed");
    m->read_only = false;
    ui.focus = TOP_INBOXES;
    laid(&ui, m, &g, 80, 24);
    TAP_OK(strstr(row_text(&g, 5), "██████░░ 7/10"), "a gauge");
    ui.focus = TOP_QUESTIONS;
    laid(&ui, m, &g, 80, 24);
    TAP_OK(strstr(row_text(&g, 5), " due  Three rejections"), "a deadline that has passed");
    laid(&ui, m, &g, 20, 5);
    TAP_STR(row_text(&g, 0), "20x5 is too small", "20x5");
    top_grid_release(&g);
    top_ui_release(&ui);
}

static void large_check(struct top_model *m)
{
    struct top_grid g = {0};
    struct top_ui ui;
    top_ui_init(&ui);
    struct top_layout l = laid(&ui, m, &g, 120, 40);
    int shown = 0;
    for (int p = 0; p < TOP_PANE_COUNT; p++)
        shown += l.pane[p].w > 0;
    TAP_INT(shown, 5, "120x40: five lists");
    TAP_OK(row_with(&g, "Activity") > 0 && row_with(&g, "T\\x1b[1m → x") > 0,
           "120x40: the activity, its text escaped");
    ui.focus = TOP_COST;
    l = laid(&ui, m, &g, 120, 40);
    TAP_OK(l.pane[TOP_COST].w > 0 && l.pane[TOP_MESSAGES].w == 0,
           "the fifth list is the one with the focus");
    l = laid(&ui, m, &g, 200, 60);
    shown = 0;
    int rows[2] = {0};
    for (int p = 0; p < TOP_PANE_COUNT; p++) {
        shown += l.pane[p].w > 0;
        rows[l.pane[p].x > 0] += l.pane[p].h;
    }
    TAP_INT(shown, 8, "200x60: all lists");
    TAP_OK(rows[0] == 57 && rows[1] == 57, "their columns are filled");
    top_grid_release(&g);
    top_ui_release(&ui);
}

static void select_check(struct top_model *m)
{
    struct top_ui ui;
    struct amp_error err;
    top_ui_init(&ui);
    top_ui_order(&ui, m, TOP_TASKS, &err);
    top_ui_select(&ui, m, TOP_TASKS, 1);
    TAP_STR(top_ui_row(&ui, m, TOP_TASKS)->key, "T-2026-001", "the second row is selected");
    top_ui_select(&ui, m, TOP_TASKS, 99);
    TAP_INT((int64_t)ui.place[TOP_TASKS].at, 1, "no row after the last one");
    ui.place[TOP_TASKS].sort = 0;
    top_ui_order(&ui, m, TOP_TASKS, &err);
    TAP_INT((int64_t)ui.place[TOP_TASKS].at, 0, "sorted by its id it is the first, still selected");
    ui.place[TOP_TASKS].down = true;
    top_ui_order(&ui, m, TOP_TASKS, &err);
    TAP_INT((int64_t)ui.place[TOP_TASKS].at, 1, "and the last in the other direction");
    snprintf(ui.filter, sizeof ui.filter, "SEVERAL");
    top_ui_order(&ui, m, TOP_TASKS, &err);
    TAP_INT((int64_t)top_ui_rows(&ui, m, TOP_TASKS), 1, "the filter ignores the case");
    TAP_STR(top_ui_row(&ui, m, TOP_TASKS)->key, "T-2026-001", "and finds the description");
    for (int i = 0; i < 12; i++)
        top_ui_sort(&ui, TOP_COST);
    TAP_OK(ui.place[TOP_COST].sort >= -1 && ui.place[TOP_COST].sort < TOP_COLUMNS,
           "sorting goes around");
    top_ui_release(&ui);
}

/* 100,000 messages, of which the window has a few. */
static void window_check(struct top_model *m)
{
    struct top_grid g = {0};
    struct top_ui ui;
    struct top_list *l = &m->list[TOP_MESSAGES];
    char key[32];
    for (int i = 0; i < 96; i++) {
        snprintf(key, sizeof key, "m-%d", 50000 + i);
        row_put(m, TOP_MESSAGES, key, "", TEXTS("SENT", "t", "a", "b", "", "", "", key), 0);
    }
    l->window = true;
    l->first = 50000;
    l->total = 100000;
    top_ui_init(&ui);
    ui.focus = TOP_MESSAGES;
    ui.place[TOP_MESSAGES].at = 50010;
    laid(&ui, m, &g, 80, 24);
    TAP_INT((int64_t)top_ui_rows(&ui, m, TOP_MESSAGES), 100000, "all can be selected");
    TAP_STR(top_ui_row(&ui, m, TOP_MESSAGES)->key, "m-50010", "the selected one is in the window");
    TAP_OK(strstr(row_text(&g, 3), "50011/100000"), "where it is");
    TAP_OK(strstr(row_text(&g, 14), "m-50010"), "the selected one is the last visible row");
    TAP_OK(strstr(row_text(&g, 2), "Messages 100k"), "the tab has the number");
    top_grid_release(&g);
    top_ui_release(&ui);
}

static void texts_check(void)
{
    struct top_grid g = {0};
    struct amp_error err;
    char out[32];
    size_t skip;
    TAP_OK(top_grid_init(&g, 6, 1, &err) == 0, "a small grid");
    TAP_INT(top_puts(&g, 0, 0, 6, 0, "ab漢字漢"), 5, "a wide character is not cut in half");
    TAP_STR(row_text(&g, 0), "ab漢…", "it is left out");
    top_puts(&g, 3, 0, 1, 0, "x");
    TAP_STR(row_text(&g, 0), "ab x…", "what is put onto its half leaves a blank");
    TAP_INT(top_puts(&g, 0, 0, 6, 0, "e\u0301e\u0301"), 2, "combining characters have no column");
    TAP_STR(g.cell[0].text, "e\u0301", "and stay with their character");
    top_fill(&g, (struct top_rect){0, 0, 6, 1}, 0, " ");
    TAP_INT(top_put(&g, 0, 0, 6, 0, (struct amp_span){"\xff\xfe", 2}), 5,
            "bytes that are not UTF-8");
    TAP_STR(row_text(&g, 0), "\\xff…", "are escaped, too, and never in half");
    TAP_INT(top_puts(&g, 9, 9, 6, 0, "x"), 0, "nothing outside of the grid");
    TAP_INT((int64_t)top_wrap(AMP_SPAN("one two three"), 9, &skip), 7, "wrapped at a blank");
    TAP_INT((int64_t)skip, 1, "which is skipped");
    TAP_INT((int64_t)top_wrap(AMP_SPAN("abcdefghij"), 4, &skip), 4, "or anywhere");
    TAP_INT((int64_t)top_wrap(AMP_SPAN("a\nb"), 9, &skip), 1, "and at a line end");
    TAP_INT((int64_t)top_wrap(AMP_SPAN("漢字"), 1, &skip), 3, "at least one character");
    top_short(950, out);
    TAP_STR(out, "950", "a small number");
    top_short(12345, out);
    TAP_STR(out, "12.3k", "thousands");
    top_short(999960, out);
    TAP_STR(out, "1.0M", "millions");
    top_age(119 * MINUTE, out);
    TAP_STR(out, "119m", "minutes");
    top_age(3 * 24 * 60 * MINUTE, out);
    TAP_STR(out, "3d", "days");
    top_grid_release(&g);
}

static void model_check(struct top_model *m)
{
    TAP_INT(top_rate(m, 1, true), 5, "messages of the last minute");
    TAP_INT(top_rate(m, 2, true), 0, "none before");
    m->now_ms += 64 * MINUTE;
    TAP_INT(top_rate(m, 1, true), 0, "an hour later they are not of the last minute");
    m->now_ms = NOW;
    for (int i = 0; i < TOP_FEED + 3; i++)
        snprintf(top_feed_add(m)->what, 8, "%d", i % 1000);
    TAP_STR(top_feed(m, 0)->what, "130", "the newest event");
    TAP_STR(top_feed(m, TOP_FEED - 1)->what, "3", "the oldest that is kept");
    TAP_OK(!top_feed(m, TOP_FEED), "no more");
    top_list_remove(&m->list[TOP_TASKS], "T-2026-001");
    TAP_INT((int64_t)m->list[TOP_TASKS].total, 1, "a row is removed");
    TAP_INT(top_list_find(&m->list[TOP_TASKS], "T-2026-001"), -1, "and not found any more");
}

int main(void)
{
    struct top_model *m = calloc(1, sizeof *m);
    if (!m)
        return 1;
    model_make(m);
    texts_check();
    sizes_check(m);
    small_check(m);
    large_check(m);
    select_check(m);
    window_check(m);
    model_check(m);
    top_model_release(m);
    free(m);
    return tap_done();
}
