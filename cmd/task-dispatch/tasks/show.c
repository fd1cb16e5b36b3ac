/* task-dispatch show: the story of a task, for a person or as JSON. */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "cli/list.h"
#include "cli/time.h"
#include "message/protocol/compose/json.h"
#include "people/story/story.h"
#include "shared/work/person.h"

#define TEXT_MAX  (64u << 20)
#define FIELD_MAX 4000 /* bytes of one text that are shown without --full */

static bool full, protocol;

static const struct amp_opt tasks_show_opts[] = {
    {0, "full", AMP_OPT_FLAG, &full, NULL, "print long texts completely"},
    {'p', "protocol", AMP_OPT_FLAG, &protocol, NULL, "print the words of the protocol"},
    AMP_OPT_JSON("print one JSON object"),
    AMP_OPT_END,
};

struct showing {
    struct amp_store *store;
    struct amp_story st;
    struct amp_page page;
    struct amp_span worktree; /* of the summary, in texts */
    char texts[PATH_MAX + 512];
    struct amp_span agent;
    bool working, paused, ended;
    char state[32], said[AMP_BRIEF_WORDS_MAX]; /* the state in words of the protocol, of people */
};

/* ---- the summary's part ---- */

static int brief_take(void *ctx, const struct amp_brief *b, struct amp_error *err)
{
    struct showing *s = ctx;

    (void)err;
    s->working = b->working;
    s->paused = b->paused;
    snprintf(s->state, sizeof s->state, "%s", amp_brief_state(b));
    amp_brief_words(b, amp_now_ms(), s->said);
    int n = snprintf(s->texts, sizeof s->texts, "%.*s%.*s", AMP_CLIP(b->worktree, PATH_MAX - 1),
                     AMP_CLIP(b->agent, 256));
    if (n < 0 || (size_t)n >= sizeof s->texts)
        return 0;
    s->worktree = (struct amp_span){s->texts, b->worktree.n};
    s->agent = (struct amp_span){s->texts + b->worktree.n, (size_t)n - b->worktree.n};
    return 0;
}

static bool is_directory(struct amp_span path)
{
    char text[PATH_MAX];
    struct stat at;

    return path.n && amp_span_copy(path, text, sizeof text) && lstat(text, &at) == 0 &&
           S_ISDIR(at.st_mode);
}

static const struct amp_story_event *question_open(const struct amp_story *st)
{
    const struct amp_story_event *found = NULL;

    for (size_t i = 0; i < st->n_events; i++) {
        const struct amp_story_event *e = &st->events[i];
        if (e->kind == AMP_STORY_QUESTION && e->open &&
            (!found ||
             (strcmp(e->severity, "critical") == 0 && strcmp(found->severity, "critical") != 0)))
            found = e;
    }
    return found;
}

/* Why it asks, in words; or its type. */
static const char *question_why(const struct showing *s, const struct amp_story_event *q)
{
    const json_t *e;
    size_t i;

    json_array_foreach (s->st.task.open, i, e)
        if (strcmp(amp_json_str(e, "ref"), q->id) == 0 && *amp_json_str(e, "why"))
            return amp_json_str(e, "why");
    return q->word;
}

/* ---- what comes next ---- */

struct next {
    char text[300], command[200]; /* command: "" if there is nothing to do */
};

static void next_find(const struct showing *s, struct next *n)
{
    const struct amp_task *t = &s->st.task;
    const struct amp_story_event *q = question_open(&s->st);
    char agent[128] = "";

    amp_span_copy(s->agent, agent, sizeof agent);
    *n = (struct next){0};
    if (q && !amp_task_ended(t->state)) {
        snprintf(n->text, sizeof n->text, "it waits for a person's decision (%.60s)",
                 question_why(s, q));
        snprintf(n->command, sizeof n->command, "hitl-prompt show %s", t->id);
        return;
    }
    if (s->paused && !amp_task_ended(t->state)) {
        snprintf(n->text, sizeof n->text, "a person suspended it");
        snprintf(n->command, sizeof n->command, "hitl-prompt suspend --list");
        return;
    }
    switch (t->state) {
    case AMP_TASK_NEW:
    case AMP_TASK_INCOMPLETE:
        snprintf(n->text, sizeof n->text, "it needs acceptance criteria: send it again with them");
        snprintf(n->command, sizeof n->command, "task-dispatch new --id %s --criterion TEXT …",
                 t->id);
        return;
    case AMP_TASK_DISPATCHED:
    case AMP_TASK_REWORK:
    case AMP_TASK_IN_REVIEW:
        snprintf(n->text, sizeof n->text, "%s%s",
                 s->working                       ? agent
                 : t->state == AMP_TASK_IN_REVIEW ? "a reviewer takes the review request"
                                                  : "an executor takes the dispatch",
                 s->working ? " works on it" : " when the loop runs");
        return;
    case AMP_TASK_DONE:
        if (s->st.landing == AMP_LANDING_LANDED) {
            snprintf(n->text, sizeof n->text, "nothing: it has landed%s",
                     is_directory(s->worktree) ? "; its worktree is still there" : "");
            return;
        }
        snprintf(n->text, sizeof n->text, "%s",
                 s->st.landing == AMP_LANDING_MOVING
                     ? "a landing was interrupted; land it again to complete it"
                     : "the approved work can be merged");
        snprintf(n->command, sizeof n->command, "task-dispatch land %s", t->id);
        return;
    case AMP_TASK_FAILED:
        snprintf(n->text, sizeof n->text, "it has failed, and can be tried again");
        snprintf(n->command, sizeof n->command, "task-dispatch retry %s", t->id);
        return;
    default:
        snprintf(n->text, sizeof n->text, "nothing: it has ended");
    }
}

/* ---- for people ---- */

static const char *time_local(int64_t ms, char out[32])
{
    time_t at = (time_t)(ms / 1000);
    struct tm tm;

    if (ms <= 0 || !localtime_r(&at, &tm) || !strftime(out, 32, "%Y-%m-%d %H:%M:%S", &tm))
        snprintf(out, 32, "-");
    return out;
}

static int quote(const struct showing *s, const char *label, const char *text)
{
    return *text ? amp_page_quote(&s->page, label, amp_span_str(text), full ? 0 : FIELD_MAX) : 0;
}

/* A line of our own whose end is a text of others. */
static int fact(const struct showing *s, const char *label, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static int fact(const struct showing *s, const char *label, const char *fmt, ...)
{
    char text[PATH_MAX + 256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return quote(s, label, text);
}

/* The heading of an event: what, when, who. */
static int head(const struct showing *s, enum amp_tint tint, const struct amp_story_event *e,
                const char *what)
{
    char at[32];

    return amp_page_say(&s->page, tint, "%s  %s", time_local(e->at_ms, at), what);
}

static int who(const struct showing *s, const char *label, const struct amp_story_event *e)
{
    if (!*e->from)
        return 0;
    return fact(s, label, "%.200s%s%.100s%s", e->from, *e->by ? " (" : "", e->by,
                *e->by ? ")" : "");
}

static int items(const struct showing *s, const struct amp_story_event *e)
{
    for (size_t i = 0; i < e->n_items; i++) {
        const struct amp_story_item *item = &e->items[i];
        if (!*item->severity) {
            if (quote(s, item->label, item->text) < 0)
                return -1;
            continue;
        }
        char line[32] = "";
        if (*item->file && item->line > 0)
            snprintf(line, sizeof line, ":%lld", (long long)item->line);
        if (fact(s, item->label, "%.40s%s%.500s%s", item->severity, *item->file ? ", " : "",
                 item->file, line) < 0 ||
            quote(s, "", item->text) < 0 || quote(s, "fix", item->fix) < 0)
            return -1;
    }
    return 0;
}

static int asked_show(const struct showing *s, const struct amp_story_event *e)
{
    return head(s, AMP_TINT_HEAD, e, "asked") < 0 || who(s, "by", e) < 0 ||
                   quote(s, "task", e->text) < 0 || items(s, e) < 0
               ? -1
               : 0;
}

static int dispatch_show(const struct showing *s, const struct amp_story_event *e, int attempt)
{
    char what[80];

    snprintf(what, sizeof what, "attempt %d: sent to the %s", attempt, *e->to ? "executor" : "?");
    return head(s, AMP_TINT_HEAD, e, what) < 0 || quote(s, "subtask", e->subtask) < 0 ? -1 : 0;
}

static int result_show(const struct showing *s, const struct amp_story_event *e)
{
    return head(s, AMP_TINT_NONE, e, "result") < 0 || who(s, "by", e) < 0 ||
                   fact(s, "work", "%.20s: %lld file%s, +%lld -%lld%s%.64s", e->word,
                        (long long)e->files, e->files == 1 ? "" : "s", (long long)e->added,
                        (long long)e->removed, *e->commit ? ", commit " : "", e->commit) < 0 ||
                   items(s, e) < 0
               ? -1
               : 0;
}

static int verdict_show(const struct showing *s, const struct amp_story_event *e)
{
    char what[80], how[32] = "";
    bool no = strcmp(e->word, "rejected") == 0;

    if (e->confidence >= 0)
        snprintf(how, sizeof how, ", confidence %.2f", e->confidence);
    snprintf(what, sizeof what, "verdict: %.30s%s", e->word, how);
    return head(s, no ? AMP_TINT_OLD : AMP_TINT_NEW, e, what) < 0 || who(s, "by", e) < 0 ||
                   items(s, e) < 0
               ? -1
               : 0;
}

static int question_show(const struct showing *s, const struct amp_story_event *e)
{
    bool info = strcmp(e->severity, "info") == 0;

    return head(s, AMP_TINT_WARN, e,
                info      ? "report to the admin"
                : e->open ? "question, open"
                          : "question") < 0 ||
                   who(s, "by", e) < 0 ||
                   fact(s, "about", "%.60s (%.20s)", e->word, e->severity) < 0 ||
                   quote(s, "", e->text) < 0 || items(s, e) < 0
               ? -1
               : 0;
}

static int decision_show(const struct showing *s, const struct amp_story_event *e)
{
    return head(s, AMP_TINT_WARN, e, "decision") < 0 || who(s, "by", e) < 0 ||
                   quote(s, "answer", e->word) < 0 || quote(s, "note", e->text) < 0
               ? -1
               : 0;
}

static int cancel_show(const struct showing *s, const struct amp_story_event *e)
{
    return head(s, AMP_TINT_OLD, e, "cancelled") < 0 || who(s, "by", e) < 0 ||
                   quote(s, "reason", e->text) < 0
               ? -1
               : 0;
}

static int land_show(const struct showing *s, const struct amp_story_event *e)
{
    return head(s, AMP_TINT_NEW, e, "landed") < 0 || who(s, "by", e) < 0 ||
                   fact(s, "branch", "%.250s at %.64s", e->to, e->commit) < 0
               ? -1
               : 0;
}

static int event_show(const struct showing *s, const struct amp_story_event *e, int *attempt)
{
    switch (e->kind) {
    case AMP_STORY_ASKED:
        return asked_show(s, e);
    case AMP_STORY_DISPATCH:
        return dispatch_show(s, e, ++*attempt);
    case AMP_STORY_RESULT:
        return result_show(s, e);
    case AMP_STORY_VERDICT:
        return verdict_show(s, e);
    case AMP_STORY_QUESTION:
        return question_show(s, e);
    case AMP_STORY_DECISION:
        return decision_show(s, e);
    case AMP_STORY_CANCEL:
        return cancel_show(s, e);
    case AMP_STORY_LAND:
        return land_show(s, e);
    default: /* the verdict says that there was a review */
        return 0;
    }
}

/* The heading: its words may have texts of others. */
static int state_show(const struct showing *s)
{
    AMP_BUF struct amp_buf state = {.max = 4 * AMP_BRIEF_WORDS_MAX};
    const char *words = protocol ? s->state : s->said;

    if (amp_text_safe(amp_span_str(words), 0, &state, s->page.err) < 0)
        return -1;
    return amp_page_say(&s->page, AMP_TINT_HEAD, "== %s: %.*s%s", s->st.task.id, (int)state.len,
                        state.data, protocol && s->paused ? " (paused)" : "");
}

static int top_show(const struct showing *s)
{
    const struct amp_task *t = &s->st.task;
    char at[32], age[AMP_AGE_MAX];

    amp_age_text(amp_now_ms() - t->created_ms, age);
    if (state_show(s) < 0 || quote(s, "task", t->description) < 0 ||
        quote(s, "repository", t->repo) < 0 || quote(s, "branch", t->branch) < 0 ||
        quote(s, "base", t->base) < 0 ||
        fact(s, "since", "%s (%s)", time_local(t->created_ms, at), age) < 0)
        return -1;
    for (size_t i = 0; t->n_parts > 1 && i < t->n_parts; i++)
        if (fact(s, i ? "" : "subtasks", "%.200s: %s, %lld attempt%s", t->parts[i].id,
                 protocol ? amp_qa_fsm.states[t->parts[i].state].name
                          : amp_part_words(t->parts[i].state),
                 (long long)t->parts[i].attempts, t->parts[i].attempts == 1 ? "" : "s") < 0)
            return -1;
    return amp_buf_str(s->page.out, "\n", s->page.err);
}

static int places_show(const struct showing *s)
{
    const struct amp_story *st = &s->st;
    struct next n;

    if (amp_buf_str(s->page.out, "\n", s->page.err) < 0 ||
        amp_page_say(&s->page, AMP_TINT_HEAD, "-- where it is") < 0)
        return -1;
    if (s->worktree.n && amp_page_quote(&s->page, "worktree", s->worktree, 0) < 0)
        return -1;
    if (!is_directory(s->worktree) && *st->task.branch && !amp_task_ended(st->task.state) &&
        amp_page_say(&s->page, AMP_TINT_DIM,
                     "  %-*s   no worktree (task-dispatch open %s makes one)", AMP_PAGE_LABEL,
                     "worktree", st->task.id) < 0)
        return -1;
    size_t first = !full && st->n_attempts > 6 ? st->n_attempts - 6 : 0;
    if (first && amp_page_say(&s->page, AMP_TINT_DIM, "  %-*s   … %zu earlier ones (--full)",
                              AMP_PAGE_LABEL, "logs", first) < 0)
        return -1;
    for (size_t i = first; i < st->n_attempts; i++)
        if (quote(s, i == first ? "logs" : "", st->attempts[i].dir) < 0)
            return -1;
    next_find(s, &n);
    if (amp_buf_str(s->page.out, "\n", s->page.err) < 0 ||
        amp_page_say(&s->page, AMP_TINT_HEAD, "-- next: %s", n.text) < 0)
        return -1;
    return *n.command ? amp_page_say(&s->page, AMP_TINT_NONE, "  %s", n.command) : 0;
}

static int page_show(struct showing *s, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    int attempt = 0, wide = amp_page_columns(STDOUT_FILENO);

    amp_buf_init(&text, TEXT_MAX);
    s->page = (struct amp_page){.width = wide == 0    ? 100
                                         : wide < 40  ? 40
                                         : wide > 120 ? 120
                                                      : wide,
                                .color = amp_color_of(STDOUT_FILENO),
                                .out = &text,
                                .err = err,
                                .more = "--full"};
    if (top_show(s) < 0)
        return -1;
    for (size_t i = 0; i < s->st.n_events; i++)
        if (event_show(s, &s->st.events[i], &attempt) < 0)
            return -1;
    return places_show(s) < 0 ? -1 : amp_out(amp_buf_span(&text), err);
}

/* ---- for programs ---- */

static void line_put(const void *row, const char *key, struct amp_jw *w)
{
    const struct amp_story_item *item = row;

    if (*item->file)
        amp_jw_member_int(w, key, item->line);
}

static void confidence_put(const void *row, const char *key, struct amp_jw *w)
{
    const struct amp_story_event *e = row;
    char number[32];

    snprintf(number, sizeof number, "%.4g", e->confidence);
    if (e->confidence >= 0)
        amp_jw_member_raw(w, key, amp_span_str(number));
}

static void open_put(const void *row, const char *key, struct amp_jw *w)
{
    const struct amp_story_event *e = row;

    if (e->kind == AMP_STORY_QUESTION)
        amp_jw_member_bool(w, key, e->open);
}

static void next_put(const void *row, const char *key, struct amp_jw *w)
{
    struct next n;

    next_find(row, &n);
    amp_jw_member_open(w, key, '{');
    amp_jw_member_text(w, "text", n.text);
    amp_jw_some_str(w, "command", amp_span_str(n.command));
    amp_jw_close(w, '}');
}

static struct amp_span event_word(const void *row, char mem[AMP_CELL_MAX])
{
    (void)mem;
    return amp_span_str(amp_story_word(((const struct amp_story_event *)row)->kind));
}

#define ITEM(form, key, member)  AMP_COLUMN(form, struct amp_story_item, key, NULL, member)
#define EVENT(form, key, member) AMP_COLUMN(form, struct amp_story_event, key, NULL, member)
#define SOME(form, key, member)  AMP_COLUMN(form, struct showing, key, NULL, member)
#define EVER(form, key, member)  AMP_COLUMN_EVER(form, struct showing, key, NULL, member)
static const struct amp_column item_columns[] = {
    AMP_COLUMN_EVER(CSTR, struct amp_story_item, "kind", NULL, label),
    AMP_COLUMN_EVER(CSTR, struct amp_story_item, "text", NULL, text),
    ITEM(CSTR, "severity", severity),
    ITEM(CSTR, "file", file),
    AMP_COLUMN_PUT("line", line_put),
    ITEM(CSTR, "suggested_fix", fix),
    {0},
};
static const struct amp_column event_columns[] = {
    AMP_COLUMN_MADE("event", NULL, event_word, .ever = true),
    EVENT(TIME, "at", at_ms),
    EVENT(CSTR, "id", id),
    EVENT(CSTR, "from", from),
    EVENT(CSTR, "to", to),
    EVENT(CSTR, "key", by),
    EVENT(CSTR, "subtask", subtask),
    EVENT(CSTR, "word", word),
    EVENT(CSTR, "severity", severity),
    EVENT(CSTR, "text", text),
    EVENT(CSTR, "commit", commit),
    EVENT(COUNT, "files", files),
    EVENT(COUNT, "added", added),
    EVENT(COUNT, "removed", removed),
    AMP_COLUMN_PUT("confidence", confidence_put),
    AMP_COLUMN_PUT("open", open_put),
    AMP_COLUMN_ROWS(struct amp_story_event, "items", items, n_items, item_columns),
    {0},
};
static const struct amp_column part_columns[] = {
    AMP_COLUMN_EVER(CSTR, struct amp_task_part, "subtask", NULL, id),
    AMP_COLUMN_STATE(struct amp_task_part, "state", NULL, state, &amp_qa_fsm),
    AMP_COLUMN_EVER(INT, struct amp_task_part, "attempts", NULL, attempts),
    AMP_COLUMN(CSTR, struct amp_task_part, "commit", NULL, commit),
    AMP_COLUMN(CSTR, struct amp_task_part, "verdict", NULL, verdict),
    {0},
};
static const struct amp_column attempt_columns[] = {
    AMP_COLUMN_EVER(CSTR, struct amp_story_attempt, "agent", NULL, agent),
    AMP_COLUMN_EVER(CSTR, struct amp_story_attempt, "subtask", NULL, subtask),
    AMP_COLUMN_EVER(INT, struct amp_story_attempt, "attempt", NULL, number),
    AMP_COLUMN_EVER(CSTR, struct amp_story_attempt, "log", NULL, dir),
    AMP_COLUMN(TIME, struct amp_story_attempt, "at", NULL, at_ms),
    {0},
};
static const struct amp_column columns[] = {
    EVER(CSTR, "task", st.task.id),
    EVER(CHARS, "state", state),
    EVER(FLAG, "ended", ended),
    EVER(FLAG, "paused", paused),
    EVER(CSTR, "description", st.task.description),
    SOME(CSTR, "repo", st.task.repo),
    SOME(CSTR, "branch", st.task.branch),
    SOME(CSTR, "base", st.task.base),
    SOME(TEXT, "agent", agent),
    SOME(TEXT, "worktree", worktree),
    SOME(TIME, "created", st.task.created_ms),
    SOME(TIME, "updated", st.task.updated_ms),
    AMP_COLUMN_ROWS(struct showing, "subtasks", st.task.parts, st.task.n_parts, part_columns,
                    .ever = true),
    AMP_COLUMN_ROWS(struct showing, "events", st.events, st.n_events, event_columns, .ever = true),
    AMP_COLUMN_ROWS(struct showing, "attempts", st.attempts, st.n_attempts, attempt_columns,
                    .ever = true),
    AMP_COLUMN_PUT("next", next_put, .ever = true),
    {0},
};

static int story_show(struct showing *s, const char *name, struct amp_listing *list,
                      struct amp_error *err)
{
    char id[AMP_TASK_ID_MAX];

    if (amp_story_find(s->store, name, id, err) < 0)
        return -1;
    const struct amp_brief_filter f = {.ended = true, .id = amp_span_str(id)};
    if (amp_brief_each(s->store, &f, brief_take, s, err) < 0 ||
        amp_story_load(s->store, amp_span_str(id), &s->st, err) < 0)
        return -1;
    s->ended = amp_task_ended(s->st.task.state);
    return amp_listing_json ? amp_listing_row(list, s, err) : page_show(s, err);
}

static int tasks_show(struct amp_command *c, struct amp_error *err)
{
    struct showing *s = calloc(1, sizeof *s);

    if (!s)
        return amp_fail_memory(err);
    s->store = c->store;
    int rc = story_show(s, c->argv[0], c->list, err);
    amp_story_release(&s->st);
    free(s);
    return rc;
}

const struct amp_verb show_verbs[] = {
    {"show", "TASK", "tell the story of a task", tasks_show_opts, tasks_show,
     .opens = AMP_OPENS_READ, .lists = columns, .least = 1, .most = 1,
     .usage = "show needs one task: show TASK (task-dispatch list shows them)", .finds_state = true,
     .values = "task"},
    {0},
};
