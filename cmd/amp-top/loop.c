/* The loop on the terminal: waits for keys, signals and the log, and draws. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "base/loop.h"
#include "message/store/wake.h"
#include "model/questions.h"
#include "top.h"

#define LOOK_MS   100 /* a busy log is read ten times a second, */
#define LOOK_PART 10  /* and at most this part of the time is spent on it */
#define MINUTE_MS 60000
#define STEPS     8 /* texts that are opened one from another */

/* The steps of typing. */
enum typing { TYPE_NOTHING, TYPE_ANSWER, TYPE_WHY, TYPE_SURE, TYPE_SUSPEND, TYPE_RESUME };

struct app {
    struct amp_store *store;
    struct top_model model;
    struct top_source source;
    struct top_ui ui;
    struct top_screen screen;
    struct top_grid grid;
    struct top_layout layout;
    struct amp_wake wake;
    bool quit, dirty;
    int64_t read_ms; /* when the log was read last */
    int64_t rest_ms; /* how long it rests then */
    bool written;    /* the log was written since */
    /* The pane that ui.text shows. */
    enum top_pane text_of;
    char text_key[600];
    /* Each step has what a line of a text opened, and the person's place in the text before. */
    struct step {
        enum top_link to;
        char of[300], key[1200];
        uint64_t top;
        size_t at;
    } step[STEPS];
    int steps;
    /* The action that is typed. */
    enum typing typing;
    char question[1200], answer[TOP_TYPED_MAX];
    char name[600]; /* "": everything */
    bool is_task;
};

static void said_set(struct app *a, bool bad, const char *text)
{
    snprintf(a->ui.said, sizeof a->ui.said, "%s", text);
    a->ui.said_bad = bad;
    a->dirty = true;
}

/* Diagnostics do not disturb the screen. */
static bool said_take(void *ctx, struct amp_span text)
{
    struct app *a = ctx;
    char line[500];
    while (text.n > 0 && text.p[text.n - 1] == '\n')
        text.n--;
    amp_span_copy(text, line, sizeof line);
    said_set(a, true, line);
    return true;
}

static void failed_say(struct app *a, const struct amp_error *err)
{
    char text[600];
    snprintf(text, sizeof text, "%s: %s", err->code, err->what);
    said_set(a, true, text);
}

/* ---- what is shown ---- */

static const struct top_row *row_of(const struct app *a)
{
    return top_ui_row(&a->ui, &a->model, a->ui.focus);
}

static bool detail_is_open(const struct app *a)
{
    return a->ui.mode == TOP_MODE_DETAIL ||
           (a->ui.mode != TOP_MODE_LIST && a->ui.under == TOP_MODE_DETAIL);
}

static void text_show(struct app *a, enum top_pane p, const struct top_row *row)
{
    a->text_of = p;
    snprintf(a->text_key, sizeof a->text_key, "%s", row->key);
    top_detail_read(&a->source, p, row, detail_is_open(a), &a->ui.text);
}

/* Reads the text again that was opened last. The selected line is found by its key. */
static void step_read(struct app *a)
{
    const struct step *s = &a->step[a->steps - 1];
    char key[sizeof s->key] = "";
    const struct top_text *t = &a->ui.text;
    if (a->ui.text_at < t->n)
        snprintf(key, sizeof key, "%s", t->v[a->ui.text_at].key);
    top_link_read(&a->source, s->to, s->of, s->key, &a->ui.text);
    for (size_t i = 0; *key && i < t->n; i++)
        if (t->v[i].to != TOP_TO_NOTHING && strcmp(t->v[i].key, key) == 0)
            a->ui.text_at = i;
}

/* Reads what is behind the selected row, if it is shown. again: something changed. */
static void text_read(struct app *a, bool again)
{
    const struct top_row *row = row_of(a);
    if (detail_is_open(a) && a->steps > 0) {
        if (again)
            step_read(a);
        return;
    }
    if (detail_is_open(a)) {
        /* An opened text stays, also if its row is gone. */
        const struct top_list *l = &a->model.list[a->text_of];
        int64_t at = again ? top_list_find(l, a->text_key) : -1;
        if (at >= 0)
            text_show(a, a->text_of, &l->v[at]);
        return;
    }
    if (a->layout.text.w == 0)
        return;
    if (!row) {
        top_text_release(&a->ui.text);
        a->text_key[0] = '\0';
    } else if (again || a->text_of != a->ui.focus || strcmp(row->key, a->text_key) != 0) {
        text_show(a, a->ui.focus, row);
    }
}

static int windows_move(struct app *a, struct amp_error *err)
{
    enum top_pane p = TOP_MESSAGES;
    uint64_t rows = (uint64_t)top_layout_rows(&a->layout, p);
    const struct top_place *at = &a->ui.place[p];
    if (*a->ui.filter || a->model.list[p].total == 0)
        return 0;
    if (top_source_window(&a->source, p, at->at, err) < 0 ||
        top_source_window(&a->source, p, at->top + (rows ? rows - 1 : 0), err) < 0 ||
        top_source_window(&a->source, p, at->top, err) < 0)
        return -1;
    top_ui_select(&a->ui, &a->model, p, at->at);
    return 0;
}

static int all_order(struct app *a, struct amp_error *err)
{
    for (int p = 0; p < TOP_PANE_COUNT; p++)
        if (top_ui_order(&a->ui, &a->model, (enum top_pane)p, err) < 0)
            return -1;
    return 0;
}

static int screen_draw(struct app *a, struct amp_error *err)
{
    int w, h;
    a->model.now_ms = amp_now_ms();
    top_screen_size(&a->screen, &w, &h);
    a->grid.ascii = a->screen.ascii;
    if (top_grid_init(&a->grid, w, h, err) < 0)
        return -1;
    top_layout(&a->ui, &a->model, w, h, &a->layout);
    top_ui_fit(&a->ui, &a->model, &a->layout);
    if (windows_move(a, err) < 0)
        return -1;
    text_read(a, false);
    /* The end of a text stays in view. */
    struct top_rect in = {0, 0, a->layout.body.w - 4, a->layout.body.h - 2};
    a->ui.text_lines = a->ui.text.n && in.w > 10 ? top_view_text(&a->ui.text, 0, in, NULL) : 0;
    uint64_t rows = in.h > 0 ? (uint64_t)in.h : 1;
    if (a->ui.text_top + rows > a->ui.text_lines)
        a->ui.text_top = a->ui.text_lines > rows ? a->ui.text_lines - rows : 0;
    top_view(&a->ui, &a->model, &a->layout, &a->grid);
    top_screen_draw(&a->screen, &a->grid);
    a->dirty = false;
    return 0;
}

static int log_read(struct app *a, struct amp_error *err)
{
    if (amp_wake_drain(&a->wake, err) < 0)
        return -1;
    a->written = false;
    uint64_t rows = a->source.rows;
    int64_t from_ms = amp_mono_ms();
    int rc = top_source_follow(&a->source, err);
    a->read_ms = amp_mono_ms();
    a->rest_ms = LOOK_PART * (a->read_ms - from_ms);
    if (a->rest_ms < LOOK_MS)
        a->rest_ms = LOOK_MS;
    if (rc < 0 || rows == a->source.rows)
        return rc;
    a->dirty = true;
    if (all_order(a, err) < 0)
        return -1;
    text_read(a, true);
    return 0;
}

/* ---- actions ---- */

static void ask_begin(struct app *a, enum typing what, const char *ask, const char *hint)
{
    if (a->ui.mode != TOP_MODE_ASK)
        a->ui.under = a->ui.mode;
    a->ui.mode = TOP_MODE_ASK;
    a->typing = what;
    snprintf(a->ui.ask, sizeof a->ui.ask, "%s", ask);
    snprintf(a->ui.hint, sizeof a->ui.hint, "%s", hint);
    a->ui.typed[0] = '\0';
}

static void ask_end(struct app *a)
{
    a->ui.mode = a->ui.under;
    a->ui.under = TOP_MODE_LIST;
    a->typing = TYPE_NOTHING;
    a->ui.typed[0] = '\0';
}

/* Read-only is said with the refusal that made it so. */
static bool may_act(struct app *a, const char *act)
{
    struct amp_error err;
    if (top_act_allowed(act, &err) < 0) {
        failed_say(a, &err);
        return false;
    }
    if (a->model.read_only) {
        said_set(a, true, a->model.why);
        return false;
    }
    return true;
}

/* The question that is selected, or that the selected task asks. */
static void answer_begin(struct app *a)
{
    char ask[300];
    const struct top_row *row = row_of(a);
    const struct top_list *questions = &a->model.list[TOP_QUESTIONS];
    if (!may_act(a, "answer escalations"))
        return;
    if (a->ui.mode == TOP_MODE_LIST) {
        const struct top_row *q = a->ui.focus == TOP_QUESTIONS ? row : NULL;
        for (size_t i = 0; !q && row && *row->of && i < questions->n; i++)
            if (strcmp(questions->v[i].of, row->of) == 0)
                q = &questions->v[i];
        if (!q && questions->n == 1)
            q = &questions->v[0];
        if (!q) {
            said_set(a, true,
                     questions->n ? "select a question first (3)" : "there are no open questions");
            return;
        }
        /* The person sees what is answered: the evidence, in full. */
        text_show(a, TOP_QUESTIONS, q);
        a->ui.text_top = 0;
        a->ui.mode = TOP_MODE_DETAIL;
    }
    if (!*a->ui.text.question) {
        said_set(a, true, "this is not a question, or it was decided");
        return;
    }
    snprintf(a->question, sizeof a->question, "%s", a->ui.text.question);
    snprintf(ask, sizeof ask, "answer %.100s:", a->ui.text.title);
    ask_begin(a, TYPE_ANSWER, ask, a->ui.text.answers);
}

static void answer_make(struct app *a)
{
    struct amp_error err;
    char said[600];
    if (top_act_answer(a->store, a->question, a->answer, &a->ui.text, said, sizeof said, &err) < 0)
        failed_say(a, &err);
    else {
        a->ui.mode = TOP_MODE_LIST;
        said_set(a, false, said);
    }
    a->written = true;
}

/* Whether an answer loses work, so that a person confirms it. */
static bool is_grave(struct app *a)
{
    struct amp_error err; /* the answer fails in the same way */
    TOP_QUESTION of = {0};
    const struct amp_action *action = NULL;
    if (top_question_load(a->store, a->question, &of, &err) > 0)
        action = amp_answer_action(&of.q, a->answer);
    return action && action->is & AMP_ACTION_GRAVE;
}

static void pause_begin(struct app *a, bool resume, bool all)
{
    char ask[300];
    const struct top_row *row = row_of(a);
    if (!may_act(a, "suspend and resume work"))
        return;
    a->name[0] = '\0';
    if (!all) {
        a->is_task = a->ui.focus != TOP_AGENTS && a->ui.focus != TOP_INBOXES;
        const char *name = !row ? "" : a->is_task ? row->of : row->key;
        if (!*name) {
            said_set(a, true, "select a task or an agent first; S suspends everything");
            return;
        }
        snprintf(a->name, sizeof a->name, "%s", name);
    }
    snprintf(ask, sizeof ask, "%s %s%.120s — why?", resume ? "resume" : "suspend",
             all          ? "EVERYTHING"
             : a->is_task ? "task "
                          : "agent ",
             a->name);
    ask_begin(a, resume ? TYPE_RESUME : TYPE_SUSPEND, ask, "Enter does it, Esc does not");
}

static void pause_make(struct app *a, bool resume, const char *reason)
{
    struct amp_error err;
    char said[600] = "";
    if (top_act_pause(resume, a->is_task, *a->name ? a->name : NULL, reason, said, sizeof said,
                      &err) < 0)
        failed_say(a, &err);
    else
        said_set(a, false, *said ? said : resume ? "resumed" : "suspended");
    a->written = true;
}

/* Enter in the typed line. */
static void typed_take(struct app *a)
{
    char typed[TOP_TYPED_MAX];
    snprintf(typed, sizeof typed, "%s", a->ui.typed);
    switch (a->typing) {
    case TYPE_ANSWER:
        if (!typed[strspn(typed, " ")]) {
            ask_end(a);
            return;
        }
        snprintf(a->answer, sizeof a->answer, "%s", typed + strspn(typed, " "));
        ask_begin(a, TYPE_WHY,
                  "why:", "the reason, for the record and for the agents; Enter sends");
        return;
    case TYPE_WHY: {
        size_t n = strlen(a->answer);
        if (*typed)
            snprintf(a->answer + n, sizeof a->answer - n, " %s", typed);
        if (is_grave(a)) {
            char ask[200];
            snprintf(ask, sizeof ask, "%.*s loses work. Type yes:", (int)strcspn(a->answer, " "),
                     a->answer);
            ask_begin(a, TYPE_SURE, ask, "");
            return;
        }
        ask_end(a);
        answer_make(a);
        return;
    }
    case TYPE_SURE:
        ask_end(a);
        if (strcasecmp(typed, "yes") == 0)
            answer_make(a);
        else
            said_set(a, false, "not answered");
        return;
    case TYPE_SUSPEND:
    case TYPE_RESUME: {
        bool resume = a->typing == TYPE_RESUME;
        ask_end(a);
        pause_make(a, resume, typed);
        return;
    }
    default:
        ask_end(a);
    }
}

/* ---- keys ---- */

static void character_add(char *text, size_t size, int c)
{
    char out[5];
    size_t n = strlen(text), k = 0;
    if (c < 0x20 || c == 0x7f || c > 0x10ffff || (c >= 0x80 && c < 0xa0))
        return;
    if (c < 0x80) {
        out[k++] = (char)c;
    } else if (c < 0x800) {
        out[k++] = (char)(0xc0 | c >> 6);
    } else if (c < 0x10000) {
        out[k++] = (char)(0xe0 | c >> 12);
        out[k++] = (char)(0x80 | (c >> 6 & 0x3f));
    } else {
        out[k++] = (char)(0xf0 | c >> 18);
        out[k++] = (char)(0x80 | (c >> 12 & 0x3f));
        out[k++] = (char)(0x80 | (c >> 6 & 0x3f));
    }
    if (c >= 0x80)
        out[k++] = (char)(0x80 | (c & 0x3f));
    out[k] = '\0';
    if (n + k < size)
        memcpy(text + n, out, k + 1);
}

static void character_drop(char *text)
{
    size_t n = strlen(text);
    while (n > 0 && ((unsigned char)text[--n] & 0xc0) == 0x80)
        ;
    text[n] = '\0';
}

static int filter_key(struct app *a, int key, struct amp_error *err)
{
    if (key == TOP_KEY_ENTER || key == TOP_KEY_ESCAPE) {
        if (key == TOP_KEY_ESCAPE)
            a->ui.filter[0] = '\0';
        a->ui.mode = TOP_MODE_LIST;
    } else if (key == TOP_KEY_BACKSPACE) {
        character_drop(a->ui.filter);
    } else if (key == 21) {
        a->ui.filter[0] = '\0';
    } else {
        character_add(a->ui.filter, sizeof a->ui.filter, key);
    }
    return all_order(a, err);
}

static void ask_key(struct app *a, int key)
{
    if (key == TOP_KEY_ENTER)
        typed_take(a);
    else if (key == TOP_KEY_ESCAPE)
        ask_end(a);
    else if (key == TOP_KEY_BACKSPACE)
        character_drop(a->ui.typed);
    else if (key == 21)
        a->ui.typed[0] = '\0';
    else
        character_add(a->ui.typed, sizeof a->ui.typed, key);
}

static void focus_move(struct app *a, int by)
{
    int p = ((int)a->ui.focus + by + TOP_PANE_COUNT) % TOP_PANE_COUNT;
    a->ui.focus = (enum top_pane)p;
    if (p >= TOP_LANES)
        a->ui.other = a->ui.focus;
}

/* Moves the selected row, or the first visible line of a text. */
static void place_move(struct app *a, int64_t by)
{
    bool text = a->ui.mode == TOP_MODE_DETAIL;
    uint64_t at = text ? a->ui.text_top : a->ui.place[a->ui.focus].at;
    if (by < 0)
        at = at < (uint64_t)-by ? 0 : at - (uint64_t)-by;
    else
        at += (uint64_t)by;
    if (text)
        a->ui.text_top = at;
    else
        top_ui_select(&a->ui, &a->model, a->ui.focus, at);
}

static int64_t page_rows(const struct app *a)
{
    int rows = a->ui.mode == TOP_MODE_DETAIL ? a->layout.body.h - 2
                                             : top_layout_rows(&a->layout, a->ui.focus);
    return rows > 2 ? rows - 1 : 1;
}

static void move_key(struct app *a, int key)
{
    switch (key) {
    case TOP_KEY_UP:
    case 'k':
        place_move(a, -1);
        break;
    case TOP_KEY_DOWN:
    case 'j':
        place_move(a, 1);
        break;
    case TOP_KEY_PAGE_UP:
    case 2:
        place_move(a, -page_rows(a));
        break;
    case TOP_KEY_PAGE_DOWN:
    case 6:
    case ' ':
        place_move(a, page_rows(a));
        break;
    case TOP_KEY_HOME:
    case 'g':
        place_move(a, -(INT64_C(1) << 40));
        break;
    case TOP_KEY_END:
    case 'G':
        place_move(a, INT64_C(1) << 40);
        break;
    default:
        break;
    }
}

static void text_enter(struct app *a)
{
    a->ui.text_top = 0;
    a->ui.text_at = top_ui_link(&a->ui.text, TOP_NO_LINE, 1);
}

static void detail_open(struct app *a)
{
    const struct top_row *row = row_of(a);
    if (!row)
        return;
    a->ui.mode = TOP_MODE_DETAIL;
    a->steps = 0;
    text_show(a, a->ui.focus, row);
    text_enter(a);
}

/* Opens what the selected line leads to. */
static void link_open(struct app *a)
{
    const struct top_text *t = &a->ui.text;
    struct step *s = &a->step[a->steps];
    if (a->ui.text_at >= t->n || a->steps == STEPS)
        return;
    const struct top_line *l = &t->v[a->ui.text_at];
    *s = (struct step){.to = (enum top_link)l->to, .top = a->ui.text_top, .at = a->ui.text_at};
    snprintf(s->of, sizeof s->of, "%s", t->of);
    snprintf(s->key, sizeof s->key, "%s", l->key);
    a->steps++;
    a->ui.text_at = TOP_NO_LINE;
    step_read(a);
    text_enter(a);
}

/* Back to the text from which this one was opened. */
static void link_leave(struct app *a)
{
    const struct step s = a->step[--a->steps];
    const struct top_list *l = &a->model.list[a->text_of];
    int64_t row = top_list_find(l, a->text_key);
    a->ui.text_at = TOP_NO_LINE;
    if (a->steps > 0)
        step_read(a);
    else if (row >= 0)
        text_show(a, a->text_of, &l->v[row]);
    else
        top_text_release(&a->ui.text);
    a->ui.text_top = s.top;
    a->ui.text_at = s.at < a->ui.text.n && a->ui.text.v[s.at].to != TOP_TO_NOTHING
                        ? s.at
                        : top_ui_link(&a->ui.text, TOP_NO_LINE, 1);
}

/* Selects the next line that leads to something and makes it visible; false: there is none. */
static bool link_move(struct app *a, int by)
{
    struct top_rect in = {0, 0, a->layout.body.w - 4, a->layout.body.h - 2};
    size_t next =
        a->ui.text_at < a->ui.text.n ? top_ui_link(&a->ui.text, a->ui.text_at, by) : TOP_NO_LINE;
    if (next == TOP_NO_LINE || in.w <= 10 || in.h <= 0)
        return false;
    a->ui.text_at = next;
    uint64_t row = top_view_text_row(&a->ui.text, next, in);
    if (row < a->ui.text_top)
        a->ui.text_top = row;
    else if (row >= a->ui.text_top + (uint64_t)in.h)
        a->ui.text_top = row - (uint64_t)in.h + 1;
    return true;
}

static void text_move(struct app *a, int key, int by)
{
    if (!link_move(a, by))
        move_key(a, key);
}

static void back_go(struct app *a)
{
    if (a->ui.mode == TOP_MODE_DETAIL && a->steps > 0) {
        link_leave(a);
        return;
    }
    /* Goes from the help back to the pane below it. */
    a->ui.mode = a->ui.mode == TOP_MODE_HELP ? a->ui.under : TOP_MODE_LIST;
    a->ui.under = TOP_MODE_LIST;
}

static int list_key(struct app *a, int key, struct amp_error *err)
{
    switch (key) {
    case TOP_KEY_TAB:
    case TOP_KEY_RIGHT:
    case 'l':
        focus_move(a, 1);
        return 0;
    case TOP_KEY_BACK_TAB:
    case TOP_KEY_LEFT:
    case 'h':
        focus_move(a, -1);
        return 0;
    case TOP_KEY_ENTER:
        detail_open(a);
        return 0;
    case '/':
        a->ui.mode = TOP_MODE_FILTER;
        return 0;
    case TOP_KEY_ESCAPE:
        a->ui.filter[0] = '\0';
        return all_order(a, err);
    case 'o':
        top_ui_sort(&a->ui, a->ui.focus);
        return top_ui_order(&a->ui, &a->model, a->ui.focus, err);
    case 'O':
        a->ui.place[a->ui.focus].down = !a->ui.place[a->ui.focus].down;
        return top_ui_order(&a->ui, &a->model, a->ui.focus, err);
    default:
        if (key >= '1' && key < '1' + TOP_PANE_COUNT)
            focus_move(a, key - '1' - (int)a->ui.focus);
        else
            move_key(a, key);
        return 0;
    }
}

static int key_take(struct app *a, int key, struct amp_error *err)
{
    a->dirty = true;
    if (key == TOP_KEY_RESIZE)
        return 0;
    if (key == 3 || key == TOP_KEY_CLOSED) {
        a->quit = true;
        return 0;
    }
    if (key == 26) {
        top_screen_stop(&a->screen);
        return 0;
    }
    if (key == 12) {
        top_screen_redraw(&a->screen);
        return 0;
    }
    a->ui.said[0] = '\0';
    if (a->ui.mode == TOP_MODE_FILTER)
        return filter_key(a, key, err);
    if (a->ui.mode == TOP_MODE_ASK) {
        ask_key(a, key);
        return 0;
    }
    switch (key) {
    case 'q':
        a->quit = true;
        return 0;
    case '?':
        if (a->ui.mode != TOP_MODE_HELP)
            a->ui.under = a->ui.mode;
        a->ui.mode = TOP_MODE_HELP;
        return 0;
    case 'a':
        if (a->ui.mode != TOP_MODE_HELP)
            answer_begin(a);
        return 0;
    case 's':
    case 'S':
    case 'r':
    case 'R':
        if (a->ui.mode != TOP_MODE_HELP)
            pause_begin(a, key == 'r' || key == 'R', key == 'S' || key == 'R');
        return 0;
    default:
        break;
    }
    if (a->ui.mode == TOP_MODE_LIST)
        return list_key(a, key, err);
    if (key == TOP_KEY_ESCAPE || key == TOP_KEY_LEFT || key == 'h')
        back_go(a);
    else if (a->ui.mode == TOP_MODE_DETAIL && key == TOP_KEY_ENTER)
        link_open(a);
    else if (a->ui.mode == TOP_MODE_DETAIL && (key == TOP_KEY_DOWN || key == 'j'))
        text_move(a, key, 1);
    else if (a->ui.mode == TOP_MODE_DETAIL && (key == TOP_KEY_UP || key == 'k'))
        text_move(a, key, -1);
    else if (a->ui.mode == TOP_MODE_DETAIL)
        move_key(a, key);
    return 0;
}

/* ---- the loop ---- */

static int keys_read(struct app *a, struct amp_error *err)
{
    int key;
    while (!a->quit && (key = top_screen_key(&a->screen)) != TOP_KEY_NONE)
        if (key_take(a, key, err) < 0)
            return -1;
    return 0;
}

/* Waits for a key, a signal, the log, or the next minute, whose ages are others. Until then there
 * is no system call. */
static int turn(struct app *a, struct amp_error *err)
{
    struct pollfd fds[3];
    int64_t now = amp_now_ms(), rest = a->read_ms + a->rest_ms - amp_mono_ms();
    struct amp_loop t = amp_loop_turn(fds, 3, &amp_stop, NULL);
    const struct pollfd *in = amp_loop_add(&t, STDIN_FILENO, POLLIN);
    const struct pollfd *signals = amp_loop_add(&t, a->screen.signals, POLLIN);
    const struct pollfd *log = amp_loop_add(&t, rest > 0 ? -1 : a->wake.log, POLLIN);
    amp_loop_within(&t, MINUTE_MS - now % MINUTE_MS);
    /* After a reading, the log rests; what is written meanwhile is read then. */
    if (rest > 0)
        amp_loop_within(&t, rest);
    int ended = amp_loop_wait(&t, err);
    if (ended < 0)
        return -1;
    if (ended == AMP_LOOP_LATE && rest <= 0)
        a->dirty = true;
    if (signals->revents && top_screen_signals(&a->screen))
        a->dirty = true;
    if (in->revents & POLLIN) {
        if (keys_read(a, err) < 0)
            return -1;
    } else if (in->revents) {
        a->quit = true; /* the terminal is gone */
    }
    return log->revents || (a->written && rest <= 0) ? log_read(a, err) : 0;
}

static int app_run(struct app *a, enum top_pane first, bool color, struct amp_error *err)
{
    top_ui_init(&a->ui);
    a->ui.focus = first;
    if (first >= TOP_LANES)
        a->ui.other = first;
    if (amp_wake_open(&a->wake, amp_store_dir(a->store), err) < 0 ||
        top_source_open(&a->source, a->store, &a->model, err) < 0 || all_order(a, err) < 0 ||
        top_screen_open(&a->screen, color, err) < 0)
        return -1;
    amp_err_divert(said_take, a);
    a->dirty = true;
    int rc = 0;
    while (rc == 0 && !a->quit && !amp_stop) {
        if (a->dirty)
            rc = screen_draw(a, err);
        if (rc == 0)
            rc = turn(a, err);
    }
    return rc;
}

int top_loop(struct amp_store *s, enum top_pane first, bool color, const char *read_only,
             struct amp_error *err)
{
    struct app *a = calloc(1, sizeof *a);
    if (!a)
        return amp_fail_memory(err);
    a->store = s;
    a->wake.log = a->wake.timer = -1;
    a->model.read_only = read_only != NULL;
    if (read_only)
        snprintf(a->model.why, sizeof a->model.why, "%s", read_only);
    int rc = app_run(a, first, color, err);
    amp_err_divert(NULL, NULL);
    top_screen_close(&a->screen);
    top_source_close(&a->source);
    top_model_release(&a->model);
    top_ui_release(&a->ui);
    top_grid_release(&a->grid);
    if (a->wake.log >= 0)
        amp_wake_close(&a->wake);
    free(a);
    return rc;
}
